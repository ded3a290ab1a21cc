"""A fixed plan of tests: every single object, every pair, every triple."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from calibrant.dsl.blickets.rule import set_of

SIZES = (1, 2, 3)


class ExplorationScript:
    """Every single object, every pair, every triple, one after the other; the detector is cleared in between.

    size: of the group that is built at present
    """

    def __init__(self, n: int) -> None:
        self._n = n
        self._groups = _groups(n)
        self._group = next(self._groups)
        self._is_clearing = True

    @property
    def size(self) -> int:
        return self._group.bit_count()

    def next_toggle(self, present: int) -> int:
        """Return the object that is placed or removed next; after the last triple it begins again."""
        if present == self._group and not self._is_clearing:
            following = next(self._groups, 0)
            if not following:
                self._groups = _groups(self._n)
                following = next(self._groups)
            self._group = following
            self._is_clearing = True
        if self._is_clearing and present:
            return lowest(present)
        self._is_clearing = False
        return lowest(present & ~self._group or self._group & ~present)


def _groups(n: int) -> Iterator[int]:
    return (set_of(members) for size in SIZES for members in combinations(range(n), size))


def lowest(objects: int) -> int:
    """Return the lowest number in a set of objects; -1 if it is empty."""
    return (objects & -objects).bit_length() - 1
