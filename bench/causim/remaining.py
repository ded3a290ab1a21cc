"""Answers of the worlds that the evidence of a question left open, in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from calibrant.bench.causim.words import required_keys
from calibrant.bench.report.people.remaining import Hypothesis, Remaining, first_entries
from calibrant.dsl.causim.item import CausimItem
from calibrant.dsl.causim.model import shown_value
from calibrant.dsl.episode import Step
from calibrant.solvers.budget import BudgetSpent
from calibrant.solvers.causim.space import WorldSpace

BY_ANSWER = "by the answer that they give"


def list_remaining(item: CausimItem, steps: Sequence[Step[Any]], limit: int) -> Remaining | None:
    """List the answers of worlds that fit, each with the number of these worlds."""
    space = WorldSpace(item.task.model, item.task.question)
    try:
        listed = first_entries(_answers(item, space), limit)
    except BudgetSpent:
        return None
    return Remaining(("world", "worlds"), space.count, listed, BY_ANSWER)


def _answers(item: CausimItem, space: WorldSpace) -> Iterator[Hypothesis]:
    fixed = item.task.question.do
    keys = [key for key in required_keys(item) if key not in fixed] or list(required_keys(item))
    for answer, number in space.answers():
        yield Hypothesis(", ".join(f"{key} = {shown_value(answer[key])}" for key in keys), number)
