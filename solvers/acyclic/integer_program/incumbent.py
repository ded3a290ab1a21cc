"""What is known between the criteria of an integer program: the best choice so far, sums and cuts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from time import monotonic
from typing import TypeAlias

from calibrant.solvers.acyclic.integer_program.cutting import Cluster
from calibrant.solvers.acyclic.least_cost import Mask
from calibrant.solvers.acyclic.maxsat import CRITERIA
from calibrant.solvers.acyclic.reduction import Part

Column: TypeAlias = tuple[int, Mask]
"""A variable and its parents within the part."""

Value: TypeAlias = Callable[[int, Mask], int]
"""What a column costs, by one criterion."""


class TimeLimitReached(Exception):  # noqa: N818 - no fault: the search returns its bound
    """Time ran out.

    at_least: no choice costs less, by the criterion
    """

    def __init__(self, at_least: int) -> None:
        super().__init__()
        self.at_least = at_least


class Incumbent:
    """The best choice so far, by all criteria.

    until: a time of the clock; settled: of each sum that is known what the columns add to it, and what it comes to
    cuts: clusters, as places among the variables, for the next tree to begin with
    """

    def __init__(self, part: Part, chosen: dict[int, Mask], until: float | None) -> None:
        self.part = part
        self.variables = sorted(part)
        self.chosen = chosen
        self.until = until
        self.settled: list[tuple[Value, int]] = []
        self.cuts: set[Cluster] = set()

    def meet(self, chosen: dict[int, Mask]) -> None:
        """A choice becomes the known one if it is better."""
        if self._key(chosen) < self._key(self.chosen):
            self.chosen = chosen

    def left(self) -> float | None:
        """Seconds."""
        return None if self.until is None else self.until - monotonic()

    def is_late(self) -> bool:
        left = self.left()
        return left is not None and left <= 0

    def _key(self, chosen: Mapping[int, Mask]) -> tuple[int, ...]:
        sums = (sum(by(self.part[v][parents].cost) for v, parents in chosen.items()) for by in CRITERIA)
        return (*sums, *(self.part[v][chosen[v]].mask for v in self.variables))
