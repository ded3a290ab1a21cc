"""Greedy control: one toggle towards the configuration with the most expected information gain per move."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Protocol

import numpy as np

from calibrant.dsl.blickets.episode import apply_move
from calibrant.dsl.blickets.item import Task
from calibrant.dsl.blickets.rule import Rule
from calibrant.solvers.blickets.geometry import Geometry
from calibrant.solvers.blickets.weights import Weights
from calibrant.solvers.space import Move

DIGITS = 9  # smaller differences are ties, so that rounding on another machine changes no move


class Belief(Protocol):
    """Space with a probability of each answer."""

    @property
    def geometry(self) -> Geometry: ...

    def posterior(self) -> Mapping[Rule, float]:
        """Return the probability of each answer, in the order of `all_rules`; empty if the space is."""
        ...

    def information(self) -> Weights:
        """Return the expected information gain about the answer, in bits, of a reading at each configuration."""
        ...


def best_answer(belief: Belief) -> tuple[Rule, float]:
    """Return the most probable answer, the first of equals, and its probability; `ValueError` for an empty space."""
    posterior = belief.posterior()
    if not posterior:
        raise ValueError("the space is empty")
    best = max(posterior, key=lambda rule: round(posterior[rule], DIGITS))
    return best, posterior[best]


def greedy_move(
    belief: Belief, task: Task, placed: tuple[int, ...], ties: Random | None = None
) -> Move[tuple[int, ...]]:
    """Choose the toggle towards the configuration with most information per move.

    ties: samples among equally good configurations; without it the first is taken
    """
    distances = belief.geometry.distances(placed)
    # per move, not per reading: every toggle costs one of the budget; the current configuration is infinitely far
    gain_per_move = np.where(np.isinf(distances), -np.inf, np.round(belief.information() / distances, DIGITS))
    target = (
        int(np.argmax(gain_per_move))
        if ties is None
        else ties.choice(np.flatnonzero(gain_per_move == gain_per_move.max()).tolist())
    )
    return first_toggle(belief.geometry, task, placed, target)


def first_toggle(
    geometry: Geometry, task: Task, placed: tuple[int, ...], target: int, ties: Random | None = None
) -> Move[tuple[int, ...]]:
    """Return the first move of a shortest path to another configuration.

    ties: samples among the first moves of shortest paths; without it the first object is toggled
    """
    possible = geometry.toward(placed, target)
    verb, index = possible[0] if ties is None else ties.choice(possible)
    return Move({verb: task.objects[index]}, apply_move(placed, verb, index))
