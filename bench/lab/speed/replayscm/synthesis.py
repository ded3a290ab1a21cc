"""Least formulas by number of parents, by enumeration and by SAT: time and states.

The rival enumerates functions bottom-up by size, in plain Python, until one agrees; it is asked up to 3 parents.

Enumeration needs a catalogue or a decomposition, up to six variables; SAT goes on. Both have to say the same size.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import combinations_with_replacement, product
from random import Random
from statistics import median

from calibrant.bench.lab.speed.comparison import Comparison, Discipline, Options, Rival, Row, measure
from calibrant.dsl.formulas.formula import OPERATORS, STANDARD_OPERATORS, Formula, apply, var
from calibrant.dsl.formulas.table import PartialTable, from_formula, full_mask, num_rows, projection
from calibrant.solvers.formulas.sat_search import least_formula_by_sat
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
    """Least size, and the states that the solver looked at."""
    budget = Budget()
    outcome = least_formula(table, NAMES[: table.num_vars], budget=budget)
    assert isinstance(outcome, Found)
    return outcome.value.size, budget.used


def enumerated_size(table: PartialTable) -> tuple[int, int]:
    """Rival: least size by enumeration of all functions in the order of size, and how many of them that took."""
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


# --- Least formulas by SAT for random tables, beside synthesis by enumeration where that reaches ----------------------
SAT_TOPIC = "sat"
VARIABLES = (4, 5, 6, 7, 8, 9, 10)
SEEN = (8, 12, 16)  # rows that evidence determines
LISTED = 6  # variables up to which there is synthesis by enumeration
NUM_SAT_TABLES = 5
MAX_ROUNDS = 3  # a table of 16 rows may take a second
SAT_SEED = 7
SAT_NAMES = tuple("ABCDEFGHIJ")


def sat_rows(options: Options) -> Iterator[Row]:
    thorough = options.scale == 1
    discipline = Discipline(min(options.discipline.rounds, MAX_ROUNDS), options.discipline.seconds)
    for num_seen in SEEN if thorough else SEEN[:1]:
        for num_vars in VARIABLES if thorough else VARIABLES[:3]:
            tables = random_tables(num_vars, num_seen, max(1, round(NUM_SAT_TABLES * options.scale)))
            yield from measure(_sat_comparison(num_vars, num_seen, tables), discipline)


def random_tables(num_vars: int, num_seen: int, count: int) -> list[PartialTable]:
    """Tables of which so many rows are seen, each 0 or 1 by a fair coin."""
    rng = Random(f"{SAT_SEED} {num_vars} {num_seen}")
    return [_random_table(num_vars, num_seen, rng) for _ in range(count)]


def _random_table(num_vars: int, num_seen: int, rng: Random) -> PartialTable:
    care = sum(1 << row for row in rng.sample(range(num_rows(num_vars)), num_seen))
    return PartialTable(num_vars, care, rng.getrandbits(num_rows(num_vars)) & care)


def _sat_comparison(num_vars: int, num_seen: int, tables: Sequence[PartialTable]) -> Comparison:
    sizes = [size_by_sat(table) for table in tables]
    rivals = [Rival("SAT", lambda: [size_by_sat(table) for table in tables], len(tables))]
    if num_vars <= LISTED:
        if [size_by_enumeration(table) for table in tables] != sizes:
            raise AssertionError(f"{num_vars} variables, {num_seen} rows: the two least sizes differ")
        rivals.append(Rival("enumeration", partial(_all_by_enumeration, tables), len(tables)))
    counts = {"least size": min(sizes), "median size": median(sizes), "largest size": max(sizes)}
    return Comparison(SAT_TOPIC, f"{num_vars} variables, {num_seen} rows", "table", rivals, counts=counts)


def _all_by_enumeration(tables: Sequence[PartialTable]) -> list[int]:
    return [size_by_enumeration(table) for table in tables]


def size_by_sat(table: PartialTable) -> int:
    outcome = least_formula_by_sat(table, SAT_NAMES[: table.num_vars])
    assert isinstance(outcome, Found)
    return outcome.value.size


def size_by_enumeration(table: PartialTable) -> int:
    outcome = least_formula(table, SAT_NAMES[: table.num_vars])
    assert isinstance(outcome, Found)
    return outcome.value.size
