"""What is counted for one row of a table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from statistics import median
from typing import Any, NamedTuple

from calibrant.bench.core.metrics import Metric
from calibrant.bench.core.rates import OUTCOMES, SUPPRESSED, UNDEFINED, rate_text, weighted_mean
from calibrant.bench.core.samples import Item, SampleList

Values = tuple[float | None, ...]  # of every column


@dataclass
class Tally:
    """What has been collected for one row. answers: of each item, what each sample counts in every column"""

    config: Mapping[str, Any]
    columns: tuple[Metric, ...]
    pools: dict[str, tuple[str, int]] = field(default_factory=dict)
    answers: dict[Item, list[Values]] = field(default_factory=dict)
    samples: dict[Item, SampleList] = field(default_factory=dict)
    outcomes: Counter[str] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)

    @property
    def num_items(self) -> int:
        return len(self.answers)

    @property
    def num_answers(self) -> int:
        return sum(map(len, self.answers.values()))

    @property
    def num_expected(self) -> int:
        """Return how many instances its pools have."""
        return sum(size for _, size in self.pools.values())

    @cached_property
    def rates(self) -> dict[str, Rate]:
        """Every column's mean over the items, each of which weighs the same however often it was answered."""
        values: list[dict[float, Fraction | int]] = [{} for _ in self.columns]
        items = [0] * len(self.columns)
        for answers in self.answers.values():
            weight = Fraction(1, len(answers)) if len(answers) > 1 else 1
            different = Counter(map(id, answers))  # equal ones are mostly one and the same
            of = {id(answer): answer for answer in answers}
            for place in range(len(self.columns)):
                known = [(of[key][place], times) for key, times in different.items()]
                known = [(value, times) for value, times in known if value is not None]
                items[place] += bool(known)
                for value, times in known:
                    assert value is not None
                    values[place][value] = values[place].get(value, 0) + weight * times
        return {
            column.key: Rate.of(column, found, number)
            for column, found, number in zip(self.columns, values, items, strict=True)
        }

    def cells(self) -> dict[str, str]:
        made = {key: rate.text for key, rate in self.rates.items()}
        if self.num_structured is not None:
            made["structure_scored"] = str(self.num_structured)
        made |= {name: str(self.outcomes[name]) if self.outcomes else UNDEFINED for name in OUTCOMES}
        made["seconds_median"] = f"{median(self.seconds):.4f}" if self.seconds else UNDEFINED
        made["seconds_max"] = f"{max(self.seconds):.4f}" if self.seconds else UNDEFINED
        return made

    def figures(self) -> dict[str, Any]:
        """The same as numbers; null where a rate is undefined or suppressed, and which are suppressed."""
        made: dict[str, Any] = {key: rate.value for key, rate in self.rates.items()}
        if self.num_structured is not None:
            made["structure_scored"] = self.num_structured
        made |= {name: self.outcomes[name] if self.outcomes else None for name in OUTCOMES}
        made["seconds_median"] = median(self.seconds) if self.seconds else None
        made["seconds_max"] = max(self.seconds, default=None)
        made["suppressed"] = [key for key, rate in self.rates.items() if rate.text == SUPPRESSED]
        return made

    @property
    def num_structured(self) -> int | None:
        """Return how many answers have structure metrics; None where the benchmark has none."""
        place = next((i for i, column in enumerate(self.columns) if column.key == "parent_f1"), None)
        if place is None:
            return None
        return sum(values[place] is not None for answers in self.answers.values() for values in answers)

    @property
    def num_samples(self) -> str:
        """Return how many samples the items have: undefined if it is one of each."""
        sizes = {len(answers) for answers in self.answers.values()}
        low, high = min(sizes, default=1), max(sizes, default=1)
        return UNDEFINED if high == 1 else str(low) if low == high else f"{low}-{high}"


class Rate(NamedTuple):
    """value: None where it is undefined or suppressed; text: as tables print it"""

    value: float | None
    text: str

    @classmethod
    def of(cls, column: Metric, values: Mapping[float, int | Fraction], num_items: int) -> Rate:
        text = rate_text(values, conditional=column.conditional, decimals=column.decimals, num_items=num_items)
        return cls(None if text in (UNDEFINED, SUPPRESSED) else weighted_mean(values), text)
