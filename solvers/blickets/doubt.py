"""Mixture of two spaces: one rule, on a reliable or an unreliable detector.

Both families have prior 1/2, uniform over their members. Until a reading contradicts every single rule the reliable
family has most of the posterior, so that answers come sooner, and are right less often, than under `NoiseSpace` on a
detector that is known to be unreliable.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from calibrant.dsl.blickets.rule import Rule, all_rules
from calibrant.solvers.blickets.geometry import Sets
from calibrant.solvers.blickets.noise import RELIABILITIES, NoiseSpace
from calibrant.solvers.blickets.static import StaticSpace, activation_matrix
from calibrant.solvers.blickets.weights import Weights, as_weights, information
from calibrant.solvers.space import space_repr


@dataclass(frozen=True, slots=True, repr=False)
class DoubtSpace:
    """Both spaces after the same readings."""

    static: StaticSpace
    noise: NoiseSpace

    @staticmethod
    def full(n: int) -> DoubtSpace:
        """Return the space before any reading."""
        return DoubtSpace(StaticSpace.full(n), NoiseSpace.full(n))

    __repr__ = space_repr

    @property
    def in_words(self) -> str:
        return f"{self.static.in_words}; or {self.noise.in_words}"

    @property
    def geometry(self) -> Sets:
        return self.static.geometry

    @property
    def count(self) -> int:
        return self.static.count + self.noise.count

    def after(self, experiment: tuple[int, ...], reading: str) -> DoubtSpace:
        return DoubtSpace(self.static.after(experiment, reading), self.noise.after(experiment, reading))

    def posterior(self) -> Mapping[Rule, float]:
        masses = self._reliable() + self.noise.masses() * self._scale()
        total = masses.sum()
        return {rule: float(masses[k] / total) for k, rule in enumerate(all_rules(self.static.n)) if masses[k] > 0}

    def information(self) -> Weights:
        reliable, scale = self._reliable(), self._scale()
        heard = reliable + self.noise.heard_masses() * scale
        active = heard[:, None] * activation_matrix(self.static.n)
        return information(reliable + self.noise.masses() * scale, active)

    def _reliable(self) -> Weights:
        """Return the likelihood of each rule without noise: 1 or 0."""
        return as_weights(self.static.bits, len(all_rules(self.static.n)))

    def _scale(self) -> float:
        """Return the factor that makes noisy likelihoods comparable; any will do once no reliable member remains."""
        # / 5 levels: each rule has the same prior in both families, so that the families weigh 1/2 each
        return float(np.exp(self.noise.log_scale)) / len(RELIABILITIES) if self.static.count else 1.0
