"""Truth tables, row by row against their definitions.

Class counts: functions of n variables up to permutation, OEIS A003180 (4, 12, 80, 3984 for n = 1..4); up to NPN
equivalence, OEIS A000370 and Harrison 1965 (2, 4, 14, 222).
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrant.dsl.errors import TableError
from calibrant.dsl.formulas.reference import evaluate
from calibrant.dsl.formulas.table import (
    MAX_TABLE_VARS,
    PartialTable,
    TruthTable,
    cofactor,
    complete,
    constant_table,
    depends_on,
    flip,
    from_formula,
    from_words,
    full_mask,
    num_rows,
    permute,
    projection,
    select,
    shrink,
    support,
)
from calibrant.dsl.formulas.text import STANDARD, Grammar, canonical_formula, parse, render, split_arguments
from tests.support.effort import examples
from tests.support.replayscm.oracles import Tree, assignments, table_bits, tree_of
from tests.support.replayscm.strategies import FULL_GRAMMAR, formula_of, partial_tables, trees, truth_tables
from tests.support.shared import shared_records

TABLES = truth_tables()
WITH_A_VARIABLE = truth_tables(min_vars=1)


def _triples() -> st.SearchStrategy[tuple[TruthTable, ...]]:
    """Three tables of equally many variables."""
    return st.integers(0, 7).flatmap(lambda n: st.tuples(*[truth_tables(min_vars=n, max_vars=n)] * 3))


def _values(table: TruthTable) -> list[bool]:
    return [table[row] for row in range(num_rows(table.num_vars))]


# --- constructors and bit order ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("digits", "num_vars", "table"),
    [
        ("a", 2, projection(0, 2)),
        ("c", 2, projection(1, 2)),
        ("8", 2, projection(0, 2) & projection(1, 2)),
        ("aa", 3, projection(0, 3)),
        ("cc", 3, projection(1, 3)),
        ("f0", 3, projection(2, 3)),
        ("e8", 3, from_formula(parse("(or (and a b) (and a c) (and b c))"), ("a", "b", "c"))),
        ("96", 3, from_formula(parse("(xor a b c)"), ("a", "b", "c"))),
        ("81", 3, from_formula(parse("(iff a b c)"), ("a", "b", "c"))),
        ("ca", 3, from_formula(parse("(if c a b)", FULL_GRAMMAR), ("b", "a", "c"))),
        ("ff00", 4, projection(3, 4)),
        ("ffffffff00000000", 6, projection(5, 6)),
        ("ffffffffffffffff0000000000000000", 7, projection(6, 7)),
        ("2", 1, projection(0, 1)),
        ("1", 0, constant_table(True, 0)),
        ("0", 3, constant_table(False, 3)),
        ("ffff", 4, constant_table(True, 4)),
    ],
)
def test_hex_facts(digits: str, num_vars: int, table: TruthTable) -> None:
    assert TruthTable(num_vars, int(digits, 16)) == table
    assert table.hex == digits.rjust(max(1, num_rows(num_vars) // 4), "0")


@pytest.mark.parametrize("num_vars", [1, 2, 3, 6, 7, 10])
def test_a_projection_is_its_variable(num_vars: int) -> None:
    for i in range(num_vars):
        table = projection(i, num_vars)
        assert all(table[row] == bool(row >> i & 1) for row in range(num_rows(num_vars)))


@given(trees(("a", "b", "c", "d"), grammar=FULL_GRAMMAR, max_size=15), st.permutations(("a", "b", "c", "d")))
@settings(deadline=None, max_examples=examples(100))
def test_the_table_of_a_formula_is_its_reference_value_in_every_row(tree: Tree, over: list[str]) -> None:
    formula = formula_of(tree)
    assert _values(from_formula(formula, over)) == [evaluate(formula, row) == 1 for row in assignments(over)]


@given(st.data(), st.sampled_from([0, 1, 5, 6, 7, 8]))
@settings(deadline=None, max_examples=examples(80))
def test_words_hold_sixty_four_rows_each(data: st.DataObject, num_vars: int) -> None:
    table = data.draw(truth_tables(min_vars=num_vars, max_vars=num_vars))
    words = table.words()
    assert words.dtype == np.uint64
    assert words.shape == (max(1, 2**num_vars // 64),)
    assert [bool(int(words[row // 64]) >> row % 64 & 1) for row in range(2**num_vars)] == _values(table)
    assert from_words(words, num_vars) == table


def test_rows_beyond_the_table_are_not_read_from_words() -> None:
    assert from_words(np.array([0xFFFF_FFFF_FFFF_FFFA], dtype=np.uint64), 2) == projection(0, 2) | TruthTable(2, 0xA)
    assert from_words(np.array([1, 1 << 63], dtype=np.uint64), 7).bits == 1 | 1 << 127


# --- algebra -----------------------------------------------------------------------------------------------------


@given(_triples())
@settings(deadline=None, max_examples=examples(120))
def test_boolean_algebra(tables: tuple[TruthTable, ...]) -> None:
    a, b, c = tables
    zero, one = constant_table(False, a.num_vars), constant_table(True, a.num_vars)
    assert (~~a, a | ~a, a & ~a) == (a, one, zero)
    assert (a & one, a | zero, a & zero, a | one) == (a, a, zero, one)
    assert (a & (a | b), a | (a & b)) == (a, a)
    assert (a & (b | c), a | (b & c)) == ((a & b) | (a & c), (a | b) & (a | c))
    assert (~(a & b), ~(a | b)) == (~a | ~b, ~a & ~b)
    assert (a ^ b, a ^ one, a ^ a, (a ^ b) ^ c) == ((a & ~b) | (~a & b), ~a, zero, a ^ (b ^ c))


@given(_triples())
@settings(deadline=None, max_examples=examples(60))
def test_the_algebra_is_that_of_each_row(tables: tuple[TruthTable, ...]) -> None:
    a, b, _ = tables
    left, right = _values(a), _values(b)
    assert _values(~a) == [not x for x in left]
    assert _values(a & b) == [x and y for x, y in zip(left, right, strict=True)]
    assert _values(a | b) == [x or y for x, y in zip(left, right, strict=True)]
    assert _values(a ^ b) == [x != y for x, y in zip(left, right, strict=True)]
    assert a.num_ones == sum(left)


@pytest.mark.parametrize(
    "make",
    [
        lambda: TruthTable(2, 0x10),
        lambda: TruthTable(2, -1),
        lambda: TruthTable(-1, 0),
        lambda: TruthTable(MAX_TABLE_VARS + 1, 0),
        lambda: projection(0, 2) & projection(0, 3),
        lambda: projection(0, 2) | projection(0, 1),
        lambda: projection(0, 2) ^ projection(0, 3),
        lambda: projection(0, 2)[4],
        lambda: projection(0, 2)[-1],
        lambda: projection(2, 2),
        lambda: projection(-1, 2),
        lambda: permute(projection(0, 2), (0, 0)),
        lambda: permute(projection(0, 2), (0,)),
        lambda: from_formula(parse("X1"), [f"X{i}" for i in range(MAX_TABLE_VARS + 1)]),
    ],
    ids=range(14),
)
def test_what_no_table_can_mean_is_refused(make: Callable[[], object]) -> None:
    with pytest.raises(TableError):
        make()


def test_the_largest_table() -> None:
    table = projection(MAX_TABLE_VARS - 1, MAX_TABLE_VARS)
    assert (table.num_ones, table[2**15 - 1], table[2**15]) == (2**15, False, True)
    assert table.words().shape == (1024,)


# --- variables ---------------------------------------------------------------------------------------------------


@given(WITH_A_VARIABLE, st.data())
@settings(deadline=None, max_examples=examples(120))
def test_cofactors_and_shannon_expansion(table: TruthTable, data: st.DataObject) -> None:
    i = data.draw(st.integers(0, table.num_vars - 1))
    low, high, x = cofactor(table, i, False), cofactor(table, i, True), projection(i, table.num_vars)
    for row in range(num_rows(table.num_vars)):
        assert low[row] == table[row & ~(1 << i)]
        assert high[row] == table[row | 1 << i]
    assert (x & high) | (~x & low) == table


@given(TABLES)
@settings(deadline=None, max_examples=examples(120))
def test_dependence_is_that_flipping_the_variable_changes_some_row(table: TruthTable) -> None:
    values = _values(table)
    changing = [
        i for i in range(table.num_vars) if any(values[row] != values[row ^ 1 << i] for row in range(len(values)))
    ]
    assert [i for i in range(table.num_vars) if depends_on(table, i)] == changing
    assert support(table) == tuple(changing)


@given(truth_tables(max_vars=3), st.lists(st.integers(0, 5), min_size=3, max_size=3, unique=True))
@settings(deadline=None, max_examples=examples(100))
def test_shrink_finds_the_function_inside_a_larger_table(small: TruthTable, places: list[int]) -> None:
    kept = sorted(places[: small.num_vars])
    large = TruthTable(
        6, sum(small[sum((row >> place & 1) << i for i, place in enumerate(kept))] << row for row in range(64))
    )
    assert select(large, kept) == small
    core, variables = shrink(large)
    assert set(variables) <= set(kept)
    assert (core, support(core)) == (select(large, variables), tuple(range(core.num_vars)))
    for row in range(64):
        assert large[row] == core[sum((row >> variable & 1) << i for i, variable in enumerate(variables))]


@given(TABLES, st.data())
@settings(deadline=None, max_examples=examples(100))
def test_select_fixes_the_other_variables_to_zero(table: TruthTable, data: st.DataObject) -> None:
    chosen = data.draw(st.lists(st.integers(0, max(0, table.num_vars - 1)), unique=True, max_size=table.num_vars))
    selected = select(table, chosen)
    for row, bits in enumerate(product((0, 1), repeat=len(chosen))):
        values = dict(zip(chosen, reversed(bits), strict=True))
        assert selected[row] == table[sum(values.get(i, 0) << i for i in range(table.num_vars))]


@given(TABLES, st.data())
@settings(deadline=None, max_examples=examples(100))
def test_permuting_moves_variables(table: TruthTable, data: st.DataObject) -> None:
    order = data.draw(st.permutations(range(table.num_vars)))
    permuted = permute(table, order)
    for row in range(num_rows(table.num_vars)):
        assert permuted[row] == table[sum((row >> i & 1) << order[i] for i in range(table.num_vars))]
    inverse = sorted(range(table.num_vars), key=order.__getitem__)
    assert permute(permuted, inverse) == table


@given(WITH_A_VARIABLE, st.data())
@settings(deadline=None, max_examples=examples(100))
def test_flipping_negates_one_variable(table: TruthTable, data: st.DataObject) -> None:
    i = data.draw(st.integers(0, table.num_vars - 1))
    flipped = flip(table, i)
    assert _values(flipped) == [table[row ^ 1 << i] for row in range(num_rows(table.num_vars))]
    assert flip(flipped, i) == table


# --- Partial tables against what they say about each row -------------------------------------------------------------


def _observed(partial: PartialTable) -> dict[int, bool]:
    """Row -> value, for the rows that were seen."""
    rows = range(num_rows(partial.num_vars))
    return {row: bool(partial.value >> row & 1) for row in rows if partial.care >> row & 1}


@given(partial_tables(max_vars=3))
@settings(deadline=None, max_examples=examples(60))
def test_open_rows_count_the_functions_that_agree(partial: PartialTable) -> None:
    functions = [TruthTable(partial.num_vars, bits) for bits in range(full_mask(partial.num_vars) + 1)]
    agreeing = [f for f in functions if all(f[row] == value for row, value in _observed(partial).items())]
    assert [f for f in functions if partial.agrees(f)] == agreeing
    assert len(agreeing) == 2**partial.num_open


def test_a_complete_table_admits_one_function() -> None:
    majority = TruthTable(3, 0xE8)
    assert (complete(majority).num_open, complete(majority).agrees(majority)) == (0, True)
    assert not complete(majority).agrees(~majority)
    assert PartialTable(3, 0, 0).num_open == 8


# --- Representatives under permutation and negation, and the published normal form of formulas ------------------------


# --- orbits, enumerated on rows and knowing nothing of the module under test -----------------------------------------


# --- the published normal form -----------------------------------------------------------------------------------

NAMES = ("X1", "X2", "X10")
SOME_TREES = trees(NAMES, grammar=FULL_GRAMMAR, max_size=18)
REDUNDANT_TREES = trees(("X1", "X2"), grammar=Grammar(allow_constants=True), max_size=24)


@given(SOME_TREES | REDUNDANT_TREES)
@settings(deadline=None, max_examples=examples(200))
def test_the_normal_form_means_the_same(tree: Tree) -> None:
    assert table_bits(tree_of(canonical_formula(formula_of(tree))), NAMES) == table_bits(tree, NAMES)


@given(SOME_TREES | REDUNDANT_TREES)
@settings(deadline=None, max_examples=examples(300))
def test_the_normal_form_is_its_own_normal_form(tree: Tree) -> None:
    once = canonical_formula(formula_of(tree))
    assert canonical_formula(once) == once


def test_the_normal_form_of_every_published_vector() -> None:
    legal = [vector for vector in shared_records("dsl_vectors.jsonl") if vector["expect"]["ok"]]
    assert len(legal) == 291
    for vector in legal:
        operators = tuple(name.strip() for name in vector["allowedOperators"])
        formula = canonical_formula(parse(vector["expression"], Grammar(operators, vector["allowConstants"])))
        assert render(formula) == vector["expect"]["canonicalFYI"], vector["id"]
        assert formula.size == vector["expect"]["canonicalAstSizeFYI"], vector["id"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [  # the published generator's rules
        ("(not (not X1))", "X1"),
        ("(and X10 (and X2 X1))", "(and X1 X2 X10)"),
        ("(or X1 X1)", "X1"),
        ("(xor X1 X2 X1)", "X2"),
        ("(xor X1 X1)", "0"),
        ("(iff X1 X1 X2)", "(iff X1 X2)"),
        ("(iff X1 X1)", "1"),
        ("(iff X1 0 1)", "0"),
        ("(iff X1 1)", "(iff X1 1)"),
        ("(iff X1 (iff X2 X10))", "(iff X1 (iff X2 X10))"),
        ("(not (xor X1 X2))", "(not (xor X1 X2))"),
        ("(not (and X1 X2))", "(not (and X1 X2))"),
        ("(and 1 X1)", "X1"),
        ("(or (not X2) (and X2 X1) X1)", "(or X1 (and X1 X2) (not X2))"),
    ],
)
def test_the_rules_one_by_one(text: str, expected: str) -> None:
    assert render(canonical_formula(parse(text, Grammar(STANDARD.operators, allow_constants=True)))) == expected


@given(SOME_TREES)
@settings(deadline=None, max_examples=examples(60))
def test_arguments_are_split_where_they_were_joined(tree: Tree) -> None:
    expected = [formula_of(argument).nodes for argument in tree[1]] if isinstance(tree, tuple) else []
    assert split_arguments(formula_of(tree).nodes) == expected
