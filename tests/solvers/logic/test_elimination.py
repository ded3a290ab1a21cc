"""Layers of many states: the arrays give the states, transitions and groups that one pass over the states gives."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from calibrant.dsl.logic.item import Task
from calibrant.solvers.logic.elimination import bounds, lattice
from calibrant.solvers.logic.elimination.bounds import first_occurrences, number_rows
from calibrant.solvers.logic.search import search
from calibrant.solvers.outcome import Found
from tests.support.benchmarks.logic import random_tasks

NEVER = 1 << 62


def _outcome(task: Task, many: int, monkeypatch: pytest.MonkeyPatch) -> object:
    monkeypatch.setattr(lattice, "MANY_STATES", many)
    outcome = search(task)
    if not isinstance(outcome, Found):
        return str(outcome)
    kept = outcome.value.lattice
    layers = [(list(layer.states), layer.best, layer.starts, layer.targets, layer.groups) for layer in kept.layers]
    steps = kept.steps
    return layers, kept.least, steps.keys, steps.costs, steps.sizes, steps.evaluations, outcome.value.witness


def test_arrays_give_the_layers_of_one_pass_over_the_states(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = 0
    for task in random_tasks(31, 60):
        assert _outcome(task, 1, monkeypatch) == _outcome(task, NEVER, monkeypatch)
        compared += 1
    assert compared == 60


def test_misfits_beyond_64_bits_are_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    for task in random_tasks(32, 20):
        scaled = replace(task, values=tuple(tuple(None if v is None else v * 1e12 for v in row) for row in task.values))
        assert _outcome(scaled, 1, monkeypatch) == _outcome(scaled, NEVER, monkeypatch)


def test_too_many_candidates_are_expanded_state_by_state(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = [_outcome(task, NEVER, monkeypatch) for task in random_tasks(33, 10)]
    monkeypatch.setattr(lattice, "MAX_CANDIDATES", 2)
    assert [_outcome(task, 1, monkeypatch) for task in random_tasks(33, 10)] == expected


def test_bounds_of_many_live_nodes_are_those_of_single_states(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sums over all combinations of values of 20 nodes would take gigabytes."""
    expected = [_outcome(task, NEVER, monkeypatch) for task in random_tasks(34, 20)]
    monkeypatch.setattr(bounds, "_SUMS", 1)
    assert [_outcome(task, 1, monkeypatch) for task in random_tasks(34, 20)] == expected


@pytest.mark.parametrize("scale", [1, 1 << 21, 1 << 35])
def test_rows_of_one_number_are_the_equal_rows(scale: int) -> None:
    rows = np.random.default_rng(scale).integers(0, 3, (200, 4)) * scale
    numbers, count = number_rows([*rows.T], len(rows))
    assert numbers.min() >= 0
    assert numbers.max() < count
    listed = [tuple(row) for row in rows.tolist()]
    by_number: dict[int, tuple[int, ...]] = {}
    for number, row in zip(numbers.tolist(), listed, strict=True):
        assert by_number.setdefault(number, row) == row
    assert len(by_number) == len(set(listed))
    first, places = first_occurrences(numbers)
    order = list(dict.fromkeys(listed))
    assert [listed[i] for i in first] == order
    assert [order[place] for place in places] == listed
