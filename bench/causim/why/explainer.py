"""Explanations of questions about programs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from markupsafe import Markup

from calibrant.audits.causim.why import QuestionWhy, explain
from calibrant.bench.causim.why.page import advice, drawing, group_table, page_body
from calibrant.bench.pages.capabilities import Explainable
from calibrant.bench.pages.why.sections import experiment_table, tables_lines
from calibrant.dsl.causim.item import CausimItem
from calibrant.dsl.episode import Step
from calibrant.dsl.errors import CalibrantError, in_one_line
from calibrant.solvers.budget import BudgetSpent


class QuestionExplanations:
    """Implements Explainable (bench.core.capabilities)."""

    def explain(self, item: CausimItem, steps: Sequence[Step[Any]], *, reveal_sealed: bool = False) -> QuestionWhy:
        try:
            return explain(item, reveal_sealed=reveal_sealed)
        except BudgetSpent as spent:
            raise CalibrantError(f"{in_one_line(item.id)} cannot be explained: {spent}") from None

    def body(self, why: QuestionWhy, prefix: str) -> Markup:
        return page_body(why, prefix)

    def drawing(self, why: QuestionWhy) -> str:
        return drawing(why)

    def lines(self, why: QuestionWhy) -> Iterator[str]:
        values = experiment_table(
            why.experiments,
            "What revealing one value would leave",
            "over the values that it may have",
            "reveal",
            "worlds",
        )
        yield from tables_lines(why, [group_table(why), values], advice(why))
        if why.branch is not None:
            yield ""
            yield f"Where {why.branch.node} is decided"
            for line in why.branch.code:
                mark = "> " if line.branches else "  "
                yield f"{mark}{line.text}" + (f"  # {', '.join(line.ends[:8])}" if line.ends else "")


EXPLANATIONS: Explainable = QuestionExplanations()
