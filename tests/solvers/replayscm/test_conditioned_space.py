"""Counts that imagined rows bring up to date, against enumeration and against counts from scratch; draws as tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from random import Random

import numpy as np
import pytest

from calibrant.dsl.replayscm.item import Problem, Task
from calibrant.dsl.replayscm.reference import replays_exactly
from calibrant.dsl.replayscm.world import Panel, World, pack_rows
from calibrant.solvers.replayscm.conditioned_space import ConditionedSpace, ParentSets, draw
from calibrant.solvers.replayscm.members import sample_members
from calibrant.solvers.replayscm.space import ModelClass, VersionSpace
from tests.support.replayscm.brute_force import member_size
from tests.support.replayscm.oracles import all_members, does, observed
from tests.support.replayscm.random_problems import SETTINGS, Shape, gold_problem

MOST_MEMBERS = 800
WEIGHTS = ((ModelClass(2), None), (ModelClass(3), None), (ModelClass(3, 11), None), (ModelClass(3, 11), 1))


def problems(number: int) -> Iterator[tuple[Problem, Task, tuple[World, ...]]]:
    """Problems of few members, their task without the last two worlds, and these."""
    for seed in range(number):
        problem = gold_problem(seed, SETTINGS[seed % 4], Shape(roots=2, endogenous=2, units=4, training=4))
        *first, one, other = problem.task.training.worlds
        task = replace(problem.task, training=Panel(problem.task.variables, tuple(first)))
        if 1 < VersionSpace(task, ModelClass(3)).count <= MOST_MEMBERS:
            yield problem, task, (one, other)


def spaces(space: VersionSpace, penalty: int | None) -> list[ConditionedSpace]:
    sets = ParentSets(space, penalty)
    return [ConditionedSpace(sets, roots) for roots in space.root_sets]


def enumerated(task: Task, model_class: ModelClass, penalty: int | None, worlds: Sequence[World]) -> Fraction:
    """Return the share of the members' weight that replays the worlds; 11 nodes are enough for three parents."""
    every = agreeing = Fraction(0)
    for member in all_members(task, model_class.max_parents):
        weight = Fraction(1, 2 ** ((penalty or 0) * member_size(member, task.grammar)))
        every += weight
        agreeing += weight * (does(member, worlds) == observed(worlds))
    return agreeing / every


@pytest.mark.parametrize(("model_class", "penalty"), WEIGHTS)
def test_what_worlds_leave_is_what_enumeration_leaves(model_class: ModelClass, penalty: int | None) -> None:
    shares = set()
    for problem, task, more in problems(16):
        made = spaces(VersionSpace(task, model_class), penalty)
        whole = sum(one.mass for one in made)
        for worlds in ((), more[:1], more):
            rows = pack_rows(worlds, task.variables)
            together = sum(one.mass_with(rows) for one in made)
            after = [one.condition(rows) for one in made]
            one_by_one = list(made)
            for r in range(len(rows.words)):
                one_by_one = [one.condition(rows.select(slice(r, r + 1))) for one in one_by_one]
            assert together == sum(one.mass for one in after) == sum(one.mass for one in one_by_one)
            assert Fraction(together, whole) == enumerated(task, model_class, penalty, worlds), problem.id
            shares.add(Fraction(together, whole))
    assert len(shares) >= 8


@pytest.mark.parametrize(("model_class", "penalty"), [(ModelClass(6), None), (ModelClass(4, 9), 2)])
def test_many_worlds_at_once_are_weighed_as_each_is_from_scratch(model_class: ModelClass, penalty: int | None) -> None:
    nothing = 0
    for seed in range(4):
        problem = gold_problem(seed, SETTINGS[seed], Shape(roots=2, endogenous=5, units=4, training=2))
        space = VersionSpace(problem.task, model_class)
        rng = Random(seed)
        worlds = [*problem.sealed.heldout.worlds]
        worlds += [replace(w, columns=tuple(rng.getrandbits(w.num_rows) for _ in w.columns)) for w in worlds]
        spans = np.cumsum([0, *(world.num_rows for world in worlds)])
        rows = pack_rows(worlds, problem.task.variables)
        made = spaces(space, penalty)
        left = [sum(masses) for masses in zip(*(one.masses(rows, spans) for one in made), strict=True)]
        assert left == [space.with_worlds([world]).mass(size_penalty=penalty) for world in worlds]
        nothing += left.count(0)
    assert nothing


@pytest.mark.parametrize(("model_class", "penalty"), WEIGHTS)
def test_draws_are_those_of_the_sampler(model_class: ModelClass, penalty: int | None) -> None:
    """The same members for the same seed, and what the tables do is what their formulas do."""
    drawn = 0
    for problem, task, more in problems(16):
        space = VersionSpace(task, model_class)
        for roots in list(space.counts_by_roots)[:2]:
            told = space if task.disclosure.roots is not None else space.given_roots(roots)
            for worlds in ((), more[:1]):
                here = ConditionedSpace(ParentSets(told, penalty), roots).condition(pack_rows(worlds, task.variables))
                if not here.mass:
                    continue
                members = draw(here, Random(problem.id), 6)
                listed = sample_members(told.with_worlds(worlds), Random(problem.id), 6, size_penalty=penalty)
                assert [members.scm(i) for i in range(6)] == listed
                rows = pack_rows(more, task.variables)
                exact = (members.outcomes(rows) == rows.words).all(1).tolist()
                assert exact == [replays_exactly(model, more) for model in listed]
                drawn += 1
    assert drawn >= 12
