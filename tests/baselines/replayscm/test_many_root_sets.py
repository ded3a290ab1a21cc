"""Hidden roots of which there are more sets than anybody goes through: a spent budget in words, within seconds."""

from __future__ import annotations

from itertools import islice
from random import Random

import pytest

from calibrant.baselines.replayscm.fit import all_root_sets, root_hypotheses
from calibrant.baselines.replayscm.rows import first_found
from calibrant.baselines.replayscm.staged import STAGES, NotFound, staged_search
from calibrant.bench.core.benchmark import TaskHandout
from calibrant.bench.protocols.base import Protocol
from calibrant.bench.replayscm.rows.exact import Exact
from calibrant.bench.replayscm.rows.listed import MostPosterior
from calibrant.bench.replayscm.rows.structures import BnlearnThenFit
from calibrant.bench.runs.workers import timed_answer
from calibrant.dsl.formulas.text import STANDARD
from calibrant.dsl.replayscm.disclosure import HiddenRoots
from calibrant.dsl.replayscm.item import Task, TaskKind
from calibrant.dsl.replayscm.world import Intervention, Panel, World
from calibrant.solvers.outcome import BudgetSpent, Found, Impossible
from calibrant.solvers.replayscm.engines.registry import create_engine
from calibrant.solvers.replayscm.roots import MAX_ROOT_SETS, iterate_likely_first, list_root_sets
from calibrant.solvers.replayscm.space import ModelClass, VersionSpace

NUM_VARIABLES, NUM_ROOTS, NUM_ROWS = 26, 13, 48


def task_of(columns: dict[str, int], num_roots: int = NUM_ROOTS) -> Task:
    variables = tuple(columns)
    world = World("w", Intervention(), variables, tuple(f"u{i}" for i in range(NUM_ROWS)), tuple(columns.values()))
    return Task(TaskKind.ROOTS, HiddenRoots(variables, num_roots), STANDARD, Panel(variables, (world,)), False, 0)


@pytest.fixture(scope="module")
def task() -> Task:
    """Units are not shared, so every set may be the true one; all columns are drawn, none follows from others."""
    rng = Random(1)
    return task_of({f"X{i}": rng.getrandbits(NUM_ROWS) for i in range(1, NUM_VARIABLES + 1)})


def test_they_are_counted_before_they_are_listed(task: Task) -> None:
    assert task.disclosure.num_root_sets() == 10_400_600
    for asked in (list_root_sets, root_hypotheses, all_root_sets):
        with pytest.raises(BudgetSpent, match="10400600 root sets"):
            asked(task)
    with pytest.raises(BudgetSpent, match="root sets"):
        _ = VersionSpace(task, ModelClass(2)).root_sets


def test_whoever_takes_one_after_another_ends_too(task: Task) -> None:
    listed = iterate_likely_first(task)
    assert len(set(islice(listed, MAX_ROOT_SETS))) == MAX_ROOT_SETS
    with pytest.raises(BudgetSpent, match=f"{MAX_ROOT_SETS} root sets"):
        next(listed)


def test_searches_end_with_a_spent_budget(task: Task) -> None:
    with pytest.raises(BudgetSpent):
        first_found(task)
    found = staged_search(task, [STAGES[0]])
    assert isinstance(found, NotFound)
    assert found.out_of_nodes


@pytest.mark.parametrize("protocol", [Exact(), MostPosterior(), BnlearnThenFit()], ids=lambda p: p.name)
def test_protocols_say_what_ran_out(task: Task, protocol: Protocol) -> None:
    result = timed_answer(protocol, TaskHandout(task)).result
    assert result.outcome == "out_of_budget"
    assert "root sets" in str(result.provenance["reached"])


def test_what_lists_no_root_sets_or_finds_the_first_still_answers(task: Task) -> None:
    """X14 to X26 copy X1 to X13."""
    names, rng = task.variables, Random(2)
    drawn = [rng.getrandbits(NUM_ROWS) for _ in range(NUM_ROOTS)]
    copies = task_of(dict(zip(names, [*drawn, *drawn], strict=True)))
    model = first_found(copies)
    assert model is not None
    assert model.roots == names[:NUM_ROOTS]
    assert isinstance(create_engine("auto").first(copies, ModelClass(1)), Found)
    assert isinstance(create_engine("auto").first(task, ModelClass(1)), Impossible)
