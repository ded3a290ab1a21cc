"""The R package bnlearn: its records, random numbers, order of sorting, and what else comes out as it does there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from math import sqrt
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from calibrant.baselines.structure_learning.constraints import Constraints, Dag, Frame, arc_constraints, frame_from_rows
from calibrant.baselines.structure_learning.scores import (
    LocalScores,
    NetworkScore,
    SameCellPrior,
    VariableSelection,
    aic,
    bde,
    bds,
    bic,
    k2,
    loglik,
    mbde,
)
from calibrant.baselines.structure_learning.search import (
    UNLIMITED,
    ArcStrengths,
    AveragedNetwork,
    CountedAs,
    HillClimbing,
    Method,
    Resamples,
    Tabu,
    learn_resampled,
    protected_arcs,
    quantile_at,
    resampled_interventions,
    significant_arcs,
    step_areas,
    strengths_of,
    without_cycles,
)
from tests.support.shared import matching, shared_records

# --- The default random numbers of R since 3.6: Mersenne twister seeded by set.seed, and sample() by rejection --------
# Written from the description of the generator (Matsumoto and Nishimura 1998) and of R's seeding, to draw the resamples
# that bnlearn drew.
STATE = 624


class RRandom:
    """set.seed(seed), then sample()."""

    def __init__(self, seed: int) -> None:
        for _ in range(50):
            seed = (69069 * seed + 1) % 2**32
        scrambled = []
        for _ in range(STATE + 1):
            seed = (69069 * seed + 1) % 2**32
            scrambled.append(seed)
        self._state = scrambled[1:]  # the first word is R's place in the state
        self._place = STATE

    def uniform(self) -> float:
        """In [0, 1), a multiple of 2**-32."""
        if self._place == STATE:
            self._twist()
        word = self._state[self._place]
        self._place += 1
        word ^= word >> 11
        word ^= word << 7 & 0x9D2C5680
        word ^= word << 15 & 0xEFC60000
        word ^= word >> 18
        return word * 2.3283064365386963e-10

    def below(self, count: int) -> int:
        """Return a number from 0 to count - 1: random bits, drawn again while they make too large a number."""
        num_bits = (count - 1).bit_length()
        while True:
            value = 0
            for _ in range(0, num_bits + 1, 16):
                value = 65536 * value + int(self.uniform() * 65536)
            value &= (1 << num_bits) - 1
            if value < count:
                return value

    def with_replacement(self, count: int) -> list[int]:
        """sample(count, count, replace = TRUE), from 0."""
        return [self.below(count) for _ in range(count)]

    def permutation(self, count: int) -> list[int]:
        """sample(count, count), from 0."""
        left, drawn = list(range(count)), []
        while left:
            place = self.below(len(left))
            drawn.append(left[place])
            last = left.pop()
            if place < len(left):
                left[place] = last
        return drawn

    def _twist(self) -> None:
        state = self._state
        for k in range(STATE):
            word = (state[k] & 0x80000000) | (state[(k + 1) % STATE] & 0x7FFFFFFF)
            state[k] = state[(k + 397) % STATE] ^ (word >> 1) ^ (0x9908B0DF if word & 1 else 0)
        self._place = 0


# --- The order in which R's quicksort leaves equal keys: for agreement with what is sorted by it, not for sorting -----
# Singleton 1969, Algorithm 347: An efficient algorithm for sorting with minimal storage (CACM 12-3), as in R's
# `R_qsort_I`: the pivot is the median of both ends and a place that wanders, and the shorter part waits for the longer.
SHORT = 10  # parts whose ends are so close are not divided any more, but for those at the beginning
START, TURN, UP, DOWN = 0.375, 0.5898437, 0.0390625, 0.21875  # where the wandering place is in a part, and its steps


def quicksort_order(keys: Sequence[float]) -> list[int]:
    """Positions of the keys from the smallest to the largest; equal ones as R's quicksort happens to leave them."""
    order = list(range(len(keys)))
    low, high, place = 0, len(keys) - 1, START
    whole, waiting = True, [(0, -1)]
    while waiting:
        if low > 0 and high - low <= SHORT:
            order[low : high + 1] = sorted(order[low : high + 1], key=keys.__getitem__)
            low, high = waiting.pop()
            continue
        if whole or high - low <= SHORT:
            whole = False
            if low >= high:
                low, high = waiting.pop()
                continue
            place += UP if place < TURN else -DOWN
        left, right = _divide(keys, order, low, high, low + int((high - low) * place))
        if right - low <= high - left:
            waiting.append((left, high))
            high = right
        else:
            waiting.append((low, right))
            low = left
    return order


