"""Suites of a benchmark: named sources of as many items as are asked for."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, Generic, TypeVar

from calibrant.dsl.errors import CalibrantError, short_repr
from calibrant.dsl.item import Item
from calibrant.dsl.text import known_names

I = TypeVar("I", bound=Item[Any, Any])  # noqa: E741  # an item


class Drawable(ABC, Generic[I]):
    """Suites from which items are drawn; the same arguments give the same items."""

    @property
    @abstractmethod
    def names(self) -> Sequence[str]:
        """The names of the suites, the usual one first."""

    @abstractmethod
    def draw(self, suites: Sequence[str], seed: int, count: int) -> Sequence[I]:
        """Draw so many items of each suite."""

    def draw_part(self, suite: str, seed: int, places: range) -> Sequence[I]:
        """Return the items of a suite at these places, in order."""
        return self.draw((suite,), seed, places.stop)[places.start :]

    def iterate_part(self, suite: str, seed: int, places: range) -> Iterator[I]:
        """Yield the items of `draw_part`, each once it is drawn where a suite is a sequence."""
        return iter(self.draw_part(suite, seed, places))

    def parts(self, count: int) -> Sequence[range]:
        """Split so many items of a suite into parts that are little more work apart than together."""
        return (range(count),)

    def check_name(self, name: str | None) -> str:
        """Return the suite of that name, by default the first; `CalibrantError` says which there are."""
        if name is not None and name not in self.names:
            raise CalibrantError(f"unknown suite {short_repr(name)}; {known_names(name, self.names)}")
        return self.names[0] if name is None else name
