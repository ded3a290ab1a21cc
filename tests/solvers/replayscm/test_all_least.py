"""All least SCMs: those that a class with one cap for all variables lists at that size, and draws from them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from calibrant.bench.core.registry import benchmark_of, bundled_pools
from calibrant.dsl.formulas.text import STANDARD
from calibrant.dsl.replayscm.disclosure import HiddenOrder
from calibrant.dsl.replayscm.item import Task, TaskKind
from calibrant.dsl.replayscm.scm import Scm
from calibrant.dsl.replayscm.world import Intervention, Panel, World
from calibrant.solvers.outcome import Found, OutOfBudget
from calibrant.solvers.replayscm.exact import ONLY_NESTED, ExactAnswer, solve
from calibrant.solvers.replayscm.least_models import LeastModels, least_models
from calibrant.solvers.replayscm.members import members_by_size
from calibrant.solvers.replayscm.space import ModelClass, VersionSpace

LISTED = 11  # size up to which functions of five variables are listed


def _answer(task: Task) -> ExactAnswer:
    outcome = solve(task)
    assert isinstance(outcome, Found)
    return outcome.value


def _least(task: Task, max_listed: int = 1_000) -> LeastModels:
    outcome = least_models(task, _answer(task), max_listed=max_listed)
    assert isinstance(outcome, Found)
    return outcome.value


@pytest.mark.parametrize("pool", bundled_pools(), ids=lambda path: path.stem)
def test_least_models_are_the_first_members_by_size(pool: Path) -> None:
    for problem in benchmark_of(pool).items.read_pool(pool).items[:5]:
        answer = _answer(problem.task)
        nested = answer.provenance["nested_roots"] == ONLY_NESTED
        space = VersionSpace(problem.task, ModelClass(5, LISTED, nested_roots=nested))
        expected = set()
        for model in members_by_size(space):
            if model.size > answer.size:
                break
            expected.add((model.roots, model.signature))
        least = _least(problem.task)
        assert {(model.roots, model.signature) for model in least.models} == expected
        assert least.count == len(expected) == len(least.models)
        assert not least.is_drawn
        assert any(model.equivalent(answer.model) for model in least.models)


def _open_row() -> Task:
    """Return a task of two roots and X3, which is 0 with X1 = X2 = 0 and 1 with one of them; both 1 is not seen."""
    columns = {"X1": 0b010, "X2": 0b100, "X3": 0b110}
    world = World("w0", Intervention(), tuple(columns), ("a", "b", "c"), tuple(columns.values()))
    disclosure = HiddenOrder(tuple(columns), ("X1", "X2"))
    return Task(TaskKind.SCM, disclosure, STANDARD, Panel(tuple(columns), (world,)), shares_units=True, num_heldout=0)


def test_an_open_row_leaves_two_least_models() -> None:
    texts = sorted(str(model.mechanisms["X3"]) for model in _least(_open_row()).models)
    assert texts == ["(or X1 X2)", "(xor X1 X2)"]


def test_draws_are_uniform_over_the_least_models() -> None:
    task = next(
        p.task
        for p in benchmark_of(bundled_pools()[2]).items.read_pool(bundled_pools()[2]).items
        if _count(p.task) == 36
    )
    least = _least(task, max_listed=35)
    assert (least.count, len(least.models), least.is_drawn) == (36, 35, True)
    assert _least(task, max_listed=35) == least
    sizes = {model.size for model in least.models}
    assert sizes == {_answer(task).size}
    # 35 independent uniform draws of 36 meet 22.6 different ones on average, with a standard deviation of 2.1
    assert 14 <= len(_meanings(least.models)) <= 31


def _count(task: Task) -> int:
    outcome = least_models(task, _answer(task))
    return outcome.value.count if isinstance(outcome, Found) else 0


def _meanings(models: tuple[Scm, ...]) -> Counter[object]:
    return Counter(model.signature for model in models)


def test_too_many_parent_sets_are_not_counted() -> None:
    variables = tuple(f"X{i}" for i in range(1, 31))
    columns = (0b01, *[0b10] * 29)
    world = World("w0", Intervention(), variables, ("a", "b"), columns)
    disclosure = HiddenOrder(variables, variables[:2])
    task = Task(TaskKind.SCM, disclosure, STANDARD, Panel(variables, (world,)), shares_units=True, num_heldout=0)
    outcome = least_models(task, _answer(task))
    assert isinstance(outcome, OutOfBudget)
    assert "parent sets, more than" in outcome.reached
