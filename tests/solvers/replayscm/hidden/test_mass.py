"""Grouped masses against plain sums over columns, on random items and on the shared vectors."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import partial
from random import Random
from time import process_time

import numpy as np
import pytest

from calibrant.dsl.formulas.text import STANDARD
from calibrant.dsl.replayscm.disclosure import HiddenOrder
from calibrant.dsl.replayscm.extensions.extension import MechanismClass, Prior
from calibrant.dsl.replayscm.extensions.reference import EvidenceWorld
from calibrant.solvers.outcome import BudgetSpent
from calibrant.solvers.replayscm.hidden import columns as signatures
from calibrant.solvers.replayscm.hidden import mass
from calibrant.solvers.replayscm.hidden import mass as meanings
from calibrant.solvers.replayscm.hidden.columns import joint_columns, num_agreeing, signature_weights, unique_rows
from calibrant.solvers.replayscm.hidden.mass import (
    best_fitting_columns,
    column_groups,
    columns_by_fit,
    count_meanings,
    count_members,
    feasible_columns,
    grouped_mass,
    list_members,
)
from calibrant.solvers.replayscm.noise.best_map import _best_value
from calibrant.solvers.replayscm.noise.posterior import Posterior
from tests.support.effort import effort
from tests.support.replayscm.extensions import (
    check_members,
    check_query,
    frontier_vectors,
    random_class,
    random_member,
    random_worlds,
    vector_posterior,
)

SHAPES = [(4, 1, 2, 2), (5, 1, 2, 3), (4, 2, 2, 2), (5, 2, 2, 1), (4, 1, 2, None), (5, 1, 3, 2), (5, 1, 3, 4)]
PER_SHAPE = 12  # 84 items in all: hidden-order and ordered, both priors


@pytest.mark.parametrize(("observed", "hidden", "max_parents", "stated"), SHAPES)
def test_grouped_is_ungrouped(observed: int, hidden: int, max_parents: int, stated: int | None) -> None:
    rng = Random(f"{observed} {hidden} {max_parents} {stated}")
    grouped_items = 0
    for _ in range(PER_SHAPE):
        scm_class = random_class(rng, observed, num_hidden=hidden, max_parents=max_parents, stated=stated)
        worlds = random_worlds(rng, scm_class, random_member(rng, scm_class), rng.randint(0, 4), rng.randint(1, 4))
        posterior = Posterior(scm_class).condition(*worlds)
        result = grouped_mass(posterior)
        assert result.mass == posterior.mass > 0
        grouped_items += result.num_sums < result.num_columns
    assert grouped_items or stated == 1  # one parent has a single column


@pytest.mark.parametrize(("observed", "hidden", "stated"), [(5, 1, 3), (5, 2, 2), (4, 1, None)])
def test_sums_in_words_are_sums_of_integers(observed: int, hidden: int, stated: int | None) -> None:
    rng = Random(f"words {observed} {hidden}")
    for _ in range(5):
        scm_class = random_class(rng, observed, num_hidden=hidden, stated=stated)
        worlds = random_worlds(rng, scm_class, random_member(rng, scm_class), rng.randint(0, 3), rng.randint(1, 4))
        posterior = Posterior(scm_class).condition(*worlds)
        for part in column_groups(posterior):
            expected = {key: part.partial_sum(key, rows) for key, rows in part.groups.items()}
            assert part.group_totals == expected
            for key, rows in part.groups.items():
                assert part.row_totals(key) == [(row, part.partial_sum(key, [row])) for row in rows]
            for row, column in zip(*np.unique(part.row_of_column, return_index=True), strict=True):
                (term,) = posterior.column_terms(part.hidden_columns(int(column)))
                assert part.row_weights(int(row)).options == term.weights.options


def test_sums_of_large_numbers_are_of_integers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Six parents have 2**64 functions, which no word holds; with a small word all sums are of integers."""
    masks = [0, 1, 2, 3]
    small = signature_weights(masks, {0: 2, 1: 1}, [2, 3], np.array([[1, 2], [-1, 0]], np.int16), [3, 2, 1])
    large = signature_weights(masks, {0: 2, 1: 1}, [2, 3], np.array([[1, 2], [-1, 0]], np.int16), [3, 2, 1 << 60])
    assert small.tolist() == [[6, -2, 0, 3], [6, -2, -4, 2]]
    assert large.tolist() == [[6, -2, 0, 3 << 60], [6, -2, -4, 2 << 60]]
    rng = Random(5)
    scm_class = random_class(rng, 5, num_hidden=1, stated=3)
    posterior = Posterior(scm_class).condition(*random_worlds(rng, scm_class, random_member(rng, scm_class), 3, 4))
    expected = grouped_mass(posterior)
    monkeypatch.setattr(signatures, "MAX_BITS", 0)
    assert grouped_mass(posterior) == expected


