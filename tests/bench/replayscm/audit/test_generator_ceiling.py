"""The ceiling under the generator's prior: what members do against the oracle, certainty, where it is left out."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from calibrant.baselines.replayscm.posterior.choice import certified_member
from calibrant.baselines.replayscm.posterior.posterior import Posterior
from calibrant.bench.core.registry import bundled_pool
from calibrant.bench.replayscm.audit.generator_ceiling import DRAWS, BehaviourReplay, generator_ceiling
from calibrant.dsl.formulas.text import Grammar
from calibrant.dsl.replayscm.item import Problem
from calibrant.dsl.replayscm.pools.files import read_pool
from calibrant.dsl.replayscm.world import Panel
from tests.support.replayscm.dev_pools import dev_problems
from tests.support.replayscm.oracles import replay


def bundled(setting: str) -> tuple[Problem, ...]:
    return tuple(read_pool(bundled_pool(setting)).problems)


@pytest.mark.parametrize("setting", ["ordered", "hidden-order", "hidden-roots"])
def test_what_a_member_does_is_what_the_reference_makes_of_it(setting: str) -> None:
    for problem in bundled(setting)[:3]:
        panel = problem.sealed.heldout
        replayed, posterior = BehaviourReplay(panel), Posterior(problem.task)
        rng = Random(1)
        members = [posterior.sample(rng) for _ in range(6)]
        for member, behaviour in zip(members, replayed.behaviours(members), strict=True):
            model = certified_member(problem.task, member)
            rows = [
                replay(model, world.intervention, row.__getitem__) for world in panel.worlds for row in world.rows()
            ]
            columns = [sum(row[v] << r for r, row in enumerate(rows)) for v in panel.variables]
            assert behaviour == (model.roots, *columns)


def test_where_all_draws_do_what_gold_does_the_ceiling_is_one() -> None:
    """With its held-out worlds among the training worlds nothing about them is open."""
    problem = bundled("hidden-order")[0]
    shown = Panel(problem.task.variables, problem.worlds)
    found = generator_ceiling(replace(problem, task=replace(problem.task, training=shown)))
    assert (found.probability, found.standard_error, found.realised) == (1.0, 0.0, True)
    assert found.draws == DRAWS


def test_it_is_the_same_every_time_and_says_why_it_is_left_out() -> None:
    problem = bundled("hidden-roots")[1]
    found = generator_ceiling(problem)
    assert found == generator_ceiling(problem)
    assert found.probability is not None
    assert 0 < found.probability <= 1
    constants = replace(problem, task=replace(problem.task, grammar=Grammar(allow_constants=True)))
    assert "standard operators" in generator_ceiling(constants).left_out
    bare = replace(problem, sealed=replace(problem.sealed, heldout=Panel(problem.task.variables, ())))
    assert generator_ceiling(bare).left_out == "there are no held-out worlds"
    unknown = replace(problem, sealed=replace(problem.sealed, gold=None))
    assert generator_ceiling(unknown).realised is None


def test_the_prior_predicts_how_often_its_best_answer_is_right() -> None:
    """Over development instances: realised within three standard errors of what was predicted."""
    found = [generator_ceiling(problem) for problem in dev_problems("hidden_order")[::4]]
    shares = [one.probability for one in found if one.probability is not None]
    realised = sum(bool(one.realised) for one in found)
    assert len(shares) == len(found)
    assert abs(realised - sum(shares)) < 3 * sum(share * (1 - share) for share in shares) ** 0.5
