"""Columns of a table of one's own: kinds, values and codes."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from itertools import combinations
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from calibrant.dsl.errors import CalibrantError, readable_repr
from calibrant.dsl.text import has_unclear_comma, is_name, known_names, plural, replace_decimal_comma

I64 = npt.NDArray[np.int64]
U64 = npt.NDArray[np.uint64]
I16 = npt.NDArray[np.int16]
Codes: TypeAlias = I16
"""[patterns, columns] code of each cell, GAP for an empty cell."""

# --- Columns of a user's table: values of cells, kinds of columns, and which of two values is 1 -----------------------
# Words are compared as the user wrote them; numbers as exact decimals (`1`, `1.0` and `1e0` are one value). A column is
# a list of different words and, for each row, the index of its word, so that 10^6 rows take 4 MB a column.
I32 = npt.NDArray[np.int32]
Value: TypeAlias = str | Decimal
Kind: TypeAlias = Literal["empty", "constant", "binary", "measured", "id", "many", "categories"]

MISSING = frozenset({"", "na", "n/a", "nan", "null", "<na>", "?"})  # in lower case; cells may have any case
WORDS_FOR_ONE = frozenset(["1", "true", "t", "yes", "y", "on", "present", "positive", "pos"])
WORDS_FOR_ZERO = frozenset(["0", "false", "f", "no", "n", "off", "absent", "negative", "neg"])
RESERVED = frozenset(["and", "or", "not", "xor", "iff", "if", "true", "false"])  # names in backticks in formulas
MAX_CATEGORIES = 64
MAX_NAMED = 8  # columns that a line names
MANY_CATEGORIES = 10  # number above which a note on the column is printed
GAP = -1  # code of a cell without a value
# a number with a longer exponent counts as a word, because exact arithmetic on 1e999999999 would not end
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,3})?", re.ASCII)
_POINT_THOUSANDS = re.compile(r"[+-]?[1-9]\d?\.\d{3}", re.ASCII)
_RULE = re.compile(r"(>=|<=|>|<)\s*(.+)", re.DOTALL)
COMPARISONS: Mapping[str, Callable[[Any, Any], bool]] = {
    ">": lambda a, b: bool(a > b),
    ">=": lambda a, b: bool(a >= b),
    "<": lambda a, b: bool(a < b),
    "<=": lambda a, b: bool(a <= b),
}
RULES = "'>50', '>=50', '<50', '<=50', 'red|blue' (1 for these words) or 'median'"


def quote_name(name: str) -> str:
    """Return a column's name as formulas have it: bare if it is an identifier and no operator, else in backticks."""
    if is_name(name) and name.lower() not in RESERVED:
        return name
    return "`" + name.replace("`", "``") + "`"


def number_of(word: str) -> Decimal | None:
    """Return a word as an exact number; None if it is no number."""
    return Decimal(word) if _NUMBER.fullmatch(word) else None


def measure_of(word: str) -> Decimal | None:
    """Return a word as an exact number, with a decimal point or comma; None if it is no number."""
    return number_of(replace_decimal_comma(word))


def _unclear_number(words: Sequence[str]) -> str | None:
    """Return the first word that is no number, or else the first whose comma or point may separate thousands.

    A comma or point may separate thousands only if it may in all words that have one: it is followed by three digits.
    For a point, some other word has to be a whole number of three digits. None if all words are clearly numbers.
    """
    no_number = next((word for word in words if measure_of(word) is None), None)
    if no_number is not None:
        return no_number
    commas = [word for word in words if "," in word]
    if commas and all(map(has_unclear_comma, commas)):
        return commas[0]
    points = [word for word in words if "." in word]
    is_unclear = any(len(word) == 3 and word.isdecimal() for word in words)
    return points[0] if points and is_unclear and all(map(_POINT_THOUSANDS.fullmatch, points)) else None


def value_of(word: str) -> Value:
    """Return the value by which a word is compared: its number if it is one, else the word."""
    number = number_of(word)
    return word if number is None else number


