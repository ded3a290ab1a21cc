"""Exact synthesis through SAT, compared with naive enumeration, with `least_formula` and with planted formulas."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import permutations
from random import Random

import pytest

from calibrant.dsl.formulas.formula import STANDARD_OPERATORS, Formula, apply, var
from calibrant.dsl.formulas.table import PartialTable, TruthTable, complete, from_formula
from calibrant.dsl.formulas.text import parse
from calibrant.solvers.formulas.sat_synthesis import (
    SYMMETRY_BREAKS,
    SatSynthesis,
    SymmetryBreak,
    TreeEncoding,
)
from calibrant.solvers.formulas.synthesis import least_formula
from calibrant.solvers.outcome import Budget, BudgetSpent, Found
from calibrant.solvers.sat import Conflicts
from tests.support.effort import effort
from tests.support.replayscm.brute_force import least_size_by_enumeration

NAMES = tuple("abcdefghij")


def least_formula_by_sat(search: SatSynthesis, budget: Budget, at_most: int | None = None) -> Formula | None:
    """Return a formula of least size, None if that is over `at_most`."""
    while at_most is None or search.lower_bound <= at_most:
        if (formula := search.advance(budget)) is not None:
            return formula
    return None


def sat_size(
    partial: PartialTable,
    *,
    operators: Iterable[str] = STANDARD_OPERATORS,
    at_most: int | None = None,
    symmetry_breaks: Sequence[SymmetryBreak] = SYMMETRY_BREAKS,
) -> int | None:
    """Return the least size, None if it is over `at_most`; the formula is checked on every determined row."""
    names = NAMES[: partial.num_vars]
    search = SatSynthesis(partial, names, operators=operators, symmetry_breaks=symmetry_breaks)
    formula = least_formula_by_sat(search, Budget(), at_most)
    if formula is None:
        return None
    assert partial.agrees(from_formula(formula, names))
    assert formula.mentioned <= set(names)
    return formula.size


def random_formula(random: Random, names: tuple[str, ...]) -> Formula:
    """Return a random formula that mentions each of the names once."""
    if len(names) == 1:
        formula = var(names[0])
    else:
        cut = random.randint(1, len(names) - 1)
        parts = random_formula(random, names[:cut]), random_formula(random, names[cut:])
        formula = apply(random.choice(("and", "or", "xor", "iff")), parts)
    return apply("not", [formula]) if random.random() < 0.2 else formula


def random_partial(random: Random, num_vars: int, num_rows: int) -> PartialTable:
    care = sum(1 << row for row in random.sample(range(1 << num_vars), num_rows))
    return PartialTable(num_vars, care, random.getrandbits(1 << num_vars) & care)


# --- exactness ------------------------------------------------------------------------------------------------------


def is_least_of_renamed(bits: int) -> bool:
    """Return whether no renaming of three variables gives a function of smaller bits."""

    def rename(order: tuple[int, ...]) -> int:
        rows = (sum((row >> i & 1) << place for i, place in enumerate(order)) for row in range(8))
        return sum((bits >> renamed & 1) << row for row, renamed in enumerate(rows))

    return bits == min(map(rename, permutations(range(3))))


@pytest.mark.soak
@pytest.mark.parametrize("block", range(8))
def test_all_functions_of_three_variables_have_the_least_size(block: int) -> None:
    """One of each class under renaming, 80 in all; in a soak each of the 256."""
    for bits in filter(effort(is_least_of_renamed, lambda _: True), range(32 * block, 32 * block + 32)):
        outcome = least_formula(complete(TruthTable(3, bits)), NAMES[:3])
        assert isinstance(outcome, Found)
        expected = outcome.value.size if outcome.value.size <= 7 else None
        assert sat_size(complete(TruthTable(3, bits)), at_most=7) == expected


def test_the_largest_functions_of_three_variables_have_the_least_size() -> None:
    sizes = {}
    for bits in range(256):
        outcome = least_formula(complete(TruthTable(3, bits)), NAMES[:3])
        assert isinstance(outcome, Found)
        sizes[bits] = outcome.value.size
    hardest = max(sizes, key=lambda bits: sizes[bits])
    assert sizes[hardest] > 7
    assert sat_size(complete(TruthTable(3, hardest))) == sizes[hardest]


@pytest.mark.parametrize("num_vars", [4, 5])
@pytest.mark.parametrize("seed", range(12))
def test_partial_tables_have_the_least_size(num_vars: int, seed: int) -> None:
    random = Random(100 * num_vars + seed)
    partial = random_partial(random, num_vars, random.randint(1, 9))
    outcome = least_formula(partial, NAMES[:num_vars])
    assert isinstance(outcome, Found)
    assert sat_size(partial) == outcome.value.size


OPERATOR_SETS = [
    (),
    ("not",),
    ("and",),
    ("or",),
    ("xor",),
    ("iff",),
    ("not", "xor"),
    ("not", "iff"),
    ("and", "or"),
    ("not", "and"),
    ("xor", "iff"),
    ("or", "xor"),
    ("and", "iff"),
    ("not", "and", "or"),
    STANDARD_OPERATORS,
]


@pytest.mark.parametrize("operators", OPERATOR_SETS)
def test_restricted_operators_have_the_sizes_of_naive_enumeration(operators: tuple[str, ...]) -> None:
    random = Random(len(operators))
    for _ in range(12):
        num_vars = random.randint(1, 4)
        partial = random_partial(random, num_vars, random.randint(1, min(6, 1 << num_vars)))
        expected = least_size_by_enumeration(partial, operators, 6)
        assert sat_size(partial, operators=operators, at_most=6) == expected


@pytest.mark.parametrize("num_vars", [6, 7, 8, 9, 10])
def test_a_planted_formula_bounds_the_size(num_vars: int) -> None:
    """On 10 rows of more variables than the catalogues list; functions differ on few rows, so they can be listed."""
    random = Random(num_vars)
    for _ in range(3):
        used = tuple(random.sample(NAMES[:num_vars], 4))
        planted = random_formula(random, used)
        care = sum(1 << row for row in random.sample(range(1 << num_vars), 10))
        bits = from_formula(planted, NAMES[:num_vars]).bits
        partial = PartialTable(num_vars, care, bits & care)
        size = sat_size(partial, at_most=planted.size)
        assert size is not None
        assert least_size_by_enumeration(partial, STANDARD_OPERATORS, 6) == (size if size <= 6 else None)


def test_all_rows_of_ten_variables_have_the_size_over_those_that_matter() -> None:
    planted = parse("(and j (or a (not e)) (xor b h))")
    outcome = least_formula(complete(from_formula(planted, planted.variables)), planted.variables)
    assert isinstance(outcome, Found)
    assert sat_size(complete(from_formula(planted, NAMES))) == outcome.value.size


# --- symmetry breaks ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("left_out", [*SYMMETRY_BREAKS, None], ids=lambda value: getattr(value, "__name__", "all"))
def test_symmetry_breaks_change_no_size(left_out: SymmetryBreak | None) -> None:
    random = Random(3)
    breaks = [b for b in SYMMETRY_BREAKS if b is not left_out] if left_out else []
    for _ in range(15):
        num_vars = random.randint(2, 4)
        partial = random_partial(random, num_vars, random.randint(3, 1 << num_vars))
        assert sat_size(partial, symmetry_breaks=breaks, at_most=6) == sat_size(partial, at_most=6)


@pytest.mark.parametrize("one", SYMMETRY_BREAKS)
def test_every_symmetry_break_excludes_something(one: SymmetryBreak) -> None:
    assert num_trees([one]) < num_trees([])


def num_trees(breaks: list[SymmetryBreak]) -> int:
    """Formulas of 5 nodes over 2 variables."""
    tree = TreeEncoding(2, 5, STANDARD_OPERATORS)
    for add_clauses in breaks:
        add_clauses(tree)
    search = Conflicts(tree.cnf, Budget())
    seen = set()
    choices = [lit for node in tree.operator for lit in node.values()]
    choices += [lit for group in tree.leaf for lit in group] + [lit for node in tree.end for lit in node.values()]
    while (model := search.model()) is not None:
        formula = tree.formula(model, NAMES[:2])
        assert formula not in seen
        assert formula.size == 5
        seen.add(formula)
        search.add([-lit for lit in choices if model[lit - 1] > 0])
    search.close()
    return len(seen)


def test_every_formula_of_a_size_is_encoded_once() -> None:
    """Counted by recursion: 2 atoms; else `not` of one argument, or one of four operators on two or more."""
    forests = {(0, 0): 1}  # (arguments, nodes) -> how many lists
    trees = {1: 2}
    for size in range(1, 6):
        if size > 1:
            trees[size] = trees[size - 1] + 4 * sum(forests.get((k, size - 1), 0) for k in range(2, size))
        for nodes in range(size, 6):
            for k in range(1, nodes + 1):
                forests[k, nodes] = sum(
                    trees[first] * forests.get((k - 1, nodes - first), 0) for first in trees if first <= nodes
                )
    assert num_trees([]) == trees[5]


# --- out of budget --------------------------------------------------------------------------------------------------


def test_a_budget_ends_the_search_with_what_was_proven() -> None:
    hard = complete(from_formula(parse("(xor c (iff c e a (or b a)) (and (not b) a d) e)"), NAMES[:5]))
    bounds = []
    for conflicts in (200, 200, 2_000):
        search, budget = SatSynthesis(hard, NAMES[:5]), Budget(conflicts)
        with pytest.raises(BudgetSpent):
            least_formula_by_sat(search, budget)
        assert budget.exhausted
        bounds.append(search.lower_bound)
    assert 1 < bounds[0] == bounds[1] <= bounds[2] <= 15


def test_rows_are_demanded_only_when_a_candidate_fails() -> None:
    search = SatSynthesis(complete(from_formula(parse("(and a b)"), NAMES)), NAMES)
    budget = Budget()
    assert search.advance(budget) is None
    assert search.advance(budget) is None
    formula = search.advance(budget)
    assert formula is not None
    assert str(formula) == "(and a b)"
    assert len(search.rows) < 30  # of 1024


def test_names_and_sizes_have_to_fit() -> None:
    with pytest.raises(ValueError, match="2 names"):
        SatSynthesis(PartialTable(3, 0, 0), ("a", "b"))
    with pytest.raises(ValueError, match="both are 1 or more"):
        TreeEncoding(2, 0, STANDARD_OPERATORS)
    with pytest.raises(ValueError, match="exact synthesis"):
        SatSynthesis(PartialTable(1, 0, 0), ("a",), operators=("if",))
