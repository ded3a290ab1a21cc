"""Version space of graded detectors: one rule, and readings that state the number of blickets while active."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from calibrant.dsl.blickets.reference import ACTIVE, INACTIVE, graded_level
from calibrant.dsl.blickets.rule import all_rules, set_of
from calibrant.solvers.blickets.static import OneRule
from calibrant.solvers.blickets.weights import Weights, as_weights, spread


@cache
def by_level(n: int) -> tuple[Mapping[int, int], ...]:
    """Return, for every set of objects as an integer, the rules that read each level, as bit sets; 0 is INACTIVE."""
    table: list[dict[int, int]] = []
    for present in range(1 << n):
        levels: dict[int, int] = {}
        for k, rule in enumerate(all_rules(n)):
            level = (rule.blickets & present).bit_count() if rule.active(present) else 0
            levels[level] = levels.get(level, 0) | 1 << k
        table.append(dict(sorted(levels.items())))
    return tuple(table)


@cache
def level_tensor(n: int) -> Weights:
    """Return 1 where a rule reads a level, else 0; shape (levels, rules, sets)."""
    size = len(all_rules(n))
    table = np.zeros((n + 1, size, 1 << n))
    for present, levels in enumerate(by_level(n)):
        for level, bits in levels.items():
            table[level, :, present] = as_weights(bits, size)
    return table


@dataclass(frozen=True, slots=True, repr=False)
class GradedSpace(OneRule):
    """Rules over n objects that give every graded reading."""

    @property
    def in_words(self) -> str:
        return (
            f"one rule throughout, conjunctive or disjunctive over a non-empty set of {self.n} objects, on a detector "
            "that tells how many blickets are on it while it is active"
        )

    def after(self, experiment: tuple[int, ...], reading: str) -> GradedSpace:
        fitting = by_level(self.n)[set_of(experiment)].get(graded_level(reading), 0)
        return replace(self, bits=self.bits & fitting)

    def outcomes(self, experiment: tuple[int, ...]) -> Mapping[str, int]:
        levels = by_level(self.n)[set_of(experiment)]
        counts = {level: (self.bits & fitting).bit_count() for level, fitting in levels.items()}
        # an active detector has at least one blicket on it: level 0 is INACTIVE and nothing else
        return {f"{ACTIVE} {level}" if level else INACTIVE: k for level, k in counts.items() if k}

    def information(self) -> Weights:
        """Return the entropy of the reading, which is its information since the rule determines it."""
        weights = as_weights(self.bits, len(all_rules(self.n)))
        counts = np.einsum("r,lrs->ls", weights, level_tensor(self.n))
        return spread(counts / max(1, self.count))