def truth_of(word: str) -> int | None:
    """Return 1 or 0 for a number or word that is known to mean it, None for any other."""
    number = number_of(word)
    if number is not None:
        return int(number) if number in (0, 1) else None
    lower_word = word.lower()
    return 1 if lower_word in WORDS_FOR_ONE else 0 if lower_word in WORDS_FOR_ZERO else None


@dataclass(frozen=True, slots=True)
class RawColumn:
    """A column as it was read.

    words: different trimmed cells, in order of first occurrence; `None` cells of data frames are ""
    cells: [rows] index of the word of each cell
    declared: further values that the dtype of a data frame states
    """

    name: str
    words: Sequence[str]
    cells: I32
    declared: Sequence[str] = ()


@dataclass(frozen=True)
class RawTable:
    """A table as it was read: columns of words.

    source: name of the file or frame, for messages; lines: [rows] number of each row, in messages
    lists: column of --do -> index of a word -> its parts, for cells of data frames that are lists
    """

    source: str
    columns: Sequence[RawColumn]
    lines: I64
    counting: str = "counted from 1"
    delimiter: str | None = None
    lists: Mapping[str, Mapping[int, Sequence[Any]]] | None = None
    remarks: tuple[str, ...] = ()

    def place(self, row: int, name: str) -> str:
        """Return the position of a cell, for messages."""
        return f"{self.source}, row {self.lines[row]} ({self.counting}), column {readable_repr(name)}"


class BadCells:
    """Invalid cells: the message on the first that was found, and the number of all by column."""

    def __init__(self) -> None:
        self._message = ""
        self._numbers: dict[str, int] = {}

    @property
    def has_any(self) -> bool:
        """Return whether there is an invalid cell, so that the messages on further ones are not used."""
        return bool(self._numbers)

    def add(self, column: str, number: int, message: str) -> None:
        """Add a number of invalid cells of a column, with the message on the first of them."""
        self._message = self._message if self.has_any else message
        self._numbers[column] = self._numbers.get(column, 0) + number

    def check(self) -> None:
        """Raise `CalibrantError` about the first invalid cell, with the number of the others, if there is any."""
        more = sum(self._numbers.values()) - 1
        if more >= 0:
            others = f"; and {more:,} more in {plural(len(self._numbers), 'columns')}" if more else ""
            raise CalibrantError(f"{self._message}{others}")


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """A column of a table.

    kind: see docs/tables.md; the used kinds are `constant`, `binary` and, for networks, `categories`
    num_missing: cells without a value, as they were read
    words: the user's word for each code: (word for 0, word for 1) of `binary`, the one word of `constant`, the levels
        in ascending order of `categories`; empty for other kinds
    value: 0 or 1, the code of the only value of `constant`; None for other kinds
    codes: [rows] code of each cell, GAP for none; 0 or 1 of `binary` and `constant`; empty for kinds that are not used
    code_of: returns the code of a word, None for a word that is no value of the column
    by_alphabet: whether the word for 1 of `binary` was chosen only because it is later in code point order
    """

    name: str
    kind: Kind
    num_missing: int
    words: tuple[str, ...]
    value: int | None
    codes: I32
    code_of: Callable[[str], int | None] = field(repr=False)
    by_alphabet: bool = False

    @property
    def is_used(self) -> bool:
        """Return whether the column has codes."""
        return self.kind in ("constant", "binary", "categories")

    @property
    def num_levels(self) -> int:
        """Return the number of values; a constant column has two, one of which never occurs."""
        return len(self.words) if self.kind == "categories" else 2

    def word(self, code: int) -> str:
        """Return the user's word for a code; for the value that a constant column lacks, its digit."""
        if self.kind == "constant":
            return self.words[0] if code == self.value else str(code)
        return self.words[code]

    @property
    def digits_or_words(self) -> tuple[str, str]:
        """Return the texts of 0 and 1 in tables: digits for a constant column and one of --binarize, else the words."""
        is_worded = self.kind == "binary" and not (_is_digit(self.words) or _is_ruled(self.words))
        return (self.words[0], self.words[1]) if is_worded else ("0", "1")

    def to_dict(self) -> dict[str, Any]:
        """Return the column's description for JSON."""
        entries: dict[str, Any] = {"name": self.name, "kind": self.kind, "missing": self.num_missing}
        if self.kind == "binary":
            entries |= {"one": self.words[1], "zero": self.words[0]}
        elif self.kind == "categories":
            entries |= {"levels": list(self.words)}
        elif self.kind == "constant":
            entries |= {"word": self.words[0], "value": self.value}
        return entries


