"""Pages on the reasons why items are open: of one item, of many, and tables that benchmarks share."""

from __future__ import annotations

import base64
import gzip
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from shlex import quote
from typing import Any

from markupsafe import Markup, escape

from calibrant.audits.why import Experiment, Why, expected_text, number_text
from calibrant.bench.core.registry import benchmark
from calibrant.bench.pages.capabilities import EXPLANATIONS
from calibrant.bench.pages.page import Lesson, WhyTable, design_page, html_page
from calibrant.bench.pages.terminal_tables import aligned
from calibrant.bench.runs.audits import ReasonRecord, explain_item
from calibrant.bench.runs.executors import Execution, Failure, Jobs
from calibrant.bench.runs.workers import as_completed
from calibrant.dsl.text import plural

# --- The page of a `Why` of any benchmark -----------------------------------------------------------------------------
POOL = Markup('<span class="pool">POOL</span>')  # placeholder of the pool's path; escaped texts cannot contain it


def with_pool(body: Markup, pool: Path) -> Markup:
    """Replace the placeholder POOL in the commands of a page's body."""
    return body.replace(POOL, escape(quote(str(pool))))


def why_page(why: Why, body: Markup, *crumbs: str) -> str:
    """Return one HTML file. body: the benchmark's part; crumbs: file and item, or command and file."""
    return design_page("why/why.html", {"title": why.title, "crumbs": crumbs, "body": body, "item": why.item})


# --- Lessons for a class: the reason step by step, with a vote before the answer --------------------------------------
NOT_DECIDED = "The data do not say"
THEN = "Nothing settles it at once: add what it shows to the data, and ask again."


def general_lesson(why: Why, evidence: WhyTable, words: tuple[tuple[str, str], ...], advice: Sequence[str]) -> Lesson:
    """Return a lesson for any reason, with a vote on whether the data leave one answer."""
    choices = ("Yes, exactly one", "No, more than one fits", "No, nothing fits")
    answer = {"decided": 0, "open": 1, "empty": 2}.get(why.state)
    headings = {"decided": "One answer is left", "open": "More than one fits", "empty": "Nothing fits"}
    return Lesson(
        *(why.item, (), evidence, words, "Do these data leave exactly one answer?", choices, answer),
        heading=headings.get(why.state, "That was not counted"),
        verdict=(why.reason_text,),
        advice=tuple(advice),
    )


def class_advice(experiments: Sequence[Experiment], look_at: str, hypotheses: str) -> tuple[str, ...]:
    """Return heading and sentences on the best next experiment; () if it cannot separate hypotheses.

    look_at: what to observe after it; hypotheses: plural noun
    """
    if not experiments or len(experiments[0].outcomes) < 2:
        return ()
    best = experiments[0]
    numbers = [int(outcome.remaining) for outcome in best.outcomes]
    action = f"{best.in_words[0].upper()}{best.in_words[1:]}, and look at {look_at}."
    if best.decides:
        return ("What settles it", action, "Whatever that shows, one answer is left.")
    effect = f"That leaves {number_range(numbers)} of {plural(sum(numbers), hypotheses)}."
    return ("What helps most", action, effect, THEN)


def steps_page(lessons: Sequence[Lesson], *crumbs: str, title: str = "") -> str:
    """Return one HTML file of lessons in large type; votes are counted in the page and sent nowhere.

    title: by default a neutral question
    """
    title = title or "What do the data say?"
    items = [
        {
            "lesson": lesson,
            "evidence": shown_table(lesson.evidence),
            "comparison": lesson.comparison and shown_table(lesson.comparison),
            "models": [(model.title, model.lines, Markup(model.chart)) for model in lesson.models],
        }
        for lesson in lessons
    ]
    return design_page("why/steps.html", {"title": title, "crumbs": crumbs, "items": items})


# --- Index page of many items: id, verdict, count and reason of each, with the pages of the first ones embedded -------
MAX_EMBEDDED = 200  # embedded pages, of 20 to 120 kB each
MAX_BYTES = 15_000_000  # of all embedded pages
MAX_PLAIN_BYTES = 1_000_000  # of an uncompressed list: 100,000 reasons have about 20 MB
HEADINGS = ("item", "verdict", "fit", "reason")
STATES = ("open", "decided", "empty", "uncounted", "unexplained")


