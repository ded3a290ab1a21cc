"""Greedy control: one toggle towards the configuration that is expected to tell most about the answer per move."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Protocol

import numpy as np

from calibrant.dsl.blickets.item import Task
from calibrant.dsl.blickets.readings import apply_move
from calibrant.dsl.blickets.rule import Rule
from calibrant.solvers.blickets.geometry import Geometry
from calibrant.solvers.blickets.weights import Weights
from calibrant.solvers.experiment import Move

DIGITS = 9  # what differs by less is a tie, on every machine


class Belief(Protocol):
    """A space that can say what it expects."""

    @property
    def geometry(self) -> Geometry: ...

    def posterior(self) -> Mapping[Rule, float]:
        """The probability of each answer, in the order of `all_rules`; empty if the space is."""
        ...

    def information(self) -> Weights:
        """For each configuration of the geometry how many bits its reading is expected to tell about the answer."""
        ...


def best_answer(belief: Belief) -> tuple[Rule, float]:
    """The most probable answer, the first of equals, and its probability; `ValueError` if the space is empty."""
    posterior = belief.posterior()
    if not posterior:
        raise ValueError("the space is empty")
    best = max(posterior, key=lambda rule: round(posterior[rule], DIGITS))
    return best, posterior[best]


def greedy_move(
    belief: Belief, task: Task, placed: tuple[int, ...], ties: Random | None = None
) -> Move[tuple[int, ...]]:
    """The toggle towards the configuration with most information per move.

    ties: draws among equally good configurations; without it the first is taken
    """
    distances = belief.geometry.distances(placed)
    worth = np.where(np.isinf(distances), -np.inf, np.round(belief.information() / distances, DIGITS))
    target = int(np.argmax(worth)) if ties is None else ties.choice(np.flatnonzero(worth == worth.max()).tolist())
    return first_toggle(belief.geometry, task, placed, target)


def first_toggle(
    geometry: Geometry, task: Task, placed: tuple[int, ...], target: int, ties: Random | None = None
) -> Move[tuple[int, ...]]:
    """The first move to a configuration that is not there yet.

    ties: draws among the moves that a shortest way can begin with; without it the first object is toggled
    """
    possible = geometry.toward(placed, target)
    verb, index = possible[0] if ties is None else ties.choice(possible)
    return Move({verb: task.objects[index]}, apply_move(placed, verb, index))
