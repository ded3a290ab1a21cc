"""Random small problems, half of them drawn with cycles, against listing every model with the reference."""

from __future__ import annotations

import random
from collections import Counter
from itertools import combinations
from typing import TypeAlias

import numpy as np
import pytest

from calibrant.dsl.logic import reference
from calibrant.dsl.logic.files.midas import candidate_experiments
from calibrant.dsl.logic.item import Clause, Model, Task
from calibrant.solvers.logic.family import solve_class, solve_family
from calibrant.solvers.outcome import Found
from tests.support.effort import effort
from tests.support.logic.problems import random_tasks

Pair: TypeAlias = tuple[Clause, Clause]


def compare_with_listing(task: Task, rng: random.Random) -> None:
    """Compare every number of a family with the listing of its class."""
    total = solve_class(task)
    assert isinstance(total, Found)
    assert total.value.count == sum(1 for _ in reference.all_models(task))
    outcome = solve_family(task)
    assert isinstance(outcome, Found)
    family, members = outcome.value, reference.family(task)
    models = [model for _, _, model in members]
    assert Counter((misfit, size) for misfit, size, _ in members) == family.spectrum
    assert family.count == len(members)
    assert set(family.models()) == set(models)
    assert Counter(clause for model in models for clause in model) == family.clauses()
    edges = Counter(edge for model in models for edge in {edge for clause in model for edge in clause.edges})
    assert edges == family.edges()
    _compare_pairs(family.pairs(), models)
    candidates = candidate_experiments(task.setup)
    predictions = family.predict(candidates)
    tables = Counter(tuple(reference.predict(model, task.setup, x) for x in candidates) for model in models)
    assert tables == predictions.tables
    _compare_parts(task, models, rng)


def _compare_pairs(pairs: tuple[list[Pair], list[Pair]], models: list[Model]) -> None:
    always = frozenset.intersection(*models)
    candidates = sorted(frozenset.union(*models) - always, key=str)
    exclusive, inclusive = [], []
    for first, second in combinations(candidates, 2):
        together = {(first in model) == (second in model) for model in models}
        exclusive += [(first, second)] if together == {False} else []
        inclusive += [(first, second)] if together == {True} else []
    assert pairs == (exclusive, inclusive)


def _compare_parts(task: Task, models: list[Model], rng: random.Random) -> None:
    outcome = solve_family(task)
    assert isinstance(outcome, Found)
    family = outcome.value
    clauses = sorted({clause for model in models for clause in model})
    if clauses:
        chosen, present = rng.choice(clauses), rng.random() < 0.5
        having = [model for model in models if (chosen in model) == present]
        part = family.condition(chosen, present=present)
        assert (part.count, part.clauses()) == (len(having), Counter(c for model in having for c in model))
        assert set(part.models()) == set(having)
    experiment = rng.choice(candidate_experiments(task.setup))
    reading = reference.predict(rng.choice(models), task.setup, experiment)
    after = family.after(experiment, reading)
    remaining = [model for model in models if reference.predict(model, task.setup, experiment) == reading]
    assert set(after.models()) == set(remaining)
    assert after.outcomes(experiment) == {reading: len(remaining)}
    assert all(model in remaining for model in after.draw(np.random.default_rng(0), 3))


@pytest.mark.soak
@pytest.mark.parametrize("part", range(4))
def test_families_are_those_of_the_listing(part: int) -> None:
    """120 problems: acyclic and cyclic, with every option of the class; a soak has 1,500 and more of other seeds."""
    number = effort(30, 400)
    for i, task in enumerate(random_tasks(part, number)):
        compare_with_listing(task, random.Random(i))
