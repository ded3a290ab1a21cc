"""Sets of answers to a question about a program."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from calibrant.bench.causim.solve import FUNCTIONS
from calibrant.bench.sets.capabilities import Hypotheses, Prior, weighted_hypotheses
from calibrant.dsl.causim.item import CausimItem
from calibrant.dsl.causim.model import symbols
from calibrant.dsl.errors import CalibrantError
from calibrant.solvers.budget import BudgetSpent
from calibrant.solvers.causim.exact import AnswerSet


def hypotheses(item: CausimItem) -> Hypotheses:
    """Return the answers of worlds that fit, each with its share of these."""
    space = FUNCTIONS.version_space(item)
    try:
        numbers = space.verdicts()
    except BudgetSpent as spent:
        raise CalibrantError(f"the answers to {item.id} are not counted: {spent}") from None
    return weighted_hypotheses("answers", space.in_words, numbers, _key, _prior(item, numbers))


def _prior(item: CausimItem, texts: Iterable[str]) -> Prior | None:
    """Return the probabilities of answers under the samplers of the noise; None where nothing fits."""
    members = AnswerSet(item.task.model, item.task.question)
    if not members.fitting:
        return None
    listed = [float(members.probability(symbols(json.loads(text)))) for text in texts]
    return Prior(
        "the samplers of the noise",
        lambda answer: float(members.probability(symbols(answer))),
        [(probability, probability) for probability in listed],
    )


def _key(score: Mapping[str, Any]) -> str | None:
    meaning: str | None = score["meaning"]
    return meaning
