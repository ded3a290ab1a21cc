"""Which columns of a table were set in each row, as a column of it or flags state; and values that gaps were set to."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.bench.replayscm.fitting.columns import (
    GAP,
    Column,
    RawColumn,
    is_missing,
    number_of,
    truth_of,
    values_of,
)
from calibrant.dsl.errors import CalibrantError, readable_repr
from calibrant.dsl.text import known_names, nearest_names

NOTHING_SET = frozenset(["none", "-", "obs", "observed", "observational", "0"])  # of any case
SEPARATORS = ",;+| \t"
FORMS = "X, do(X), X=1, do(X=1), several with , ; + | between; nothing set: empty, none, -, obs, 0"
Setting = tuple[str, str | None]  # a column of the head, and the word that it was set to, where stated


@dataclass(frozen=True, slots=True, eq=False)
class Head:
    """Columns that interventions can name.

    names: of the head, without those of --do and --do-flags, in order
    used: a name, also that of a column before it was binarized -> positions of used columns; left-out columns have none
    columns: used columns
    numbers: [rows] of rows, for messages; counting: how they are counted
    """

    names: Sequence[str]
    used: Mapping[str, Sequence[int]]
    columns: Sequence[Column]
    source: str
    numbers: Sequence[int]
    counting: str

    def place(self, row: int, name: str) -> str:
        """Return where a cell is, for messages."""
        return f"{self.source}, row {self.numbers[row]} ({self.counting}), column {readable_repr(name)}"


def read_sets(
    do_columns: Sequence[RawColumn],
    lists: Mapping[str, Mapping[int, Sequence[Any]]],
    flags: Mapping[str, str],
    raws: Mapping[str, RawColumn],
    head: Head,
    missing: frozenset[str],
) -> npt.NDArray[np.uint64]:
    """Return which used columns were set in each row, bit k for column k; a gap that was set takes the stated value.

    lists: do column -> word -> its parts, for cells of frames that are lists; flags: flag column -> column
    """
    masks = np.zeros(len(head.numbers), np.uint64)
    for raw in do_columns:
        masks |= _read_settings(raw, lists.get(raw.name, {}), head, missing)
    if not flags:
        return masks
    flagged = _read_flags(flags, raws, head, missing)
    different = np.flatnonzero(flagged != masks)
    if do_columns and len(different):
        raise CalibrantError(
            f"{head.place(int(different[0]), do_columns[0].name)}: it and the flags (--do-flags) name different columns"
            " as set; correct one of them, or give one option only"
        )
    return flagged


def fill_gaps(
    do_columns: Sequence[RawColumn],
    lists: Mapping[str, Mapping[int, Sequence[Any]]],
    columns: Mapping[str, RawColumn],
    head: Head,
    missing: frozenset[str],
) -> dict[str, RawColumn]:
    """Return those of some columns in which gaps were set to stated values, with these in them: two values at most."""
    filled: dict[str, RawColumn] = {}
    for raw in do_columns:
        for k, _, name, value in _settings(raw, lists.get(raw.name, {}), head, missing):
            if name not in columns or value is None:
                continue
            column = filled.get(name, columns[name])
            is_gap = np.array([*(is_missing(word, missing) for word in column.words), True])  # index -1 is a gap, too
            rows = (raw.cells == k) & is_gap[column.cells]
            if rows.any():
                cells = np.where(rows, len(column.words), column.cells).astype(np.int32)
                filled[name] = replace(column, words=[*column.words, value], cells=cells)
    return {name: column for name, column in filled.items() if len(values_of(column, missing).values) <= 2}


def _read_settings(
    raw: RawColumn, lists: Mapping[int, Sequence[Any]], head: Head, missing: frozenset[str]
) -> npt.NDArray[np.uint64]:
    masks = np.zeros(len(raw.words) + 1, np.uint64)
    stated: dict[int, list[tuple[int, int, str]]] = {}
    for k, where, name, value in _settings(raw, lists, head, missing):
        for column in head.used[name]:
            masks[k] |= np.uint64(1 << column)
            if value is not None:
                stated.setdefault(k, []).append((column, _code(head, column, value, where), value))
    for k, settings in stated.items():
        _apply(raw, k, settings, head)
    return masks[raw.cells]


def _settings(
    raw: RawColumn, lists: Mapping[int, Sequence[Any]], head: Head, missing: frozenset[str]
) -> Iterator[tuple[int, str, str, str | None]]:
    """Yield what the words of a column state: the word, its first place, a column, and its value where stated."""
    positions = _positions(raw, lists, head, missing)
    for k, word in enumerate(raw.words):
        cells = [str(part) for part in lists[k]] if k in lists else [word]
        if k not in lists and (is_missing(word, missing) or (word.lower() in NOTHING_SET and word not in head.names)):
            continue
        rows = np.flatnonzero(raw.cells == k)
        if not len(rows):
            continue
        where = head.place(int(rows[0]), raw.name)
        for cell in cells:
            for name, value in [(positions(cell, where), None)] if positions else _parse(cell, head, where):
                if name:
                    yield k, where, name, value


def _apply(raw: RawColumn, word: int, settings: Sequence[tuple[int, int, str]], head: Head) -> None:
    """Compare cells with the values that they were set to; fill gaps."""
    rows = raw.cells == word
    for column, code, value in settings:
        codes = head.columns[column].codes
        wrong = np.flatnonzero(rows & (codes != GAP) & (codes != code))
        if len(wrong):
            row, name = int(wrong[0]), head.columns[column].name
            present = head.columns[column].word(int(codes[row]))
            raise CalibrantError(
                f"{head.place(row, raw.name)}: {readable_repr(raw.words[word])} states that {readable_repr(name)} was"
                f" set to {value}, and the cell has {present}; correct one of them"
            )
        codes[rows & (codes == GAP)] = code


def _code(head: Head, column: int, value: str, where: str) -> int:
    target = head.columns[column]
    code = target.code_of(value)
    if code is None:
        near = known_names(value, target.words)
        raise CalibrantError(f"{where}: {readable_repr(value)} is no value of {readable_repr(target.name)}; {near}")
    return code


def _positions(raw: RawColumn, lists: Mapping[int, Sequence[Any]], head: Head, missing: frozenset[str]) -> Any:
    """Return what names the column of a position in the head, if all cells are whole numbers; else None."""
    words = [word for k, word in enumerate(raw.words) if k not in lists and not is_missing(word, missing)]
    numbers = [number_of(word) for word in words]
    if lists or not words or any(n is None or n != n.to_integral_value() for n in numbers):
        return None
    for word, number in zip(words, numbers, strict=True):
        if word in head.names and head.names.index(word) + 1 != number:
            raise CalibrantError(
                f"{head.source}, column {readable_repr(raw.name)}: {word} is the name of a column and not its position"
                f" in the head, or nothing set; write do({word}) for the name"
            )

    def name_at(cell: str, where: str) -> str | None:
        number = int(number_of(cell) or Decimal(0))
        if number == 0:
            return None
        if not 1 <= number <= len(head.names):
            reason = f"no column at position {number}; positions are 1 to {len(head.names)}, 0 for nothing set"
            raise CalibrantError(f"{where}: {reason}")
        return head.names[number - 1]

    return name_at


def _parse(cell: str, head: Head, where: str) -> Iterator[Setting]:
    """Yield what a cell names: columns, some with the word that they were set to."""
    names = _settable_names(head)
    if cell in names:
        yield cell, None
        return
    position, depth = 0, 0
    while position < len(cell):
        if cell[position] in SEPARATORS:
            position += 1
            continue
        if cell[position] == ")" and depth:
            position, depth = position + 1, depth - 1
            continue
        name = next((name for name in names if _stands_at(cell, name, position, SEPARATORS + "=)")), None)
        if name is None and cell[position : position + 3].lower() == "do(":
            position, depth = position + 3, depth + 1
            continue
        if name is None:
            raise _unknown_name(cell[position:], head, where)
        position += len(name)
        after = position + len(cell[position:]) - len(cell[position:].lstrip())
        if cell[after : after + 1] != "=":
            yield name, None
            continue
        after += 1
        after += len(cell[after:]) - len(cell[after:].lstrip())
        words = sorted({w for c in head.used[name] for w in head.columns[c].words}, key=len, reverse=True)
        value = next((word for word in words if _stands_at(cell, word, after, SEPARATORS + ")")), None)
        if value is None:
            value = cell[after : _end_of_value(cell, after, names)]
        position = after + len(value)
        yield name, value
    if not cell.strip(SEPARATORS):
        raise _unknown_name(cell, head, where)


def _end_of_value(cell: str, start: int, names: Sequence[str]) -> int:
    """Return where a word ends that no cell of its column has: blanks are part of it, unless a name follows them."""
    for end in range(start, len(cell)):
        after = end + len(cell[end:]) - len(cell[end:].lstrip())
        is_next = any(_stands_at(cell, name, after, SEPARATORS + "=)") for name in names)
        is_next |= cell[after : after + 3].lower() == "do(" or cell[after : after + 1] in SEPARATORS.strip() + ")"
        if cell[end] in SEPARATORS + ")" and is_next and cell[start : end + 1] != "+":
            return end
    return len(cell)


def _settable_names(head: Head) -> list[str]:
    """Return the names that a cell may have, longest first; `X=w` is X set to w, also where --binarize made it."""
    ruled = [name for name in head.used if name not in head.names]
    words = {name for name in ruled if "|" not in name and any(name.startswith(f"{origin}=") for origin in head.names)}
    return sorted({*head.used} - words, key=len, reverse=True)


def _stands_at(cell: str, word: str, position: int, ends: str) -> bool:
    """Return whether a word stands there, with an end of words after it."""
    end = position + len(word)
    return bool(word) and cell.startswith(word, position) and (end == len(cell) or cell[end] in ends)


def name_columns(words: Iterable[str], names: Collection[str]) -> list[bool]:
    """Return of each word whether it is names of columns, or one of them."""
    return [
        bool(word) and (word in names or all(part in names for part in re.split(f"[{SEPARATORS}]+", word) if part))
        for word in words
    ]


def _unknown_name(rest: str, head: Head, where: str) -> CalibrantError:
    end = next((k for k, character in enumerate(rest) if character in SEPARATORS + "=)"), len(rest))
    unknown = rest[:end] or rest
    near = " or ".join(nearest_names(unknown, head.names))
    question = f"did you mean {near}? " if near else ""
    nothing = (
        f"; if {readable_repr(unknown)} stands for nothing set, give --missing {unknown}" if rest == unknown else ""
    )
    return CalibrantError(f"{where}: {readable_repr(unknown)} is no column; {question}read are {FORMS}{nothing}")


# --- Flags: a column for each that says whether it was set ------------------------------------------------------------


def flag_columns(names: Sequence[str], pattern: str, source: str) -> dict[str, str]:
    """Return flag column -> column, for a pattern with one `*`. names: without those of --do."""
    if pattern.count("*") != 1:
        raise CalibrantError(f"--do-flags {readable_repr(pattern)}: one * is needed, as in 'I_*'")
    before, after = pattern.split("*")
    flags = {
        name: name[len(before) : len(name) - len(after)]
        for name in names
        if len(name) > len(before) + len(after) and name.startswith(before) and name.endswith(after)
    }
    if not flags:
        raise CalibrantError(f"{source}: no column is {readable_repr(pattern)} (--do-flags); known: {', '.join(names)}")
    for flag, name in flags.items():
        if name not in names or name in flags:
            raise CalibrantError(
                f"{source}, column {readable_repr(flag)}: a flag of {readable_repr(name)}, no other column"
            )
    return flags


def _read_flags(
    flags: Mapping[str, str], raws: Mapping[str, RawColumn], head: Head, missing: frozenset[str]
) -> npt.NDArray[np.uint64]:
    """Return which used columns the flags state as set in each row."""
    masks = np.zeros(len(head.numbers), np.uint64)
    for flag, name in flags.items():
        raw = raws[flag]
        bits = [0 if is_missing(word, missing) else truth_of(word) for word in raw.words]
        wrong = next((k for k, bit in enumerate(bits) if bit is None), None)
        if wrong is not None:
            row = int(np.flatnonzero(raw.cells == wrong)[0])
            reason = f"{readable_repr(raw.words[wrong])} is no flag; 1 or 0, yes or no, true or false are read"
            raise CalibrantError(f"{head.place(row, flag)}: {reason}")
        set_rows = np.array([*(bit or 0 for bit in bits), 0], np.uint64)[raw.cells]
        for column in head.used[name]:
            masks |= set_rows << np.uint64(column)
    return masks
