"""Reconstructed thresholds: consistent with everything that was shown, from levels or from the order of the sets."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from calibrant.audits.replayscm.hardening.worlds import RootOnes, population, threshold_bounds
from calibrant.dsl.replayscm.item import Problem
from calibrant.dsl.replayscm.world import Panel
from tests.support.replayscm.dev_pools import dev_problems
from tests.support.replayscm.gold_problems import SETTINGS, Shape, gold_problem

SHAPE = Shape(roots=2, endogenous=2, units=8, training=4, heldout=3)


def root_sets_of_ones(problem: Problem, root: str) -> list[tuple[str, set[int]]]:
    """World by world the units in which a root that is no target shows 1."""
    return [
        (world.id, {r for r, row in enumerate(world.rows()) if row[root]})
        for world in problem.worlds
        if root not in world.intervention.targets
    ]


def test_with_levels_every_root_value_comes_out_again() -> None:
    problems = [gold_problem(seed, SETTINGS[seed % 4], SHAPE) for seed in range(12)]
    for problem in [*problems, *dev_problems("hidden_order")[::8]]:
        units = population(problem, Random(3))
        assert units.units == problem.task.training.worlds[0].units
        for root in units.model.roots:
            for name, ones in root_sets_of_ones(problem, root):
                level = problem.sealed.environments[name][root]
                assert {u for u, threshold in enumerate(units.thresholds[root]) if threshold < level} == ones


def test_without_levels_some_level_reproduces_every_set() -> None:
    several = 0
    for seed in range(12):
        problem = gold_problem(seed, SETTINGS[seed % 4], SHAPE)
        problem = replace(problem, sealed=replace(problem.sealed, environments={}))
        units = population(problem, Random(4))
        for root in units.model.roots:
            levels = [0.0, *sorted(units.thresholds[root])]
            possible = [{u for u, t in enumerate(units.thresholds[root]) if t <= level} for level in levels]
            shown = [ones for _, ones in root_sets_of_ones(problem, root)]
            assert all(ones in possible for ones in shown)
            several += len({frozenset(ones) for ones in shown}) > 2
    assert several >= 10


def test_bounds_of_written_sets() -> None:
    """Bit u is unit u. A level bounds those below it from above and all others from below."""
    assert threshold_bounds([RootOnes(0b01, 0.5), RootOnes(0b11, 0.8), RootOnes(0b00, 0.2)], 2) == [
        (0.2, 0.5),
        (0.5, 0.8),
    ]
    thirds = [(0.0, 1 / 3), (1 / 3, 2 / 3), (2 / 3, 1.0)]
    assert threshold_bounds([RootOnes(0b011, None), RootOnes(0b001, None), RootOnes(0b011, None)], 3) == thirds
    assert threshold_bounds([], 2) == [(0.0, 1.0)] * 2


def test_worlds_that_break_the_rule_are_skipped() -> None:
    first, against = RootOnes(0b01, 0.5), RootOnes(0b10, 0.35)
    assert threshold_bounds([first, against], 2) == threshold_bounds([first], 2) == [(0.0, 0.5), (0.5, 1.0)]
    assert threshold_bounds([RootOnes(0b01, None), RootOnes(0b10, None)], 2) == [(0.0, 0.5), (0.5, 1.0)]
    assert threshold_bounds([RootOnes(0b10, None), first], 2) == threshold_bounds([first], 2)  # levels count for more


def test_units_that_are_not_shared_tell_nothing() -> None:
    problem = gold_problem(1, shape=SHAPE)
    apart = replace(problem, task=replace(problem.task, shares_units=False))
    drawn = [population(apart, Random(seed)).thresholds for seed in range(40)]
    for root in drawn[0]:
        for unit in range(SHAPE.units):
            values = [thresholds[root][unit] for thresholds in drawn]
            assert min(values) < 0.35
            assert max(values) > 0.65


def test_a_seed_gives_the_same_units_and_worlds_are_needed() -> None:
    problem = gold_problem(2)
    assert population(problem, Random(1)) == population(problem, Random(1)) != population(problem, Random(2))
    bare = replace(problem, task=replace(problem.task, training=Panel(problem.task.variables, ())))
    with pytest.raises(ValueError, match="no training world"):
        population(bare, Random(0))
