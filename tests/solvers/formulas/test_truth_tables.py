"""Least sums, needed columns and formulas of many columns: compared with listings of everything there is."""

from __future__ import annotations

from functools import reduce
from itertools import combinations, product
from operator import or_

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from calibrant.dsl.formulas.table import PartialTable
from calibrant.solvers.formulas.catalogue import distinct
from calibrant.solvers.formulas.fronts import Patterns
from calibrant.solvers.formulas.least_formulas import tree_formula
from calibrant.solvers.formulas.minimal_sums import cube_word, greedy_size, least_sums
from calibrant.solvers.formulas.synthesis import least_formula
from calibrant.solvers.formulas.truth_tables import least_forms, rows_by_value
from calibrant.solvers.formulas.wide_tables import (
    build_formulas,
    count_wide_functions,
    find_needed_columns,
    find_wide_formula,
)
from calibrant.solvers.outcome import Budget, Found
from tests.support.effort import effort


def list_least_sums(num_vars: int, ones: int, zeros: int) -> tuple[tuple[int, int], list[tuple[tuple[int, ...], ...]]]:
    """Try every set of products, fewest first."""
    cubes = [(cube, cube_word(cube)) for cube in product((0, 1, 2), repeat=num_vars)]
    cubes = [(cube, word) for cube, word in cubes if not word & zeros]
    for number in range(1 << num_vars):
        fits = []
        for chosen in combinations(cubes, number):
            if reduce(or_, (word for _, word in chosen), 0) & ones == ones:
                fits.append(tuple(sorted(cube for cube, _ in chosen)))
        if fits:
            literals = [sum(digit != 2 for cube in cover for digit in cube) for cover in fits]
            least = min(literals)
            return (number, least), sorted(c for c, n in zip(fits, literals, strict=True) if n == least)
    raise AssertionError("no sum covers the ones")


@given(st.lists(st.integers(0, 2**64 - 1) | st.integers(0, 3)))
def test_distinct_numbers_are_those_of_numpy(numbers: list[int]) -> None:
    values = np.array(numbers, np.uint64)
    assert distinct(np.sort(values)).tolist() == np.unique(values).tolist()


@st.composite
def tables(draw: st.DrawFn, max_vars: int = 3) -> tuple[int, int, int]:
    number = draw(st.integers(1, max_vars))
    ones = draw(st.integers(0, (1 << (1 << number)) - 1))
    return number, ones, draw(st.integers(0, (1 << (1 << number)) - 1)) & ~ones


@settings(max_examples=effort(20, 5_000))
@given(tables())
def test_least_sums_are_those_of_all_sets_of_products(table: tuple[int, int, int]) -> None:
    sums = least_sums(*table)
    size, covers = list_least_sums(*table)
    assert sums.is_proven
    assert sums.is_complete
    assert (sums.size, sorted(cubes for cubes, _ in sums.sums)) == (size, covers)
    for cubes, word in sums.sums:
        assert word == reduce(or_, map(cube_word, cubes), 0)


def test_every_function_of_two_columns_with_free_rows_has_its_least_sums() -> None:
    compared = 0
    for digits in product("01-", repeat=4):
        ones = sum(1 << row for row, digit in enumerate(digits) if digit == "1")
        zeros = sum(1 << row for row, digit in enumerate(digits) if digit == "0")
        sums = least_sums(2, ones, zeros)
        assert (sums.size, sorted(c for c, _ in sums.sums)) == list_least_sums(2, ones, zeros)
        compared += 1
    assert compared == 81


def test_a_spent_budget_leaves_a_bound_and_a_cover() -> None:
    random = np.random.default_rng(7)
    ones = sum(int(bit) << row for row, bit in enumerate(random.integers(0, 2, 256)))
    zeros = ones ^ (1 << 256) - 1
    sums = least_sums(8, ones, zeros, 1)
    exact = least_sums(8, ones, zeros)
    assert exact.is_proven
    assert not sums.is_complete
    assert sums.at_least <= exact.size[0] <= sums.size[0]
    for _, word in (*sums.sums, *exact.sums):
        assert word & ones == ones
        assert not word & zeros


def patterns_of(codes: np.ndarray, values: np.ndarray) -> Patterns:
    unique, place = np.unique(codes, axis=0, return_inverse=True)
    place = place.ravel()
    zeros, ones = (np.bincount(place, values == v, minlength=len(unique)).astype(np.int64) for v in (0, 1))
    return Patterns(unique.astype(np.int16), zeros, ones)


@st.composite
def rows(draw: st.DrawFn, max_columns: int = 5) -> tuple[np.ndarray, np.ndarray]:
    number, height = draw(st.integers(1, max_columns)), draw(st.integers(1, 14))
    bits = st.lists(st.integers(0, 1), min_size=height * (number + 1), max_size=height * (number + 1))
    table = np.array(draw(bits)).reshape(height, number + 1)
    return table[:, :-1], table[:, -1]


def determines(codes: np.ndarray, values: np.ndarray, columns: tuple[int, ...]) -> bool:
    seen: dict[tuple[int, ...], int] = {}
    return all(seen.setdefault(tuple(row[list(columns)]), v) == v for row, v in zip(codes, values, strict=True))


@settings(max_examples=effort(100, 5_000))
@given(rows())
def test_needed_columns_are_the_first_sets_that_determine_the_target(table: tuple[np.ndarray, np.ndarray]) -> None:
    codes, values = table
    number_of_columns = codes.shape[1]
    needed = find_needed_columns(patterns_of(codes, values))
    for number in range(number_of_columns + 1):
        sets = [c for c in combinations(range(number_of_columns), number) if determines(codes, values, c)]
        if sets:
            assert (needed.number, needed.num_sets, list(needed.sets)) == (number, len(sets), sets)
            return
    assert needed.number is None
    assert needed.clash is not None


