"""Compiler settings of every kernel, in one place.

Compiled code is cached in a folder that is named by a digest of all kernel sources (dsl.kernel_cache): numba's own
cache does not notice that a kernel in another file, or a constant imported from one, has changed.
Nothing outside kernel files may import this module; importing it imports numba.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar, cast

import numba
from numba.core import config

from dsl.kernel_cache import cache_folder

P = ParamSpec("P")
R = TypeVar("R")

if not config.CACHE_DIR:  # type: ignore[attr-defined]  # set from the environment; NUMBA_CACHE_DIR wins
    config.CACHE_DIR = str(cache_folder(numba.__version__))  # type: ignore[attr-defined]


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function that gets arrays and numbers, never objects, and never raises."""
    return cast("Callable[P, R]", numba.njit(cache=True, nogil=True, boundscheck=False)(function))


def inlined(function: Callable[P, R]) -> Callable[P, R]:
    """A part of a kernel that is compiled into its callers, as if it stood there."""
    return cast("Callable[P, R]", numba.njit(cache=True, nogil=True, boundscheck=False, forceinline=True)(function))
