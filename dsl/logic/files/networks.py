"""Files of networks and logic models, and the text that they are read from."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from calibrant.dsl.errors import PoolError, short_repr
from calibrant.dsl.logic.item import (
    MAX_NAME_CHARS,
    Clause,
    ClauseError,
    Edge,
    Model,
    clause,
    is_node_name,
    parse_clause,
)

# --- Text files of other tools: bounded, UTF-8 with or without BOM, lines that end in CR, LF or CRLF ------------------
MAX_FILE_BYTES = 1 << 26  # the largest published data set has 26 kB; lists of networks reach megabytes
_LINE_END = re.compile(r"\r\n|\r|\n")


def read_text(path: Path) -> str:
    """Return the text of a file; `PoolError` if it cannot be read, is too large or is not UTF-8."""
    try:
        with path.open("rb") as file:
            content = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise PoolError(f"cannot be read: {error.strerror or error}", file=path.name) from None
    if len(content) > MAX_FILE_BYTES:
        raise PoolError(f"larger than {MAX_FILE_BYTES} bytes", file=path.name)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise PoolError(f"byte {error.start} is not UTF-8; save the file as UTF-8", file=path.name) from None


def split_lines(text: str) -> list[str]:
    """Return the lines of a text; only CR, LF and CRLF end a line."""
    return _LINE_END.split(text)


def table_rows(text: str, file: str) -> Iterator[tuple[int, list[str]]]:
    """Yield line number and trimmed fields of each line of a CSV text that is not blank; no field spans lines.

    Empty fields behind those of the header, and lines of empty fields, are left out: spreadsheets write both.
    """
    width = 0
    for number, line in enumerate(split_lines(text), 1):
        if not line.strip():
            continue
        try:
            fields = next(csv.reader([line], strict=True))
        except (csv.Error, StopIteration) as error:
            raise PoolError(
                f"not a line of comma-separated fields: {error}", file=file, instance=f"line {number}"
            ) from None
        fields = [field.strip() for field in fields]
        if not any(fields):
            continue
        if not width:
            width = len(fields)
            while not fields[width - 1]:
                width -= 1
            if width == 1 and (";" in fields[0] or "\t" in fields[0]):
                separator = "semicolons" if ";" in fields[0] else "tabs"
                problem = f"fields are separated by {separator}; save the file with commas, and with decimal points"
                raise PoolError(problem, file=file, instance=f"line {number}")
        yield number, fields[:width] if not any(fields[width:]) else fields


def check_name(name: str, *, file: str, where: str) -> str:
    """Return the name of a node; `PoolError` if some format could not write it."""
    if not is_node_name(name):
        allowed = (
            f"1 to {MAX_NAME_CHARS} printable characters without blanks and without , : ; ! + & | ( ) < > = and quotes,"
            " the first not #"
        )
        raise PoolError(f"{short_repr(name)} is no name of a node; allowed: {allowed}", file=file, instance=where)
    return name


def find_repeated(names: list[str]) -> str | None:
    """Return the first name that occurs a second time, None if there is none."""
    seen_names: set[str] = set()
    for name in names:
        if name in seen_names:
            return name
        seen_names.add(name)
    return None


# --- Lists of networks as CSV: a column a clause with 0 or 1, and `networks` (weight), `mse`, `size` beside them ------
_WEIGHT, _MSE, _SIZE = "networks", "mse", "size"
MAX_WEIGHT = 10**18


@dataclass(frozen=True, slots=True)
class ListedModel:
    """A model of another tool's list.

    weight: number of networks that the line stands for; mse, size: as stated; line: number of the line in its file
    """

    model: Model
    weight: int = 1
    mse: float | None = None
    size: int | None = None
    line: int = 0


def read_networks(path: Path) -> list[ListedModel]:
    """Return the models of a networks.csv file in its order; `PoolError` names line and column of what is refused.

    A clause may have several columns, as caspo writes after merging edges of both signs: a model has it if any has 1.
    """
    return parse_networks(read_text(path), path.name)


def parse_networks(text: str, file: str = "") -> list[ListedModel]:
    """Return the models of a CSV text, see `read_networks`."""
    lines = list(table_rows(text, file))
    if not lines:
        raise PoolError("empty; a list of networks begins with a header line of clauses", file=file)
    header = lines[0][1]
    clauses = {position: _clause(name, file) for position, name in enumerate(header) if "<-" in name}
    plain = {name.lower(): position for position, name in enumerate(header) if "<-" not in name}
    repeated = find_repeated([name.lower() for name in header if "<-" not in name])
    if repeated is not None:
        raise PoolError("occurs twice", file=file, field=f"column {short_repr(repeated)}")
    if not clauses:
        raise PoolError("no column of a clause; write a clause as v<-a+!b", file=file, field="header")
    models = []
    for number, fields in lines[1:]:
        where = f"line {number}"
        if len(fields) != len(header):
            raise PoolError(f"{len(fields)} fields; the header has {len(header)}", file=file, instance=where)
        model = frozenset(
            clause for position, clause in clauses.items() if _flag(fields[position], clause, file=file, where=where)
        )
        models.append(_with_numbers(model, fields, plain, file, number))
    return models


def _clause(text: str, file: str) -> Clause:
    try:
        return parse_clause(text)
    except ClauseError as error:
        raise PoolError(str(error), file=file, field="header") from None


def _flag(text: str, clause: Clause, *, file: str, where: str) -> bool:
    if text not in ("0", "1", "0.0", "1.0"):
        problem = f"{short_repr(text)}; a clause has 0 or 1"
        raise PoolError(problem, file=file, instance=where, field=f"column {short_repr(str(clause))}")
    return text.startswith("1")


def _with_numbers(model: Model, fields: Sequence[str], plain: dict[str, int], file: str, line: int) -> ListedModel:
    numbers: dict[str, float | None] = {}
    for name in (_WEIGHT, _MSE, _SIZE):
        text = fields[plain[name]] if name in plain else ""
        number = _finite(text)
        if text and (number is None or number < 0):
            problem = f"{short_repr(text)}; a number of 0 or more"
            raise PoolError(problem, file=file, instance=f"line {line}", field=f"column '{name}'")
        numbers[name] = number
    weight, size = numbers[_WEIGHT], numbers[_SIZE]
    for name, number in ((_WEIGHT, weight), (_SIZE, size)):
        if number is not None and (number != int(number) or number > MAX_WEIGHT):
            problem = f"{number:g}; an integer of at most {MAX_WEIGHT}"
            raise PoolError(problem, file=file, instance=f"line {line}", field=f"column '{name}'")
    whole = 1 if weight is None else int(weight)
    return ListedModel(model, whole, numbers[_MSE], None if size is None else int(size), line)


def _finite(text: str) -> float | None:
    """Return a finite number, None for anything else."""
    # `float` accepts underscores, other scripts' digits and texts of any length
    try:
        number = float(text) if len(text) <= 100 and text.isascii() and "_" not in text else math.nan
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def networks_pieces(models: Iterable[Model], clauses: Sequence[Clause]) -> Iterator[str]:
    """Yield the CSV text of models, line by line.

    clauses: the columns; they contain all clauses of the models
    """
    yield ",".join(map(str, clauses)) + "\n"
    for model in models:
        yield ",".join("1" if clause in model else "0" for clause in clauses) + "\n"


# --- Models as bnet: `v, (a & !b) | c`; a stimulus is `s, s`, an empty formula `v, 0` ---------------------------------
_HEADER = ("targets", "factors")


def bnet_text(model: Model, nodes: Iterable[str], stimuli: Iterable[str]) -> str:
    """Return a model as bnet.

    nodes: every node of the class that is no stimulus
    """
    lines = ["targets, factors", *(f"{name}, {name}" for name in stimuli)]
    for node in sorted({*nodes, *(member.target for member in model)}):
        terms = []
        for member in sorted(member for member in model if member.target == node):
            literals = [("" if sign == 1 else "!") + source for source, sign in member.literals]
            terms.append(f"({' & '.join(literals)})" if len(literals) > 1 else literals[0])
        lines.append(f"{node}, {' | '.join(terms) or '0'}")
    return "\n".join(lines) + "\n"


def read_bnet(path: Path) -> Model:
    """Return the model of a bnet file; `PoolError` names the line of what is no disjunction of conjunctions."""
    return parse_bnet(read_text(path), path.name)


def parse_bnet(text: str, file: str = "") -> Model:
    """Return the model of a bnet text, see `read_bnet`."""
    clauses = set()
    targets: set[str] = set()
    for number, line in enumerate(split_lines(text), 1):
        where = f"line {number}"
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        target, comma, factor = (part.strip() for part in line.partition(","))
        if not targets and (target, factor) == _HEADER:
            continue
        if not comma or not factor:
            raise PoolError("expected: v, (a & !b) | c", file=file, instance=where)
        check_name(target, file=file, where=where)
        if target in targets:
            raise PoolError(f"{short_repr(target)} has a second line", file=file, instance=where)
        targets.add(target)
        if factor in (target, "0"):
            continue
        for term in factor.split("|"):
            try:
                clauses.add(clause(target, _literals(term.strip(), file, where)))
            except ClauseError as error:
                raise PoolError(str(error), file=file, instance=where) from None
    if not targets:
        raise PoolError("no line of a node; expected: v, (a & !b) | c", file=file)
    return frozenset(clauses)


def _literals(term: str, file: str, where: str) -> list[tuple[str, int]]:
    body = term[1:-1] if term.startswith("(") and term.endswith(")") else term
    literals = []
    for part in body.split("&"):
        text = part.strip()
        sign, name = (-1, text[1:].strip()) if text.startswith("!") else (1, text)
        if name in ("0", "1") or "(" in name or ")" in name:
            raise PoolError(
                f"{short_repr(text)}; a formula is a disjunction of conjunctions of literals", file=file, instance=where
            )
        literals.append((check_name(name, file=file, where=where), sign))
    return literals


# --- Prior networks as SIF: `source sign target [target...]`, separated by any blanks; # begins a comment line --------
MAX_EDGES = 50_000  # `family` answers in 3 s; no class of more than 500 nodes between stimuli and readouts is counted
_GATE = re.compile(r"and[0-9]+", re.IGNORECASE | re.ASCII)
_SIGNS = {"1": 1, "-1": -1, "+1": 1}


def read_sif(path: Path) -> tuple[Edge, ...]:
    """Return the edges of a SIF file in its order, equal ones once; `PoolError` names the line of what is refused."""
    return parse_sif(read_text(path), path.name)


def parse_sif(text: str, file: str = "") -> tuple[Edge, ...]:
    """Return the edges of a SIF text, see `read_sif`."""
    edges: dict[Edge, None] = {}
    checked: set[str] = set()
    for number, line in enumerate(split_lines(text), 1):
        fields = line.split()
        if not fields or fields[0].startswith("#"):
            continue
        where = f"line {number}"
        if len(fields) < 3:
            problem = f"{len(fields)} fields; expected, with blanks between: source sign target"
            raise PoolError(problem, file=file, instance=where)
        source, sign, targets = fields[0], fields[1], fields[2:]
        if sign not in _SIGNS:
            raise PoolError(f"sign {short_repr(sign)}; allowed: 1 or -1", file=file, instance=where)
        for target in targets:
            for name in (source, target):
                if name in checked:
                    continue
                check_name(name, file=file, where=where)
                if _GATE.fullmatch(name):
                    problem = f"{short_repr(name)} is a gate of a model; a prior network has edges between nodes only"
                    raise PoolError(problem, file=file, instance=where)
                checked.add(name)
            edges[Edge(source, _SIGNS[sign], target)] = None
        if len(edges) > MAX_EDGES:
            problem = f"over {MAX_EDGES:,} edges; keep those on paths from stimuli to readouts"
            raise PoolError(problem, file=file, instance=where)
    if not edges:
        raise PoolError("no edge; a line is: source sign target", file=file)
    return tuple(edges)
