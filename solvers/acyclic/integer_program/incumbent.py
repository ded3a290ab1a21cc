"""State shared by the criteria of an integer program: incumbent, fixed sums and cuts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from time import monotonic
from typing import TypeAlias

from calibrant.solvers.acyclic.integer_program.cutting import Cluster
from calibrant.solvers.acyclic.least_cost import Mask
from calibrant.solvers.acyclic.maxsat import CRITERIA
from calibrant.solvers.acyclic.reduction import Part

Column: TypeAlias = tuple[int, Mask]
"""Column of the program: a variable and its parents within the part."""

Value: TypeAlias = Callable[[int, Mask], int]
"""Objective: cost of a column by one criterion."""


class TimeLimitReached(Exception):  # noqa: N818 - no fault: the search returns its bound
    """Time ran out.

    at_least: proven lower bound by the criterion
    """

    def __init__(self, at_least: int) -> None:
        super().__init__()
        self.at_least = at_least


class Incumbent:
    """Best assignment so far, by all criteria lexicographically.

    until: deadline on the monotonic clock
    settled: objectives that are fixed to their optimum, and the optimum
    cuts: clusters, as positions of variables, with which the next tree begins
    """

    def __init__(self, part: Part, chosen: dict[int, Mask], until: float | None) -> None:
        self.part = part
        self.variables = sorted(part)
        self.chosen = chosen
        self.until = until
        self.settled: list[tuple[Value, int]] = []
        self.cuts: set[Cluster] = set()

    def update(self, chosen: dict[int, Mask]) -> None:
        """Replace the incumbent by an assignment that is better."""
        if self._key(chosen) < self._key(self.chosen):
            self.chosen = chosen

    def seconds_left(self) -> float | None:
        """Return the seconds before the deadline; None without one."""
        return None if self.until is None else self.until - monotonic()

    def is_late(self) -> bool:
        seconds = self.seconds_left()
        return seconds is not None and seconds <= 0

    def _key(self, chosen: Mapping[int, Mask]) -> tuple[int, ...]:
        sums = (sum(by(self.part[v][parents].cost) for v, parents in chosen.items()) for by in CRITERIA)
        return (*sums, *(self.part[v][chosen[v]].mask for v in self.variables))
