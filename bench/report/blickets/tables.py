"""The tables of a report on blickets: every view of its measures by condition, and the paper's Tables 5 to 11."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from math import sqrt
from statistics import mean, stdev
from typing import TypeAlias

import msgspec

from bench.answers.blickets import MEASURES
from bench.answers.columns import SUPPRESSED, Column, is_suppressed
from bench.blickets.standing import NORMAL_95
from bench.blickets.tables import PlayedEpisode, paper_tables
from bench.report.blickets.rows import ConditionRow, Named, condition_rows, coverage_notes, named_answers
from bench.report.formats import shown_columns
from bench.report.intervals import Interval
from bench.report.layout import NOTHING, Cell, Heading, Source, Table, TableRow, cell
from bench.report.part import Answer, ReportContents
from bench.statistics import wilson
from dsl.blickets.grading import Exposed, Fault
from dsl.blickets.item import BlicketItem
from dsl.blickets.sampling import SUITES, drawn
from dsl.errors import CalibrantError, shown

TITLES = {
    "answers": ("standing", "Agents by condition"),
    "evidence": ("evidence", "Evidence by condition"),
    "errors": ("errors", "What was wrong"),
    "attribution": ("attribution", "What the evidence had decided"),
}
CAPTIONS = {
    "answers": "Exactly-N, RE rate: episodes that ended with N activations, and with more; RE acc, Switched: accuracy"
    " over the latter, and over both. Answered: submitted before the budget was spent.",
    "evidence": "First: the move that first read active. Distinct: different sets read. Seen after: readings under the"
    " rule in force at the end, where that is not the first. Strict: correct, in the order of placement too.",
    "errors": "Share of all answers with each fault; one answer may have several.",
    "attribution": "Decided: the readings left one answer in the class that knows the condition. Earned, missed:"
    " decided and correct, wrong; lucky, short: undecided and correct, wrong. Fits: the answer is one of those left.",
}
PAPER_IDS = ("5a", "5b", "6", "7", "8", "9", "10", "11")
TABLE_IDS = (*(name for name, _ in TITLES.values()), *PAPER_IDS)
ROW_LABELS = (
    *(Heading("setting", "Setting"), Heading("stratum", "Stratum"), Heading("system", "System")),
    *(Heading("pool", "Pool"), Heading("n", "n")),
)
SHARE_DECIMALS = 3  # what is printed with fewer is a number of something

Items: TypeAlias = Mapping[tuple[str, str], BlicketItem]  # by digest of the pool, and id


def blicket_tables(answers: Sequence[Answer], wanted: ReportContents, items: Items) -> tuple[Table, ...]:
    """The tables that these answers give; `CalibrantError` if there is none.

    items: those of the pools that are at hand; of others a condition of the paper is known by the suite alone
    """
    named = named_answers(answers)
    rows = condition_rows(named, wanted.by)
    notes = coverage_notes(named)
    made = [_view_table(view, rows, notes) for view in MEASURES.views]
    made += _paper_tables(named, items, with_paper=wanted.with_paper)
    found = [table for table in made if not wanted.tables or table.id in wanted.tables]
    if not found:
        raise CalibrantError(f"no answers that belong into table {', '.join(sorted(wanted.tables))}")
    return tuple(found)


# --- by condition -----------------------------------------------------------------------------------------------------


def _view_table(view: str, rows: Sequence[ConditionRow], notes: tuple[str, ...]) -> Table:
    columns = MEASURES.views[view]
    lines = tuple(
        TableRow(
            (row.setting, row.stratum, row.system, row.pool, str(len(row.answers))),
            tuple(_figure(row, column) for column in columns),
        )
        for row in rows
    )
    headings = tuple(Heading(column.key, column.heading) for column in columns)
    number, title = TITLES[view]
    return shown_columns(Table(number, title, CAPTIONS[view], ROW_LABELS, headings, lines, notes))


def _figure(row: ConditionRow, column: Column) -> Cell:
    """A share with its score interval, a mean with its normal one; `*` for a conditional rate over 1 to 5 answers."""
    values = [float(value) for one in row.answers if (value := column.value(one.score)) is not None]
    if not values:
        return NOTHING
    if column.conditional and is_suppressed(len(values)):
        return Cell(SUPPRESSED)
    return cell(f"{mean(values):.{column.decimals}f}", _interval(values, column), decimals=column.decimals)


def _interval(values: Sequence[float], column: Column) -> Interval | None:
    if column.decimals == SHARE_DECIMALS:
        return Interval(*wilson(round(sum(values)), len(values)))
    if len(set(values)) < 2:
        return None
    half = NORMAL_95 * stdev(values) / sqrt(len(values))
    return Interval(mean(values) - half, mean(values) + half)


# --- the paper's ------------------------------------------------------------------------------------------------------


class _Scored(msgspec.Struct, frozen=True, rename={"faults": "errors", "exposed": "class"}):
    """What the paper's tables count of a score."""

    correct: bool | None
    faults: tuple[Fault, ...]
    exposed: Exposed | None
    steps: int


@cache
def _item_of_suite(name: str) -> BlicketItem | None:
    """An item for all of a suite: the paper's conditions hold for every item of a plan or for none."""
    return next(drawn(SUITES[name], 0)) if name in SUITES else None


def _episodes(answers: Sequence[Named], items: Items) -> Iterator[PlayedEpisode]:
    for one in answers:
        item = items.get((one.origin.pool_digest, one.origin.instance)) or _item_of_suite(one.origin.stratum)
        if item is None or item.setting != one.origin.setting:
            continue
        try:
            score = msgspec.convert(dict(one.score), _Scored)
        except msgspec.ValidationError as error:
            where = f"{one.origin.system} on {shown(one.origin.instance)} of {one.origin.pool}"
            raise CalibrantError(f"{where}: not a score of blickets: {error}") from None
        yield PlayedEpisode(one.system, item, score, suite=one.origin.stratum)


def _paper_tables(answers: Sequence[Named], items: Items, *, with_paper: bool) -> list[Table]:
    """Those in which some of the answers have a row. What the paper prints is in rows that say so."""
    known = all((one.origin.pool_digest, one.origin.instance) in items for one in answers)
    note = (
        () if known else ("Which of our items are under a condition is read off their stratum; --pools reads items.",)
    )
    made = []
    for table in paper_tables(_episodes(answers, items)):
        if any(row.source is Source.OURS for row in table.rows):
            lines = tuple(_marked(row) for row in table.rows if with_paper or row.source is Source.OURS)
            labels = (*table.labels, Heading("source", "Rows"))
            made.append(replace(table, labels=labels, rows=lines, notes=(*table.notes[not with_paper :], *note)))
    return made


def _marked(row: TableRow) -> TableRow:
    return replace(row, labels=(*row.labels, row.source.value))
