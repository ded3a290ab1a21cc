"""Alternatives that answers have discovered, by problem: the shape of Table F.11.

An alternative is a valid, train-exact SCM that is semantically distinct from gold: some mechanism has another truth
table, or the root set is another one. Without gold, or without structure metrics in the score, it is not known.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from dataclasses import replace

from calibrant.bench.core.metrics import UNDEFINED
from calibrant.bench.replayscm.tables.paper import fits_printed, notes, with_printed
from calibrant.bench.replayscm.tables.rows import by_pools, is_model, pool_name
from calibrant.bench.report.layout import Cell, Heading, Table, TableRow
from calibrant.bench.report.rows import Row


def _has_gold(setting: str) -> bool:
    return not setting.startswith("Alt-")


_HEADINGS = (
    Heading("num_without_model_alternative", "No model found one"),
    Heading("num_without_search_alternative", "No search found one"),
    Heading("num_without_alternative", "None found at all"),
    Heading("any_alternative", "Any found, rate"),
)


def per_problem(rows: Sequence[Row], *, with_paper: bool) -> Table | None:
    """Table F.11: on how many problems nobody found an alternative."""
    with_gold = [row for row in rows if _has_gold(row.setting)]
    lines = tuple(_problem_row(group) for group in by_pools(with_gold))
    if not lines:
        return None
    labels = (Heading("setting", "Setting"), Heading("systems", "Systems"), Heading("pool", "Pool"), Heading("n", "n"))
    caption = "Numbers of problems on which no train-exact answer differs in meaning from gold."
    our_table = Table("F.11", "Alternatives discovered, by problem", caption, labels, _HEADINGS, lines)
    table = with_printed(our_table, with_paper=with_paper)
    if not (with_paper and table.fits):
        return table
    # even of the same pool other systems were asked
    return replace(table, notes=notes("F.11", table.rows, (pool_name(row) for row in with_gold)))


def _problem_row(group: Sequence[Row]) -> TableRow:
    problems = {item for row in group for item in row.items}
    models = [row for row in group if is_model(row)]
    searches = [row for row in group if not is_model(row)]
    cells = [_num_without(problems, part) for part in (models, searches, group)]
    rate = f"{len(_with_alternative(group)) / len(problems):.3f}" if cells[-1] != UNDEFINED else UNDEFINED
    first = group[0]
    labels = first.setting, f"{len(models)} models, {len(searches)} searches", pool_name(first), str(len(problems))
    texts = (*cells, rate)
    return TableRow(labels, tuple(map(Cell, texts)), fits=all(map(fits_printed, group)))


def _num_without(problems: Set[tuple[str, str]], rows: Sequence[Row]) -> str:
    """Return the number of problems without an alternative; undefined where it is not known of some answer.

    Scores without `--structure` do not have it.
    """
    rest = problems - _with_alternative(rows)
    unknown_items = {o.item for row in rows for o in row.observations if o.values[row.places["alternative"]] is None}
    return str(len(rest)) if rows and not rest & unknown_items else UNDEFINED


def _with_alternative(rows: Iterable[Row]) -> set[tuple[str, str]]:
    return {o.item for row in rows for o in row.observations if o.values[row.places["alternative"]]}
