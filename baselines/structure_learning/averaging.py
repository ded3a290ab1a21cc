"""Arc strengths, and the network that is made of the strong ones.

The rule for what is strong is that of Scutari and Nagarajan 2013 (Identifying significant edges in graphical models of
molecular networks): the strengths of a perfectly certain structure are all 0 or 1, so take the share p of zeros for
which such a step function is closest to the observed distribution of strengths, in L1.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

F64 = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class ArcStrengths:
    """Confidence in each arc and in its direction.

    variables: names, in column order
    strength: [v, v] probability that two variables are adjacent; symmetric, 0 on the diagonal
    direction: [v, v] probability that the arc goes from the row's to the column's variable if there is one
    """

    variables: tuple[str, ...]
    strength: F64
    direction: F64

    def frequency(self) -> F64:
        """[v, v] probability of the arc from the row's to the column's variable."""
        return self.strength * self.direction

    def sorted_strengths(self) -> F64:
        """Return the strengths of all ordered pairs, ascending; every pair of variables is there twice."""
        pairs = ~np.eye(len(self.variables), dtype=np.bool_)
        return np.sort(self.strength[pairs])


class AveragedNetwork(NamedTuple):
    """arcs: (from, to) as indices, both ways where the direction is undecided; refused: strong but closed a cycle."""

    arcs: tuple[tuple[int, int], ...]
    refused: tuple[tuple[int, int], ...]


def strengths_from_frequencies(variables: tuple[str, ...], frequency: F64) -> ArcStrengths:
    """From the probability of each arc, [from, to]."""
    strength = frequency + frequency.T
    direction = np.divide(frequency, strength, out=np.zeros_like(frequency), where=strength > 0)
    return ArcStrengths(variables, strength, direction)


def step_areas(strengths: F64) -> tuple[F64, F64]:
    """Return the distribution function F of sorted strengths as steps between 0 and 1: widths and heights."""
    points = np.unique(np.concatenate(([0.0], strengths, [1.0])))
    heights = np.searchsorted(strengths, points[:-1], side="right") / len(strengths)
    return np.diff(points), heights


def quantile_at(strengths: F64, share: float) -> float:
    """Return the strength below or at which a share of the sorted strengths lies (a type 1 quantile)."""
    place = len(strengths) * share
    nearest = round(place)
    rank = nearest if abs(place - nearest) < 1e-9 else ceil(place)
    return float(strengths[max(rank, 1) - 1])


def inclusion_threshold(strengths: ArcStrengths) -> float:
    """Return the strength above which an arc is significant: the exact minimum of the L1 distance.

    The distance is least at the median of F over the unit interval; where an interval of values is optimal the lowest
    is taken, which includes most arcs.
    """
    ordered = strengths.sorted_strengths()
    if not len(ordered):
        return 0.0
    widths, heights = step_areas(ordered)
    by_height = np.argsort(heights, kind="stable")
    covered = np.cumsum(widths[by_height])
    return quantile_at(ordered, float(heights[by_height][np.searchsorted(covered, covered[-1] / 2 - 1e-12)]))


def averaged_network(strengths: ArcStrengths, *, threshold: float | None = None) -> AveragedNetwork:
    """Return the significant arcs in their likelier direction, strongest first, without those that would close a cycle.

    An arc of strength 1 is always significant. Equally strong arcs are taken by column order. An undecided arc stays
    undirected unless one of its directions closes a cycle.
    """
    chosen = significant_arcs(strengths, inclusion_threshold(strengths) if threshold is None else threshold)
    return without_cycles(len(strengths.variables), sorted(chosen, key=lambda arc: -strengths.strength[arc]))


def significant_arcs(strengths: ArcStrengths, threshold: float) -> list[tuple[int, int]]:
    """Arcs stronger than the threshold that point at least as likely this way as the other, by column order."""
    is_strong = (strengths.strength > threshold) | (strengths.strength >= 1)
    chosen = is_strong & (strengths.direction >= 0.5)
    return [(int(i), int(j)) for i, j in np.argwhere(chosen)]


def without_cycles(num_vars: int, arcs: Iterable[tuple[int, int]]) -> AveragedNetwork:
    """Add arcs one by one; an arc is refused if it closes a cycle with others than its own reverse."""
    parents = [0] * num_vars
    accepted, refused = [], []
    for i, j in arcs:
        if _leads(parents, j, i):
            refused.append((i, j))
        else:
            parents[j] |= 1 << i
            accepted.append((i, j))
    return AveragedNetwork(tuple(sorted(accepted)), tuple(refused))


def _leads(parents: list[int], start: int, end: int) -> bool:
    """Return whether a directed path of at least two arcs leads from `start` to `end`."""
    visited = 1 << end
    frontier = parents[end] & ~(1 << start)
    while frontier:
        visited |= frontier
        reached = 0
        for v in range(len(parents)):
            if frontier >> v & 1:
                reached |= parents[v]
        if reached >> start & 1:
            return True
        frontier = reached & ~visited
    return False


def is_undirected(arcs: Iterable[tuple[int, int]]) -> bool:
    """Return whether every arc is there both ways."""
    listed = set(arcs)
    return all((j, i) in listed for i, j in listed)
