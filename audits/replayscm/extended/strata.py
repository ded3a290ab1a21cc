"""The strata of extended items: shapes of published strata, noise rates, hidden variables."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from calibrant.dsl.replayscm.generation.strata import NAMED_STRATA, Stratum

RATES = (Fraction(0), Fraction(1, 50), Fraction(1, 20), Fraction(1, 10), Fraction(1, 5))
NUM_ROWS = 8
MAX_TARGETS = 3
HIDDEN_PARENTS = {0: 0, 1: 3, 2: 3}  # of each hidden variable, by their number
NOISY_HIDDEN_PARENTS = {0: 0, 1: 3, 2: 2}
HIDDEN_MAX_PARENTS = 3


@dataclass(frozen=True)
class ExtendedShape:
    """A published stratum's shape with its class and allowance."""

    base: Stratum
    max_parents: int
    num_worlds: int


def _base(name: str) -> Stratum:
    return next(stratum for stratum in NAMED_STRATA if stratum.name == name)


SHAPES = (
    ExtendedShape(_base("hs_n6_easy_calibration"), 3, 24),
    ExtendedShape(_base("hs_n8_bridge"), 4, 24),
    ExtendedShape(_base("vhs_n10_anchor_m10"), 4, 40),
)


@dataclass(frozen=True)
class ExtendedStratum:
    """One cell of shapes x rates x numbers of hidden variables."""

    shape: ExtendedShape
    rate: Fraction
    num_hidden: int

    @property
    def name(self) -> str:
        noise = f"_noise{self.rate.numerator}in{self.rate.denominator}" if self.rate else ""
        hidden = f"_hidden{self.num_hidden}" if self.num_hidden else ""
        return f"{self.shape.base.name}{noise}{hidden}"

    @property
    def max_parents(self) -> int:
        return HIDDEN_MAX_PARENTS if self.num_hidden else self.shape.max_parents

    @property
    def num_hidden_parents(self) -> int:
        return (NOISY_HIDDEN_PARENTS if self.rate else HIDDEN_PARENTS)[self.num_hidden]

    @property
    def is_plain(self) -> bool:
        return not self.rate and not self.num_hidden


def extended_strata() -> Iterator[ExtendedStratum]:
    """Yield all strata: shapes, then rates, then numbers of hidden variables."""
    for shape in SHAPES:
        for rate in RATES:
            for num_hidden in (0, 1, 2):
                yield ExtendedStratum(shape, rate, num_hidden)
