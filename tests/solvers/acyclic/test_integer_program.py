"""The acyclic choice by an integer program: cuts, relaxations, and the least choice, against enumeration."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, pairwise
from random import Random

import numpy as np
import pytest

from calibrant.solvers.acyclic.integer_program import relaxation, tree
from calibrant.solvers.acyclic.integer_program._kernels import share_outside as shares_outside
from calibrant.solvers.acyclic.integer_program.least import least_by_program
from calibrant.solvers.acyclic.integer_program.relaxation import (
    SCALE,
    Bits,
    Cluster,
    Limits,
    Relaxation,
    Row,
    Support,
    find_most_violated_cut,
    find_violated_cuts,
)
from calibrant.solvers.acyclic.least import cost_by_size, reduce_to_parts
from calibrant.solvers.acyclic.optimum import optimal_choice
from calibrant.solvers.highs import empty_program, run
from calibrant.solvers.outcome import Undecided
from tests.solvers.acyclic.test_least import by_enumeration, by_subsets, drawn, is_acyclic
from tests.support.packages import needs

needs("highspy")


# --- The acyclic choice by an integer program: the same as by all choices and by subsets, ties included ---------------
TWO = {0: {0: cost_by_size(9, 0), 2: cost_by_size(1, 2)}, 1: {0: cost_by_size(9, 0), 1: cost_by_size(1, 1)}}


def test_only_known_engines_are_asked() -> None:
    with pytest.raises(ValueError, match="no engine 'simplex'; there are auto, subset_dp, sat, smt, integer_program"):
        optimal_choice(TWO, 0, 2, engine="simplex")


def test_the_first_of_the_least_of_all_choices() -> None:
    rng, cyclic = Random("programs"), 0
    for _ in range(24):
        options, roots = drawn(rng, rng.randint(0, 2), rng.randint(2, 4), 5)
        expected = by_enumeration(options)
        assert optimal_choice(options, roots, 6, engine="integer_program") == expected
        cyclic += expected is None
    assert 0 < cyclic < 16


def test_the_same_as_by_subsets_where_much_may_lie_on_a_cycle() -> None:
    rng = Random("larger programs")
    for _ in range(6):
        options, roots = drawn(rng, 1, 9, 12)
        assert optimal_choice(options, roots, 10, engine="integer_program") == by_subsets(options, roots, 10)


def test_columns_that_enter_late_change_no_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MAX_WHOLE_COLUMNS", "NUM_FIRST", "NUM_ENTERING"):
        monkeypatch.setattr(relaxation, name, 1)
    entered: list[None] = []
    activate = Relaxation._activate
    monkeypatch.setattr(Relaxation, "_activate", lambda self, columns: entered.append(activate(self, columns)))
    rng, programs = Random("late columns"), 0
    for _ in range(3):
        graded, roots = drawn(rng, 1, 9, 12)
        for options, free in ((graded, roots), (scores(rng, 8, 25), 0)):
            entered.clear()
            assert optimal_choice(options, free, 10, engine="integer_program") == by_subsets(options, free, 10)
            programs += len(entered) > 3
    assert programs > 3


def test_sums_too_large_for_floating_point_are_left_undecided() -> None:
    options = {v: {own: cost << 30 for own, cost in sets.items()} for v, sets in TWO.items()}
    with pytest.raises(Undecided, match="sizes differ by more than 100,000,000 in all") as told:
        optimal_choice(options, 0, 2, engine="integer_program")
    assert told.value.at_least == sum(min(sets.values()) for sets in options.values())


@pytest.mark.parametrize("base", [10**12, 2**53, 2**70])
def test_sizes_may_be_large_if_they_differ_by_little(base: int) -> None:
    options = scores(Random("far up"), 7, 12)
    far = {v: {own: cost_by_size(base, 0) + cost for own, cost in sets.items()} for v, sets in options.items()}
    least, found = by_subsets(options, 0, 7), optimal_choice(far, 0, 7, engine="integer_program")
    assert least is not None
    assert found == (least.cost + 7 * cost_by_size(base, 0), least.chosen)


def test_more_variables_than_a_word_has_bits_are_refused() -> None:
    options = {v: {0: cost_by_size(9, 0), 1 << (v + 1) % 64: cost_by_size(1, 1)} for v in range(64)}
    with pytest.raises(ValueError, match="up to 63 variables"):
        optimal_choice(options, 0, 64, engine="integer_program")


def test_whatever_else_the_process_solves_with_it() -> None:
    import highspy

    if not hasattr(highspy.Highs, "resetGlobalScheduler"):
        pytest.skip("this highspy cannot set its scheduler up anew")
    other = empty_program(threads=2)
    other.addVars(1, np.zeros(1), np.ones(1))
    highspy.Highs.resetGlobalScheduler(True)
    assert run(other)
    options = scores(Random("threads"), 9, 25)
    assert optimal_choice(options, 0, 9, engine="integer_program") == by_subsets(options, 0, 9)


def scores(rng: Random, num: int, most_sets: int) -> dict[int, dict[int, int]]:
    """As of scores: finely graded, and no set is better than one that it contains."""
    options: dict[int, dict[int, int]] = {}
    for v in range(num):
        others = [u for u in range(num) if u != v]
        options[v] = {0: cost_by_size(100_000, 0)}
        for _ in range(most_sets):
            mask = sum(1 << u for u in rng.sample(others, rng.randint(1, 3)))
            options[v][mask] = cost_by_size(rng.choice([rng.randint(0, 90_000), 50_000, 60_000]), mask)
    return options


def test_the_same_as_by_subsets_on_fine_grades_where_it_has_to_branch() -> None:
    rng = Random("graded programs")
    for _ in range(6):
        options = scores(rng, 9, 25)
        assert optimal_choice(options, 0, 9, engine="integer_program") == by_subsets(options, 0, 9)


def test_the_same_if_every_cut_is_forgotten_at_once_and_bounds_of_branches_are_poor(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng, dropped = Random("forgetful programs"), list[int]()
    whole = Relaxation.drop

    def drop(relaxed: Relaxation, rows: Bits) -> None:
        dropped.append(int(np.count_nonzero(rows)))
        whole(relaxed, rows)

    monkeypatch.setattr(Relaxation, "drop", drop)
    limits = {
        "MAX_UNPRICED_ROUNDS": 0,
        "MIN_SHARE_DROPPED": 0.0,
        "MAX_STALLED_ROUNDS": 1,
        "STRONG_BRANCHING_STEPS": 1,
        "NUM_RESTARTS": 0,
        "NODE_PERTURBATIONS": 0,
    }
    for name, number in limits.items():
        monkeypatch.setattr(tree, name, number)
    for _ in range(10):
        options = scores(rng, 9, 25)
        assert optimal_choice(options, 0, 9, engine="integer_program") == by_subsets(options, 0, 9)
    assert len(dropped) > 10


def test_where_the_relaxation_takes_a_least_choice_nothing_more_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    def more(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr(tree.Tree, "_improve_from_relaxation", lambda *_: None)
    monkeypatch.setattr(tree.Tree, "_restart_local_search", more)
    monkeypatch.setattr(tree.Tree, "_branch", more)
    for seed in (0, 2, 5):  # a good order is not met first
        options = scores(Random(seed), 7, 12)
        assert optimal_choice(options, 0, 7, engine="integer_program") == by_subsets(options, 0, 7)


def test_out_of_time_it_has_a_bound_and_a_choice() -> None:
    options = scores(Random("late"), 9, 25)
    least = by_subsets(options, 0, 9)
    with pytest.raises(Undecided) as told:
        optimal_choice(options, 0, 9, engine="integer_program", seconds=0.0)
    assert least is not None
    assert told.value.incumbent is not None
    assert told.value.at_least <= least.cost <= sum(options[v][mask] for v, mask in told.value.incumbent.items())
    assert is_acyclic(dict(told.value.incumbent))


@pytest.mark.parametrize("steps", [0, 5_000, 20_000, 100_000, 10**9])
def test_counted_steps_end_alike_with_a_bound_and_a_choice(steps: int) -> None:
    options = scores(Random("late"), 9, 25)
    least = by_subsets(options, 0, 9)
    assert least is not None
    parts = reduce_to_parts(options, 0)
    assert parts is not None
    (part,) = parts

    def search() -> tuple[int, int, int | None]:
        limits = Limits(steps=steps)
        try:
            chosen = least_by_program(part, limits)
        except Undecided as spent:
            return spent.at_least, sum(part[v][m].cost for v, m in (spent.incumbent or {}).items()), limits.steps
        cost = sum(part[v][mask].cost for v, mask in (chosen or {}).items())
        return cost, cost, limits.steps

    results = [search(), search()]
    at_least, cost, remaining = results[0]
    assert at_least <= least.cost <= cost
    assert remaining is not None
    assert remaining <= 0 or at_least == cost
    assert (at_least == cost) == (steps > 20_000)
    assert results[0] == results[1]


# --- Cluster cuts: no choice without a cycle violates one, and what is violated is found ------------------------------
def drawn_support(rng: Random, num: int) -> Support:
    """Up to three sets of each variable, with shares of a whole number of eighths."""
    owner, parents, share = [], [], []
    for v in range(num):
        parts = sorted({0, 8, rng.randint(1, 7), rng.randint(1, 7)})
        for low, high in pairwise(parts):
            chosen = rng.sample([u for u in range(num) if u != v], rng.randint(0, 2))
            owner.append(v)
            parents.append([u in chosen for u in range(num)])
            share.append((high - low) / 8)
    return Support(np.array(owner), np.array(parents), np.array(share))


def outside(support: Support, cluster: Cluster) -> float:
    sets = zip(support.owner.tolist(), support.parents.tolist(), support.share.tolist(), strict=True)
    few = (s for v, own, s in sets if v in cluster.members and sum(own[u] for u in cluster.members) < cluster.level)
    return float(sum(few))


def test_cuts_that_are_found_are_violated_and_by_a_program_all_that_are_by_an_eighth_are_found() -> None:
    rng, without = Random("cuts"), 0
    for _ in range(30):
        num = rng.randint(3, 6)
        support = drawn_support(rng, num)
        found = find_violated_cuts(support)
        assert all(outside(support, one) < one.level for one in found)
        groups = [Cluster(group) for size in range(2, num + 1) for group in combinations(range(num), size)]
        any_short = any(outside(support, one) < 1 for one in groups)
        last = find_most_violated_cut(support)
        assert bool(last) == any_short
        assert all(outside(support, one) < 1 for one in last)
        without += not any_short
    assert 3 < without < 27


def test_no_choice_without_a_cycle_violates_a_cut() -> None:
    rng = Random("without a cycle")
    for _ in range(30):
        num = rng.randint(1, 7)
        order = rng.sample(range(num), num)
        before = {v: order[: order.index(v)] for v in order}
        chosen = {v: rng.sample(own, rng.randint(0, len(own))) for v, own in before.items()}
        parents = np.array([[u in chosen[v] for u in range(num)] for v in range(num)])
        assert find_violated_cuts(Support(np.arange(num), parents, np.ones(num))) == set()


def test_what_a_variable_changes_is_what_the_cut_changes_by() -> None:
    rng = Random("changes")
    for _ in range(50):
        num, level = rng.randint(3, 8), rng.randint(1, 3)
        support, group = drawn_support(rng, num), rng.getrandbits(num)
        words = (support.parents.astype(np.uint64) << np.arange(num, dtype=np.uint64)).sum(axis=1, dtype=np.uint64)
        change = np.empty(num)
        total = shares_outside(np.uint64(group), level, support.owner, words, support.share, change)
        assert total == outside(support, members(group, level))
        others = [outside(support, members(group ^ 1 << v, level)) for v in range(num)]
        assert np.allclose(change, np.array(others) - total, atol=1e-12)


def members(group: int, level: int) -> Cluster:
    return Cluster(tuple(v for v in range(group.bit_length()) if group >> v & 1), level)


# --- Bounds of relaxations: true whatever the prices, to the last digit -----------------------------------------------
@pytest.mark.parametrize("largest", [2.0**4, 2.0**20, 2.0**30, 2.0**35, 2.0**37])
def test_a_bound_is_what_the_prices_prove_or_needs_none(largest: float) -> None:
    """As of duals of a program that was not solved to its end, of which nothing is known."""
    random, num, none = np.random.default_rng(int(largest)), 60, 0
    for _ in range(20):
        costs = random.integers(0, 1000, 2 * num).astype(np.float64)
        relaxed = Relaxation([v for v in range(num) for _ in range(2)], costs)
        places = [np.flatnonzero(random.integers(0, 2, 2 * num)) for _ in range(3)]
        relaxed.add([Row(own, random.integers(1, 4, len(own)).astype(np.float64), 1.0) for own in places])
        prices = np.floor(random.random(3) * largest * SCALE) / SCALE
        proof = relaxed._prove_bound(
            np.concatenate([np.zeros(num), prices * relaxed.scales]), np.ones(2 * num, np.bool_)
        )
        nothing = bound(costs, relaxed.rows, [0.0] * 3)
        assert Fraction(proof.bound) in (nothing, bound(costs, relaxed.rows, prices.tolist()))
        none += Fraction(proof.bound) == nothing
        assert np.all(proof.reduced_costs >= 0)
    assert (none == 0) == (largest < 2.0**32)  # prices too large to reckon with prove nothing


def test_what_is_tried_and_dropped_leaves_the_solution_as_it_was() -> None:
    random = np.random.default_rng(5)
    for _ in range(20):
        num = 30
        costs = random.integers(0, 1000, 2 * num).astype(np.float64)
        relaxed = Relaxation([v for v in range(num) for _ in range(2)], costs)
        places = [np.flatnonzero(random.random(2 * num) < 0.3) for _ in range(40)]
        relaxed.add([Row(own, np.ones(len(own)), 10.0) for own in places])
        everything = np.ones(2 * num, np.bool_)
        taken, proof = relaxed.solve(everything, Limits())
        without = everything & ~((np.arange(2 * num) == 7) | (np.arange(2 * num) == 20))
        few, many = (relaxed.improve_bound(without, iterations, Limits()) for iterations in (1, 1000))
        assert few.bound <= many.bound + 1e-6 * many.bound
        assert many.bound >= proof.bound - 1e-6 * proof.bound
        assert np.isinf(many.reduced_costs[[7, 20]]).all()
        idle = relaxed.unpriced
        assert 0 < np.count_nonzero(idle) < len(idle)
        relaxed.drop(idle)
        assert len(relaxed.rows) == len(relaxed.scales) == np.count_nonzero(~idle)
        again, still = relaxed.solve(everything, Limits())
        assert taken is not None
        assert again is not None
        assert np.isclose(costs @ again, costs @ taken)
        assert np.isclose(still.bound, proof.bound)


def bound(costs: np.ndarray, rows: list[Row], prices: list[float]) -> Fraction:
    left = [Fraction(cost) for cost in costs.tolist()]
    for (places, values, _), price in zip(rows, prices, strict=True):
        for place, value in zip(places.tolist(), values.tolist(), strict=True):
            left[place] -= Fraction(price) * int(value)
    total = sum((min(left[at : at + 2]) for at in range(0, len(left), 2)), Fraction(0))
    return total + sum(
        (Fraction(price) * int(row.lower_bound) for row, price in zip(rows, prices, strict=True)), Fraction(0)
    )
