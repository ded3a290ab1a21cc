"""Explanations of logic models."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from markupsafe import Markup

from calibrant.audits.logic.why.explanation import explain, explain_family
from calibrant.audits.logic.why.parts import LogicWhy
from calibrant.bench.logic.why.network import network_file
from calibrant.bench.logic.why.page import advice, candidate_table, edge_table, page_body, spectrum_table
from calibrant.bench.pages.capabilities import Explainable
from calibrant.bench.pages.why.page import why_page
from calibrant.bench.pages.why.sections import tables_lines
from calibrant.dsl.episode import Step
from calibrant.dsl.logic.item import LogicItem
from calibrant.solvers.logic.family import LogicFamily
from calibrant.solvers.logic.predictions import Predictions


class LogicExplanations:
    """Implements Explainable (bench.pages.capabilities)."""

    def explain(self, item: LogicItem, steps: Sequence[Step[str]], *, reveal_sealed: bool = False) -> LogicWhy:
        return explain(item, reveal_sealed=reveal_sealed)

    def body(self, why: LogicWhy, prefix: str) -> Markup:
        return page_body(why, prefix)

    def drawing(self, why: LogicWhy) -> str:
        return network_file(why)

    def lines(self, why: LogicWhy) -> Iterator[str]:
        return tables_lines(why, [edge_table(why), candidate_table(why), spectrum_table(why)], advice(why))


def family_page(
    family: LogicFamily, name: str, predictions: Predictions | None, cause: str = "", data_lines: Sequence[str] = ()
) -> str:
    """Return the page of a family with members.

    name: of the data; predictions: of the candidates, if any; cause: why nothing was predicted
    data_lines: rows and readings that are used, and notes
    """
    why = explain_family(family, name, predictions, cause)
    return why_page(why, page_body(why, "why", data_lines), name)


EXPLANATIONS: Explainable = LogicExplanations()
