"""Capability: all hypotheses that fit an item, counted exactly, so that a set of them can be scored."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

from calibrant.bench.core.capabilities import Capability

Score: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True)
class Hypotheses:
    """All hypotheses that fit the evidence of an item.

    noun: of a hypothesis, in the plural; in_words: the class
    count: their number, exact, by meaning
    key: score of an answer -> what is equal for answers that mean the same; None of one that is not read
    fits: (score, key) -> whether the answer is one of them
    masses: key -> share of the class that a hypothesis stands for; None where all weigh the same
    """

    noun: str
    in_words: str
    count: int
    key: Callable[[Score], str | None]
    fits: Callable[[Score, str], bool]
    masses: Mapping[str, Fraction] | None = None

    def mass(self, key: str) -> Fraction:
        """Return the share of a hypothesis that fits."""
        return Fraction(1, self.count) if self.masses is None else self.masses[key]


def weighted_hypotheses(
    noun: str, in_words: str, numbers: Mapping[str, int], key: Callable[[Score], str | None]
) -> Hypotheses:
    """Return hypotheses that stand for several members each.

    numbers: key -> members
    """
    total = sum(numbers.values())
    masses = {name: Fraction(number, total) for name, number in numbers.items()}
    return Hypotheses(noun, in_words, len(masses), key, lambda score, name: name in masses, masses)


HYPOTHESES: Capability[Callable[[Any], Hypotheses]] = Capability("`score --set-size`")
"""Makes the hypotheses of an item; `CalibrantError` where they are too many to count."""
