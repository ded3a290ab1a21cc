"""Section of a report about CausaLab, its figures, and its overview of single runs."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from math import isnan
from typing import Any

import numpy as np

from calibrant.audits.causalab.attribution import RunSpace, frequency_posterior, run_space
from calibrant.bench.answers.rates import Means, natural, normal_difference
from calibrant.bench.causalab.benchmark import BENCHMARK
from calibrant.bench.causalab.items import lab_picture
from calibrant.bench.causalab.paper import TABLE_NUMBERS, paper_tables, without_printed
from calibrant.bench.causalab.scoring import GRAPH, METRICS
from calibrant.bench.core.attribution import KEY, decision_notes
from calibrant.bench.core.metrics import Item
from calibrant.bench.core.scoring import AnswerContext
from calibrant.bench.pages.charts import Axis, Line, Mark, Panel, panels_svg
from calibrant.bench.pages.graphs import GraphPicture, graphs_svg
from calibrant.bench.report.capabilities import Hypothesis, Remaining, first_entries
from calibrant.bench.report.layout import NOTHING, Cell, Heading, Source, Table, TableRow, anchor_of, cell
from calibrant.bench.report.overview.contract import Cost, Explanation, Levels, LevelWords, Move, Score, Words
from calibrant.bench.report.overview.sentences import class_sentence, fit_text
from calibrant.bench.report.rows import Answer, Grouping, NamedAnswer, Row, coverage_notes, named_answers, section_rows
from calibrant.bench.report.sections import (
    OTHERS,
    KindPlot,
    NoAnswersError,
    Plot,
    ReportContents,
    Section,
    attribution_plot,
    interval_note,
    view_tables,
)
from calibrant.bench.report.sources import items_of_pools
from calibrant.bench.runs.executors import Progress
from calibrant.dsl.causalab.item import LabItem
from calibrant.dsl.causalab.mechanism import FREQUENCY, TOLERANCE, accurate
from calibrant.dsl.episode import Step
from calibrant.dsl.errors import CalibrantError, in_one_line, short_repr
from calibrant.dsl.text import plural
from calibrant.solvers.causalab.evidence import predict_frequency
from calibrant.solvers.causalab.space import MAX_LISTED, WeightedDags
from calibrant.solvers.outcome import BudgetSpent

# --- Overview of single runs: attribution of the frequency, levels of chance, a run in words --------------------------
LAST_STEPS = 6  # steps of a run that are shown
MAX_VALUES = 8  # values of a reading that are shown
_HEADINGS = ("Step", "Action", "Read")


class LabGuide:
    """Implements AnswerGuide (bench.report.overview.contract); chance: the prediction of a random mechanism."""

    words = Words(
        task="set dials, and state what causes a crystal's frequency",
        items="laboratories",
        hypotheses="mechanisms",
        decided="decided by its own settings",
        levels=LevelWords("", "a draw from the mechanisms left", "the best single frequency for them"),
        cost=Cost("settings", "settings_used"),
    )

    def is_answered(self, score: Score) -> bool:
        return score["frequency"] is not None

    def levels(self, item: LabItem, steps: Sequence[Step[Any]], score: Score) -> Levels:
        """Return chance and ceiling as shares of the consistent mechanisms; empty if these are not enumerated."""
        if not steps:
            return Levels()
        try:
            verdicts: Mapping[float, int] = run_space(item, steps).verdicts()
        except BudgetSpent:
            return Levels()
        total = sum(verdicts.values())
        right = sum(number for value, number in verdicts.items() if accurate(value, item.sealed.target))
        return Levels(None, right / total, largest_share(verdicts))

    def explain(
        self,
        item: LabItem | None,
        context: AnswerContext,
        answer: Mapping[str, Any] | str,
        steps: Sequence[Step[Any]],
        score: Score,
    ) -> Explanation:
        recorded = score.get(KEY) or {}
        members = recorded.get("members")
        remaining = (
            f" {fit_text(members, 'mechanism', 'mechanisms')} its {plural(score['settings'], 'settings')}."
            if members
            else ""
        )
        graph = recorded.get("graph") or {}
        dialled = score["frequency"]
        is_right = METRICS.success.is_right(score, "")
        return Explanation(
            sentences=(class_sentence(score, is_right=is_right) + remaining, _graph_sentence(graph)),
            response="nothing was dialled"
            if dialled is None
            else f"frequency {dialled:g}\n{_hypothesis(answer)}".strip(),
            gold="" if item is None else _gold(item),
            response_note=f"after {score['settings']} settings"
            + ("" if item is None else f" of {item.task.allowance}"),
            gold_note="the reactor crystal's frequency, and the edges of the mechanism",
            chips=(
                ("good", "graph right")
                if score["graph_correct"] is True
                else ("bad", f"graph wrong, SHD {score['shd']}"),
                ("", f"edge F1 {score['all_edge_f1']:.3f}"),
            ),
            verdict_note="A frequency counts within 5.",
            headings=_HEADINGS if steps else (),
            moves=tuple(_last_steps(steps)),
        )


def largest_share(verdicts: Mapping[float, int]) -> float:
    """Return the largest share of mechanisms that one frequency is right for, by a sweep over sorted predictions.

    An answer is right for predictions less than TOLERANCE away, so for an open window of twice that width.
    """
    values = sorted(value for value in verdicts if not isnan(value))
    before = [0, *accumulate(verdicts[value] for value in values)]
    best, total = 0, sum(verdicts.values())
    for first, value in enumerate(values):
        end = bisect_right(values, value + 2 * TOLERANCE)
        while end > first and values[end - 1] - value >= 2 * TOLERANCE:
            end -= 1  # the end of an open window does not count
        best = max(best, before[end] - before[first])
    return best / total


def _graph_sentence(graph: Mapping[str, Any]) -> str:
    if not graph:
        return ""
    return "The graph was decided too." if graph.get("decided") else "The graph was not decided."


def _hypothesis(answer: Mapping[str, Any] | str) -> str:
    hypothesis = answer.get("hypothesis") if isinstance(answer, Mapping) else None
    edges = hypothesis.get("edges") if isinstance(hypothesis, Mapping) else None
    if not isinstance(edges, list):
        return "" if isinstance(answer, Mapping) else answer
    return "\n".join(in_one_line(_edge(edge))[:80] for edge in edges)


def _edge(edge: Any) -> str:
    if isinstance(edge, Mapping):
        return f"{edge.get('from')} \N{RIGHTWARDS ARROW} {edge.get('to')}"
    return json.dumps(edge, default=str)


def _gold(item: LabItem) -> str:
    edges = "\n".join(f"{parent} \N{RIGHTWARDS ARROW} {child}" for parent, child in sorted(item.sealed.mechanism.edges))
    return in_one_line(f"frequency {item.sealed.target:g}") + (f"\n{edges}" if edges else "")


def _last_steps(steps: Sequence[Step[Any]]) -> Iterator[Move]:
    first = max(0, len(steps) - LAST_STEPS)
    for step_number, step in enumerate(steps[first:], first + 1):
        action = ", ".join(f"{key} {_short(value)}" for key, value in step.action.items() if key != "hypothesis")
        reading = step.reading if isinstance(step.reading, Mapping) else {}
        text = ", ".join(f"{key} {_short(value)}" for key, value in list(reading.items())[:MAX_VALUES])
        is_active = reading.get("activated") is True
        yield Move((str(step_number), in_one_line(action)[:160], in_one_line(text or step.refused)[:240]), is_active)


def _short(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:g}"
    return (
        str(value)
        if isinstance(value, str | int)
        else "its hypothesis"
        if isinstance(value, Mapping)
        else "\N{HORIZONTAL ELLIPSIS}"
    )


GUIDE = LabGuide()


# --- Differences of systems on the same laboratories, in points: the shape of the paper's Figure 5 --------------------
ID = "differences"
COLUMNS = {
    "activated": "Activated",
    "edge_f1": "F1",
    "root_f1": "Root F1",
    "frequency_edge_f1": "F1 into F",
    "frequency_weight_f1": "Weights",
}


def difference_table(rows: Sequence[Row], against: Sequence[str]) -> Table | None:
    """Return differences of systems to those in `against`, by suite and pool; `CalibrantError` for an unknown one."""
    systems = {row.system for row in rows}
    for name in against:
        if name not in systems:
            raise CalibrantError(
                f"no system {short_repr(name)} to compare with; there are {', '.join(sorted(systems))}"
            )
    lines = []
    for reference in (row for row in rows if row.system in against):
        for row in rows:
            alike = (row.setting, row.stratum, row.pools.keys()) == (
                reference.setting,
                reference.stratum,
                reference.pools.keys(),
            )
            if alike and row.system != reference.system:
                lines.append(_line(row, reference))
    if not lines:
        return None
    labels = (
        Heading("setting", "Suite"),
        Heading("system", "System"),
        Heading("other", "Compared with"),
        Heading("n", "n"),
    )
    headings = tuple(Heading(f"{key}_difference", f"Δ {text}") for key, text in COLUMNS.items())
    caption = (
        "System minus the other in points of 100, over the laboratories that both answered; in brackets the normal"
        " 95 % interval of the paired differences."
    )
    return Table(ID, "Differences between systems", caption, labels, headings, tuple(lines))


def _line(row: Row, reference: Row) -> TableRow:
    cells = [
        _difference(*(side.frame.item_means(side.column_indices[key]) for side in (row, reference))) for key in COLUMNS
    ]
    number = len({*row.items} & {*reference.items})
    return TableRow((row.setting, row.system, reference.system, str(number)), tuple(cells))


def _difference(first: Means, second: Means) -> Cell:
    mean, interval, _ = normal_difference(first, second, scale=100)
    return NOTHING if mean is None else cell(f"{mean + 0.0:+.1f}", interval, decimals=1, signed=True)


# --- Figures of the CausaLab paper from its tables with our rows: frontiers, lines by nodes and by budget -------------
FRONTIER_X, FRONTIER_Y = "all_edge_f1", "accuracy_percent"
BY_REGIME = ("9", "10", "11", "12")
BY_VARIANT = ("3", "4", "5", "6")
BY_NODES = "7"
FRONTIER_METRICS = {
    "accuracy_percent": "Activated %",
    "all_edge_f1": "All-edge F1",
    "root_f1": "Root F1",
    "freq_weight_f1": "Weight F1",
}
_BUDGET = re.compile(r"([\d.]+)o([\d.]+)i")
_FRONTIER = (
    "Activated against all-edge F1, a {}; hollow and dashed: printed. To the upper right: acts rightly, and knows why."
)


def lab_figures(tables: Sequence[Table]) -> Iterator[Plot]:
    """Yield the figures of the given tables."""
    for table in tables:
        if table.id in BY_VARIANT:
            yield _frontier(table, "arrow from the baseline to each variant", _system_name, arrow=True)
        elif table.id in BY_REGIME:
            yield _frontier(table, "line for each regime and system", _regime_name, arrow=False)
            yield _by_budget(table)
        elif table.id == BY_NODES:
            yield _by_nodes(table)


def _system_name(labels: Mapping[str, str]) -> str:
    return labels["system"]


def _regime_name(labels: Mapping[str, str]) -> str:
    return f"{labels['regime']}, {labels['system']}"


def _labelled(table: Table) -> Iterator[tuple[dict[str, str], dict[str, float], TableRow]]:
    """Yield (labels by key, defined values by key, row) of each row."""
    for row in table.rows:
        labels = dict(zip((heading.key for heading in table.labels), row.labels, strict=True))
        figures = {
            heading.key: value
            for heading, cell in zip(table.headings, row.cells, strict=True)
            if (value := _parse_number(cell.text)) is not None
        }
        yield labels, figures, row


def _parse_number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _interval_ends(table: Table, row: TableRow, key: str) -> tuple[float | None, float | None]:
    cells = dict(zip((heading.key for heading in table.headings), row.cells, strict=True))
    cell = cells.get(key, Cell(""))
    return _parse_number(cell.low), _parse_number(cell.high)


def _frontier(table: Table, words: str, name: Callable[[Mapping[str, str]], str], *, arrow: bool) -> Plot:
    groups: dict[tuple[str, bool, str], list[Mark]] = {}
    for labels, figures, row in _labelled(table):
        if FRONTIER_X in figures and FRONTIER_Y in figures:
            is_printed = row.source is Source.PAPER
            family = labels.get("suite", "")
            note = "" if arrow else labels["budget"]
            mark = Mark(figures[FRONTIER_X], figures[FRONTIER_Y], note=note)
            groups.setdefault((name(labels), is_printed, family), []).append(mark)
    lines = []
    for (system, is_printed, _), marks in groups.items():
        if arrow and len(marks) > 1:
            lines += [Line(system, (marks[0], mark), is_printed, arrow=True) for mark in marks[1:]]
        else:
            lines.append(Line(system, tuple(marks), is_printed))
    title = f"Accuracy and structure, Table {table.id}"
    svg = panels_svg([Panel(table.title, tuple(lines))], Axis("all-edge F1", 0, 1), Axis("activated, %", 0, 100), title)
    return Plot(f"lab-frontier-{table.id}", title, _FRONTIER.format(words), svg)


def _by_budget(table: Table) -> Plot:
    panels = []
    for key in ("accuracy_percent", "all_edge_f1"):
        groups: dict[tuple[str, bool], list[Mark]] = {}
        for labels, figures, row in _labelled(table):
            budget = _BUDGET.fullmatch(labels["budget"])
            if budget and key in figures:
                low, high = _interval_ends(table, row, key)
                scale = 100 if key == "all_edge_f1" else 1
                ends = [None if end is None else end * scale for end in (low, high)]
                total = float(budget[1]) + float(budget[2])
                mark = Mark(total, figures[key] * scale, ends[0], ends[1])
                groups.setdefault((_regime_name(labels), row.source is Source.PAPER), []).append(mark)
        panels.append(_panel(FRONTIER_METRICS[key] + (", %" if key == "all_edge_f1" else ""), groups))
    title = f"By budget, Table {table.id}"
    caption = "Records shown at the start plus settings allowed. Hollow and dashed: printed."
    return Plot(f"lab-budget-{table.id}", title, caption, panels_svg(panels, Axis("budget"), Axis("%", 0, 100), title))


def _by_nodes(table: Table) -> Plot:
    panels = []
    for key, words in FRONTIER_METRICS.items():
        groups: dict[tuple[str, bool], list[Mark]] = {}
        for labels, figures, row in _labelled(table):
            if key in figures:
                scale = 1 if key == "accuracy_percent" else 100
                low, high = (None if end is None else end * scale for end in _interval_ends(table, row, key))
                mark = Mark(float(labels["nodes"]), figures[key] * scale, low, high)
                groups.setdefault((labels["system"], row.source is Source.PAPER), []).append(mark)
        panels.append(_panel(words if key == "accuracy_percent" else f"{words}, %", groups))
    title = "By number of nodes, Table 7"
    caption = "A panel for each metric, a line for each system. Hollow and dashed: printed."
    return Plot("lab-nodes", title, caption, panels_svg(panels, Axis("nodes"), Axis("%", 0, 100), title))


def _panel(title: str, groups: dict[tuple[str, bool], list[Mark]]) -> Panel:
    lines = (Line(name, tuple(sorted(marks)), printed) for (name, printed), marks in groups.items())
    return Panel(title, tuple(lines))


# --- Section of a report about CausaLab -------------------------------------------------------------------------------
TABLE_IDS = (*(view.id for view in METRICS.views.values()), ID, *TABLE_NUMBERS)
MAX_PICTURES = 6
_GRAPHS_CAPTION = (
    f"What the first {MAX_PICTURES} systems stated on the first item of the suite, beside what their own readings"
    " proved; filled: properties that were set, and to what."
)
_KINDS_CAPTION = (
    "Shares of answers by what the readings had decided of the {}: earned and missed where they left one, right and"
    " wrong; lucky and short where they left several, right and wrong. A panel for each suite."
    f" {OTHERS}"
)


def lab_section(
    title: str, answers: Sequence[Answer], contents: ReportContents, items: Mapping[Item, LabItem] | None = None
) -> Section:
    """Tables and plots of these answers; `CalibrantError` if they belong into none of the wanted tables."""
    entries = named_answers(answers)
    at_hand = items_of_pools("causalab", contents.pools) if items is None else items
    printed = paper_tables(entries, at_hand)
    figures = _figures(printed, contents) if contents.with_pictures else ()
    tables = _tables(entries, contents, printed)
    rows = section_rows((entry.answer for entry in entries), METRICS, Grouping.SETTING)
    about = interval_note(rows, items="episodes")
    return Section.of(title, about, answers, tables, (*_plots(entries, rows, contents), *figures))


def _tables(entries: Sequence[NamedAnswer], contents: ReportContents, printed: Sequence[Table]) -> tuple[Table, ...]:
    rows = section_rows((entry.answer for entry in entries), METRICS, contents.by)
    notes = coverage_notes(entries)
    notes_by_view = {"attribution": (*notes, *decision_notes(entry.score for entry in entries))}
    tables = view_tables(METRICS.views, rows, lambda name: notes_by_view.get(name, notes))
    differences = difference_table(rows, contents.against)
    tables += [] if differences is None else [differences]
    tables += printed if contents.with_paper else [without_printed(table) for table in printed if table.fits]
    selection = [table for table in tables if table.headings and (not contents.tables or table.id in contents.tables)]
    if not selection:
        raise NoAnswersError(f"no answers that belong into table {', '.join(sorted(contents.tables))}")
    return tuple(selection)


def _figures(printed: Sequence[Table], contents: ReportContents) -> Iterator[Plot]:
    """Yield the paper's figures, of the tables in which some of the answers have a row."""
    tables = [table for table in printed if table.fits]
    yield from lab_figures(tables if contents.with_paper else [without_printed(table) for table in tables])


