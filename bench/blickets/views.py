"""The tables of a report on blickets: every view of its measures by condition, and the paper's Tables 5 to 11."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import TypeAlias

import msgspec

from calibrant.bench.blickets.paper_tables.tables import PlayedEpisode, paper_tables
from calibrant.bench.blickets.verdict import METRICS, PrintedScore
from calibrant.bench.core.attribution import decision_notes
from calibrant.bench.report.answers.named import NamedAnswer, coverage_notes, named_answers
from calibrant.bench.report.layout import Heading, Source, Table, TableRow
from calibrant.bench.report.rows import Answer, section_rows
from calibrant.bench.report.sections import NoAnswersError, ReportContents
from calibrant.bench.report.views import view_tables
from calibrant.dsl.blickets.generation import SUITES, sample_items
from calibrant.dsl.blickets.item import BlicketItem
from calibrant.dsl.errors import CalibrantError, short_repr

PAPER_IDS = ("5a", "5b", "6", "F2", "7", "8", "9", "10", "11")
TABLE_IDS = (*(view.id for view in METRICS.views.values()), *PAPER_IDS)
Items: TypeAlias = Mapping[tuple[str, str], BlicketItem]  # by digest of the pool, and id


def blicket_tables(answers: Sequence[Answer], contents: ReportContents, items: Items) -> tuple[Table, ...]:
    """Return the tables of these answers; `CalibrantError` if there is none.

    items: those of the pools that are at hand; of others a condition of the paper is known by the suite alone
    """
    entries = named_answers(answers)
    rows = section_rows(answers, METRICS, contents.by)
    notes = coverage_notes(entries)
    notes_by_view = {"attribution": (*notes, *decision_notes(entry.score for entry in entries))}
    tables = view_tables(METRICS.views, rows, lambda name: notes_by_view.get(name, notes))
    tables += _paper_tables(entries, items, with_paper=contents.with_paper)
    selection = [table for table in tables if table.headings and (not contents.tables or table.id in contents.tables)]
    if not selection:
        raise NoAnswersError(f"no answers that belong into table {', '.join(sorted(contents.tables))}")
    return tuple(selection)


# --- the paper's ------------------------------------------------------------------------------------------------------


@cache
def _item_of_suite(name: str) -> BlicketItem | None:
    """Return an item for all of a suite: the paper's conditions hold for every item of a plan or for none."""
    return next(sample_items(SUITES[name], 0)) if name in SUITES else None


def _episodes(answers: Sequence[NamedAnswer], items: Items) -> Iterator[PlayedEpisode]:
    for answer in answers:
        item = items.get((answer.context.pool_digest, answer.context.instance)) or _item_of_suite(
            answer.context.stratum
        )
        if item is None or item.setting != answer.context.setting:
            continue
        try:
            score = msgspec.convert(dict(answer.score), PrintedScore)
        except msgspec.ValidationError as error:
            where = f"{answer.context.system} on {short_repr(answer.context.instance)} of {answer.context.pool}"
            raise CalibrantError(f"{where}: not a score of blickets: {error}") from None
        fired = score.provenance.fired
        yield PlayedEpisode(
            answer.system, item, score, None if fired is None else "DB4" in fired, answer.context.stratum
        )


def _paper_tables(answers: Sequence[NamedAnswer], items: Items, *, with_paper: bool) -> list[Table]:
    """Return the paper's tables: those that fit some of the answers, with its rows also the others.

    The last label of a row states its source.
    """
    has_items = all((answer.context.pool_digest, answer.context.instance) in items for answer in answers)
    note = (
        ()
        if has_items
        else ("Which of our items are under a condition is read off their stratum; --pool reads items.",)
    )
    tables = []
    for table in paper_tables(_episodes(answers, items)):
        if table.fits or with_paper:
            lines = tuple(_mark_source(row) for row in table.rows if with_paper or row.source is Source.OURS)
            labels = (*table.labels, Heading("source", "Rows"))
            tables.append(replace(table, labels=labels, rows=lines, notes=(*table.notes[not with_paper :], *note)))
    return tables


def _mark_source(row: TableRow) -> TableRow:
    return replace(row, labels=(*row.labels, row.source.value))
