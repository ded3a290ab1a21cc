"""Perturbation data as MIDAS: TR columns are treatments, DA columns times, DV columns values."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Final, Literal, NamedTuple, TypeAlias

import msgspec

from calibrant.dsl.errors import CalibrantError, PoolError, RefusedError, readable_repr
from calibrant.dsl.logic.files.networks import check_name, find_repeated, name_problem, table_rows
from calibrant.dsl.logic.item import Edge, Experiment, Setup, check_setup, is_node_name, node_names
from calibrant.dsl.parse_limits import read_text
from calibrant.dsl.records import decode_line

_MISSING = {"", "na", "nan"}
_ROLES = {"stimuli": False, "stimulus": False, "inhibitors": True, "inhibitor": True}  # role: whether it inhibits
_CELL_LINE_WORDS = ("cellline", "celltype")
_CELL_LINE_COLUMN = "cell line HeLa is a column TR:HeLa:CellType of 0 and 1"
_NO_TREATMENT = {"NOCYTO", "NOINHIB", "NOLIG", "NO-CYTO", "NO-INHIB", "NO-LIG"}
_PHOSPHO = "p-"
ALL_READOUTS = "ALL"

Times: TypeAlias = float | str | Sequence[float]
"""Chosen times: a number, several, or a text such as `10,30`."""
Normalisation: TypeAlias = Literal["minmax", "max", "clip", "none"]
NORMALISATIONS: Final = ("minmax", "max", "clip", "none")


class ReadoutRange(NamedTuple):
    """(minimum, maximum) of the used values of a readout, as measured and after normalisation."""

    readout: str
    measured: tuple[float, float]
    normalised: tuple[float, float]


@dataclass(frozen=True, slots=True)
class DataUse:
    """Used part of a file.

    num_rows, num_values: numbers in the file; times: chosen times; other_times: other times and their numbers of values
    ranges: of the normalised readouts
    """

    num_rows: int
    num_values: int
    times: tuple[float, ...]
    other_times: tuple[tuple[float, int], ...] = ()
    normalisation: Normalisation = "none"
    ranges: tuple[ReadoutRange, ...] = ()


@dataclass(frozen=True, slots=True)
class Dataset:
    """Experiments at the chosen times.

    values: a row for each experiment; None if a readout was not measured at a chosen time; notes: lines
    value_times: time of each cell of `values`, also of one that was not measured; None if its row has no value
    counts: number of corrections of columns and rows, by the words of _NOTES
    """

    setup: Setup
    experiments: tuple[Experiment, ...]
    values: tuple[tuple[float | None, ...], ...]
    value_times: tuple[tuple[float | None, ...], ...]
    use: DataUse
    notes: tuple[str, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)

    @property
    def num_values(self) -> int:
        """The number of used values."""
        return sum(value is not None for row in self.values for value in row)


class _Column(NamedTuple):
    position: int
    header: str
    name: str


class _Row(NamedTuple):
    """A line of the file; times: of each readout, None if it was not measured."""

    line: int
    experiment: Experiment
    times: tuple[float | None, ...]
    values: tuple[float | None, ...]


@dataclass
class _Header:
    """Columns by role, in header order.

    line: number of the header's line; counts: numbers of corrected columns, by the words of _NOTES
    """

    line: int
    stimuli: list[_Column] = field(default_factory=list)
    inhibitors: list[_Column] = field(default_factory=list)
    times: list[_Column] = field(default_factory=list)
    values: list[_Column] = field(default_factory=list)
    cell_lines: list[_Column] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)

    @property
    def setup(self) -> Setup:
        return Setup(*(tuple(c.name for c in columns) for columns in (self.stimuli, self.inhibitors, self.values)))


def read_midas(
    path: Path,
    time: Times | None = None,
    prior: Iterable[Edge] = (),
    normalise: Normalisation | None = None,
    cell_line: str | None = None,
) -> Dataset:
    """Return the experiments at the chosen times; `PoolError` names line and column of an invalid cell.

    A row is an experiment if one of its readouts has a chosen time; its values at other times are left out.
    time: None if the file has one time only
    cell_line: keeps the rows with 1 in its column; required if there are several cell lines
    prior: its nodes decide whether a column `abci` is an inhibitor of `abc` or a stimulus called `abci`
    normalise: how readings are mapped to [0, 1]; None refuses those outside, "none" leaves all unchanged
    """
    return parse_midas(read_text(path), time, prior, path.name, normalise, cell_line)


def parse_midas(
    text: str,
    time: Times | None = None,
    prior: Iterable[Edge] = (),
    file: str = "",
    normalise: Normalisation | None = None,
    cell_line: str | None = None,
) -> Dataset:
    """Return the experiments of a MIDAS text, see `read_midas`."""
    lines = list(table_rows(text, file))
    if not lines:
        raise RefusedError("empty; a MIDAS file begins with a header line", reason="empty", file=file)
    if normalise not in (None, *NORMALISATIONS):
        raise PoolError(f"normalise {readable_repr(normalise)}; one of {', '.join(NORMALISATIONS)}", file=file)
    header = _sort_columns(lines[0], file, node_names(tuple(prior)))
    _check_header(header, file)
    rows = _read_rows(_of_cell_line(lines, header, cell_line, file), header, file)
    chosen = _choose_times(rows, time, file)
    counts = Counter(
        entry for row in rows for entry, value in zip(row.times, row.values, strict=True) if value is not None
    )
    used = [_at_times(row, chosen) for row in rows if not chosen.isdisjoint(row.times)]
    _require_value(used, chosen, file)
    used, ranges, constant = _normalise(used, header.values, normalise, file)
    _require_value(used, chosen, file, "; minmax leaves readouts of one value unmeasured")
    times = tuple(sorted(chosen))
    use = DataUse(
        len(lines) - 1,
        counts.total(),
        times,
        tuple(sorted((entry, number) for entry, number in counts.items() if entry is not None and entry not in times)),
        normalise or "none",
        ranges,
    )
    experiments, values = tuple(row.experiment for row in used), tuple(row.values for row in used)
    header.counts["repeated"] = len(experiments) - len(set(experiments))
    header.counts["constant-readout"] = len(constant)
    header_notes = _header_notes(header)
    read_otherwise = +header.counts
    notes = [*header_notes, *(_NOTES[word].format(number) for word, number in read_otherwise.items())]
    if constant:
        notes.append(f"readouts of one value, which minmax leaves unmeasured: {', '.join(constant)}")
    if len(times) > 1:
        notes.append("times together are more experiments under the same clamps; the class of models has no time")
    value_times = tuple(row.times for row in used)
    return Dataset(
        header.setup, experiments, values, value_times, use, tuple(filter(None, notes)), dict(read_otherwise)
    )


_NOTES: Final[Mapping[str, str]] = {
    "blank-treatments": "blank cells of TR columns, read as 0: {}",
    "no-treatment-column": 'columns of "no treatment", left out: {}',
    "no-cell-line-column": "",  # has a line of its own
    "other-cell-line": "rows of other cell lines, left out: {}",
    "p-prefix": "columns of p-X, read as X, which the prior has: {}",
    "repeated": "experiments that repeat the treatments of an earlier one, each counted: {}",
    "constant-readout": "",
}
"""Word of `Dataset.counts` -> line."""


def _of_cell_line(
    lines: Sequence[tuple[int, list[str]]], header: _Header, cell_line: str | None, file: str
) -> Sequence[tuple[int, list[str]]]:
    """Return the header and the lines of a cell line; all lines if none is chosen and there is at most one."""
    names = {column.name.partition(":")[0].strip(): column for column in header.cell_lines}
    if cell_line is None:
        if len(header.cell_lines) > 1:
            problem = f"several cell lines: {', '.join(names)}; name one (--cell-line)"
            raise RefusedError(problem, reason="cell-lines", line=header.line, file=file)
        return lines
    if cell_line not in names:
        problem = f"no cell line {readable_repr(cell_line)}; there are: {', '.join(names) or 'none'}"
        raise RefusedError(problem, reason="no-cell-line", line=header.line, file=file)
    column = names[cell_line]
    width = len(lines[0][1])
    remaining = [
        (line_number, fields)
        for line_number, fields in lines[1:]
        if len(fields) != width or _clamp(fields, column, file, line_number)
    ]
    header.counts["other-cell-line"] = len(lines) - 1 - len(remaining)
    return [lines[0], *remaining]


def _at_times(row: _Row, chosen: frozenset[float]) -> _Row:
    """Return the row with only the values at the chosen times."""
    pairs = zip(row.times, row.values, strict=True)
    return row._replace(values=tuple(value if entry in chosen else None for entry, value in pairs))


def _require_value(rows: Sequence[_Row], chosen: Iterable[float], file: str, reason: str = "") -> None:
    if all(value is None for row in rows for value in row.values):
        times = " or ".join(f"{time:g}" for time in sorted(chosen))
        raise RefusedError(f"no value at time {times}{reason}", reason="no-value", file=file)


def parse_clamps(text: str, file: str = "") -> list[Experiment]:
    """Return the experiments of a CSV text of TR columns, one in each row; other columns of MIDAS are ignored."""
    lines = list(table_rows(text, file))
    if not lines:
        raise PoolError("empty; a table of experiments begins with a header line of TR columns", file=file)
    header = _sort_columns(lines[0], file, set())
    _refuse_clash(header, file)
    if not header.stimuli and not header.inhibitors:
        raise PoolError("no TR column; TR:X is a stimulus, TR:Xi the inhibitor of X", file=file, field="header")
    bare = _Header(header.line, header.stimuli, header.inhibitors)
    return [row.experiment for row in _read_rows(lines, bare, file)]


def _sort_columns(line: tuple[int, list[str]], file: str, nodes: set[str]) -> _Header:
    line_number, fields = line
    repeated = find_repeated(fields)
    if repeated is not None:
        raise _of_column("occurs twice", "column-twice", repeated, file, line_number)
    header = _Header(line_number)
    for position, text in enumerate(fields):
        _sort_column(_Column(position, text, text[3:].strip()), header, file, nodes)
    return header


def _of_column(problem: str, reason: str, header: str, file: str, line: int) -> RefusedError:
    """Return the error for a cell, or for a column (line: that of the header)."""
    field_name = f"column {readable_repr(header)}"
    return RefusedError(problem, reason=reason, line=line, name=header, file=file, field=field_name)


def _checked_name(column: _Column, name: str, file: str, line: int) -> str:
    if not is_node_name(name):
        raise _of_column(name_problem(name), "name", column.header, file, line)
    return name


def _sort_column(column: _Column, header: _Header, file: str, nodes: set[str]) -> None:
    kind = column.header[:3].upper()
    if kind == "ID:":
        return
    if kind == "TR:":
        _sort_treatment(column, header, file, nodes)
    elif kind in ("DA:", "DV:"):
        bare = column.name.removeprefix(_PHOSPHO)
        if bare != column.name and bare in nodes and column.name not in nodes:
            header.counts["p-prefix"] += 1
            column = column._replace(name=bare)
        if kind == "DA:" and column.name.upper() == ALL_READOUTS and column.name not in nodes:
            column = column._replace(name=ALL_READOUTS)
        if column.name != ALL_READOUTS or kind == "DV:":
            _checked_name(column, column.name, file, header.line)
        (header.times if kind == "DA:" else header.values).append(column)
    else:
        problem = f"columns begin with TR:, DA:, DV: or ID: (ID: is not read); {_CELL_LINE_COLUMN}"
        problem += "; states in the order of time have a column series"
        if not column.header.strip():
            problem = f"column {column.position + 1} has no name; take out names of rows, or call their column ID:row"
        raise _of_column(problem, "column-kind", column.header, file, header.line)


def _sort_treatment(column: _Column, header: _Header, file: str, nodes: set[str]) -> None:
    name, colon, role = (part.strip() for part in column.name.partition(":"))
    if role.lower() in _CELL_LINE_WORDS:
        header.cell_lines.append(column)
        return
    if colon and role.lower() not in _ROLES:
        allowed = "allowed after the name: Stimuli, Inhibitors, CellLine, CellType"
        raise _of_column(allowed, "treatment-role", column.header, file, header.line)
    if name.upper() in _NO_TREATMENT:
        header.counts["no-treatment-column"] += 1
        return
    inhibits = _ROLES[role.lower()] if colon else name.endswith("i") and len(name) > 1
    if inhibits and colon and name.endswith("i") and name not in nodes and name[:-1] in nodes:
        name = name[:-1]
    if inhibits and not colon:
        if name in nodes and name[:-1] not in nodes:
            problem = f"the prior has {readable_repr(name)} and no {readable_repr(name[:-1])}; write TR:{name}:Stimuli"
            raise _of_column(problem, "suffix", column.header, file, header.line)
        name = name[:-1]
    _checked_name(column, name, file, header.line)
    (header.inhibitors if inhibits else header.stimuli).append(column._replace(name=name))


def _refuse_clash(header: _Header, file: str) -> None:
    clash = sorted({c.name for c in header.stimuli} & {c.name for c in header.inhibitors})
    if clash:
        problem = f"{readable_repr(clash[0])} is a stimulus and an inhibitor"
        raise RefusedError(problem, reason="stimulus-and-inhibitor", line=header.line, name=clash[0], file=file)


def _check_header(header: _Header, file: str) -> None:
    for role, columns in (
        ("stimulus", header.stimuli),
        ("inhibitor", header.inhibitors),
        ("readout", header.values),
        ("time", header.times),
    ):
        repeated = find_repeated([column.name for column in columns])
        if repeated is not None:
            second = [column.header for column in columns if column.name == repeated][1]
            problem = f"{role} {readable_repr(repeated)} has two columns"
            raise _of_column(problem, "column-twice", second, file, header.line)
    _refuse_clash(header, file)
    if not header.values:
        problem = "no DV column; DV:R has the values of readout R"
        raise RefusedError(problem, reason="no-value-column", line=header.line, file=file)
    timed = {column.name for column in header.times}
    for column in header.values:
        if ALL_READOUTS not in timed and column.name not in timed:
            problem = f"no time; add a column DA:{column.name} or DA:{ALL_READOUTS}"
            raise _of_column(problem, "no-time-column", column.header, file, header.line)


def _read_rows(lines: Sequence[tuple[int, list[str]]], header: _Header, file: str) -> list[_Row]:
    rows = []
    width = len(lines[0][1])
    clocks = {column.name: column for column in header.times}
    times = [clocks[column.name if column.name in clocks else ALL_READOUTS] for column in header.values]
    for line_number, fields in lines[1:]:
        if len(fields) != width:
            problem = f"{len(fields)} fields; the header has {width}"
            raise RefusedError(problem, reason="fields", line=line_number, file=file)
        treatments = [fields[column.position] for column in (*header.stimuli, *header.inhibitors)]
        header.counts["blank-treatments"] += sum(cell.lower() in _MISSING for cell in treatments)
        on, off = (
            frozenset(column.name for column in columns if _clamp(fields, column, file, line_number))
            for columns in (header.stimuli, header.inhibitors)
        )
        values = tuple(_value(fields[column.position], column, file, line_number) for column in header.values)
        row_times = tuple(
            _time(fields[column.position], column, value, file=file, line=line_number)
            for column, value in zip(times, values, strict=True)
        )
        rows.append(_Row(line_number, Experiment(on, off), row_times, values))
    if not rows:
        raise RefusedError("no row below the header", reason="no-row", file=file)
    return rows


def _clamp(fields: Sequence[str], column: _Column, file: str, line: int) -> bool:
    text = fields[column.position]
    number = 0 if text.lower() in _MISSING else _number(text)
    if number not in (0, 1):
        advice = _CELL_LINE_COLUMN if column.name.lower() in _CELL_LINE_WORDS else "doses are not read"
        problem = f"{readable_repr(text)}; a TR cell is 0 or 1, {advice}"
        raise _of_column(problem, "treatment", column.header, file, line)
    return number == 1


def _time(text: str, column: _Column, value: float | None, *, file: str, line: int) -> float | None:
    """Return the time of a value; None for a blank cell of a readout that was not measured."""
    if text.lower() in _MISSING:
        if value is None:
            return None
        problem = "empty beside a value; give the time of the value"
        raise _of_column(problem, "time-missing", column.header, file, line)
    number = _number(text)
    if number is None or not math.isfinite(number):
        problem = f"{readable_repr(text)}; a DA cell is a finite number"
        raise _of_column(problem, "time", column.header, file, line)
    return number


def _value(text: str, column: _Column, file: str, line: int) -> float | None:
    if text.lower() in _MISSING:
        return None
    number = _number(text)
    if number is None or not math.isfinite(number) or abs(number) > 1e100:
        problem = f"{readable_repr(text)}; a value is a finite number, or empty, NA or NaN where nothing was measured"
        raise _of_column(problem, "value", column.header, file, line)
    return number


def _number(text: str) -> float | None:
    if len(text) > 100 or "_" in text or not text.isascii():
        return None
    try:
        return float(text)
    except ValueError:
        return None


def _choose_times(rows: Sequence[_Row], time: Times | None, file: str) -> frozenset[float]:
    present = sorted({entry for row in rows for entry in row.times if entry is not None})
    if not present:
        raise RefusedError("no DA cell has a time", reason="no-time", file=file)
    time_list = ", ".join(f"{entry:g}" for entry in present[:10]) + (", ..." if len(present) > 10 else "")
    if time is None:
        if len(present) > 1:
            latest, last_two = f"{present[-1]:g}", ",".join(f"{entry:g}" for entry in present[-2:])
            problem = f"several times: {time_list}; name one (--time {latest}) or several (--time {last_two})"
            raise RefusedError(problem, reason="several-times", file=file)
        return frozenset(present)
    texts = time.split(",") if isinstance(time, str) else [time] if isinstance(time, int | float) else [*time]
    chosen = [entry if isinstance(entry, int | float) else _number(entry.strip()) for entry in texts]
    for text, time_point in zip(texts, chosen, strict=True):
        if time_point is None or time_point not in present:
            problem = f"no time {readable_repr(text)}; there are: {time_list}"
            raise RefusedError(problem, reason="no-time", file=file)
    return frozenset(float(time_point) for time_point in chosen if time_point is not None)


def _normalise(
    rows: Sequence[_Row], columns: Sequence[_Column], normalise: Normalisation | None, file: str
) -> tuple[list[_Row], tuple[ReadoutRange, ...], list[str]]:
    """Return rows with normalised values, ranges before and after, and readouts of constant value, left unmeasured."""
    scaled: list[Sequence[float | None]] = []
    ranges, constant = [], []
    for position, column in enumerate(columns):
        values = [row.values[position] for row in rows]
        present = [value for value in values if value is not None]
        if normalise in (None, "max") and present:
            _check_scale(rows, position, column, normalise, file)
        if present and normalise not in (None, "none"):
            bounds = min(present), max(present)
            values = [None if value is None else _scale(value, bounds, normalise) for value in values]
            after = [value for value in values if value is not None]
            if after:
                ranges.append(ReadoutRange(column.name, bounds, (min(after), max(after))))
            else:
                constant.append(column.name)
        scaled.append(values)
    normalised = [row._replace(values=values) for row, values in zip(rows, zip(*scaled, strict=True), strict=True)]
    return normalised, tuple(ranges), constant


def _check_scale(
    rows: Sequence[_Row], position: int, column: _Column, normalise: Normalisation | None, file: str
) -> None:
    """Refuse the first reading outside [0, 1], or below 0 if readings are divided by their maximum."""
    readings = [(row.line, value) for row in rows if (value := row.values[position]) is not None]
    least, greatest = (extreme(value for _, value in readings) for extreme in (min, max))
    limit = 1.0 if normalise is None else math.inf
    strange = next(((line, value) for line, value in readings if not 0 <= value <= limit), None)
    if strange is None:
        return
    allowed = f"values are from 0 to 1, and those of this readout from {least:.15g} to {greatest:.15g}; scale them with"
    options = "--normalise minmax, max or clip; --normalise none takes them as they are"
    if normalise == "max":
        allowed, options = "--normalise max divides by the greatest value and takes none below 0; give", "minmax"
    problem = f"{strange[1]:.15g}; {allowed} {options}"  # 15 digits, so that 1.0000001 is not shown as 1
    raise _of_column(problem, "scale" if normalise is None else "negative", column.header, file, strange[0])


def _scale(value: float, bounds: tuple[float, float], normalise: Normalisation | None) -> float | None:
    least, greatest = bounds
    if normalise == "clip":
        return min(1.0, max(0.0, value))
    if normalise == "max":
        return value / greatest if greatest else value
    return (value - least) / (greatest - least) if greatest > least else None


def _header_notes(header: _Header) -> tuple[str, ...]:
    notes = []
    if not header.cell_lines:
        header.counts["no-cell-line-column"] = 1
        notes.append("no TR:...:CellLine column; every TR column was read (caspo drops the first column of a file)")
    measured = {column.name for column in header.values}
    unused = [c.header for c in header.times if c.name != ALL_READOUTS and c.name not in measured]
    if unused:
        notes.append(f"times without values: {', '.join(unused[:5])}")
    return tuple(notes)


# --- Candidates of experiments: setup.json, and tables of TR columns --------------------------------------------------
MAX_CANDIDATES = 1_000_000  # experiments


class SetupRecord(msgspec.Struct):
    """Names of a setup in order; other fields are ignored."""

    stimuli: list[str]
    inhibitors: list[str]
    readouts: list[str]


def read_setup(path: Path) -> Setup:
    """Return the setup of a setup.json file; `PoolError` names an invalid field."""
    return parse_setup(read_text(path), path.name)


def parse_setup(text: str, file: str = "") -> Setup:
    """Return the setup of a JSON text, see `read_setup`."""
    try:
        record = decode_line(text, SetupRecord)
    except PoolError as error:
        raise error.with_location(file=file) from None
    for role, names in (("stimuli", record.stimuli), ("inhibitors", record.inhibitors), ("readouts", record.readouts)):
        for name in names:
            check_name(name, file=file, where=role)
    setup = Setup(tuple(record.stimuli), tuple(record.inhibitors), tuple(record.readouts))
    try:
        check_setup(setup)
    except CalibrantError as error:
        raise PoolError(str(error), file=file) from None
    return setup


def candidate_experiments(setup: Setup, *, max_stimuli: int = 2, max_inhibitors: int = 1) -> list[Experiment]:
    """Return the experiments within the limits by ascending number of clamps, then in header order, stimuli first.

    `PoolError` if there are more than MAX_CANDIDATES.
    """
    clamps = [(name, True) for name in setup.stimuli] + [(name, False) for name in setup.inhibitors]
    max_stimuli, max_inhibitors = min(max_stimuli, len(setup.stimuli)), min(max_inhibitors, len(setup.inhibitors))
    experiments = []
    for size in range(max_stimuli + max_inhibitors + 1):
        for tried, chosen in enumerate(combinations(clamps, size)):
            on = frozenset(name for name, stimulates in chosen if stimulates)
            if len(on) <= max_stimuli and size - len(on) <= max_inhibitors:
                experiments.append(Experiment(on, frozenset(name for name, stimulates in chosen if not stimulates)))
            if len(experiments) > MAX_CANDIDATES or tried > 20 * MAX_CANDIDATES:
                raise PoolError(f"more than {MAX_CANDIDATES} candidates; allow fewer stimuli or inhibitors at a time")
    return experiments


def read_candidates(path: Path, *, max_stimuli: int = 2, max_inhibitors: int = 1) -> list[Experiment]:
    """Return the candidates of a setup.json file, or of a CSV file of TR columns, one in each row."""
    text = read_text(path)
    if text.lstrip().startswith("{"):
        setup = parse_setup(text, path.name)
        return candidate_experiments(setup, max_stimuli=max_stimuli, max_inhibitors=max_inhibitors)
    return parse_clamps(text, path.name)
