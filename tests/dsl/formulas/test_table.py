"""Truth tables, row by row against their definitions.

Class counts: functions of n variables up to permutation, OEIS A003180 (4, 12, 80, 3984 for n = 1..4); up to NPN
equivalence, OEIS A000370 and Harrison 1965 (2, 4, 14, 222).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrant.dsl.errors import ContradictionError, TableError
from calibrant.dsl.formulas.reference import evaluate
from calibrant.dsl.formulas.table import (
    MAX_TABLE_VARS,
    PartialTable,
    Transform,
    TruthTable,
    cofactor,
    complete,
    constant_table,
    depends_on,
    flip,
    from_formula,
    from_hex,
    from_rows,
    from_words,
    full_mask,
    nothing_known,
    npn_representative,
    num_rows,
    p_representative,
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
    assert from_hex(digits, num_vars) == table
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
    assert from_words(np.array([0xFFFF_FFFF_FFFF_FFFA], dtype=np.uint64), 2) == projection(0, 2) | from_hex("a", 2)
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


@given(st.integers(0, 4).flatmap(lambda n: st.tuples(*[partial_tables(min_vars=n, max_vars=n)] * 2)))
@settings(deadline=None, max_examples=examples(150))
def test_merging_unites_evidence_or_names_the_first_clash(pair: tuple[PartialTable, ...]) -> None:
    one, other = pair
    first, second = _observed(one), _observed(other)
    clashes = [row for row in sorted(first) if second.get(row, first[row]) != first[row]]
    if clashes:
        with pytest.raises(ContradictionError) as caught:
            one.merge(other)
        assert caught.value.row == clashes[0]
    else:
        assert _observed(one.merge(other)) == first | second
        assert one.merge(other) == other.merge(one)


@given(truth_tables(max_vars=4), st.data())
@settings(deadline=None, max_examples=examples(80))
def test_evidence_from_a_function_agrees_with_it(table: TruthTable, data: st.DataObject) -> None:
    rows = data.draw(st.lists(st.integers(0, num_rows(table.num_vars) - 1), max_size=12))
    pairs = [([row >> i & 1 == 1 for i in range(table.num_vars)], table[row]) for row in rows]
    partial = from_rows(pairs, table.num_vars)
    assert _observed(partial) == {row: table[row] for row in rows}
    assert partial.agrees(table)
    assert complete(table).merge(partial) == complete(table)
    assert nothing_known(table.num_vars).merge(partial) == partial
    if rows:
        inputs, output = pairs[0]
        with pytest.raises(ContradictionError) as caught:
            from_rows([*pairs, (inputs, not output)], table.num_vars)
        assert caught.value.row == rows[0]


def test_a_complete_table_admits_one_function() -> None:
    majority = from_hex("e8", 3)
    assert (complete(majority).num_open, complete(majority).agrees(majority)) == (0, True)
    assert not complete(majority).agrees(~majority)
    assert nothing_known(3).num_open == 8


@pytest.mark.parametrize(
    "make",
    [
        lambda: complete(projection(0, 2)).agrees(projection(0, 3)),
        lambda: nothing_known(2).merge(nothing_known(3)),
        lambda: PartialTable(2, 0x10, 0),
        lambda: PartialTable(2, -1, 0),
        lambda: PartialTable(2, 0b01, 0b10),
        lambda: PartialTable(MAX_TABLE_VARS + 1, 0, 0),
        lambda: from_rows([((False, False, True), True)], 2),
    ],
    ids=range(7),
)
def test_what_no_partial_table_can_mean_is_refused(make: Callable[[], object]) -> None:
    with pytest.raises(TableError):
        make()


# --- Representatives under permutation and negation, and the published normal form of formulas ------------------------
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
