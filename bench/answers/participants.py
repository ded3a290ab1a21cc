"""Means over participants with intervals that are clustered by participant and by item.

Both are drawn with replacement, and an answer counts as often as its participant times its item was drawn (the
pigeonhole bootstrap of A. B. Owen 2007, The Annals of Applied Statistics 1, 386).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from calibrant.bench.answers.intervals import FEWEST_PROBLEMS, LEVEL, Interval
from calibrant.bench.statistics import wilson

NUM_DRAWS = 4_000
SEED = 2026
Value: TypeAlias = tuple[str, str, float]  # participant, item, value


@dataclass(frozen=True)
class ClusteredMean:
    """A mean over participants, each the mean of their items.

    interval: 95 %; None with fewer than FEWEST_PROBLEMS participants
    with_items: whether items are drawn too; with fewer than FEWEST_PROBLEMS they are fixed
    """

    mean: float
    interval: Interval | None
    num_participants: int
    num_items: int

    @property
    def with_items(self) -> bool:
        return self.num_items >= FEWEST_PROBLEMS


def clustered_mean(values: Sequence[Value]) -> ClusteredMean:
    """Return the mean of one value for each participant and item; `ValueError` without any.

    A share of 0 or 1 in every answer gets Wilson's interval over participants or items, whichever are fewer: all
    answers of a participant, or to an item, may be one and the same.
    """
    if not values:
        raise ValueError("no values")
    people = {name: k for k, name in enumerate(sorted({value[0] for value in values}))}
    items = {name: k for k, name in enumerate(sorted({value[1] for value in values}))}
    table = np.full((len(people), len(items)), np.nan)
    for person, item, value in values:
        table[people[person], items[item]] = value
    present = ~np.isnan(table)
    filled = np.where(present, table, 0.0)
    mean = float((filled.sum(1) / present.sum(1)).mean())
    result = ClusteredMean(mean, None, len(people), len(items))
    if len(people) < FEWEST_PROBLEMS:
        return result
    if mean in (0.0, 1.0) and set(table[present]) <= {0.0, 1.0}:
        number = min(len(people), len(items)) if result.with_items else len(people)
        interval = Interval(*wilson(mean * number, number))
    else:
        interval = _bootstrap(filled, present.astype(np.float64), with_items=result.with_items)
    return ClusteredMean(mean, interval, len(people), len(items))


def _bootstrap(filled: np.ndarray, present: np.ndarray, *, with_items: bool) -> Interval:
    num_people, num_items = filled.shape
    generator = np.random.Generator(np.random.PCG64(SEED))
    drawn_people = generator.multinomial(num_people, np.full(num_people, 1 / num_people), size=NUM_DRAWS)
    if with_items:
        drawn_items = generator.multinomial(num_items, np.full(num_items, 1 / num_items), size=NUM_DRAWS)
    else:
        drawn_items = np.ones((NUM_DRAWS, num_items), dtype=np.int64)
    totals, counts = drawn_items @ filled.T, drawn_items @ present.T  # (draws, people)
    has_any = counts > 0  # a participant none of whose items was drawn is left out of that draw
    means = np.divide(totals, counts, out=np.zeros_like(totals), where=has_any)
    weights = drawn_people * has_any
    sizes = weights.sum(1)
    draws = (weights * means).sum(1)[sizes > 0] / sizes[sizes > 0]
    low, high = np.quantile(draws, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Interval(float(low), float(high))
