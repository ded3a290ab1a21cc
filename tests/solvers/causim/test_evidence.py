"""Minimal evidence against trying every set of observations."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from calibrant.dsl.causim.model import Model, ModelError, assignment_text, run, symbol
from calibrant.dsl.causim.question import Question, project
from calibrant.dsl.causim.reference import worlds
from calibrant.dsl.causim.topology import TOPOLOGIES
from calibrant.solvers.causim.experiments import minimal_evidence, observable
from calibrant.solvers.outcome import Budget, Found, Impossible, OutOfBudget
from tests.support.causim.table_models import random_graph, random_model, random_question

Seen = dict[str, str]


def fitting(model: Model, question: Question) -> list[tuple[Seen, str]]:
    """Noise and factual values of every fitting world, with its answer."""
    found = []
    for noise, _ in worlds(model, question.fixed):
        factual = run(model, noise, {})
        if all(factual[name] == value for name, value in question.observed.items()):
            answer = project(question, model, noise, run(model, noise, question.do))
            found.append(({**noise, **factual}, assignment_text(answer)))
    return found


def least(names: tuple[str, ...], truth: tuple[Seen, str], all_worlds: list[tuple[Seen, str]]) -> int | None:
    """Return the size of the smallest set of names that tells the truth from every other answer, by trying all."""
    for size in range(len(names) + 1):
        for chosen in combinations(names, size):
            left = {answer for seen, answer in all_worlds if all(seen[name] == truth[0][name] for name in chosen)}
            if left == {truth[1]}:
                return size
    return None


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_it_is_the_smallest_set_that_leaves_one_answer(topology: str) -> None:
    rng = np.random.default_rng(31)
    compared = 0
    for _ in range(25):
        model = random_model(rng, random_graph(rng, topology, int(rng.integers(2, 5))))
        question = random_question(rng, model)
        all_worlds = fitting(model, question)
        if not all_worlds:
            continue
        truth = all_worlds[int(rng.integers(len(all_worlds)))]
        noise = {name: truth[0][name] for name in model.noises}
        found = minimal_evidence(model, question, noise)
        assert isinstance(found, Found)
        names = observable(model, question)
        assert len(found.value.observe) == least(names, truth, all_worlds)
        left = {
            answer for seen, answer in all_worlds if all(seen[name] == truth[0][name] for name in found.value.observe)
        }
        assert left == {truth[1]}
        few = [name for name in names if name in model.position]
        limited = minimal_evidence(model, question, noise, few)
        expected = least(tuple(few), truth, all_worlds)
        if expected is None:
            assert isinstance(limited, Impossible)
        else:
            assert isinstance(limited, Found)
            assert len(limited.value.observe) == expected
        compared += 1
    assert compared > 10


def test_a_world_that_does_not_fit_is_refused_and_a_spent_budget_is_told() -> None:
    rng = np.random.default_rng(5)
    model = random_model(rng, random_graph(rng, "chain", 3))
    world = {node.noise: node.support[0] for node in model.nodes}
    factual = run(model, world, {})
    name, wrong = model.names[-1], symbol("nowhere")
    with pytest.raises(ModelError, match="does not fit"):
        minimal_evidence(model, Question("counterfactual", {}, model.noises, {}, {name: wrong}), world)
    question = Question("abduction", {}, model.noises, {}, factual)
    assert isinstance(minimal_evidence(model, question, world, budget=Budget(0)), OutOfBudget)
