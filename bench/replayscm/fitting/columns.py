"""Boolean columns with, for each row, the columns that were set in it; every fault is one line."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from calibrant.dsl.errors import CalibrantError, short_repr
from calibrant.dsl.formulas.operators import OPERATORS
from calibrant.dsl.names import is_name
from calibrant.dsl.replayscm.pools.build import MAX_VARIABLES
from calibrant.dsl.texts.nearest import known_names, nearest_names

MAX_ROWS = 100_000  # rows of a table; its different rows are what counts, at most 2**columns
BITS = {"0": 0, "1": 1, "false": 0, "true": 1, "0.0": 0, "1.0": 1}
NOTHING_SET = {"", "none", "-", "nan", "null", "<na>"}
SEPARATORS = ",;+ "


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
