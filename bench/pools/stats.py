"""Statistics of a pool, per stratum."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from calibrant.bench.core.benchmark import Benchmark
from calibrant.bench.core.capabilities import STATISTICS
from calibrant.bench.core.items import Statistic
from calibrant.bench.core.metrics import UNDEFINED
from calibrant.dsl.item import Item


@dataclass(frozen=True)
class PoolStats:
    """One setting and stratum of a pool.

    figures: by column; ranges, spreads and counts as JSON has them
    """

    pool: str
    setting: str
    stratum: str
    figures: Mapping[str, Statistic]

    def to_dict(self) -> dict[str, Any]:
        """Numbers as numbers, null for what is undefined."""
        return {"pool": self.pool, "setting": self.setting, "stratum": self.stratum or None, **self.figures}

    def cells(self) -> dict[str, str]:
        """Return every value as it is printed."""
        labels = {"pool": self.pool, "setting": self.setting, "stratum": self.stratum or UNDEFINED}
        return labels | {key: _text(figure) for key, figure in self.figures.items()}


def pool_stats(name: str, items: Iterable[Item[Any, Any]], benchmark: Benchmark[Any]) -> list[PoolStats]:
    """Return one for each setting and suite, in order of appearance. Items are met once, and none is kept."""
    statistics = benchmark.require(STATISTICS)
    columns = statistics.columns
    groups: dict[tuple[str, str], dict[str, list[Any]]] = {}
    for item in items:
        key = item.setting, statistics.group(item)
        values = groups.get(key) or groups.setdefault(key, {column: [] for column in columns})
        for column, statistic in columns.items():
            values[column].extend(statistic.values(item))
    return [
        PoolStats(
            name, setting, suite, {column: statistic.summary(values[column]) for column, statistic in columns.items()}
        )
        for (setting, suite), values in groups.items()
    ]


def _text(figure: Statistic) -> str:
    """Return a range as 8-11, a spread as 3/7/12, counts as `parents:mechanisms`."""
    match figure:
        case None:
            return UNDEFINED
        case [low, high]:
            return str(low) if low == high else f"{low}-{high}"
        case {"least": least, "median": middle, "greatest": greatest}:
            return "/".join((_number(least), f"{middle:g}", _number(greatest)))
        case dict():
            return " ".join(f"{name}:{number}" for name, number in figure.items())
        case float():
            return f"{figure:.3f}"
        case _:
            return str(figure)


def _number(number: float) -> str:
    return str(number) if isinstance(number, int) else f"{number:g}"