@dataclass(frozen=True, slots=True)
class Values:
    """The different values of a raw column.

    values: in order of first occurrence; spellings: first word of each value
    of_word: [words and one more] index of each word's value, GAP for a word without a value; the last is always GAP
    recognised: whether all words are known to mean 1 or 0
    has_decimal_commas: whether all words are numbers, some with a comma in place of a point
    """

    values: tuple[Value, ...]
    spellings: tuple[str, ...]
    of_word: I32
    recognised: bool
    has_decimal_commas: bool

    def value(self, word: str) -> Value:
        """Return the value by which a word of the column is compared."""
        plain = replace_decimal_comma(word) if self.has_decimal_commas else word
        truth = truth_of(plain) if self.recognised else None
        return value_of(plain) if truth is None else Decimal(truth)

    def find(self, word: str) -> int | None:
        """Return the index of a word's value; None if the column does not have it."""
        value = self.value(word)
        return self.values.index(value) if value in self.values else None


def is_missing(word: str, missing: frozenset[str]) -> bool:
    """Return whether a word means a missing value. missing: further such words, of numbers in any spelling."""
    return word.lower() in MISSING or (bool(missing) and any(_is_same(word, stated) for stated in missing))


def _is_same(word: str, stated: str) -> bool:
    """Return whether a word equals one of --missing, or is the same number; a comma may be its decimal point."""
    if word == stated or has_unclear_comma(word) or has_unclear_comma(stated):
        return word == stated
    number = measure_of(word)
    return number is not None and number == measure_of(stated)


def check_missing_words(columns: Iterable[RawColumn], missing: frozenset[str], source: str) -> None:
    """Raise `CalibrantError` for a word of --missing that no cell has: it may be misspelled, or the table be wrong."""
    words = {word for column in columns for word in column.words} if missing else set[str]()
    for stated in sorted(missing):
        if stated.lower() not in MISSING and not any(_is_same(word, stated) for word in words):
            problem = f"{source}: no cell is {readable_repr(stated)} (--missing)"
            raise CalibrantError(f"{problem}; write the word as the table has it, or leave the option out")


def values_of(column: RawColumn, missing: frozenset[str]) -> Values:
    """Return the different values of a column."""
    words = [None if is_missing(word, missing) else word for word in column.words]
    present = [word for word in words if word is not None]
    has_commas = any("," in word for word in present) and _unclear_number(present) is None
    plain = list(map(replace_decimal_comma, present)) if has_commas else present
    empty = Values((), (), np.zeros(0, np.int32), all(truth_of(word) is not None for word in plain), has_commas)
    indices: dict[Value, int] = {}
    spellings: list[str] = []
    of_word = np.full(len(words) + 1, GAP, np.int32)  # one more, so that index -1 gives a gap, too
    for k, word in enumerate(words):
        if word is None:
            continue
        value = empty.value(word)
        if value not in indices:
            indices[value] = len(indices)
            spellings.append(word)
        of_word[k] = indices[value]
    return replace(empty, values=tuple(indices), spellings=tuple(spellings), of_word=of_word)


