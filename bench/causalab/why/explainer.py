"""Explanations of laboratories."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from markupsafe import Markup

from calibrant.audits.causalab.why import LabWhy, explain
from calibrant.bench.causalab.why.page import advice, drawing, matrix, matrix_caption, page_body, ruled_out_lines
from calibrant.bench.pages.capabilities import Explainable
from calibrant.bench.pages.why.sections import WhyTable, experiment_table, tables_lines
from calibrant.dsl.causalab.episode import LabStep
from calibrant.dsl.causalab.item import LabItem


class LabExplanations:
    """Implements Explainable (bench.core.capabilities)."""

    def explain(self, item: LabItem, steps: Sequence[LabStep], *, reveal_sealed: bool = False) -> LabWhy:
        return explain(item, steps, reveal_sealed=reveal_sealed)

    def body(self, why: LabWhy, prefix: str) -> Markup:
        return page_body(why, prefix)

    def drawing(self, why: LabWhy) -> str:
        return drawing(why)

    def lines(self, why: LabWhy) -> Iterator[str]:
        yield from tables_lines(why, _tables(why), advice(why))
        yield from ["", *ruled_out_lines(why)] if why.ruled_out else []


def _tables(why: LabWhy) -> list[WhyTable]:
    cells = [[f"{cell['text']}{' true' if cell['is_true'] else ''}" for cell in row["cells"]] for row in matrix(why)]
    edges = WhyTable(
        "Edges",
        matrix_caption(why),
        ("cause \\ effect", *why.nodes),
        tuple((cause, *row) for cause, row in zip(why.nodes, cells, strict=True)) if why.edges else (),
    )
    settings = experiment_table(
        why.experiments,
        "What each setting would leave",
        "over all readings that it may give",
        "setting",
        "mechanisms",
        lists_outcomes=False,
    )
    readings = WhyTable(
        "Readings so far",
        f"records and readings, {len(why.readings)} rows",
        ("set", *why.nodes),
        tuple((r.changed or "nothing", *(f"{r.values[name]:g}" for name in why.nodes)) for r in why.readings),
    )
    frequencies = WhyTable(
        "Frequencies that fit",
        "with the mechanisms that predict each",
        ("frequency", "mechanisms"),
        tuple((share.answer, share.number) for share in why.frequencies),
    )
    return [edges, settings, readings, *([frequencies] if len(why.frequencies) > 1 else [])]


EXPLANATIONS: Explainable = LabExplanations()
