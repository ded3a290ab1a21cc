"""Representatives under permutation and negation, and the published normal form of formulas.

Class counts: functions of n variables up to permutation, OEIS A003180 (4, 12, 80, 3984 for n = 1..4); up to NPN
equivalence, OEIS A000370 and Harrison 1965 (2, 4, 14, 222).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import permutations, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrant.dsl.formulas.table import Transform, TruthTable, full_mask, npn_representative, p_representative
from calibrant.dsl.formulas.text import STANDARD, Grammar, canonical_formula, parse, render, split_arguments
from tests.support.effort import examples
from tests.support.replayscm.oracles import Tree, table_bits, tree_of
from tests.support.replayscm.strategies import FULL_GRAMMAR, formula_of, trees, truth_tables
from tests.support.shared import shared_records

Representative = Callable[[TruthTable], tuple[TruthTable, Transform]]
RowMap = tuple[int, ...]


# --- orbits, enumerated on rows and knowing nothing of the module under test -----------------------------------------


def _row_maps(num_vars: int, negations: range) -> list[RowMap]:
    """Where each row goes when variables are permuted, after some were negated."""
    rows = range(1 << num_vars)
    return [
        tuple(sum((row >> i & 1) << order[i] for i in range(num_vars)) ^ negated for row in rows)
        for order in permutations(range(num_vars))
        for negated in negations
    ]


def _images(bits: int, row_maps: list[RowMap]) -> set[int]:
    ones = [row for row in range(len(row_maps[0])) if bits >> row & 1]
    return {sum(1 << row_map[row] for row in ones) for row_map in row_maps}


def _p_orbit(num_vars: int) -> Callable[[int], set[int]]:
    row_maps = _row_maps(num_vars, range(1))
    return lambda bits: _images(bits, row_maps)


def _npn_orbit(num_vars: int) -> Callable[[int], set[int]]:
    row_maps = _row_maps(num_vars, range(1 << num_vars))
    return lambda bits: _images(bits, row_maps) | _images(bits ^ full_mask(num_vars), row_maps)


def _orbits(num_vars: int, orbit: Callable[[int], set[int]]) -> Iterator[set[int]]:
    unmarked = set(range(full_mask(num_vars) + 1))
    while unmarked:
        members = orbit(next(iter(unmarked)))
        unmarked -= members
        yield members


P_CLASSES = {0: 2, 1: 4, 2: 12, 3: 80, 4: 3984}
NPN_CLASSES = {0: 1, 1: 2, 2: 4, 3: 14, 4: 222}
KINDS: dict[str, tuple[Representative, Callable[[int], Callable[[int], set[int]]], dict[int, int]]] = {
    "p": (p_representative, _p_orbit, P_CLASSES),
    "npn": (npn_representative, _npn_orbit, NPN_CLASSES),
}


@pytest.mark.parametrize(("kind", "num_vars"), list(product(KINDS, range(4))))
def test_members_of_an_orbit_share_its_smallest_table(kind: str, num_vars: int) -> None:
    """Exhaustive up to three variables."""
    representative, orbit, classes = KINDS[kind]
    found = {bits: representative(TruthTable(num_vars, bits))[0].bits for bits in range(full_mask(num_vars) + 1)}
    orbits = list(_orbits(num_vars, orbit(num_vars)))
    assert len(orbits) == classes[num_vars]
    assert len(set(found.values())) == classes[num_vars]
    for members in orbits:
        assert {found[bits] for bits in members} == {min(members)}


@pytest.mark.parametrize("kind", KINDS)
def test_the_classes_of_four_variables(kind: str) -> None:
    """One member of every orbit has been asked; the representatives number the classes."""
    representative, orbit, classes = KINDS[kind]
    orbits = list(_orbits(4, orbit(4)))
    assert len(orbits) == classes[4]
    for members in orbits:
        assert representative(TruthTable(4, max(members)))[0].bits == min(members)


@given(truth_tables(max_vars=4), st.sampled_from(sorted(KINDS)))
@settings(deadline=None, max_examples=examples(40))
def test_the_transform_leads_there_and_back(table: TruthTable, kind: str) -> None:
    representative, transform = KINDS[kind][0](table)
    assert transform.forward(table) == representative
    assert transform.backward(representative) == table
    if kind == "p":
        assert (transform.negated_inputs, transform.negated_output) == (0, False)


@given(truth_tables(min_vars=4, max_vars=4), st.data())
@settings(deadline=None, max_examples=examples(20))
def test_two_members_of_an_orbit_have_one_representative(table: TruthTable, data: st.DataObject) -> None:
    member = data.draw(st.sampled_from(sorted(_npn_orbit(4)(table.bits))))
    assert npn_representative(TruthTable(4, member))[0] == npn_representative(table)[0]


@given(truth_tables(max_vars=5), st.data())
@settings(deadline=None, max_examples=examples(80))
def test_a_transform_means_what_it_says(table: TruthTable, data: st.DataObject) -> None:
    num_vars = table.num_vars
    order = tuple(data.draw(st.permutations(range(num_vars))))
    transform = Transform(order, data.draw(st.integers(0, (1 << num_vars) - 1)), data.draw(st.booleans()))
    image = transform.forward(table)
    for row in range(1 << num_vars):
        source = sum((row >> i & 1) << order[i] for i in range(num_vars)) ^ transform.negated_inputs
        assert image[row] == (table[source] != transform.negated_output)
    assert transform.backward(image) == table


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
