"""Local fit: the weight vectors with which one node explains its own readings, independent of the other nodes.

Exhaustive over weights 0 to 3, 4**k vectors for k possible parents. Readings are multiples of 0.01, so that all tests
are exact in integers (hundredths).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from calibrant.dsl.causalab.reference import Reading
from calibrant.solvers.causalab.evidence import MAX_EXACT_READING, Evidence, Floats

Integers: TypeAlias = npt.NDArray[np.int64]

MAX_WEIGHT = 3
PER_UNIT = 100  # readings are multiples of 0.01, so in hundredths everything is an integer
LOWEST_BASE, HIGHEST_BASE = 0, 100
FREQUENCY_BASE = (15, 25)
MAX_PARENTS = 7  # 4**7 = 16,384 vectors a node


@lru_cache(maxsize=64)
def _vectors(nodes: int, candidates: int) -> Integers:
    """Return every vector of weights 0 to 3 that is 0 outside the candidates (a mask); shape (vectors, nodes)."""
    places = [i for i in range(nodes) if candidates >> i & 1]
    vectors = np.zeros(((MAX_WEIGHT + 1) ** len(places), nodes), dtype=np.int64)
    numbers = np.arange(len(vectors))
    for place in places:
        numbers, vectors[:, place] = np.divmod(numbers, MAX_WEIGHT + 1)
    vectors.flags.writeable = False
    return vectors


@dataclass(frozen=True)
class Local:
    """Weight vectors of one node that explain its readings.

    vectors: (vectors, nodes), integers 0 to 3; a parent is where the weight is not 0
    """

    node: int
    vectors: Integers

    @property
    def masks(self) -> Integers:
        """Parent set of each vector, bit i for node i."""
        return np.asarray((self.vectors > 0) @ (1 << np.arange(self.vectors.shape[1])))

    def filter_explaining(self, differences: Floats) -> Local:
        """Keep the vectors for which the node's change is the weighted sum of the others' changes, in every row."""
        hundredths = in_hundredths(differences)
        # readings to 1e10 are 1e12 hundredths, differences 2e12: 7 parents of weight 3 stay below 5e13, far from 2**63
        residuals = self.vectors @ hundredths.T - hundredths[:, self.node]
        return Local(self.node, self.vectors[np.all(residuals == 0, axis=1)])

    def bases(self, readings: Floats) -> Integers:
        """Return the node's base in each reading, in hundredths; shape (vectors, readings)."""
        hundredths = in_hundredths(readings)
        return np.asarray(hundredths[:, self.node] - self.vectors @ hundredths.T)

    def filter(self, keep: npt.NDArray[np.bool_]) -> Local:
        return Local(self.node, self.vectors[keep])


def in_hundredths(readings: Floats) -> Integers:
    """Convert readings, all within MAX_EXACT_READING, to integers."""
    return np.rint(readings * PER_UNIT).astype(np.int64)


def explain_node(evidence: Evidence, node: int, *, bounded: bool, reactor: Floats | None = None) -> Local:
    """Return the vectors of a node that explain all its readings.

    bounded: whether sampled bases are known to be integers from 0 to 100, the frequency's from 15 to 25
    reactor: known values of the reactor crystal, NaN elsewhere; None for the shown ones
    """
    k, frequency = len(evidence.nodes), evidence.frequency
    candidates = (1 << k) - 1 & ~(1 << node)
    if not evidence.task.freq_parent:
        candidates &= ~(1 << frequency)
    local_space = Local(node, _vectors(k, candidates)).filter_explaining(evidence.differences(node))
    if node == frequency:
        return _keep_bases_in(local_space, evidence.table[:1], FREQUENCY_BASE) if bounded else local_space
    if evidence.task.reading is Reading.BASE:
        local_space = _keep_stated_bases(local_space, evidence)
    return (
        _keep_bounded_bases(local_space, evidence, evidence.reactor if reactor is None else reactor)
        if bounded
        else local_space
    )


def _keep_stated_bases(local_space: Local, evidence: Evidence) -> Local:
    """Keep vectors that agree with settings of the manipulator crystal that state the base (the paper's reading)."""
    node = evidence.manipulator
    rows = [
        i
        for i, observation in enumerate(evidence.observations)
        if observation.changed == local_space.node and observation.crystal == node
    ]
    rows = [
        i
        for i in rows
        if np.abs(evidence.table[i]).max() <= MAX_EXACT_READING
        and abs(evidence.observations[i].setting) <= MAX_EXACT_READING
    ]
    if not rows:
        return local_space
    stated = np.rint([round(evidence.observations[i].setting, 2) * PER_UNIT for i in rows])
    agrees: npt.NDArray[np.bool_] = np.all(local_space.bases(evidence.table[rows]) == stated[None, :], axis=1)
    return local_space.filter(agrees)


def _keep_bounded_bases(local_space: Local, evidence: Evidence, reactor: Floats) -> Local:
    """Keep vectors whose bases are in range: in first readings of fresh crystals, and in the reactor crystal."""
    first = [
        next(i for i, observation in enumerate(evidence.observations) if observation.crystal == c)
        for c in sorted(evidence.fresh)
    ]
    local_space = _keep_bases_in(local_space, evidence.table[first], (LOWEST_BASE, HIGHEST_BASE))
    stated = ~np.isnan(reactor)
    if not stated[local_space.node]:
        return local_space
    # the base is known only if no parent is hidden; with a hidden parent the vector stays
    seen_parents = ~np.any(local_space.vectors[:, ~stated] > 0, axis=1)
    row = np.nan_to_num(reactor)[None, :]
    inside = _has_base_in(local_space, row, (LOWEST_BASE, HIGHEST_BASE))
    return local_space.filter(inside | ~seen_parents)


def _keep_bases_in(local_space: Local, readings: Floats, limits: tuple[int, int]) -> Local:
    return local_space.filter(_has_base_in(local_space, readings, limits))


def _has_base_in(local_space: Local, readings: Floats, limits: tuple[int, int]) -> npt.NDArray[np.bool_]:
    """Return whether the base is an integer within limits in every reading."""
    bases = local_space.bases(readings)
    low, high = limits
    inside = (bases >= low * PER_UNIT) & (bases <= high * PER_UNIT) & (bases % PER_UNIT == 0)
    return np.asarray(np.all(inside, axis=1))
