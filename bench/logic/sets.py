"""Sets of logic models within the tolerances of an item."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from calibrant.bench.logic.solve import FUNCTIONS
from calibrant.bench.sets.capabilities import Hypotheses
from calibrant.dsl.logic.item import LogicItem


def hypotheses(item: LogicItem) -> Hypotheses:
    """Return the family of the item; its members weigh the same."""
    family = FUNCTIONS.version_space(item)
    return Hypotheses("models", family.in_words, family.count, _key, lambda score, key: score["fits"] is True)


def _key(score: Mapping[str, Any]) -> str | None:
    meaning: str | None = score["meaning"] if score["fits"] is not None else None  # a table of shares is no model
    return meaning
