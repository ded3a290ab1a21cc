"""Lists of networks as CSV: a column a clause with 0 or 1, and `networks` (weight), `mse`, `size` beside them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from calibrant.dsl.errors import PoolError, short_repr
from calibrant.dsl.logic.clause import Clause, ClauseError, Model, parse_clause
from calibrant.dsl.logic.files.text_input import find_repeated, read_text, table_rows

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
