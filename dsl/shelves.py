"""What was made of texts, kept while there is room for it."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any, Generic, TypeVar
from weakref import WeakSet

V = TypeVar("V")


class Shelf(Generic[V]):
    """Values by the text that they were made of. made: what is there; read it, and add to it by `Store.put`"""

    __slots__ = ("__weakref__", "made")

    def __init__(self) -> None:
        self.made: MutableMapping[str, V] = {}


class Store:
    """Room for a number of values on any number of shelves; when it is full all of them are cleared.

    That is cheaper than to know which were used last, and what is met again soon is soon there again.
    most: values; longest: characters of a text, longer ones are made every time
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
            self.clear()
        self._number += 1
        shelf.made[text] = value

    def clear(self) -> None:
        """Empty all its shelves."""
        for shelf in list(self._shelves):
            shelf.made.clear()
        self._number = 0
