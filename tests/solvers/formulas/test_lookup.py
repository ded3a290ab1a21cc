"""Least sizes of small functions: the shipped table, the enumeration behind it, and the formulas built from them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrant.dsl.errors import TableError
from calibrant.dsl.formulas.formula import STANDARD_OPERATORS
from calibrant.dsl.formulas.table import from_formula, full_mask, projection
from calibrant.solvers.formulas import catalogue as catalogues
from calibrant.solvers.formulas._kernels_synthesis import find_best_match, find_first_match
from calibrant.solvers.formulas.catalogue import Catalogue, build_catalogue, catalogue, plain_changes
from calibrant.solvers.formulas.synthesis import NOT_EXPRESSIBLE, formula_of, least_sizes
from tests.support.effort import effort, examples
from tests.support.replayscm import brute_force as oracles_synthesis

NAMES = ("a", "b", "c", "d", "e", "f")
SUBSETS = [chosen for size in range(6) for chosen in combinations(STANDARD_OPERATORS, size)]


def enumerated(num_vars: int, operators: Sequence[str], limit: int) -> dict[int, int]:
    atoms = [projection(index, num_vars).bits for index in range(num_vars)]
    return oracles_synthesis.least_sizes(atoms, full_mask(num_vars), operators, limit)


def listed(functions: Catalogue, limit: int) -> dict[int, int]:
    count = int(functions.ends[min(limit, functions.max_size)])
    return dict(zip(functions.words[:count].tolist(), functions.sizes[:count].tolist(), strict=True))


# --- sizes ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("num_vars", [4, 5, 6])
def test_the_shipped_orbits_are_what_the_enumeration_gives(num_vars: int) -> None:
    shipped = catalogue(num_vars)
    rebuilt = build_catalogue(num_vars, STANDARD_OPERATORS, max_size=catalogues.MAX_SIZES.get(num_vars))
    for name in ("words", "sizes", "rooted", "ends"):
        np.testing.assert_array_equal(getattr(shipped, name), getattr(rebuilt, name), name)


@pytest.mark.parametrize("num_vars", [1, 2, 3])
def test_fewer_variables_are_read_off_four(num_vars: int) -> None:
    derived, rebuilt = catalogue(num_vars), build_catalogue(num_vars, STANDARD_OPERATORS)
    for name in ("words", "sizes", "rooted", "ends"):
        np.testing.assert_array_equal(getattr(derived, name), getattr(rebuilt, name), name)


def test_all_functions_of_three_variables_agree_with_naive_enumeration() -> None:
    sizes = enumerated(3, STANDARD_OPERATORS, 9)
    assert len(sizes) == 256
    assert listed(catalogue(3), 255) == sizes


def test_functions_of_four_variables_agree_with_naive_enumeration() -> None:
    """60,291 of them have at most 12 nodes, so every other one is larger."""
    sizes = enumerated(4, STANDARD_OPERATORS, 12)
    table = least_sizes()
    assert len(sizes) == 60291
    assert {bits: int(table[bits]) for bits in sizes} == sizes
    assert {int(size) for bits, size in enumerate(table) if bits not in sizes} == {13, 14}


@pytest.mark.parametrize(("num_vars", "limit"), [(5, 9), (6, 8)])
def test_functions_of_more_variables_agree_with_naive_enumeration(num_vars: int, limit: int) -> None:
    assert listed(catalogue(num_vars), limit) == enumerated(num_vars, STANDARD_OPERATORS, limit)


@pytest.mark.parametrize("operators", SUBSETS, ids=" ".join)
def test_other_operators_agree_with_naive_enumeration(operators: tuple[str, ...]) -> None:
    for num_vars, limit in ((2, 9), (3, 7), (4, 4)):
        assert listed(catalogue(num_vars, operators), limit) == enumerated(num_vars, operators, limit)


def test_what_has_no_formula_says_so() -> None:
    sizes = least_sizes(["and", "or"])
    assert int(np.sum(sizes != NOT_EXPRESSIBLE)) == 166  # monotone functions but the constants, OEIS A000372
    assert sizes[0x8000] == 5
    assert sizes[0x6666] == NOT_EXPRESSIBLE


def test_a_pool_that_is_too_small_grows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(catalogues.CAPACITIES, 5, 10)
    small, large = build_catalogue(5, STANDARD_OPERATORS, max_size=7), catalogue(5)
    assert listed(small, 7) == listed(large, 7)
    np.testing.assert_array_equal(small.rooted, large.rooted[: len(small.rooted)])


@pytest.mark.parametrize("num_vars", range(1, 6))
def test_plain_changes_meet_every_permutation(num_vars: int) -> None:
    items = list(range(num_vars))
    met = [tuple(items)]
    for index in plain_changes(num_vars):
        items[index], items[index + 1] = items[index + 1], items[index]
        met.append(tuple(items))
    assert sorted(met) == list(permutations(range(num_vars)))


# --- order ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("num_vars", range(1, 7))
def test_the_order_is_by_size_then_table(num_vars: int) -> None:
    functions = catalogue(num_vars)
    sizes, words = functions.sizes.astype(np.int64), functions.words
    assert bool(np.all((np.diff(sizes) > 0) | ((np.diff(sizes) == 0) & (words[1:] > words[:-1]))))
    np.testing.assert_array_equal(functions.ends, [np.sum(sizes <= size) for size in range(functions.max_size + 1)])


@settings(deadline=None, max_examples=examples(100))
@given(st.data())
def test_the_first_match_is_the_smallest_function_that_agrees(data: st.DataObject) -> None:
    functions = catalogue(data.draw(st.integers(1, 4)))
    full = full_mask(functions.num_vars)
    care, start = data.draw(st.integers(0, full)), data.draw(st.integers(0, len(functions.words)))
    value, keep, flip = (data.draw(st.integers(0, full)) for _ in range(3))
    limit = data.draw(st.integers(start, len(functions.words)))
    agreeing = [i for i, word in enumerate(functions.words[:limit].tolist()) if (word ^ value) & care == 0]
    word_care, word_value = np.uint64(care), np.uint64(value & care)
    assert find_first_match(functions.words, word_care, word_value, limit) == (agreeing[0] if agreeing else -1)
    scored = [((int(functions.words[i]) & keep) ^ flip, i) for i in agreeing if i >= start]
    best = find_best_match(functions.words, start, limit, word_care, word_value, np.uint64(keep), np.uint64(flip))
    assert best == (min(scored)[1] if scored else -1)


# --- formulas -------------------------------------------------------------------------------------------------------


@pytest.mark.soak
def test_every_function_of_four_variables_gets_a_formula_of_its_size() -> None:
    """All of at most six nodes, and every 61st of the larger ones; all of them in a soak."""
    table = least_sizes()
    asked = [bits for bits in range(1 << 16) if table[bits] <= 6 or bits % effort(61, 1) == 0]
    wrong = []
    for bits in asked:
        formula = formula_of(bits, NAMES[:4])
        if from_formula(formula, NAMES[:4]).bits != bits or formula.size != table[bits]:
            wrong.append(bits)
    assert wrong == []
    assert {int(table[bits]) for bits in asked} == set(range(1, 15))


@pytest.mark.parametrize(
    ("bits", "num_vars", "text"),
    [
        (0xA, 2, "a"),
        (0x0, 2, "(xor a a)"),
        (0xF, 2, "(iff a a)"),
        (0x3, 2, "(not b)"),
        (0x7, 2, "(not (and a b))"),
        (0xD, 2, "(or b (not a))"),
        (0xE0, 3, "(and c (or a b))"),
        (0x81, 3, "(iff a b c)"),
        (0x69, 3, "(not (xor a b c))"),
        (0x80000000, 5, "(and a b c d e)"),
        (0x8000000000000001, 6, "(iff a b c d e f)"),
    ],
)
def test_formulas_follow_the_stated_rule(bits: int, num_vars: int, text: str) -> None:
    assert str(formula_of(bits, NAMES[:num_vars])) == text


@pytest.mark.parametrize("operators", [("not", "and"), ("xor", "and"), ("iff",), ("or", "and")], ids=" ".join)
def test_formulas_use_the_operators_asked_for(operators: tuple[str, ...]) -> None:
    functions = catalogue(3, operators)
    for word, size in zip(functions.words.tolist(), functions.sizes.tolist(), strict=True):
        formula = formula_of(word, NAMES[:3], operators=operators)
        assert (from_formula(formula, NAMES[:3]).bits, formula.size) == (word, size)
        assert set(formula.operator_counts) <= set(operators)


def test_a_function_without_a_formula_is_refused() -> None:
    with pytest.raises(TableError, match="0x6 over 2 variables has no formula over and, or of size <= 3"):
        formula_of(0x6, ("a", "b"), operators=("or", "and"))


def test_what_is_not_supported_is_refused() -> None:
    with pytest.raises(ValueError, match=r"'if'.*supports not, and, or, xor, iff"):
        catalogue(3, ("if", "and"))
    with pytest.raises(ValueError, match="7 variables; it supports 0 to 6"):
        catalogue(7)
