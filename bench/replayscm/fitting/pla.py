"""PLA files of Espresso: truth tables with several outputs and free rows, read as a table of all rows.

A row in which an output is free is a row in which it was set: it tells nothing of the output.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from calibrant.bench.replayscm.fitting.columns import RawColumn, make_column
from calibrant.bench.replayscm.fitting.table import Table, patterns_of
from calibrant.dsl.errors import CalibrantError, readable_repr
from calibrant.dsl.parse_limits import read_text

MAX_INPUTS = 12  # 4,096 rows
MAX_OUTPUTS = 48  # with the inputs 60 columns
MAX_TERMS = 20_000  # 1 s
TYPES = ("f", "fd", "fr", "fdr")
WIDTHS, LABELS, IGNORED, ENDS = (".i", ".o"), (".ilb", ".ob"), (".p",), (".e", ".end")
_INPUTS = {"0": "0", "1": "1", "-": "-", "2": "-", "~": "-"}
_OUTPUTS = {"0": "0", "3": "0", "1": "1", "4": "1", "-": "-", "2": "-", "~": "~"}
BoolArray: TypeAlias = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class _Term:
    line: int
    inputs: str
    outputs: str


@dataclass(frozen=True)
class _Pla:
    source: str
    kind: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    terms: tuple[_Term, ...]


def is_pla(path: Path) -> bool:
    """Return whether a file is a PLA file, by its suffix."""
    return path.suffix.lower() == ".pla"


def read_pla(path: Path) -> Table:
    """Return the rows of a PLA file as a table, its inputs and then its outputs; `CalibrantError` names the line."""
    pla = _parse(path.name, read_text(path))
    num_inputs, num_rows = len(pla.inputs), 1 << len(pla.inputs)
    rows = np.arange(num_rows)
    bits = [(rows >> k & 1).astype(np.int8) for k in range(num_inputs)]
    masks = np.zeros(num_rows, np.uint64)
    values = []
    marked = _marked_rows(pla, rows)
    for position, name in enumerate(pla.outputs):
        is_one, is_free = _output_rows(pla, {digit: marked[digit][position] for digit in marked}, name)
        values.append(is_one.astype(np.int8))
        masks |= is_free.astype(np.uint64) << np.uint64(num_inputs + position)
    columns = [
        make_column(RawColumn(name, ("0", "1"), cells.astype(np.int32)), frozenset(), None, pla.source)
        for name, cells in zip((*pla.inputs, *pla.outputs), (*bits, *values), strict=True)
    ]
    codes, set_masks, counts, first, pattern_of_row = patterns_of(columns, masks)
    table = Table(pla.source, "rows of the truth table", tuple(columns), (), codes, set_masks, counts, first,
                  pattern_of_row, rows + 1, has_targets=True)  # fmt: skip
    return replace(table, outputs=pla.outputs)


def _marked_rows(pla: _Pla, rows: npt.NDArray[np.int64]) -> dict[str, BoolArray]:
    """Return digit -> which rows some term marks with it; [outputs, rows]."""
    marked = {digit: np.zeros((len(pla.outputs), len(rows)), np.bool_) for digit in "01-"}
    for term in pla.terms:
        covered = _covered(term.inputs, rows)
        digits = np.array(list(term.outputs))
        for digit, marks in marked.items():
            marks[digits == digit] |= covered
    return marked


def _output_rows(pla: _Pla, marked: dict[str, BoolArray], name: str) -> tuple[BoolArray, BoolArray]:
    """Return in which rows an output is 1, and in which it is free. marked: of this output; [rows]."""
    zero, is_one, free = marked["0"], marked["1"], marked["-"]
    if "r" in pla.kind and (clash := np.flatnonzero(zero & is_one)).size:
        pattern = "".join(str(int(clash[0]) >> k & 1) for k in range(len(pla.inputs)))
        reason = f"row {pattern} is 1 and 0; correct one of the terms"
        raise CalibrantError(f"{pla.source}, column {readable_repr(name)}: {reason}")
    if "d" not in pla.kind:
        free = np.zeros(len(is_one), np.bool_)
    return is_one & ~free, free | ~(is_one | zero) if "r" in pla.kind else free


def _covered(inputs: str, rows: npt.NDArray[np.int64]) -> BoolArray:
    care = sum(1 << k for k, digit in enumerate(inputs) if digit != "-")
    value = sum(1 << k for k, digit in enumerate(inputs) if digit == "1")
    return np.asarray((rows & care) == value)


# --- Syntax -----------------------------------------------------------------------------------------------------------


def _parse(source: str, text: str) -> _Pla:
    statements, lines = _statements(source, text)
    widths = {word: _width(source, word, statements) for word in WIDTHS}
    num_inputs, num_outputs = widths[".i"], widths[".o"]
    if num_inputs > MAX_INPUTS or num_outputs > MAX_OUTPUTS:
        sizes = f"{num_inputs} inputs and {num_outputs} outputs"
        raise CalibrantError(f"{source} has {sizes}; at most {MAX_INPUTS} and {MAX_OUTPUTS} are read")
    kind = statements.get(".type", (0, ["fd"]))
    if len(kind[1]) != 1 or kind[1][0] not in TYPES:
        raise CalibrantError(f"{source}, line {kind[0]}: .type is one of {', '.join(TYPES)}")
    labels = []
    for word, number, letter in ((".ilb", num_inputs, "x"), (".ob", num_outputs, "y")):
        line, names = statements.get(word, (0, [f"{letter}{k + 1}" for k in range(number)]))
        if len(names) != number:
            raise CalibrantError(f"{source}, line {line}: {word} has {len(names)} names, {number} are needed")
        labels.append(tuple(names))
    names = [*labels[0], *labels[1]]
    repeated = next((name for name in names if names.count(name) > 1), None)
    if repeated is not None:
        raise CalibrantError(f"{source} has two columns {readable_repr(repeated)}; rename one of them")
    terms = tuple(_term(source, line, digits, num_inputs, num_outputs) for line, digits in lines)
    return _Pla(source, kind[1][0], labels[0], labels[1], terms)


def _statements(source: str, text: str) -> tuple[dict[str, tuple[int, list[str]]], list[tuple[int, str]]]:
    """Return the statements, word -> line and arguments, and the terms, each with its line."""
    statements: dict[str, tuple[int, list[str]]] = {}
    terms: list[tuple[int, str]] = []
    for line, content in _lines(text):
        word, *arguments = content.split()
        if word in ENDS:
            break
        if not word.startswith("."):
            terms.append((line, "".join(content.replace("|", " ").split())))
            if len(terms) > MAX_TERMS:
                raise CalibrantError(f"{source} has more terms than are read, {MAX_TERMS:,}")
            continue
        allowed = (*WIDTHS, *LABELS, *IGNORED, ".type")
        if word not in allowed:
            names = ", ".join(allowed)
            raise CalibrantError(f"{source}, line {line}: {readable_repr(word)} is not read; allowed: {names}")
        if word in statements:
            raise CalibrantError(f"{source}, line {line}: a second {word}; line {statements[word][0]} has the first")
        statements[word] = (line, arguments)
    return statements, terms


def _lines(text: str) -> Iterator[tuple[int, str]]:
    for line, content in enumerate(text.splitlines(), 1):
        stated = content.partition("#")[0].strip()
        if stated:
            yield line, stated


def _width(source: str, word: str, statements: Mapping[str, tuple[int, Sequence[str]]]) -> int:
    if word not in statements:
        raise CalibrantError(f"{source}: {word} is missing; a PLA file has .i, .o and terms")
    line, arguments = statements[word]
    if len(arguments) != 1 or not (arguments[0].isascii() and arguments[0].isdigit()) or len(arguments[0]) > 6:
        raise CalibrantError(f"{source}, line {line}: {word} takes one whole number")
    if int(arguments[0]) < 1:
        raise CalibrantError(f"{source}, line {line}: {word} is {arguments[0]}; 1 or more are read")
    return int(arguments[0])


def _term(source: str, line: int, digits: str, num_inputs: int, num_outputs: int) -> _Term:
    if len(digits) != num_inputs + num_outputs:
        expected = f"{num_inputs} inputs and {num_outputs} outputs"
        raise CalibrantError(f"{source}, line {line}: {len(digits)} digits; {expected} are needed")
    parts = ((digits[:num_inputs], _INPUTS, "an input"), (digits[num_inputs:], _OUTPUTS, "an output"))
    for part, allowed, name in parts:
        wrong = next((digit for digit in part if digit not in allowed), None)
        if wrong is not None:
            values = " ".join(allowed)
            raise CalibrantError(f"{source}, line {line}: {readable_repr(wrong)} is no value of {name}: {values}")
    inputs = "".join(map(_INPUTS.__getitem__, digits[:num_inputs]))
    return _Term(line, inputs, "".join(map(_OUTPUTS.__getitem__, digits[num_inputs:])))
