"""Vectors over rules and configurations, and Shannon entropies."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Weights = npt.NDArray[np.float64]


def as_weights(bits: int, size: int) -> Weights:
    """Convert a bit set to a vector of 0 and 1."""
    packed = np.frombuffer(bits.to_bytes((size + 7) // 8, "little"), dtype=np.uint8)
    return np.unpackbits(packed, count=size, bitorder="little").astype(np.float64)


def binary_entropy(share: Weights) -> Weights:
    """Return the entropy in bits of readings that are ACTIVE with these probabilities."""
    return _times_log(share + 0.0) + _times_log(1 - share)


def spread(weights: Weights) -> Weights:
    """Return, for each column of mass m, m times the entropy of the column divided by m, in bits."""
    spreads: Weights = _times_log(weights).sum(axis=0) - _times_log(weights.sum(axis=0))
    return spreads


def information(masses: Weights, active: Weights) -> Weights:
    """Return the mutual information of answer and reading at each configuration, in bits.

    masses: of each answer, not normalised
    active: the part of them with an ACTIVE reading; shape (answers, configurations)
    """
    total = masses.sum()
    if not total:
        return np.zeros(active.shape[1])
    possible = np.flatnonzero(masses)
    before = masses[possible] / total
    heard = active[possible] / total
    # H(answer) - sum over readings of P(reading) H(answer | reading); spread() is P times H
    gains: Weights = spread(before) - spread(heard) - spread(before[:, None] - heard)
    return gains


def _times_log(weights: Weights) -> Weights:
    """- w log2 w, 0 where w is 0 or (by rounding) below."""
    positive = weights > 0
    entropies: Weights = np.where(positive, -weights * np.log2(np.where(positive, weights, 1.0)), 0.0)
    return entropies
