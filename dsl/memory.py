"""Memory of large runs: a bounded cache of values derived from texts, and the cyclic collector paused."""

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
    """Values by the text that they were derived from.

    made: what is there; read it, and add to it by `CacheBudget.store`
    older: what was there before room was made the last time; `CacheBudget.again` brings it back
    """

    __slots__ = ("__weakref__", "made", "older")

    def __init__(self) -> None:
        self.made: MutableMapping[str, V] = {}
        self.older: MutableMapping[str, V] = {}


class CacheBudget:
    """A limit on the number of values in any number of caches, and on as many of the older generation.

    When it is full all values become older ones, and those that were older are dropped: what is met again and again
    stays, and nobody has to know which value was used last.
    most: values, without older ones; longest: characters of a text, longer ones are made every time
    """

    def __init__(self, most: int, longest: int) -> None:
        self._most = most
        self._longest = longest
        self._number = 0
        self._shelves: WeakSet[TextCache[Any]] = WeakSet()

    def shelf(self) -> TextCache[Any]:
        """Return a new, empty cache that counts against this budget."""
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
        """Return a value of the older generation and move it to the new one; None if there is none."""
        value = shelf.older.get(text) if shelf.older else None
        if value is not None:
            self.store(shelf, text, value)
        return value

    def clear(self) -> None:
        """Empty all its shelves."""
        for shelf in list(self._shelves):
            shelf.made.clear()
            shelf.older.clear()
        self._number = 0


# --- The cyclic garbage collector, where looking through many objects again and again would free nothing --------------


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


# container objects: a command on few items makes 170,000 to 230,000 of them, of which 1 % are garbage
RARELY = 300_000, 20, 100


@contextmanager
def rare_collections() -> Iterator[None]:
    """Raise the thresholds, for code that leaves no cyclic garbage but a heap that takes long to traverse."""
    before = gc.get_threshold()
    gc.set_threshold(*RARELY)
    try:
        yield
    finally:
        gc.set_threshold(*before)


@cache
def collect_rarely() -> None:
    """Raise the collector's thresholds for the rest of the process, at whose end nothing is collected."""
    gc.set_threshold(*RARELY)
    atexit.register(gc.freeze)  # a last collection of all that was imported takes 0.2 s
