"""The page of a `LogicWhy`: the network with shares, the spectrum, predictions, candidates of the next experiment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from markupsafe import Markup

from calibrant.audits.logic.why.parts import LogicWhy
from calibrant.audits.why import number_text
from calibrant.bench.logic.family.words import LABEL, NO_PROBABILITY, percent
from calibrant.bench.logic.why.network import MAX_NODES, edge_arrow, network
from calibrant.bench.pages.charts import BarRow, bar_rows, figure, widest
from calibrant.bench.pages.html_page import html_page
from calibrant.bench.pages.why.sections import WhyTable, page_json, shown_table

MAX_CLAUSES = 60
MAX_BARS = 12
MAX_HEAT_CELLS = 600  # of the spectrum; with more the table alone is shown
ROW = 26  # height of a row of the heat map


def page_body(why: LogicWhy, prefix: str, data_lines: Sequence[str] = ()) -> Markup:
    """Return the contents of the page.

    prefix: of ids; data_lines: label and text of what was read, for data that are no item
    """
    content: dict[str, Any] = {
        "why": why,
        "prefix": prefix,
        "data_lines": [(line[:LABEL].strip(), line[LABEL:]) for line in data_lines],
        "network": Markup(network(why, f"{prefix}-tip")),
        "max_nodes": MAX_NODES,
        "advice": advice(why),
        "bars": Markup(candidate_bars(why)),
        "candidates": shown_table(candidate_table(why)),
        "edges": shown_table(edge_table(why)),
        "clauses": shown_table(clause_table(why)),
        "heat": Markup(spectrum_heat(why)),
        "spectrum": shown_table(spectrum_table(why)),
        "grid": prediction_grid(why),
        "pair": pair_rows(why),
        "no_probability": NO_PROBABILITY,
        "counted": f"{why.count.in_words()} models, counted exactly, of the class: {why.class_in_words}.",
        "json_text": page_json(why),
    }
    return Markup(html_page("why/logic.html", content))


def advice(why: LogicWhy) -> list[str]:
    """Return heading and sentence about the next experiment; nothing where none tells members apart."""
    if not why.candidates or len(why.candidates[0].readings) < 2:
        return []
    best = why.candidates[0]
    number = len(best.readings)
    return [
        "The experiment that helps most",
        f"{best.in_words}: models give {number} different answers. {percent(best.share)} of them are expected to be"
        " left, over models as truth, all alike.",
    ]


def edge_table(why: LogicWhy) -> WhyTable:
    """Return the edges of the class by the share of members that use them."""
    ordered = sorted(why.edges, key=lambda edge: (-edge.share, edge.text))
    rows = tuple(
        (
            edge_arrow(edge.source, edge.sign, edge.target),
            percent(edge.share),
            number_text(int(edge.members)),
            "always" if edge.share == 1 else "open" if edge.share else "never",
        )
        for edge in ordered
    )
    look = frozenset(k for k, edge in enumerate(ordered) if 0 < edge.share < 1)
    caption = "Share of the models that use each edge; → activates, ⊣ inhibits"
    return WhyTable("Edges", caption, ("edge", "share", "models", "status"), rows, look, numeric=frozenset({1, 2}))


def clause_table(why: LogicWhy) -> WhyTable:
    """Return the clauses that some member has; a clause is a gate where it has several literals."""
    rows = tuple((c.text, percent(c.share), number_text(int(c.members))) for c in why.clauses[:MAX_CLAUSES])
    caption = "Share of the models that have each clause; + is and, ! is not"
    return WhyTable("Clauses", caption, ("clause", "share", "models"), rows, numeric=frozenset({1, 2}))


def candidate_table(why: LogicWhy) -> WhyTable:
    """Return the candidates of the next experiment, those that are expected to leave least first."""
    rows = tuple(
        (
            c.in_words,
            percent(c.share),
            str(len(c.readings)),
            "; ".join(f"{answers}: {number_text(int(members))}" for answers, members in c.readings[:3])
            + ("; ..." if len(c.readings) > 3 else ""),
        )
        for c in why.candidates
        if len(c.readings) > 1
    )
    readouts = ", ".join(why.readouts)
    caption = f"Models expected to be left; each: answers of {readouts}, and the models that give them"
    headings = ("experiment", "left", "answers", "each")
    return WhyTable("Next experiments", caption, headings, rows, frozenset({0}), numeric=frozenset({1, 2}))


def spectrum_table(why: LogicWhy) -> WhyTable:
    """Return the members by misfit and size."""
    rows = tuple((f"{p.misfit:,}", str(p.size), number_text(int(p.members))) for p in why.spectrum)
    caption = "Models by misfit and size"
    return WhyTable(
        "Misfit and size", caption, ("misfit", "size", "models"), rows, frozenset({0}), numeric=frozenset({0, 1, 2})
    )


def candidate_bars(why: LogicWhy) -> str:
    """Return bars of the share of members that is expected to be left; empty where none tells members apart."""
    telling = [c for c in why.candidates if len(c.readings) > 1][:MAX_BARS]
    if not telling:
        return ""
    best = telling[0]
    label = f"Models expected to be left by experiment; least: {best.in_words}, {percent(best.share)}"
    rows = [
        BarRow(c.in_words, c.share, percent(c.share), "bar-3" if k == 0 else "bar-2") for k, c in enumerate(telling)
    ]
    return bar_rows(rows, label, length=130, high=1)


def spectrum_heat(why: LogicWhy) -> str:
    """Return the spectrum as a heat map, size across and misfit down; empty where it has too many cells or one."""
    sizes = list(range(min(p.size for p in why.spectrum), max(p.size for p in why.spectrum) + 1))
    misfits = sorted({p.misfit for p in why.spectrum})
    if len(why.spectrum) < 2 or len(sizes) * len(misfits) > MAX_HEAT_CELLS:
        return ""
    numbers = {(p.misfit, p.size): int(p.members) for p in why.spectrum}
    most = max(numbers.values()).bit_length()
    step = max(36.0, widest(map(number_text, numbers.values())) + 10)
    margin = 24 + widest(f"{misfit:,}" for misfit in misfits)
    marks = [
        f'<text class="soft" x="{margin + step * (k + 0.5):.1f}" y="16" text-anchor="middle">{size}</text>'
        for k, size in enumerate(sizes)
    ]
    for row, misfit in enumerate(misfits):
        y = 24 + ROW * row
        marks.append(f'<text class="soft" x="{margin - 8:.1f}" y="{y + 17}" text-anchor="end">{misfit:,}</text>')
        for column, size in enumerate(sizes):
            x, number = margin + step * column, numbers.get((misfit, size))
            cell = f'x="{x + 1:.1f}" y="{y + 1}" width="{step - 2:.1f}" height="{ROW - 2}"'
            if number is None:
                marks.append(f'<rect class="unlit" {cell}/>')
                continue
            depth = number.bit_length() / most
            marks.append(
                f'<rect class="unlit" {cell}/>'
                f'<rect {cell} style="fill:var(--scale-2);fill-opacity:{0.1 + 0.3 * depth:.2f}"/>'
                f'<text x="{x + step / 2:.1f}" y="{y + 17}" text-anchor="middle">{number_text(number)}</text>'
            )
    label = f"Models by size, across, and misfit, down: {len(why.spectrum)} points"
    return figure(margin + step * len(sizes) + 8, 32 + ROW * len(misfits), label, marks)


def prediction_grid(why: LogicWhy) -> list[dict[str, Any]]:
    """Return rows of the grid of predictions: share of members that answer 1, decided cells marked."""
    return [
        {
            "name": row.in_words,
            "cells": [
                {
                    # narrow cells would break between number and sign
                    "text": (f"{share:.0%}".replace("%", " %") if share in (0, 1) else percent(share)).replace(
                        " ", "\N{NO-BREAK SPACE}"
                    ),
                    "open": share not in (0, 1),
                    "share": round(100 * share),
                }
                for share in row.shares
            ],
        }
        for row in why.predictions
    ]


def pair_rows(why: LogicWhy) -> list[dict[str, Any]]:
    """Return the clauses of two members side by side, by target; rows that differ are marked."""
    if why.pair is None:
        return []
    sides = [_by_target(model) for model in (why.pair.first, why.pair.second)]
    return [
        {
            "target": target,
            "first": sides[0].get(target, "0"),
            "second": sides[1].get(target, "0"),
            "differs": sides[0].get(target) != sides[1].get(target),
        }
        for target in sorted({*sides[0], *sides[1]})
    ]


def _by_target(model: tuple[str, ...]) -> dict[str, str]:
    formulas: dict[str, list[str]] = {}
    for clause in model:
        target, _, literals = clause.partition("<-")
        formulas.setdefault(target, []).append(literals.replace("+", " and ").replace("!", "not "))
    return {target: " or ".join(clauses) for target, clauses in formulas.items()}
