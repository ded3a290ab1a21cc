"""Least formulas by SAT for random tables, beside synthesis by enumeration where that reaches.

Enumeration needs a catalogue or a decomposition, up to six variables; SAT goes on. Both have to say the same size.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from random import Random
from statistics import median

from calibrant.bench.lab.speed.comparison import Comparison, Discipline, Options, Rival, Row, measure
from calibrant.dsl.formulas.table import PartialTable, num_rows
from calibrant.solvers.formulas.sat_search import least_formula_by_sat
from calibrant.solvers.formulas.synthesis import least_formula
from calibrant.solvers.outcome import Found

TOPIC = "sat"
VARIABLES = (4, 5, 6, 7, 8, 9, 10)
SEEN = (8, 12, 16)  # rows that evidence determines
LISTED = 6  # variables up to which there is synthesis by enumeration
NUM_TABLES = 5
MAX_ROUNDS = 3  # a table of 16 rows may take a second
SEED = 7
NAMES = tuple("ABCDEFGHIJ")


def rows(options: Options) -> Iterator[Row]:
    thorough = options.scale == 1
    discipline = Discipline(min(options.discipline.rounds, MAX_ROUNDS), options.discipline.seconds)
    for num_seen in SEEN if thorough else SEEN[:1]:
        for num_vars in VARIABLES if thorough else VARIABLES[:3]:
            tables = random_tables(num_vars, num_seen, max(1, round(NUM_TABLES * options.scale)))
            yield from measure(_comparison(num_vars, num_seen, tables), discipline)


def random_tables(num_vars: int, num_seen: int, count: int) -> list[PartialTable]:
    """Tables of which so many rows are seen, each 0 or 1 by a fair coin."""
    rng = Random(f"{SEED} {num_vars} {num_seen}")
    return [_random_table(num_vars, num_seen, rng) for _ in range(count)]


def _random_table(num_vars: int, num_seen: int, rng: Random) -> PartialTable:
    care = sum(1 << row for row in rng.sample(range(num_rows(num_vars)), num_seen))
    return PartialTable(num_vars, care, rng.getrandbits(num_rows(num_vars)) & care)


def _comparison(num_vars: int, num_seen: int, tables: Sequence[PartialTable]) -> Comparison:
    sizes = [size_by_sat(table) for table in tables]
    rivals = [Rival("SAT", lambda: [size_by_sat(table) for table in tables], len(tables))]
    if num_vars <= LISTED:
        if [size_by_enumeration(table) for table in tables] != sizes:
            raise AssertionError(f"{num_vars} variables, {num_seen} rows: the two least sizes differ")
        rivals.append(Rival("enumeration", partial(_all_by_enumeration, tables), len(tables)))
    counts = {"least size": min(sizes), "median size": median(sizes), "largest size": max(sizes)}
    return Comparison(TOPIC, f"{num_vars} variables, {num_seen} rows", "table", rivals, counts=counts)


def _all_by_enumeration(tables: Sequence[PartialTable]) -> list[int]:
    return [size_by_enumeration(table) for table in tables]


def size_by_sat(table: PartialTable) -> int:
    outcome = least_formula_by_sat(table, NAMES[: table.num_vars])
    assert isinstance(outcome, Found)
    return outcome.value.size


def size_by_enumeration(table: PartialTable) -> int:
    outcome = least_formula(table, NAMES[: table.num_vars])
    assert isinstance(outcome, Found)
    return outcome.value.size
