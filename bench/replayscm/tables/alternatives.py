"""Alternatives that answers have discovered: the shape of Tables F.11 and F.12.

An alternative is a valid, train-exact SCM that is semantically distinct from gold: some mechanism has another truth
table, or the root set is another one. Without gold, or without structure metrics in the score, it is not known.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from calibrant.bench.core.metrics import Metric
from calibrant.bench.core.rates import UNDEFINED
from calibrant.bench.replayscm.tables.paper import notes, with_printed_rows
from calibrant.bench.replayscm.tables.rates import Count, RateTable
from calibrant.bench.replayscm.tables.rows import SystemRow, by_pools
from calibrant.bench.replayscm.verdict import MetricReader
from calibrant.bench.report.layout import Cell, Heading, Table, TableRow


def is_alternative(verdict: MetricReader) -> bool | None:
    """Return whether an answer is an alternative; None if that is not known."""
    if not (verdict.valid and verdict.train_exact):
        return False
    if verdict.root_exact is False:
        return True
    matched = verdict.structure.get("local_match")
    return None if matched is None else bool(matched != 1)


def _has_gold(setting: str) -> bool:
    return not setting.startswith("Alt-")


PER_SYSTEM = RateTable(
    "F.12",
    "Alternatives discovered, by system",
    "How many train-exact answers differ in meaning from gold, per answer and per train-exact answer. These are"
    " discoveries: what no system found may still be there.",
    (
        Count("num_train_exact", "Train-exact", lambda v: v.train_exact),
        Count("num_alternatives", "Alternatives", lambda v: is_alternative(v) is True),
        Metric("alternative", "per answer", "answers that differ in meaning from gold", is_alternative),
        Metric(
            "alternative_given_train_exact",
            "per train-exact",
            "train-exact answers that do",
            lambda v: is_alternative(v) if v.train_exact else None,
            True,
        ),
    ),
    _has_gold,
)

_HEADINGS = (
    Heading("num_without_model_alternative", "No model found one"),
    Heading("num_without_search_alternative", "No search found one"),
    Heading("num_without_alternative", "None found at all"),
    Heading("any_alternative", "Any found, rate"),
)


def per_problem(rows: Sequence[SystemRow], *, with_paper: bool) -> Table | None:
    """Table F.11: on how many problems nobody found an alternative."""
    with_gold = [row for row in rows if _has_gold(row.setting)]
    lines = tuple(_problem_row(group) for group in by_pools(with_gold))
    if not lines:
        return None
    note_lines: tuple[str, ...] = ()
    if with_paper:
        lines = with_printed_rows("F.11", lines, [heading.key for heading in _HEADINGS])
        note_lines = notes(
            "F.11", lines, (row.pool for row in with_gold)
        )  # even of the same pool other systems were asked
    labels = (Heading("setting", "Setting"), Heading("systems", "Systems"), Heading("pool", "Pool"), Heading("n", "n"))
    caption = "Numbers of problems on which no train-exact answer differs in meaning from gold."
    return Table("F.11", "Alternatives discovered, by problem", caption, labels, _HEADINGS, lines, note_lines)


def _problem_row(group: Sequence[SystemRow]) -> TableRow:
    problems = {(o.pool_digest, o.instance) for row in group for o in row.observations}
    models = [row for row in group if row.is_model]
    searches = [row for row in group if not row.is_model]
    found_any = _with_alternative(group)
    cells = [str(len(problems - _with_alternative(part))) if part else UNDEFINED for part in (models, searches, group)]
    first = group[0]
    labels = first.setting, f"{len(models)} models, {len(searches)} searches", first.pool, str(len(problems))
    return TableRow(labels, tuple(Cell(text) for text in (*cells, f"{len(found_any) / len(problems):.3f}")))


def _with_alternative(rows: Iterable[SystemRow]) -> set[tuple[str, str]]:
    return {(o.pool_digest, o.instance) for row in rows for o in row.observations if is_alternative(o.verdict)}
