"""Verdicts on answers: what all benchmarks' have in common."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import Any


class LazyVerdict(Mapping[str, Any]):
    """A score under its keys that is made when it is first read, and what tables need to know of it before.

    counted: equal for scores of one benchmark that count the same in all columns, whatever their setting
    meaning: as in samples
    unread: why the response has no answer; empty if it has one
    """

    __slots__ = ("_made", "_make", "counted", "meaning", "unread")

    def __init__(
        self, make: Callable[[], dict[str, Any]], counted: Hashable, meaning: str | None, unread: str = ""
    ) -> None:
        self._make = make
        self._made: dict[str, Any] | None = None
        self.counted = counted
        self.meaning = meaning
        self.unread = unread

    @property
    def made(self) -> dict[str, Any]:
        if self._made is None:
            self._made = self._make()
        return self._made

    def __getitem__(self, key: str) -> Any:
        return self.made[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.made)

    def __len__(self) -> int:
        return len(self.made)

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return dict, (self.made,)  # elsewhere nobody can make it
