"""The acyclic choice by an integer program: the same as by all choices and by subsets, ties included."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from calibrant.solvers.acyclic.integer_program import tree
from calibrant.solvers.acyclic.integer_program.cutting import Bits
from calibrant.solvers.acyclic.integer_program.relaxation import Relaxation
from calibrant.solvers.acyclic.least import cost_by_size
from calibrant.solvers.acyclic.optimum import optimal_choice
from calibrant.solvers.highs import empty_program, run
from calibrant.solvers.outcome import Undecided
from tests.solvers.acyclic.test_least import by_enumeration, by_subsets, drawn, is_acyclic
from tests.support.packages import needs

TWO = {0: {0: cost_by_size(9, 0), 2: cost_by_size(1, 2)}, 1: {0: cost_by_size(9, 0), 1: cost_by_size(1, 1)}}


def test_only_known_engines_are_asked() -> None:
    with pytest.raises(ValueError, match="no engine 'simplex'; there are auto, subset_dp, sat, smt, integer_program"):
        optimal_choice(TWO, 0, 2, engine="simplex")


needs("highspy")


def test_the_first_of_the_least_of_all_choices() -> None:
    rng, cyclic = Random("programs"), 0
    for _ in range(60):
        options, roots = drawn(rng, rng.randint(0, 2), rng.randint(2, 4), 5)
        expected = by_enumeration(options)
        assert optimal_choice(options, roots, 6, engine="integer_program") == expected
        cyclic += expected is None
    assert 0 < cyclic < 40


def test_the_same_as_by_subsets_where_much_may_lie_on_a_cycle() -> None:
    rng = Random("larger programs")
    for _ in range(6):
        options, roots = drawn(rng, 1, 9, 12)
        assert optimal_choice(options, roots, 10, engine="integer_program") == by_subsets(options, roots, 10)


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