def kind_of(values: Values, num_rows: int, num_missing: int, num_declared: int = 0) -> Kind:
    """Return the kind of a column, by the first of these rules that applies."""
    number = len(values.values) if num_declared <= 2 else num_declared
    if number <= 2:
        return ("empty", "constant", "binary")[number]
    numbers = [value for value in values.values if isinstance(value, Decimal)]
    if len(numbers) == len(values.values) and any(value != value.to_integral_value() for value in numbers):
        return "measured"
    if len(values.values) == num_rows and not num_missing:
        return "id"
    return "many" if number > MAX_CATEGORIES else "categories"


def one_of(values: Values) -> int | None:
    """Return the index of the one of two values that is coded as 1; None if they are words with no known meaning."""
    first, second = values.values
    if values.recognised:
        return int(first != 1)
    if {first, second} == {"+", "-"}:
        return int(first != "+")
    if isinstance(first, Decimal) and isinstance(second, Decimal):
        return int(second > first)
    return None


def make_column(raw: RawColumn, missing: frozenset[str], stated_word: str | None, source: str) -> Column:
    """Return a column with its kind and codes. stated_word: the word for 1 that the user states by --one."""
    values = values_of(raw, missing)
    places = values.of_word[raw.cells]
    num_missing = int((places == GAP).sum())
    declared = _declared_values(values, raw.declared)
    kind = kind_of(values, len(raw.cells), num_missing, len(declared))
    where = f"{source}, column {readable_repr(raw.name)}"
    stated = None if stated_word is None else values.find(stated_word)
    if stated_word is not None and kind not in ("binary", "constant"):
        raise CalibrantError(f"{where}: --one chooses one of two values; this column has {len(values.values):,}")
    if stated_word is not None and stated is None and kind != "constant":
        raise CalibrantError(
            f"{where}: no value {readable_repr(stated_word)} (--one); {known_names(stated_word, values.spellings)}"
        )
    if kind == "binary":
        chosen = one_of(values) if stated is None else stated
        high = int(values.spellings[1] > values.spellings[0]) if chosen is None else chosen
        words = (values.spellings[1 - high], values.spellings[high])
        codes = np.where(places == GAP, GAP, places == high).astype(np.int32)
        code_of = _Codes(values, {high: 1, 1 - high: 0})
        return Column(raw.name, kind, num_missing, words, None, codes, code_of, by_alphabet=chosen is None)
    if kind == "constant":
        value = int(values.values[0] == 1 if stated_word is None else stated is not None)
        codes = np.where(places == GAP, GAP, value).astype(np.int32)
        return Column(raw.name, kind, num_missing, values.spellings, value, codes, _Codes(values, {0: value}))
    if kind == "categories":
        return _categories(raw.name, values, declared, places, num_missing)
    return Column(raw.name, kind, num_missing, (), None, np.zeros(0, np.int32), lambda word: None)


@dataclass(frozen=True, slots=True)
class _Codes:
    """A function of a word that returns the code of its value, None for a word without a value of the column."""

    values: Values
    codes: Mapping[int, int]

    def __call__(self, word: str) -> int | None:
        place = self.values.find(word)
        return None if place is None else self.codes[place]


def _declared_values(values: Values, declared: Sequence[str]) -> dict[Value, str]:
    """Return value -> spelling, for all values that occur or are declared."""
    spellings = dict(zip(values.values, values.spellings, strict=True))
    for word in declared:
        spellings.setdefault(values.value(word), word)
    return spellings


def _categories(name: str, values: Values, declared: Mapping[Value, str], places: I32, num_missing: int) -> Column:
    numeric = all(isinstance(value, Decimal) for value in declared)
    order = sorted(declared, key=lambda value: value if numeric else declared[value])
    codes = {index: order.index(value) for index, value in enumerate(values.values)}
    table = np.array([*(codes[place] for place in range(len(codes))), GAP], np.int32)
    words = tuple(declared[value] for value in order)
    return Column(name, "categories", num_missing, words, None, table[places], _Codes(values, codes))


# --- Columns of two values made of others -----------------------------------------------------------------------------


