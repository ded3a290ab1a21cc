"""Explanations of ReplaySCM items."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from markupsafe import Markup

from calibrant.audits.replayscm.why.explanation import explain
from calibrant.audits.replayscm.why.parts import ReplayWhy
from calibrant.bench.pages.capabilities import Explainable
from calibrant.bench.replayscm.why.drawing import drawing
from calibrant.bench.replayscm.why.page import body
from calibrant.bench.replayscm.why.words import lines
from calibrant.dsl.episode import Step
from calibrant.dsl.errors import CalibrantError
from calibrant.dsl.replayscm.problem import Problem
from calibrant.solvers.budget import BudgetSpent


class ReplayExplanations:
    """See bench.core.capabilities.Explainable."""

    def explain(self, item: Problem, steps: Sequence[Step[Any]]) -> ReplayWhy:
        if item.task.extension is not None:
            raise CalibrantError(f"{item.id}: items with noise, hidden variables or episodes cannot be explained yet")
        try:
            return explain(item.task, item.id)
        except (BudgetSpent, ValueError) as reason:
            raise CalibrantError(f"{item.id} cannot be explained: {reason}") from None

    def body(self, why: ReplayWhy, prefix: str) -> Markup:
        return body(why, prefix)

    def drawing(self, why: ReplayWhy) -> str:
        return drawing(why)

    def lines(self, why: ReplayWhy) -> Iterator[str]:
        return lines(why)


EXPLANATIONS: Explainable = ReplayExplanations()
