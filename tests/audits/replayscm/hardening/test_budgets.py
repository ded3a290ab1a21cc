"""Hardening ends: budgets of what is weighed, at the limit and one below; the counts that it goes by."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest

from calibrant.audits.replayscm.hardening.harden import Hardening, HardeningEffort, counterexample_worlds
from calibrant.audits.replayscm.hardening.objectives import Members
from calibrant.audits.replayscm.hardening.worlds import WorldFamily, heldout_signatures, population
from calibrant.bench.replayscm import hardening as hardened_pools
from calibrant.bench.replayscm.hardening import HardenJob, HardenOptions, harden_instance
from calibrant.dsl.replayscm.item import Problem
from calibrant.solvers.outcome import BudgetSpent, Found, OutOfBudget
from calibrant.solvers.replayscm.space import ModelClass, VersionSpace
from tests.support.replayscm.enumerated_members import all_members
from tests.support.replayscm.gold_problems import SETTINGS, Shape, gold_problem


def test_the_budget_of_weighed_worlds_ends_with_the_worlds_found_so_far() -> None:
    """One state less than it takes, and what was found before is kept; with all of them, what no budget gives."""
    problem = gold_problem(1, shape=Shape(roots=1, endogenous=3, units=3, training=1))
    whole = counterexample_worlds(problem, 0, complete_coverage=False)
    assert isinstance(whole.outcome, Found)
    assert len(whole.added) >= 2
    enough = least(2**14, lambda states: weighed(problem, states).added == whole.added)
    same, short = weighed(problem, enough), weighed(problem, enough - 1)
    assert (same.problem, same.outcome) == (whole.problem, whole.outcome)
    assert short.added == whole.added[:-1]
    assert isinstance(short.outcome, OutOfBudget)
    assert f"the budget of {enough - 1:,} for fewer members was spent" in short.outcome.reached
    assert short.after.members == len(all_members(short.problem.task, 3)) > 1
    nothing = weighed(problem, 0)
    assert nothing.added == ()
    assert nothing.after.members == len(all_members(problem.task, 3))


def weighed(problem: Problem, states: int) -> Hardening:
    return counterexample_worlds(problem, 0, complete_coverage=False, effort=HardeningEffort(max_weighed=states))


def least(high: int, enough: Callable[[int], bool]) -> int:
    """Return the least number that is enough; `high` is."""
    low = 0
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle + 1, high)
    return low


def test_a_class_that_cannot_be_counted_is_out_of_budget_and_left_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    def spent(*_: object, **__: object) -> Hardening:
        raise BudgetSpent("30 variables that may lie on a cycle together")

    monkeypatch.setattr(hardened_pools, "counterexample_worlds", spent)
    problem = gold_problem(0)
    made = harden_instance(HardenJob(problem, HardenOptions("cex", 0)))
    assert made.problem == problem
    assert made.report["outcome"] == "out_of_budget"
    assert made.report["why"] == "the members cannot be counted: 30 variables that may lie on a cycle together"


def test_members_left_by_many_worlds_at_once_are_those_of_each_counted_from_scratch() -> None:
    """In batches of one and of all, with few rows and with many, and after worlds were added."""
    different = set()
    for seed in range(8):
        problem = gold_problem(seed, SETTINGS[seed % 4], Shape(units=3, training=2))
        family = WorldFamily(population(problem, Random(0)), heldout_signatures(problem))
        worlds = [family.random_world("w", Random(i)).world for i in range(6)]
        options = [[], worlds[:1], worlds[:2], worlds[2:5], list(family.reachable)]
        space = VersionSpace(problem.task, ModelClass(3))
        members = Members(space)
        for evidence, now in ((space, members), (space.with_worlds(worlds[5:]), members.after(worlds[5]))):
            expected = [evidence.with_worlds(option).count for option in options]
            assert now.count_remaining_each(options) == [now.count_remaining(option) for option in options] == expected
            assert now.count_remaining(()) == evidence.count
            different.update(expected)
    assert len(different) >= 20
