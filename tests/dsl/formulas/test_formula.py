"""Formulas, their fold and the operator table, against nested tuples that are evaluated recursively."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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
from calibrant.dsl.text import is_name, natural_key
from tests.support.effort import examples
from tests.support.replayscm.oracles import (
    FEWEST_ARGUMENTS,
    MOST_ARGUMENTS,
    Tree,
    table_bits,
    tree_depth,
    tree_nodes,
    tree_of,
    truth,
)
from tests.support.replayscm.strategies import FULL_GRAMMAR, NAMES, formula_of, trees

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
