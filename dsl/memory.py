"""Memory of large runs: a bounded cache of values derived from texts, and control of the cyclic collector."""

from __future__ import annotations

import atexit
import gc
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from functools import cache
from typing import Any, Generic, TypeVar
from weakref import WeakSet

# --- A bounded cache of values derived from texts, with two generations -----------------------------------------------
V = TypeVar("V")


class TextCache(Generic[V]):
    """Values by the text that they were derived from, in two generations.

    newer: the new generation; callers read it, and add to it by `CacheBudget.store`
    older: the generation before; `CacheBudget.promote` moves a value of it to the new one
    """

    __slots__ = ("__weakref__", "newer", "older")

    def __init__(self) -> None:
        self.newer: MutableMapping[str, V] = {}
        self.older: MutableMapping[str, V] = {}


class CacheBudget:
    """A limit on the total number of values in several caches; the older generation has at most as many.

    When the limit is reached, the new generation becomes the older one, and the older one is dropped. So frequent
    values stay, without a record of the last use of each.
    max_values: values in the new generation; max_chars: of a text, longer ones are not cached
    """

    def __init__(self, max_values: int, max_chars: int) -> None:
        self._max_values = max_values
        self._max_chars = max_chars
        self._num_newer = 0
        self._caches: WeakSet[TextCache[Any]] = WeakSet()

    def new_cache(self) -> TextCache[Any]:
        """Return a new, empty cache whose values count against this budget."""
        text_cache: TextCache[Any] = TextCache()
        self._caches.add(text_cache)
        return text_cache

    def store(self, text_cache: TextCache[V], text: str, value: V) -> None:
        """Add a value, unless its text is too long; a full budget makes all caches older first."""
        if len(text) > self._max_chars:
            return
        if self._num_newer >= self._max_values:
            for full in list(self._caches):
                full.newer, full.older = {}, full.newer
            self._num_newer = 0
        self._num_newer += 1
        text_cache.newer[text] = value

    def promote(self, text_cache: TextCache[V], text: str) -> V | None:
        """Return a value of the older generation and move it to the new one; None if the text is not in it."""
        value = text_cache.older.get(text) if text_cache.older else None
        if value is not None:
            self.store(text_cache, text, value)
        return value

    def clear(self) -> None:
        """Empty all caches of this budget."""
        for text_cache in list(self._caches):
            text_cache.newer.clear()
            text_cache.older.clear()
        self._num_newer = 0


# --- The cyclic garbage collector, while repeated traversals of many objects would free nothing -----------------------


@contextmanager
def gc_paused() -> Iterator[None]:
    """Pause the collector while code allocates millions of long-lived objects."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


# thresholds of the three generations; the first in container objects: a command on few items makes 170,000 to 230,000
# of them, of which 1 % are garbage
RARE_THRESHOLDS = 300_000, 20, 100


@contextmanager
def rare_collections() -> Iterator[None]:
    """Raise the thresholds for code without cyclic garbage and with a heap that takes long to traverse."""
    before = gc.get_threshold()
    gc.set_threshold(*RARE_THRESHOLDS)
    try:
        yield
    finally:
        gc.set_threshold(*before)


@cache
def collect_rarely() -> None:
    """Raise the thresholds for the rest of the process, and skip the collection at its end."""
    gc.set_threshold(*RARE_THRESHOLDS)
    atexit.register(gc.freeze)  # the last collection of all imported objects would take 0.2 s
