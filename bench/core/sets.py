"""Capability of scoring a set of hypotheses: all those consistent with an item, counted exactly."""

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
    """A named prior, and the posterior of the hypotheses consistent with the evidence under it.

    name: name of the prior; probability: answer -> posterior probability of its hypothesis
    terms: (weight, p) pairs: the sum of weight f(p) is the sum of f over the posterior probabilities p of all
        hypotheses, or estimates it from equally weighted draws
    """

    name: str
    probability: Callable[[Any], float]
    terms: Sequence[tuple[float, float]]

    def draws_mass(self, size: int) -> float:
        """Return the expected total probability of the distinct hypotheses among `size` independent draws."""
        return covered_mass(self.terms, size)


def covered_mass(terms: Iterable[tuple[float, float]], size: int) -> float:
    """Return the sum of weight (1 - (1 - p)^size) over pairs (weight, p)."""
    return fsum(weight * (1.0 if p >= 1 else -expm1(size * log1p(-p))) for weight, p in terms)


@dataclass(frozen=True)
class Hypotheses:
    """All hypotheses consistent with the evidence of an item, up to equivalence.

    noun: plural name of the hypotheses; in_words: description of the class
    count: exact number of equivalence classes
    key: score -> key of the answer's equivalence class; None if no answer was read
    answer_key: answer -> the same key, used in place of `key` where scores do not hold it
    fits: (score, key) -> whether the answer is consistent with the evidence
    masses: key -> share of the members of the version space that the class holds; None if all classes weigh the same
    prior: None if the item states no prior, or its posterior cannot be summed
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
        """Return the expected total mass of the distinct classes among `size` independent draws of members."""
        if self.masses is None:
            return covered_mass([(1.0, 1 / self.count)], size) if self.count else 0.0
        return covered_mass(((float(p), float(p)) for p in self.masses.values()), size)

    def mass(self, key: str) -> Fraction:
        """Return the share of the members that the class of this key holds."""
        return Fraction(1, self.count) if self.masses is None else self.masses[key]


def weighted_hypotheses(
    noun: str,
    in_words: str,
    num_members_by_key: Mapping[str, int],
    key: Callable[[Score], str | None],
    prior: Prior | None = None,
) -> Hypotheses:
    """Return equivalence classes of hypotheses, weighted by their numbers of members.

    num_members_by_key: key -> number of members
    """
    total = sum(num_members_by_key.values())
    masses = {name: Fraction(num_members, total) for name, num_members in num_members_by_key.items()}
    return Hypotheses(noun, in_words, len(masses), key, lambda score, name: name in masses, masses, prior)


HYPOTHESES: Capability[Callable[[Any], Hypotheses]] = Capability("`score --set-size`", "api:hypotheses")
"""Return the hypotheses of an item; `CalibrantError` if they are too many to count."""
