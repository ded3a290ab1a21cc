"""Rows of items of trajectories. Each returns an answer as a JSON object, or `OutOfBudget` with the reason."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any, TypeAlias

from calibrant.dsl.logic.trajectories import states_json
from calibrant.dsl.networks.trajectories import TrajectoryTask, clamped
from calibrant.solvers.networks.trajectories import FittingNetworks, fit_networks
from calibrant.solvers.outcome import Found, Impossible, OutOfBudget

Answer: TypeAlias = Found[Mapping[str, Any]] | Impossible | OutOfBudget


def _fitting(task: TrajectoryTask) -> Found[FittingNetworks] | Impossible | OutOfBudget:
    fitting = fit_networks(task)
    if isinstance(fitting, Found) and fitting.value.count == 0:
        return Impossible("no network of the class gives the states of the trajectories")
    return fitting


def fitting_network(task: TrajectoryTask) -> Answer:
    """Return a network that fits: every gene with the function that is 1 only where a reading makes it so."""
    fitting = _fitting(task)
    return Found({"model": fitting.value.witness()}) if isinstance(fitting, Found) else fitting


def likeliest(task: TrajectoryTask) -> Answer:
    """Return the answer that most of the networks that fit give."""
    fitting = _fitting(task)
    if not isinstance(fitting, Found):
        return fitting
    best = fitting.value.likeliest_answer()
    return Found(states_json(best.value[0], task)) if isinstance(best, Found) else best


def majority(task: TrajectoryTask) -> Answer:
    """Return the answer under the value that most functions of each gene give, step by step."""
    fitting = _fitting(task)
    return Found(states_json(fitting.value.majority_answer(), task)) if isinstance(fitting, Found) else fitting


def copy_start(task: TrajectoryTask) -> Answer:
    """Return the last state that is known, the start, for every state that is asked for."""
    question = task.question
    start = clamped(question.start, task.genes, question.clamps)
    return Found(states_json([start] * (question.steps or 1), task))


def random_network(task: TrajectoryTask, seed: int) -> Answer:
    """Return a network drawn uniformly from the class, whatever the evidence."""
    fitting = fit_networks(task)
    return Found({"model": fitting.value.draw(Random(seed))}) if isinstance(fitting, Found) else fitting
