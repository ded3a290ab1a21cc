"""Files of networks and logic models: lists of models as CSV, bnet, and prior networks as SIF."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from calibrant.dsl.errors import PoolError, RefusedError, readable_repr
from calibrant.dsl.logic import item
from calibrant.dsl.networks.edge_tables import parse_edges
from calibrant.dsl.networks.formulas import MAX_NAME_CHARS
from calibrant.dsl.parse_limits import read_text, split_lines

# --- Lines of tables, and names of nodes ------------------------------------------------------------------------------


def table_rows(text: str, file: str) -> Iterator[tuple[int, list[str]]]:
    """Yield line number and trimmed fields of each non-blank line of a CSV text; no field spans lines.

    Empty fields beyond the header, and lines of empty fields, which spreadsheets write, are left out.
    """
    width = 0
    for line_number, line in enumerate(split_lines(text), 1):
        if not line.strip():
            continue
        try:
            fields = next(csv.reader([line], strict=True))
        except (csv.Error, StopIteration) as error:
            problem = f"not a line of comma-separated fields: {error}"
            raise RefusedError(problem, reason="fields", line=line_number, file=file) from None
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
                raise RefusedError(problem, reason="header", line=line_number, file=file)
        yield line_number, fields[:width] if not any(fields[width:]) else fields


def check_name(name: str, *, file: str, where: str) -> str:
    """Return a node's name unchanged; `PoolError` if one of the formats cannot express it."""
    if not item.is_node_name(name):
        raise PoolError(name_problem(name), file=file, instance=where)
    return name


def name_problem(name: str) -> str:
    """Return why a text is no valid name of a node, and what is allowed."""
    allowed = (
        f"1 to {MAX_NAME_CHARS} printable characters without blanks and without , : ; ! + & | ( ) < > = and quotes,"
        " the first not #"
    )
    return f"{readable_repr(name)} is no name of a node; allowed: {allowed}"


def find_repeated(names: list[str]) -> str | None:
    """Return the first name that occurs a second time, None if there is none."""
    seen_names: set[str] = set()
    for name in names:
        if name in seen_names:
            return name
        seen_names.add(name)
    return None


# --- Lists of networks as CSV: a 0/1 column for each clause, and columns `networks` (weight), `mse`, `size` -----------
_WEIGHT, _MSE, _SIZE = "networks", "mse", "size"
MAX_WEIGHT = 10**18


@dataclass(frozen=True, slots=True)
class ListedModel:
    """A model of another tool's list.

    weight: number of networks that the line represents; mse, size: as stated, None if not; line: its number in the file
    """

    model: item.Model
    weight: int = 1
    mse: float | None = None
    size: int | None = None
    line: int = 0


def read_networks(path: Path) -> list[ListedModel]:
    """Return the models of a networks.csv file in its order; `PoolError` names line and column of an invalid cell.

    A clause may have several columns, as caspo writes after merging edges of both signs; a 1 in any of them counts.
    """
    return parse_networks(read_text(path), path.name)


def parse_networks(text: str, file: str = "") -> list[ListedModel]:
    """Return the models of a CSV text, as `read_networks` does of a file."""
    lines = list(table_rows(text, file))
    if not lines:
        raise PoolError("empty; a list of networks begins with a header line of clauses", file=file)
    header = lines[0][1]
    clauses = {position: _clause(name, file) for position, name in enumerate(header) if "<-" in name}
    plain = {name.lower(): position for position, name in enumerate(header) if "<-" not in name}
    repeated = find_repeated([name.lower() for name in header if "<-" not in name])
    if repeated is not None:
        raise PoolError("occurs twice", file=file, field=f"column {readable_repr(repeated)}")
    if not clauses:
        raise PoolError("no column of a clause; write a clause as v<-a+!b", file=file, field="header")
    models = []
    for line_number, fields in lines[1:]:
        where = f"line {line_number}"
        if len(fields) != len(header):
            raise PoolError(f"{len(fields)} fields; the header has {len(header)}", file=file, instance=where)
        model = frozenset(
            clause for position, clause in clauses.items() if _flag(fields[position], clause, file=file, where=where)
        )
        models.append(_with_numbers(model, fields, plain, file, line_number))
    return models


def _clause(text: str, file: str) -> item.Clause:
    try:
        return item.parse_clause(text)
    except item.ClauseError as error:
        raise PoolError(str(error), file=file, field="header") from None


def _flag(text: str, clause: item.Clause, *, file: str, where: str) -> bool:
    if text not in ("0", "1", "0.0", "1.0"):
        problem = f"{readable_repr(text)}; a clause has 0 or 1"
        raise PoolError(problem, file=file, instance=where, field=f"column {readable_repr(str(clause))}")
    return text.startswith("1")


def _with_numbers(model: item.Model, fields: Sequence[str], plain: dict[str, int], file: str, line: int) -> ListedModel:
    values: dict[str, float | None] = {}
    for name in (_WEIGHT, _MSE, _SIZE):
        text = fields[plain[name]] if name in plain else ""
        parsed = _finite(text)
        if text and (parsed is None or parsed < 0):
            problem = f"{readable_repr(text)}; a number of 0 or more"
            raise PoolError(problem, file=file, instance=f"line {line}", field=f"column '{name}'")
        values[name] = parsed
    weight, size = values[_WEIGHT], values[_SIZE]
    for name, parsed in ((_WEIGHT, weight), (_SIZE, size)):
        if parsed is not None and (parsed != int(parsed) or parsed > MAX_WEIGHT):
            problem = f"{parsed:g}; an integer of at most {MAX_WEIGHT}"
            raise PoolError(problem, file=file, instance=f"line {line}", field=f"column '{name}'")
    whole = 1 if weight is None else int(weight)
    return ListedModel(model, whole, values[_MSE], None if size is None else int(size), line)


def _finite(text: str) -> float | None:
    """Return the finite number of a text; None for anything else."""
    # `float` accepts underscores, other scripts' digits and texts of any length
    try:
        number = float(text) if len(text) <= 100 and text.isascii() and "_" not in text else math.nan
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def networks_pieces(models: Iterable[item.Model], clauses: Sequence[item.Clause]) -> Iterator[str]:
    """Yield the CSV text of models, line by line.

    clauses: the columns; they contain all clauses of the models
    """
    yield ",".join(map(str, clauses)) + "\n"
    for model in models:
        yield ",".join("1" if clause in model else "0" for clause in clauses) + "\n"


# --- Models as bnet: `v, (a & !b) | c`; a stimulus is `s, s`, an empty formula `v, 0` ---------------------------------


def bnet_text(model: item.Model, nodes: Iterable[str], stimuli: Iterable[str]) -> str:
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


# --- Prior networks: SIF, and tables of edges with a header -----------------------------------------------------------


def read_sif(path: Path) -> tuple[item.Edge, ...]:
    """Return the edges of a SIF file or table in its order, see `parse_sif`."""
    return parse_sif(read_text(path), path.name)


def parse_sif(text: str, file: str = "") -> tuple[item.Edge, ...]:
    """Return the edges of a SIF text or of a table with a head in its order, equal ones once.

    `PoolError` names the line of what is refused.
    """
    return tuple(item.Edge(*edge) for edge in parse_edges(text, file).edges)
