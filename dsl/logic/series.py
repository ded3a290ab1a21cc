"""Fully observed synchronous series: every state is seen, and x(t + 1) = f(x(t)); the meaning, slow and plain.

A series may clamp genes to a value throughout; it gives no reading of those. A gene's formula is over prior edges into
it, self-edges allowed; nothing else restricts a model.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from calibrant.dsl.bounded_files import read_text
from calibrant.dsl.errors import PoolError, short_repr
from calibrant.dsl.logic.files.networks import check_name, find_repeated, table_rows
from calibrant.dsl.logic.item import Edge, LogicError, Model

SERIES_COLUMN = "series"


@dataclass(frozen=True, slots=True)
class Series:
    """States in the order of time, values in the order of the genes.

    clamped: genes held at a value in every state
    """

    states: tuple[tuple[int, ...], ...]
    clamped: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class SeriesTask:
    """Observed series over genes, with the prior edges of their formulas.

    max_clause: most literals of a clause, 0 for no limit; extra_errors: wrong readings beyond the least
    """

    genes: tuple[str, ...]
    prior: tuple[Edge, ...]
    series: tuple[Series, ...]
    max_clause: int = 0
    extra_errors: int = 0

    def __post_init__(self) -> None:
        genes = set(self.genes)
        if len(genes) != len(self.genes):
            raise LogicError("a gene occurs twice")
        strange = next((edge for edge in self.prior if not {edge.source, edge.target} <= genes), None)
        if strange is not None:
            raise LogicError(f"edge {strange} has a name that is no gene of the series")
        if self.max_clause < 0 or self.extra_errors < 0:
            raise LogicError("max_clause and extra_errors are 0 or more")
        for number, series in enumerate(self.series, 1):
            _check_series(series, self.genes, f"series {number}")


def _check_series(series: Series, genes: Sequence[str], where: str) -> None:
    for state in series.states:
        if len(state) != len(genes) or any(value not in (0, 1) for value in state):
            raise LogicError(f"{where}: a state has a 0 or 1 for each of {len(genes)} genes")
    for gene, value in series.clamped.items():
        if gene not in genes or value not in (0, 1):
            raise LogicError(f"{where}: clamp {short_repr(gene)} is no gene with 0 or 1")
        position = list(genes).index(gene)
        if any(state[position] != value for state in series.states):
            raise LogicError(f"{where}: {short_repr(gene)} is clamped to {value} and has another value in a state")


def readings(task: SeriesTask, gene: str) -> Iterator[tuple[tuple[int, ...], int]]:
    """Yield the state before and the value after of each step of each series that does not clamp the gene."""
    position = task.genes.index(gene)
    for series in task.series:
        if gene not in series.clamped:
            for before, after in zip(series.states, series.states[1:], strict=False):
                yield before, after[position]


def count_errors(model: Model, task: SeriesTask, gene: str) -> int:
    """Return the number of readings of a gene that its formula gets wrong; an empty formula is 0."""
    formula = [clause for clause in model if clause.target == gene]
    wrong = 0
    for before, after in readings(task, gene):
        values = dict(zip(task.genes, before, strict=True))
        value = any(all(values[source] == (sign == 1) for source, sign in clause.literals) for clause in formula)
        wrong += value != bool(after)
    return wrong


def read_series(path: Path) -> tuple[tuple[str, ...], tuple[Series, ...]]:
    """Return genes and series of a CSV file, see `parse_series`."""
    return parse_series(read_text(path), path.name)


def parse_series(text: str, file: str = "") -> tuple[tuple[str, ...], tuple[Series, ...]]:
    """Return genes and series of a CSV text: a column `series`, one a gene with 0 or 1, rows in the order of time."""
    rows = list(table_rows(text, file))
    if not rows:
        raise PoolError("empty; a file of series begins with a header line", file=file)
    header = rows[0][1]
    repeated = find_repeated(header)
    if repeated is not None:
        raise PoolError("occurs twice", file=file, field=f"column {short_repr(repeated)}")
    if SERIES_COLUMN not in header:
        raise PoolError(f"no column '{SERIES_COLUMN}', which names the series of a row", file=file, field="header")
    position = header.index(SERIES_COLUMN)
    genes = tuple(check_name(name, file=file, where="header") for i, name in enumerate(header) if i != position)
    if not genes:
        raise PoolError("no column of a gene", file=file, field="header")
    states: dict[str, list[tuple[int, ...]]] = {}
    for number, fields in rows[1:]:
        where = f"line {number}"
        if len(fields) != len(header):
            raise PoolError(f"{len(fields)} fields; the header has {len(header)}", file=file, instance=where)
        values = [value for i, value in enumerate(fields) if i != position]
        for gene, value in zip(genes, values, strict=True):
            if value not in ("0", "1"):
                problem = f"{short_repr(value)}; a value is 0 or 1, series are not binarised here"
                raise PoolError(problem, file=file, instance=where, field=f"column {short_repr(gene)}")
        states.setdefault(fields[position], []).append(tuple(map(int, values)))
    if not states:
        raise PoolError("no row below the header", file=file)
    return genes, tuple(Series(tuple(rows_of)) for rows_of in states.values())