def test_different_rows_are_in_lexicographic_order() -> None:
    rng = np.random.default_rng(1)
    for top, shape in ((3, (40, 3)), (300, (50, 2)), (70_000, (50, 1)), (2, (5, 0))):
        rows = rng.integers(-1, top, shape)
        expected, places = np.unique(rows, axis=0, return_inverse=True)
        assert [part.tolist() for part in unique_rows(rows)] == [expected.tolist(), places.ravel().tolist()]


def test_masses_of_noise_free_vectors() -> None:
    lines = [line for line in frontier_vectors("hidden") if line["noise"] == "0"]
    assert [grouped_mass(vector_posterior(line)).mass for line in lines] == [
        Fraction(line["expect"]["mass"]) for line in lines
    ]


def test_functions_of_columns_add_up_to_all_functions() -> None:
    """Whatever patterns were seen, the columns of three parents share out all 218 functions."""
    rng = Random(3)
    for _ in range(20):
        words = [rng.getrandbits(4) for _ in range(rng.randint(0, 9))]
        columns = joint_columns([0b1011], words)
        assert columns.num_functions.sum() == 218
        for column in range(0, len(columns), 7):
            bits = {p & 0b1011: int(columns.words[0, column]) >> j & 1 for j, p in enumerate(columns.patterns)}
            signs = 2 if bits else 1
            assert signs * num_agreeing(bits, 0b1011) == columns.num_functions[column]


