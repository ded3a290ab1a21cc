"""The noisy local weights as a score for structure learning: search, exact optimum and posteriors use it like mbde.

The score of parents S is the logarithm of prior x w(S): all functions that depend on exactly S, each by the
probability of the child's free cells under a known rate (solvers.replayscm.noise.local_weights). So the exact optimum
is the most probable graph of functional parents. Posteriors of baselines.structure_learning weight a graph by its
topological orders besides; exact ones are those of solvers.replayscm.noise.posterior.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import inf, log

import numpy as np

from calibrant.baselines.structure_learning.constraints import Constraints
from calibrant.baselines.structure_learning.frame import Frame, Mask
from calibrant.baselines.structure_learning.scores import CACHE_BITS, F64, LocalScores, mbde
from calibrant.dsl.replayscm.extensions.prior import Prior, parent_weights
from calibrant.solvers.replayscm.noise.local_weights import parent_masks, scaled_rate, set_weights
from calibrant.solvers.replayscm.noise.rows import EvidenceRow, variable_rows


class NoisyWeightScores(LocalScores):
    """Local scores of one frame under mechanism noise; sets of more than `max_parents` have none (minus infinity)."""

    def __init__(
        self, frame: Frame, rate: Fraction, *, roots: Mask = 0, max_parents: int = 4, prior: Prior = Prior.BY_PARENTS
    ) -> None:
        """roots: variables without a mechanism. `ValueError` for more than 12 variables or a rate that is no noise."""
        if frame.num_vars > CACHE_BITS:
            raise ValueError(f"{frame.num_vars} variables; noisy weights are tabulated for up to {CACHE_BITS}")
        if not 0 < rate < Fraction(1, 2):
            raise ValueError(f"a rate of {rate}; noisy weights need one between 0 and 1/2")
        super().__init__(frame, mbde())
        self._scores = _tabulate(frame, rate, roots, max_parents, prior)
        sets = np.arange(1 << frame.num_vars)
        self.scoring.keys[:, : len(sets)] = sets  # the cache holds every set, so kernels never compute another score
        self.scoring.values[:, : len(sets)] = self._scores

    def table(self, constraints: Constraints, listen: Callable[[int, int], None] = lambda done, total: None) -> F64:
        """Every local score that the constraints admit, [variables, 2**variables]; minus infinity elsewhere."""
        admitted = super().table(constraints, listen)
        scores: F64 = np.where(np.isfinite(admitted), self._scores, -inf)
        return scores


def _tabulate(frame: Frame, rate: Fraction, roots: Mask, max_parents: int, prior: Prior) -> F64:
    """[variables, 2**variables] logarithms of exact weights."""
    pairs = zip(frame.values.tolist(), frame.clamped.tolist(), strict=True)
    rows = [EvidenceRow(word, clamped) for word, clamped in pairs]
    priors = parent_weights(prior, frame.num_vars, max_parents)
    scores = np.full((frame.num_vars, 1 << frame.num_vars), -inf)
    scaled = scaled_rate(rate)
    for child in range(frame.num_vars):
        if roots >> child & 1:
            scores[child, 0] = 0.0
            continue
        evidence = variable_rows(rows, child)
        others = [v for v in range(frame.num_vars) if v != child]
        scale = evidence.num_cells * log(scaled.base)
        for mask, weight in set_weights(evidence, child, parent_masks(others, max_parents), scaled).items():
            share = priors[mask.bit_count()]
            if weight and share:
                scores[child, mask] = log(weight) - scale + log(share.numerator) - log(share.denominator)
    return scores
