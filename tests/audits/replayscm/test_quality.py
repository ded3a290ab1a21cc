"""Do the audits notice? Planted ambiguity is always found, planted uniqueness never accused.

What is planted is certain by construction and checked with the oracle: a second SCM that replays every training row, or
evidence that shows every mechanism under every assignment of all other variables.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from random import Random

import pytest

from calibrant.audits.replayscm.ambiguity import gold_class
from calibrant.audits.replayscm.ceiling import ceiling
from calibrant.audits.replayscm.coverage import latent_scm
from calibrant.audits.replayscm.findings import PairAudit
from calibrant.audits.replayscm.hardening.harden import counterexample_worlds, only_rows
from calibrant.audits.replayscm.items import AuditOptions, audit_instance
from calibrant.dsl.formulas.table import TruthTable
from calibrant.dsl.replayscm.item import Problem
from calibrant.dsl.replayscm.scm import Scm, scm
from calibrant.dsl.replayscm.world import Intervention, Panel, World
from calibrant.solvers.outcome import Found
from calibrant.solvers.replayscm.members import sample_members, smallest_members
from calibrant.solvers.replayscm.space import ModelClass, VersionSpace
from tests.support.replayscm.oracles import assignments, replay
from tests.support.replayscm.pools import dev_problems
from tests.support.replayscm.random_problems import SETTINGS, Shape, gold_problem, normal_form, simulated


@cache
def unique_instances() -> tuple[Problem, ...]:
    """Hardened shared instances of every small stratum; that they are unique is what hardening proved."""
    done = [counterexample_worlds(problem, 0) for problem in dev_problems("hidden_order")[:30:5]]
    assert all(isinstance(result.outcome, Found) for result in done)
    return tuple(result.problem for result in done)


def with_training(problem: Problem, worlds: Sequence[World]) -> Problem:
    return replace(problem, task=replace(problem.task, training=Panel(problem.task.variables, tuple(worlds))))


def one_entry_flipped(model: Scm, variable: str, row: int) -> Scm:
    """Return the model with one entry of one truth table changed."""
    local = model.local_functions[variable]
    changed = TruthTable(local.table.num_vars, local.table.bits ^ 1 << row)
    return scm(model.roots, {**model.mechanisms, variable: normal_form(local.parents, changed.bits)})


def without_the_entry(problem: Problem, variable: str, row: int) -> Problem:
    """Return the training worlds without the rows that show this entry of the variable's truth table."""
    parents = latent_scm(problem).local_functions[variable].parents
    kept = []
    for world in problem.task.training.worlds:
        rows = [
            index
            for index, values in enumerate(world.rows())
            if variable in world.intervention.targets or sum(values[p] << i for i, p in enumerate(parents)) != row
        ]
        kept += [only_rows(world, rows)] if rows else []
    return with_training(problem, kept)


def fits(model: Scm, problem: Problem) -> bool:
    return all(
        replay(model, world.intervention, row.__getitem__) == row
        for world in problem.task.training.worlds
        for row in world.rows()
    )


def planted() -> Iterator[tuple[Problem, Scm]]:
    """Instances made ambiguous by taking one table entry's rows away, with the second SCM that then fits."""
    for problem in unique_instances():
        gold = latent_scm(problem)
        for variable, local in gold.local_functions.items():
            for row in range(1 << len(local.parents)):
                if (local.table.bits ^ 1 << row) not in (0, (1 << (1 << len(local.parents))) - 1):
                    yield without_the_entry(problem, variable, row), one_entry_flipped(gold, variable, row)


def test_planted_ambiguity_is_always_found() -> None:
    found = 0
    for problem, second in planted():
        assert fits(second, problem)
        assert not fits(second, next(p for p in unique_instances() if p.id == problem.id))
        space = VersionSpace(problem.task, gold_class(problem))
        assert space.count >= 2
        gold = latent_scm(problem)
        worlds = problem.sealed.heldout.worlds
        if not all(replay(second, w.intervention, row.__getitem__) == row for w in worlds for row in w.rows()):
            assert space.agreement(worlds) < 1
            found += 1
        assert PairAudit(gold, second).best is not None
    assert found >= 20


def test_planted_ambiguity_is_closed_again_by_hardening() -> None:
    """The second SCM is separated whether it is supplied as an alternative or only a member."""
    for problem, second in list(planted())[::25]:
        for alternatives in ((), (second,)):
            result = counterexample_worlds(problem, 1, alternatives=alternatives)
            assert isinstance(result.outcome, Found)
            assert not fits(second, result.problem)
            assert result.unseparated == ()


def test_planted_ambiguity_shows_in_audits_and_members() -> None:
    for problem, second in list(planted())[::15]:
        assert audit_instance(problem, AuditOptions()).members(4) >= 2
        members = smallest_members(VersionSpace(problem.task, ModelClass(4, 15)), 200)
        if not members.more:
            assert any(model.equivalent(second) for model in members.models)


def fully_shown(seed: int, setting: str, *, endogenous: int) -> Problem:
    """Every endogenous variable is observed under every assignment of all others: nothing is left open in any class."""
    problem = gold_problem(seed, setting, Shape(roots=2, endogenous=endogenous, training=1))
    gold = latent_scm(problem)
    worlds = []
    for variable in gold.endogenous:
        others = tuple(v for v in gold.variables if v != variable)
        rows = list(assignments(others))
        given = {v: [row[v] for row in rows] for v in others}
        units = [f"u{i}" for i in range(len(rows))]
        worlds.append(simulated(gold, f"all but {variable}", Intervention(assigned=others), units, given))
    return with_training(problem, worlds)


@pytest.mark.parametrize("setting", SETTINGS[:3])
@pytest.mark.parametrize("endogenous", [1, 2, 3, 4])
def test_planted_uniqueness_is_never_accused(setting: str, endogenous: int) -> None:
    for seed in range(6):
        problem = fully_shown(seed, setting, endogenous=endogenous)
        gold = latent_scm(problem)
        widest = max(len(local.parents) for local in gold.local_functions.values())
        found = audit_instance(problem, AuditOptions())
        assert all(int(one.members) == (one.max_parents >= widest) for one in found.classes)
        assert {one.members for one in found.capped} <= {"0", "1"}
        assert all(draw.probability == 1 for draw in found.draws)
        space = VersionSpace(problem.task, gold_class(problem))
        assert sample_members(space, Random(0), 1)[0].equivalent(gold)
        best = ceiling(space, problem.sealed.heldout.worlds, Random(0))
        assert best.lower == best.upper == 1
        result = counterexample_worlds(problem, 0, complete_coverage=False)
        assert result.added == ()
        assert isinstance(result.outcome, Found)


def test_hardened_uniqueness_survives_more_evidence() -> None:
    """Held-out worlds are gold's too, so they leave the single member standing."""
    for problem in unique_instances():
        more = with_training(problem, problem.worlds)
        assert VersionSpace(more.task, gold_class(problem)).count == 1
