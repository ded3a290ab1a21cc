"""Users' tables: rows counted by pattern, and a table as an item, whose texts have the user's names."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from io import StringIO
from math import comb
from shlex import quote
from typing import Any, Literal, TypeAlias, get_args

import msgspec
import numpy as np
import numpy.typing as npt
from markupsafe import escape

from calibrant.audits.replayscm.fits.evidence import ReadingRecord, TableEvidence
from calibrant.audits.why import expected_text
from calibrant.bench.replayscm.fitting.columns import (
    GAP,
    I64,
    MANY_CATEGORIES,
    U64,
    Codes,
    Column,
    RawColumn,
    coding_lines,
    number_of,
    quote_name,
    truth_of,
)
from calibrant.bench.replayscm.fitting.interventions import name_columns
from calibrant.bench.report.tidy import Framed
from calibrant.dsl.errors import CalibrantError, readable_repr
from calibrant.dsl.formulas.text import Grammar, infix
from calibrant.dsl.replayscm.disclosure import Disclosure, natural
from calibrant.dsl.replayscm.item import Problem, Sealed, Task, TaskKind
from calibrant.dsl.replayscm.scm import Scm
from calibrant.dsl.replayscm.world import Intervention, Panel, World, columns_from_rows
from calibrant.dsl.text import known_names, plural

# --- Users' tables: rows counted by pattern, with the code of each column, notes and interventions --------------------
Gaps: TypeAlias = Literal["complete", "drop"]

MAX_READING_LINES = 6  # lines that are printed on how a table was read


@dataclass(frozen=True)
class RuledCells:
    """A column of a file from which --binarize makes columns. columns: those made, with the codes of all rows."""

    raw: RawColumn
    columns: tuple[Column, ...]

    def find_word(self, bits: Mapping[str, str]) -> str | None:
        """Return the word of the first row with these bits, by column; None if no row has them, or a bit is unknown."""
        if "?" in bits.values():
            return None
        codes = [column.codes == int(bits[column.name]) for column in self.columns if column.name in bits]
        rows = np.flatnonzero(np.logical_and.reduce(codes)) if codes else np.zeros(0, np.int64)
        return self.raw.words[self.raw.cells[rows[0]]] if len(rows) else None


@dataclass(frozen=True)
class TableLayout:
    """Form of a line of a CSV file.

    header: names of its columns, in order; do: names of those that say which columns were set
    ruled: name -> column from which --binarize makes others
    """

    header: tuple[str, ...]
    do: tuple[str, ...]
    delimiter: str
    ruled: Mapping[str, RuledCells]

    def line(self, values: Mapping[str, str], targets: Sequence[str]) -> str:
        """Return a line of the file. values: name of a column -> word, by default empty; targets: columns set."""
        targets_word = "+".join(targets)
        text = StringIO()
        cells = [targets_word if name in self.do else values.get(name, "") for name in self.header]
        csv.writer(text, delimiter=self.delimiter, lineterminator="").writerow(cells)
        return text.getvalue()


@dataclass(frozen=True, eq=False)
class Table(Framed):
    """A table as it was read, by `calibrant.read_table`.

    Columns are numbered: `used` are those with codes (kinds `constant`, `binary` and, for networks, `categories`), in
    the order of the table; a position below is one among them. Rows are counted by pattern: all used codes and what was
    set. A code of `constant` and `binary` is the bit; of `categories` the position in the ascending `words`; -1 is a
    gap. A gap that was set to a stated value has that value.

    source: name of the file, or "the data"; counting: how `lines` count, for messages
    columns: all columns, in the order of the table, without those of do, do_flags and drop; what binarize made of a
        column stands in its place
    notes: on degenerate columns, each `constant K`, `duplicate B of A`, `complement C of A`, `determined Y by A, B`,
        `id P` or `empty E`, sorted
    codes: [patterns, used] int16; set_masks: [patterns] uint64, bit k: used column k was set
    counts: [patterns] rows of each; first_rows: [patterns] the first row of each, from 0; patterns are in this order
    pattern_of_row: [rows] int32
    lines: [rows] int64, lines of the file, or rows counted from 1
    has_targets: whether do or do_flags was given; layout: form of a line, of a CSV file
    remarks: lines on how the file was read otherwise than it stands
    outputs: columns that are outputs of a PLA file; all others are their inputs
    reading: how it was read, as certificates state it; None of a PLA file
    left_out: why a column of the file is not among `used`, a clause each
    factors: constant column -> SCMs that fit by SCMs that fit without it, where `fit` counted both
    """

    source: str
    counting: str
    columns: tuple[Column, ...]
    notes: tuple[str, ...]
    codes: Codes
    set_masks: U64
    counts: I64
    first_rows: I64
    pattern_of_row: npt.NDArray[np.int32]
    lines: I64
    has_targets: bool
    layout: TableLayout | None = None
    remarks: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    reading: ReadingRecord | None = None
    left_out: Mapping[str, str] = field(default_factory=dict, repr=False)
    factors: Mapping[str, Fraction] = field(default_factory=dict, repr=False)

    @cached_property
    def used(self) -> tuple[Column, ...]:
        """Return the columns with codes."""
        return tuple(column for column in self.columns if column.is_used)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Return the names of the used columns, as the user has them."""
        return tuple(column.name for column in self.used)

    @property
    def num_rows(self) -> int:
        return len(self.lines)

    @property
    def num_gaps(self) -> int:
        """Return the number of gaps in used columns, over all rows."""
        return int(((self.codes == GAP).sum(axis=1) * self.counts).sum())

    @property
    def rows(self) -> int:
        """Return the number of rows."""
        return self.num_rows

    @property
    def bits(self) -> dict[str, str]:
        """Return the name of each column with two values -> a text with 0, 1 or `-` (a gap) for each row."""
        digits = np.frombuffer(b"-01", np.uint8)
        texts: dict[str, str] = {}
        for k, column in enumerate(self.used):
            if column.kind != "categories":
                texts[column.name] = digits[self.codes[self.pattern_of_row, k] + 1].tobytes().decode()
        return texts

    @property
    def frame_columns(self) -> dict[str, list[str | None]]:
        """Return the name of each used column -> the user's word in each row, None for a gap."""
        columns = {}
        for k, column in enumerate(self.used):
            words = [*(column.word(code) for code in range(column.num_levels)), None]  # GAP, -1, indexes the last
            columns[column.name] = [words[code] for code in self.codes[self.pattern_of_row, k].tolist()]
        return columns

    @property
    def targets(self) -> list[list[str]] | None:
        """Return the columns set in each row, in the order of the table; None if do and do_flags were not given."""
        if not self.has_targets:
            return None
        by_pattern = [list(self.targets_of(pattern)) for pattern in range(len(self.counts))]
        return [by_pattern[pattern] for pattern in self.pattern_of_row]

    def targets_of(self, pattern: int) -> tuple[str, ...]:
        """Return the columns that were set in a pattern."""
        mask = int(self.set_masks[pattern])
        return tuple(name for k, name in enumerate(self.names) if mask >> k & 1)

    def unknown_column(self, name: str, where: str, problem: str) -> CalibrantError:
        """Return the error on a name of no used column: why it was left out, or the problem and the known names."""
        if name in self.left_out:
            return CalibrantError(f"{where}: {self.left_out[name]}")
        return CalibrantError(f"{where} {problem}; {known_names(name, self.names)}")

    def require_columns(self, names: Iterable[str]) -> None:
        """Raise `CalibrantError` for a name that is no used column."""
        for name in names:
            if name not in self.names:
                raise self.unknown_column(str(name), self.source, f"has no column {readable_repr(name)}")

    def position(self, name: str) -> int:
        """Return the position of a used column."""
        return self.names.index(name)

    @property
    def evidence(self) -> TableEvidence:
        """Return the table in the form in which claims about it are checked."""
        return TableEvidence(
            self.names,
            tuple(tuple(c.word(code) for code in range(c.num_levels)) for c in self.used),
            self.codes,
            np.stack([self.is_set(k) for k in range(len(self.names))], axis=1),
            self.counts,
        )

    def is_set(self, position: int) -> npt.NDArray[np.bool_]:
        """Return for each pattern whether a used column was set in it."""
        return (self.set_masks >> np.uint64(position) & np.uint64(1)).astype(np.bool_)

    @property
    def coding(self) -> dict[str, dict[str, str]]:
        """Return column -> the user's words for one and zero, in a constant column for the one that occurs."""
        return {
            c.name: {("zero", "one")[c.value]: c.words[0]}
            if c.value is not None
            else {"one": c.words[1], "zero": c.words[0]}
            for c in self.used
            if c.kind != "categories"
        }

    @property
    def unread_do(self) -> str:
        """Return the first column whose cells all name other columns, if do and do_flags were not given; else empty."""
        if self.has_targets:
            return ""
        every = {column.name for column in self.columns}
        # without words for 0 and 1, which are also names of columns in a head such as 0, 1, ...
        worded = [c for c in self.used if c.words and all(truth_of(word) is None for word in c.words)]
        return next((c.name for c in worded if all(name_columns(c.words, every - {c.name}))), "")

    def reading_lines(self, *, every: bool = False, networks: bool = False, target: str | None = None) -> Iterator[str]:
        """Yield lines on how the table was read: remarks, codes, gaps, what was left out, and notes with advice.

        every: whether all notes are given, not only as many as MAX_READING_LINES allows
        networks: whether consequences are those for networks, not for formulas
        target: the column to explain; a note on it is given only if it is constant
        """
        stated = [*self.remarks, *coding_lines(self.columns, networks=networks)]
        if self.unread_do:
            way = f"is it what was set by hand in each row? --do {quote(self.unread_do)}"
            stated.append(f"note: {self.unread_do} holds names of other columns: {way}")
        coded = {f"constant {c.name}": f"{c.words[0]} is coded {c.value}; " for c in self.used
                 if c.kind == "constant" and not networks and number_of(c.words[0]) != c.value}  # fmt: skip
        notes = [
            f"note: {note}: {coded.get(note, '')}{_consequence(note, networks, target, self.factors)}"
            for note in self.notes
            if not note.startswith(("id ", "empty ")) and not _is_on_target(note, target)
        ]
        notes += [
            f"note: {c.name} has {len(c.words)} values: a network needs many rows for its parents (--drop, --binarize)"
            for c in self.used if len(c.words) > MANY_CATEGORIES
        ]  # fmt: skip
        room = len(notes) if every else max(MAX_READING_LINES - len(stated), 1)
        num_listed = len(notes) if len(notes) <= room else room - 1
        yield from (*stated, *notes[:num_listed])
        if num_listed < len(notes):
            yield f"note: {len(notes) - num_listed} more on columns that tell nothing beside others (--verbose)"

    @cached_property
    def legal_names(self) -> tuple[str, ...]:
        """Name of each used column inside formulas of items: its own, or `column_K` where it cannot stand bare."""
        plain = {name for name in self.names if quote_name(name) == name}
        legal: list[str] = []
        for k, name in enumerate(self.names, 1):
            similar = f"column_{k}"
            while similar in plain or similar in legal:
                similar += "_"
            legal.append(name if name in plain else similar)
        return tuple(legal)

    @property
    def value_texts(self) -> dict[str, tuple[str, str]]:
        """Text of 0 and of 1 in tables, by the legal name of the column."""
        return dict(zip(self.legal_names, (column.digits_or_words for column in self.used), strict=True))

    @cached_property
    def naming(self) -> Naming:
        """Names inside formulas of items, and the raw ones; titles of rows with the same columns set have them too."""
        return Naming(self.legal_names, self.names, sorted({*self.set_masks.tolist()}), self.value_texts)

    def row_line(self, row: str, targets: Sequence[str]) -> tuple[str, str]:
        """Return a row as a line of the file, and what to replace in it; without a file by the names of its columns.

        row: 0, 1 or ? of each used column; targets: columns set in it

        A column of the file that --binarize makes others of has a word of the table with the wanted values, or ? if no
        word has them.
        """
        bits = dict(zip(self.names, row, strict=True))
        words = {c.name: c.word(int(bits[c.name])) if bits[c.name] in "01" else bits[c.name] for c in self.used}
        blanks, notes = [], []
        if self.layout is None:
            cells = ", ".join(f"{name} = {value}" for name, value in words.items())
            line = f"{cells}; set: {' and '.join(targets)}" if targets else cells
        else:
            for name, ruled in self.layout.ruled.items():
                word = ruled.find_word({c.name: bits[c.name] for c in ruled.columns if c.name in bits})
                rules = [
                    f"{quote_name(c.name)} = {bits[c.name]}" for c in ruled.columns if bits.get(c.name, "?") != "?"
                ]
                words[name] = "?" if word is None else word
                if word is not None:
                    notes.append(f"{word} is a value of {name} with {' and '.join(rules)}; any other such value does.")
                elif len(rules) == len(ruled.columns):
                    notes.append(f"No {name} of the table has {' and '.join(rules)}: replace its ? by one that has.")
                else:
                    blanks.append(f"{name}: its value" + "".join(f", with {rule}" for rule in rules))
            line = self.layout.line(words, targets)
        ruled_names = {c.name for ruled in (self.layout.ruled.values() if self.layout else ()) for c in ruled.columns}
        observed = [c for c in self.used if bits[c.name] == "?" and c.name not in ruled_names]
        blanks += [f"{c.name}: {c.word(0)} or {c.word(1)}" for c in observed]
        request = f"A line of the table; replace each ? by the value that you observe ({'; '.join(blanks)})."
        is_plain = not notes and all(blank.endswith(": 0 or 1") for blank in blanks)
        if targets and self.layout is not None and not self.layout.do:
            notes.append(f"It sets {' and '.join(targets)}: name that in a column, and give the column with --do.")
        elif is_plain:
            return line, ""
        if is_plain:
            plain = ", ".join(c.name for c in observed)
            request = f"A line of the table; replace each ? by the 0 or 1 that you observe ({plain})."
        return line, " ".join([request if blanks else "A line of the table.", *notes])

    def keep_rows(self, patterns: npt.NDArray[np.bool_]) -> Table:
        """Return the table with the rows of some patterns. patterns: for each pattern whether it is kept."""
        rows = patterns[self.pattern_of_row]
        rank = np.cumsum(patterns) - 1
        row_rank = np.cumsum(rows) - 1
        columns = tuple(replace(c, codes=c.codes[rows]) if c.is_used else c for c in self.columns)
        return replace(
            self,
            columns=columns,
            codes=self.codes[patterns],
            set_masks=self.set_masks[patterns],
            counts=self.counts[patterns],
            first_rows=row_rank[self.first_rows[patterns]],
            pattern_of_row=rank[self.pattern_of_row[rows]].astype(np.int32),
            lines=self.lines[rows],
        )

    def without_gaps(self) -> Table:
        """Return the table without rows that have a gap in a used column; a remark states their number."""
        complete = (self.codes != GAP).all(axis=1)
        if complete.all():
            return self
        if not complete.any():
            raise CalibrantError(f"{self.source}: every row has a gap; leave out columns with gaps (--drop)")
        remaining = self.keep_rows(complete)
        number = self.num_rows - remaining.num_rows
        remark = f"{number:,} of {plural(self.num_rows, 'rows')} left out: a gap in a column used"
        reading = None if self.reading is None else msgspec.structs.replace(self.reading, gaps="drop")
        return replace(remaining, remarks=(remark, *self.remarks), reading=reading)

    def to_dict(self) -> dict[str, Any]:
        """Return the table's description for JSON."""
        return {
            "rows": self.num_rows,
            "columns": [column.to_dict() for column in self.columns],
            "notes": list(self.notes),
            "quoted": {column.name: quote_name(column.name) for column in self.columns},
            "targets": self.targets,
            "bits": self.bits,
        }

    def __repr__(self) -> str:
        return (
            f"<Table: {plural(self.num_rows, 'rows')} of {plural(len(self.columns), 'columns')}, {len(self.used)} used>"
        )


