"""Mechanism noise: each unclamped observed endogenous cell is flipped with a rational rate below 1/2."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from typing import Any, TypeAlias

from calibrant.dsl.errors import PoolError, short_repr

MAX_RATE = Fraction(1, 2)  # a rate of 1/2 says nothing, above it functions and their negations swap places
MAX_GRID_RATES = 16
MAX_DENOMINATOR = 1_000_000  # exact masses have denominators of this number to the power of the cells
_RATE = re.compile(r"([0-9]{1,9})(?:/([1-9][0-9]{0,8}))?")

Grid: TypeAlias = tuple[tuple[Fraction, Fraction], ...]
"""Rates with their prior probabilities, which add up to 1."""


class NoiseKind(Enum):
    """Scope of the rate: disclosed, unknown and common to all variables, or unknown for each variable."""

    RATE = "rate"
    SHARED = "shared"
    EACH = "each"


@dataclass(frozen=True)
class NoiseModel:
    """The noise of an item as a solver may know it.

    grid: rates in the order of the item with their prior; a disclosed rate is a grid of one
    """

    kind: NoiseKind
    grid: Grid

    @property
    def is_silent(self) -> bool:
        """Return whether no cell is ever flipped."""
        return all(rate == 0 for rate, _ in self.grid)

    @property
    def max_rate(self) -> Fraction:
        return max(rate for rate, _ in self.grid)


NOISE_FREE = NoiseModel(NoiseKind.RATE, ((Fraction(0), Fraction(1)),))


def known_rate(rate: Fraction) -> NoiseModel:
    """Return the model of a disclosed rate."""
    return NoiseModel(NoiseKind.RATE, ((rate, Fraction(1)),))


def parse_fraction(text: object, field: str) -> Fraction:
    """Parse "3/7" or "0"; `PoolError` names the field. Decimals are refused: readers round them differently."""
    match = _RATE.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise PoolError(f'expected a fraction such as "1/20", found {short_repr(text)}', field=field)
    return Fraction(int(match[1]), int(match[2] or 1))


def parse_rate(text: object, field: str) -> Fraction:
    """Parse a rate in [0, 1/2); `PoolError` names the field."""
    rate = parse_fraction(text, field)
    if rate >= MAX_RATE:
        raise PoolError(f"rate {rate}; rates are at least 0 and below 1/2", field=field)
    if rate.denominator > MAX_DENOMINATOR:
        raise PoolError(f"rate {rate}; denominators are at most {MAX_DENOMINATOR:,}", field=field)
    return rate


def parse_noise(raw: Any, field: str = "noise") -> NoiseModel:
    """Parse a rate, {"shared": [[rate, prior], ...]} or {"each": [...]}; None is no noise."""
    if raw is None:
        return NOISE_FREE
    if isinstance(raw, str):
        return known_rate(parse_rate(raw, field))
    if not isinstance(raw, dict) or len(raw) != 1 or not raw.keys() <= {"shared", "each"}:
        allowed = '"1/20", {"shared": [[rate, prior], ..]} or {"each": [..]}; readout noise is not supported'
        raise PoolError(f"expected {allowed}, found {short_repr(raw)}", field=field)
    ((scope, pairs),) = raw.items()
    return NoiseModel(NoiseKind(scope), _parse_grid(pairs, f"{field}.{scope}"))


def _parse_grid(pairs: Any, field: str) -> Grid:
    if not isinstance(pairs, Sequence) or isinstance(pairs, str) or not 1 <= len(pairs) <= MAX_GRID_RATES:
        raise PoolError(f"expected 1 to {MAX_GRID_RATES} pairs [rate, prior], found {short_repr(pairs)}", field=field)
    grid: list[tuple[Fraction, Fraction]] = []
    for number, pair in enumerate(pairs):
        where = f"{field}[{number}]"
        if not isinstance(pair, Sequence) or isinstance(pair, str) or len(pair) != 2:
            raise PoolError(f"expected a pair [rate, prior], found {short_repr(pair)}", field=where)
        grid.append((parse_rate(pair[0], where), parse_fraction(pair[1], where)))
    if len({rate for rate, _ in grid}) < len(grid):
        raise PoolError("a rate is listed twice", field=field)
    if any(prior == 0 for _, prior in grid) or sum(prior for _, prior in grid) != 1:
        raise PoolError("priors are positive and add up to 1", field=field)
    return tuple(grid)


def noise_to_json(noise: NoiseModel) -> Any:
    """Return what `parse_noise` reads; None where there is no noise and the rate is disclosed."""
    if noise == NOISE_FREE:
        return None
    if noise.kind is NoiseKind.RATE:
        return str(noise.grid[0][0])
    return {noise.kind.value: [[str(rate), str(prior)] for rate, prior in noise.grid]}