@dataclass(frozen=True)
class IndexItem:
    """A line of the list.

    reason: summary; body: contents of its page, empty for none; verdict: by default the state of the reason
    cells: texts of further columns
    """

    id: str
    reason: ReasonRecord
    body: Markup = field(default_factory=Markup)
    verdict: str = ""
    cells: tuple[str, ...] = ()


@dataclass(frozen=True)
class IndexText:
    """Texts around the list.

    crumb: name of the kind of page; command: command for the page of one item, with placeholders ID and FILE
    columns: headings of the further cells; chips: (value, text) facts; sections: HTML below the list; footer: its end
    """

    title: str
    crumb: str
    command: str
    columns: tuple[str, ...] = ()
    chips: Sequence[tuple[str, str]] = ()
    sections: Markup = field(default_factory=Markup)
    footer: str = ""


def index_page(pool: str, items: Iterable[IndexItem], text: IndexText | None = None) -> str:
    """Return one HTML file of the items of a pool.

    At most MAX_EMBEDDED pages, of MAX_BYTES in all, are embedded; ids in them must be unique in the file.
    """
    if text is None:
        command = f"calibrant show {pool} ID --why --html FILE"
        text = IndexText(f"Why are items of \u201c{pool}\u201d ambiguous?", "Reasons", command)
    rows: list[list[str | int | None]] = []
    bodies: list[Markup] = []
    states: Counter[str] = Counter()
    size = 0
    for item in items:
        states[item.reason.state] += 1
        body_index = None
        if item.body and len(bodies) < MAX_EMBEDDED and size + len(item.body) <= MAX_BYTES:
            body_index = len(bodies)
            bodies.append(item.body)
            size += len(item.body)
        verdict = item.verdict or item.reason.state
        rows.append([body_index, item.id, verdict, item.reason.fit, item.reason.reason, *item.cells])
    packed, is_compressed = _packed(rows)
    content = {
        "text": text,
        "title": text.title,
        "crumbs": [text.crumb, pool],
        "summary": _summary(len(rows), states),
        "note": _note(len(rows), len(bodies), text.command),
        "bodies": bodies,
        "headings": (*HEADINGS, *text.columns),
        "rows": packed,
        "is_compressed": is_compressed,
    }
    return design_page("why/index.html", content)


def _packed(rows: Sequence[Sequence[str | int | None]]) -> tuple[Markup, bool]:
    """Return the rows as JSON for a script element, and whether it is gzipped and in base64, as long lists are."""
    packed = json.dumps(rows, ensure_ascii=False, separators=(",", ":"))
    if len(packed) > MAX_PLAIN_BYTES:
        compressed = gzip.compress(packed.encode("utf-8", "replace"), mtime=0)
        return Markup(base64.b64encode(compressed).decode("ascii")), True
    return Markup(packed.replace("<", "\\u003c").replace("&", "\\u0026")), False


def _summary(num_items: int, states: Counter[str]) -> str:
    parts = [f"{number_text(states[state])} {state}" for state in STATES if states[state]]
    return f"{number_text(num_items)} item{'s' * (num_items != 1)}: {', '.join(parts) or 'none'}."


def _note(num_items: int, num_embedded: int, command: str) -> str:
    if num_embedded == num_items:
        return "Every item has its page here."
    have = "has its page" if num_embedded == 1 else "have their page"
    return f"{num_embedded} of {number_text(num_items)} items {have} here; for another: {command}"


# --- Pages of the reasons of many items, made by several processes ----------------------------------------------------


def page_bodies(name: str, items: Sequence[Any], indices: Iterable[int], execution: Execution) -> Mapping[int, Markup]:
    """Return index in the pool -> contents of the page, for the first MAX_EMBEDDED of these items that have a reason.

    name: of the benchmark; indices: index of each of `items` in the pool
    """
    chosen = dict(zip(indices, range(MAX_EMBEDDED), strict=False))
    jobs = Jobs(chosen, lambda index: (index, items[chosen[index]]))
    bodies = dict(as_completed(partial(_body, name), jobs, execution))
    return {index: body for index, body in sorted(bodies.items()) if body and not isinstance(body, Failure)}