def binarize_column(raw: RawColumn, rule: str, missing: frozenset[str], table: RawTable) -> Column:
    """Return the column of two values that a rule of --binarize makes of another column; gaps stay gaps."""
    values = values_of(raw, missing)
    places = values.of_word[raw.cells]
    rule = rule.strip()
    if rule == "median" or _RULE.fullmatch(rule):
        _check_numbers(raw, rule, values, table)
    name, test = _parse_rule(raw.name, rule, values, places, table.source)
    bits = [int(test(value)) for value in values.values]
    codes = np.array([*bits, GAP], np.int32)[places]
    num_missing = int((codes == GAP).sum())
    words = (f"not {name}", name)

    def code_of(word: str) -> int | None:
        place = values.find(word)
        return words.index(word) if word in words else None if place is None else bits[place]

    occurring = sorted({int(bit) for bit in codes if bit != GAP} if len(codes) < 100 else set(np.unique(codes)) - {GAP})
    if len(occurring) == 2:
        return Column(name, "binary", num_missing, words, None, codes, code_of)
    if not occurring:
        return Column(name, "empty", num_missing, (), None, np.zeros(0, np.int32), code_of)
    return Column(name, "constant", num_missing, (words[occurring[0]],), int(occurring[0]), codes, code_of)


def _check_numbers(raw: RawColumn, rule: str, values: Values, table: RawTable) -> None:
    """Raise `CalibrantError` if a rule compares words that are no numbers, or numbers with unclear separators."""
    present = [k for k, place in enumerate(values.of_word[:-1].tolist()) if place != GAP]
    wrong = _unclear_number([raw.words[k] for k in present])
    if wrong is None:
        return
    stated = f"--binarize {readable_repr(rule)}: {readable_repr(wrong)} is no number"
    allowed = f"rules are {RULES}"
    if measure_of(wrong) is not None:
        unclear = " (a comma before three digits may stand for thousands: write points)" if "," in wrong else ""
        if number_of(wrong) is not None:
            unclear = " for sure (a point before three digits may stand for thousands: write 1799 or 1.7990)"
        raise CalibrantError(f"{table.source}, column {readable_repr(raw.name)}, {stated}{unclear}; {allowed}")
    cells = np.isin(raw.cells, [k for k in present if measure_of(raw.words[k]) is None])
    place = table.place(int(np.flatnonzero(cells)[0]), raw.name)
    bad = BadCells()
    bad.add(raw.name, int(cells.sum()), f"{place}, {stated}; {allowed}; a word for no value is one of --missing WORD")
    bad.check()


def _parse_rule(name: str, rule: str, values: Values, places: I32, source: str) -> tuple[str, Callable[[Value], bool]]:
    """Return the name of the column that a rule makes, and a function of a value that tells whether it becomes 1."""
    where = f"{source}, column {readable_repr(name)}, --binarize {readable_repr(rule)}"
    comparison = _RULE.fullmatch(rule)
    if comparison is None and rule != "median":
        words = [word.strip() for word in rule.split("|")]
        unknown = next((word for word in words if values.find(word) is None), None)
        if unknown is not None:
            near = known_names(unknown, values.spellings[:MAX_CATEGORIES])
            raise CalibrantError(f"{where}: no value {readable_repr(unknown)}; {near}; rules are {RULES}")
        ones = {values.values[values.find(word) or 0] for word in words}
        return f"{name}={'|'.join(words)}", lambda value: value in ones
    numbers = [Fraction(measure_of(word) or 0) for word in values.spellings]
    by_value = dict(zip(values.values, numbers, strict=True))
    if rule == "median":
        middle = _median(numbers, places)
        return f"{name}:median", lambda value: by_value[value] > middle
    assert comparison is not None
    bound = measure_of(comparison[2].strip())
    if bound is None:
        raise CalibrantError(f"{where}: {readable_repr(comparison[2])} is no number; rules are {RULES}")
    compare, limit = COMPARISONS[comparison[1]], Fraction(bound)
    return f"{name}{comparison[1]}{comparison[2].strip()}", lambda value: compare(by_value[value], limit)