def _plots(entries: Sequence[NamedAnswer], rows: Sequence[Row], contents: ReportContents) -> Iterator[Plot]:
    if not contents.with_pictures:
        return
    if contents.with_plots:
        yield from (plot for about in KINDS if (plot := attribution_plot(rows, about)) is not None)
    suites: dict[str, list[NamedAnswer]] = {row.setting: [] for row in rows}
    for entry in entries:
        suites[in_one_line(entry.context.setting)].append(entry)
    for suite, answers in suites.items():
        pictures = _first_item(answers)
        if pictures:
            title = f"Stated graphs, {suite}"
            name = anchor_of(f"lab-graphs {suite}")
            yield Plot(name, title, _GRAPHS_CAPTION, graphs_svg(pictures, f"{name}-"), in_page=True)


def _first_item(answers: Sequence[NamedAnswer]) -> list[GraphPicture]:
    """Return what each system stated on the first item of which that is known; of several samples the first."""
    by_item: dict[tuple[str, str], dict[str, GraphPicture]] = {}
    for answer in sorted(answers, key=lambda answer: (natural(answer.context.instance), answer.context.sample)):
        attribution = answer.score.get(KEY)
        picture = (
            lab_picture(f"{answer.system}, {answer.context.instance}", attribution)
            if isinstance(attribution, Mapping)
            else None
        )
        if picture is not None:
            by_item.setdefault((answer.context.pool_digest, answer.context.instance), {}).setdefault(
                answer.system, picture
            )
    first = next(iter(by_item.values()), {})
    nodes = {node for picture in first.values() for node in picture.nodes}
    ordered = (*sorted(nodes - {FREQUENCY}), FREQUENCY)
    return [replace(first[system], nodes=ordered) for system in sorted(first, key=natural)][:MAX_PICTURES]


