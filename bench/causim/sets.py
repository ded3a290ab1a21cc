"""Sets of answers to a question about a program."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from calibrant.bench.causim.solve import FUNCTIONS
from calibrant.bench.sets.capabilities import Hypotheses, weighted_hypotheses
from calibrant.dsl.causim.item import CausimItem
from calibrant.dsl.errors import CalibrantError
from calibrant.solvers.budget import BudgetSpent


def hypotheses(item: CausimItem) -> Hypotheses:
    """Return the answers of worlds that fit, each with its share of these."""
    space = FUNCTIONS.version_space(item)
    try:
        numbers = space.verdicts()
    except BudgetSpent as spent:
        raise CalibrantError(f"the answers to {item.id} are not counted: {spent}") from None
    return weighted_hypotheses("answers", space.in_words, numbers, _key)


def _key(score: Mapping[str, Any]) -> str | None:
    meaning: str | None = score["meaning"]
    return meaning
