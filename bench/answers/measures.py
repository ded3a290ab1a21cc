"""How a benchmark's scores are read in tables: its columns, which of them go together, and which matter most."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from calibrant.bench.answers.columns import Column, Means
from calibrant.bench.answers.samples import Right, Sample


class LateScore(Mapping[str, Any]):
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


@dataclass(frozen=True)
class Measures:
    """What tables have to know of one benchmark.

    benchmark: its name
    views: columns by the name of a view; the first is what is shown when none is named
    first: keys of what is kept longest where the width is short
    verdict: (score, setting, means) -> what `Column.value` and `sample` are asked of
    sample: what counts of one of several answers
    rights: key, heading and criterion of what is counted over several answers
    unit: the id that items which are drawn together in a resampling share, from an item's id
    settings: beginnings of settings, in the order of rows
    """

    benchmark: str
    views: Mapping[str, Sequence[Column]]
    first: tuple[str, ...]
    verdict: Callable[[Mapping[str, Any], str, Means], Any]
    sample: Callable[[Any], Sample]
    rights: tuple[tuple[str, str, Right], ...]
    unit: Callable[[str], str]
    settings: tuple[str, ...]

    @property
    def columns(self) -> tuple[Column, ...]:
        """Those of all views, each once."""
        return tuple({column.key: column for view in self.views.values() for column in view}.values())

    @property
    def default_view(self) -> str:
        return next(iter(self.views))

    def place(self, setting: str) -> tuple[int, str]:
        """Sorts settings by their order."""
        found = max((len(start), -i) for i, start in enumerate(("", *self.settings)) if setting.startswith(start))
        return -found[1], setting
