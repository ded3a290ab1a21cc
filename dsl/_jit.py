"""Compiler settings of every kernel, in one place.

Compiled code is cached in a folder of the user's cache directory that is named by a digest of all kernel sources:
numba's own cache does not notice that a kernel in another file, or a constant imported from one, has changed.
Nothing outside kernel files may import this module; importing it imports numba.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import ParamSpec, TypeVar, cast

import numba
from numba.core import config
from platformdirs import user_cache_path

P = ParamSpec("P")
R = TypeVar("R")

_ROOT = Path(__file__).resolve().parent.parent
_KERNEL_PACKAGES = ("dsl", "solvers", "baselines")
KERNEL_FILES = tuple(sorted(path for package in _KERNEL_PACKAGES for path in (_ROOT / package).glob("_kernels*.py")))


def _digest() -> str:
    digest = hashlib.sha256(numba.__version__.encode())
    for path in KERNEL_FILES:
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _cache_folder() -> Path:
    folder = user_cache_path("calibrant") / f"kernels-{_digest()}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:  # a read-only home: compile once per machine boot instead
        folder = Path(tempfile.gettempdir()) / f"calibrant-kernels-{_digest()}"
    return folder


if not config.CACHE_DIR:  # type: ignore[attr-defined]  # set from the environment; NUMBA_CACHE_DIR wins
    config.CACHE_DIR = str(_cache_folder())  # type: ignore[attr-defined]


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function that gets arrays and numbers, never objects, and never raises."""
    return cast("Callable[P, R]", numba.njit(cache=True, nogil=True, boundscheck=False)(function))


def inlined(function: Callable[P, R]) -> Callable[P, R]:
    """A part of a kernel that is compiled into its callers, as if it stood there."""
    return cast("Callable[P, R]", numba.njit(cache=True, nogil=True, boundscheck=False, forceinline=True)(function))