def _suite(row: Row) -> str:
    return row.setting


KINDS = tuple(
    KindPlot(
        f"lab-{subject}",
        f"The {subject}: earned, missed, lucky, short",
        _KINDS_CAPTION.format(subject),
        _suite,
        part,
    )
    for subject, part in (("frequency", ""), ("graph", f"{GRAPH}_"))
)


class LabReport:
    """Implements Reportable (bench.report.capabilities)."""

    table_ids = TABLE_IDS

    def section(self, answers: Sequence[Answer], contents: ReportContents, progress: Progress) -> Section:
        return lab_section(BENCHMARK.title, answers, contents)


REPORT = LabReport()


# --- Mechanisms that the readings of a run left open, in words --------------------------------------------------------
BY_FREQUENCY = "by the frequency that they predict"


def list_remaining(item: LabItem, steps: Sequence[Step[Any]], limit: int) -> Remaining | None:
    """List mechanisms, those with fewest edges first; too many, noisy or quadratic ones by predicted frequency."""
    try:
        space = run_space(item, steps)
        is_single = isinstance(space, WeightedDags) and space.count <= MAX_LISTED
        entries = _mechanisms(space) if isinstance(space, WeightedDags) and is_single else _frequencies(space)
        listed = first_entries(entries, limit)
    except BudgetSpent:
        return None
    return Remaining(("mechanism", "mechanisms"), space.count, listed, "" if is_single else BY_FREQUENCY)


