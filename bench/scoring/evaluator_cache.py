"""The cache of values that are expensive to make of an item: evaluators, judges, exact counts."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

V = TypeVar("V")

MAX_EVALUATORS = 2_000  # a pool up to this size has each of its evaluators made once


class EvaluatorCache(Generic[V]):
    """Values by key, in the order of their last use; the least recently used are dropped.

    LRU: k samples of an item arrive one after another, and so does a batch of a trainer. The key of an item is the
    digest of its pool and its id, or, where it comes without a pool, the object itself. A copy in another process
    starts empty: what the values hold fills memory that the limits of that process do not count.
    """

    def __init__(self, max_entries: int | None = None) -> None:
        self._max_entries = MAX_EVALUATORS if max_entries is None else max_entries
        self._entries: OrderedDict[Hashable, tuple[object, V]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def __reduce__(self) -> tuple[object, ...]:
        return EvaluatorCache, (self._max_entries,)

    def get(self, key: Hashable, make: Callable[[], V], owner: object = None) -> V:
        """Return the value of a key, made if it is not cached.

        owner: an object that is kept alive with it
        """
        entry = self._entries.get(key)
        if entry is None:
            entry = self._entries[key] = owner, make()
            if len(self._entries) > self._max_entries:
                self._entries.popitem(last=False)
        try:  # noqa: SIM105  # `suppress` doubles the time of a hit
            self._entries.move_to_end(key)
        except KeyError:  # another thread has dropped it
            pass
        return entry[1]

    def get_for(self, item: object, make: Callable[[], V], options: Hashable = None) -> V:
        """Return the value of this very object with these options; no other object gets its id meanwhile."""
        return self.get((id(item), options), make, item)

    def clear(self) -> None:
        """Drop all values."""
        self._entries.clear()
