"""Bounds of the ceiling that reports show: they hold the exact ceiling, and gold's share is not above it."""

from __future__ import annotations

from random import Random

import pytest

from calibrant.audits.replayscm.ambiguity import headline_parents
from calibrant.audits.replayscm.attribution import heldout_ceiling, heldout_decision
from calibrant.audits.replayscm.ceiling import ceiling
from calibrant.bench.core.registry import bundled_pool
from calibrant.dsl.replayscm.pools.files import read_pool
from calibrant.solvers.replayscm.space import ModelClass, VersionSpace


@pytest.mark.parametrize("setting", ["ordered", "hidden-roots"])
@pytest.mark.parametrize("max_counts", [1, 16, 10_000])
def test_bounds_hold_the_exact_ceiling(setting: str, max_counts: int) -> None:
    problem = read_pool(bundled_pool(setting)).problems[1]
    space = VersionSpace(problem.task, ModelClass(headline_parents(problem)))
    exact = ceiling(space, problem.sealed.heldout.worlds, Random(1), max_counts=None)
    assert exact.is_exact
    decision = heldout_decision(problem)
    assert decision is not None
    assert decision.agreement is not None
    bounds = heldout_ceiling(problem, decision.agreement, max_counts)
    assert bounds[0] <= exact.lower <= bounds[1]
    assert decision.agreement <= bounds[0]
    assert (bounds[0] == bounds[1]) == (max_counts == 10_000)
