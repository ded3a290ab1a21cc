"""Tables from CSV files, data frames, mappings and arrays."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from calibrant.bench.replayscm.fitting.columns import BITS, BooleanTable, TableLayout, boolean_table
from calibrant.dsl.errors import CalibrantError, short_repr
from calibrant.dsl.parse_limits import TooLargeError, read_bounded
from calibrant.dsl.replayscm.pools.build import MAX_VARIABLES
from calibrant.dsl.text import plural

if TYPE_CHECKING:
    from _csv import Reader


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