def _is_on_target(note: str, target: str | None) -> bool:
    """Return whether a note relates the target to other columns."""
    kind, _, rest = note.partition(" ")
    if target is None or kind == "constant":
        return False
    subject, _, others = rest.partition(" by ") if kind == "determined" else rest.rpartition(" of ")
    return target in (subject, others) or (kind == "determined" and target in others.split(", "))


def _consequence(note: str, networks: bool, target: str | None, factors: Mapping[str, Fraction]) -> str:
    """Return what follows from a note on a column, with the options that change it."""
    kind, _, rest = note.partition(" ")
    if kind == "constant" and rest == target:
        return "the column to explain has one value, so nothing is learned of it"
    if kind == "constant":
        effect = "arcs from a constant gain score without information" if networks else "an SCM may use it as a parent"
        if (factor := factors.get(rest)) is not None and factor != 1:
            effect += f": {expected_text(float(factor))} times as many SCMs fit with it as without"
        return f"{effect} (--drop {_option(rest)})"
    if kind == "determined":
        name, _, others = rest.partition(" by ")
        if networks:
            return f"a function of {others}: directions near it rest on the score's prior"
        return f"in every row a function of {others} (--target {_option(name)}, or --drop {_option(name)})"
    name, _, original = rest.rpartition(" of ")
    if networks:
        return f"directions between them rest on the score's prior (--drop {_option(name)})"
    return f"every formula with {original} has a tie with {name} (--drop {_option(name)})"


