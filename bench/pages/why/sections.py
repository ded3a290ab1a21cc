"""Reasons shown as a few tables and one recommendation: what blickets, CausaLab and CauSim have in common."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from calibrant.audits.why import Experiment, Why, expected_text, number_text
from calibrant.bench.pages.aligned import aligned
from calibrant.bench.pages.html_page import html_page

MAX_ROWS = 60  # rows of a table that page and terminal show; JSON has all
MAX_UNFOLDED = 12  # of a page: further rows are folded, so that what follows the table is in view
MAX_OUTCOMES = 6  # outcomes of an experiment that are listed one by one


@dataclass(frozen=True)
class WhyTable:
    """A table of an explanation.

    caption: meaning of the rows; rows: texts; look: numbers of the rows to look at
    chart: an SVG above the table, empty for none; numeric: columns that are numbers; sealed: columns that only gold
    tells
    """

    title: str
    caption: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    look: frozenset[int] = frozenset()
    chart: str = ""
    numeric: frozenset[int] = frozenset()
    sealed: frozenset[int] = frozenset()


def tables_body(why: Why, tables: Sequence[WhyTable], advice: Sequence[str], prefix: str) -> Markup:
    """Return the contents of a page; advice: heading of what would settle it, then sentences; empty for none."""
    content = {
        "why": why,
        "prefix": prefix,
        "advice": list(advice),
        "tables": [shown_table(table) for table in tables],
        "json_text": page_json(why),
    }
    return Markup(html_page("why/tables.html", content))


def page_json(why: Why) -> str:
    """Return the JSON of a page; of an experiment with many outcomes the first, and how many others there are."""
    content = why.to_dict()
    for experiment in content.get("experiments", ()):
        outcomes = experiment["outcomes"]
        if len(outcomes) > MAX_ROWS:
            experiment["outcomes"] = outcomes[:MAX_ROWS]
            experiment["outcomes_left_out"] = len(outcomes) - MAX_ROWS
    return json.dumps(content, indent=1, ensure_ascii=False)


def shown_table(table: WhyTable) -> dict[str, Any]:
    """Return a table as templates show it."""
    lines = [{"cells": row, "look": k in table.look} for k, row in enumerate(table.rows[:MAX_ROWS])]
    num_unfolded = MAX_UNFOLDED if len(lines) > MAX_UNFOLDED + 3 else len(lines)
    return {
        "title": table.title,
        "caption": table.caption,
        "headings": table.headings,
        "numeric": table.numeric,
        "sealed": table.sealed,
        "chart": Markup(table.chart),
        "lines": lines[:num_unfolded],
        "folded": lines[num_unfolded:],
        "more": len(table.rows) - MAX_ROWS,
    }


def tables_lines(why: Why, tables: Sequence[WhyTable], advice: Sequence[str]) -> Iterator[str]:
    """Yield the lines of the terminal."""
    yield why.title
    yield why.reason_text
    yield "  ".join(f"[{fact.text}]" for fact in (*why.facts, *why.sealed))
    if advice:
        yield ""
        yield f"{advice[0]}: {' '.join(advice[1:])}"
    for table in tables:
        if table.rows:
            yield ""
            yield f"{table.title} ({table.caption})"
            yield aligned(list(table.headings), [list(row) for row in table.rows[:MAX_ROWS]])
            if len(table.rows) > MAX_ROWS:
                yield f"and {len(table.rows) - MAX_ROWS} more"


def experiment_table(
    experiments: Sequence[Experiment],
    title: str,
    caption: str,
    noun: str,
    hypotheses: str,
    *,
    lists_outcomes: bool = True,
) -> WhyTable:
    """Return every next experiment: how many readings it may give, and what they leave.

    lists_outcomes: with a column of single outcomes, where these are few
    """
    rows = []
    revealed = any(experiment.sealed is not None for experiment in experiments)
    for experiment in experiments:
        numbers = [int(outcome.remaining) for outcome in experiment.outcomes]
        answers = [outcome.answers for outcome in experiment.outcomes]
        rows.append(
            (
                experiment.in_words,
                str(len(numbers)),
                _range(numbers),
                expected_text(experiment.expected),
                "decides"
                if experiment.decides
                else "nothing new"
                if len(numbers) == 1
                else f"{_range(answers)} answers",
                "; ".join(
                    f"{outcome.reading}: {number_text(int(outcome.remaining))}" for outcome in experiment.outcomes
                )
                if lists_outcomes and len(numbers) <= MAX_OUTCOMES
                else "",
                *([number_text(int(experiment.sealed or 0))] if revealed else []),
            )
        )
    headings = (
        noun,
        "readings",
        f"{hypotheses} left",
        "expected",
        "effect",
        "each",
        *(["sealed: here"] if revealed else []),
    )
    look = frozenset({0} if experiments and len(experiments[0].outcomes) > 1 else ())
    columns = drop_empty(headings, rows, 5)
    sealed = frozenset({len(columns[0]) - 1} if revealed else ())
    return WhyTable(title, caption, *columns, look, numeric=frozenset({1, 2, 3}) | sealed, sealed=sealed)


def drop_empty(
    headings: tuple[str, ...], rows: Sequence[tuple[str, ...]], column: int
) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    """Return headings and rows without a column in which nothing stands."""
    if any(row[column] for row in rows):
        return headings, tuple(rows)
    return headings[:column] + headings[column + 1 :], tuple(row[:column] + row[column + 1 :] for row in rows)


def _range(numbers: Sequence[int]) -> str:
    low, high = number_text(min(numbers, default=0)), number_text(max(numbers, default=0))
    return low if low == high else f"{low} to {high}"


def best_advice(experiments: Sequence[Experiment], noun: str, hypotheses: str, compared: str = "") -> tuple[str, ...]:
    """Return the heading and sentence about the best experiment; empty where nothing is told apart.

    compared: which experiments were compared, in words, where that is not all of them
    """
    if not experiments or len(experiments[0].outcomes) < 2:
        return ()
    best = experiments[0]
    if best.decides:
        return (f"The {noun} that decides", f"{best.in_words}: every reading that it may give leaves one answer.")
    numbers = [int(outcome.remaining) for outcome in best.outcomes]
    sentence = f"{best.in_words}: it leaves {_range(numbers)} {hypotheses}, {expected_text(best.expected)} expected."
    return (f"The {noun} that helps most", sentence, f"No single {noun}{compared} is sure to decide.")
