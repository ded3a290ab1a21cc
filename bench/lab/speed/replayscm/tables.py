"""Truth-table algebra over 4, 6, 10 and 16 variables, against a NumPy array of Booleans and a list of bools."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from random import Random

import numpy as np

from calibrant.bench.lab.speed.report import Comparison, Options, Rival, Row, measure
from calibrant.bench.replayscm.rows.rates import RULES, Bools
from calibrant.dsl.formulas.formula import OPERATORS, Formula, fold
from calibrant.dsl.formulas.table import TruthTable, cofactor, from_formula, num_rows, support
from calibrant.dsl.formulas.text import parse

TOPIC = "tables"
NUM_VARS = (4, 6, 10, 16)
SEED = 4
FORMULA = parse("(xor (and A (not B) C) (iff B C D) (or (not A) (and B D)))")  # in the size of a gold mechanism
NAMES = ("A", "B", "C", "D", *(f"E{i}" for i in range(12)))

Call = Callable[[], object]


def rows(options: Options) -> Iterator[Row]:
    for num_vars in NUM_VARS:
        tables, arrays, lists = table_calls(num_vars), array_calls(num_vars), list_calls(num_vars)
        for operation, call in tables.items():
            rivals = [
                Rival("TruthTable", call),
                Rival("NumPy, a byte a row", arrays[operation]),
                Rival("list of bools", lists[operation]),
            ]
            case = f"{num_vars} variables, {operation}"
            comparison = Comparison(TOPIC, case, "operation", rivals, counts={"rows": num_rows(num_vars)})
            yield from measure(comparison, options.discipline)


def operands(num_vars: int) -> tuple[TruthTable, TruthTable]:
    """Return two random functions, the second independent of the last variable: the worst case of `support`."""
    rng = Random(SEED + num_vars)
    first, second = (TruthTable(num_vars, rng.getrandbits(num_rows(num_vars))) for _ in range(2))
    return first, cofactor(second, num_vars - 1, False)


def table_calls(num_vars: int) -> dict[str, Call]:
    f, g = operands(num_vars)
    middle, names = num_vars // 2, NAMES[:num_vars]
    return {
        "and": lambda: f & g,
        "or": lambda: f | g,
        "xor": lambda: f ^ g,
        "cofactor": lambda: cofactor(f, middle, True),
        "support": lambda: support(g),
        "from_formula": lambda: from_formula(FORMULA, names),
    }


def array_calls(num_vars: int) -> dict[str, Call]:
    """Return the same on arrays with one byte a row; a variable is an axis of length 2 of a view."""
    f, g = (np.array(bits(table)) for table in operands(num_vars))
    middle = num_vars // 2
    return {
        "and": lambda: f & g,
        "or": lambda: f | g,
        "xor": lambda: f ^ g,
        "cofactor": lambda: array_cofactor(f, middle),
        "support": lambda: array_support(g, num_vars),
        "from_formula": lambda: array_from_formula(FORMULA, num_vars),
    }


def list_calls(num_vars: int) -> dict[str, Call]:
    """Return the same on lists, row by row."""
    f, g = (bits(table) for table in operands(num_vars))
    middle = num_vars // 2
    return {
        "and": lambda: [a and b for a, b in zip(f, g, strict=True)],
        "or": lambda: [a or b for a, b in zip(f, g, strict=True)],
        "xor": lambda: [a != b for a, b in zip(f, g, strict=True)],
        "cofactor": lambda: list_cofactor(f, middle),
        "support": lambda: list_support(g, num_vars),
        "from_formula": lambda: list_from_formula(FORMULA, num_vars),
    }


def bits(table: TruthTable) -> list[bool]:
    return [bool(table.bits >> row & 1) for row in range(num_rows(table.num_vars))]


def array_cofactor(f: Bools, var_index: int) -> Bools:
    halves = f.reshape(-1, 2, 1 << var_index)
    return np.broadcast_to(halves[:, 1:], halves.shape).reshape(-1)


def array_support(f: Bools, num_vars: int) -> tuple[int, ...]:
    views = (f.reshape(-1, 2, 1 << i) for i in range(num_vars))
    return tuple(i for i, view in enumerate(views) if (view[:, 0] != view[:, 1]).any())


def array_from_formula(formula: Formula, num_vars: int) -> Bools:
    indices = np.arange(num_rows(num_vars))
    return fold(
        formula,
        lambda atom: (indices >> NAMES.index(str(atom)) & 1).astype(np.bool_),
        lambda node, arguments: RULES[node.operator](list(arguments)),
    )


def list_cofactor(f: Sequence[bool], var_index: int) -> list[bool]:
    return [f[row | 1 << var_index] for row in range(len(f))]


def list_support(f: Sequence[bool], num_vars: int) -> tuple[int, ...]:
    return tuple(i for i in range(num_vars) if any(f[row] != f[row ^ 1 << i] for row in range(len(f))))


def list_from_formula(formula: Formula, num_vars: int) -> list[bool]:
    def value(row: int) -> bool:
        return fold(
            formula,
            lambda atom: bool(row >> NAMES.index(str(atom)) & 1),
            lambda node, arguments: OPERATORS[node.operator].truth(arguments),
        )

    return [value(row) for row in range(num_rows(num_vars))]
