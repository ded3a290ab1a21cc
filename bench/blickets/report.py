"""Section of a report about blickets: its tables, explanations of single answers, and rules that an episode left open.

A switch changes a detector's rule; N is the number of activations after which it comes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, TypeAlias

import msgspec

from calibrant.audits.blickets.attribution import trace_narrowing
from calibrant.audits.why import number_text
from calibrant.bench.blickets.benchmark import BENCHMARK
from calibrant.bench.blickets.paper import CLASSES, PlayedEpisode, paper_tables
from calibrant.bench.blickets.scoring import METRICS, PrintedScore
from calibrant.bench.core.attribution import KEY as ATTRIBUTION_KEY
from calibrant.bench.core.attribution import POSTERIOR, decision_notes
from calibrant.bench.core.registry import benchmark_of
from calibrant.bench.core.scoring import AnswerContext
from calibrant.bench.pages.charts import Part, stacked_svg
from calibrant.bench.report import sections
from calibrant.bench.report.capabilities import Hypothesis, Remaining, first_entries
from calibrant.bench.report.layout import NOTHING, Heading, Source, Table, TableRow
from calibrant.bench.report.overview.contract import Cost, Explanation, Levels, LevelWords, Move, Score, Words
from calibrant.bench.report.overview.sentences import class_sentence, fit_text
from calibrant.bench.report.rows import Answer, Grouping, NamedAnswer, Row, coverage_notes, named_answers, section_rows
from calibrant.bench.runs.executors import Progress
from calibrant.dsl.blickets.generation import SUITES, sample_items
from calibrant.dsl.blickets.item import BlicketItem, all_rules, condition_of, rule_from_json
from calibrant.dsl.blickets.reference import is_active
from calibrant.dsl.episode import Step
from calibrant.dsl.errors import CalibrantError, in_one_line, short_repr
from calibrant.dsl.records import file_digest
from calibrant.dsl.text import plural
from calibrant.solvers.blickets.conditions import OrderSpace
from calibrant.solvers.blickets.exact import DetectorSpace, class_of, space_after
from calibrant.solvers.blickets.space import OneRule

# --- Explanations of single answers about detectors: chances of guessing right, and an episode in words ---------------
MAX_GUESS_OBJECTS = 12  # with more all rules, about 2 ** (n + 1), are not enumerated, and a guess has no stated chance
LAST_MOVES = 6  # shown of an episode
# Light: the reading; News: what the move told of the hypotheses
_HEADINGS = ("Move", "Action", "On the detector", "Light", "News")


class DetectorGuide:
    """Implements AnswerGuide (bench.report.overview.contract); answers are rules.

    The level `draw` is the chance of the rule in force of a hypothesis sampled uniformly from those that fit.
    """

    words = Words(
        task="switch objects on at a detector, and state its rule",
        items="detectors",
        hypotheses="hypotheses",
        decided="decided by its own moves",
        levels=LevelWords("a guess before any move", "a draw from the hypotheses left", "the largest share of them"),
        cost=Cost("moves", "steps"),
    )

    def is_answered(self, score: Score) -> bool:
        return bool(score["closed"] == "answered")

    def levels(self, item: BlicketItem, steps: Sequence[Step[Any]], score: Score) -> Levels:
        """Return the chances of guessing the rule in force; without a transcript only that before any move."""
        num_objects = item.task.n
        guess = 1 / len(all_rules(num_objects)) if num_objects <= MAX_GUESS_OBJECTS else None
        if not steps:
            return Levels(guess)
        attribution = score.get(ATTRIBUTION_KEY) or {}
        if attribution.get("decided") is True and POSTERIOR not in attribution:
            return Levels(guess, draw=1.0, ceiling=1.0)  # one rule is left, and the class has the true one
        space = class_of(item)
        for narrowing in trace_narrowing(item.task, steps, space):
            space = narrowing.after
        verdicts = space.verdicts()
        total = sum(verdicts.values())
        if not total:
            return Levels(guess)
        truth = rule_from_json(score["rule_in_force"], item.task.objects).canonical
        return Levels(guess, draw=verdicts.get(truth, 0) / total, ceiling=max(verdicts.values()) / total)

    def explain(
        self,
        item: BlicketItem | None,
        context: AnswerContext,
        answer: Mapping[str, Any] | str,
        steps: Sequence[Step[Any]],
        score: Score,
    ) -> Explanation:
        attribution = score.get(ATTRIBUTION_KEY) or {}
        members = attribution.get("members")
        remaining = (
            f" {fit_text(members, 'hypothesis', 'hypotheses')} its {plural(score['steps'], 'moves')}."
            if members
            else ""
        )
        budget = "" if item is None else f" of {item.task.budget}"
        is_right = METRICS.success.is_right(score, "")
        return Explanation(
            sentences=(class_sentence(score, is_right=is_right) + remaining, _reason(score)),
            response=rule_text(score["answer"]) if score["answer"] else "nothing was submitted",
            gold=rule_text(score["rule_in_force"]),
            response_note=f"after move {score['steps']}{budget}",
            gold_note="the rule in force at the end",
            chips=tuple(_chips(score)),
            verdict_note=_verdict_note(score),
            headings=_HEADINGS if item is not None and steps else (),
            moves=tuple(_last_moves(item, steps)) if item is not None and steps else (),
        )


def rule_text(rule: Mapping[str, Any]) -> str:
    """Return a rule as people type it, such as `conjunctive A E`; JSON that is no rule as JSON."""
    form, names = rule.get("rule"), rule.get("blickets")
    if isinstance(form, str) and isinstance(names, Sequence) and all(isinstance(name, str) for name in names):
        return in_one_line(f"{form} {' '.join(names)}")
    return json.dumps(dict(rule), ensure_ascii=False)


def _chips(score: Score) -> Iterator[tuple[str, str]]:
    """Yield the tone and text of each label beside the answer: its faults, and the class of the episode."""
    yield from (("bad", in_one_line(str(fault))) for fault in score["errors"])
    if score["class"]:
        yield "", f"class: {score['class']}"


def _verdict_note(score: Score) -> str:
    parts = [plural(score["activations"], "activations")]
    if score["post_evidence"] is not None:
        parts.append(f"{score['post_evidence']} readings under the later rule")
    fits = (score.get(ATTRIBUTION_KEY) or {}).get("fits")
    if fits is not None:
        parts.append("the answer fits the readings" if fits else "the answer contradicts the readings")
    return "; ".join(parts)


def _reason(score: Score) -> str:
    """Return why an answer was undecided, if the episode ended before the switch; else empty."""
    # class: pre, exactly-N or RE, for fewer than N, N, or more activations at the end (dsl.blickets.score.Exposed)
    if score["class"] == "pre" and (score.get(ATTRIBUTION_KEY) or {}).get("decided") is False:
        return "It stopped before the switch, so the rule may still change."
    return ""


def _last_moves(item: BlicketItem, steps: Sequence[Step[Any]]) -> Iterator[Move]:
    """Yield the last steps; News compares the hypotheses before and after each."""
    first = max(0, len(steps) - LAST_MOVES)
    space, moves, seen_active = class_of(item), 0, False
    lines = []
    for narrowing in trace_narrowing(item.task, steps, space):
        step, moves = narrowing.step, narrowing.moves
        before, after = narrowing.before.count, narrowing.after.count
        is_lit = step.reading is not None and is_active(step.reading)
        news = (
            ""
            if step.reading is None
            else "nothing new"
            if before == after
            else f"rules out {number_text(before - after)}"
        )
        is_first = is_lit and not seen_active
        seen_active |= is_lit
        light = "" if step.reading is None else "ACTIVE" if is_lit else "inactive"
        placed = " ".join(in_one_line(item.task.objects[k]) for k in narrowing.placed) or "\N{EN DASH}"
        lines.append(
            Move(
                (
                    str(moves) if step.cost else "\N{EN DASH}",
                    _action(step),
                    placed,
                    light or ("refused" if step.refused else ""),
                    f"the first activation; {news}" if is_first else news,
                ),
                is_first,
            )
        )
    yield from lines[first:]


def _action(step: Step[Any]) -> str:
    verb, argument = next(iter(step.action.items()), ("nothing", ""))  # an action has one key, its verb
    if verb == "check":
        stated = rule_text(argument) if isinstance(argument, Mapping) else json.dumps(argument, default=str)
        return f"check {in_one_line(stated)[:120]}"
    return in_one_line(f"{verb} {argument if isinstance(argument, str) else short_repr(argument)}")[:80]


GUIDE = DetectorGuide()


# --- The tables of a report on blickets: every view of its measures by condition, and the paper's Tables 5 to 11 ------
PAPER_IDS = ("5a", "5b", "6", "F2", "7", "8", "9", "10", "11")
TABLE_IDS = (*(view.id for view in METRICS.views.values()), *PAPER_IDS)
Items: TypeAlias = Mapping[tuple[str, str], BlicketItem]  # by digest of the pool, and id


def blicket_tables(answers: Sequence[Answer], contents: sections.ReportContents, items: Items) -> tuple[Table, ...]:
    """Return the tables of these answers; `CalibrantError` if there is none.

    items: items of the given pools; of other items the paper's condition is looked up by the suite's name
    """
    entries = named_answers(answers)
    rows = section_rows(answers, METRICS, contents.by)
    notes = coverage_notes(entries)
    notes_by_view = {"attribution": (*notes, *decision_notes(entry.score for entry in entries))}
    tables = sections.view_tables(METRICS.views, rows, lambda name: notes_by_view.get(name, notes))
    tables += _paper_tables(entries, items, with_paper=contents.with_paper)
    selection = [table for table in tables if table.headings and (not contents.tables or table.id in contents.tables)]
    if not selection:
        raise sections.NoAnswersError(f"no answers that belong into table {', '.join(sorted(contents.tables))}")
    return tuple(selection)


# --- the paper's ------------------------------------------------------------------------------------------------------


@cache
def _item_of_suite(name: str) -> BlicketItem | None:
    """Return a representative item of a suite; None if there is no such suite.

    Each condition of the paper holds for all items of a suite or for none, as they are sampled from one plan.
    """
    return next(sample_items(SUITES[name], 0)) if name in SUITES else None


def _episodes(answers: Sequence[NamedAnswer], items: Items) -> Iterator[PlayedEpisode]:
    for answer in answers:
        key = (answer.context.pool_digest, answer.context.instance)
        item = items.get(key) or _item_of_suite(answer.context.stratum)  # the stratum of generated items is their suite
        if item is None or item.setting != answer.context.setting:
            continue
        try:
            score = msgspec.convert(dict(answer.score), PrintedScore)
        except msgspec.ValidationError as error:
            where = f"{answer.context.system} on {short_repr(answer.context.instance)} of {answer.context.pool}"
            raise CalibrantError(f"{where}: not a score of blickets: {error}") from None
        fired = score.provenance.fired
        renamed_item = replace(item, id=answer.context.instance) if item.id != answer.context.instance else item
        # the paper's Table 9 compares episodes in which its dynamic behaviour DB4 fired: a confirmed rule has failed
        has_fired = None if fired is None else "DB4" in fired
        yield PlayedEpisode(
            agent=answer.system,
            item=renamed_item,
            grade=score,
            fired=has_fired,
            suite=answer.context.stratum,
            pool=answer.context.pool_digest,
        )


def _paper_tables(answers: Sequence[NamedAnswer], items: Items, *, with_paper: bool) -> list[Table]:
    """Return the paper's tables that some of the answers belong to; the last label of a row states its source.

    with_paper: also the rows that the paper prints, and its tables to which no answer belongs
    """
    has_items = all((answer.context.pool_digest, answer.context.instance) in items for answer in answers)
    note = (
        ()
        if has_items
        else ("Conditions of items were taken from their strata; give --pool to read them from the items.",)
    )
    tables = []
    for table in paper_tables(_episodes(answers, items)):
        if table.fits or with_paper:
            lines = tuple(_mark_source(row) for row in table.rows if with_paper or row.source is Source.OURS)
            labels = (*table.labels, Heading("source", "Rows"))
            notes = table.notes if with_paper else table.notes[1:]  # the first one states where the paper's rows stand
            tables.append(replace(table, labels=labels, rows=lines, notes=(*notes, *note)))
    return tables


def _mark_source(row: TableRow) -> TableRow:
    return replace(row, labels=(*row.labels, row.source.value))


# --- Section of a report about blickets -------------------------------------------------------------------------------
CAPTION = (
    "Shares of answers by what the readings had decided: earned and missed where they left one answer, right and"
    " wrong; lucky and short where they left several, right and wrong. A panel for each condition and suite."
)


def _panel(row: Row) -> str:
    return row.setting if row.stratum in ("", row.setting) else f"{row.setting}, {row.stratum}"


KINDS = sections.KindPlot("attribution", "Earned, missed, lucky, short", f"{CAPTION} {sections.OTHERS}", _panel)


def blicket_section(
    title: str, answers: Sequence[Answer], contents: sections.ReportContents, items: Items
) -> sections.Section:
    """Return tables and plots of these answers; `CalibrantError` if they belong into none of the requested tables."""
    tables = blicket_tables(answers, contents, items)
    rows = section_rows(answers, METRICS, Grouping.SETTING)
    plots = [
        sections.attribution_plot(rows, KINDS) if contents.with_plots else None,
        class_plot(tables) if contents.with_pictures else None,
    ]
    about = sections.interval_note(rows, items="episodes")
    return sections.Section.of(title, about, answers, tables, tuple(plot for plot in plots if plot is not None))


CLASS_PARTS = tuple(map(Part, ("good", "warn", "scale-1", "scale-4", "bad")))


def class_plot(tables: Sequence[Table]) -> sections.Plot | None:
    """Return the paper's Figure 2 with our systems below the printed ones; None without its table."""
    table = next((table for table in tables if table.id == "F2"), None)
    if table is None:
        return None
    bars = {}
    for row in table.rows:
        if row.cells[0] != NOTHING:
            name = f"{row.labels[0]} (paper)" if row.source is Source.PAPER else row.labels[0]
            bars[name] = [float(cell.text) for cell in row.cells]
    parts = dict(zip(CLASSES.values(), CLASS_PARTS, strict=True))
    caption = (
        "Shares of episodes by class: 75 steps, three blickets after a switch, which comes at N = 3 activations."
        " Pre-switch: fewer than N activations; RE: more."
    )
    return sections.Plot("blicket-classes", table.title, caption, stacked_svg({"": bars}, parts, table.title))


