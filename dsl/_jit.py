"""Compiler settings of every kernel, in one place.

Compiled code is cached in a folder that is named by a digest of all kernel sources (dsl.kernel_cache): numba's own
cache does not notice that a kernel in another file, or a constant imported from one, has changed.
A wheel may contain kernels compiled at its build (docs/decisions/0008-kernels-in-wheels.md); a kernel that is not among
them, or that does not fit this processor and these versions, is compiled on first use.
Nothing outside kernel files may import this module; importing it imports numba.
"""

from __future__ import annotations

import pickle
import sys
import sysconfig
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, cast

import numba
from llvmlite.binding import get_host_cpu_features
from numba.core import config
from numba.core.compiler import CompileResult
from numba.core.compiler_lock import global_compiler_lock
from numba.core.runtime.nrt import rtsys
from numba.core.serialize import dumps
from numba.core.types import unliteral

from calibrant.dsl.kernel_cache import CompileLock, cache_folder, cache_name, is_private
from calibrant.dsl.memory import gc_paused

P = ParamSpec("P")
R = TypeVar("R")


def _cache_folder(named: str) -> str:
    """Return the folder of NUMBA_CACHE_DIR if it exists and only this user can write to it, else Calibrant's."""
    folder = Path(named).absolute().resolve()
    return str(folder if named and folder.is_dir() and is_private(folder) else cache_folder(numba.__version__))


config.CACHE_DIR = _cache_folder(config.CACHE_DIR)  # type: ignore[attr-defined]
_compile_lock = CompileLock(Path(config.CACHE_DIR))  # type: ignore[attr-defined]


# LLVM's name of a processor -> features that kernels compiled for it need
BASELINES: Mapping[str, tuple[str, ...]] = {
    "x86-64-v3": ("avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "popcnt"),
    "generic": (),
}
_dispatchers: list[Any] = []
_result: Any = CompileResult
_pickled: Callable[[object], bytes] = dumps


def shipped_file() -> Path:
    """Return the path of kernels compiled at build; its name depends on sources, compiler, Python and system."""
    system = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    name = f"{cache_name(numba.__version__)}-{sys.implementation.cache_tag}-{system}.pickle"
    return Path(__file__).with_name(name)


def write_compiled(path: Path) -> int:
    """Write the kernels compiled in this process; return their number. NUMBA_CPU_NAME must be one of BASELINES."""
    kernels = {
        (_kernel_name(dispatcher), str(signature)): _pickled(result._reduce())
        for dispatcher in _dispatchers
        for signature, result in dispatcher.overloads.items()
    }
    needed = BASELINES[config.CPU_NAME]  # type: ignore[attr-defined]
    path.write_bytes(pickle.dumps((needed, kernels)))
    return len(kernels)


@cache
def _shipped() -> Mapping[tuple[str, str], bytes]:
    """Return the installed kernels that run on this processor: (name, signature) -> pickle; none in a checkout."""
    path = shipped_file()
    if not path.is_file():
        return {}
    needed, kernels = pickle.loads(path.read_bytes())
    features = get_host_cpu_features()
    return kernels if all(features.get(name) for name in needed) else {}


def _kernel_name(dispatcher: Any) -> str:
    return f"{dispatcher.py_func.__module__}.{dispatcher.py_func.__qualname__}"


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function of arrays and numbers that never raises."""
    no_entry_for_c: Any = {"no_cfunc_wrapper": True}  # an option that numba's annotations leave out
    compiler = numba.njit(nogil=True, boundscheck=False, **no_entry_for_c)
    return cast("Callable[P, R]", _compile_once(compiler(function)))


def inline_kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function inline into the kernels that call it; separately only if Python calls it."""
    compiler = numba.njit(nogil=True, boundscheck=False, inline="always")
    return cast("Callable[P, R]", _compile_once(compiler(function)))


def _compile_once(dispatcher: Any) -> Any:
    """Make a dispatcher compile only once for all literal types of an argument, and in one process at a time."""
    _dispatchers.append(dispatcher)
    compiled = dispatcher.compile

    def compile_in_turn(signature: Any) -> Any:
        types = tuple(map(unliteral, signature)) if isinstance(signature, tuple) else signature
        with global_compiler_lock, _compile_lock, gc_paused():  # the compiler's objects are long-lived
            if dispatcher._cache.load_overload is not load_or_wait:
                dispatcher.enable_caching()  # reads files, so only for kernels that are called
                dispatcher._cache.load_overload = load_or_wait
            return compiled(types)

    def load_or_wait(signature: Any, context: Any) -> Any:
        rtsys.initialize(context)  # enough to run; the rest of the initialisation, for compiling, takes 0.3 s
        shipped = _shipped().get((_kernel_name(dispatcher), str(signature)))
        if shipped is not None:
            return _result._rebuild(context, *pickle.loads(shipped))
        overload = load_compiled(signature, context)
        if overload is None:
            _compile_lock.wait()
            overload = load_compiled(signature, context)  # another process may have compiled it meanwhile
            if overload is None:
                _compile_lock.notify(dispatcher.py_func.__name__)
        return overload

    def load_compiled(signature: Any, context: Any) -> Any:
        on_disk = dispatcher._cache
        with on_disk._guard_against_spurious_io_errors():
            return on_disk._load_overload(signature, context)

    dispatcher.compile = compile_in_turn
    return dispatcher
