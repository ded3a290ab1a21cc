"""Fit is local: the weight vectors with which one node explains its own changes, whatever the other nodes do."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from calibrant.dsl.causalab.reference import Reading
from calibrant.solvers.causalab.evidence import LARGEST, Evidence, Floats

Integers: TypeAlias = npt.NDArray[np.int64]

MAX_WEIGHT = 3
PER_UNIT = 100  # readings are multiples of 0.01, so in hundredths everything is an integer
LOWEST_BASE, HIGHEST_BASE = 0, 100
FREQUENCY_BASE = (15, 25)
MAX_PARENTS = 7  # 4 ** 7 vectors a node


@lru_cache(maxsize=64)
def _vectors(nodes: int, candidates: int) -> Integers:
    """(vectors, nodes): every vector of weights 0 to 3 that is 0 outside the candidates (a mask)."""
    places = [i for i in range(nodes) if candidates >> i & 1]
    vectors = np.zeros(((MAX_WEIGHT + 1) ** len(places), nodes), dtype=np.int64)
    numbers = np.arange(len(vectors))
    for place in places:
        numbers, vectors[:, place] = np.divmod(numbers, MAX_WEIGHT + 1)
    vectors.flags.writeable = False
    return vectors


@dataclass(frozen=True)
class Local:
    """The weight vectors of one node that explain its readings.

    vectors: (vectors, nodes), integers 0 to 3; a parent is where the weight is not 0
    """

    node: int
    vectors: Integers

    @property
    def masks(self) -> Integers:
        """The parents of each vector, bit i for node i."""
        return np.asarray((self.vectors > 0) @ (1 << np.arange(self.vectors.shape[1])))

    def explaining(self, differences: Floats) -> Local:
        """Filter to the vectors for which the node's change is the weighted sum of the others', in every row."""
        hundredths = in_hundredths(differences)
        apart = self.vectors @ hundredths.T - hundredths[:, self.node]
        return Local(self.node, self.vectors[np.all(apart == 0, axis=1)])

    def bases(self, readings: Floats) -> Integers:
        """(vectors, readings): the node's base in each reading, in hundredths."""
        hundredths = in_hundredths(readings)
        return np.asarray(hundredths[:, self.node] - self.vectors @ hundredths.T)

    def where(self, keep: npt.NDArray[np.bool_]) -> Local:
        return Local(self.node, self.vectors[keep])


def in_hundredths(readings: Floats) -> Integers:
    """Readings, all within LARGEST, as integers."""
    return np.rint(readings * PER_UNIT).astype(np.int64)


def local(evidence: Evidence, node: int, *, bounded: bool, reactor: Floats | None = None) -> Local:
    """The vectors of a node that explain all its readings.

    bounded: whether bases that were drawn are known to be integers from 0 to 100, the frequency's from 15 to 25
    reactor: values of the reactor crystal as far as they are known, NaN elsewhere; None for what is shown
    """
    k, frequency = len(evidence.nodes), evidence.frequency
    candidates = (1 << k) - 1 & ~(1 << node)
    if not evidence.task.freq_parent:
        candidates &= ~(1 << frequency)
    local_space = Local(node, _vectors(k, candidates)).explaining(evidence.differences(node))
    if node == frequency:
        local_space = local_space.where(np.asarray(local_space.vectors.any(axis=1)))
        return _with_base_in(local_space, evidence.table[:1], FREQUENCY_BASE) if bounded else local_space
    if evidence.task.reading is Reading.BASE:
        local_space = _with_set_bases(local_space, evidence)
    return (
        _with_bounded_bases(local_space, evidence, evidence.reactor if reactor is None else reactor)
        if bounded
        else local_space
    )


def _with_set_bases(found: Local, evidence: Evidence) -> Local:
    """In the paper's reading a setting of the manipulator crystal states the base."""
    node = evidence.manipulator
    rows = [
        i
        for i, observation in enumerate(evidence.seen)
        if observation.changed == found.node and observation.crystal == node
    ]
    rows = [i for i in rows if np.abs(evidence.table[i]).max() <= LARGEST and abs(evidence.seen[i].setting) <= LARGEST]
    if not rows:
        return found
    stated = np.rint([round(evidence.seen[i].setting, 2) * PER_UNIT for i in rows])
    agrees: npt.NDArray[np.bool_] = np.all(found.bases(evidence.table[rows]) == stated[None, :], axis=1)
    return found.where(agrees)


def _with_bounded_bases(found: Local, evidence: Evidence, reactor: Floats) -> Local:
    """Bases as drawn: in the first readings of fresh crystals, and of the reactor crystal as far as it is known."""
    first = [
        next(i for i, observation in enumerate(evidence.seen) if observation.crystal == c)
        for c in sorted(evidence.fresh)
    ]
    found = _with_base_in(found, evidence.table[first], (LOWEST_BASE, HIGHEST_BASE))
    stated = ~np.isnan(reactor)
    if not stated[found.node]:
        return found
    seen_parents = ~np.any(found.vectors[:, ~stated] > 0, axis=1)
    row = np.nan_to_num(reactor)[None, :]
    inside = _base_in(found, row, (LOWEST_BASE, HIGHEST_BASE))
    return found.where(inside | ~seen_parents)


def _with_base_in(found: Local, readings: Floats, limits: tuple[int, int]) -> Local:
    return found.where(_base_in(found, readings, limits))


def _base_in(found: Local, readings: Floats, limits: tuple[int, int]) -> npt.NDArray[np.bool_]:
    """Return whether the base is an integer within limits in every reading."""
    bases = found.bases(readings)
    low, high = limits
    inside = (bases >= low * PER_UNIT) & (bases <= high * PER_UNIT) & (bases % PER_UNIT == 0)
    return np.asarray(np.all(inside, axis=1))