class BlicketReport:
    """Implements Reportable (bench.report.capabilities)."""

    table_ids = TABLE_IDS

    def section(
        self, answers: Sequence[Answer], contents: sections.ReportContents, progress: Progress
    ) -> sections.Section:
        pools = [path for path in contents.pools if benchmark_of(path) is BENCHMARK]
        items = {(file_digest(path), item.id): item for path in pools for item in BENCHMARK.items.read_pool(path).items}
        section = blicket_section(BENCHMARK.title, answers, contents, items)
        return replace(section, episodes=tuple(sections.chosen_episodes(BENCHMARK, answers, contents, items)))


REPORT = BlicketReport()


# --- Rules that the readings of an episode left open, in words --------------------------------------------------------
BY_RULE = "by the rule in force at the end"


def list_remaining(item: BlicketItem, steps: Sequence[Step[Any]], limit: int) -> Remaining | None:
    """List the rules, or orders, that fit; None for an item without a condition.

    For detectors that switch or are noisy it counts the hypotheses that fit by the rule in force at the end.
    """
    if condition_of(item.sealed) is None:
        return None
    space = space_after(class_of(item), item.task, steps)
    is_single = isinstance(space, OneRule | OrderSpace)
    noun = ("rule", "rules") if isinstance(space, OneRule) else ("hypothesis", "hypotheses")
    listed = first_entries(_entries(item, space), limit)
    return Remaining(noun, space.count, listed, "" if is_single else BY_RULE)


def _entries(item: BlicketItem, space: DetectorSpace) -> Iterator[Hypothesis]:
    """Yield rules in a fixed order; of noisy detectors the most probable first."""
    objects = item.task.objects
    if isinstance(space, OrderSpace):
        for order in space.members():
            yield Hypothesis(f"conjunctive, placed in the order {' '.join(objects[k] for k in order)}")
        return
    verdicts = space.verdicts()
    if item.sealed.p == 1:
        for rule, count in verdicts.items():
            yield Hypothesis(rule_text(rule.as_json(objects)), count)
        return
    posterior = space.posterior()
    for rule in sorted(verdicts, key=lambda rule: -posterior.get(rule, 0.0)):
        yield Hypothesis(rule_text(rule.as_json(objects)), verdicts[rule], posterior.get(rule, 0.0))
