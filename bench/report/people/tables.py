"""Tables of people: means beside other systems on the same items, learning curves, hypotheses still open."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from calibrant.bench.answers.frame import Estimate
from calibrant.bench.answers.intervals import INTERVALS, ClusteredMean
from calibrant.bench.core.attribution import KINDS
from calibrant.bench.core.registry import benchmark
from calibrant.bench.report.layout import NOTHING, Cell, Heading, Table, TableRow, cell
from calibrant.bench.report.overview.results import Outcome, Results, SystemResult
from calibrant.bench.report.people.measures import (
    PersonAnswer,
    group_mean,
    groups_of,
    item_mean,
    outcomes_on,
    person_answers,
    read_right,
)
from calibrant.bench.report.people.timings import PersonTiming, Subject

PEOPLE_TABLE, LEARNING_TABLE, OPEN_TABLE = "people", "learning", "open"
TABLE_IDS = (PEOPLE_TABLE, LEARNING_TABLE, OPEN_TABLE)
OF_PEOPLE = (
    "Of people: means over participants, each over their items; in brackets 95 % intervals, participants and items"
    " drawn again (clustered bootstrap), participants alone with fewer than 6 items, none with fewer than 6"
    " participants."
)
OF_SYSTEMS = f" Of systems: means over the same items; {INTERVALS}"
OPEN_CLASSES = ((1, "1"), (3, "2 to 3"), (9, "4 to 9"), (99, "10 to 99"), (None, "100 or more"))  # ends, included


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
    for name, listed in answers.items():
        num_people = len({answer.participant for answer in listed})
        num_items = len({answer.outcome.item for answer in listed})
        cells = [
            _share(group_mean(listed, read_right)),
            *(_share(group_mean(listed, kind_of_answer(kind))) for kind in KINDS),
            *([_number(group_mean(listed, lambda a: a.outcome.cost))] if unit else []),
            _number(group_mean(listed, lambda a: a.seconds_a_move)),
        ]
        rows.append(TableRow((name, f"{num_people:,}", f"{num_items:,}"), tuple(cells)))
    for system in others:
        outcomes = outcomes_on(system, items)
        cells = [
            _share(item_mean(outcomes, lambda o: float(o.right), metrics, is_share=True)),
            *(_share(item_mean(outcomes, _kind_of(kind), metrics, is_share=True)) for kind in KINDS),
            *([_number(item_mean(outcomes, lambda o: o.cost, metrics, is_share=False))] if unit else []),
            NOTHING,
        ]
        rows.append(TableRow((system.name, "", f"{len({o.item for o in outcomes}):,}"), tuple(cells)))
    headings = [Heading("right", "Right"), *(Heading(kind, kind.capitalize()) for kind in KINDS)]
    headings += [Heading(unit, unit.capitalize())] if unit else []
    headings.append(Heading("seconds_a_move", "Seconds a move"))
    labels = (Heading("system", "System"), Heading("people", "People"), Heading("n", "Items"))
    caption = OF_PEOPLE + OF_SYSTEMS
    return Table(PEOPLE_TABLE, "People beside other systems", caption, labels, tuple(headings), tuple(rows))


def _learning_table(results: Results, answers: Mapping[str, Sequence[PersonAnswer]]) -> Table:
    unit, rows = _cost_unit(results), []
    for name, listed in answers.items():
        for position, at in learning_positions(listed):
            cells = [
                _share(group_mean(at, read_right)),
                _share(group_mean(at, kind_of_answer("earned"))),
                *([_number(group_mean(at, lambda a: a.outcome.cost))] if unit else []),
                _number(group_mean(at, lambda a: a.seconds_a_move)),
            ]
            rows.append(TableRow((name, str(position), f"{len(at):,}"), tuple(cells)))
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
    """Return the answers by position; none where positions are not known or there is one alone."""
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
    """Count answers by the number of hypotheses that their evidence had left open."""
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
    least = 0
    for most, text in OPEN_CLASSES:
        chosen = [o for o in counted if int(o.members) > least and (most is None or int(o.members) <= most)]
        least = most or least
        if chosen:
            right = sum(outcome.is_right for outcome in chosen)
            cells = Cell(f"{len(chosen) / len(counted):.3f}"), Cell(f"{right / len(chosen):.3f}")
            yield TableRow((name, text, f"{len(chosen):,}"), cells)


def _cost_unit(results: Results) -> str:
    """Return the unit of costs that scores state; empty without any."""
    cost = results.guide.words.cost
    return "" if cost is None or not cost.key else cost.unit


def _kind_of(kind: str) -> Callable[[Outcome], float | None]:
    return lambda outcome: None if outcome.is_decided is None else float(outcome.shares.get(kind, 0))


def kind_of_answer(kind: str) -> Callable[[PersonAnswer], float | None]:
    """Return what reads whether an answer is of a kind; None where what the evidence decided is not counted."""
    read = _kind_of(kind)
    return lambda answer: read(answer.outcome)


def _share(mean: ClusteredMean | Estimate | None) -> Cell:
    return NOTHING if mean is None else cell(f"{mean.mean:.3f}", mean.interval)


def _number(mean: ClusteredMean | Estimate | None) -> Cell:
    return NOTHING if mean is None else cell(f"{mean.mean:.1f}", mean.interval, decimals=1)
