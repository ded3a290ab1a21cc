"""People as one group of a report: means over participants, learning curves, hypotheses remaining at the answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from calibrant.bench.answers import rates
from calibrant.bench.answers.frame import Estimate, estimate
from calibrant.bench.core.attribution import SHARE_BY_CLASS, share_words, shown_shares
from calibrant.bench.core.metrics import MetricSet
from calibrant.bench.core.registry import benchmark
from calibrant.bench.core.scoring import GROUP, PEOPLE, PEOPLE_SYSTEM, options_text, participant_of
from calibrant.bench.pages.charts import Axis, Line, Mark, Panel, panels_svg
from calibrant.bench.report.layout import NOTHING, Cell, Heading, Table, TableRow, cell
from calibrant.bench.report.overview.contract import GUIDE
from calibrant.bench.report.overview.results import Outcome, Results, SystemResult, read_results
from calibrant.bench.report.rows import Answer, NamedAnswer, named_answers
from calibrant.bench.report.sections import Plot, ReportContents, Section
from calibrant.bench.runs.records import Record, folder_records
from calibrant.dsl.errors import in_one_line

# --- Times of people's answers: start of the item, seconds per move ---------------------------------------------------
Subject: TypeAlias = tuple[str, str, str, str]  # pool digest, item, system, options of the session


class PersonTiming(NamedTuple):
    """Times of one answer. started: UTC, ISO 8601; seconds_a_move: mean before a move, None if there was no move."""

    started: str
    seconds_a_move: float | None


def seconds_a_move(record: Record) -> float | None:
    """Return the mean seconds before a move of a record; None if it has no moves."""
    steps = record.timing.moves if isinstance(record.timing.moves, list) else []
    moves = [seconds for seconds in steps if seconds > 0]  # 0: opening readings of an episode, which are no moves
    return rates.mean_if_known(moves)


def read_timings(sources: Iterable[Path]) -> dict[Subject, PersonTiming]:
    """Return the times of all answers of people in folders of runs and of play; other sources are skipped."""
    timings = {}
    for folder in (source for source in sources if source.is_dir()):
        for record in folder_records(folder):
            if record.protocol.startswith(PEOPLE):
                subject = record.pool_digest, record.instance, record.protocol, options_text(record.config)
                timings[subject] = PersonTiming(record.timing.started, seconds_a_move(record))
    return timings


# --- Participants with equal options (feedback, study) as one system --------------------------------------------------


def group_people(answers: Sequence[NamedAnswer]) -> list[NamedAnswer]:
    """Return the answers, with participants renamed to their group, such as `people (40)`.

    Participants whose options differ (feedback, study) are in different groups, which the differing options name.
    """
    keys = [answer.context.options if participant_of(answer.context.system) else "" for answer in answers]
    configs: dict[str, Mapping[str, Any]] = {}
    groups: dict[str, set[str]] = {}
    for answer, key in zip(answers, keys, strict=True):
        if key:
            configs[key] = answer.context.config
            groups.setdefault(key, set()).add(answer.context.system)
    if not groups:
        return list(answers)
    differing = rates.differing_names([*configs.values()])
    suffixes = {key: rates.option_suffix(config, differing) for key, config in configs.items()}
    used_names = {answer.system for answer in answers}
    group_names = {
        key: _unused_name(f"{PEOPLE_SYSTEM} ({len(group)}){suffixes[key]}", used_names) for key, group in groups.items()
    }
    return [
        answer._replace(system=in_one_line(group_names[key])) if key else answer
        for answer, key in zip(answers, keys, strict=True)
    ]


def groups_of_people(answers: Sequence[Answer]) -> dict[str, str]:
    """Return system -> its group of a study, for the systems that people are grouped into; empty without a study."""
    if not any(participant_of(context.system) and GROUP in context.config for context, _ in answers):
        return {}
    people = [answer for answer in group_people(named_answers(answers)) if participant_of(answer.context.system)]
    return {answer.system: str(answer.context.config.get(GROUP, "")) for answer in people}


def _unused_name(name: str, used_names: set[str]) -> str:
    while name in used_names:
        name = f"{name} of studies"
    return name


# --- Means of a group of people, and of other systems on the same items -----------------------------------------------
ValueReader = Callable[[Outcome], float | None]  # answer -> value; None if the answer is not in the mean


@dataclass(frozen=True)
class PersonAnswer:
    """An answer of a participant.

    position: position of the item in the order in which the participant began items, from 1; 0 if unknown
    """

    outcome: Outcome
    participant: str
    position: int
    seconds_a_move: float | None


def person_answers(system: SystemResult, timings: Mapping[Subject, PersonTiming]) -> list[PersonAnswer]:
    """Return a group's answers with their times and positions."""
    by_person: dict[str, list[tuple[str, float | None, Outcome]]] = {}
    for outcome in system.outcomes:
        context = outcome.context
        subject = context.pool_digest, context.instance, context.system, context.options
        timing = timings.get(subject, PersonTiming("", None))
        by_person.setdefault(participant_of(context.system), []).append(
            (timing.started, timing.seconds_a_move, outcome)
        )
    answers = []
    for participant, timed_outcomes in by_person.items():
        ordered = sorted(timed_outcomes, key=lambda entry: entry[0])  # stable: equal times keep the order of items
        for position, (started, seconds, outcome) in enumerate(ordered, 1):
            answers.append(PersonAnswer(outcome, participant, position if started else 0, seconds))
    return answers


