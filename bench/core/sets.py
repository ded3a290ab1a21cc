"""Capability: all hypotheses that fit an item, counted exactly, so that a set of them can be scored."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import expm1, fsum, log1p
from typing import Any, TypeAlias

from calibrant.bench.core.capabilities import Capability

Score: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True)
class Prior:
    """Probabilities of hypotheses given the evidence, under a prior that nature or a generator has.

    name: of the prior; probability: of a hypothesis that fits, from its answer
    terms: (weight, probability) of hypotheses that together stand for all: each by its probability, or draws alike
    """

    name: str
    probability: Callable[[Any], float]
    terms: Sequence[tuple[float, float]]

    def draws_mass(self, size: int) -> float:
        """Return the expected probability of the different hypotheses among so many independent draws."""
        return covered_mass(self.terms, size)


def covered_mass(terms: Iterable[tuple[float, float]], size: int) -> float:
    """Return the sum of weight (1 - (1 - p)^size) over pairs of weight and p."""
    return fsum(weight * (1.0 if p >= 1 else -expm1(size * log1p(-p))) for weight, p in terms)


@dataclass(frozen=True)
class Hypotheses:
    """All hypotheses that fit the evidence of an item.

    noun: of a hypothesis, in the plural; in_words: the class
    count: their number, exact, by meaning
    key: score of an answer -> what is equal for answers that mean the same; None of one that is not read
    answer_key: answer -> the same, in place of `key`, where scores do not hold it
    fits: (score, key) -> whether the answer is one of them
    masses: key -> share of the class that a hypothesis stands for; None where all weigh the same
    prior: None where there is none, or it cannot be summed
    """

    noun: str
    in_words: str
    count: int
    key: Callable[[Score], str | None]
    fits: Callable[[Score, str], bool]
    masses: Mapping[str, Fraction] | None = None
    prior: Prior | None = None
    answer_key: Callable[[Mapping[str, Any]], str | None] | None = None

    def draws_mass(self, size: int) -> float:
        """Return the expected mass of so many independent draws of members."""
        if self.masses is None:
            return covered_mass([(1.0, 1 / self.count)], size) if self.count else 0.0
        return covered_mass(((float(p), float(p)) for p in self.masses.values()), size)

    def mass(self, key: str) -> Fraction:
        """Return the share of a hypothesis that fits."""
        return Fraction(1, self.count) if self.masses is None else self.masses[key]


def weighted_hypotheses(
    noun: str,
    in_words: str,
    numbers: Mapping[str, int],
    key: Callable[[Score], str | None],
    prior: Prior | None = None,
) -> Hypotheses:
    """Return hypotheses that stand for several members each.

    numbers: key -> members
    """
    total = sum(numbers.values())
    masses = {name: Fraction(number, total) for name, number in numbers.items()}
    return Hypotheses(noun, in_words, len(masses), key, lambda score, name: name in masses, masses, prior)


HYPOTHESES: Capability[Callable[[Any], Hypotheses]] = Capability("`score --set-size`", "api:hypotheses")
"""Makes the hypotheses of an item; `CalibrantError` where they are too many to count."""