def test_a_budget_states_columns_and_sums(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = Random(1)
    scm_class = random_class(rng, 5, num_hidden=1, stated=3)
    worlds = random_worlds(rng, scm_class, random_member(rng, scm_class), 3, 4)
    monkeypatch.setattr(mass, "MAX_CELLS", 10)
    with pytest.raises(BudgetSpent, match=r"columns x .* parent sets; budget 10"):
        grouped_mass(Posterior(scm_class).condition(*worlds))
    monkeypatch.setattr(mass, "MAX_CELLS", 1 << 30)
    monkeypatch.setattr(mass, "MAX_WORD_TERMS", 10)
    with pytest.raises(BudgetSpent, match=r"sums of 3\*\*4 terms; budget 10"):
        grouped_mass(Posterior(scm_class).condition(*worlds))


def test_members_are_counted_whatever_the_prior() -> None:
    rng = Random(12)
    for _ in range(6):
        scm_class = random_class(rng, 4, num_hidden=1)
        worlds = random_worlds(rng, scm_class, random_member(rng, scm_class), 2, 2)
        posterior = Posterior(scm_class).condition(*worlds)
        assert count_members(posterior) == posterior.num_members > 0


# --- Columns of the most probable SCM against weighting every column that fits ----------------------------------------


@pytest.mark.parametrize(("observed", "hidden", "stated"), [(5, 1, None), (5, 1, 3), (5, 2, 2)])
def test_columns_of_the_maximum(observed: int, hidden: int, stated: int | None) -> None:
    rng = Random(f"{observed} {hidden} {stated}")
    num_left_out = 0
    for _ in range(4):
        scm_class = random_class(rng, observed, num_hidden=hidden, stated=stated, rate=Fraction(0))
        scm_class = replace(scm_class, prior=Prior.BY_PARENTS)
        worlds = random_worlds(rng, scm_class, random_member(rng, scm_class), 7, 4)
        posterior = Posterior(scm_class).condition(*worlds)
        values = {repr(c): _best_value(posterior, STANDARD, c) for c in feasible_columns(posterior)}
        top = max(values.values())
        chosen = best_fitting_columns(posterior, partial(_best_value, posterior, STANDARD), 1_000)
        assert sorted(map(repr, chosen)) == sorted(c for c, value in values.items() if value == top > 0)
        num_left_out += sum(value < top for value in values.values())
    assert num_left_out


def test_kinds_are_fewer_than_columns_and_bounded() -> None:
    rng = Random(5)
    scm_class = replace(random_class(rng, 5, num_hidden=2, stated=2, rate=Fraction(0)), prior=Prior.BY_PARENTS)
    posterior = Posterior(scm_class).condition(*random_worlds(rng, scm_class, random_member(rng, scm_class), 3, 3))
    listed = list(columns_by_fit(posterior))
    assert len({fit for fit, _, _ in listed}) < len(listed)
    with pytest.raises(BudgetSpent, match="more than 0 kinds"):
        list(best_fitting_columns(posterior, partial(_best_value, posterior, STANDARD), 0))


# --- Listed members: all of them, without time for choices that have no acyclic completion, within a budget of rows


@pytest.mark.parametrize(("observed", "hidden", "stated"), [(4, 1, 2), (5, 0, 2), (4, 1, None), (4, 2, 1)])
def test_members_are_as_many_as_are_counted_and_each_agrees(observed: int, hidden: int, stated: int | None) -> None:
    rng = Random(f"{observed} {hidden} {stated}")
    num_listed = 0
    for _ in range(5):
        scm_class = random_class(rng, observed, num_hidden=hidden, stated=stated)
        worlds = random_worlds(rng, scm_class, random_member(rng, scm_class), 6, 4)
        posterior = Posterior(scm_class).condition(*worlds)
        if count_members(posterior) > 3_000:
            continue
        members = list_members(posterior)
        assert len({tuple(sorted(member.items())) for member in members}) == len(members) == count_members(posterior)
        assert all(posterior.likelihood(member) > 0 for member in members[:50])
        num_listed += len(members)
    assert num_listed > 20


def copies(num_copies: int) -> Posterior:
    """Variables that read like a root, and two that read like each other alone; one functional parent each."""
    names = tuple(f"X{i}" for i in range(num_copies))
    observed = ("R", "S", *names, "A", "B")
    scm_class = MechanismClass(observed, ("R", "S"), HiddenOrder(observed, ("R", "S")), 1)
    rows = tuple(f"{c & 1}{c >> 1}" + f"{c & 1}" * num_copies + f"{(c ^ c >> 1) & 1}" * 2 for c in range(4))
    return Posterior(scm_class).condition(EvidenceWorld({}, rows))


def test_choices_that_end_in_a_cycle_cost_no_time() -> None:
    """A copies B and B copies A, whatever the ten others copy: 10**10 choices, each of them cyclic."""
    posterior = copies(10)
    start = process_time()
    assert list_members(posterior) == []
    assert process_time() - start < 20


def test_rows_that_are_compared_have_a_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = Random(2)
    scm_class = random_class(rng, 4, num_hidden=1)
    posterior = Posterior(scm_class).condition(*random_worlds(rng, scm_class, random_member(rng, scm_class), 6, 4))
    assert count_members(posterior) <= 3_000
    monkeypatch.setattr(meanings, "MAX_COMPARED_ROWS", 5)
    with pytest.raises(BudgetSpent, match="more than 5 rows"):
        list_members(posterior)


# --- Exact posteriors with hidden variables against the shared vectors, which were made by enumeration ----------------
STRIDE = effort(5, 1)  # predictions and meanings take a tenth of a second a line


def test_every_hidden_vector() -> None:
    number = 0
    for line in frontier_vectors("hidden"):
        check_members(line)
        number += 1
    assert number


@pytest.mark.soak
def test_predictions_and_meanings_of_hidden_vectors() -> None:
    """A fifth of the lines, in which sizes and noise take turns; all of them in a soak."""
    fitting = [line for line in frontier_vectors("hidden") if line["expect"]["mass"] != "0"]  # others state no more
    lines, num_meanings = fitting[::STRIDE], 0
    for line in lines:
        check_query(line)
        if "meanings" in line["expect"]:
            assert count_meanings(vector_posterior(line)) == line["expect"]["meanings"]
            num_meanings += 1
    assert lines
    assert num_meanings
