"""Fronts of sums of products by MaxSAT: compared with catalogues of functions, and with plain sums of many columns."""

from __future__ import annotations

from itertools import combinations, pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrant.solvers.formulas.fronts import Front, Patterns, front
from calibrant.solvers.formulas.least_formulas import Measure
from calibrant.solvers.formulas.minimal_sums import SumFront, front_of_sums
from calibrant.solvers.outcome import Budget
from tests.support.effort import effort

NAMES = ("a", "b", "c", "d", "e", "f")


def count_rows(rows: list[tuple[int, int]]) -> list[tuple[int, int, int]]:
    return [(row, rows.count((row, 0)), rows.count((row, 1))) for row in sorted({row for row, _ in rows})]


def patterns_of(num_columns: int, rows: list[tuple[int, int]]) -> Patterns:
    counted = count_rows(rows)
    codes = np.array([[row >> k & 1 for k in range(num_columns)] for row, _, _ in counted], np.int16)
    zeros, ones = (np.array([entry[k] for entry in counted], np.int64) for k in (1, 2))
    return Patterns(codes, zeros, ones)


def figures(answer: Front) -> list[tuple[object, ...]]:
    return [(p.errors, p.size, len(p.functions), p.num_formulas, p.formulas(10_000)) for p in answer.points]


@settings(max_examples=effort(60, 2_000), deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 15), st.integers(0, 1)), min_size=1, max_size=40),
    st.integers(1, 4),
    st.sampled_from([None, 0, 1, 3]),
)
def test_of_four_columns_all_points_and_ties_are_those_of_the_catalogue(
    rows: list[tuple[int, int]], max_columns: int, max_errors: int | None
) -> None:
    expected = front(patterns_of(4, rows), "sop", max_columns, NAMES, max_errors=max_errors, ties=10_000)
    searched = front_of_sums(4, count_rows(rows), max_columns, max_errors=max_errors)
    assert searched.at_least is None
    assert [(p.errors, p.size, len(p.sums)) for p in searched.points] == [
        (p.errors, p.size, p.num_formulas) for p in expected.points
    ]
    assert all(len(set(p.sums)) == len(p.sums) for p in searched.points)


@settings(max_examples=effort(40, 2_000), deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 15), st.integers(0, 1)), min_size=1, max_size=30),
    st.sampled_from(["sop", "pos"]),
    st.sampled_from([None, 0, 2]),
)
def test_a_column_without_effect_changes_no_point_formula_or_function(
    rows: list[tuple[int, int]], measure: Measure, max_errors: int | None
) -> None:
    """Each row occurs with both values of the fifth column: the least formulas are those of the other four."""
    narrow = front(patterns_of(4, rows), measure, 4, NAMES, max_errors=max_errors, ties=10_000)
    both = [(row + 16 * k, value) for row, value in rows for k in (0, 1)]
    doubled = None if max_errors is None else 2 * max_errors
    wide = front(patterns_of(5, both), measure, 5, NAMES, max_errors=doubled, ties=10_000)
    assert [(p[0] // 2, *p[1:]) for p in figures(wide)] == figures(narrow)  # type: ignore[operator]


@st.composite
def noisy_tables(draw: st.DrawFn) -> tuple[int, list[tuple[int, int]]]:
    num_columns = draw(st.integers(5, 6))
    rows = st.tuples(st.integers(0, (1 << num_columns) - 1), st.integers(0, 1))
    return num_columns, draw(st.lists(rows, min_size=1, max_size=14))


def list_sums(num_columns: int, max_products: int) -> list[tuple[tuple[int, int], int]]:
    """Return size and truth table of each sum of at most so many products."""
    products = []
    for cube in product((0, 1, None), repeat=num_columns):
        word = sum(
            1 << row
            for row in range(1 << num_columns)
            if all(d is None or row >> k & 1 == d for k, d in enumerate(cube))
        )
        products.append((sum(d is not None for d in cube), word))
    sums = []
    for number in range(max_products + 1):
        for chosen in combinations(products, number):
            word = 0
            for _, cover in chosen:
                word |= cover
            sums.append(((number, sum(n for n, _ in chosen)), word))
    return sums


SUMS = {5: list_sums(5, 2), 6: list_sums(6, 1)}


@settings(max_examples=effort(25, 1_000), deadline=None)
@given(noisy_tables())
def test_of_five_and_six_columns_small_sums_are_those_of_a_listing(table: tuple[int, list[tuple[int, int]]]) -> None:
    num_columns, rows = table
    zeros, ones = (sum(1 << row for row, v in set(rows) if v == value) for value in (0, 1))
    repeated = [(row, value) for row, value in rows if rows.count((row, value)) > 1]
    best: dict[tuple[int, int], list[int]] = {}
    for size, word in SUMS[num_columns]:
        errors = (zeros & word).bit_count() + (ones & ~word).bit_count()
        for row, value in set(repeated):
            errors += (rows.count((row, value)) - 1) * ((word >> row & 1) != value)
        best.setdefault(size, []).append(errors)
    expected: list[tuple[int, tuple[int, int], int]] = []
    for size in sorted(best):
        least = min(best[size])
        if not expected or least < expected[-1][0]:
            expected.append((least, size, best[size].count(least)))
    answer = front_of_sums(num_columns, count_rows(rows), num_columns)
    largest = (max(size[0] for size in best), 99)
    assert [(p.errors, p.size, len(p.sums)) for p in answer.points if p.size <= largest] == expected
    check(answer, num_columns, rows)


def check(answer: SumFront, num_columns: int, rows: list[tuple[int, int]]) -> None:
    """Count errors and sizes of all sums again, in order; the last point has the least errors of any function."""
    for point in (*answer.points, *answer.open_points):
        for cubes in point.sums:
            wrong = sum(
                value != any(all(d == 2 or row >> k & 1 == d for k, d in enumerate(cube)) for cube in cubes)
                for row, value in rows
            )
            assert (wrong, len(cubes)) == (point.errors, point.size[0])
            assert sum(d != 2 for cube in cubes for d in cube) == point.size[1]
    points = answer.points
    assert all(a.errors > b.errors and a.size < b.size for a, b in pairwise(points))
    if answer.at_least is None:
        assert points[-1].errors == sum(min(low, high) for _, low, high in count_rows(rows))


def test_a_spent_budget_leaves_proven_points_and_bounds() -> None:
    rng = np.random.default_rng(1)
    rows = [(int(row), int(rng.integers(2))) for row in rng.permutation(64)[:28]]
    exact = front_of_sums(6, count_rows(rows), 6)
    assert exact.at_least is None
    least = {p.errors: p.size for p in exact.points}
    for conflicts in (0, 10, 100):
        short = front_of_sums(6, count_rows(rows), 6, budget=Budget(conflicts))
        check(short, 6, rows)
        assert short.points == exact.points[: len(short.points)]
        assert short.at_least is not None
        assert short.open_points
        for point in short.open_points:
            assert point.size >= min(size for errors, size in least.items() if errors <= point.errors)
        assert all(size >= short.at_least for e, size in least.items() if e < short.points[-1].errors)


@pytest.mark.parametrize("max_columns", [1, 2, 4])
def test_sums_mention_at_most_so_many_columns(max_columns: int) -> None:
    rows = [(row, int(row in (7, 23, 31, 15, 16))) for row in range(32)]
    answer = front_of_sums(5, count_rows(rows), max_columns)
    expected = front(patterns_of(5, rows), "sop", max_columns, NAMES, ties=10_000)
    assert [(p.errors, p.size, len(p.sums)) for p in answer.points] == [
        (p.errors, p.size, p.num_formulas) for p in expected.points
    ]
