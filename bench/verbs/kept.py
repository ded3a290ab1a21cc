"""What is made of an item once and kept while it is asked for."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from contextlib import suppress
from typing import Generic, TypeVar

V = TypeVar("V")

MAX_KEPT = 1024  # because k samples of one item come one after another, and so does a batch of a trainer


class Kept(Generic[V]):
    """Values by the identity of an object and by options; the longest unused are dropped.

    A value is kept with its object, so that no other object gets that id meanwhile.
    """

    def __init__(self) -> None:
        self._values: OrderedDict[tuple[int, Hashable], tuple[object, V]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._values)

    def get(self, made_of: object, make: Callable[[], V], options: Hashable = None) -> V:
        """The value that was made of this very object with these options, or a new one."""
        key = id(made_of), options
        found = self._values.get(key)
        if found is None:
            found = self._values[key] = made_of, make()
            if len(self._values) > MAX_KEPT:
                self._values.popitem(last=False)
        with suppress(KeyError):  # another thread has dropped it
            self._values.move_to_end(key)
        return found[1]