def _median(numbers: Sequence[Fraction], places: I32) -> Fraction:
    """Return the median of the cells, the mean of the middle two if their number is even; 0 without cells.

    numbers: of each value; places: [rows] index of each cell's value, or GAP
    """
    counts = np.bincount(places[places != GAP], minlength=len(numbers)) if len(numbers) else np.zeros(0, int)
    order = sorted(range(len(numbers)), key=numbers.__getitem__)
    ends = np.cumsum(counts[order])
    total = int(counts.sum())
    if not total:
        return Fraction(0)
    low, high = ((total - 1) // 2, total // 2)
    middle = [numbers[order[int(np.searchsorted(ends, position, side="right"))]] for position in (low, high)]
    return (middle[0] + middle[1]) / 2


def _is_ruled(words: Sequence[str]) -> bool:
    """Return whether these are the words of a column that --binarize made."""
    return words[0] == f"not {words[1]}"


def _is_digit(words: Sequence[str]) -> bool:
    """Return whether the words for 0 and 1 are these numbers, in some spelling."""
    return [number_of(word) for word in words] == [0, 1]


def coding_lines(columns: Iterable[Column], *, networks: bool = False) -> list[str]:
    """Return what was coded as 1, in the user's words, and what is missing and left out: a line each that applies.

    networks: leave out which codes the alphabet alone decides, for networks are the same with any codes
    """
    columns = list(columns)
    groups: dict[tuple[str, str], list[str]] = {}
    for column in columns:
        if column.kind == "binary" and not (_is_digit(column.words) or _is_ruled(column.words)):
            groups.setdefault((column.words[1], column.words[0]), []).append(column.name)
    parts = [
        f"{high} ({', '.join(names)}{'' if truth_of(high) == 1 and truth_of(low) == 0 else f'; 0: {low}'})"
        for (high, low), names in groups.items()
    ]
    lines = [f"coded 1: {', '.join(parts)}"] if parts else []
    gaps = [(column.num_missing, column.name) for column in columns if column.num_missing and column.kind != "empty"]
    total = sum(number for number, _ in gaps)
    if gaps:
        noun = "cell" if total == 1 else "cells"
        lines.append(f"missing: {total:,} {noun} ({', '.join(f'{number:,} {name}' for number, name in gaps)})")
    reasons = {"id": "all different", "empty": "no value"}
    left_out = [f"{column.name} ({reasons[column.kind]})" for column in columns if column.kind in reasons]
    if left_out:
        lines.append(f"left out: {', '.join(left_out)}")
    if by_alphabet := [column for column in columns if column.by_alphabet and not networks]:
        listed = ", ".join(f"{column.words[1]} ({column.name})" for column in by_alphabet[:MAX_NAMED])
        more = f" and {len(by_alphabet) - MAX_NAMED} more" if len(by_alphabet) > MAX_NAMED else ""
        choice = shlex.quote(f"{by_alphabet[0].name}={by_alphabet[0].words[0]}")
        lines.append(f"1 only as the later word of the alphabet: {listed}{more}; the other is 1 by --one {choice}")
    return lines


def reasons_left_out(
    columns: Iterable[Column], dropped: Iterable[str], stated: Iterable[str], num_rows: int
) -> dict[str, str]:
    """Return why a column of the file is none of the fit, and what to do, by its name.

    columns: all with their kinds, of so many rows; dropped: by --drop; stated: those that name what was set
    """
    reasons = dict.fromkeys(dropped, " by --drop; take it out of that") | dict.fromkeys(
        stated, ": it states what was set by hand"
    )
    for column in columns:
        if column.kind == "id":
            way = f"--binarize '{column.name}:RULE' uses it (RULE is {RULES})"
            reasons[column.name] = f": its {num_rows:,} values are all different; {way}"
        elif column.kind == "empty":
            reasons[column.name] = ": it has no value"
    return {name: f"column {readable_repr(name)} is left out{reason}" for name, reason in reasons.items()}


# --- Columns that tell nothing beside others --------------------------------------------------------------------------
MAX_SCREENED = 4_096  # patterns on which copies and functions of two columns are excluded before all are compared


def notes_on(columns: Sequence[Column], codes: Codes, masks: U64, counts: I64) -> tuple[str, ...]:
    """Return the notes on degenerate columns, sorted. columns: all; codes: of the used ones by pattern."""
    notes = [f"{column.kind} {column.name}" for column in columns if column.kind in ("constant", "id", "empty")]
    used = [column for column in columns if column.is_used]
    binary = [k for k, column in enumerate(used) if column.kind == "binary"]
    originals: list[int] = []
    for k in binary:
        copy = _copy_of(k, originals, codes, counts)
        if copy is None:
            originals.append(k)
        else:
            notes.append(f"{copy[0]} {used[k].name} of {used[copy[1]].name}")
    pairs = _determining_pairs(originals, codes, masks, counts)
    notes += [f"determined {used[y].name} by {used[a].name}, {used[b].name}" for y, (a, b) in pairs.items()]
    return tuple(sorted(notes))


def _copy_of(k: int, originals: Sequence[int], codes: Codes, counts: I64) -> tuple[str, int] | None:
    """Return the first column that this one equals or opposes wherever both are known, in at least two rows."""
    present = codes[:, k] != GAP
    screen = slice(0, MAX_SCREENED)  # whole columns of 10^6 patterns would take 2 s of the 4 s of reading 20 of them
    for original in originals:
        is_known = present[screen] & (codes[screen, original] != GAP)
        is_equal = codes[screen, k][is_known] == codes[screen, original][is_known]
        if is_equal.any() and not is_equal.all():
            continue
        rows = present & (codes[:, original] != GAP)
        if counts[rows].sum() < 2:
            continue
        equal = codes[rows, k] == codes[rows, original]
        if equal.all() or not equal.any():
            return ("duplicate" if equal.all() else "complement"), original
    return None


def _determining_pairs(originals: Sequence[int], codes: Codes, masks: U64, counts: I64) -> dict[int, tuple[int, int]]:
    """Return column -> the first two others that determine it where it was not set."""
    screen = slice(0, MAX_SCREENED)
    ones = {k: _as_bits(codes[screen, k] == 1) for k in originals}
    zeros = {k: _as_bits(codes[screen, k] == 0) for k in originals}
    free = {k: _as_bits((masks[screen] >> np.uint64(k) & np.uint64(1)) == 0) for k in originals}
    determined: dict[int, tuple[int, int]] = {}
    for a, b in combinations(originals, 2):
        cells = [ones[a] & ones[b], ones[a] & zeros[b], zeros[a] & ones[b], zeros[a] & zeros[b]]
        for y in originals:
            if y in (a, b) or y in determined:
                continue
            high, low = ones[y] & free[y], zeros[y] & free[y]
            if all(not cell & high or not cell & low for cell in cells) and _determine(y, a, b, codes, masks, counts):
                determined[y] = (a, b)
    return determined


def _determine(y: int, a: int, b: int, codes: Codes, masks: U64, counts: I64) -> bool:
    """Return whether all four patterns of a and b occur, one of them twice, and each always with one value of y."""
    rows = ((masks >> np.uint64(y) & np.uint64(1)) == 0) & (codes[:, [y, a, b]] != GAP).all(axis=1)
    cells = codes[rows, a] * 2 + codes[rows, b]
    totals = np.bincount(cells, counts[rows], minlength=4)
    high = np.bincount(cells, counts[rows] * (codes[rows, y] == 1), minlength=4)
    return bool((totals > 0).all() and totals.max() >= 2 and ((high == 0) | (high == totals)).all())


def _as_bits(flags: npt.NDArray[np.bool_]) -> int:
    return int.from_bytes(np.packbits(flags).tobytes(), "big")