def _divide(keys: Sequence[float], order: list[int], low: int, high: int, middle: int) -> tuple[int, int]:
    """Sort low, middle and high, then move what is below the middle's key to the left of what is above it.

    Returns where the right part begins and where the left part ends.
    """

    def swap_if_larger(i: int, j: int) -> None:
        if keys[order[i]] > keys[order[j]]:
            order[i], order[j] = order[j], order[i]

    swap_if_larger(low, middle)
    if keys[order[high]] < keys[order[middle]]:
        swap_if_larger(middle, high)
        swap_if_larger(low, middle)
    pivot = keys[order[middle]]
    left, right = low, high
    while True:
        right -= 1
        while keys[order[right]] > pivot:
            right -= 1
        left += 1
        while keys[order[left]] < pivot:
            left += 1
        if left > right:
            return left, right
        order[left], order[right] = order[right], order[left]


# --- What bnlearn 4.9 and 5.2.1 compute where this project does something else: for comparison with them, not for
# use
#
# docs/structure_learning.md lists the differences and why they are taken for defects.
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


def is_undirected(arcs: Iterable[tuple[int, int]]) -> bool:
    """Return whether every arc is there both ways."""
    listed = set(arcs)
    return all((j, i) in listed for i, j in listed)


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


# --- Records of the R package bnlearn, as values of this project: frames, constraints, scores, methods ----------------
Record: TypeAlias = dict[str, Any]

WITH_SAMPLE_SIZE = {"bde": bde, "mbde": mbde, "bds": bds}
WITHOUT = {"bdj": bdj, "k2": k2, "bic": bic, "aic": aic, "loglik": loglik}


@cache
def _all_records() -> tuple[Record, ...]:
    return tuple(shared_records("bnlearn_vectors.jsonl", part="bnlearn"))


def records(kind: str, **wanted: object) -> Iterator[Record]:
    """Return the records of a kind whose fields have the given values."""
    return matching(_all_records(), kind=kind, **wanted)


@cache
def _datasets() -> Mapping[str, Record]:
    return {record["id"]: record for record in records("dataset")}


def dataset_with(num_vars: int) -> str:
    """Return the id of the first data set of so many variables."""
    return next(name for name, record in _datasets().items() if len(record["nodes"]) == num_vars)


@cache
def frame_of(dataset: str) -> Frame:
    """Return the rows of a data set; the records count intervened rows from 1."""
    record = _datasets()[dataset]
    clamped = {variable: [row - 1 for row in rows] for variable, rows in record["exp"].items()}
    return frame_from_rows(record["nodes"], record["rows"], clamped)


def dag_of(dataset: str, tag: str) -> Dag:
    parents = next(dag["parents"] for dag in _datasets()[dataset]["score_dags"] if dag["tag"] == tag)
    return frame_of(dataset).dag(parents)


def constraints_of(record: Record) -> Constraints:
    """Of a search record: 'order+wl' means both lists."""
    listed = _datasets()[record["ds"]]["constraints"]
    lists = {name: [(u, v) for u, v in listed[name]] for name in record["constraint"].split("+") if name != "none"}
    whitelist = lists.pop("wl", [])
    blacklist = [arc for arcs in lists.values() for arc in arcs]
    return arc_constraints(
        frame_of(record["ds"]).variables, blacklist=blacklist, whitelist=whitelist, max_parents=record["maxp"]
    )


def score_named(name: str, iss: float | str | None, beta: float | None = None) -> NetworkScore:
    if name in WITH_SAMPLE_SIZE:
        score = WITH_SAMPLE_SIZE[name](1.0 if iss in ("default", None) else float(iss))
    else:
        score = WITHOUT[name]()
    return score if beta is None else VariableSelection(score, beta)


@cache
def scores_of(dataset: str, name: str, iss: float | str | None, beta: float | None = None) -> LocalScores:
    """Local scores of a data set; one cache for all the searches on it."""
    return LocalScores(frame_of(dataset), score_named(name, iss, beta))


def method_of(record: Record) -> Method:
    steps = record.get("max_iter") or UNLIMITED
    if record["algo"] == "hc":
        return HillClimbing(steps)
    return Tabu(record.get("tabu") or 10, steps)


def recorded_strengths(record: Record, variables: Sequence[str]) -> ArcStrengths:
    strength, direction = np.zeros((2, len(variables), len(variables)))
    for start, end, strong, pointing in record["strength"]:
        arc = variables.index(start), variables.index(end)
        strength[arc], direction[arc] = strong, pointing
    return ArcStrengths(tuple(variables), strength, direction)


def arcs_of(frame: Frame, dag: Dag) -> list[list[str]]:
    """[from, to] by name, sorted."""
    return sorted([u, child] for child, parents in zip(frame.variables, dag, strict=True) for u in frame.names(parents))