def _frequencies(space: RunSpace) -> Iterator[Hypothesis]:
    """Yield the predicted frequencies; of noisy readings the most probable first, else the lowest."""
    verdicts, is_noisy = dict(space.verdicts()), frequency_posterior(space) is not None
    for value in sorted(verdicts, key=lambda v: (isnan(v), -verdicts[v] if is_noisy else 0, v)):
        share = verdicts[value] / space.count if is_noisy else None
        yield Hypothesis(_prediction(value), verdicts[value], share)


def _mechanisms(space: WeightedDags) -> Iterator[Hypothesis]:
    matrices = space.matrices
    flat = matrices.reshape(len(matrices), -1)
    for place in np.lexsort((*flat.T[::-1], (flat > 0).sum(axis=1))).tolist():
        member = space.member(matrices[place])
        edges = [
            f"{cause} -> {node} {weight:g}"
            for node in space.evidence.nodes
            for cause, weight in sorted(member.weights(node).items())
        ]
        text = ", ".join(edges) or "no edges"
        prediction = _prediction(predict_frequency(member, space.evidence))
        yield Hypothesis(f"{text}, base of {FREQUENCY} {member.frequency_base:g}: {prediction}")


def _prediction(frequency: float) -> str:
    return "frequency not determined" if isnan(frequency) else f"frequency {frequency:g}"
