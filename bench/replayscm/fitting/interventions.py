"""Which columns of a table were set in each row, as a column of it or flags state; and values that gaps were set to."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.bench.replayscm.fitting.columns import (
    GAP,
    BadCells,
    Column,
    RawColumn,
    RawTable,
    is_missing,
    number_of,
    truth_of,
    values_of,
)
from calibrant.dsl.errors import CalibrantError, readable_repr
from calibrant.dsl.text import known_names, nearest_names

NOTHING_SET = frozenset(["none", "-", "obs", "observed", "observational", "0"])  # of any case
MAX_POSITIONS = 5  # positions that a line of text explains
SEPARATORS = ",;+| \t"
FORMS = "X, do(X), X=1, do(X=1), several with , ; + | between; nothing set: empty, none, -, obs, 0"
Setting = tuple[str, str | None]
"""A column of the head, and the word to which it was set, None if the cell does not state it."""


@dataclass(frozen=True, slots=True, eq=False)
class Head:
    """Columns that interventions can name.

    names: of the table's head in order, without columns of --do and --do-flags
    used: name, also of a column before --binarize -> indices in `columns`; none for a column that is left out
    columns: the used columns; table: the table from which they were read
    """

    names: Sequence[str]
    used: Mapping[str, Sequence[int]]
    columns: Sequence[Column]
    table: RawTable


class _UnreadError(Exception):
    """A cell cannot be read as an intervention.

    describe: returns the reason; it is slow, and called for the first of such cells alone
    """

    def __init__(self, describe: Callable[[], str]) -> None:
        super().__init__()
        self.describe = describe


def read_sets(
    do_columns: Sequence[RawColumn],
    lists: Mapping[str, Mapping[int, Sequence[Any]]],
    flags: Mapping[str, str],
    raws: Mapping[str, RawColumn],
    head: Head,
    missing: frozenset[str],
) -> npt.NDArray[np.uint64]:
    """Return for each row a mask of the used columns that were set in it, bit k for column k.

    Gaps of a column that was set are filled with the value that the cell states. `CalibrantError` for cells that
    cannot be read, and if columns of --do and flags name different columns as set.

    lists: column of --do -> index of a word -> its parts, for cells of data frames that are lists
    flags: flag column -> column
    """
    masks = np.zeros(len(head.table.lines), np.uint64)
    bad = BadCells()
    for raw in do_columns:
        masks |= _read_settings(raw, lists.get(raw.name, {}), head, missing, bad)
    bad.check()
    if not flags:
        return masks
    flagged = _read_flags(flags, raws, head, missing)
    different = np.flatnonzero(flagged != masks)
    if do_columns and len(different):
        name = do_columns[0].name
        reason = "it and the flags (--do-flags) name different columns as set"
        advice = "correct one of them, or give one option only"
        bad.add(name, len(different), f"{head.table.place(int(different[0]), name)}: {reason}; {advice}")
        bad.check()
    return flagged


def fill_gaps(
    do_columns: Sequence[RawColumn],
    lists: Mapping[str, Mapping[int, Sequence[Any]]],
    columns: Mapping[str, RawColumn],
    head: Head,
    missing: frozenset[str],
) -> dict[str, RawColumn]:
    """Return those of some columns whose gaps were set to stated values, with these values in place of the gaps.

    Columns that would have more than two values then are left out.
    """
    filled: dict[str, RawColumn] = {}
    bad = BadCells()
    for raw in do_columns:
        for k, _, name, value in _settings(raw, lists.get(raw.name, {}), head, missing, bad):
            if name not in columns or value is None:
                continue
            column = filled.get(name, columns[name])
            is_gap = np.array([*(is_missing(word, missing) for word in column.words), True])  # the last for index -1
            rows = (raw.cells == k) & is_gap[column.cells]
            if rows.any():
                cells = np.where(rows, len(column.words), column.cells).astype(np.int32)
                filled[name] = replace(column, words=[*column.words, value], cells=cells)
    bad.check()
    return {name: column for name, column in filled.items() if len(values_of(column, missing).values) <= 2}


def _read_settings(
    raw: RawColumn, lists: Mapping[int, Sequence[Any]], head: Head, missing: frozenset[str], bad: BadCells
) -> npt.NDArray[np.uint64]:
    """Return for each row a mask of the columns that a column of --do states as set, and fill gaps in these."""
    masks = np.zeros(len(raw.words) + 1, np.uint64)
    stated: dict[int, list[tuple[int, int, str]]] = {}
    numbers = np.bincount(raw.cells + 1, minlength=len(masks))
    for k, where, name, value in _settings(raw, lists, head, missing, bad):
        for column in head.used[name]:
            masks[k] |= np.uint64(1 << column)
            if value is None:
                continue
            code = head.columns[column].code_of(value)
            if code is None:
                target = head.columns[column]
                reason = f"{where}: {readable_repr(value)} is no value of {readable_repr(target.name)}; "
                bad.add(raw.name, int(numbers[k + 1]), "" if bad.has_any else reason + known_names(value, target.words))
            else:
                stated.setdefault(k, []).append((column, code, value))
    for k, settings in stated.items():
        _apply(raw, k, settings, head, bad)
    return masks[raw.cells]


def _settings(
    raw: RawColumn, lists: Mapping[int, Sequence[Any]], head: Head, missing: frozenset[str], bad: BadCells
) -> Iterator[tuple[int, str, str, str | None]]:
    """Yield each setting in a column of --do: index of the word, first cell that has it, column set, stated value.

    bad: cells that cannot be read are added to it
    """
    positions = _positions(raw, lists, head, missing)
    occurring, first_rows, numbers = np.unique(raw.cells, return_index=True, return_counts=True)
    for index in np.argsort(first_rows).tolist():
        k, row = int(occurring[index]), int(first_rows[index])
        word = raw.words[k] if k >= 0 else ""
        cells = [str(part) for part in lists[k]] if k in lists else [word]
        if k not in lists and (is_missing(word, missing) or (word.lower() in NOTHING_SET and word not in head.names)):
            continue
        where = head.table.place(row, raw.name)
        try:
            settings = [
                setting
                for cell in cells
                for setting in ([(positions(cell), None)] if positions else _parse(cell, head))
            ]
        except _UnreadError as error:
            bad.add(raw.name, int(numbers[index]), "" if bad.has_any else f"{where}: {error.describe()}")
            continue
        yield from ((k, where, name, value) for name, value in settings if name)


def _apply(raw: RawColumn, word: int, settings: Sequence[tuple[int, int, str]], head: Head, bad: BadCells) -> None:
    """Fill gaps with the values to which a word states that columns were set; other values are added to `bad`.

    word: its index; settings: (column, code, word of the value)
    """
    rows = raw.cells == word
    for column, code, value in settings:
        codes = head.columns[column].codes
        wrong = np.flatnonzero(rows & (codes != GAP) & (codes != code))
        if len(wrong):
            row, name = int(wrong[0]), head.columns[column].name
            present = head.columns[column].word(int(codes[row]))
            stated = f"{readable_repr(raw.words[word])} states that {readable_repr(name)} was set to {value}"
            reason = f"{stated}, and the cell has {present}; correct one of them"
            bad.add(raw.name, len(wrong), f"{head.table.place(row, raw.name)}: {reason}")
        codes[rows & (codes == GAP)] = code


def _positions(raw: RawColumn, lists: Mapping[int, Sequence[Any]], head: Head, missing: frozenset[str]) -> Any:
    """Return a function from a position in the head to a column's name, if all cells are whole numbers; else None.

    The function returns None for 0, which stands for nothing set.
    """
    words = [word for k, word in enumerate(raw.words) if k not in lists and not is_missing(word, missing)]
    numbers = [number_of(word) for word in words]
    if lists or not words or any(n is None or n != n.to_integral_value() for n in numbers):
        return None
    for word, number in zip(words, numbers, strict=True):
        if word in head.names and head.names.index(word) + 1 != number:
            raise CalibrantError(
                f"{head.table.source}, column {readable_repr(raw.name)}: {word} is the name of a column and not its"
                f" position in the head, or nothing set; write do({word}) for the name"
            )

    def name_at(cell: str) -> str | None:
        number = int(number_of(cell) or Decimal(0))
        if number == 0:
            return None
        if not 1 <= number <= len(head.names):
            reason = f"no column at position {number}; positions are 1 to {len(head.names)}, 0 for nothing set"
            raise _UnreadError(lambda: reason)
        return head.names[number - 1]

    return name_at


def remark_on_positions(do_columns: Sequence[RawColumn], head: Head, missing: frozenset[str]) -> Iterator[str]:
    """Yield a line on each column of --do that has positions, with the names of the columns at these positions."""
    for raw in do_columns:
        name_at = _positions(raw, (head.table.lists or {}).get(raw.name, {}), head, missing)
        if name_at is None:
            continue
        numbers = sorted({int(number_of(word) or 0) for word in raw.words if not is_missing(word, missing)} - {0})
        named = [f"{number} is {name_at(str(number))}" for number in numbers[:MAX_POSITIONS]]
        more = ["..."] if len(numbers) > MAX_POSITIONS else []
        if named:
            yield f"{raw.name} has positions of columns: {', '.join([*named, *more])}"


def _parse(cell: str, head: Head) -> Iterator[Setting]:
    """Yield the settings that a cell states."""
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
            raise _UnreadError(partial(_unknown_name, cell[position:], head))
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
        raise _UnreadError(partial(_unknown_name, cell, head))


def _end_of_value(cell: str, start: int, names: Sequence[str]) -> int:
    """Return the end of a value that its column does not have; it has blanks, unless a column's name follows them."""
    for end in range(start, len(cell)):
        after = end + len(cell[end:]) - len(cell[end:].lstrip())
        is_next = any(_stands_at(cell, name, after, SEPARATORS + "=)") for name in names)
        is_next |= cell[after : after + 3].lower() == "do(" or cell[after : after + 1] in SEPARATORS.strip() + ")"
        if cell[end] in SEPARATORS + ")" and is_next and cell[start : end + 1] != "+":
            return end
    return len(cell)


