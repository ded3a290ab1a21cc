"""Section of a report about CauSim: its tables, figures, and overview of single answers."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import prod
from statistics import fmean
from typing import Any, Final

from calibrant.bench.answers.rates import natural
from calibrant.bench.causim.benchmark import BENCHMARK
from calibrant.bench.causim.paper import (
    ShownProgram,
    check_references,
    level_of,
    paper,
    paper_tables,
    questions_asked,
    shown_programs,
    with_sources,
)
from calibrant.bench.causim.verdict import METRICS, first_reason, is_answered, is_right, mark_abduction
from calibrant.bench.core.metrics import Item
from calibrant.bench.core.scoring import AnswerContext, participant_of
from calibrant.bench.core.verdict import change_score
from calibrant.bench.pages.charts import Axis, Line, Mark, Panel, Part, panels_svg, stacked_svg
from calibrant.bench.report.comparisons import over_settings
from calibrant.bench.report.layout import Cell, Heading, Source, Table, own_rows
from calibrant.bench.report.overview.contract import Cost, Explanation, Levels, LevelWords, Score, Words
from calibrant.bench.report.overview.sentences import answer_text, class_sentence
from calibrant.bench.report.people import group_people
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
    view_table,
)
from calibrant.bench.report.sources import items_of_pools
from calibrant.bench.report.table import ResultTable, sample_table
from calibrant.bench.runs.executors import Progress
from calibrant.dsl.causim.item import CausimItem
from calibrant.dsl.causim.model import plain
from calibrant.dsl.errors import in_one_line
from calibrant.solvers.causim.exact import AnswerSet
from calibrant.solvers.causim.space import work_solution
from calibrant.solvers.outcome import Found

# --- Overview of single answers: words, levels of chance, explanation of an answer ------------------------------------
_WHY = {
    "no_object": "There is no JSON object in the response.",
    "wrong_keys": "The object does not have exactly the required keys.",
    "wrong_answer": "No world that fits gives this answer.",
}


class ProgramGuide:
    """Implements Guide; an answer drawn from the worlds consistent with the evidence is always right."""

    words = Words(
        task="read a program and some values of a run, and state others",
        items="questions",
        hypotheses="worlds",
        decided="with one right answer",
        levels=LevelWords(guess="a guess from the domains of the values"),
        cost=Cost("seconds", ""),
        uncounted="attribution covers questions that state that they have one answer",
    )

    def is_answered(self, score: Score) -> bool:
        return is_answered(score)

    def levels(self, item: CausimItem, steps: Sequence[Any], score: Score) -> Levels:
        """Return the share of right answers among all assignments of domain values to the required keys."""
        model, question = item.task.model, item.task.question
        size = AnswerSet(model, question).size()
        if not isinstance(size, Found):
            return Levels()
        domains = {node.name: local.domain for node, local in zip(model.nodes, model.system, strict=True)}
        domains |= {node.noise: node.support for node in model.nodes}
        return Levels(float(size.value / prod(len(domains[key]) for key in question.required_keys(model))))

    def explain(
        self,
        item: CausimItem | None,
        context: AnswerContext,
        answer: Mapping[str, Any] | str,
        steps: Sequence[Any],
        score: Score,
    ) -> Explanation:
        sentences = [class_sentence(score, is_right=METRICS.success.is_right(score, ""))]
        if item is not None and item.labels.size > 1:
            sentences.append(f"{item.labels.size} answers are right; any of them counts.")
        nodes = score.get("nodes") or {}
        wrong = {name: reason for name, reason in nodes.items() if reason != "ok"}
        chips = [("bad", f"{name}: {reason}") for name, reason in list(wrong.items())[:4]]
        flags = [name for name in ("trivial", "copyable", "vacuous") if score.get(name) is True]
        return Explanation(
            sentences=tuple(sentences),
            response=_values_text(answer) if isinstance(answer, Mapping) and answer else answer_text(answer),
            gold="" if item is None else _gold(item),
            response_note="" if item is None else f"{item.task.question.type}, {item.task.scenario}",
            gold_note="a right answer",
            chips=(*chips, *(("warn", name) for name in flags)),
            verdict_note=_WHY.get(score.get("why") or "", ""),
        )


def _gold(item: CausimItem) -> str:
    outcome = work_solution(item.task.model, item.task.question)
    return _values_text(plain(outcome.value.answer)) if isinstance(outcome, Found) else ""


def _values_text(answer: Mapping[str, Any]) -> str:
    """Return an answer as people type it, a line for each variable."""
    texts = ((name, v if isinstance(v, str) else json.dumps(v, ensure_ascii=False)) for name, v in answer.items())
    return "\n".join(in_one_line(f"{name} = {text}") for name, text in texts)


GUIDE = ProgramGuide()


def expect(item: CausimItem, steps: Sequence[Any], score: Score) -> dict[str, float | None]:
    """Return the chance of a value drawn for each required key; the answer of any world that fits is right."""
    guess = GUIDE.levels(item, steps, score).guess
    return {"uniform": None, "draw": guess, "best": None if guess is None else 1.0}


# --- Plot of the error profile: right answers, and reasons of the first wrong node, by number of nodes ----------------
RIGHT, UNTOLD, NOTHING = "right", "wrong, no reason by node", "no answer"
PARTS: Final = {
    RIGHT: Part("good"),
    "do ignored": Part("warn"),
    "impossible": Part("bad"),
    "wrong noise": Part("gold"),
    UNTOLD: Part("edge"),
    NOTHING: Part("sunk"),
}
_CAPTION = (
    "Share of answers by number of nodes: right, or by the reason of the first node in topological order that is not."
    " Do ignored: an intervened node has another value; impossible: no noise gives the value from the answer's own"
    " parents; wrong noise: some does, none that the evidence allows. Abductions have no reason by node."
)


def answer_class(score: Mapping[str, Any]) -> str:
    """Return the class of an answer, a key of PARTS: right, the reason of its first wrong node, or without answer."""
    if is_right(score):
        return RIGHT
    return first_reason(score) or UNTOLD if is_answered(score) else NOTHING


def class_shares(named: Sequence[NamedAnswer]) -> dict[str, dict[int, dict[str, float]]]:
    """Return by system and number of nodes the share of answers of each class in PARTS.

    Each question has the same weight. People are one system, in which each participant has the same weight.
    """
    questions: dict[tuple[str, int, str], dict[tuple[str, str], list[str]]] = {}
    for answer in group_people(named):
        context = answer.context
        key = answer.system, level_of(context.stratum).nodes, participant_of(context.system)
        classes = questions.setdefault(key, {}).setdefault((context.pool_digest, context.instance), [])
        classes.append(answer_class(answer.score))
    participants: dict[tuple[str, int], list[dict[str, float]]] = {}
    for (system, nodes, _), by_question in questions.items():
        shares = {name: fmean(f.count(name) / len(f) for f in by_question.values()) for name in PARTS}
        participants.setdefault((system, nodes), []).append(shares)
    by_system: dict[str, dict[int, dict[str, float]]] = {}
    for (system, nodes), per_participant in participants.items():
        means = {name: fmean(shares[name] for shares in per_participant) for name in PARTS}
        by_system.setdefault(system, {})[nodes] = means
    return {system: dict(sorted(by_system[system].items())) for system in sorted(by_system, key=natural)}


def profile_plot(named: Sequence[NamedAnswer]) -> Plot | None:
    """Draw a panel for each system with a stacked bar for each number of nodes; None without answers."""
    panels = {
        system: {f"{nodes} nodes": list(shares.values()) for nodes, shares in levels.items()}
        for system, levels in class_shares(named).items()
    }
    if not panels:
        return None
    svg = stacked_svg(panels, PARTS, "Error profile", "share of answers")
    return Plot("causim-profile", "Error profile", _CAPTION, svg)


# --- Figures of the CauSim paper: pass@1 by number of nodes, a line a system, a panel a kind of question --------------
FIGURES = {
    ("3", "4"): "Programs with 5 training instances",
    ("5", "6"): "Programs with 15 training instances",
    ("11", "12", "13"): "Medical prose",
    ("17", "18", "19"): "Prose, inverted star",
    ("20", "21", "22"): "Prose, three topologies",
    ("33",): "NIHSS",
}
CAPTION = "Share of right answers by number of nodes, with Wilson's 95 % intervals of ours. Hollow and dashed: printed."


def causim_figures(tables: Sequence[Table]) -> Iterator[Plot]:
    """Yield a plot for each group of tables of which one has rows of ours."""
    by_number = {table.id: table for table in tables}
    for numbers, title in FIGURES.items():
        group = [by_number[number] for number in numbers if number in by_number]
        panels = [_pass_rate_panel(table) for table in group if any(row.source is Source.OURS for row in table.rows)]
        if panels:
            name = f"causim-nodes-{'-'.join(numbers)}"
            yield Plot(name, title, CAPTION, panels_svg(panels, Axis("nodes"), Axis("pass@1", 0, 1), title))


def _pass_rate_panel(table: Table) -> Panel:
    nodes = [float(heading.text) for heading in table.headings]
    lines = []
    for row in table.rows:
        marks = tuple(
            mark
            for num_nodes, cell in zip(nodes, row.cells, strict=True)
            if (mark := _mark(num_nodes, cell)) is not None
        )
        lines.append(Line(row.labels[0], marks, row.source is Source.PAPER))
    questions = paper().tables[table.id].questions
    return Panel(f"Table {table.id}: {questions} questions", tuple(lines))


def _mark(nodes: float, cell: Cell) -> Mark | None:
    try:
        value = float(cell.text)
    except ValueError:
        return None
    return Mark(nodes, value, *((float(cell.low), float(cell.high)) if cell.low else (None, None)))


# --- Section of a report about CauSim ---------------------------------------------------------------------------------
BY_LEVEL = "errors"  # the view whose rows are numbers of nodes
SAMPLES = "causim-samples"
PRINTED = ("3", "4", "5", "6", "11", "12", "13", "17", "18", "19", "20", "21", "22", "25", "33", "34")
TABLE_IDS = (*(view.id for view in METRICS.views.values()), SAMPLES, *PRINTED)
_BY_TOPOLOGY = {"setting": "Type and scenario", "stratum": "Topology"}
_BY_LEVEL = {"setting": "Type", "stratum": "Nodes"}


def causim_section(
    title: str, answers: Sequence[Answer], contents: ReportContents, programs: Mapping[Item, ShownProgram] | None = None
) -> Section:
    """Return tables and plots of answers; `NoAnswersError` if none of the requested tables has any.

    programs: view and vocabulary of items; by default of those in the report's pools
    """
    if programs is None:
        programs = shown_programs(items_of_pools("causim", contents.pools))
    entries = named_answers(answers)
    questions = questions_asked(entries, programs)
    printed = paper_tables(questions)
    compared = paper_tables(questions, contents.against) if contents.against else printed
    contexts = (context for context, _ in answers)
    unread = {c.system: c.pool for c in contexts if (c.pool_digest, c.instance) not in programs}
    check_references(compared, contents.against, unread)
    rows = section_rows(answers, METRICS, Grouping.SETTING)
    return Section.of(
        title,
        interval_note(rows, items="questions", unit="program"),
        answers,
        _tables(entries, answers, contents, compared),
        (
            *(_plots(entries, rows) if contents.with_plots else ()),
            *(_figures(printed, with_paper=contents.with_paper) if contents.with_pictures else ()),
        ),
    )


def _tables(
    entries: Sequence[NamedAnswer],
    answers: Sequence[Answer],
    contents: ReportContents,
    compared: Sequence[Table],
) -> tuple[Table, ...]:
    rows = section_rows(by_topology(answers), METRICS, contents.by)
    notes = coverage_notes(entries)
    levels = section_rows(by_level(answers), METRICS, contents.by)
    if len({(row.setting, row.stratum) for row in rows}) > 1:
        rows += section_rows(over_settings(_with_types(answers)), METRICS, contents.by)
    views = [
        _label_table(view_table(view, levels, notes), _BY_LEVEL)
        if name == BY_LEVEL
        else _label_table(view_table(view, rows, notes), _BY_TOPOLOGY)
        for name, view in METRICS.views.items()
    ]
    samples = _samples(answers, contents.by)
    printed = [with_sources(table, with_paper=contents.with_paper) for table in compared]
    tables = [
        *views,
        *([] if samples is None else [samples]),
        *(table for table in printed if table.fits or contents.with_paper),
    ]
    selection = [table for table in tables if table.headings and (not contents.tables or table.id in contents.tables)]
    if not selection:
        raise NoAnswersError(f"no answers that belong into table {', '.join(sorted(contents.tables))}")
    return tuple(selection)


def _with_types(answers: Iterable[Answer]) -> Iterator[Answer]:
    """Yield the answers with scores that keep what depends on the type of their question."""
    for context, score in answers:
        yield context, change_score(score, partial(mark_abduction, context.setting))


def by_topology(answers: Iterable[Answer]) -> list[Answer]:
    """Return the answers with the topology as their stratum."""
    return [(context._replace(stratum=level_of(context.stratum).topology), score) for context, score in answers]


def by_level(answers: Iterable[Answer]) -> list[Answer]:
    """Return the answers with the type as their setting and the number of nodes as their stratum."""
    return [
        (
            context._replace(setting=context.setting.partition("-")[0], stratum=str(level_of(context.stratum).nodes)),
            score,
        )
        for context, score in answers
    ]


def _label_table(table: Table, texts: Mapping[str, str]) -> Table:
    return replace(
        table, labels=tuple(Heading(heading.key, texts.get(heading.key, heading.text)) for heading in table.labels)
    )


def _samples(answers: Sequence[Answer], by: Grouping) -> Table | None:
    results = ResultTable(METRICS, by=by)
    for context, score in answers:
        results.add(context, score)
    table = sample_table(results.sample_rows(), METRICS.rights)
    return None if table is None else replace(table, id=SAMPLES)


def _figures(tables: Sequence[Table], *, with_paper: bool) -> Iterator[Plot]:
    """Yield the paper's figures, with printed rows or without them."""
    yield from causim_figures(tables if with_paper else [own_rows(table) for table in tables])


def _plots(named: Sequence[NamedAnswer], rows: Sequence[Row]) -> list[Plot]:
    kinds = attribution_plot(rows, KINDS)
    return [plot for plot in (profile_plot(named), kinds) if plot is not None]


def _panel(row: Row) -> str:
    return row.setting


KINDS = KindPlot(
    "causim-kinds",
    "Earned, missed, lucky, short",
    "Shares of answers: of questions that are said to have one answer, earned and missed where they have, right and"
    f" wrong; lucky and short where several are right. A panel for each type. {OTHERS}",
    _panel,
)


class CausimReport:
    """Implements Reportable (bench.report.capabilities)."""

    table_ids = TABLE_IDS

    def section(self, answers: Sequence[Answer], contents: ReportContents, progress: Progress) -> Section:
        return causim_section(BENCHMARK.title, answers, contents)


REPORT = CausimReport()
