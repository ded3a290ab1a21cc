"""Signed edges as tables: SIF, and tables with a header as regulatory databases publish them."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Final, Literal, NamedTuple, TypeAlias

from calibrant.dsl.errors import readable_repr
from calibrant.dsl.networks.formulas import MAX_NAME_CHARS, NetworkError
from calibrant.dsl.parse_limits import split_lines

# no character that separates fields or literals in one of the formats; # begins a comment in SIF and bnet
_NAME = re.compile(rf"[^\s,:;!+&|()<>\"'=#][^\s,:;!+&|()<>\"'=]{{0,{MAX_NAME_CHARS - 1}}}")
_GATE = re.compile(r"and[0-9]+", re.IGNORECASE | re.ASCII)
MAX_EDGES = 50_000  # `family` answers in 3 s; no class of more than 500 nodes between stimuli and readouts is counted

StatedSign: TypeAlias = Literal["both"]
"""Value of `--sign`, for a table without a column of signs."""

_SOURCES: Final = ("source", "from", "regulator", "tf", "gene1", "entitya", "sourcegenesymbol")
_TARGETS: Final = ("target", "to", "gene", "gene2", "entityb", "targetgenesymbol")
_SIGN_HEADS: Final = ("sign", "effect", "interaction", "interactiontype", "type", "regulation", "mode", "mor")
_SIGN_HEADS_TOO: Final = ("relation", "weight")
_STIMULATES: Final = ("isstimulation", "consensusstimulation")
_INHIBITS: Final = ("isinhibition", "consensusinhibition")
_ACTIVATES: Final = frozenset(
    [
        "1",
        "+1",
        "+",
        "->",
        "activates",
        "activate",
        "activation",
        "activating",
        "activator",
        "positive",
        "pos",
        "stimulates",
        "stimulation",
        "induces",
        "induction",
        "up",
        "upregulates",
    ]
)
_REPRESSES: Final = frozenset(
    [
        "-1",
        "-",
        "-|",
        "--|",
        "inhibits",
        "inhibit",
        "inhibition",
        "inhibiting",
        "inhibitory",
        "inhibitor",
        "negative",
        "neg",
        "represses",
        "repression",
        "repressing",
        "down",
        "downregulates",
    ]
)
_UNSIGNED: Final = frozenset(("?", "-?", "+/-", "-/+", "+-", "±", "dual", "both", "unknown", "unspecified"))
_WORDED_STARTS: Final = ("up-regulates", "down-regulates")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?", re.ASCII)


def is_node_name(name: object) -> bool:
    """Return whether a value can name a node in every format that is read or written."""
    return isinstance(name, str) and name.isprintable() and _NAME.fullmatch(name) is not None


class TableEdge(NamedTuple):
    """A signed edge.

    sign: 1 for activation, -1 for inhibition
    """

    source: str
    sign: int
    target: str


@dataclass(frozen=True)
class EdgeTable:
    """Edges in the order of the file, without duplicates.

    open_pairs: sorted pairs (source, target) of unknown sign, which were read as two edges
    """

    edges: tuple[TableEdge, ...]
    open_pairs: tuple[tuple[str, str], ...] = ()


class _Header(NamedTuple):
    """Positions of the columns of a table.

    signs: a column of words, or two of flags for stimulation and inhibition; none if `--sign` states it
    width: number of columns
    """

    source: int
    target: int
    signs: tuple[int, ...]
    width: int


def parse_edges(text: str, file: str = "", stated_sign: StatedSign | None = None) -> EdgeTable:
    """Return the edges of a SIF text or of a table with a header; `NetworkError` names the line of a fault.

    stated_sign: `both` makes two edges of each line of a table without a column of signs; other tables are refused
    """
    try:
        return _parse(text, stated_sign)
    except NetworkError as error:
        raise error.with_location(file=file) from None


def is_edge_table(text: str) -> bool:
    """Return whether the first line is one of a SIF or of an edge table, and no line is one of an aeon file."""
    lines = _content_lines(text)
    if not lines or any(line.lstrip().startswith("$") or _OPEN_REGULATION.search(line) for _, line in lines):
        return False
    line_number, first = lines[0]
    if has_head(first, line_number):
        return True
    fields = first.split()
    if "," in first or ";" in first:
        fields = [field.strip() for field in re.split("[,;]", first)]
        if len(fields) != 3:
            return False
    try:
        return len(fields) > 2 and bool(read_sign(fields[1], line_number))
    except NetworkError:
        return False


def has_head(line: str, line_number: int = 1) -> bool:
    """Return whether a line is the head of an edge table: it names a column of sources and one of targets."""
    heads = {re.sub(r"[\s_-]", "", field).lower() for field in _split(line, _separator(line), line_number)}
    return not heads.isdisjoint(_SOURCES) and not heads.isdisjoint(_TARGETS)


def headless_columns(text: str) -> Sequence[str]:
    """Return the names of the columns of a table of edges without a head, two or more; () for other texts."""
    lines = _content_lines(text)
    separator = _separator(lines[0][1]) if lines else ""
    try:
        rows = [_split(line, separator, line_number) for line_number, line in lines]
        num_columns = len(rows[0]) if rows else 0
        for row in rows:
            if len(row) != num_columns or not all(map(is_node_name, row[:2])):
                return ()
            if num_columns > 2:
                read_sign(row[2], 0)
    except NetworkError:
        return ()
    further = [f"column_{k}" for k in range(4, num_columns + 1)]
    return [*("source", "target", "sign")[:num_columns], *further] if num_columns > 1 else ()


def add_head_advice(error: NetworkError, text: str) -> NetworkError:
    """Return the error, with the first line to add if the text is a table of edges without a head."""
    columns = headless_columns(text)
    if not columns and not _has_longer_heads(text):
        return error
    columns = columns or ("source", "target", "sign")
    signs = "" if "sign" in columns else ", with --sign both"
    advice = f"a table of edges, which `family` reads{signs}, has a first line of names: {', '.join(columns)}"
    return error.with_problem(f"{error.problem}; {advice}")


def _has_longer_heads(text: str) -> bool:
    """Return whether the heads of a text begin with those of an edge table, as `Source Node` and `Target Node` do."""
    _, first = next(iter(_content_lines(text)), (1, ""))
    heads = [re.sub(r"[\s_-]", "", field).lower() for field in re.split("[\t,;]", first)]
    return all(any(head.startswith(name) for head in heads) for name in ("source", "target"))


_OPEN_REGULATION = re.compile(r"\s-[>|?]\?\s")  # in aeon: a regulation that may be inessential


def _content_lines(text: str) -> list[tuple[int, str]]:
    """Return number and text of the lines that are neither blank nor comments."""
    lines = enumerate(split_lines(text.removeprefix("\ufeff")), 1)
    return [(line_number, line) for line_number, line in lines if line.strip() and not line.lstrip().startswith("#")]


def _parse(text: str, stated_sign: StatedSign | None) -> EdgeTable:
    lines = _content_lines(text)
    if not lines:
        raise NetworkError("no edge; a line is: source sign target", reason="empty")
    separator = _separator(lines[0][1])
    head = _read_header(_split(lines[0][1], separator, lines[0][0]), lines[0][0], stated_sign)
    if stated_sign is not None and (head is None or head.signs):
        raise NetworkError(SIGNS_ARE_STATED, reason="header")
    if head is not None:
        return _collect(_table_rows(lines[1:], head, separator))
    try:
        return _collect(_sif_rows(lines))
    except NetworkError as error:
        raise add_head_advice(error, text) from None


def _collect(rows: Iterable[tuple[int, str, tuple[int, ...], str]]) -> EdgeTable:
    edges: dict[TableEdge, None] = {}
    pairs: set[tuple[str, str]] = set()
    checked: set[str] = set()
    for line, source, signs, target in rows:
        for name in (source, target):
            if name not in checked:
                _check_name(name, line)
                checked.add(name)
        edges.update((TableEdge(source, sign, target), None) for sign in signs)
        if len(signs) > 1:
            pairs.add((source, target))
        if len(edges) > MAX_EDGES:
            problem = f"over {MAX_EDGES:,} edges; keep those on paths from stimuli to readouts"
            raise NetworkError(problem, reason="too-large", line=line)
    if not edges:
        raise NetworkError("no edge below the head", reason="empty")
    return EdgeTable(tuple(edges), tuple(sorted(pairs)))


def _check_name(name: str, line: int) -> None:
    if not is_node_name(name):
        allowed = (
            f"1 to {MAX_NAME_CHARS} printable characters without blanks and without , : ; ! + & | ( ) < > = and quotes"
        )
        problem = f"{readable_repr(name)} is no name of a node; allowed: {allowed}, the first not #"
        raise NetworkError(problem, reason="name", line=line)
    if _GATE.fullmatch(name):
        problem = f"{readable_repr(name)} is a gate of a model; a prior network has edges between nodes only"
        raise NetworkError(problem, reason="gate", line=line, name=name)


# --- Signs ------------------------------------------------------------------------------------------------------------


def read_sign(text: str, line: int) -> tuple[int, ...]:
    """Return the signs of a word or number: (1,), (-1,), or (-1, 1) for an unknown sign; `NetworkError` for others."""
    word = text.strip().lower()
    if word in _ACTIVATES or word.startswith(_WORDED_STARTS[0]):
        return (1,)
    if word in _REPRESSES or word.startswith(_WORDED_STARTS[1]):
        return (-1,)
    if word in _UNSIGNED:
        return (-1, 1)
    number = float(word) if len(word) <= 100 and _NUMBER.fullmatch(word) else 0.0
    if number and isfinite(number):
        return (1 if number > 0 else -1,)
    allowed = "1 + -> activates positive up ..., -1 - -| inhibits negative down ..., ? dual unknown, numbers but 0"
    raise NetworkError(f"sign {readable_repr(text)}; allowed: {allowed}", reason="sign", line=line, name=text.strip())


# --- SIF --------------------------------------------------------------------------------------------------------------


def _sif_rows(lines: Sequence[tuple[int, str]]) -> Iterator[tuple[int, str, tuple[int, ...], str]]:
    """Yield line, source, signs and target of each edge."""
    for line_number, line in lines:
        fields = _sif_fields(line)
        if len(fields) < 3:
            problem = f"{len(fields)} fields; expected, with blanks between: source sign target"
            raise NetworkError(problem, reason="fields", line=line_number)
        source, sign, *targets = fields
        for target in targets:
            yield line_number, source, read_sign(sign, line_number), target


def _sif_fields(line: str) -> list[str]:
    """Return the fields of a line of SIF: three at commas or semicolons, else those at blanks and tabs."""
    for mark in ",;":
        fields = [field.strip() for field in line.split(mark)]
        if len(fields) == 3 and len(fields[0].split()) == 1:
            return fields
    source, *rest = line.split("\t")
    if len(rest) > 1 and rest[0].strip().lower().startswith(_WORDED_STARTS):  # `up-regulates activity` is one field
        return [source.strip(), rest[0], *" ".join(rest[1:]).split()]
    return line.split()


# --- Tables with a header ---------------------------------------------------------------------------------------------


def _separator(line: str) -> str:
    """Return the separator of fields in a header: tab, comma or semicolon, "" for blanks."""
    return next((mark for mark in "\t,;" if mark in line), "")


def _split(line: str, separator: str, line_number: int) -> list[str]:
    if not separator:
        return line.split()
    try:
        return [field.strip() for field in next(csv.reader([line], delimiter=separator))]
    except (csv.Error, StopIteration) as error:
        raise NetworkError(f"fields cannot be separated: {error}", reason="fields", line=line_number) from None


SIGNS_ARE_STATED = "its edges have signs; leave out --sign both, which is for tables without a column of them"


def _read_header(fields: Sequence[str], line: int, stated_sign: StatedSign | None) -> _Header | None:
    """Return the columns of a table; None if the first line is no header."""
    heads = [re.sub(r"[\s_-]", "", field).lower() for field in fields]
    source, target = (_find_column(heads, names) for names in (_SOURCES, _TARGETS))
    if source is None or target is None:
        return None
    sign = _find_column(heads, (*_SIGN_HEADS, *_SIGN_HEADS_TOO))
    stimulates, inhibits = _find_column(heads, _STIMULATES), _find_column(heads, _INHIBITS)
    if sign is not None:
        return _Header(source, target, (sign,), len(fields))
    if stimulates is not None and inhibits is not None:
        return _Header(source, target, (stimulates, inhibits), len(fields))
    if stated_sign is None:
        problem = (
            "no column of signs (sign, effect, interaction, mor, weight, ...); --sign both makes two edges of each"
        )
        raise NetworkError(problem, reason="header", line=line, name="sign")
    return _Header(source, target, (), len(fields))


def _find_column(heads: Sequence[str], names: Iterable[str]) -> int | None:
    """Return the column of the first of `names` that is a heading, or None."""
    return next((heads.index(name) for name in names if name in heads), None)


def _table_rows(
    lines: Sequence[tuple[int, str]], head: _Header, separator: str
) -> Iterator[tuple[int, str, tuple[int, ...], str]]:
    for line_number, line in lines:
        fields = _split(line, separator, line_number)
        if len(fields) < 1 + max(head.source, head.target, *head.signs) or any(fields[head.width :]):
            problem = f"{len(fields)} fields; the head has {head.width}"
            raise NetworkError(problem, reason="fields", line=line_number)
        cells = [fields[position] for position in head.signs]
        signs = (
            _signs_of_flags(cells, line_number)
            if len(cells) == 2
            else read_sign(cells[0], line_number)
            if cells
            else (-1, 1)
        )
        yield line_number, fields[head.source], signs, fields[head.target]


def _signs_of_flags(cells: Sequence[str], line: int) -> tuple[int, ...]:
    """Return the signs of two flags, stimulation and inhibition; equal flags leave the sign open."""
    flags = []
    for cell in cells:
        if cell.lower() not in ("0", "1", "0.0", "1.0", "true", "false"):
            problem = f"{readable_repr(cell)}; is_stimulation and is_inhibition have 0 or 1"
            raise NetworkError(problem, reason="sign", line=line, name=cell)
        flags.append(cell.lower() in ("1", "1.0", "true"))
    if flags[0] == flags[1]:
        return (-1, 1)
    return (1,) if flags[0] else (-1,)
