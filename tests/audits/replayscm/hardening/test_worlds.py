"""Reconstructed thresholds: consistent with everything that was shown, from levels or from the order of the sets."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import product
from pathlib import Path
from random import Random

import pytest

from calibrant.audits.replayscm.bounded import latent_scm
from calibrant.audits.replayscm.hardening.harden import counterexample_worlds
from calibrant.audits.replayscm.hardening.worlds import (
    AnyThresholds,
    RootOnes,
    WorldFamily,
    heldout_signatures,
    population,
    threshold_bounds,
    threshold_ranges,
    under_any_thresholds,
)
from calibrant.bench.cli import main
from calibrant.dsl.replayscm.generation.problems import Population, sample_assigned
from calibrant.dsl.replayscm.item import Problem
from calibrant.dsl.replayscm.pools.files import read_pool
from calibrant.dsl.replayscm.world import Intervention, Panel, World
from calibrant.solvers.outcome import Found, Impossible
from calibrant.solvers.replayscm.space import ModelClass, VersionSpace
from tests.support.replayscm.pools import dev_problems
from tests.support.replayscm.random_problems import LEVELS, SETTINGS, Shape, gold_problem
from tests.support.replayscm.written import written_scm
from tests.support.shared import shared_file

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


# --- What the file does not determine decides nothing: proofs hold for all thresholds, answers for the written item
OPEN_SHAPE = Shape(roots=2, endogenous=2, units=3, training=3)
GRID = sorted({0.0, *LEVELS, *((low + high) / 2 for low, high in zip((0.0, *LEVELS), (*LEVELS, 1.0), strict=True))})


def rows(worlds: tuple[World, ...]) -> set[tuple[object, ...]]:
    return {(w.intervention.targets, tuple(w.row(i).values())) for w in worlds for i in range(w.num_rows)}


def agrees(problem: Problem, root: str, unit: int, threshold: float) -> bool:
    """Whether a threshold explains what every world with this root left alone shows of the unit."""
    return all(
        world.row(unit)[root] == (threshold < problem.sealed.environments[world.id][root])
        for world in problem.worlds
        if root not in world.intervention.targets
    )


def test_a_unit_can_show_what_it_shows_under_some_threshold_that_agrees_with_its_worlds() -> None:
    """Thresholds between and at all levels stand for all there are."""
    seen = set()
    for seed in range(20):
        problem = gold_problem(seed, SETTINGS[seed % 4], OPEN_SHAPE)
        drawn = population(problem, Random(seed))
        possible = AnyThresholds(drawn, threshold_ranges(problem), ())
        for unit, root, bit in product(range(OPEN_SHAPE.units), drawn.model.roots, (0, 1)):
            able = [t for t in GRID if agrees(problem, root, unit, t)]
            expected = any(int(t < level) == bit for t in able for level in LEVELS)
            assert possible.can_show(unit, root, bit) == expected
            seen.add(expected)
    assert seen == {True, False}


def test_drawn_thresholds_show_no_more_than_possible_ones_and_sometimes_less() -> None:
    less = 0
    for seed in range(12):
        problem = gold_problem(seed % 4, SETTINGS[0], Shape(roots=2, endogenous=1, units=1, training=1))
        family = WorldFamily(population(problem, Random(seed)), heldout_signatures(problem))
        possible = under_any_thresholds(family, threshold_ranges(problem))
        assert rows(family.reachable) <= rows(possible.reachable)
        less += rows(family.reachable) < rows(possible.reachable)
        assert (possible is family) == (rows(family.reachable) == rows(possible.reachable))
    assert less


def test_worlds_that_contradict_the_rule_leave_every_threshold_possible() -> None:
    """A root that is 1 at the lowest level and 0 at the highest follows no threshold."""
    contradicted = 0
    for seed in range(8):
        problem = gold_problem(seed, SETTINGS[0], OPEN_SHAPE)
        (root, *_) = latent_scm(problem).roots
        free = [world for world in problem.worlds if root not in world.intervention.targets]
        levels = {world.id: {root: LEVELS[0] if world.row(0)[root] else LEVELS[-1]} for world in free}
        wrong = replace(problem, sealed=replace(problem.sealed, environments=levels))
        both = {world.row(0)[root] for world in free} == {0, 1}
        assert (threshold_ranges(wrong)[root][0] == (0.0, 1.0)) == both
        contradicted += both
    assert contradicted


def test_no_proof_rests_on_the_thresholds_that_were_drawn() -> None:
    """An instance of two units that some thresholds let close and others do not: reached, or open, never impossible."""
    (problem,) = read_pool(shared_file("thr2.jsonl", part="replayscm/adversarial")).problems
    outcomes = [counterexample_worlds(problem, seed).outcome for seed in range(4)]
    assert not any(isinstance(outcome, Impossible) for outcome in outcomes)
    assert any(isinstance(outcome, Found) for outcome in outcomes)


@pytest.mark.parametrize("seed", range(2))
def test_one_member_is_counted_in_the_written_item(seed: int, tmp_path: Path) -> None:
    pool = shared_file("thr.jsonl", part="replayscm/adversarial")
    out, report = tmp_path / "out.jsonl", tmp_path / "report.jsonl"
    line = ["harden", str(pool), "--out", str(out), "--report", str(report), "--seed", str(seed), "--workers", "1"]
    assert main(line) in (0, 1)
    (told,) = [json.loads(text) for text in report.read_text(encoding="utf-8").splitlines()]
    (problem,) = read_pool(out).problems
    assert told["members"][1] == str(VersionSpace(problem.task, ModelClass(5)).count)
    assert (told["outcome"] == "reached") == (told["members"][1] == "1")


def test_a_single_row_is_drawn_as_it_is_and_no_column_is_longer_than_the_units() -> None:
    drawn = {sample_assigned(("A",), 1, Random(seed))["A"] for seed in range(40)}
    assert drawn == {0, 1}
    two = {sample_assigned(("A",), 2, Random(seed))["A"] for seed in range(40)}
    assert two == {0b01, 0b10}
    one = Population(written_scm("A", B="(not A)"), ("u0",), {"A": (0.5,)})
    with pytest.raises(ValueError, match="more than 1 rows"):
        one.simulate("w", Intervention(assigned=("B",)), {"A": 0.5}, {"B": 0b10})