def test_needed_columns_are_bounded_where_the_budget_ends() -> None:
    random = np.random.default_rng(1)
    codes, values = random.integers(0, 2, (200, 16)), random.integers(0, 2, 200)
    patterns = patterns_of(codes, values)
    needed, bounded = find_needed_columns(patterns), find_needed_columns(patterns, Budget(40))
    assert needed.number is not None
    assert bounded.number is None
    assert 0 < bounded.at_least <= needed.number


@settings(max_examples=effort(10, 500), deadline=None)
@given(st.one_of(st.text("01-", min_size=8, max_size=8), st.text("01-", min_size=16, max_size=16)))
@example(effort("1010100010001101", "0110001000001110"))
def test_sizes_by_sat_are_those_of_the_catalogue(digits: str) -> None:
    chosen = [row for row, digit in enumerate(digits) if digit != "-"]
    codes = np.array([[row >> k & 1 for k in range(len(digits).bit_length() - 1)] for row in chosen])
    assume(len(chosen) > 1)
    patterns = patterns_of(codes, np.array([int(digits[row]) for row in chosen]))
    needed = find_needed_columns(patterns)
    assume(needed.number is not None and needed.number >= 2)
    number = patterns.num_columns
    names = [f"c{k}" for k in range(number)]
    ones = sum(1 << row for row in chosen if digits[row] == "1")
    care = sum(1 << row for row in chosen)
    least = least_formula(PartialTable(number, care, ones), names)
    assert isinstance(least, Found)
    # a few functions of four columns take more than the 100,000 conflicts of a fit: 0110001000001110 has 107,235
    wide = find_wide_formula(patterns, needed, names, number, budget=Budget(5_000_000))
    assert wide.at_least <= least.value.size
    assert wide.is_proven
    assert wide.formula is not None
    assert wide.formula.size == least.value.size
    columns = {name: sum(int(bit) << k for k, bit in enumerate(patterns.codes[:, c])) for c, name in enumerate(names)}
    value = wide.formula.evaluate(columns.__getitem__, (1 << len(chosen)) - 1)
    assert [value >> k & 1 for k in range(len(chosen))] == [int(n > 0) for n in patterns.ones]


@settings(max_examples=effort(60, 2_000))
@given(rows(max_columns=3), st.integers(0, 3))
def test_numbers_of_functions_are_those_of_a_listing(table: tuple[np.ndarray, np.ndarray], max_parents: int) -> None:
    codes, values = table
    number = codes.shape[1]
    fits = 0
    for bits in range(1 << (1 << number)):
        depends = sum(
            any((bits >> row ^ bits >> (row ^ 1 << v)) & 1 for row in range(1 << number)) for v in range(number)
        )
        right = all(bits >> int(row @ (1 << np.arange(number))) & 1 == v for row, v in zip(codes, values, strict=True))
        fits += right and depends <= max_parents
    assert count_wide_functions(patterns_of(codes, values), max_parents) == fits


@pytest.mark.parametrize("measure", ["sop", "pos", "all"])
def test_tables_of_five_columns_have_the_forms_of_four_where_one_tells_nothing(measure: str) -> None:
    random = np.random.default_rng(5)
    bits = (np.arange(16)[:, None] >> np.arange(4)) & 1
    compared = 0
    for _ in range(4):
        values = random.integers(0, 2, 16)
        narrow = least_forms(patterns_of(bits, values), measure, list("abcd"), 50)  # type: ignore[arg-type]
        five = np.vstack([np.column_stack([bits, np.full(16, extra)]) for extra in (0, 1)])
        wide = least_forms(patterns_of(five, np.tile(values, 2)), measure, list("abcde"), 50)  # type: ignore[arg-type]
        assert wide.is_proven
        assert wide.size == narrow.size
        if wide.num_formulas is not None:
            assert (wide.num_formulas, wide.formulas) == (narrow.num_formulas, narrow.formulas)
            compared += 1
    assert compared or measure == "all"


# --- Bounds that are met at once --------------------------------------------------------------------------------------
@pytest.mark.parametrize("num_vars", [1, 3, 5, 7])
def test_formulas_that_are_built_at_once_have_the_values_of_the_rows(num_vars: int) -> None:
    """Factored sums and products, expansions, and the greedy size, which no least sum exceeds."""
    random = np.random.default_rng(num_vars)
    compared = 0
    for _ in range(effort(12, 600)):
        codes = np.unique(random.integers(0, 2, (int(random.integers(2, 40)), num_vars)), axis=0)
        values = random.integers(0, 2, len(codes))
        patterns, names = patterns_of(codes, values), [f"v{k}" for k in range(num_vars)]
        formulas = list(build_formulas(patterns, range(num_vars), names, max_conflicts=50))
        for formula in formulas:
            row_values = [formula.evaluate(dict(zip(names, row, strict=True)).__getitem__, 1) for row in codes.tolist()]
            assert row_values == values.tolist(), formula
        ones, zeros = rows_by_value(patterns)
        least, greedy = least_sums(num_vars, ones, zeros), greedy_size(num_vars, ones, zeros)
        assert least.size <= greedy
        if 0 < values.sum() < len(values):
            assert min(f.size for f in formulas) <= tree_formula(least.trees(is_dual=False)[0][0], names).size
            compared += 1
    assert compared > 5
