"""The cyclic garbage collector, where looking through many objects again and again would free nothing."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def no_collections() -> Iterator[None]:
    """Nothing is collected meanwhile: for what makes millions of objects that live on."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@contextmanager
def rare_collections() -> Iterator[None]:
    """For what leaves no cyclic garbage, such as verdicts, and keeps so much that to walk it takes long."""
    before = gc.get_threshold()
    collect_rarely()
    try:
        yield
    finally:
        gc.set_threshold(*before)


def collect_rarely() -> None:
    """From here on, in a process that does nothing else."""
    gc.set_threshold(100_000, 20, 100)
