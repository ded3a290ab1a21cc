"""Least formulas for partial tables: against naive enumeration, against larger catalogues, and against laws."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from itertools import pairwise, permutations
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrant.dsl.formulas.formula import STANDARD_OPERATORS, Formula, apply, var
from calibrant.dsl.formulas.table import PartialTable, TruthTable, complete, from_formula, full_mask, permute
from calibrant.dsl.formulas.text import parse
from calibrant.solvers.formulas._kernels_synthesis import find_first_match
from calibrant.solvers.formulas.catalogue import Catalogue, build_catalogue, catalogue
from calibrant.solvers.formulas.synthesis import Decomposition, Goal, LeastSize, least_formula
from calibrant.solvers.outcome import Budget, Found, Impossible, OutOfBudget
from tests.support.commands import CHECKOUT
from tests.support.effort import effort, examples
from tests.support.replayscm.brute_force import least_size_by_enumeration, least_sizes
from tests.support.replayscm.strategies import partial_tables

NAMES = ("a", "b", "c", "d", "e", "f")
HARD = complete(from_formula(parse("(xor c (iff c e a (or b a)) (and (not b) a d) e)"), NAMES[:5]))  # 15 nodes


def found(partial: PartialTable, **options: object) -> Formula:
    outcome = least_formula(partial, NAMES[: partial.num_vars], **options)  # type: ignore[arg-type]
    assert isinstance(outcome, Found)
    return outcome.value


def least_size(partial: PartialTable) -> int:
    search = LeastSize(partial)
    while not search.decided:
        search.advance()
    assert search.size is not None
    return search.size


def random_care(random: Random, num_vars: int, num_rows: int) -> int:
    return sum(1 << row for row in random.sample(range(1 << num_vars), num_rows))


def random_formula(random: Random, num_vars: int, size: int) -> Formula:
    """Return a random formula of exactly that size."""
    if size == 1:
        return var(NAMES[random.randrange(num_vars)])
    if size == 2 or random.random() < 0.15:
        return apply("not", [random_formula(random, num_vars, size - 1)])
    num_arguments = random.randint(2, min(4, size - 1))
    cuts = [0, *sorted(random.sample(range(1, size - 1), num_arguments - 1)), size - 1]
    parts = [random_formula(random, num_vars, end - start) for start, end in pairwise(cuts)]
    return apply(random.choice(("and", "or", "xor", "iff")), parts)


# --- exactness ------------------------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=examples(60))
@given(partial_tables(min_vars=1, max_vars=5), st.data())
def test_sizes_are_those_of_naive_enumeration(partial: PartialTable, data: st.DataObject) -> None:
    operators = data.draw(st.sampled_from([STANDARD_OPERATORS, ("not", "and", "or"), ("xor", "and"), ("iff", "or")]))
    limit = data.draw(st.integers(1, 8))
    expected = least_size_by_enumeration(partial, operators, limit)
    names = NAMES[: partial.num_vars]
    outcome = least_formula(partial, names, operators=operators, at_most=limit)
    if expected is None:
        assert isinstance(outcome, Impossible)
    else:
        assert isinstance(outcome, Found)
        assert outcome.value.size == expected
        assert partial.agrees(from_formula(outcome.value, names))
        assert set(outcome.value.operator_counts) <= set(operators)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(effort(1, 40)))
def test_few_rows_reach_every_size_of_naive_enumeration(seed: int) -> None:
    """All functions of 8 rows of 5 variables, of which the enumeration reaches each: 256 tables.

    A size that is one too large shows in any of them, and an operator that is not tried in some: without it they
    would be larger. 40 sets of rows in a soak.
    """
    care = random_care(Random(seed), 5, 8)
    rows = [row for row in range(32) if care >> row & 1]
    atoms = [sum((row >> index & 1) << place for place, row in enumerate(rows)) for index in range(5)]
    sizes = least_sizes(atoms, 255, STANDARD_OPERATORS, 12)
    for operator in STANDARD_OPERATORS if seed == 0 else ():
        others = tuple(one for one in STANDARD_OPERATORS if one != operator)
        assert least_sizes(atoms, 255, others, 6) != {bits: size for bits, size in sizes.items() if size <= 6}
    for bits, size in sizes.items():
        value = sum((bits >> place & 1) << row for place, row in enumerate(rows))
        assert found(PartialTable(5, care, value)).size == size
    assert len(sizes) == 256


SMALL_CATALOGUES = [
    *((3, STANDARD_OPERATORS, listed) for listed in (2, 3, 4, 5)),
    *((4, STANDARD_OPERATORS, listed) for listed in (3, 4, 5, 6)),
    (4, ("not", "and"), 6),
    (4, ("and", "or"), 3),
    (4, ("or", "xor"), 4),
    (4, ("not", "iff"), 4),
    (3, ("iff",), 3),
]


@pytest.mark.soak
@pytest.mark.parametrize(("num_vars", "operators", "max_size"), SMALL_CATALOGUES)
def test_decomposition_finds_what_a_complete_catalogue_lists(
    num_vars: int, operators: tuple[str, ...], max_size: int
) -> None:
    """The deep search from a catalogue that is far too small: same least size, same smallest table.

    Sixty functions have a dozen beyond the catalogue, where the search has to decompose; 150 in a soak.
    """
    everything, few = catalogue(num_vars, operators), build_catalogue(num_vars, operators, max_size=max_size)
    random = Random(f"{num_vars}{operators}{max_size}")
    beyond = 0
    number = effort(60, 150)
    for _ in range(number):
        care = random_care(random, num_vars, random.randint(1 << num_vars >> 1, 1 << num_vars))
        value = int(everything.words[random.randrange(len(everything.words))]) & care
        position = find_first_match(everything.words, np.uint64(care), np.uint64(value), len(everything.words))
        size = int(everything.sizes[position])
        if size <= min(2 * max_size + 2, max_size + 8):
            compare_with_listed(few, care, value, size, int(everything.words[position]))
            beyond += size > max_size
    assert beyond > number / 5


SCORES_DECIDE = [
    (("not", "and", "iff"), 4, 56523, 202),  # a conjunction leaves rows open in which the rest does not matter
    (("and", "iff"), 4, 61989, 41476),  # so does an `iff` whose last argument is not listed
    (("not", "and", "iff"), 3, 60138, 32778),
    (("xor", "iff"), 5, 62575, 49160),
    (("or", "iff"), 3, 34145, 33024),  # and one whose last argument is
    (("not", "or", "xor", "iff"), 3, 41380, 388),
    (("not", "and", "or", "iff"), 5, 64959, 17567),
]


@pytest.mark.parametrize(("operators", "max_size", "care", "value"), SCORES_DECIDE)
def test_an_argument_is_chosen_for_the_table_of_the_whole(
    operators: tuple[str, ...], max_size: int, care: int, value: int
) -> None:
    """Tables where the argument with the smallest table does not give the smallest table."""
    everything = catalogue(4, operators)
    position = find_first_match(everything.words, np.uint64(care), np.uint64(value), len(everything.words))
    size, bits = int(everything.sizes[position]), int(everything.words[position])
    assert size > max_size
    compare_with_listed(build_catalogue(4, operators, max_size=max_size), care, value, size, bits)


@pytest.mark.parametrize(("num_vars", "max_size", "reach"), [(5, 7, 11), (5, 9, 11), (6, 6, 9), (6, 7, 9)])
def test_decomposition_finds_what_a_larger_catalogue_lists(num_vars: int, max_size: int, reach: int) -> None:
    larger, few = catalogue(num_vars), build_catalogue(num_vars, STANDARD_OPERATORS, max_size=max_size)
    random = Random(num_vars * max_size)
    for _ in range(40):
        care = random_care(random, num_vars, random.randint(20, 1 << num_vars))
        value = int(larger.words[random.randrange(larger.ends[max_size], larger.ends[reach])]) & care
        position = find_first_match(larger.words, np.uint64(care), np.uint64(value), len(larger.words))
        compare_with_listed(few, care, value, int(larger.sizes[position]), int(larger.words[position]))


def compare_with_listed(functions: Catalogue, care: int, value: int, size: int, bits: int) -> None:
    search = Decomposition(functions)
    goal = Goal(care, value, full_mask(functions.num_vars), 0)
    for smaller in range(1, size):
        assert search.find_smallest(goal, smaller) is None
    part = search.find_smallest(goal, size)
    assert part is not None
    assert (part.bits, part.size) == (bits, size)


@pytest.mark.parametrize("num_vars", [5, 6])
def test_a_planted_formula_bounds_the_size(num_vars: int) -> None:
    random = Random(num_vars)
    unlisted = 0
    for _ in range(120):
        planted = random_formula(random, num_vars, random.randint(8, 13))
        care = random_care(random, num_vars, random.randint(20, 1 << num_vars))
        partial = PartialTable(num_vars, care, from_formula(planted, NAMES[:num_vars]).bits & care)
        search = LeastSize(partial)
        while not search.decided:
            search.advance()
        assert search.size is not None
        assert search.size <= planted.size
        formula = search.formula(NAMES[:num_vars])
        assert formula.size == search.size == search.lower_bound
        assert partial.agrees(from_formula(formula, NAMES[:num_vars]))
        unlisted += search.size > catalogue(num_vars).max_size
    assert unlisted > 0 or num_vars == 5


# --- the tie rule ---------------------------------------------------------------------------------------------------


def test_the_smallest_table_among_the_least_formulas_is_chosen() -> None:
    """Row 3 is 1: of a = 0xa, b = 0xc the smaller; b alone if row 1 is 0; row 0 = 1 leaves (not a) = 0x5."""
    assert str(found(PartialTable(2, 0b1000, 0b1000))) == "a"
    assert str(found(PartialTable(2, 0b1010, 0b1000))) == "b"
    assert str(found(PartialTable(2, 0b0001, 0b0001))) == "(not b)"
    assert str(found(PartialTable(3, 0, 0))) == "a"


@pytest.mark.parametrize("seed", range(2))
def test_the_formula_depends_on_the_function_only(seed: int) -> None:
    """However many rows were open, and beyond the catalogue too."""
    care = random_care(Random(seed), 5, 29)
    formula = found(PartialTable(5, care, HARD.value & care))
    assert formula.size > catalogue(5).max_size
    assert found(complete(from_formula(formula, NAMES[:5]))) == formula


def test_answers_do_not_depend_on_the_process(capsys: pytest.CaptureFixture[str]) -> None:
    """Of this one, whose hash seed and history are others in each run, and of a fresh one."""
    program = """
