"""Perturbation data as MIDAS: TR columns are treatments, DA columns times, DV columns values."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from calibrant.dsl.errors import PoolError, short_repr
from calibrant.dsl.logic.files.text_input import check_name, find_repeated, read_text, table_rows
from calibrant.dsl.logic.prior import Edge, node_names
from calibrant.dsl.logic.task import Experiment, Setup

_MISSING = {"", "na", "nan"}
ALL_READOUTS = "ALL"


@dataclass(frozen=True, slots=True)
class Dataset:
    """Experiments of one time.

    values: a row an experiment, None where nothing was measured; notes: a line each
    """

    setup: Setup
    experiments: tuple[Experiment, ...]
    values: tuple[tuple[float | None, ...], ...]
    notes: tuple[str, ...] = ()


class _Column(NamedTuple):
    position: int
    header: str
    name: str


@dataclass
class _Header:
    """Columns by role, in header order."""

    stimuli: list[_Column] = field(default_factory=list)
    inhibitors: list[_Column] = field(default_factory=list)
    times: list[_Column] = field(default_factory=list)
    values: list[_Column] = field(default_factory=list)
    cell_lines: list[_Column] = field(default_factory=list)

    @property
    def setup(self) -> Setup:
        return Setup(*(tuple(c.name for c in columns) for columns in (self.stimuli, self.inhibitors, self.values)))


def read_midas(path: Path, time: float | str | None = None, prior: Iterable[Edge] = ()) -> Dataset:
    """Return the experiments whose every DA column has the time; `PoolError` names line and column of what is refused.

    time: None if the file has one time only
    prior: tells an inhibitor of `abc` from a stimulus that is called `abci`
    """
    return parse_midas(read_text(path), time, prior, path.name)


def parse_midas(text: str, time: float | str | None = None, prior: Iterable[Edge] = (), file: str = "") -> Dataset:
    """Return the experiments of a MIDAS text, see `read_midas`."""
    lines = list(table_rows(text, file))
    if not lines:
        raise PoolError("empty; a MIDAS file begins with a header line", file=file)
    header = _read_header(lines[0][1], file, node_names(tuple(prior)))
    experiments, values, times = _read_rows(lines, header, file)
    chosen = _choose_time(times, time, file)
    rows = [number for number, row in enumerate(times) if all(entry == chosen for entry in row)]
    if not rows:
        raise PoolError(f"no row has time {chosen:g} in every DA column", file=file)
    measured = tuple(values[number] for number in rows)
    if all(value is None for row in measured for value in row):
        raise PoolError(f"no value at time {chosen:g}", file=file)
    return Dataset(header.setup, tuple(experiments[number] for number in rows), measured, _header_notes(header))


def parse_clamps(text: str, file: str = "") -> list[Experiment]:
    """Return the experiments of a CSV text of TR columns, one a row; other columns of MIDAS are ignored."""
    lines = list(table_rows(text, file))
    if not lines:
        raise PoolError("empty; a table of experiments begins with a header line of TR columns", file=file)
    header = _sort_columns(lines[0][1], file, set())
    clash = sorted({c.name for c in header.stimuli} & {c.name for c in header.inhibitors})
    if clash:
        raise PoolError(f"{short_repr(clash[0])} is a stimulus and an inhibitor", file=file, field="header")
    if not header.stimuli and not header.inhibitors:
        raise PoolError("no TR column; TR:X is a stimulus, TR:Xi the inhibitor of X", file=file, field="header")
    bare = _Header(header.stimuli, header.inhibitors)
    return _read_rows(lines, bare, file)[0]


def _read_header(fields: Sequence[str], file: str, nodes: set[str]) -> _Header:
    header = _sort_columns(fields, file, nodes)
    _check_header(header, file)
    return header


def _sort_columns(fields: Sequence[str], file: str, nodes: set[str]) -> _Header:
    repeated = find_repeated(list(fields))
    if repeated is not None:
        raise PoolError("occurs twice", file=file, field=f"column {short_repr(repeated)}")
    header = _Header()
    for position, text in enumerate(fields):
        _sort_column(_Column(position, text, text[3:].strip()), header, file, nodes)
    return header


def _sort_column(column: _Column, header: _Header, file: str, nodes: set[str]) -> None:
    kind, where = column.header[:3].upper(), f"column {short_repr(column.header)}"
    if kind == "ID:":
        return
    if kind == "TR:":
        _sort_treatment(column, header, file, nodes)
    elif kind in ("DA:", "DV:"):
        name = (
            column.name
            if column.name == ALL_READOUTS and kind == "DA:"
            else check_name(column.name, file=file, where=where)
        )
        (header.times if kind == "DA:" else header.values).append(column._replace(name=name))
    else:
        raise PoolError("columns begin with TR:, DA:, DV: or ID:", file=file, field=where)


def _sort_treatment(column: _Column, header: _Header, file: str, nodes: set[str]) -> None:
    where = f"column {short_repr(column.header)}"
    name, colon, role = (part.strip() for part in column.name.partition(":"))
    if role.lower() == "cellline":
        header.cell_lines.append(column)
        return
    if colon and role.lower() not in ("stimuli", "inhibitors"):
        raise PoolError("allowed after the name: Stimuli, Inhibitors, CellLine", file=file, field=where)
    inhibits = role.lower() == "inhibitors" if colon else name.endswith("i") and len(name) > 1
    if inhibits and not colon:
        if name in nodes and name[:-1] not in nodes:
            problem = f"the prior has {short_repr(name)} and no {short_repr(name[:-1])}; write TR:{name}:Stimuli"
            raise PoolError(problem, file=file, field=where)
        name = name[:-1]
    check_name(name, file=file, where=where)
    (header.inhibitors if inhibits else header.stimuli).append(column._replace(name=name))


def _check_header(header: _Header, file: str) -> None:
    if len(header.cell_lines) > 1:
        names = ", ".join(short_repr(column.header) for column in header.cell_lines[:3])
        raise PoolError(f"two cell lines ({names}); give a file with one of them", file=file)
    for role, columns in (
        ("stimulus", header.stimuli),
        ("inhibitor", header.inhibitors),
        ("readout", header.values),
        ("time", header.times),
    ):
        repeated = find_repeated([column.name for column in columns])
        if repeated is not None:
            raise PoolError(f"{role} {short_repr(repeated)} has two columns", file=file, field="header")
    clash = sorted({c.name for c in header.stimuli} & {c.name for c in header.inhibitors})
    if clash:
        raise PoolError(f"{short_repr(clash[0])} is a stimulus and an inhibitor", file=file, field="header")
    if not header.values:
        raise PoolError("no DV column; DV:R has the values of readout R", file=file, field="header")
    timed = {column.name for column in header.times}
    for column in header.values:
        if ALL_READOUTS not in timed and column.name not in timed:
            problem = f"no time; add a column DA:{column.name} or DA:{ALL_READOUTS}"
            raise PoolError(problem, file=file, field=f"column {short_repr(column.header)}")


def _read_rows(
    lines: Sequence[tuple[int, list[str]]], header: _Header, file: str
) -> tuple[list[Experiment], list[tuple[float | None, ...]], list[tuple[float, ...]]]:
    experiments, values, times = [], [], []
    width = len(lines[0][1])
    for number, fields in lines[1:]:
        where = f"line {number}"
        if len(fields) != width:
            raise PoolError(f"{len(fields)} fields; the header has {width}", file=file, instance=where)
        on, off = (
            frozenset(column.name for column in columns if _clamp(fields, column, file, where))
            for columns in (header.stimuli, header.inhibitors)
        )
        experiments.append(Experiment(on, off))
        times.append(tuple(_time(fields[column.position], column, file, where) for column in header.times))
        values.append(tuple(_value(fields[column.position], column, file, where) for column in header.values))
    if not experiments:
        raise PoolError("no row below the header", file=file)
    return experiments, values, times


def _clamp(fields: Sequence[str], column: _Column, file: str, where: str) -> bool:
    number = _number(fields[column.position])
    if number not in (0, 1):
        problem = f"{short_repr(fields[column.position])}; a TR cell is 0 or 1"
        raise PoolError(problem, file=file, instance=where, field=f"column {short_repr(column.header)}")
    return number == 1


def _time(text: str, column: _Column, file: str, where: str) -> float:
    number = _number(text)
    if number is None or not math.isfinite(number):
        problem = f"{short_repr(text)}; a DA cell is a finite number"
        raise PoolError(problem, file=file, instance=where, field=f"column {short_repr(column.header)}")
    return number


def _value(text: str, column: _Column, file: str, where: str) -> float | None:
    if text.lower() in _MISSING:
        return None
    number = _number(text)
    if number is None or not math.isfinite(number) or abs(number) > 1e100:
        problem = f"{short_repr(text)}; a value is a finite number, or empty, NA or NaN where nothing was measured"
        raise PoolError(problem, file=file, instance=where, field=f"column {short_repr(column.header)}")
    return number


def _number(text: str) -> float | None:
    if len(text) > 100 or "_" in text or not text.isascii():
        return None
    try:
        return float(text)
    except ValueError:
        return None


def _choose_time(times: Sequence[Sequence[float]], time: float | str | None, file: str) -> float:
    present = sorted({entry for row in times for entry in row})
    listed = ", ".join(f"{entry:g}" for entry in present[:10]) + (", ..." if len(present) > 10 else "")
    if time is None:
        if len(present) > 1:
            raise PoolError(f"several times: {listed}; name one of them (--time)", file=file)
        return present[0]
    chosen = time if isinstance(time, int | float) else _number(time)
    if chosen is None or chosen not in present:
        raise PoolError(f"no time {short_repr(time)}; there are: {listed}", file=file)
    return float(chosen)


def _header_notes(header: _Header) -> tuple[str, ...]:
    notes = []
    if not header.cell_lines:
        notes.append("no TR:...:CellLine column; every TR column was read (caspo drops the first column of a file)")
    measured = {column.name for column in header.values}
    unused = [c.header for c in header.times if c.name != ALL_READOUTS and c.name not in measured]
    if unused:
        notes.append(f"times without values: {', '.join(unused[:5])}")
    return tuple(notes)
