"""Compiler settings of every kernel, in one place.

Compiled code is cached in a folder that is named by a digest of all kernel sources (dsl.kernel_cache): numba's own
cache does not notice that a kernel in another file, or a constant imported from one, has changed.
Nothing outside kernel files may import this module; importing it imports numba.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import ParamSpec, TypeVar, cast

import numba
from numba.core import config

from dsl.kernel_cache import cache_folder, is_private

P = ParamSpec("P")
R = TypeVar("R")


def _own_folder(named: str) -> str:
    """The folder that NUMBA_CACHE_DIR names, if it is there and only this user can write to it; else ours."""
    folder = Path(named).absolute().resolve()
    return str(folder if named and folder.is_dir() and is_private(folder) else cache_folder(numba.__version__))


config.CACHE_DIR = _own_folder(config.CACHE_DIR)  # type: ignore[attr-defined]


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function that gets arrays and numbers, never objects, and never raises."""
    return cast("Callable[P, R]", numba.njit(cache=True, nogil=True, boundscheck=False)(function))


def inlined(function: Callable[P, R]) -> Callable[P, R]:
    """A part of a kernel that is compiled into its callers, as if it stood there."""
    return cast("Callable[P, R]", numba.njit(cache=True, nogil=True, boundscheck=False, forceinline=True)(function))
