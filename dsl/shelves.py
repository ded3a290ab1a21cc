"""What was made of texts, kept while there is room for it."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any, Generic, TypeVar
from weakref import WeakSet

V = TypeVar("V")


class Shelf(Generic[V]):
    """Values by the text that they were made of.

    made: what is there; read it, and add to it by `Store.put`
    older: what was there before room was made the last time; `Store.again` brings it back
    """

    __slots__ = ("__weakref__", "made", "older")

    def __init__(self) -> None:
        self.made: MutableMapping[str, V] = {}
        self.older: MutableMapping[str, V] = {}


class Store:
    """Room for a number of values on any number of shelves, and for as many older ones.

    When it is full all values become older ones, and those that were older are dropped: what is met again and again
    stays, and nobody has to know which value was used last.
    most: values, without older ones; longest: characters of a text, longer ones are made every time
    """

    def __init__(self, most: int, longest: int) -> None:
        self._most = most
        self._longest = longest
        self._number = 0
        self._shelves: WeakSet[Shelf[Any]] = WeakSet()

    def shelf(self) -> Shelf[Any]:
        """A new one."""
        made: Shelf[Any] = Shelf()
        self._shelves.add(made)
        return made

    def put(self, shelf: Shelf[V], text: str, value: V) -> None:
        if len(text) > self._longest:
            return
        if self._number >= self._most:
            for full in list(self._shelves):
                full.made, full.older = {}, full.made
            self._number = 0
        self._number += 1
        shelf.made[text] = value

    def again(self, shelf: Shelf[V], text: str) -> V | None:
        """An older value, which counts as new then; None if there is none."""
        value = shelf.older.get(text) if shelf.older else None
        if value is not None:
            self.put(shelf, text, value)
        return value

    def clear(self) -> None:
        """Empty all its shelves."""
        for shelf in list(self._shelves):
            shelf.made.clear()
            shelf.older.clear()
        self._number = 0
