"""The cyclic garbage collector, where looking through many objects again and again would free nothing."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def gc_paused() -> Iterator[None]:
    """Pause the collector, for code that allocates millions of long-lived objects."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@contextmanager
def rare_collections() -> Iterator[None]:
    """Raise the thresholds, for code that leaves no cyclic garbage but a heap that takes long to traverse."""
    before = gc.get_threshold()
    collect_rarely()
    try:
        yield
    finally:
        gc.set_threshold(*before)


def collect_rarely() -> None:
    """Raise the collector's thresholds for the rest of the process."""
    gc.set_threshold(100_000, 20, 100)
