"""Reasons shown as a few tables and one recommendation: what blickets, CausaLab and CauSim have in common."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from markupsafe import Markup

from calibrant.audits.why import Experiment, Why, number_text
from calibrant.bench.pages.aligned import aligned
from calibrant.bench.pages.html_page import html_page
from calibrant.dsl.episode import Step
from calibrant.dsl.errors import CalibrantError, in_one_line
from calibrant.dsl.item import Item
from calibrant.solvers.budget import BudgetSpent

I = TypeVar("I", bound=Item[Any, Any])  # noqa: E741  # an item
W = TypeVar("W", bound=Why)

MAX_ROWS = 60  # rows of a table that page and terminal show; JSON has all
MAX_OUTCOMES = 6  # outcomes of an experiment that are listed one by one


@dataclass(frozen=True)
class WhyTable:
    """A table of an explanation.

    caption: meaning of the rows; rows: texts; look: numbers of the rows to look at
    chart: an SVG above the table, empty for none; numeric: columns that are numbers
    """

    title: str
    caption: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    look: frozenset[int] = frozenset()
    chart: str = ""
    numeric: frozenset[int] = frozenset()


@dataclass(frozen=True)
class TableExplanations(Generic[I, W]):
    """Implements bench.pages.capabilities.Explainable for reasons that are shown as tables.

    items: their name in a refusal; find_reason: from an item and steps; tables, advice: of a reason, see `tables_body`
    """

    items: str
    find_reason: Callable[[I, Sequence[Step[Any]]], W]
    tables: Callable[[W], Sequence[WhyTable]]
    advice: Callable[[W], Sequence[str]]

    def explain(self, item: I, steps: Sequence[Step[Any]]) -> W:
        try:
            return self.find_reason(item, steps)
        except BudgetSpent as spent:
            raise CalibrantError(f"{in_one_line(item.id)} cannot be explained: {spent}") from None

    def body(self, why: W, prefix: str) -> Markup:
        return tables_body(why, self.tables(why), self.advice(why), prefix)

    def drawing(self, why: W) -> str:
        raise CalibrantError(f"`show --svg` does not draw {self.items}; --html does")

    def lines(self, why: W) -> Iterator[str]:
        return tables_lines(why, self.tables(why), self.advice(why))


def tables_body(why: Why, tables: Sequence[WhyTable], advice: Sequence[str], prefix: str) -> Markup:
    """Return the contents of a page; advice: heading of what would settle it, then sentences; empty for none."""
    content = {
        "why": why,
        "prefix": prefix,
        "advice": list(advice),
        "tables": [
            {
                "title": table.title,
                "caption": table.caption,
                "headings": table.headings,
                "numeric": table.numeric,
                "chart": Markup(table.chart),
                "lines": [{"cells": row, "look": k in table.look} for k, row in enumerate(table.rows[:MAX_ROWS])],
                "more": len(table.rows) - MAX_ROWS,
            }
            for table in tables
        ],
        "json_text": json.dumps(why.to_dict(), indent=1, ensure_ascii=False),
    }
    return Markup(html_page("why/tables.html", content))


def tables_lines(why: Why, tables: Sequence[WhyTable], advice: Sequence[str]) -> Iterator[str]:
    """Yield the lines of the terminal."""
    yield why.title
    yield why.reason_text
    yield "  ".join(f"[{fact.text}]" for fact in why.facts)
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
    experiments: Sequence[Experiment], title: str, caption: str, noun: str, hypotheses: str
) -> WhyTable:
    """Return every next experiment: how many readings it may give, and what they leave."""
    rows = []
    for experiment in experiments:
        numbers = [int(outcome.remaining) for outcome in experiment.outcomes]
        answers = [outcome.answers for outcome in experiment.outcomes]
        rows.append(
            (
                experiment.in_words,
                str(len(numbers)),
                _range(numbers),
                f"{experiment.expected:.1f}" if experiment.expected < 1000 else number_text(round(experiment.expected)),
                "decides"
                if experiment.decides
                else "nothing new"
                if len(numbers) == 1
                else f"{_range(answers)} answers",
                "; ".join(
                    f"{outcome.reading}: {number_text(int(outcome.remaining))}" for outcome in experiment.outcomes
                )
                if len(numbers) <= MAX_OUTCOMES
                else "",
            )
        )
    headings = (noun, "readings", f"{hypotheses} left", "expected", "effect", "each")
    look = frozenset({0} if experiments and len(experiments[0].outcomes) > 1 else ())
    return WhyTable(title, caption, headings, tuple(rows), look, numeric=frozenset({1, 2, 3}))


def _range(numbers: Sequence[int]) -> str:
    low, high = number_text(min(numbers, default=0)), number_text(max(numbers, default=0))
    return low if low == high else f"{low} to {high}"


def best_advice(experiments: Sequence[Experiment], noun: str, hypotheses: str) -> tuple[str, ...]:
    """Return the heading and sentence about the best experiment; empty where nothing is told apart."""
    if not experiments or len(experiments[0].outcomes) < 2:
        return ()
    best = experiments[0]
    if best.decides:
        return (f"The {noun} that decides", f"{best.in_words}: every reading that it may give leaves one answer.")
    numbers = [int(outcome.remaining) for outcome in best.outcomes]
    sentence = f"{best.in_words}: it leaves {_range(numbers)} {hypotheses}, {best.expected:.1f} expected."
    return (f"The {noun} that helps most", sentence, f"No single {noun} is sure to decide.")
