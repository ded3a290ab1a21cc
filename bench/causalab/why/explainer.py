"""Explanations of laboratories."""

from __future__ import annotations

from calibrant.audits.causalab.why import LabWhy, explain
from calibrant.audits.why import number_text
from calibrant.bench.pages.capabilities import Explainable
from calibrant.bench.pages.why.sections import TableExplanations, WhyTable, best_advice, experiment_table


def _advice(why: LabWhy) -> tuple[str, ...]:
    return best_advice(why.experiments, "setting", "mechanisms")


def _tables(why: LabWhy) -> list[WhyTable]:
    numbers = {(edge.cause, edge.effect): edge.number for edge in why.edges}

    def cell(cause: str, effect: str) -> str:
        number = numbers.get((cause, effect))
        if cause == effect:
            return "\N{MIDDLE DOT}"
        if number is None:
            return "\N{BALLOT X} 0"
        sign = "\N{CHECK MARK}" if number == why.count.lower else "?"
        return f"{sign} {number_text(int(number))}"

    matrix = WhyTable(
        "Edges",
        f"in how many of the {why.count.in_words()} mechanisms each occurs; cause in the row, effect in the column",
        ("cause \\ effect", *why.nodes),
        tuple((cause, *(cell(cause, effect) for effect in why.nodes)) for cause in why.nodes),
    )
    settings = experiment_table(
        why.experiments, "What each setting would leave", "over all readings that it may give", "setting", "mechanisms"
    )
    readings = WhyTable(
        "Readings so far",
        f"records and readings, {len(why.readings)} rows",
        ("set", *why.nodes),
        tuple((r.changed or "nothing", *(f"{r.values[name]:g}" for name in why.nodes)) for r in why.readings),
        numeric=frozenset(range(1, len(why.nodes) + 1)),
    )
    frequencies = WhyTable(
        "Frequencies that fit",
        "with the mechanisms that predict each",
        ("frequency", "mechanisms"),
        tuple((share.answer, number_text(int(share.number))) for share in why.frequencies),
        numeric=frozenset({0, 1}),
    )
    return [matrix, settings, readings, *([frequencies] if len(why.frequencies) > 1 else [])]


EXPLANATIONS: Explainable = TableExplanations("laboratories", explain, _tables, _advice)
