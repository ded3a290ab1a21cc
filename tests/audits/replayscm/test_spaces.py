"""One audited instance builds each of its version spaces once, and every part of the audit asks the same ones."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from calibrant.audits.replayscm.ambiguity import Spaces, profile_classes
from calibrant.audits.replayscm.items import AuditOptions, audit_instance, candidates
from calibrant.dsl.replayscm.item import Task
from calibrant.dsl.replayscm.world import PackedPanels, Panel, pack_panels
from calibrant.solvers.replayscm.space import ModelClass, VersionSpace, local_space
from tests.support.replayscm.gold_problems import SETTINGS, Shape, gold_problem


def shown(panels: PackedPanels) -> tuple[bytes, bytes]:
    return panels.observed.tobytes(), panels.scored.tobytes()


@pytest.mark.parametrize("setting", SETTINGS)
def test_an_audit_builds_every_version_space_once(setting: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By class and evidence: of the training worlds, and of these with the held-out worlds; local spaces likewise."""
    problem = gold_problem(3, setting, Shape(roots=2, endogenous=3, units=3, training=2))
    evidence = (problem.task.training.worlds, problem.worlds)
    packed = [shown(pack_panels([Panel(problem.task.variables, worlds)])) for worlds in evidence]
    built: Counter[tuple[int, ModelClass]] = Counter()
    counted: Counter[tuple[int, int]] = Counter()
    build = VersionSpace.__init__

    def building(space: VersionSpace, task: Task, model_class: ModelClass, **limits: Any) -> None:
        build(space, task, model_class, **limits)
        if task.training.worlds in evidence and task.disclosure == problem.task.disclosure:
            built[evidence.index(task.training.worlds), model_class] += 1

    def counting(panels: Any, target: int, *arguments: Any) -> Any:
        if shown(panels) in packed:
            counted[packed.index(shown(panels)), target] += 1
        return local_space(panels, target, *arguments)

    monkeypatch.setattr(VersionSpace, "__init__", building)
    monkeypatch.setattr("calibrant.solvers.replayscm.space.local_space", counting)
    found = audit_instance(problem, AuditOptions())
    assert found.survivors
    assert found.ceilings
    assert found.split
    assert set(built.values()) == {1}
    training = {model_class for place, model_class in built if place == 0}
    assert training == {ModelClass(6), *profile_classes()}  # six parents for the cap of nine nodes
    most = {place: max(number for (where, _), number in counted.items() if where == place) for place in (0, 1)}
    assert most == {0: 1, 1: 1}  # a variable once, in the widest class; the others are parts of it


def test_a_capped_space_shares_the_functions_of_the_one_without() -> None:
    """And counts the same as one that is built alone."""
    for setting in SETTINGS:
        problem = gold_problem(5, setting, Shape(roots=2, endogenous=3, units=3, training=2))
        spaces = Spaces(problem)
        for size in (3, 5, 11):
            alone = VersionSpace(problem.task, ModelClass(3, size))
            assert spaces.space(3, size).counts_by_roots == alone.counts_by_roots
            share = alone.agreement(problem.sealed.heldout.worlds, size_penalty=1) if alone.count else None
            assert spaces.heldout_exact(spaces.space(3, size), size_penalty=1) == share


def test_survivors_are_of_the_class_that_is_named() -> None:
    """Where only nested root sets are asked for, the smallest members have such roots as well."""
    narrowed = 0
    for seed in range(12):
        problem = gold_problem(seed, SETTINGS[3], Shape(roots=2, endogenous=3, units=4, training=3))
        spaces = Spaces(problem, nested_roots=True)
        able = set(spaces.space(4).counts_by_roots)
        if able and able != set(VersionSpace(problem.task, ModelClass(4)).counts_by_roots):
            narrowed += 1
            assert {model.roots for model in candidates(spaces, 4)} <= able
    assert narrowed
