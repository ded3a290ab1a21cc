"""Version spaces of interactive items, and the greedy choice of the next experiment in one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from calibrant.dsl.episode import Action, Episode
from calibrant.dsl.errors import in_one_line
from calibrant.solvers.outcome import Found, Impossible

# --- Version spaces of interactive items: the hypotheses of a stated class that agree with all readings ---------------
M = TypeVar("M")  # a member
X = TypeVar("X")  # an experiment, which gives a reading
R = TypeVar("R")  # a reading
A = TypeVar("A")  # an answer to the question that is scored


class Space(Protocol[M, X, R, A]):
    """The members of a class that fit the evidence so far. Immutable: `after` returns a new space.

    in_words: the class in the words that claims use
    count: exact number of members; 0 if nothing in the class fits
    """

    @property
    def in_words(self) -> str: ...
    @property
    def count(self) -> int: ...

    def fits(self, member: M) -> bool:
        """Return whether a hypothesis of the class is a member."""
        ...

    def sample(self, rng: np.random.Generator, n: int) -> Sequence[M]:
        """Sample n members uniformly with replacement; `ValueError` if there is none."""
        ...

    def after(self, experiment: X, reading: R) -> Space[M, X, R, A]:
        """Return the space of those members that give this reading to the experiment."""
        ...

    def outcomes(self, experiment: X) -> Mapping[R, int]:
        """Return reading -> number of members that give it, without readings of no member; the sum is `count`."""
        ...

    def verdicts(self) -> Mapping[A, int]:
        """Return answer to the scored question -> number of members with it; with one key it is decided."""
        ...


class InWords(Protocol):
    """Anything that names its class."""

    @property
    def in_words(self) -> str: ...


def space_repr(space: InWords) -> str:
    """Return the type and class of a space in one line."""
    return f"<{type(space).__name__}: {in_one_line(space.in_words)[:150]}>"


# --- Greedy choice of the next experiment by the expected share of remaining members; loop that runs experiments ------


@dataclass(frozen=True, slots=True)
class RatedExperiment(Generic[X]):
    """An experiment, its cost, and the expected share of the members that remain."""

    experiment: X
    cost: int
    share: Fraction


def best_experiment(
    space: Space[M, X, R, A], candidates: Iterable[X], cost: Callable[[X], int]
) -> Found[RatedExperiment[X]] | Impossible:
    """Return the candidate with the least expected share of remaining members for its cost; the first of equals.

    With outcome counts n_1, n_2, ... of n members the expected share is sum (n_i / n)^2. An experiment of cost c that
    leaves the share s is worth c experiments of cost 1 that leave s^(1/c) each, so s^(1/c) is compared. Costs are at
    least 1.
    `Impossible` if no candidate has different readings in two members.
    """
    best: RatedExperiment[X] | None = None
    for candidate in candidates:
        counts = space.outcomes(candidate).values()
        if len(counts) < 2:
            continue
        price = cost(candidate)
        if price < 1:
            raise ValueError(f"an experiment that costs {price}; costs are 1 or more")
        # all members are equally likely: outcome i has probability n_i / n and leaves the share n_i / n
        rated = RatedExperiment(candidate, price, Fraction(sum(n * n for n in counts), sum(counts) ** 2))
        # s^(1/c) < t^(1/d) is compared as s^d < t^c, in fractions, so that rounding decides nothing
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
    """Act in an episode until `stop` holds, no moves are left or the episode is closed; return the last space.

    Raise `ValueError` if a chosen action is refused, since that is an error of the solver.
    """
    while not episode.closed and episode.left > 0 and not stop(space):
        move = choose(space)
        step = episode.act(move.action)
        if step.refused:
            raise ValueError(f"the action {dict(move.action)} was refused: {step.refused}")
        if step.reading is not None:
            space = space.after(move.experiment, step.reading)
    return space
