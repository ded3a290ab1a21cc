"""Masses under one known rate in doubles, many readings at a time: to choose worlds by, never to report."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

from calibrant.dsl.replayscm.extensions.extension import NoiseKind
from calibrant.solvers.replayscm._kernels_worlds import find_subsets
from calibrant.solvers.replayscm.noise._kernels_masses import count_patterns, log_masses
from calibrant.solvers.replayscm.noise.posterior import Posterior

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]
U64 = npt.NDArray[np.uint64]


class ApproximateMasses:
    """The evidence of a posterior without hidden variables as arrays; a shared grid is a list of rates."""

    def __init__(self, posterior: Posterior) -> None:
        """`ValueError` for hidden variables, or for an independent rate of each variable."""
        scm_class = posterior.scm_class
        if scm_class.hidden_parents or scm_class.noise.kind is NoiseKind.EACH:
            raise ValueError("masses in doubles are for a common rate and no hidden variables")
        self.posterior = posterior
        order = list(posterior.masks)
        self.variables: I64 = np.array(order, np.int64)
        listed = [np.array(posterior.masks[v], np.int64) for v in order]
        self.starts: I64 = np.cumsum([0, *map(len, listed)])
        self.masks: I64 = np.concatenate(listed)
        self.owners: I64 = np.repeat(self.variables, [len(masks) for masks in listed])
        self.below: I64 = np.zeros((len(self.masks), max(1, scm_class.max_parents)), np.int64)
        # sets come by size, not as numbers: bisection needs their order
        for masks, start in zip(listed, self.starts.tolist(), strict=False):
            find_subsets(masks, np.argsort(masks), self.below[start : start + len(masks)])
        self.inside: I64 = np.zeros(len(self.masks), np.int64)
        for position, v in enumerate(order):
            self.inside |= (self.masks >> v & 1) << position
        weights = np.array([float(weight) for weight in scm_class.parent_weights])
        self.prior: F64 = weights[np.bitwise_count(self.masks)]
        words = np.array([row.word for row in posterior.rows], np.uint64)
        targets = np.array([row.clamped for row in posterior.rows], np.uint64)
        self.counts = np.empty((len(self.masks), 2, 1 << scm_class.max_parents), np.int32)
        count_patterns(self.masks, self.owners, words, targets, self.counts)

    def log_masses(self, words: U64, targets: U64, spans: I64) -> F64:
        """[b] logarithm of the mass with the rows from spans[b] to spans[b + 1] - 1 as well."""
        grid = self.posterior.scm_class.noise.grid
        logs = np.empty((len(grid), len(spans) - 1))
        # the largest exponent is the number of rows: powers are tabulated once a rate
        longest = len(self.posterior.rows) + int(np.diff(spans).max(initial=0)) + 1
        for (rate, prior), row in zip(grid, logs, strict=True):
            powers = np.arange(longest, dtype=np.float64)
            # 0.0**0 is 1, so that rate 0 needs no case of its own
            flip: F64 = np.power(float(rate), powers)
            stay: F64 = np.power(float(1 - rate), powers)
            arrays = self.masks, self.starts, self.variables, self.below, self.inside, self.prior, self.counts
            log_masses(*arrays, flip, stay, words, targets, spans, row)
            row += np.log(float(prior))
        # rates of a grid differ by hundreds in logarithm: the largest is taken out before `exp`
        top = logs.max(axis=0)
        safe = np.where(np.isfinite(top), top, 0.0)
        with np.errstate(divide="ignore"):
            together: F64 = safe + np.log(np.exp(logs - safe).sum(axis=0))
        return together

    @cached_property
    def log_mass(self) -> float:
        """Return the logarithm of the mass of the evidence."""
        empty = np.empty(0, np.uint64)
        return float(self.log_masses(empty, empty, np.zeros(2, np.int64))[0])

    def log_probabilities(self, readings: Sequence[Sequence[tuple[int, int]]]) -> F64:
        """[b] logarithm of the probability of each reading, given as word and targets of its rows."""
        words = np.array([word for reading in readings for word, _ in reading], np.uint64)
        targets = np.array([target for reading in readings for _, target in reading], np.uint64)
        spans = np.cumsum([0, *map(len, readings)])
        return self.log_masses(words, targets, spans) - self.log_mass
