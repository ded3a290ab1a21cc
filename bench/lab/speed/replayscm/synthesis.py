"""Least formulas by number of parents: time and states.

The rival enumerates functions bottom-up by size, in plain Python, until one agrees; it is asked up to 3 parents.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations_with_replacement, product
from random import Random

from calibrant.bench.lab.speed.report import Comparison, Options, Rival, Row, measure
from calibrant.dsl.formulas.formula import OPERATORS, STANDARD_OPERATORS, Formula, apply, var
from calibrant.dsl.formulas.table import PartialTable, from_formula, full_mask, num_rows, projection
from calibrant.solvers.formulas.synthesis import least_formula
from calibrant.solvers.outcome import Budget, Found

# --- Least formulas by number of parents: planted partial tables, time and states -------------------------------------
TOPIC = "synthesis"
PARENTS = (2, 3, 4, 5, 6)
ENUMERABLE = 3
NUM_TABLES = 20
OBSERVED = 0.8  # share of the rows that evidence determines
SEED = 5
NAMES = tuple("ABCDEF")


def rows(options: Options) -> Iterator[Row]:
    for num_parents in PARENTS:
        tables = planted_tables(num_parents, max(2, round(NUM_TABLES * options.scale)))
        yield from measure(_comparison(num_parents, tables), options.discipline)


def _comparison(num_parents: int, tables: Sequence[PartialTable]) -> Comparison:
    sizes = [least_size(table) for table in tables]
    rivals = [Rival("least_formula", lambda: [least_size(table) for table in tables], len(tables))]
    counts: dict[str, float] = {
        "mean size": sum(size for size, _ in sizes) / len(sizes),
        "mean states": sum(states for _, states in sizes) / len(sizes),
        "most states": max(states for _, states in sizes),
    }
    if num_parents <= ENUMERABLE:
        rivals.append(Rival("bottom-up in Python", lambda: [enumerated_size(table) for table in tables], len(tables)))
        counts["mean functions, bottom-up"] = sum(enumerated_size(table)[1] for table in tables) / len(tables)
    return Comparison(TOPIC, f"{num_parents} parents", "table", rivals, counts=counts)


def planted_tables(num_parents: int, count: int) -> list[PartialTable]:
    """Return what evidence could say about random mechanisms that mention that many parents, some of them twice."""
    rng = Random(SEED + num_parents)
    return [_plant(num_parents, rng) for _ in range(count)]


def _plant(num_parents: int, rng: Random) -> PartialTable:
    names = NAMES[:num_parents]
    leaves = [*names, *rng.choices(names, k=rng.randint(0, 2))]
    rng.shuffle(leaves)
    table = from_formula(_random_formula(leaves, rng), names)
    care = sum(1 << row for row in range(num_rows(num_parents)) if rng.random() < OBSERVED)
    return PartialTable(num_parents, care, table.bits & care)


def _random_formula(leaves: Sequence[str], rng: Random) -> Formula:
    if len(leaves) == 1:
        formula = var(leaves[0])
    else:
        cut = rng.randint(1, len(leaves) - 1)
        parts = _random_formula(leaves[:cut], rng), _random_formula(leaves[cut:], rng)
        formula = apply(rng.choice(("and", "or", "xor", "iff")), parts)
    return apply("not", [formula]) if rng.random() < 0.25 else formula


def least_size(table: PartialTable) -> tuple[int, int]:
    """Return the least size, and the number of states that the solver visited."""
    budget = Budget()
    outcome = least_formula(table, NAMES[: table.num_vars], budget=budget)
    assert isinstance(outcome, Found)
    return outcome.value.size, budget.used


def enumerated_size(table: PartialTable) -> tuple[int, int]:
    """Return the least size by enumeration of functions in order of size, and how many it reached: a rival."""
    mask = full_mask(table.num_vars)
    layers: list[list[int]] = [[], [projection(i, table.num_vars).bits for i in range(table.num_vars)]]
    reached = set(layers[1])
    while not any((bits ^ table.value) & table.care == 0 for bits in layers[-1]):
        layer: list[int] = []
        for bits in _of_size(len(layers), layers, mask):
            if bits not in reached:
                reached.add(bits)
                layer.append(bits)
        layers.append(layer)
    return len(layers) - 1, len(reached)


def _of_size(size: int, layers: Sequence[Sequence[int]], mask: int) -> Iterator[int]:
    """Yield every function that an operator makes of listed functions of total size `size` - 1, with repetitions."""
    for name in STANDARD_OPERATORS:
        operator = OPERATORS[name]
        for arity in range(operator.min_arity, (operator.max_arity or size - 1) + 1):
            for sizes in combinations_with_replacement(range(1, size), arity):
                if sum(sizes) == size - 1:
                    for arguments in product(*(layers[s] for s in sizes)):
                        yield operator.bits(arguments, mask)
