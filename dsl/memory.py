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

    made: the new generation; callers read it, and add to it by `CacheBudget.store`
    older: the generation before; `CacheBudget.again` moves a value of it to the new one
    """

    __slots__ = ("__weakref__", "made", "older")

    def __init__(self) -> None:
        self.made: MutableMapping[str, V] = {}
        self.older: MutableMapping[str, V] = {}


class CacheBudget:
    """A limit on the total number of values in several caches; the older generation has at most as many.

    When the limit is reached, the new generation becomes the older one, and the older one is dropped. So frequent
    values stay, without a record of the last use of each.
    most: maximal number of values in the new generation; longest: characters of a text, longer texts are not cached
    """

    def __init__(self, most: int, longest: int) -> None:
        self._most = most
        self._longest = longest
        self._number = 0
        self._shelves: WeakSet[TextCache[Any]] = WeakSet()

    def shelf(self) -> TextCache[Any]:
        """Return a new, empty cache whose values count against this budget."""
        cache: TextCache[Any] = TextCache()
        self._shelves.add(cache)
        return cache

    def store(self, shelf: TextCache[V], text: str, value: V) -> None:
        if len(text) > self._longest:
            return
        if self._number >= self._most:
            for full in list(self._shelves):
                full.made, full.older = {}, full.made
            self._number = 0
        self._number += 1
        shelf.made[text] = value

    def again(self, shelf: TextCache[V], text: str) -> V | None:
        """Return a value of the older generation and move it to the new one; None if the text is not in it."""
        value = shelf.older.get(text) if shelf.older else None
        if value is not None:
            self.store(shelf, text, value)
        return value

    def clear(self) -> None:
        """Empty all caches of this budget."""
        for shelf in list(self._shelves):
            shelf.made.clear()
            shelf.older.clear()
        self._number = 0


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


# container objects: a command on few items makes 170,000 to 230,000 of them, of which 1 % are garbage
RARELY = 300_000, 20, 100


@contextmanager
def rare_collections() -> Iterator[None]:
    """Raise the thresholds for code without cyclic garbage and with a heap that takes long to traverse."""
    before = gc.get_threshold()
    gc.set_threshold(*RARELY)
    try:
        yield
    finally:
        gc.set_threshold(*before)


@cache
def collect_rarely() -> None:
    """Raise the thresholds for the rest of the process, and skip the collection at its end."""
    gc.set_threshold(*RARELY)
    atexit.register(gc.freeze)  # the last collection of all imported objects would take 0.2 s
