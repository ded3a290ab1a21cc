"""Partial tables against what they say about each row."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrant.dsl.errors import ContradictionError, TableError
from calibrant.dsl.formulas.table import (
    MAX_TABLE_VARS,
    PartialTable,
    TruthTable,
    complete,
    from_hex,
    from_rows,
    full_mask,
    nothing_known,
    num_rows,
    projection,
)
from tests.support.effort import examples
from tests.support.replayscm.strategies import partial_tables, truth_tables


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