def _body(name: str, job: tuple[int, Any]) -> Markup:
    index, item = job
    why = explain_item(benchmark(name), item)
    return Markup("") if isinstance(why, str) else benchmark(name).require(EXPLANATIONS).body(why, f"i{index}")


# --- Reasons as a few tables and one recommendation, for blickets, CausaLab and CauSim --------------------------------
MAX_ROWS = 60  # of a table on a page or terminal; JSON has all
MAX_UNFOLDED = 12  # rows that a page shows unfolded, so that the text after the table stays in view
MAX_OUTCOMES = 6  # of an experiment; more are not listed one by one


def tables_body(why: Why, tables: Sequence[WhyTable], advice: Sequence[str], prefix: str) -> Markup:
    """Return the contents of a page. advice: heading and sentences on the deciding experiment, empty for none."""
    content = {
        "why": why,
        "prefix": prefix,
        "advice": list(advice),
        "tables": [shown_table(table) for table in tables],
        "json_text": page_json(why),
    }
    return Markup(html_page("why/tables.html", content))


def page_json(why: Why) -> str:
    """Return the JSON of a page, with at most MAX_ROWS outcomes of an experiment and the number of omitted ones."""
    content = why.to_dict()
    for experiment in content.get("experiments", ()):
        outcomes = experiment["outcomes"]
        if len(outcomes) > MAX_ROWS:
            experiment["outcomes"] = outcomes[:MAX_ROWS]
            experiment["outcomes_left_out"] = len(outcomes) - MAX_ROWS
    return json.dumps(content, indent=1, ensure_ascii=False)


def shown_table(table: WhyTable) -> dict[str, Any]:
    """Return the content of a table for templates."""
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


def tables_lines(
    why: Why, tables: Sequence[WhyTable], advice: Sequence[str], decided: Sequence[str] = ()
) -> Iterator[str]:
    """Yield lines for a terminal. decided: lines on the only fitting answer, empty if there is none."""
    yield why.title
    yield why.reason_text
    yield "  ".join(f"[{fact.text}]" for fact in (*why.facts, *why.sealed))
    if decided:
        yield ""
        yield from decided
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
    """Return a table of the next experiments: number of possible readings, and of hypotheses that these leave.

    lists_outcomes: add a column of single outcomes, for experiments with at most MAX_OUTCOMES
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
                number_range(numbers),
                expected_text(experiment.expected),
                "decides"
                if experiment.decides
                else "nothing new"
                if len(numbers) == 1
                else f"{number_range(answers)} answers",
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
    """Return headings and rows, without this column if all its cells are empty."""
    if any(row[column] for row in rows):
        return headings, tuple(rows)
    return headings[:column] + headings[column + 1 :], tuple(row[:column] + row[column + 1 :] for row in rows)


def number_range(numbers: Sequence[int]) -> str:
    """Return the text "least to largest", one number if they are equal."""
    low, high = number_text(min(numbers, default=0)), number_text(max(numbers, default=0))
    return low if low == high else f"{low} to {high}"


def best_advice(experiments: Sequence[Experiment], noun: str, hypotheses: str, compared: str = "") -> tuple[str, ...]:
    """Return heading and sentences on the best experiment; () if it cannot separate hypotheses.

    compared: description of the compared experiments, if these are not all
    """
    if not experiments or len(experiments[0].outcomes) < 2:
        return ()
    best = experiments[0]
    if best.decides:
        return (f"The {noun} that decides", f"{best.in_words}: every reading that it may give leaves one answer.")
    numbers = [int(outcome.remaining) for outcome in best.outcomes]
    sentence = (
        f"{best.in_words}: it leaves {number_range(numbers)} {hypotheses}, {expected_text(best.expected)} expected."
    )
    return (f"The {noun} that helps most", sentence, f"No single {noun}{compared} is sure to decide.")