def group_mean(
    answers: Iterable[PersonAnswer], read: Callable[[PersonAnswer], float | None]
) -> rates.ClusteredMean | None:
    """Return the mean over participants of values read from their answers; None without values."""
    values = [
        (answer.participant, f"{answer.outcome.context.pool_digest} {answer.outcome.context.instance}", value)
        for answer in answers
        if (value := read(answer)) is not None
    ]
    return rates.clustered_mean(values) if values else None


def read_right(answer: PersonAnswer) -> float:
    return float(answer.outcome.is_right)


def right_interval(system: SystemResult, metrics: MetricSet) -> rates.Interval | None:
    """Return the 95 % interval of a system's share of right answers."""
    if system.is_group:
        mean = group_mean(person_answers(system, {}), read_right)
        return None if mean is None else mean.interval
    rate = item_mean(system.outcomes, lambda o: float(o.right), metrics, is_share=True)
    return None if rate is None else rate.interval


def item_mean(outcomes: Sequence[Outcome], read: ValueReader, metrics: MetricSet, *, is_share: bool) -> Estimate | None:
    """Return the mean over items for a system that is no group of people; None without values."""
    return estimate(((o.item, metrics.unit(o.context.instance), read(o)) for o in outcomes), is_share=is_share)


def outcomes_on(system: SystemResult, items: frozenset[int]) -> list[Outcome]:
    """Return a system's answers to some items."""
    return [outcome for outcome in system.outcomes if outcome.item in items]


def groups_of(results: Results) -> list[SystemResult]:
    """Return the groups of people among the systems."""
    return [system for system in results.systems if system.is_group]


# --- Tables of people: means beside other systems, learning curves, remaining hypotheses ------------------------------
PEOPLE_TABLE, LEARNING_TABLE, OPEN_TABLE = "people", "learning", "open"
TABLE_IDS = (PEOPLE_TABLE, LEARNING_TABLE, OPEN_TABLE)
PEOPLE_NOTE = (
    "Of people: means over participants, each over their items; in brackets 95 % intervals, participants and items"
    " drawn again (clustered bootstrap), participants alone with fewer than 6 items, none with fewer than 6"
    " participants."
)
SYSTEMS_NOTE = f" Of systems: means over the same items; {rates.INTERVALS}"
OPEN_CLASSES = ((1, "1"), (3, "2 to 3"), (9, "4 to 9"), (99, "10 to 99"), (None, "100 or more"))  # (largest, label)


def people_tables(results: Results, timings: Mapping[Subject, PersonTiming]) -> list[Table]:
    """Return the tables of the groups of people; none without people."""
    groups = groups_of(results)
    if not groups:
        return []
    answers = {group.name: person_answers(group, timings) for group in groups}
    items = frozenset(answer.outcome.item for listed in answers.values() for answer in listed)
    others = [system for system in results.systems if not system.is_group and outcomes_on(system, items)]
    tables = [
        _means_table(results, answers, others, items),
        _learning_table(results, answers),
        _open_table(results, answers, others, items),
    ]
    return [table for table in tables if table.rows]


