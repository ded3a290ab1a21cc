"""Ambiguity profiles against enumeration of every root set, structure and function."""

from __future__ import annotations

import json
from collections.abc import Iterator
from fractions import Fraction
from math import log10

import pytest

from audits.replayscm.ambiguity import (
    SLACK,
    AmbiguityProfile,
    ambiguity_profile,
    capped,
    gold_class,
    num_unique,
    profile_classes,
)
from dsl.replayscm.problem import Problem
from solvers.replayscm.version_space import ModelClass
from tests.support.brute_force import member_size
from tests.support.dev_pools import dev_problems
from tests.support.enumerated_members import all_members, does, observed
from tests.support.gold_problems import SETTINGS, Shape, gold_problem

SHAPES = (Shape(), Shape(roots=1, endogenous=3, units=6, training=4), Shape(roots=3, endogenous=1, units=8))


def small() -> Iterator[tuple[Problem, AmbiguityProfile]]:
    for shape in SHAPES:
        for seed in range(8):
            problem = gold_problem(seed, SETTINGS[seed % 4], shape)
            yield problem, ambiguity_profile(problem)


def test_counts_equal_enumeration_in_every_class() -> None:
    """Four variables, so three parents are all there are."""
    several = 0
    for problem, profile in small():
        assert [listed.model_class for listed in profile.counts] == list(profile_classes())
        for listed in profile.counts:
            found = all_members(problem.task, min(3, listed.model_class.max_parents), listed.model_class.max_size)
            assert listed.count == len(found)
            assert listed.log10 == (log10(len(found)) if found else None)
        several += 1 < profile.count(ModelClass(2)) < profile.count(ModelClass(3))
    assert several >= 6


def test_size_summaries_equal_enumeration() -> None:
    for problem, profile in small():
        sizes = sorted(member_size(member, problem.task.grammar) for member in all_members(problem.task, 3))
        gold = problem.sealed.gold_size
        assert gold is not None
        summary = profile.sizes
        assert summary is not None
        assert (summary.smallest, summary.gold_size) == (sizes[0], gold)
        assert summary.at_most_gold == sum(size <= gold for size in sizes)
        assert summary.at_most_gold_and_slack == sum(size <= gold + SLACK for size in sizes)


def test_probabilities_equal_enumeration() -> None:
    """Uniform in both classes (which are the same here) and with weight 2**-size."""
    inner = 0
    for problem, profile in small():
        heldout = problem.sealed.heldout.worlds
        weights: dict[bool, list[Fraction]] = {True: [], False: []}
        for member in all_members(problem.task, 3):
            weight = Fraction(1, 2 ** member_size(member, problem.task.grammar))
            weights[does(member, heldout) == observed(heldout)].append(weight)
        num_exact, number = len(weights[True]), len(weights[True]) + len(weights[False])
        uniform, capped, weighted = profile.probabilities
        assert uniform.exact == capped.exact == Fraction(num_exact, number)
        assert weighted.exact == sum(weights[True]) / (sum(weights[True]) + sum(weights[False]))
        assert (uniform.size_penalty, capped.size_penalty, weighted.size_penalty) == (None, None, 1)
        inner += 0 < num_exact < number
    assert inner >= 10


def test_the_gold_class_is_the_smallest_with_gold_in_it() -> None:
    for problem in dev_problems("hidden_order"):
        gold = problem.sealed.gold
        assert gold is not None
        widest = max(len(local.parents) for local in gold.local_functions.values())
        assert gold_class(problem) == ModelClass(max(4, widest))
    assert gold_class(gold_problem(0)) == ModelClass(4)


def test_too_wide_a_class_has_no_members_and_no_probability() -> None:
    """Gold mechanisms with five parents: nothing of two parents fits. What fits with five is counted all the same."""
    problem = next(p for p in dev_problems("ordered") if gold_class(p) == ModelClass(5))
    profile = ambiguity_profile(problem)
    narrow = next(listed for listed in profile.counts if listed.model_class == ModelClass(2))
    assert (narrow.count, narrow.log10) == (0, None)
    assert profile.gold_class == ModelClass(5)
    assert profile.probabilities[1].model_class == capped(ModelClass(5)) == ModelClass(5, 11)


def test_caps_are_used_only_as_far_as_they_are_complete() -> None:
    assert capped(ModelClass(4)) == ModelClass(4, 15)
    assert {(c.max_parents, c.max_size) for c in profile_classes() if c.max_size} == (
        {(k, 15) for k in (2, 3, 4)} | {(k, 11) for k in (2, 3, 4, 5)} | {(k, 9) for k in (2, 3, 4, 5, 6)}
    )


@pytest.mark.parametrize("name", ["ordered", "hidden_order"])
def test_profiles_of_the_shared_pools_are_consistent(name: str) -> None:
    """Larger classes have more members, gold is one, and 15 nodes suffice for every function of four parents."""
    bites = 0
    for problem in dev_problems(name)[::16]:
        profile = ambiguity_profile(problem)
        uncapped = [profile.count(ModelClass(k)) for k in (2, 3, 4, 5)]
        assert uncapped == sorted(uncapped)
        assert uncapped[:3] == [profile.count(ModelClass(k, 15)) for k in (2, 3, 4)]
        for k in (2, 3, 4, 5):
            assert profile.count(ModelClass(k, 9)) <= profile.count(ModelClass(k, 11)) <= profile.count(ModelClass(k))
        bites += profile.count(ModelClass(4, 9)) < profile.count(ModelClass(4, 11)) < profile.count(ModelClass(4))
        uniform = profile.probabilities[0].exact
        assert uniform is not None
        assert 0 < uniform <= 1
    assert bites


def test_unique_instances_are_counted_by_class() -> None:
    profiles = [profile for _, profile in small()]
    for chosen in (ModelClass(2), ModelClass(3, 9)):
        expected = [
            listed for p in profiles for listed in p.counts if listed.model_class == chosen and listed.count == 1
        ]
        assert num_unique(profiles, chosen) == len(expected)


def test_profiles_become_json_with_counts_as_text() -> None:
    problem, profile = next(small())
    read = json.loads(json.dumps(profile.to_dict()))
    assert read["problem"] == problem.id
    assert [int(entry["count"]) for entry in read["counts"]] == [listed.count for listed in profile.counts]
    assert read["gold_class"] == {"max_parents": 4, "max_size": None}
    assert [entry["size_penalty"] for entry in read["heldout_exact"]] == [None, None, 1]
