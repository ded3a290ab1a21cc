"""Series of states, x(t + 1) = f(x(t)), with unknown cells and held genes: reference semantics.

A series may hold genes at a value in all its states; it gives no readings of these genes. The formula of a gene is over
the prior edges into it, self-edges included; models are not restricted otherwise. A reading, the value of a gene after
a step, is wrong only if the formula is wrong for all values of the unknown cells before the step.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Final, Literal, TypeAlias

from calibrant.dsl.errors import RefusedError, readable_repr
from calibrant.dsl.logic.files.networks import find_repeated, name_problem, table_rows
from calibrant.dsl.logic.item import Edge, LogicError, Model, is_node_name
from calibrant.dsl.parse_limits import read_text
from calibrant.dsl.text import nearest_hint

SERIES_COLUMN, HELD_COLUMN = "series", "set"
_VALUES = {"0": 0, "1": 1, "0.0": 0, "1.0": 1}  # frames with gaps write numbers with a point
Updates: TypeAlias = Literal["synchronous", "asynchronous"]
UPDATES: Final = ("synchronous", "asynchronous")
State: TypeAlias = tuple[int | None, ...]
"""One value for each gene, None if it is unknown."""


@dataclass(frozen=True, slots=True)
class Series:
    """States in the order of time, values in the order of the genes.

    clamped: genes held at a value in every state
    """

    states: tuple[State, ...]
    clamped: Mapping[str, int] = field(default_factory=dict)

    @property
    def steps(self) -> Iterator[tuple[State, State]]:
        """The pairs of successive states."""
        return zip(self.states, self.states[1:], strict=False)


@dataclass(frozen=True)
class SeriesTask:
    """Observed series over genes, with the prior edges of their formulas.

    max_clause: maximal number of literals of a clause, 0 for no limit; extra_errors: wrong readings above the minimum
    updates: a step updates all genes (synchronous), or one gene that is not held (asynchronous)
    """

    genes: tuple[str, ...]
    prior: tuple[Edge, ...]
    series: tuple[Series, ...]
    max_clause: int = 0
    extra_errors: int = 0
    updates: Updates = "synchronous"

    def __post_init__(self) -> None:
        genes = set(self.genes)
        if len(genes) != len(self.genes):
            raise LogicError("a gene occurs twice")
        strange = next((edge for edge in self.prior if not {edge.source, edge.target} <= genes), None)
        if strange is not None:
            raise LogicError(f"edge {strange} has a name that is no gene of the series")
        if self.max_clause < 0 or self.extra_errors < 0:
            raise LogicError("max_clause and extra_errors are 0 or more")
        if self.updates not in UPDATES:
            raise LogicError(f"updates {readable_repr(self.updates)}; one of {', '.join(UPDATES)}")
        for number, series in enumerate(self.series, 1):
            _check_series(series, self.genes, f"series {number}")
            if self.updates == "asynchronous":
                _check_single_updates(series, f"series {number}")

    @property
    def num_unknown_cells(self) -> int:
        """The number of unknown cells."""
        return sum(value is None for series in self.series for state in series.states for value in state)


def _check_series(series: Series, genes: Sequence[str], where: str) -> None:
    for state in series.states:
        if len(state) != len(genes) or any(value not in (0, 1, None) for value in state):
            raise LogicError(f"{where}: a state has a 0 or 1, or None, for each of {len(genes)} genes")
    for gene, value in series.clamped.items():
        if gene not in genes or value not in (0, 1):
            raise LogicError(f"{where}: clamp {readable_repr(gene)} is no gene with 0 or 1")
        position = list(genes).index(gene)
        if any(state[position] != value for state in series.states):
            raise LogicError(f"{where}: {readable_repr(gene)} is clamped to {value} and has another value in a state")


def _check_single_updates(series: Series, where: str) -> None:
    if any(None in state for state in series.states):
        raise LogicError(f"{where}: an unknown cell; asynchronous series have none")
    for time, (before, after) in enumerate(series.steps, 1):
        if len(changed_genes(before, after)) > 1:
            raise LogicError(f"{where}: step {time} changes several genes; an asynchronous step updates one")


def changed_genes(before: State, after: State) -> list[int]:
    """Return the indices of the genes that a step changes."""
    return [position for position, pair in enumerate(zip(before, after, strict=True)) if pair[0] != pair[1]]


def readings(task: SeriesTask, gene: str) -> Iterator[tuple[State, int]]:
    """Yield the state before and the value after of each reading of a gene.

    Synchronous: each step of a series that does not hold the gene and in which its value after is known; asynchronous:
    each step that changes it.
    """
    position = task.genes.index(gene)
    for series in task.series:
        if gene not in series.clamped:
            for before, after in series.steps:
                value = after[position]
                if value is not None and (task.updates == "synchronous" or before[position] != value):
                    yield before, value


def count_errors(model: Model, task: SeriesTask, gene: str) -> int:
    """Return the number of wrong readings of a gene under its formula in a model; without clauses this is constant 0.

    A reading is wrong if the formula is wrong for all values of the unknown cells in the state before.
    """
    formula = [clause for clause in model if clause.target == gene]
    sources = sorted({source for clause in formula for source in clause.sources})
    wrong = 0
    for before, after in readings(task, gene):
        state = dict(zip(task.genes, before, strict=True))
        options = [(0, 1) if state[source] is None else (state[source],) for source in sources]
        completions = (dict(zip(sources, values, strict=True)) for values in product(*options))
        wrong += all(
            any(all(values[source] == (sign == 1) for source, sign in clause.literals) for clause in formula)
            != bool(after)
            for values in completions
        )
    return wrong


# --- Files ------------------------------------------------------------------------------------------------------------
_UNKNOWN = {"", "na", "nan"}
_NO_WORD = {*_UNKNOWN, "n/a", "null", "<na>", "?"}
_NOTHING_HELD = {"none", "-", "obs", "observed", "observational", "0"}  # unless a gene has that name
_DO = re.compile(r"\bdo\(([^()]*)\)", re.IGNORECASE)
_POSITION = re.compile(r"[0-9]{1,9}(?:\.0*)?", re.ASCII)  # frames with gaps write numbers with a point
_FORMS = "write genes as X, do(X), X=1, or nothing for none"


def read_series(path: Path, updates: Updates = "synchronous") -> tuple[tuple[str, ...], tuple[Series, ...]]:
    """Return genes and series of a CSV file, as `parse_series` does of a text."""
    return parse_series(read_text(path), path.name, updates)


def parse_series(
    text: str, file: str = "", updates: Updates = "synchronous"
) -> tuple[tuple[str, ...], tuple[Series, ...]]:
    """Return genes and series of a CSV text: a column `series`, one column for each gene, rows in order of time.

    A value is 0 or 1; blank, NA and NaN are unknown. A column `set` names, in the first row of a series, the genes that
    are held in it: `X`, `do(X)`, `X=1`, several between blanks or one of , ; + |, or positions of the genes from 1.
    `RefusedError` names the line, and the gene or column, of what is refused.
    """
    lines = list(table_rows(text, file))
    if not lines:
        raise RefusedError("empty; a file of series begins with a header line", reason="header", file=file)
    genes, kinds = _read_header(lines[0], file)
    rows: dict[str, list[_Row]] = {}
    for line_number, fields in lines[1:]:
        if len(fields) != len(kinds):
            problem = f"{len(fields)} fields; the header has {len(kinds)}"
            raise RefusedError(problem, reason="fields", line=line_number, file=file)
        cells = {kind: cell for kind, cell in zip(kinds, fields, strict=True) if kind is not None}
        state = [cell for kind, cell in zip(kinds, fields, strict=True) if kind is None]
        values = tuple(_value(cell, gene, line_number, file) for gene, cell in zip(genes, state, strict=True))
        rows.setdefault(cells[SERIES_COLUMN], []).append(_Row(line_number, cells.get(HELD_COLUMN, ""), values))
    if not rows:
        raise RefusedError("no row below the header", reason="header", file=file)
    if len(rows) > 1 and "" in rows:
        problem = "empty, where other rows name their series; repeat the name in each row of a series"
        raise _of_column(problem, "series-blank", SERIES_COLUMN, rows[""][0].line, file)
    by_position = _are_positions([row for entries in rows.values() for row in entries], genes, file)
    return genes, tuple(_series(entries, genes, by_position, updates, file) for entries in rows.values())


@dataclass(frozen=True, slots=True)
class _Row:
    line: int
    held: str
    values: State


def series_column(header: Sequence[str]) -> str | None:
    """Return the column that names the series, `series` or the same in capitals; None if there is none."""
    return next((name for name in (SERIES_COLUMN, *header) if name in header and name.lower() == SERIES_COLUMN), None)


def _read_header(line: tuple[int, list[str]], file: str) -> tuple[tuple[str, ...], list[str | None]]:
    """Return the genes, and the role of each column: `series`, `set`, or None for a gene."""
    line_number, header = line
    repeated = find_repeated(header)
    if repeated is not None:
        raise _of_column("occurs twice", "header", repeated, line_number, file)
    if (column := series_column(header)) is None:
        problem = f"no column '{SERIES_COLUMN}', which names the series of a row"
        raise RefusedError(problem, reason="header", line=line_number, file=file)
    kinds = [SERIES_COLUMN if name == column else name if name == HELD_COLUMN else None for name in header]
    genes = tuple(name for name, kind in zip(header, kinds, strict=True) if kind is None)
    for gene in genes:
        if not gene:
            problem = f"column {header.index(gene) + 1} has no name; take out names of rows"
            raise RefusedError(problem, reason="header", line=line_number, file=file)
        if not is_node_name(gene):
            raise _of_column(name_problem(gene), "header", gene, line_number, file)
    if not genes:
        raise RefusedError("no column of a gene", reason="header", line=line_number, file=file)
    return genes, kinds


def _of_column(problem: str, reason: str, gene: str, line: int, file: str) -> RefusedError:
    field_name = f"column {readable_repr(gene)}"
    return RefusedError(problem, reason=reason, line=line, name=gene, file=file, field=field_name)


def _value(cell: str, gene: str, line: int, file: str) -> int | None:
    if cell.lower() in _UNKNOWN:
        return None
    if cell not in _VALUES:
        problem = (
            f"{readable_repr(cell)}; a value is 0 or 1, or blank where it is not known; series are not binarised here,"
            " and columns are genes: take out others, such as times"
        )
        raise _of_column(problem, "value", gene, line, file)
    return _VALUES[cell]


def _parts(text: str, genes: Sequence[str]) -> list[str]:
    """Return the settings that a cell of the column `set` states, each `X` or `X=1`; none for a word for nothing."""
    if text in genes:
        return [text]
    if text.lower() in _NO_WORD | _NOTHING_HELD:
        return []
    return _split(re.sub(r"\s*=\s*", "=", _DO.sub(r" \1 ", text)))


def _are_positions(rows: Iterable[_Row], genes: Sequence[str], file: str) -> bool:
    """Return whether the column `set` has positions of genes; a number that is a name, too, is refused."""
    stating = [row for row in rows if _parts(row.held, genes)]
    if not stating or any(_POSITION.fullmatch(part) is None for row in stating for part in _split(row.held)):
        return False
    for row in stating:
        for part in _split(row.held):
            if part in genes and genes.index(part) + 1 != _position(part):
                problem = f"{part} is the name of a gene and not its position; write do({part}) for the name"
                raise RefusedError(problem, reason="unknown-name", line=row.line, name=part, file=file)
    return True


def _split(text: str) -> list[str]:
    return [part for part in re.split(r"[,;+|\s]+", text) if part]


def _position(part: str) -> int:
    return int(part.partition(".")[0])


def _series(rows: Sequence[_Row], genes: Sequence[str], by_position: bool, updates: Updates, file: str) -> Series:
    """Return a series with the cells of held genes filled in; by_position: whether numbers are positions of genes."""
    first = rows[0]
    stated = _held_genes(first, genes, by_position, file)
    for row in rows[1:]:
        if row.held.lower() not in _UNKNOWN and _held_genes(row, genes, by_position, file) != stated:
            problem = f"{readable_repr(row.held)}; the first row of the series has {readable_repr(first.held)}"
            raise _of_column(f"{problem}: genes are held throughout", "set-changes", HELD_COLUMN, row.line, file)
    held: dict[str, int] = {}
    for gene, value in stated.items():
        position = genes.index(gene)
        values = {row.values[position] for row in rows} - {None} | ({value} - {None})
        if len(values) != 1:
            problem = "held, and has both values" if values else "held, and no row has its value"
            raise _of_column(problem, "clamp-value", gene, first.line, file)
        held[gene] = int(values.pop() or 0)
    states: list[State] = []
    for row in rows:
        states.append(tuple(held.get(gene, value) for gene, value in zip(genes, row.values, strict=True)))
        if updates == "asynchronous":
            _require_one_update(states, row.line, genes, file)
    return Series(tuple(states), held)


def _held_genes(row: _Row, genes: Sequence[str], by_position: bool, file: str) -> dict[str, int | None]:
    """Return the genes that a cell of the column `set` names, with their stated values; None without one."""
    held: dict[str, int | None] = {}
    for part in _parts(row.held, genes):
        name, equals, value = part.partition("=")
        if by_position:
            number = _position(part)
            if number == 0:
                continue
            name = genes[number - 1] if number <= len(genes) else part
        if name not in genes:
            hint = nearest_hint(name, genes)
            problem = f"{readable_repr(name)} is no gene{hint}; {_FORMS}"
            raise RefusedError(problem, reason="unknown-name", line=row.line, name=name, file=file)
        if equals and value not in _VALUES:
            problem = f"{readable_repr(part)}; a gene is held at 0 or 1"
            raise RefusedError(problem, reason="clamp-value", line=row.line, name=name, file=file)
        before, stated = held.get(name), _VALUES[value] if equals else None
        if before is not None and stated is not None and before != stated:
            problem = f"{readable_repr(row.held)} states two values of {readable_repr(name)}"
            raise RefusedError(problem, reason="clamp-value", line=row.line, name=name, file=file)
        held[name] = before if stated is None else stated
    return held


def _require_one_update(states: Sequence[State], line: int, genes: Sequence[str], file: str) -> None:
    if None in states[-1]:
        gene = genes[states[-1].index(None)]
        raise _of_column("unknown; asynchronous series have no gaps", "gaps", gene, line, file)
    changed = changed_genes(states[-2], states[-1]) if len(states) > 1 else []
    if len(changed) > 1:
        names = ", ".join(genes[position] for position in changed)
        problem = f"the step to this row changes {names}; an asynchronous step updates one gene"
        raise RefusedError(problem, reason="two-changes", line=line, file=file)
