"""Formulas, their fold and operators, against nested tuples; truth tables, row by row against their definitions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrant.dsl.errors import TableError
from calibrant.dsl.formulas.formula import (
    OPERATORS,
    STANDARD_OPERATORS,
    Apply,
    Formula,
    Operator,
    apply,
    constant,
    fold,
    rename,
    var,
)
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
    pack_bits,
    permute,
    projection,
    select,
    shrink,
    support,
    unpack_bits,
)
from calibrant.dsl.formulas.text import STANDARD, Grammar, canonical_formula, parse, render, split_arguments
from calibrant.dsl.text import is_name, natural_key
from tests.support.effort import examples
from tests.support.replayscm.brute_force import (
    FEWEST_ARGUMENTS,
    MOST_ARGUMENTS,
    Tree,
    assignments,
    table_bits,
    tree_depth,
    tree_nodes,
    tree_of,
    truth,
)
from tests.support.replayscm.strategies import FULL_GRAMMAR, NAMES, formula_of, partial_tables, trees, truth_tables
from tests.support.shared import shared_records

# --- Formulas, their fold and the operator table, against nested tuples that are evaluated recursively ----------------
SOME_NAMES = ("X1", "X2", "X3", "Y")
SOME_TREES = trees(SOME_NAMES, grammar=FULL_GRAMMAR, max_size=20)
EXHAUSTIVE_ARITY = 5


@given(SOME_TREES)
@settings(deadline=None, max_examples=examples(150))
def test_measures_are_those_of_the_tree(tree: Tree) -> None:
    formula = formula_of(tree)
    nodes = list(tree_nodes(tree))
    operators = [node[0] for node in nodes if isinstance(node, tuple)]
    assert formula.size == len(nodes)
    assert formula.depth == tree_depth(tree)
    assert formula.mentioned == {node for node in nodes if isinstance(node, str)}
    assert list(formula.variables) == [name for name in SOME_NAMES if name in formula.mentioned]
    assert formula.operator_counts == {operator: operators.count(operator) for operator in operators}


@given(SOME_TREES)
@settings(deadline=None, max_examples=examples(100))
def test_fold_sees_every_argument_in_its_place(tree: Tree) -> None:
    def rebuilt(node: Apply, arguments: object) -> Tree:
        assert isinstance(arguments, list)
        return (node.operator, tuple(arguments))

    assert fold(formula_of(tree), lambda atom: atom, rebuilt) == tree
    assert tree_of(formula_of(tree)) == tree


@given(SOME_TREES)
@settings(deadline=None, max_examples=examples(150))
def test_evaluation_on_bit_vectors_is_evaluation_in_every_row(tree: Tree) -> None:
    rows = range(1 << len(SOME_NAMES))
    columns = {name: sum((r >> i & 1) << r for r in rows) for i, name in enumerate(SOME_NAMES)}
    mask = (1 << len(rows)) - 1
    assert formula_of(tree).evaluate(columns.__getitem__, mask) == table_bits(tree, SOME_NAMES)


def test_depth_costs_no_stack() -> None:
    formula = var("X1")
    for _ in range(3_000):
        formula = apply("not", [formula])
    assert (formula.size, formula.depth) == (3_001, 3_001)
    assert formula.evaluate({"X1": 0b01}.__getitem__, 0b11) == 0b01


def _arities(operator: Operator) -> range:
    return range(operator.min_arity, (operator.max_arity or EXHAUSTIVE_ARITY) + 1)


@pytest.mark.parametrize("operator", OPERATORS.values(), ids=lambda operator: operator.name)
def test_both_rules_of_an_operator_say_what_the_specification_says(operator: Operator) -> None:
    for arity in _arities(operator):
        rows = list(product((0, 1), repeat=arity))
        columns = [sum(row[i] << r for r, row in enumerate(rows)) for i in range(arity)]
        packed = operator.bits(columns, (1 << len(rows)) - 1)
        for r, row in enumerate(rows):
            expected = truth(operator.name, row)
            assert operator.truth([bit == 1 for bit in row]) == expected, (operator.name, row)
            assert packed >> r & 1 == expected, (operator.name, row)
        assert packed >> len(rows) == 0


def test_the_table_lists_the_operators_of_the_specification() -> None:
    assert set(OPERATORS) == {"not", "and", "or", "xor", "iff", "if"}
    assert set(OPERATORS) - set(STANDARD_OPERATORS) == {"if"}  # it must be listed to be legal
    assert {name: op.min_arity for name, op in OPERATORS.items()} == FEWEST_ARGUMENTS
    assert {name: op.max_arity for name, op in OPERATORS.items()} == MOST_ARGUMENTS
    assert all(op.name == name and op.cost == 1 for name, op in OPERATORS.items())
    assert sorted(op.code for op in OPERATORS.values()) == list(range(len(OPERATORS)))


@pytest.mark.parametrize(("operator", "count"), [*product(("and", "or", "xor", "iff"), (0, 1)), ("not", 0)])
def test_too_few_arguments_are_refused(operator: str, count: int) -> None:
    with pytest.raises(ValueError, match=f"'{operator}' takes .* got {count}"):
        apply(operator, [var("X1")] * count)


@pytest.mark.parametrize(("operator", "count"), [("not", 2), ("if", 2), ("if", 4)])
def test_a_fixed_number_of_arguments_is_exact(operator: str, count: int) -> None:
    with pytest.raises(ValueError, match=f"'{operator}' takes exactly .* got {count}"):
        apply(operator, [var("X1")] * count)


@pytest.mark.parametrize(
    ("fewest", "most", "wording"),
    [
        (1, 1, "exactly 1 argument"),
        (3, 3, "exactly 3 arguments"),
        (2, None, "2 or more arguments"),
        (1, 2, "1 to 2 arguments"),
    ],
)
def test_arity_in_words(fewest: int, most: int | None, wording: str) -> None:
    assert replace(OPERATORS["and"], min_arity=fewest, max_arity=most).arity_text == wording


def test_formulas_are_values() -> None:
    assert apply("and", [var("X1"), constant(True)]) == Formula(("X1", True, Apply("and", 2)))
    assert len({var("X1"), var("X1"), constant(True), constant(False), var("X2")}) == 4
    assert var("X1") != var("x1")
    assert str(apply("iff", [var("X1"), apply("not", [var("X2")]), constant(False)])) == "(iff X1 (not X2) 0)"


@given(SOME_TREES, st.permutations(SOME_NAMES))
@settings(deadline=None, max_examples=examples(80))
def test_renaming_changes_nothing_but_names(tree: Tree, targets: list[str]) -> None:
    mapping = dict(zip(SOME_NAMES, targets, strict=True))
    renamed = rename(formula_of(tree), mapping.__getitem__)
    over = [mapping[name] for name in SOME_NAMES]
    assert table_bits(tree_of(renamed), over) == table_bits(tree, SOME_NAMES)
    assert set(renamed.variables) == {mapping[name] for name in formula_of(tree).variables}


def test_natural_order_counts() -> None:
    digits = "X" + "1" * 5_000  # too many for a number: sorted as text, after the numbered ones
    mixed = ["alarm", "X10", "X2", digits, "X1", "_z", "Y", "X", "X02", "XX1"]
    assert sorted(mixed, key=natural_key) == ["X1", "X02", "X2", "X10", "X", digits, "XX1", "Y", "_z", "alarm"]


@pytest.mark.parametrize("token", ["", "0", "1X", "X-1", "X1,", "é", "X\u0661", "X1\n", " X1", "X 1", "(", "\ud800"])
def test_what_is_not_a_name(token: str) -> None:
    assert not is_name(token)


@pytest.mark.parametrize("token", [*NAMES, "_", "x", "A0_b"])
def test_what_is_a_name(token: str) -> None:
    assert is_name(token)


# --- Truth tables, row by row against their definitions ---------------------------------------------------------------
# Class counts: functions of n variables up to permutation, OEIS A003180 (4, 12, 80, 3984 for n = 1..4); up to NPN
# equivalence, OEIS A000370 and Harrison 1965 (2, 4, 14, 222).
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
    assert a.bits.bit_count() == sum(left)


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
    assert (table.bits.bit_count(), table[2**15 - 1], table[2**15]) == (2**15, False, True)
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


# --- the published normal form -----------------------------------------------------------------------------------

TABLE_NAMES = ("X1", "X2", "X10")
TABLE_TREES = trees(TABLE_NAMES, grammar=FULL_GRAMMAR, max_size=18)
REDUNDANT_TREES = trees(("X1", "X2"), grammar=Grammar(allow_constants=True), max_size=24)


@given(TABLE_TREES | REDUNDANT_TREES)
@settings(deadline=None, max_examples=examples(200))
def test_the_normal_form_means_the_same(tree: Tree) -> None:
    assert table_bits(tree_of(canonical_formula(formula_of(tree))), TABLE_NAMES) == table_bits(tree, TABLE_NAMES)


@given(TABLE_TREES | REDUNDANT_TREES)
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


@given(TABLE_TREES)
@settings(deadline=None, max_examples=examples(60))
def test_arguments_are_split_where_they_were_joined(tree: Tree) -> None:
    expected = [formula_of(argument).nodes for argument in tree[1]] if isinstance(tree, tuple) else []
    assert split_arguments(formula_of(tree).nodes) == expected


@given(st.lists(st.integers(0, 3), max_size=200))
def test_flags_are_bits_and_back(flags: list[int]) -> None:
    bits = pack_bits(np.array(flags, np.int64))
    assert bits == sum(1 << i for i, flag in enumerate(flags) if flag)
    assert unpack_bits(bits, len(flags)).tolist() == [flag != 0 for flag in flags]
