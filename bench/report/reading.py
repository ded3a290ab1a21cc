"""Part of a report about how responses were read: what form alone costs, and why responses hold no answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

from calibrant.bench.core.benchmark import Benchmark
from calibrant.bench.core.metrics import READERS
from calibrant.bench.core.responses import EXCLUDED, REASONS
from calibrant.bench.report.layout import NOTHING, Cell, Heading, Table, TableRow, shown_columns
from calibrant.bench.report.rows import Answer, with_chosen
from calibrant.bench.report.sections import ReportContents, Section, rate_cell
from calibrant.bench.report.table import ResultTable, readers_differ
from calibrant.dsl.text import plural

READING_TABLE = "reading"
TABLE_IDS = (READING_TABLE,)
LABELS = (Heading("setting", "Setting"), Heading("system", "System"), Heading("pool", "Pool"), Heading("n", "n"))
TITLE = "How responses were read"
OF_READERS = (
    "Correct: right answers by the chosen rule; published: by the published rule on the whole text; lenient: by the"
    " reader that also takes answers in other forms. Lenient less correct is what form alone costs."
)
OF_REASONS = "The other columns count responses without an answer, by reason;"
OF_EXCLUDED = "not_run and infrastructure_error are in no rate and no n, all others are not right."


def add_reading(section: Section, of: Benchmark[Any], answers: Sequence[Answer], contents: ReportContents) -> Section:
    """Return the section with the table of readings first, where readers differ or responses hold no answer."""
    if contents.tables and READING_TABLE not in contents.tables:
        return section
    excluded = [(context, reason) for context, reason in contents.excluded if context.benchmark == of.name]
    if not excluded and not any("correctPublished" in score for _, score in answers):  # records of runs alone
        return section
    collected = ResultTable(of.metrics, by=contents.by, handling=contents.means)
    for answer in chain.from_iterable(map(with_chosen, answers)):
        collected.add(*answer)
    for context, reason in excluded:
        collected.exclude(context, reason)
    table = _table(collected)
    if table is None:
        return section
    return replace(section, tables=(table, *section.tables), reading=_sentence(collected))


def _sentence(collected: ResultTable) -> str:
    """Return how many responses are in no rate, and how many have no answer; empty without any."""
    counts = sum((reasons for _, reasons in (*collected.read_rows(), *collected.unrated())), start=Counter[str]())
    num_excluded = sum(counts[reason] for reason in EXCLUDED)
    num_silent = counts.total() - num_excluded
    parts = []
    if num_excluded:
        verb = "is" if num_excluded == 1 else "are"
        parts.append(f"{plural(num_excluded, 'responses')} {verb} in no rate: not run, or the request failed")
    if num_silent:
        verbs = "holds no answer and counts" if num_silent == 1 else "hold no answer and count"
        parts.append(f"{plural(num_silent, 'responses')} {verbs} as not right")
    return f"{'; '.join(parts)}." if parts else ""


def _table(collected: ResultTable) -> Table | None:
    rows, unrated = [*collected.read_rows()], collected.unrated()
    reasons = [reason for reason in REASONS if any(counts[reason] for _, counts in (*rows, *unrated))]
    is_by_reader = any(readers_differ(row) for row, _ in rows)
    if not reasons and not is_by_reader:
        return None
    metrics = READERS if is_by_reader else READERS[:1]
    headings = [Heading(metric.key, metric.heading) for metric in metrics]
    headings += [Heading(f"reason:{reason}", reason) for reason in reasons]
    lines = [
        TableRow(
            (row.setting, row.system, row.pool, str(row.num_items)),
            (*(rate_cell(row, metric) for metric in metrics), *_counts(counts, reasons)),
        )
        for row, counts in rows
    ]
    lines += [
        TableRow(
            (labels["setting"], labels["system"], labels["pool"], "0"),
            (*(NOTHING for _ in metrics), *_counts(counts, reasons)),
        )
        for labels, counts in unrated
    ]
    sentences = [OF_READERS] if is_by_reader else []
    if reasons:
        sentences.append(
            f"{OF_REASONS} {OF_EXCLUDED}" if set(reasons) & EXCLUDED else f"{OF_REASONS[:-1]}; none is right."
        )
    return shown_columns(Table(READING_TABLE, TITLE, " ".join(sentences), LABELS, tuple(headings), tuple(lines)))


def _counts(counts: Counter[str], reasons: Sequence[str]) -> Iterator[Cell]:
    yield from (Cell(str(counts[reason])) if counts[reason] else NOTHING for reason in reasons)
