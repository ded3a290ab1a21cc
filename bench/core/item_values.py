"""What is computed once for an item, kept by what it holds: items of a large file are made anew again and again."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

I = TypeVar("I")  # noqa: E741  # an item
V = TypeVar("V")

MAX_VALUES = 4_096
MAX_AT_HAND = 64  # items whose digest is known without computing it: answers to an item often follow each other


class ItemValues(Generic[I, V]):
    """A bounded cache with one value an item; the least recently used are dropped.

    digest: equal for items for which the value is the same
    """

    def __init__(self, digest: Callable[[I], bytes], compute: Callable[[I], V]) -> None:
        self._digest = digest
        self._compute = compute
        self._values: OrderedDict[bytes, V] = OrderedDict()
        self._at_hand: OrderedDict[int, tuple[I, bytes]] = OrderedDict()  # the item is kept, so that its id stays

    def __len__(self) -> int:
        return len(self._values)

    def value(self, item: I) -> V:
        """The item's value, computed if it is not kept."""
        key = self._key(item)
        if key not in self._values:
            self._values[key] = self._compute(item)
            if len(self._values) > MAX_VALUES:
                self._values.popitem(last=False)
        self._values.move_to_end(key)
        return self._values[key]

    def _key(self, item: I) -> bytes:
        if id(item) not in self._at_hand:
            self._at_hand[id(item)] = item, self._digest(item)
            if len(self._at_hand) > MAX_AT_HAND:
                self._at_hand.popitem(last=False)
        self._at_hand.move_to_end(id(item))
        return self._at_hand[id(item)][1]