def _option(name: str) -> str:
    """Return a name as it is written in a shell command."""
    return name if name.replace("_", "").isalnum() else quote(name)


def handle_gaps(table: Table, gaps: Gaps) -> Table:
    """Return the table without rows that have gaps if `gaps` is "drop", else unchanged."""
    if gaps not in get_args(Gaps):
        raise CalibrantError(f"gaps is {readable_repr(gaps)}; allowed: {', '.join(get_args(Gaps))}")
    return table.without_gaps() if gaps == "drop" else table


def column_names(heads: Iterable[Any]) -> list[str]:
    """Return names of columns as texts; one without a name is called by its position."""
    texts = ("" if head is None or head != head else str(head) for head in heads)
    return [text if text.strip() else f"column {k}" for k, text in enumerate(texts, 1)]


def patterns_of(columns: Sequence[Column], masks: U64) -> tuple[Codes, U64, I64, I64, npt.NDArray[np.int32]]:
    """Return codes, masks, counts and first rows of the different patterns, and the pattern of each row.

    masks: [rows] which used columns were set
    """
    num_rows = len(masks)
    _, ids = np.unique(masks, return_inverse=True)
    ids, number = ids.astype(np.int64), int(ids.max(initial=0)) + 1
    for column in columns:
        levels = column.num_levels + 1
        if number * levels >= 1 << 62:
            _, ids = np.unique(ids, return_inverse=True)
            number = int(ids.max()) + 1
        ids = ids * levels + (column.codes + 1)
        number *= levels
    _, first, inverse, counts = np.unique(ids, return_index=True, return_inverse=True, return_counts=True)
    order = np.argsort(first, kind="stable")
    rank = np.empty(len(order), np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    first = first[order]
    codes = np.full((len(first), len(columns)), GAP, np.int16)
    for k, column in enumerate(columns):
        codes[:, k] = column.codes[first]
    assert len(inverse) == num_rows
    return codes, masks[first], counts[order].astype(np.int64), first.astype(np.int64), rank[inverse]


# --- A table as an item, with legal names inside, and the user's own names in everything that is printed --------------
ITEM = "table"
MAX_PARENT_SETS = 5_000_000  # largest number of parent sets, over all variables: their search takes seconds
MAX_SHOWN_ROWS = 2_000  # largest number of rows of which a reason lists all; else it lists each pattern once


@dataclass(frozen=True)
class Naming:
    """Names of columns inside formulas (legal) and in the user's table (raw), in the same order.

    masks: the different sets of columns that are set in a row; values: legal name -> text of 0 and of 1
    """

    legal: Sequence[str]
    raw: Sequence[str]
    masks: Sequence[int]
    values: Mapping[str, tuple[str, str]]

    def graph(self, model: Scm, *, is_whole: bool) -> tuple[dict[str, str], list[tuple[str, str]]]:
        """Return column -> formula of a model, "" for a root, and its arcs, all under the user's names.

        is_whole: whether roots that no formula mentions are included
        """
        texts = {v: self.text(infix(formula)) for v, formula in model.mechanisms.items()}
        arcs = [(self.to_raw(parent), self.to_raw(child)) for parent, child in model.mentions]
        mentioned = {parent for parent, _ in arcs}
        formulas = {raw: texts.get(legal, "") for legal, raw in zip(self.legal, self.raw, strict=True)}
        return {v: text for v, text in formulas.items() if is_whole or text or v in mentioned}, arcs

    @cached_property
    def _changed(self) -> Mapping[str, str]:
        return {a: b for a, b in zip(self.legal, self.raw, strict=True) if a != b}

    @cached_property
    def _titles(self) -> Mapping[str, Sequence[str]]:
        """Return title of rows -> raw names of the columns set in them, without titles that equal a column's name."""
        sets = [natural(name for k, name in enumerate(self.legal) if mask >> k & 1) for mask in self.masks]
        titles = {_world_title(names): list(map(self.to_raw, names)) for names in sets if names}
        return {title: names for title, names in titles.items() if title not in self.legal}

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        return re.compile(r"\b(do_\w+|" + "|".join(map(re.escape, self._changed)) + r")\b")

    def to_legal(self, name: str) -> str:
        """Return the legal name of a column."""
        return self.legal[list(self.raw).index(name)]

    def to_raw(self, name: str) -> str:
        """Return the raw name of a column."""
        return self._changed.get(name, name)

    def text(self, text: str) -> str:
        """Return a text with raw names, quoted as in formulas."""
        return self._replace(text, quote_name)

    def markup(self, page: str) -> str:
        """Return HTML or SVG with raw names, escaped."""
        return self._replace(page, lambda name: str(escape(name)))

    def with_values(self, text: str, form: Callable[[str], Any] = str) -> str:
        """Return a text with legal names in which `X = 0` and `X = 1` have the user's words. form: spells a word."""
        worded = [name for name, texts in self.values.items() if texts != ("0", "1")]
        pattern = rf"\b({'|'.join(worded)}) = ([01])(?!\w|\.\d)"
        return re.sub(pattern, lambda m: f"{m[1]} = {form(self.values[m[1]][int(m[2])])}", text) if worded else text

    def value(self, value: Any) -> Any:
        """Return a value for JSON with raw names, which inside longer texts are quoted as in formulas."""
        if isinstance(value, str):
            return self._changed.get(value) or self.text(value)
        if isinstance(value, Mapping):
            return {self.value(key): self.value(entry) for key, entry in value.items()}
        if isinstance(value, list | tuple):
            return [self.value(entry) for entry in value]
        return value

    def _replace(self, text: str, form: Callable[[str], str]) -> str:
        if not self._changed:
            return text

        def replaced(match: re.Match[str]) -> str:
            word = match[1]
            if word in self._titles:
                return _world_title(list(map(form, self._titles[word])))
            return form(self._changed[word]) if word in self._changed else word

        return self._pattern.sub(replaced, text)


def _world_title(assigned: Sequence[str]) -> str:
    """Return the title of the rows in which these columns were set."""
    return f"do_{'_'.join(assigned)}" if assigned else "observed"


def task_of(table: Table, disclosure: Disclosure) -> Task:
    """Return the table as a task. The rows in which the same columns were set make a world; all keep their order."""
    names = natural(table.legal_names)
    order = [table.legal_names.index(name) for name in names]
    patterns = table.pattern_of_row if table.num_rows <= MAX_SHOWN_ROWS else np.arange(len(table.counts))
    lines = table.lines if table.num_rows <= MAX_SHOWN_ROWS else table.lines[table.first_rows]
    groups: dict[int, list[int]] = {}
    masks = table.set_masks[patterns].tolist()
    for r, mask in enumerate(masks):
        groups.setdefault(mask, []).append(r)
    digits = (table.codes[:, order] + ord("0")).astype(np.uint8)
    texts = [row.tobytes().decode() for row in digits]
    noun = "row" if table.layout is None else "line"
    worlds = []
    for mask, rows in groups.items():
        assigned = natural(name for k, name in enumerate(table.legal_names) if mask >> k & 1)
        columns = columns_from_rows([texts[patterns[r]] for r in rows], len(names))
        labels = tuple(f"{noun} {lines[r]}" for r in rows)
        worlds.append(World(_world_title(assigned), Intervention(assigned=assigned), names, labels, columns))
    kind = TaskKind.ROOTS if disclosure.roots is None else TaskKind.SCM
    return Task(kind, disclosure, Grammar(allow_constants=True), Panel(names, tuple(worlds)), False, 0)


def problem_of(table: Table, task: Task) -> Problem:
    """Return the table as an item without gold and held-out worlds."""
    sealed = Sealed(None, None, Panel(task.variables, ()), task.variables)
    return Problem(ITEM, task, sealed, columns=table.legal_names)


def require_size(table: Table, task: Task, max_parents: int) -> None:
    """Raise `CalibrantError` if the columns have more than MAX_PARENT_SETS parent sets."""
    numbers = [len(task.disclosure.admissible_parents(v)) for v in task.disclosure.endogenous]
    sets = sum(comb(number, k) for number in numbers for k in range(max_parents + 1))
    if sets > MAX_PARENT_SETS:
        raise CalibrantError(
            f"{table.source}: {len(table.used)} columns have {sets:,} sets of at most {max_parents} parents; at most"
            f" {MAX_PARENT_SETS:,} are gone through: leave out columns, or lower max_parents (--max-parents)"
        )