from random import Random
from calibrant.dsl.formulas.table import PartialTable
from calibrant.solvers.formulas.synthesis import least_formula
random = Random(1)
for num_vars, care in (3, 0xFF), (4, 0xFFFF), (5, 0xE7FF), (5, 0xFFFFFF), (6, 0x3FFFFF):
    value = random.getrandbits(2**num_vars) & care
    print(least_formula(PartialTable(num_vars, care, value), "abcdef"[:num_vars], at_most=15))
"""
    fresh = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        cwd=CHECKOUT,
        env={**os.environ, "PYTHONHASHSEED": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    exec(program, {})
    here = capsys.readouterr().out
    assert here.count("Found") == 5
    assert here == fresh.stdout


# --- laws -----------------------------------------------------------------------------------------------------------


@st.composite
def queries(draw: st.DrawFn) -> PartialTable:
    """Tables of 4 to 6 variables whose least size is at most 12, some of them beyond the catalogue."""
    num_vars = draw(st.integers(4, 6))
    random = Random(draw(st.integers(0, 1 << 32)))
    planted = random_formula(random, num_vars, draw(st.integers(6, 12)))
    care = random_care(random, num_vars, draw(st.integers(1 << num_vars - 1, 1 << num_vars)))
    return PartialTable(num_vars, care, from_formula(planted, NAMES[:num_vars]).bits & care)


@settings(deadline=None, max_examples=examples(40))
@given(queries(), st.data())
def test_more_rows_never_make_it_smaller(partial: PartialTable, data: st.DataObject) -> None:
    fewer = partial.care & data.draw(st.integers(0, full_mask(partial.num_vars)))
    assert least_size(PartialTable(partial.num_vars, fewer, partial.value & fewer)) <= least_size(partial)


@settings(deadline=None, max_examples=examples(40))
@given(queries())
def test_the_complement_differs_by_at_most_one(partial: PartialTable) -> None:
    complement = PartialTable(partial.num_vars, partial.care, partial.care ^ partial.value)
    assert abs(least_size(complement) - least_size(partial)) <= 1


@settings(deadline=None, max_examples=examples(40))
@given(queries(), st.data())
def test_permuting_variables_keeps_the_size(partial: PartialTable, data: st.DataObject) -> None:
    order = data.draw(st.permutations(range(partial.num_vars)))
    care, value = (permute(TruthTable(partial.num_vars, b), order).bits for b in (partial.care, partial.value))
    assert least_size(PartialTable(partial.num_vars, care, value)) == least_size(partial)


def test_permuting_the_variables_of_a_hard_function_keeps_its_size() -> None:
    tables = [permute(TruthTable(5, HARD.value), order) for order in list(permutations(range(5)))[::29]]
    assert {least_size(complete(table)) for table in tables} == {15}


# --- outcomes -------------------------------------------------------------------------------------------------------


def test_larger_budgets_never_change_what_was_found() -> None:
    answers: list[Formula] = []
    bounds = [1]
    for exponent in range(4, 31, 2):
        outcome = least_formula(HARD, NAMES[:5], budget=Budget(1 << exponent))
        if isinstance(outcome, OutOfBudget):
            assert not answers
            assert outcome.lower_bound is not None
            assert f"size < {outcome.lower_bound} over a, b, c, d, e" in outcome.reached
            bounds.append(outcome.lower_bound)
        else:
            assert isinstance(outcome, Found)
            answers.append(outcome.value)
    assert bounds == sorted(bounds)
    assert len(set(bounds)) > 2
    assert set(answers) == {found(HARD)}
    assert answers[0].size >= bounds[-1]


def test_a_search_goes_on_where_the_budget_ended() -> None:
    search = LeastSize(HARD)
    bounds: list[int] = []
    while not search.decided:
        search.advance(Budget(2_000_000 + 1_000_000 * len(bounds)))
        bounds.append(search.lower_bound)
    assert bounds == sorted(bounds)
    assert search.formula(NAMES[:5]) == found(HARD)


def test_a_budget_counts_down_and_stops() -> None:
    budget = Budget(1000)
    assert isinstance(least_formula(HARD, NAMES[:5], budget=budget), OutOfBudget)
    assert (budget.used, budget.states, budget.exhausted) == (0, 1000, True)
    unlimited = Budget()
    found(HARD, budget=unlimited)
    assert unlimited.used > 1_000_000
    assert not unlimited.exhausted


@pytest.mark.parametrize(
    ("partial", "operators", "exhausted"),
    [
        (PartialTable(2, 15, 6), ("and", "or"), "any size over a, b"),
        (PartialTable(0, 1, 1), STANDARD_OPERATORS, "any size over no variables"),
        (PartialTable(5, 1, 1), ("and", "xor"), "any size over a, b, c, d, e"),
        (PartialTable(5, 1 << 31, 0), ("or", "iff"), "any size over a, b, c, d, e"),
        (PartialTable(6, 0b1010, 0b0010), ("and", "or"), "any size"),  # a gives 1, a and b together do not
        (PartialTable(5, 0b1111, 0b1000), ("xor", "not"), "any size"),  # a and b is not affine
        (PartialTable(6, 0b1110, 0b1110), ("and",), "any size"),
        (PartialTable(4, 0xFFFF, 0x8000), STANDARD_OPERATORS, None),
        (PartialTable(5, full_mask(5), 1 << 31), STANDARD_OPERATORS, None),
    ],
)
def test_impossible_says_what_was_exhausted(
    partial: PartialTable, operators: Sequence[str], exhausted: str | None
) -> None:
    """Without a reason expected, the conjunction of all variables is possible, but not with one node less."""
    names = NAMES[: partial.num_vars]
    outcome = least_formula(partial, names, operators=operators)
    if exhausted is not None:
        assert isinstance(outcome, Impossible)
        assert exhausted in outcome.exhausted
        return
    assert outcome == Found(parse(f"(and {' '.join(names)})"))
    size = len(names)
    refused = least_formula(partial, names, operators=operators, at_most=size)
    assert refused == Impossible(f"no formula of size <= {size} over {', '.join(names)} agrees with the table")
    assert least_formula(partial, names, operators=operators, at_most=size + 1) == outcome


@settings(deadline=None, max_examples=examples(60))
@given(partial_tables(min_vars=5, max_vars=5), st.data())
def test_monotone_tables_are_told_apart(partial: PartialTable, data: st.DataObject) -> None:
    """`and` and `or` express a table iff no 1 lies below a 0, the first row is not 1 and the last not 0."""
    few = data.draw(st.integers(0, full_mask(5))) & data.draw(st.integers(0, full_mask(5)))
    partial = PartialTable(5, partial.care & few, partial.value & few)
    rows = {row: partial.value >> row & 1 for row in range(32) if partial.care >> row & 1}
    monotone = all(one <= rows[high] for low, one in rows.items() for high in rows if low & high == low)
    expected = monotone and rows.get(0) != 1 and rows.get(31) != 0
    outcome = least_formula(partial, NAMES[:5], operators=("and", "or"), budget=Budget(10_000_000))
    assert isinstance(outcome, Impossible) != expected


def test_names_have_to_fit() -> None:
    with pytest.raises(ValueError, match=r"2 names .* for the 3 variables"):
        least_formula(PartialTable(3, 0, 0), ("a", "b"))
    with pytest.raises(ValueError, match=r"2 names .* for the 2 variables"):
        least_formula(PartialTable(2, 0, 0), ("a", "a"))
    with pytest.raises(ValueError, match="not known yet"):
        LeastSize(HARD).formula(NAMES[:5])
    with pytest.raises(ValueError, match="budget of -1 states"):
        Budget(-1)
