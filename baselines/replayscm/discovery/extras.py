"""Libraries that are installed only on request: how they are imported, and how they are kept quiet and single-threaded.

Nothing here is imported before a row that needs it runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from calibrant.dsl.errors import MissingExtraError

MAX_REASON = 200  # characters of what an import says went wrong


def require_extra(extra: str, *modules: str) -> None:
    """`MissingExtraError`, in one line, if a top-level module of the extra is not installed. Imports nothing."""
    missing = [module for module in modules if find_spec(module) is None]
    if missing:
        names = f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'}"
        raise MissingExtraError(f"{names} missing; run: pip install 'calibrant[{extra}]'")


def library(module: str, *, extra: str = "discovery") -> Any:
    """Return a module of an optional library, which has no types; `MissingExtraError` if it cannot be imported."""
    try:
        return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        missing = isinstance(error, ModuleNotFoundError) and error.name
        why = f"{missing} is missing" if missing else " ".join(str(error).split())[:MAX_REASON]
        raise MissingExtraError(
            f"{package} cannot be imported ({why}); run: pip install 'calibrant[{extra}]'"
        ) from None


@contextmanager
def one_thread() -> Iterator[None]:
    """BLAS and OpenMP use one thread inside: sums are added in the same order everywhere, and workers do not compete.

    Enter it after the libraries are imported, since it acts on the pools that are loaded.
    """
    with _thread_pools().limit(limits=1):
        yield


@cache
def _thread_pools() -> Any:
    return library("threadpoolctl").ThreadpoolController()
