"""Sets of frequencies of the reactor crystal, before the first setting."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Any

from calibrant.bench.causalab.solve import FUNCTIONS
from calibrant.bench.sets.capabilities import Hypotheses, weighted_hypotheses
from calibrant.dsl.causalab.item import LabItem


def hypotheses(item: LabItem) -> Hypotheses:
    """Return the frequencies that mechanisms of the class predict, to two decimals, each with its share of them."""
    space = FUNCTIONS.version_space(item)
    numbers: dict[str, int] = {}
    for frequency, number in space.verdicts().items():
        if not isfinite(frequency):
            continue  # mechanisms that predict no frequency are not answers
        text = f"{frequency:.2f}"
        numbers[text] = numbers.get(text, 0) + number
    return weighted_hypotheses("frequencies", space.in_words, numbers, _key)


def _key(score: Mapping[str, Any]) -> str | None:
    return None if score["frequency"] is None else f"{score['frequency']:.2f}"
