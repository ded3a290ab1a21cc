"""The ceiling against the best of all answers, by enumeration; certified intervals; reliability against hand counts."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from random import Random

import pytest

from calibrant.audits.replayscm.ceiling import BestAnswer, ClassSearch, ceiling, is_realised, list_classes
from calibrant.dsl.replayscm.item import Problem
from calibrant.dsl.replayscm.reference import replays_exactly
from calibrant.dsl.replayscm.scm import Scm
from calibrant.solvers.outcome import Budget
from calibrant.solvers.replayscm.space import ModelClass, VersionSpace
from tests.support.replayscm.brute_force import member_size
from tests.support.replayscm.oracles import all_members, does
from tests.support.replayscm.pools import dev_problems
from tests.support.replayscm.random_problems import SETTINGS, Shape, gold_problem

PRIORS = (None, 0, 1, 2)
SHAPES = (Shape(), Shape(roots=1, endogenous=3, units=5, training=4), Shape(heldout=4, units=7))
CAPPED = ModelClass(3, 11)  # every function of three variables


@cache
def small() -> tuple[Problem, ...]:
    return tuple(gold_problem(seed, SETTINGS[seed % 4], shape) for shape in SHAPES for seed in range(8))


@cache
def sizes_of_classes(index: int) -> list[tuple[object, int]]:
    """Return the (root set, held-out table) and the size of each member of a small problem, by enumeration."""
    task, heldout = small()[index].task, small()[index].sealed.heldout.worlds
    return [((member[0], does(member, heldout)), member_size(member, task.grammar)) for member in all_members(task, 3)]


def class_weights(problem: Problem, penalty: int | None) -> dict[object, Fraction]:
    """Return the weight of each (root set, held-out table) of a small problem."""
    weights: dict[object, Fraction] = {}
    for key, size in sizes_of_classes(small().index(problem)):
        weight = Fraction(1) if penalty is None else Fraction(1, 2 ** (penalty * size))
        weights[key] = weights.get(key, Fraction(0)) + weight
    return weights


def found(problem: Problem, penalty: int | None, max_counts: int | None) -> BestAnswer:
    space = VersionSpace(problem.task, CAPPED)
    return ceiling(space, problem.sealed.heldout.worlds, Random(1), size_penalty=penalty, max_counts=max_counts)


def table_of(model: Scm, problem: Problem) -> object:
    """Return the class of an answer, from the reference's own replay of a member."""
    mechanisms = tuple((v, local.parents, local.table.bits) for v, local in model.local_functions.items())
    return model.roots, does((model.roots, mechanisms), problem.sealed.heldout.worlds)


@pytest.mark.parametrize("penalty", PRIORS)
def test_the_ceiling_is_the_share_of_the_heaviest_class(penalty: int | None) -> None:
    several = 0
    for problem in small():
        weights = class_weights(problem, penalty)
        best = found(problem, penalty, None)
        assert best.is_exact
        assert best.lower == max(weights.values()) / sum(weights.values())
        assert weights[table_of(best.answer, problem)] == max(weights.values())
        assert replays_exactly(best.answer, problem.task.training.worlds)
        several += len(weights) > 3
    assert several >= 12


@pytest.mark.parametrize("penalty", [None, 1])
def test_all_classes_come_once_in_the_order_of_their_weight(penalty: int | None) -> None:
    for problem in small():
        weights = class_weights(problem, penalty)
        space = VersionSpace(problem.task, CAPPED)
        search = ClassSearch(space, problem.sealed.heldout.worlds, Random(2), size_penalty=penalty)
        listed, complete = list_classes(search)
        assert complete
        assert search.bound == 0
        assert [one.share for one in listed] == sorted((one.share for one in listed), reverse=True)
        assert {table_of(one.example, problem): one.share for one in listed} == {
            key: weight / sum(weights.values()) for key, weight in weights.items()
        }


@pytest.mark.parametrize("penalty", [None, 1])
def test_an_interval_holds_the_ceiling_whatever_the_budget(penalty: int | None) -> None:
    open_intervals = 0
    for problem in small():
        weights = class_weights(problem, penalty)
        true = max(weights.values()) / sum(weights.values())
        for max_counts in (0, 1, 2, 4, 8):
            best = found(problem, penalty, max_counts)
            assert best.counts <= max_counts
            assert best.lower <= true <= best.upper
            assert weights[table_of(best.answer, problem)] / sum(weights.values()) == best.lower
            open_intervals += not best.is_exact
    assert open_intervals >= 30


def test_what_is_listed_before_the_budget_ends_is_exact() -> None:
    cut = 0
    for problem in small():
        weights = class_weights(problem, None)
        descending = sorted(weights.values(), reverse=True)
        for max_counts in (3, 9, 27):
            space = VersionSpace(problem.task, CAPPED)
            search = ClassSearch(space, problem.sealed.heldout.worlds, Random(3), budget=Budget(max_counts))
            listed, complete = list_classes(search)
            assert [Fraction(one.mass) for one in listed] == descending[: len(listed)]
            assert complete == (len(listed) == len(weights))
            if not complete:
                assert descending[len(listed)] <= search.bound
                cut += bool(listed)
    assert cut >= 10


def test_the_same_seed_gives_the_same_interval() -> None:
    problem = dev_problems("hidden_order")[45]
    space = VersionSpace(problem.task, ModelClass(4))
    twice = [ceiling(space, problem.sealed.heldout.worlds, Random(5), max_counts=40) for _ in range(2)]
    assert twice[0] == twice[1]
    assert not twice[0].is_exact
    assert 0 < twice[0].lower < twice[0].upper < 1


def test_no_class_that_was_weighed_is_forgotten() -> None:
    """The same seed makes the same search; what it knew when the budget ended bounds the ceiling from below."""
    compared = 0
    for problem in dev_problems("hidden_order")[10:40:5]:
        space, worlds = VersionSpace(problem.task, ModelClass(4)), problem.sealed.heldout.worlds
        for seed in range(4 if space.count else 0):
            search = ClassSearch(space, worlds, Random(seed), budget=Budget(15))
            _, complete = list_classes(search)
            if not complete and search.known_best is not None:
                assert ceiling(space, worlds, Random(seed), max_counts=15).lower >= search.known_best.share
                compared += 1
    assert compared >= 12


def test_an_empty_space_has_no_ceiling() -> None:
    problem = next(p for p in dev_problems("hidden_order") if not VersionSpace(p.task, ModelClass(2)).count)
    with pytest.raises(ValueError, match="empty"):
        ceiling(VersionSpace(problem.task, ModelClass(2)), problem.sealed.heldout.worlds, Random(0))


# --- calibration -----------------------------------------------------------------------------------------------------


def test_a_best_answer_is_realised_iff_gold_does_what_it_does() -> None:
    outcomes = set()
    for problem in small():
        best = found(problem, None, None)
        gold = problem.sealed.gold
        assert gold is not None
        came_true = is_realised(problem, best)
        assert came_true == (table_of(gold, problem) == table_of(best.answer, problem))
        outcomes.add(came_true)
    assert outcomes == {True, False}


def test_every_member_in_turn_as_the_truth_realises_what_was_predicted() -> None:
    for problem in small():
        answer = table_of(found(problem, None, None).answer, problem)
        truths = all_members(problem.task, 3)
        hits = sum((member[0], does(member, problem.sealed.heldout.worlds)) == answer for member in truths)
        assert Fraction(hits, len(truths)) == found(problem, None, None).lower
