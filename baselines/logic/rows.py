"""Methods that are not exact: no answer, a random model of the class, local search, a genetic algorithm, a list.

Each returns a model, a table of probabilities for the questions, or `OutOfBudget` with the reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from calibrant.baselines.logic.genetic import USUAL_PLAN, GeneticPlan, genetic_model
from calibrant.baselines.logic.greedy import greedy_model
from calibrant.dsl.logic import reference
from calibrant.dsl.logic.clause import Model
from calibrant.dsl.logic.files.networks import ListedModel
from calibrant.dsl.logic.grading import Table
from calibrant.dsl.logic.task import Task
from calibrant.solvers.logic.family import solve_class
from calibrant.solvers.logic.search import USUAL_LIMITS, Limits
from calibrant.solvers.outcome import Found, OutOfBudget


def abstain(task: Task) -> Found[Table]:
    """Return 0.5 for every cell of the questions."""
    return Found(tuple(tuple(0.5 for _ in task.setup.readouts) for _ in task.questions))


def random_model(task: Task, seed: int, limits: Limits = USUAL_LIMITS) -> Found[Model] | OutOfBudget:
    """Return a model drawn uniformly from the class, whatever the data."""
    outcome = solve_class(task, limits)
    if not isinstance(outcome, Found):
        return outcome
    return Found(outcome.value.draw(np.random.default_rng(seed), 1)[0])


def greedy(task: Task) -> Found[Model]:
    """Return the model at which local search ends."""
    return Found(greedy_model(task))


def genetic(task: Task, seed: int, plan: GeneticPlan = USUAL_PLAN) -> Found[Model] | OutOfBudget:
    """Return the best model of a genetic algorithm."""
    model = genetic_model(task, seed, plan)
    return OutOfBudget("the class has too many clauses for a string of bits") if model is None else Found(model)


def listed(task: Task, models: Sequence[ListedModel]) -> Found[Table] | OutOfBudget:
    """Return the weighted share of a list's acyclic models that answer 1, cell by cell."""
    usable = [entry for entry in models if entry.weight and reference.is_acyclic(entry.model)]
    if not usable:
        return OutOfBudget("the list has no acyclic model")
    total = sum(entry.weight for entry in usable)
    rows = []
    for question in task.questions:
        ones = [0] * len(task.setup.readouts)
        for entry in usable:
            for r, answer in enumerate(reference.predict(entry.model, task.setup, question)):
                ones[r] += entry.weight * int(answer)
        rows.append(tuple(float(Fraction(number, total)) for number in ones))
    return Found(tuple(rows))
