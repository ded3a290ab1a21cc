"""Compiler settings of every kernel, in one place.

Compiled code is cached in a folder that is named by a digest of all kernel sources (dsl.kernel_cache): numba's own
cache does not notice that a kernel in another file, or a constant imported from one, has changed.
Nothing outside kernel files may import this module; importing it imports numba.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, cast

import numba
from numba.core import config
from numba.core.compiler_lock import global_compiler_lock
from numba.core.types import unliteral

from calibrant.dsl.kernel_cache import CompileLock, cache_folder, is_private
from calibrant.dsl.memory import gc_paused

P = ParamSpec("P")
R = TypeVar("R")


def _own_folder(named: str) -> str:
    """Return the folder that NUMBA_CACHE_DIR names, if it is there and only this user can write to it; else ours."""
    folder = Path(named).absolute().resolve()
    return str(folder if named and folder.is_dir() and is_private(folder) else cache_folder(numba.__version__))


config.CACHE_DIR = _own_folder(config.CACHE_DIR)  # type: ignore[attr-defined]
_turn = CompileLock(Path(config.CACHE_DIR))  # type: ignore[attr-defined]


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function that gets arrays and numbers, never objects, and never raises."""
    no_entry_for_c: Any = {"no_cfunc_wrapper": True}  # an option that numba's annotations leave out
    compiler = numba.njit(cache=True, nogil=True, boundscheck=False, **no_entry_for_c)
    return cast("Callable[P, R]", _in_turn(compiler(function)))


def inline_kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a part of a kernel into its callers, as if it stood there, and alone only if Python calls it."""
    compiler = numba.njit(cache=True, nogil=True, boundscheck=False, inline="always")
    return cast("Callable[P, R]", _in_turn(compiler(function)))


def _in_turn(dispatcher: Any) -> Any:
    """Wrap a dispatcher to compile once: not per literal type of an argument, nor in two processes at a time."""
    compiled, loaded = dispatcher.compile, dispatcher._cache.load_overload

    def compile_in_turn(signature: Any) -> Any:
        types = tuple(map(unliteral, signature)) if isinstance(signature, tuple) else signature
        with global_compiler_lock, _turn, gc_paused():  # what a compiler makes lives on
            return compiled(types)

    def load_or_wait(signature: Any, context: Any) -> Any:
        overload = loaded(signature, context)
        if overload is None:
            _turn.wait()
            overload = loaded(signature, context)  # unless nobody else has compiled it meanwhile
            if overload is None:
                _turn.notify(dispatcher.py_func.__name__)
        return overload

    dispatcher.compile, dispatcher._cache.load_overload = compile_in_turn, load_or_wait
    return dispatcher