def _means_table(
    results: Results,
    answers: Mapping[str, Sequence[PersonAnswer]],
    others: Sequence[SystemResult],
    items: frozenset[int],
) -> Table:
    unit, rows, metrics = _cost_unit(results), [], benchmark(results.name).metrics
    classes = _classes_of(results)
    for name, listed in answers.items():
        num_people = len({answer.participant for answer in listed})
        num_items = len({answer.outcome.item for answer in listed})
        cells = [
            _share(group_mean(listed, read_right)),
            *(_share(group_mean(listed, kind_of_answer(kind, results))) for kind in classes),
            *([_number(group_mean(listed, lambda a: a.outcome.cost))] if unit else []),
            _number(group_mean(listed, lambda a: a.seconds_a_move)),
        ]
        rows.append(TableRow((name, f"{num_people:,}", f"{num_items:,}"), tuple(cells)))
    for system in others:
        outcomes = outcomes_on(system, items)
        cells = [
            _share(item_mean(outcomes, lambda o: float(o.right), metrics, is_share=True)),
            *(_share(item_mean(outcomes, _kind_of(kind, results), metrics, is_share=True)) for kind in classes),
            *([_number(item_mean(outcomes, lambda o: o.cost, metrics, is_share=False))] if unit else []),
            NOTHING,
        ]
        rows.append(TableRow((system.name, "", f"{len({o.item for o in outcomes}):,}"), tuple(cells)))
    headings = [
        Heading("right", "Right"),
        *(Heading(kind, share_words(kind).capitalize()) for kind in classes),
    ]
    headings += [Heading(unit, unit.capitalize())] if unit else []
    headings.append(Heading("seconds_a_move", "Seconds a move"))
    labels = (Heading("system", "System"), Heading("people", "People"), Heading("n", "Items"))
    caption = PEOPLE_NOTE + SYSTEMS_NOTE
    return Table(PEOPLE_TABLE, "People beside other systems", caption, labels, tuple(headings), tuple(rows))


def _learning_table(results: Results, answers: Mapping[str, Sequence[PersonAnswer]]) -> Table:
    unit, rows = _cost_unit(results), []
    for name, listed in answers.items():
        for position, answers_at in learning_positions(listed):
            cells = [
                _share(group_mean(answers_at, read_right)),
                _share(group_mean(answers_at, kind_of_answer("earned", results))),
                *([_number(group_mean(answers_at, lambda a: a.outcome.cost))] if unit else []),
                _number(group_mean(answers_at, lambda a: a.seconds_a_move)),
            ]
            rows.append(TableRow((name, str(position), f"{len(answers_at):,}"), tuple(cells)))
    headings = [Heading("right", "Right"), Heading("earned", "Earned")]
    headings += [Heading(unit, unit.capitalize())] if unit else []
    headings.append(Heading("seconds_a_move", "Seconds a move"))
    labels = (Heading("system", "System"), Heading("position", "Item"), Heading("n", "Answers"))
    caption = (
        "By position: the first item that a participant began, the second, and so on; who played fewer items is in"
        " fewer rows. Intervals as above."
    )
    return Table(LEARNING_TABLE, "People: learning over items", caption, labels, tuple(headings), tuple(rows))


def learning_positions(answers: Sequence[PersonAnswer]) -> list[tuple[int, list[PersonAnswer]]]:
    """Return (position, answers) pairs; none if positions are unknown or there is only one."""
    positions = sorted({answer.position for answer in answers if answer.position})
    if len(positions) < 2:
        return []
    return [(position, [answer for answer in answers if answer.position == position]) for position in positions]


def _open_table(
    results: Results,
    answers: Mapping[str, Sequence[PersonAnswer]],
    others: Sequence[SystemResult],
    items: frozenset[int],
) -> Table:
    """Count answers by the number of hypotheses that were consistent with their evidence."""
    outcomes = {name: [answer.outcome for answer in listed] for name, listed in answers.items()}
    outcomes |= {system.name: outcomes_on(system, items) for system in others}
    rows = [row for name, listed in outcomes.items() for row in _open_rows(name, listed)]
    labels = (Heading("system", "System"), Heading("open", "Still open"), Heading("n", "Answers"))
    headings = (Heading("share", "Share of answers"), Heading("right", "Right of them"))
    caption = (
        f"Answers by the number of {results.guide.words.hypotheses} that fitted the evidence when they were given."
    )
    title = "Hypotheses still open at the answer"
    return Table(OPEN_TABLE, title, caption, labels, headings, tuple(rows))


def _open_rows(name: str, outcomes: Sequence[Outcome]) -> Iterator[TableRow]:
    counted = [outcome for outcome in outcomes if outcome.members and int(outcome.members)]
    previous_largest = 0
    for largest, text in OPEN_CLASSES:
        chosen = [
            o for o in counted if int(o.members) > previous_largest and (largest is None or int(o.members) <= largest)
        ]
        previous_largest = largest or previous_largest
        if chosen:
            right = sum(outcome.is_right for outcome in chosen)
            cells = Cell(f"{len(chosen) / len(counted):.3f}"), Cell(f"{right / len(chosen):.3f}")
            yield TableRow((name, text, f"{len(chosen):,}"), cells)