def _settable_names(head: Head) -> list[str]:
    """Return the names of columns that a cell may have, longest first.

    A column `X=w` that --binarize made is left out, because in a cell `X=w` means that X was set to w.
    """
    ruled = [name for name in head.used if name not in head.names]
    words = {name for name in ruled if "|" not in name and any(name.startswith(f"{origin}=") for origin in head.names)}
    return sorted({*head.used} - words, key=len, reverse=True)


def _stands_at(cell: str, word: str, position: int, ends: str) -> bool:
    """Return whether a cell has a word at a position, followed by the cell's end or a character of `ends`."""
    end = position + len(word)
    return bool(word) and cell.startswith(word, position) and (end == len(cell) or cell[end] in ends)


def name_columns(words: Iterable[str], names: Collection[str]) -> list[bool]:
    """Return for each word whether it consists of names of columns, as they are or as in `do(X=1)`."""
    # a name may have blanks: each word is split both with and without splitting at blanks
    splits = (f"[{SEPARATORS}]+", f"[{SEPARATORS.replace(' ', '')}]+")
    bare = [re.sub(r"^do\((.*)\)$", r"\1", word) for word in words]
    parts = [[re.split(split, word) for split in splits] for word in bare]
    return [
        bool(word)
        and (word in names or any(all(_set_name(part) in names for part in split if part.strip()) for split in listed))
        for word, listed in zip(bare, parts, strict=True)
    ]


