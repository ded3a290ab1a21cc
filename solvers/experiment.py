"""Greedy choice of the next experiment by the expected share of remaining members; the loop that runs experiments."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Generic, TypeVar

from calibrant.dsl.episode import Action, Episode
from calibrant.solvers.outcome import Found, Impossible
from calibrant.solvers.space import Space

M = TypeVar("M")
X = TypeVar("X")
R = TypeVar("R")
A = TypeVar("A")


@dataclass(frozen=True, slots=True)
class RatedExperiment(Generic[X]):
    """An experiment, its cost, and the expected share of the members that remain."""

    experiment: X
    cost: int
    share: Fraction


def best_experiment(
    space: Space[M, X, R, A], candidates: Iterable[X], cost: Callable[[X], int]
) -> Found[RatedExperiment[X]] | Impossible:
    """Return the candidate with the least expected share of remaining members per cost; the first of equals.

    With outcome counts n_1, n_2, ... of n members the expected share is sum (n_i / n)^2. An experiment of cost c that
    leaves s is worth c experiments that leave s^(1/c) each, so s^(1/c) is compared. Costs are 1 or more. Impossible:
    every candidate has the same outcome in all members.
    """
    best: RatedExperiment[X] | None = None
    for candidate in candidates:
        counts = space.outcomes(candidate).values()
        if len(counts) < 2:
            continue
        price = cost(candidate)
        if price < 1:
            raise ValueError(f"an experiment that costs {price}; costs are 1 or more")
        # uniform truth: outcome i has probability n_i / n and leaves the share n_i / n, hence sum (n_i / n)^2
        rated = RatedExperiment(candidate, price, Fraction(sum(n * n for n in counts), sum(counts) ** 2))
        # s^(1/c) < t^(1/d) as s^d < t^c, in fractions, so that no rounding decides
        if best is None or rated.share**best.cost < best.share**rated.cost:
            best = rated
    if best is None:
        return Impossible(f"every candidate has one outcome only; members are of the class: {space.in_words}")
    return Found(best)


@dataclass(frozen=True, slots=True)
class Move(Generic[X]):
    """An action, and the experiment that it carries out."""

    action: Action
    experiment: X


def play(
    episode: Episode[Any, R],
    space: Space[M, X, R, A],
    choose: Callable[[Space[M, X, R, A]], Move[X]],
    stop: Callable[[Space[M, X, R, A]], bool],
) -> Space[M, X, R, A]:
    """Act in an episode until `stop` holds, the allowance is spent or the episode is closed; return the last space.

    `ValueError` if a chosen action is refused: a solver that knows the task has no reason to ask for it.
    """
    while not episode.closed and episode.left > 0 and not stop(space):
        move = choose(space)
        step = episode.act(move.action)
        if step.refused:
            raise ValueError(f"the action {dict(move.action)} was refused: {step.refused}")
        if step.reading is not None:
            space = space.after(move.experiment, step.reading)
    return space