def _cost_unit(results: Results) -> str:
    """Return the plural unit of costs in scores, such as "moves"; empty if there is none."""
    cost = results.guide.words.cost
    return "" if cost is None or not cost.key else cost.unit


def _classes_of(results: Results) -> list[str]:
    """Return the shares that get a column, which add up to 1; none if the evidence of no answer was counted."""
    present = {SHARE_BY_CLASS[kind] for system in results.systems for kind, number in system.counts.items() if number}
    return shown_shares(present) if results.is_counted else []


def _kind_of(key: str, results: Results) -> Callable[[Outcome], float | None]:
    classes = [kind for kind, share in SHARE_BY_CLASS.items() if share == key]
    return lambda o: float(sum(o.shares.get(kind, 0) for kind in classes)) if results.is_counted else None


def kind_of_answer(key: str, results: Results) -> Callable[[PersonAnswer], float | None]:
    """Return a reader of whether an answer counts in a share; the reader returns None if no answer was counted."""
    read = _kind_of(key, results)
    return lambda answer: read(answer.outcome)


def _share(mean: rates.ClusteredMean | Estimate | None) -> Cell:
    return NOTHING if mean is None else cell(f"{mean.mean:.3f}", mean.interval)


def _number(mean: rates.ClusteredMean | Estimate | None) -> Cell:
    return NOTHING if mean is None else cell(f"{mean.mean:.1f}", mean.interval, decimals=1)


# --- Tables and learning curves of people in a report -----------------------------------------------------------------
CURVE_INTERVALS = " Means over participants with 95 % intervals (clustered bootstrap)."
LEARNING = "Shares of right and of earned answers by the position of the item." + CURVE_INTERVALS
SECONDS = "Mean seconds before a move by the position of the item." + CURVE_INTERVALS


def add_people(section: Section, name: str, answers: Sequence[Answer], contents: ReportContents) -> Section:
    """Return the section with tables and plots of people first; unchanged if no answer is a person's."""
    if contents.tables and not contents.tables & {*TABLE_IDS}:
        return section
    guide = benchmark(name).capability(GUIDE)
    if guide is None or not any(participant_of(context.system) for context, _ in answers):
        return section
    metrics = benchmark(name).metrics
    results = read_results(name, section.title, group_people(named_answers(answers)), metrics, guide)
    timings = read_timings(contents.runs) if contents.with_times else {}
    tables = [table for table in people_tables(results, timings) if not contents.tables or table.id in contents.tables]
    plots = _learning_plots(results, timings, name) if contents.with_pictures else ()
    return replace(section, tables=(*tables, *section.tables), plots=(*plots, *section.plots))


def _learning_plots(results: Results, timings: Mapping[Subject, PersonTiming], name: str) -> Iterator[Plot]:
    """Yield learning curves of the groups; none if positions are unknown or there is only one."""
    shares: list[Line] = []
    seconds: list[Line] = []
    for group in groups_of(results):
        positions = learning_positions(person_answers(group, timings))
        shares.append(_line(f"{group.name}: right", positions, read_right))
        shares.append(_line(f"{group.name}: earned", positions, kind_of_answer("earned", results)))
        seconds.append(_line(group.name, positions, lambda answer: answer.seconds_a_move))
    titles = ("People: right answers over items", "People: seconds a move over items")
    for key, title, caption, lines in (
        ("learning", titles[0], LEARNING, shares),
        ("seconds", titles[1], SECONDS, seconds),
    ):
        if any(line.marks for line in lines):
            tops = [mark.y if mark.high is None else mark.high for line in lines for mark in line.marks]
            axis = Axis("share of answers", 0, 1) if key == "learning" else Axis("seconds", 0, max(tops))
            svg = panels_svg([Panel("", tuple(lines))], Axis("position of the item"), axis, title)
            yield Plot(f"people-{key}-{name}", title, caption, svg, in_page=True)


def _line(
    name: str, positions: Sequence[tuple[int, list[PersonAnswer]]], read: Callable[[PersonAnswer], float | None]
) -> Line:
    means = [(position, group_mean(answers_at, read)) for position, answers_at in positions]
    return Line(name, tuple(_mark(position, mean) for position, mean in means if mean is not None))


def _mark(position: int, mean: rates.ClusteredMean) -> Mark:
    low, high = mean.interval or (None, None)
    return Mark(float(position), mean.mean, low, high)
