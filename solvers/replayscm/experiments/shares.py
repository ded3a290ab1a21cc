"""Expected share left and expected bits of a world: exact, by listing its readings.

Share: sum over readings y of P(y)**2 / (e**2 + (1 - e)**2)**cells for rate e, its posterior mean on a grid. At most 1,
and 1 iff all members have one law. Bits: H(Y) - cells * h(e), which is 0 in the same case.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from math import fsum, log2

from calibrant.dsl.replayscm.extensions.extension import MechanismClass, NoiseKind, known_rate
from calibrant.solvers.acyclic.least import Mask
from calibrant.solvers.replayscm.noise.local_weights import target_mask
from calibrant.solvers.replayscm.noise.posterior import Posterior, free_bits, reading_probabilities

BITS_TOLERANCE = 1e-9  # differences of bits below this are rounding: the first candidate of equals is taken


def request_rows(
    scm_class: MechanismClass, constants: Mapping[str, int], contexts: Sequence[int]
) -> list[tuple[int, Mask]]:
    """Return the fixed part and the clamped bits of each row of a world that is asked for."""
    clamped = target_mask(scm_class, constants)
    values = sum(bit << scm_class.observed.index(variable) for variable, bit in constants.items())
    places = [scm_class.observed.index(root) for root in scm_class.roots]
    rows = []
    for context in contexts:
        word = sum((context >> i & 1) << place for i, place in enumerate(places))
        rows.append((word & ~clamped | values, clamped))
    return rows


def expected_share(posterior: Posterior, rows: Sequence[tuple[int, Mask]]) -> Fraction:
    """Return the expected share of the posterior that a world leaves; `BudgetSpent` for too many readings.

    rows: as `request_rows` gives them. `ValueError` for an independent unknown rate of each variable.
    """
    noise, cells = posterior.scm_class.noise, num_free_cells(posterior, rows)
    if noise.kind is NoiseKind.EACH:
        raise ValueError("shares need a rate that is common to all variables")
    if len(noise.grid) == 1:
        squares = sum((p * p for p in reading_probabilities(posterior, rows).values()), start=Fraction(0))
        # two readings under one law agree with probability e**2 + (1 - e)**2 a cell: what is left is due to members
        return squares / _collision(noise.grid[0][0]) ** cells
    # the posterior mean over the grid: each rate's share among the SCMs that are weighted as that rate has them
    share = Fraction(0)
    for (rate, _), weight in zip(noise.grid, posterior.noise_posterior, strict=True):
        if weight:
            single = replace(posterior, scm_class=replace(posterior.scm_class, noise=known_rate(rate)))
            share += weight * expected_share(single, rows)
    return share


def expected_bits(posterior: Posterior, rows: Sequence[tuple[int, Mask]]) -> float:
    """Return the bits that a world's reading is expected to tell of the SCM; `BudgetSpent` for too many readings.

    On a grid the noise entropy is that of each rate, averaged over the rates' posterior. `ValueError` for an
    independent unknown rate of each variable.
    """
    if posterior.scm_class.noise.kind is NoiseKind.EACH:
        raise ValueError("bits need a rate that is common to all variables")
    probabilities = reading_probabilities(posterior, rows).values()
    # doubles: only compared, within BITS_TOLERANCE
    entropy = -fsum(float(p) * log2(p) for p in probabilities)
    grid, cells = posterior.scm_class.noise.grid, num_free_cells(posterior, rows)
    weights = [Fraction(1)] if len(grid) == 1 else list(posterior.noise_posterior)
    noise = fsum(float(weight) * binary_entropy(float(rate)) for (rate, _), weight in zip(grid, weights, strict=True))
    return entropy - cells * noise


def num_free_cells(posterior: Posterior, rows: Sequence[tuple[int, Mask]]) -> int:
    """Return the number of cells of a world that noise can flip."""
    return sum(len(free_bits(posterior, clamped)) for _, clamped in rows)


def binary_entropy(rate: float) -> float:
    """Return the entropy of a flip, in bits."""
    return 0.0 if rate in (0, 1) else -rate * log2(rate) - (1 - rate) * log2(1 - rate)


def best_by_share(shares: Sequence[Fraction]) -> int | None:
    """Return the first candidate of least share; None if none is below 1."""
    best = min(range(len(shares)), key=shares.__getitem__, default=None)
    return None if best is None or shares[best] >= 1 else best


def best_by_bits(bits: Sequence[float]) -> int | None:
    """Return the first candidate within rounding of the most bits; None if none has any."""
    top = max(bits, default=0.0)
    # bits are 0 iff all members have one law, and rounding may hide that
    if top <= BITS_TOLERANCE:
        return None
    return next(place for place, value in enumerate(bits) if value >= top - BITS_TOLERANCE)


def _collision(rate: Fraction) -> Fraction:
    return rate**2 + (1 - rate) ** 2