def _set_name(text: str) -> str:
    """Return the name in `X` or `X=1`."""
    return text.partition("=")[0].strip()


def _unknown_name(rest: str, head: Head) -> str:
    end = next((k for k, character in enumerate(rest) if character in SEPARATORS + "=)"), len(rest))
    unknown = rest[:end] or rest
    near = " or ".join(nearest_names(unknown, head.names))
    question = f"did you mean {near}? " if near else ""
    option = f"give --missing {shlex.quote(unknown)}"
    nothing = f"; if {readable_repr(unknown)} stands for nothing set, {option}" if rest == unknown else ""
    return f"{readable_repr(unknown)} is no column; {question}read are {FORMS}{nothing}"


# --- Flags: a column for each that says whether it was set ------------------------------------------------------------


def flag_columns(names: Sequence[str], pattern: str, source: str) -> dict[str, str]:
    """Return flag column -> column, for a pattern with one `*`, which stands for the column's name.

    names: of all columns but those of --do
    """
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
    """Return for each row a mask of the used columns that flags state as set, bit k for column k."""
    masks = np.zeros(len(head.table.lines), np.uint64)
    bad = BadCells()
    for flag, name in flags.items():
        raw = raws[flag]
        bits = [0 if is_missing(word, missing) else truth_of(word) for word in raw.words]
        rows = np.flatnonzero(np.isin(raw.cells, [k for k, bit in enumerate(bits) if bit is None]))
        if len(rows):
            word = raw.words[raw.cells[rows[0]]]
            reason = f"{readable_repr(word)} is no flag; 1 or 0, yes or no, true or false are read"
            bad.add(flag, len(rows), f"{head.table.place(int(rows[0]), flag)}: {reason}")
        set_rows = np.array([*(bit or 0 for bit in bits), 0], np.uint64)[raw.cells]
        for column in head.used[name]:
            masks |= set_rows << np.uint64(column)
    bad.check()
    return masks
