"""What bnlearn 4.9 and 5.2.1 compute where this project does something else: for comparison with them, not for use.

docs/structure_learning.md lists the differences and why they are taken for defects.
"""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt

import numpy as np
import numpy.typing as npt

from calibrant.baselines.structure_learning.graph import Constraints, Frame
from calibrant.baselines.structure_learning.scores import NetworkScore, SameCellPrior
from calibrant.baselines.structure_learning.search import (
    ArcStrengths,
    AveragedNetwork,
    CountedAs,
    Method,
    Resamples,
    is_undirected,
    learn_resampled,
    protected_arcs,
    quantile_at,
    resampled_interventions,
    significant_arcs,
    step_areas,
    strengths_of,
    without_cycles,
)
from tests.support.bnlearn.quicksort_order import quicksort_order

GOLDEN = (3 - sqrt(5)) / 2  # the smaller part of the golden section of 1
OPTIMIZE_TOLERANCE = 2.0**-13  # what R's optimize takes by default: the machine epsilon to the power 1/4


def bdj() -> NetworkScore:
    """BDJ with two imaginary rows for a root, although its two cells have half a row each."""
    return SameCellPrior(0.5, root_row=2.0)


def drifting_interventions(frame: Frame, resamples: Resamples) -> npt.NDArray[np.uint64]:
    """Which variables boot.strength takes for set in each resampled row, [replicates, rows] masks.

    Row k of a resample gets what stood at the position of its source row in the resample before; only the first
    replicate looks at the interventions themselves.
    """
    set_in = resampled_interventions(frame, resamples)
    previous = frame.clamped
    for replicate, rows in enumerate(resamples.rows):
        previous = set_in[replicate] = previous[rows]
    return set_in


def arc_strengths(
    frame: Frame,
    score: NetworkScore,
    constraints: Constraints,
    method: Method,
    resamples: Resamples,
    *,
    counted_as: CountedAs = CountedAs.CPDAG,
) -> ArcStrengths:
    """Arc strengths as of boot.strength: interventions drift from replicate to replicate."""
    clamped = drifting_interventions(frame, resamples)
    dags = learn_resampled(frame, score, constraints, method, resamples, clamped)
    return strengths_of(frame, dags, protected_arcs(frame, score, constraints, counted_as))


def inclusion_threshold(strengths: ArcStrengths) -> float:
    """Return the L1 rule with the minimum found numerically, within 1e-4 on either side of the exact one."""
    ordered = strengths.sorted_strengths()
    widths, heights = step_areas(ordered)

    def distance(share: float) -> float:
        return float(np.sum(widths * np.abs(heights - share)))

    share = minimum_by_brent(distance, 0.0, 1.0, OPTIMIZE_TOLERANCE)
    for end in (1.0, 0.0):
        if distance(end) < distance(share):
            share = end
    return quantile_at(ordered, share)


def averaged_network(strengths: ArcStrengths, *, threshold: float | None = None) -> AveragedNetwork:
    """Return the significant arcs, weakest first: the strongest arc of a cycle is the one that is refused.

    Arcs of equal strength are taken in the order in which R's quicksort leaves them.
    """
    chosen = significant_arcs(strengths, inclusion_threshold(strengths) if threshold is None else threshold)
    if is_undirected(chosen):
        return AveragedNetwork(tuple(chosen), ())
    weakest_first = quicksort_order([float(strengths.strength[arc]) for arc in chosen])
    return without_cycles(len(strengths.variables), (chosen[i] for i in weakest_first))


def minimum_by_brent(function: Callable[[float], float], low: float, high: float, tolerance: float) -> float:
    """Return a local minimum without derivatives: Brent 1973, Algorithms for Minimization, chapter 5, `localmin`.

    Golden section steps, and parabolas through the three lowest points where these are safe.
    """
    smallest = sqrt(np.finfo(np.float64).eps)
    lowest = second = third = low + GOLDEN * (high - low)
    at_lowest = at_second = at_third = function(lowest)
    step = before_last = 0.0
    while True:
        middle = (low + high) / 2
        least = smallest * abs(lowest) + tolerance / 3
        if abs(lowest - middle) <= 2 * least - (high - low) / 2:
            return lowest
        p = q = 0.0
        allowed = before_last
        if abs(before_last) > least:
            r = (lowest - second) * (at_lowest - at_third)
            q = (lowest - third) * (at_lowest - at_second)
            p = (lowest - third) * q - (lowest - second) * r
            q = 2 * (q - r)
            p, q = (-p, q) if q > 0 else (p, -q)
            before_last = step
        if abs(p) >= abs(q * allowed / 2) or p <= q * (low - lowest) or p >= q * (high - lowest):
            before_last = (high if lowest < middle else low) - lowest
            step = GOLDEN * before_last
        else:
            step = p / q
            if lowest + step - low < 2 * least or high - (lowest + step) < 2 * least:
                step = -least if lowest >= middle else least
        moved = step if abs(step) >= least else (least if step > 0 else -least)
        tried = lowest + moved
        at_tried = function(tried)
        if at_tried <= at_lowest:
            low, high = (low, lowest) if tried < lowest else (lowest, high)
            third, second, lowest = second, lowest, tried
            at_third, at_second, at_lowest = at_second, at_lowest, at_tried
        else:
            low, high = (tried, high) if tried < lowest else (low, tried)
            if at_tried <= at_second or second == lowest:
                third, second = second, tried
                at_third, at_second = at_second, at_tried
            elif at_tried <= at_third or third in (lowest, second):
                third, at_third = tried, at_tried
