"""Boolean columns for `fit`: tables from CSV files, data frames and mappings; every fault is one line."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from io import StringIO
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

from calibrant.dsl.errors import CalibrantError, short_repr
from calibrant.dsl.formulas.formula import OPERATORS
from calibrant.dsl.parse_limits import TooLargeError, read_bounded
from calibrant.dsl.replayscm.pools.build import MAX_VARIABLES
from calibrant.dsl.text import is_name, known_names, nearest_names, plural

if TYPE_CHECKING:
    from _csv import Reader


# --- Boolean columns with, for each row, the columns that were set in it; every fault is one line ---------------------
MAX_ROWS = 100_000  # rows of a table; its different rows are what counts, at most 2**columns
BITS = {"0": 0, "1": 1, "false": 0, "true": 1, "0.0": 0, "1.0": 1}
NOTHING_SET = {"", "none", "-", "nan", "null", "<na>"}
SEPARATORS = ",;+ "
MAX_TRIPLE_COLUMNS = 18  # columns up to which functions of three others are looked for: a second of 100,000 rows
MAX_LISTED = 8  # columns of a kind that a line of the terminal names


@dataclass(frozen=True)
class TableLayout:
    """Form of a line of a CSV file: its columns in order, the one that names the columns set, its delimiter."""

    header: tuple[str, ...]
    do: str | None
    delimiter: str

    def line(self, values: Mapping[str, str], targets: Sequence[str]) -> str:
        """Return a line of these values, with what was set where the file has a column for it."""
        named = "+".join(targets)
        return self.delimiter.join(named if name == self.do else values[name] for name in self.header)


@dataclass(frozen=True)
class BooleanTable:
    """Table of bits to fit.

    names: of columns; rows: a bit a column; targets: columns that were set, per row; source: for messages
    numbers: of the rows, as messages and the reason count them: lines of a file
    layout: the form of a line, of a table that is a file
    has_do: whether a column names the columns that were set
    """

    names: tuple[str, ...]
    rows: tuple[tuple[int, ...], ...]
    targets: tuple[frozenset[str], ...]
    source: str
    numbers: tuple[int, ...]
    layout: TableLayout | None = None
    has_do: bool = False

    @property
    def counting(self) -> str:
        """Return how rows are counted, for messages."""
        return counting(self.layout)


def counting(layout: TableLayout | None) -> str:
    """Return how rows are counted, for messages."""
    return "counted from 1" if layout is None else "lines of the file"


def boolean_table(
    columns: Mapping[str, Sequence[Any]],
    do: str | None,
    source: str,
    numbers: Sequence[int] = (),
    layout: TableLayout | None = None,
) -> BooleanTable:
    """Check and convert columns of values; `CalibrantError` names source, line and column of what is wrong.

    do: the column that names the columns set in each row, or nothing; numbers: of the rows, from 1 by default
    layout: of a line, of a file
    """
    names = [name for name in columns if name != do]
    if do is not None and do not in columns:
        raise CalibrantError(f"{source} has no column {short_repr(do)}; {known_names(do, map(str, columns))}")
    _check_names(names, source)
    number = len(next(iter(columns.values())))
    if not number:
        raise CalibrantError(f"{source} has no rows")
    if number > MAX_ROWS:
        raise CalibrantError(f"{source} has {number:,} rows; at most {MAX_ROWS:,} are read")
    for name, values in columns.items():
        if len(values) != number:
            raise CalibrantError(f"{source}, column {short_repr(name)}: {len(values)} values, not {number}")
    numbers = tuple(numbers or range(1, number + 1))
    bits = []
    for name in names:
        wrong = next((r for r, value in enumerate(columns[name]) if _bit(value) is None), None)
        if wrong is not None:
            place = f"{source}, row {numbers[wrong]} ({counting(layout)}), column {short_repr(name)}"
            raise CalibrantError(f"{place}: {_not_boolean(columns, name, wrong, do)}")
        bits.append([BITS[str(value).strip().lower()] for value in columns[name]])
    settings = columns[do] if do is not None else [""] * number
    targets = [
        _targets(v, names, do or "", source, f"{numbers[r]} ({counting(layout)})") for r, v in enumerate(settings)
    ]
    rows = tuple(zip(*bits, strict=True))
    return BooleanTable(tuple(names), rows, tuple(targets), source, numbers, layout, do is not None)


def _check_names(names: Sequence[str], source: str) -> None:
    if not names:
        raise CalibrantError(f"{source} has no columns")
    if len(names) > MAX_VARIABLES:
        raise CalibrantError(f"{source} has {len(names)} columns; at most {MAX_VARIABLES} are fitted: leave some out")
    repeated = next((name for name in names if names.count(name) > 1), None)
    if repeated is not None:
        raise CalibrantError(f"{source} has two columns {short_repr(repeated)}")
    for name in names:
        if not _can_stand_in_formulas(name):
            reason = "a letter or _ first, then letters, digits or _; no operator's name"
            where = f"{source}, column {short_repr(name)}"
            raise CalibrantError(f"{where}: rename it, {_similar_name(name)!r} for example: {reason}")


def _similar_name(name: str) -> str:
    """Return a name that a formula can have, like one that it cannot."""
    similar = re.sub(r"[^A-Za-z0-9]+", "_", name, flags=re.ASCII).strip("_")[:20]
    return similar if _can_stand_in_formulas(similar) else f"x_{similar}" if similar else "x"


def _can_stand_in_formulas(name: str) -> bool:
    return is_name(name) and name.lower() not in OPERATORS


def _bit(value: Any) -> int | None:
    return BITS.get(str(value).strip().lower())


def _not_boolean(columns: Mapping[str, Sequence[Any]], name: str, row: int, do: str | None) -> str:
    """Return what is wrong with a cell, and what may be meant by its column."""
    value = columns[name][row]
    reason = f"{short_repr(value) if not _is_empty(value) else 'an empty cell'} is not Boolean"
    reason += "; allowed: 0, 1, true, false"
    others = columns.keys() - {name}
    if do is None and all(part in others for cell in columns[name] for part in _named(cell)):
        reason += f"; if this column names those that were set in each row, give do (--do {name})"
    return reason


def _is_empty(value: Any) -> bool:
    return value is None or str(value).strip().lower() in {"", "nan", "<na>"}


def _named(value: Any) -> list[str]:
    """Return the names in a cell of the column of interventions."""
    if isinstance(value, list | tuple):  # a column of lists
        return [str(part) for part in value]
    text = "" if value is None else str(value).strip()
    if text.lower() in NOTHING_SET:
        return []
    for separator in SEPARATORS[1:]:
        text = text.replace(separator, ",")
    return [part for part in text.split(",") if part]


def _targets(value: Any, names: Sequence[str], do: str, source: str, row: str) -> frozenset[str]:
    targets = _named(value)
    unknown = next((part for part in targets if part not in names), None)
    if unknown is not None:
        where = f"{source}, row {row}, column {short_repr(do)}"
        near = " or ".join(nearest_names(unknown, names))
        reason = f"did you mean {near}?" if near else "write columns that were set, or nothing"
        raise CalibrantError(f"{where}: {short_repr(unknown)} is no column; {reason}")
    return frozenset(targets)


@dataclass(frozen=True)
class DegenerateColumns:
    """Columns that tell nothing beside the others, in any row, set or not.

    constant: column -> its value; equal: groups of equal columns; opposite: a column -> one that is always its negation
    determined: column -> few others of which it is a function
    """

    constant: Mapping[str, int]
    equal: Sequence[Sequence[str]]
    opposite: Mapping[str, str]
    determined: Mapping[str, Sequence[str]]

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return {
            "constant": dict(self.constant),
            "equal": [list(names) for names in self.equal],
            "opposite": dict(self.opposite),
            "determined": {name: list(others) for name, others in self.determined.items()},
        }

    def lines(self, consequence: str) -> Iterator[str]:
        """Yield a line for each kind that occurs, and what follows; nothing if there is none."""
        kinds = {
            "constant in all rows": [f"{name} = {value}" for name, value in self.constant.items()],
            "equal in all rows": [" = ".join(names) for names in self.equal],
            "opposite in all rows": [f"{name} = not {negated}" for name, negated in self.opposite.items()],
            "a function of others in all rows": [
                f"{name} of {' and '.join(others)}" for name, others in self.determined.items()
            ],
        }
        occurring = {kind: entries for kind, entries in kinds.items() if entries}
        for kind, entries in occurring.items():
            more = f"; {len(entries) - MAX_LISTED} more" if len(entries) > MAX_LISTED else ""
            yield f"note: {kind}: {', '.join(entries[:MAX_LISTED])}{more}"
        if occurring:
            yield f"note: {consequence}; leave columns out to fit without them"


def degenerate_columns(table: BooleanTable, target: str | None = None) -> DegenerateColumns:
    """Return the columns of a table that tell nothing beside the others; of a target its constancy alone."""
    rows = Counter(table.rows)
    every = (1 << len(rows)) - 1
    columns = zip(*rows, strict=True)  # as text: shifting and adding takes the square of the number of rows
    bits = {name: int("".join(map(str, column)), 2) for name, column in zip(table.names, columns, strict=True)}
    constant = {name: int(bits[name] > 0) for name in table.names if bits[name] in (0, every)}
    first: dict[int, str] = {}  # the first column of each pattern
    equal: dict[str, list[str]] = {}
    for name in table.names:
        if name not in constant and name != target and first.setdefault(bits[name], name) != name:
            equal.setdefault(first[bits[name]], [first[bits[name]]]).append(name)
    opposite: dict[str, str] = {}
    for pattern, name in first.items():
        negated = first.get(every ^ pattern)
        if negated is not None and negated not in opposite:
            opposite[name] = negated
    distinct = [name for name in first.values() if name not in opposite]
    single = int("".join(str(int(count == 1)) for count in rows.values()), 2)
    determined: dict[str, Sequence[str]] = {}
    for size in (2, 3) if len(distinct) <= MAX_TRIPLE_COLUMNS else (2,):
        for others in combinations(distinct, size):
            cells = _cells([bits[name] for name in others], every)
            # three others tell most columns apart where rows are few: each of their combinations has to recur
            if size == 3 and any(cell & (cell - 1) == 0 and cell & single for cell in cells):
                continue
            for name in distinct:
                if name not in others and name not in determined and _is_constant_in(cells, bits[name]):
                    determined[name] = others
    return DegenerateColumns(constant, tuple(equal.values()), opposite, determined)


def _cells(patterns: Sequence[int], every: int) -> list[int]:
    """Return the rows of each combination of values that occurs, as masks."""
    cells = [every]
    for pattern in patterns:
        cells = [part for cell in cells for part in (cell & pattern, cell & ~pattern) if part]
    return cells


def _is_constant_in(cells: Sequence[int], pattern: int) -> bool:
    return all(cell & pattern in (0, cell) for cell in cells)


# --- Tables from CSV files, data frames, mappings and arrays ----------------------------------------------------------


def read_csv(path: Path, do: str | None) -> BooleanTable:
    """Return a CSV file with a head; the delimiter is a comma, a semicolon or a tab, whichever the head has first."""
    try:
        text = read_bounded(path).decode("utf-8-sig")
    except OSError as error:
        raise CalibrantError(f"{path}: {error.strerror or error}") from None
    except TooLargeError as error:
        raise CalibrantError(f"{path.name}: {error}") from None
    except UnicodeDecodeError:
        raise CalibrantError(f"{path.name} is not text in UTF-8") from None
    head = text.split("\n", 1)[0]
    delimiter = min((c for c in ",;\t" if c in head), key=head.index, default=",")
    if head.count(delimiter) > MAX_VARIABLES:  # one more than columns: that of --do
        number = head.count(delimiter) + 1
        raise CalibrantError(f"{path.name} has {number:,} columns; at most {MAX_VARIABLES} are fitted: leave some out")
    try:
        numbered = list(_lines(path.name, csv.reader(StringIO(text, newline=""), delimiter=delimiter, strict=True)))
    except csv.Error as error:
        raise CalibrantError(f"{path.name} is not CSV: {error}") from None
    lines = [line for _, line in numbered]
    if text.lstrip().startswith('{"'):
        raise CalibrantError(
            f"{path.name} is JSON lines, no CSV; of a pool, see its items by: calibrant list {path.name}, then show"
        )
    if not lines:
        raise CalibrantError(f"{path.name} is empty; the first line has the names of the columns")
    names = [name.strip() for name in lines[0]]
    if names and all(name.lower() in BITS for name in names):
        raise CalibrantError(f"{path.name}, row 1 has values; the first line has the names of the columns")
    if "" in names:
        raise CalibrantError(
            f"{path.name}: column {names.index('') + 1} has no name; name it, or leave it out"
            " (pandas: to_csv(index=False))"
        )
    if len(set(names)) < len(names):
        repeated = next(name for name in names if names.count(name) > 1)
        raise CalibrantError(f"{path.name} has two columns '{repeated}'")
    for number, line in numbered[1:]:
        if len(line) != len(names):
            raise CalibrantError(
                f"{path.name}, row {number}: {plural(len(line), 'values')} under {plural(len(names), 'names')}"
            )
    columns = {name: [line[k] for line in lines[1:]] for k, name in enumerate(names)}
    layout = TableLayout(tuple(names), do, delimiter)
    return boolean_table(columns, do, path.name, [number for number, _ in numbered[1:]], layout)


def _lines(name: str, reader: Reader) -> Iterator[tuple[int, list[str]]]:
    """Yield number and values of each line that is not empty; a value that goes on in another line is refused."""
    previous = 0
    for values in reader:
        if reader.line_num > previous + 1:
            reason = "a quoted value has a line break; write each row, and the names of the columns, on one line"
            raise CalibrantError(f"{name}, row {previous + 1}: {reason}")
        previous = reader.line_num
        if values:
            yield previous, values


def table_of(data: Any, do: str | None, columns: Sequence[str] | None) -> BooleanTable:
    """Return a table from a path, a data frame, a mapping of columns, rows as mappings, or an array with `columns`."""
    do = None if do is None else str(do)  # frames may name columns by numbers
    if isinstance(data, str | Path):
        return read_csv(Path(data), do)
    if isinstance(data, Mapping):
        return boolean_table({str(name): list(values) for name, values in data.items()}, do, "the data")
    if hasattr(data, "shape") and not hasattr(data, "columns"):
        return _from_array(data, do, columns)
    if isinstance(data, Sequence) and data and all(isinstance(row, Mapping) for row in data):
        names = list(data[0])
        different = next((n for n, row in enumerate(data, 1) if list(row) != names), None)
        if different is not None:
            raise CalibrantError(f"the data, row {different}: other columns than row 1")
        return boolean_table({str(name): [row[name] for row in data] for name in names}, do, "the data")
    return boolean_table(_from_frame(data), do, "the data")


def _from_array(data: Any, do: str | None, columns: Sequence[str] | None) -> BooleanTable:
    if len(data.shape) != 2:
        raise CalibrantError(f"the data is an array of {len(data.shape)} dimensions; rows and columns are needed")
    names = [f"X{k + 1}" for k in range(data.shape[1])] if columns is None else list(columns)
    if len(names) != data.shape[1]:
        raise CalibrantError(f"the data has {data.shape[1]} columns; {len(names)} names were given")
    values = data.tolist()
    return boolean_table({name: [row[k] for row in values] for k, name in enumerate(names)}, do, "the data")


def _from_frame(data: Any) -> dict[str, list[Any]]:
    """Return the columns of a frame of pandas, polars, pyarrow and their like, through narwhals (extra `frames`)."""
    try:
        narwhals = import_module("narwhals")
    except ImportError:
        kind = type(data).__name__
        raise CalibrantError(
            f"a {kind} is read with narwhals, which is missing: pip install 'calibrant[frames]', or give a mapping"
        ) from None
    if hasattr(data, "collect"):
        raise CalibrantError(f"a {type(data).__name__} has no rows yet: give data.collect()")
    names = [str(name) for name in getattr(data, "columns", ())]
    repeated = next((name for name in names if names.count(name) > 1), None)
    if repeated is not None:
        raise CalibrantError(f"the data has two columns {short_repr(repeated)}")
    try:
        frame = narwhals.from_native(data, eager_only=True)
    except TypeError:
        allowed = "a path, a data frame, a mapping of columns, a list of mappings or an array of two dimensions"
        raise CalibrantError(f"the data must be {allowed}, got {type(data).__name__}") from None
    return {str(series.name): series.to_list() for series in frame.iter_columns()}
