"""Explanations of ReplaySCM items."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from markupsafe import Markup

from calibrant.audits.replayscm.extended.why import ExtendedWhy, explain_extended
from calibrant.audits.replayscm.why.explanation import explain
from calibrant.audits.replayscm.why.parts import ReplayWhy
from calibrant.bench.pages.capabilities import Explainable
from calibrant.bench.pages.design.page import standalone_svg
from calibrant.bench.pages.why.sections import tables_lines
from calibrant.bench.replayscm.why.drawing import drawing
from calibrant.bench.replayscm.why.extended import extended_advice, extended_body, extended_graph, extended_tables
from calibrant.bench.replayscm.why.page import body
from calibrant.bench.replayscm.why.words import lines
from calibrant.dsl.episode import Step
from calibrant.dsl.errors import CalibrantError
from calibrant.dsl.replayscm.item import Problem
from calibrant.solvers.budget import BudgetSpent


class ReplayExplanations:
    """See bench.pages.capabilities.Explainable."""

    def explain(
        self, item: Problem, steps: Sequence[Step[Any]], *, reveal_sealed: bool = False
    ) -> ReplayWhy | ExtendedWhy:
        try:
            if item.task.extension is not None:
                return explain_extended(item, steps, reveal_sealed=reveal_sealed)
            gold = item.sealed.gold if reveal_sealed else None
            return explain(item.task, item.id, gold=gold, columns=item.columns)
        except (BudgetSpent, ValueError) as reason:
            raise CalibrantError(f"{item.id} cannot be explained: {reason}") from None

    def body(self, why: ReplayWhy | ExtendedWhy, prefix: str) -> Markup:
        return extended_body(why, prefix) if isinstance(why, ExtendedWhy) else body(why, prefix)

    def drawing(self, why: ReplayWhy | ExtendedWhy) -> str:
        if isinstance(why, ReplayWhy):
            return drawing(why)
        if not (graph := extended_graph(why, "graph")):
            raise CalibrantError(f"{why.item}: there is no graph to draw ({why.reason_text})")
        return standalone_svg(graph)

    def lines(self, why: ReplayWhy | ExtendedWhy) -> Iterator[str]:
        return (
            tables_lines(why, extended_tables(why), extended_advice(why))
            if isinstance(why, ExtendedWhy)
            else lines(why)
        )


EXPLANATIONS: Explainable = ReplayExplanations()
