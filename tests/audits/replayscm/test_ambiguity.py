"""Counts, spectra and draws of an audit against enumeration of every root set, structure and function."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from fractions import Fraction

import pytest

from calibrant.audits.replayscm.ambiguity import add_size_cap, gold_class, profile_classes
from calibrant.audits.replayscm.findings import Findings
from calibrant.audits.replayscm.items import AuditOptions, audit_instance
from calibrant.dsl.replayscm.item import Problem
from calibrant.solvers.replayscm.space import ModelClass
from tests.support.replayscm.brute_force import member_size
from tests.support.replayscm.dev_pools import dev_problems
from tests.support.replayscm.enumerated_members import all_members, does, observed
from tests.support.replayscm.gold_problems import SETTINGS, Shape, gold_problem

SHAPES = (Shape(), Shape(roots=1, endogenous=3, units=6, training=4), Shape(roots=3, endogenous=1, units=8))


def small() -> Iterator[tuple[Problem, Findings]]:
    for shape in SHAPES:
        for seed in range(8):
            problem = gold_problem(seed, SETTINGS[seed % 4], shape)
            yield problem, audit_instance(problem, AuditOptions())


def counts(found: Findings) -> dict[tuple[int, int | None], int]:
    """(parents, cap) -> members."""
    plain: dict[tuple[int, int | None], int] = {(one.max_parents, None): int(one.members) for one in found.classes}
    return plain | {(one.max_parents, one.max_size): int(one.members) for one in found.capped}


def test_counts_equal_enumeration_in_every_class() -> None:
    """Four variables, so three parents are all there are."""
    several = 0
    for problem, found in small():
        listed = counts(found)
        assert set(listed) == {(c.max_parents, c.max_size) for c in profile_classes()}
        for (max_parents, max_size), number in listed.items():
            assert number == len(all_members(problem.task, min(3, max_parents), max_size))
        several += 1 < listed[2, None] < listed[3, None]
    assert several >= 6


def test_spectra_equal_enumeration() -> None:
    for problem, found in small():
        sizes = Counter(member_size(member, problem.task.grammar) for member in all_members(problem.task, 3))
        assert found.spectrum is not None
        assert found.spectrum.by_size == {size: str(number) for size, number in sorted(sizes.items())}


def test_draws_equal_enumeration() -> None:
    """Uniform in both classes (which are the same here) and with weight 2**-size."""
    inner = 0
    for problem, found in small():
        heldout = problem.sealed.heldout.worlds
        weights: dict[bool, list[Fraction]] = {True: [], False: []}
        for member in all_members(problem.task, 3):
            weight = Fraction(1, 2 ** member_size(member, problem.task.grammar))
            weights[does(member, heldout) == observed(heldout)].append(weight)
        num_exact, number = len(weights[True]), len(weights[True]) + len(weights[False])
        uniform, sized, weighted = found.draws
        assert uniform.probability == sized.probability == float(Fraction(num_exact, number))
        assert weighted.probability == float(sum(weights[True]) / (sum(weights[True]) + sum(weights[False])))
        assert (uniform.size_penalty, sized.size_penalty, weighted.size_penalty) == (None, None, 1)
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
    found = audit_instance(problem, AuditOptions())
    assert counts(found)[2, None] == 0
    assert add_size_cap(ModelClass(5)) == ModelClass(5, 11)
    assert "functional parents <= 5, formula size <= 11" in found.draws[1].in_words


def test_caps_are_used_only_as_far_as_they_are_complete() -> None:
    assert add_size_cap(ModelClass(4)) == ModelClass(4, 15)
    assert {(c.max_parents, c.max_size) for c in profile_classes() if c.max_size} == (
        {(k, 15) for k in (2, 3, 4)} | {(k, 11) for k in (2, 3, 4, 5)} | {(k, 9) for k in (2, 3, 4, 5, 6)}
    )


@pytest.mark.parametrize("name", ["ordered", "hidden_order"])
def test_counts_of_the_shared_pools_are_consistent(name: str) -> None:
    """Larger classes have more members, gold is one, and 15 nodes suffice for every function of four parents."""
    bites = 0
    for problem in dev_problems(name)[::16]:
        found = audit_instance(problem, AuditOptions())
        number = counts(found)
        uncapped = [number[k, None] for k in (2, 3, 4, 5)]
        assert uncapped == sorted(uncapped)
        assert uncapped[:3] == [number[k, 15] for k in (2, 3, 4)]
        for k in (2, 3, 4, 5):
            assert number[k, 9] <= number[k, 11] <= number[k, None]
        bites += number[4, 9] < number[4, 11] < number[4, None]
        uniform = found.draws[0].probability
        assert uniform is not None
        assert 0 < uniform <= 1
    assert bites
