"""The space of detectors of which it is not known whether they are reliable: one rule, with or without noise.

Both families are equally likely beforehand, and so are the members of each. Until a reading contradicts every single
rule the reliable ones take most of the belief, so that an answer comes sooner and is right less often than
`NoiseSpace` would have it on a detector that is known to be unreliable.
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
        """Before any reading."""
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
        """The probability of the readings by rule, without noise."""
        return as_weights(self.static.bits, len(all_rules(self.static.n)))

    def _scale(self) -> float:
        """Return what makes the noisy members comparable; they may be as they are once no reliable one is left."""
        return float(np.exp(self.noise.log_scale)) / len(RELIABILITIES) if self.static.count else 1.0
