"""Learners: observe, then move, answer, or give up; and the loop in which a learner plays an episode."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Protocol, TypeAlias

from calibrant.dsl.blickets.episode import apply_move, placed_after, steps_with_state
from calibrant.dsl.blickets.item import Task
from calibrant.dsl.blickets.rule import Rule, all_rules
from calibrant.dsl.episode import Episode, Step
from calibrant.solvers.blickets.control import Belief, best_answer, greedy_move
from calibrant.solvers.blickets.static import StaticSpace
from calibrant.solvers.outcome import Found, Impossible, Outcome, OutOfBudget
from calibrant.solvers.space import Move

DELTA = 0.01

Decision: TypeAlias = Move[tuple[int, ...]] | Found[Rule] | Impossible


class Learner(Protocol):
    """Strategy that plays an episode from its readings alone."""

    def observe(self, placed: tuple[int, ...], reading: str) -> None:
        """Update on one reading."""
        ...

    def spend(self, moves: int) -> None:
        """Update on the number of moves made, refused ones included; called after their reading."""
        ...

    def decide(self, placed: tuple[int, ...]) -> Decision:
        """Return the next move, or the answer, or that the readings contradict the class."""
        ...

    def guess(self) -> Rule:
        """Return the most probable answer so far, even if undecided or contradicted."""
        ...


@dataclass(frozen=True, slots=True)
class Learned:
    """Conclusion of a learner.

    outcome: Found if sure enough; Impossible if the readings contradict its class; else OutOfBudget
    guess: its answer if it has to give one
    """

    outcome: Outcome[Rule]
    guess: Rule


def learn(episode: Episode[Task, str], learner: Learner) -> Learned:
    """Let a learner play an episode to its conclusion. Nothing is submitted."""
    task = episode.task
    placed: tuple[int, ...] = ()
    for placed, step in steps_with_state(task, episode.steps):  # the last one is where it stands
        _update_learner(learner, placed, step)
    while True:
        decision = learner.decide(placed)
        if not isinstance(decision, Move):
            return Learned(decision, learner.guess())
        if episode.left <= 0 or episode.closed:
            return Learned(OutOfBudget(f"undecided after {task.budget - episode.left} moves"), learner.guess())
        step = episode.act(decision.action)
        if step.reading is None:
            raise ValueError(f"the move {dict(decision.action)} was refused: {step.refused}")
        placed = decision.experiment
        _update_learner(learner, placed, step)


def _update_learner(learner: Learner, placed: tuple[int, ...], step: Step[str]) -> None:
    if step.reading is not None:
        learner.observe(placed, step.reading)
    learner.spend(step.cost)


class Revisable(Belief, Protocol):
    """Belief that can be updated on readings."""

    @property
    def count(self) -> int: ...
    @property
    def in_words(self) -> str: ...

    def after(self, experiment: tuple[int, ...], reading: str) -> Revisable: ...


class Greedy:
    """Greedy control over one space; answers once the probability is at least 1 - delta.

    ties: samples among equally good configurations, and the guess among all rules if the class is contradicted;
    without it the first configuration is taken, and the guess is the best one before the contradiction
    """

    def __init__(self, task: Task, space: Revisable, delta: float = DELTA, ties: Random | None = None) -> None:
        self.task = task
        self.space = space
        self.delta = delta
        self.ties = ties
        self._before = space  # the last space with a member

    def observe(self, placed: tuple[int, ...], reading: str) -> None:
        if self.space.count:
            self._before = self.space
        self.space = self.space.after(placed, reading)

    def spend(self, moves: int) -> None:
        """Ignore moves: they carry no information about these classes."""

    def decide(self, placed: tuple[int, ...]) -> Decision:
        if not self.space.count:
            return Impossible(self.space.in_words)
        answer, probability = best_answer(self.space)
        if probability >= 1 - self.delta:
            return Found(answer)
        return greedy_move(self.space, self.task, placed, self.ties)

    def guess(self) -> Rule:
        if self.ties is not None and not self.space.count:
            return self.ties.choice(all_rules(self.task.n))
        return best_answer(self.space if self.space.count else self._before)[0]


class Static:
    """Greedy control over detectors with one rule, to certainty; decisions are cached per process."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.space = StaticSpace.full(task.n)
        # the guess after a contradiction comes from here: an empty space has no most probable answer
        self._before = self.space

    def observe(self, placed: tuple[int, ...], reading: str) -> None:
        if self.space.bits:
            self._before = self.space
        self.space = self.space.after(placed, reading)

    def spend(self, moves: int) -> None:
        """Ignore moves: they carry no information about one rule."""

    def decide(self, placed: tuple[int, ...]) -> Decision:
        bits = self.space.bits
        # no or one bit: certainty, since without noise any second rule left may be the right one
        if bits & (bits - 1) == 0:
            return Found(self.guess()) if bits else Impossible(self.space.in_words)
        verb, index = _static_toggle(self.space, placed)
        return Move({verb: self.task.objects[index]}, apply_move(placed, verb, index))

    def guess(self) -> Rule:
        return best_answer(self.space if self.space.bits else self._before)[0]


def _static_toggle(space: StaticSpace, placed: tuple[int, ...]) -> tuple[str, int]:
    """Return the toggle of greedy control, cached by everything that it depends on."""
    key = (space.n, space.bits, frozenset(placed))
    if key not in _toggles:
        # cleared whole, no order of use is kept: every episode starts from the same few states
        if len(_toggles) >= MAX_REMEMBERED:
            _toggles.clear()
        objects = tuple(str(index) for index in range(space.n))
        ((verb, name),) = greedy_move(space, Task(objects, 1), placed).action.items()
        _toggles[key] = (verb, int(name))
    return _toggles[key]


MAX_REMEMBERED = 100_000
_toggles: dict[tuple[int, int, frozenset[int]], tuple[str, int]] = {}


def submit_answer(episode: Episode[Task, str], rule: Rule) -> Step[str]:
    """Submit an answer; return the step."""
    return episode.act({"check": rule.as_json(episode.task.objects)})


def conclude_episode(episode: Episode[Task, str], make_learner: Callable[[Task], Learner]) -> Learned:
    """Let a learner play an episode and submit its guess.

    While submissions are refused, objects are toggled in turn, and the learner starts again from all readings.
    """
    while True:
        learned = learn(episode, make_learner(episode.task))
        if not submit_answer(episode, learned.guess).refused or episode.left <= 0:
            return learned
        placed = placed_after(episode.task, episode.steps)
        index = episode.left % episode.task.n
        episode.act({"remove" if index in placed else "place": episode.task.objects[index]})
