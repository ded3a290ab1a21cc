"""Probability of a variable's values as a root: thresholds of units against levels of worlds (paper, B.2.2).

Every unit has one threshold, uniform on [0, 1), and every world a level of the root, uniform on five values and 0.5 in
a world without intervention; the root is 1 where the threshold lies below the level. Over the worlds that leave it
alone the sets of ones are a chain, and the probability of a chain is a sum over levels that never cross.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from math import fsum

from calibrant.dsl.replayscm.generation.strata import BASELINE_LEVEL, ENVIRONMENT_LEVELS
from calibrant.dsl.replayscm.item import Task
from calibrant.solvers.replayscm.roots import is_repeating

LEVELS = ENVIRONMENT_LEVELS
BASELINE = LEVELS.index(BASELINE_LEVEL)


def root_probability(task: Task, variable: str) -> float:
    """Probability of the variable's unclamped training values if it is a root; 0 where they are no chain.

    With units that are not shared every row is a draw of its own against its world's level. Worlds whose rows repeat
    are left out: published disambiguation worlds are built that way and do not follow the thresholds.
    """
    worlds = [world for world in task.training.worlds if not is_repeating(world)]
    free = [world for world in worlds if variable not in world.intervention.targets]
    if not task.shares_units or len({world.units for world in free}) > 1:
        modes = [world.intervention.mode == "none" for world in free]
        ones = [world.column(variable).bit_count() for world in free]
        return _independent_probability(
            [(n, world.num_rows, mode) for n, world, mode in zip(ones, free, modes, strict=True)]
        )
    counts: Counter[tuple[int, bool]] = Counter(
        (world.column(variable), world.intervention.mode == "none") for world in free
    )
    chain = sorted({column for column, _ in counts}, key=lambda column: (column.bit_count(), column))
    if any(small & ~large for small, large in pairwise(chain)):
        return 0.0
    return _chain_probability([(c, counts[c, True], counts[c, False]) for c in chain], free[0].num_rows if free else 0)


def _chain_probability(chain: list[tuple[int, int, int]], num_rows: int) -> float:
    """chain: ascending sets of ones, with the number of worlds at the baseline and at drawn levels that show each.

    A group's levels lie between its lowest and its highest; units that enter the chain between two groups have
    thresholds between the highest of the one and the lowest of the next.
    """
    reached = {-1: 1.0}  # highest level so far -> probability; -1: none, thresholds from 0
    present = 0
    for column, baseline, num_others in chain:
        entering = column.bit_count() - present
        present = column.bit_count()
        after: dict[int, float] = {}
        for before, probability in reached.items():
            start = 0.0 if before < 0 else LEVELS[before]
            for low in range(before if entering == 0 and before >= 0 else before + 1, len(LEVELS)):
                for high in range(low, len(LEVELS)):
                    ways = _assignments(low, high, baseline, num_others)
                    if ways:
                        gained = probability * (LEVELS[low] - start) ** entering * ways
                        after[high] = after.get(high, 0.0) + gained
        reached = after
    return fsum(p * (1.0 - (LEVELS[top] if top >= 0 else 0.0)) ** (num_rows - present) for top, p in reached.items())


def _assignments(low: int, high: int, baseline: int, others: int) -> float:
    """Probability that a group's levels have exactly that lowest and that highest one."""

    def inside(a: int, b: int) -> float:
        if a > b or (baseline and not a <= BASELINE <= b):
            return 0.0
        return float(((b - a + 1) / len(LEVELS)) ** others)

    if low == high:
        return inside(low, high)
    return inside(low, high) - inside(low + 1, high) - inside(low, high - 1) + inside(low + 1, high - 1)


def _independent_probability(columns: Sequence[tuple[int, int, bool]]) -> float:
    """columns: ones and rows of each world, and whether it is a baseline world."""
    probability = 1.0
    for ones, rows, baseline in columns:
        levels = (LEVELS[BASELINE],) if baseline else LEVELS
        probability *= fsum(p**ones * (1 - p) ** (rows - ones) for p in levels) / len(levels)
    return probability
