"""Explanations of detectors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from markupsafe import Markup

from calibrant.audits.blickets.why import DetectorWhy, explain
from calibrant.bench.blickets.why.page import advice, answer_table, drawing, history_table, move_table, page_body
from calibrant.bench.pages.capabilities import Explainable
from calibrant.bench.pages.why.sections import tables_lines
from calibrant.dsl.blickets.item import BlicketItem
from calibrant.dsl.episode import Step


class DetectorExplanations:
    """Implements Explainable (bench.core.capabilities)."""

    def explain(self, item: BlicketItem, steps: Sequence[Step[str]], *, reveal_sealed: bool = False) -> DetectorWhy:
        return explain(item, steps, reveal_sealed=reveal_sealed)

    def body(self, why: DetectorWhy, prefix: str) -> Markup:
        return page_body(why, prefix)

    def drawing(self, why: DetectorWhy) -> str:
        return drawing(why)

    def lines(self, why: DetectorWhy) -> Iterator[str]:
        tables = [move_table(why), history_table(why), *([answer_table(why)] if len(why.answers) > 1 else [])]
        return tables_lines(why, tables, advice(why))


EXPLANATIONS: Explainable = DetectorExplanations()
