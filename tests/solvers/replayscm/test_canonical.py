"""Canonical tasks: equal for all names and orders, and answers that come back over the names of the task."""

from __future__ import annotations

from functools import cache
from random import Random

import pytest

from calibrant.bench.core.registry import benchmark_of, bundled_pools
from calibrant.bench.lab.renamings import Invariance, measure
from calibrant.bench.lab.replayscm import rename
from calibrant.bench.protocols import Protocol
from calibrant.bench.replayscm.rows.exact import Exact
from calibrant.bench.replayscm.rows.listed import FirstFound, MostPosterior, RandomLegal
from calibrant.dsl.formulas.text import STANDARD
from calibrant.dsl.replayscm.disclosure import HiddenOrder
from calibrant.dsl.replayscm.item import Problem, Task, TaskKind
from calibrant.dsl.replayscm.world import Intervention, Panel, World
from calibrant.solvers.replayscm.canonical import canonical_task

HIDDEN_ORDER = bundled_pools()[2]


@cache
def _problems() -> tuple[Problem, ...]:
    return tuple(problem for path in bundled_pools() for problem in benchmark_of(path).items.read_pool(path).items[:3])


def test_renamed_problems_have_one_canonical_task() -> None:
    for problem in _problems():
        forms = [canonical_task(rename(problem, Random(seed)).item.task).task for seed in range(3)]
        assert forms[0] == forms[1] == forms[2] == canonical_task(problem.task).task


def test_different_problems_have_different_canonical_tasks() -> None:
    tasks = [
        repr((form.disclosure, form.training.worlds)) for form in (canonical_task(p.task).task for p in _problems())
    ]
    assert len(set(tasks)) == len(tasks)


def test_the_canonical_task_is_the_task_renamed() -> None:
    for problem in _problems():
        canonical = canonical_task(problem.task)
        assert sorted(canonical.names.values()) == sorted(problem.task.variables)
        rows = sorted(tuple(sorted((canonical.names[v], b) for v, b in row.items())) for row in _rows(canonical.task))
        assert rows == sorted(tuple(sorted(row.items())) for row in _rows(problem.task))


def _rows(task: Task) -> list[dict[str, int]]:
    return [row for world in task.training.worlds for row in world.rows()]


def _twins() -> Task:
    """Return a task in which X1 and X2 are alike."""
    columns = {"X1": 0b1010, "X2": 0b1100, "X3": 0b1000}
    world = World("w0", Intervention(), tuple(columns), ("a", "b", "c", "d"), tuple(columns.values()))
    disclosure = HiddenOrder(tuple(columns), ("X1", "X2"))
    return Task(TaskKind.SCM, disclosure, STANDARD, Panel(tuple(columns), (world,)), shares_units=True, num_heldout=0)


def test_symmetry_is_reported() -> None:
    canonical = canonical_task(_twins())
    child = next(new for new, old in canonical.names.items() if old == "X3")
    first, second = sorted(canonical.names.keys() - {child})
    assert canonical.symmetries == ({first: second, second: first, child: child},)
    assert all(canonical_task(problem.task).symmetries == () for problem in _problems())


def test_restore_replaces_names_in_texts_and_keys_alone() -> None:
    canonical = canonical_task(_twins())
    new = {old: new for new, old in canonical.names.items()}
    assert canonical.restore({new["X3"]: [f"(and {new['X1']} {new['X2']})", "V10", 7, None]}) == {
        "X3": ["(and X1 X2)", "V10", 7, None]
    }


def _measured(protocol: Protocol) -> Invariance:
    of = benchmark_of(HIDDEN_ORDER)
    return measure(of, of.items.read_pool(HIDDEN_ORDER).items[:3], protocol, times=2, seed=3)


@pytest.mark.parametrize("protocol", [Exact(), MostPosterior(), FirstFound(), RandomLegal()])
def test_rates_and_answers_of_rows_do_not_move(protocol: Protocol) -> None:
    result = _measured(protocol)
    assert (result.moved, result.num_different, result.num_crashed) == ({}, 0, 0)


class RawFirstFound(FirstFound, frozen=True):
    """Stand-in: first-found without the canonical form."""

    reads_canonical = False


def test_the_measure_sees_a_row_that_names_move() -> None:
    assert _measured(RawFirstFound()).num_different > 0
