"""Learners: greedy control, the loop of an episode, and learners that expect silent switches.

After a conjunctive rule with blickets S, |S| >= 2, the probe "all objects but s", s in S, is INACTIVE while that rule
is in force. Two such probes after the last activation refute every disjunctive second rule, and one for every s in S
refutes every conjunctive second rule that does not contain S. A conjunctive second rule that contains S stays possible:
it differs from the first only where the first is ACTIVE. After a disjunctive rule there is no such proof.

`SwitchAware` and `Seek` first find the rule as if there were only one. `SwitchAware` then takes the probes of this
silent certificate; without one (after a disjunctive rule) it experiments until an answer has probability 1 - delta.
`Seek` first activates the detector until it is unlikely that the switch is still to come.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Protocol, TypeAlias

import numpy as np

from calibrant.dsl.blickets.episode import apply_move, placed_after, steps_with_state
from calibrant.dsl.blickets.item import Count, Form, Rule, Task, all_rules, set_of
from calibrant.dsl.blickets.reference import is_active
from calibrant.dsl.episode import Episode, Step
from calibrant.solvers.blickets.conditions import SwitchSpace
from calibrant.solvers.blickets.space import Geometry, Sets, StaticSpace, Weights
from calibrant.solvers.outcome import Found, Impossible, Outcome, OutOfBudget
from calibrant.solvers.space import Move

# --- Greedy control: one toggle towards the configuration with the most expected information gain per move ------------
DIGITS = 9  # decimals to which gains and probabilities are compared, so that rounding elsewhere changes no move


class Belief(Protocol):
    """A space with a probability of each answer."""

    @property
    def geometry(self) -> Geometry: ...

    def posterior(self) -> Mapping[Rule, float]:
        """Return the probability of each answer, in the order of `all_rules`; empty for an empty space."""
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

    ties: draws among equally good configurations; None takes the first
    """
    distances = belief.geometry.distances(placed)
    # gain for each move, not each reading: every toggle costs one move; the current configuration is infinitely far
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

    ties: draws among the first moves of shortest paths; None takes the first
    """
    first_moves = geometry.toward(placed, target)
    verb, index = first_moves[0] if ties is None else ties.choice(first_moves)
    return Move({verb: task.objects[index]}, apply_move(placed, verb, index))


# --- Learners: observe, then move, answer, or give up; and the loop in which a learner plays an episode ---------------
DELTA = 0.01  # largest probability of error at which a learner answers

Decision: TypeAlias = Move[tuple[int, ...]] | Found[Rule] | Impossible


class Learner(Protocol):
    """A strategy that plays an episode and sees only its readings."""

    def observe(self, placed: tuple[int, ...], reading: str) -> None:
        """Update on one reading."""
        ...

    def spend(self, moves: int) -> None:
        """Update on the number of moves made, refused ones included; called after their reading."""
        ...

    def decide(self, placed: tuple[int, ...]) -> Decision:
        """Return the next move, the answer, or `Impossible` if the readings contradict the class."""
        ...

    def guess(self) -> Rule:
        """Return the most probable answer so far, even if undecided or contradicted."""
        ...


@dataclass(frozen=True, slots=True)
class Learned:
    """Conclusion of a learner.

    outcome: `Found` if sure enough; `Impossible` if the readings contradict its class; else `OutOfBudget`
    guess: the answer that it gives if it has to
    """

    outcome: Outcome[Rule]
    guess: Rule


def learn(episode: Episode[Task, str], learner: Learner) -> Learned:
    """Let a learner play an episode until it decides or the moves are used up; no answer is submitted.

    Raise `ValueError` if a move of the learner is refused.
    """
    task = episode.task
    placed: tuple[int, ...] = ()
    for placed, step in steps_with_state(task, episode.steps):  # the last `placed` is the present one
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

    ties: draws among equally good configurations, and the guess among all rules if the readings contradict the class;
        None takes the first configuration, and the best answer before the contradiction
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
    """Greedy control over detectors with one rule, until one rule is left; toggles are cached in the process."""

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
        # without noise, any of several rules left may be the right one: it answers only once at most one is left
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
        # when full, all are forgotten: every episode starts from the same few states, which are soon cached again
        if len(_toggles) >= MAX_REMEMBERED:
            _toggles.clear()
        objects = tuple(str(index) for index in range(space.n))
        ((verb, name),) = greedy_move(space, Task(objects, 1), placed).action.items()
        _toggles[key] = (verb, int(name))
    return _toggles[key]


MAX_REMEMBERED = 100_000  # toggles that a process caches
_toggles: dict[tuple[int, int, frozenset[int]], tuple[str, int]] = {}


def submit_answer(episode: Episode[Task, str], rule: Rule) -> Step[str]:
    """Submit an answer and return the step."""
    return episode.act({"check": rule.as_json(episode.task.objects)})


def conclude_episode(episode: Episode[Task, str], make_learner: Callable[[Task], Learner]) -> Learned:
    """Let a learner play an episode and submit its guess.

    After a refused submission one object is toggled, and a new learner starts from all readings, while moves are left.
    """
    while True:
        learned = learn(episode, make_learner(episode.task))
        if not submit_answer(episode, learned.guess).refused or episode.left <= 0:
            return learned
        placed = placed_after(episode.task, episode.steps)
        index = episode.left % episode.task.n
        episode.act({"remove" if index in placed else "place": episode.task.objects[index]})


# --- Silent certificate: a proof that no switch has gone unnoticed, from readings that could not have caused one ------


def certifiable(rule: Rule) -> bool:
    """Return whether silent probes can refute a switch after this rule."""
    return rule.form is Form.CONJUNCTIVE and rule.blickets.bit_count() >= 2


def missing_probes(n: int, rule: Rule, readings: Iterable[tuple[tuple[int, ...], str]]) -> list[int]:
    """Return the probes, as sets, that were not read since the last ACTIVE reading.

    Raise `ValueError` for a rule that is not `certifiable`.
    """
    if not certifiable(rule):
        raise ValueError("there is no silent certificate after a disjunctive rule")
    everything = (1 << n) - 1
    silent: set[int] = set()
    for placed, reading in readings:
        if is_active(reading):  # an activation may have been the switch: probes before it prove nothing
            silent.clear()
        else:
            silent.add(set_of(placed))
    # all objects but one blicket: the largest sets at which the rule is INACTIVE, so the ones that refute most
    probes = [everything & ~(1 << index) for index in range(n) if rule.blickets >> index & 1]
    return [probe for probe in probes if probe not in silent]


# --- Learners for silent switches: `SwitchAware` certifies its rule without activating, `Seek` activates on purpose


class SwitchAware:
    """Greedy control, then the silent certificate.

    A certified answer is right unless the detector has switched to a conjunctive rule that contains the first, which no
    INACTIVE probe can show. An answer without a certificate has a probability of at least 1 - delta.

    ties: as in `Greedy`; probes are then taken in the order of the blickets, along shortest paths that are drawn;
        None takes the nearest probe next
    """

    def __init__(self, task: Task, delta: float = DELTA, ties: Random | None = None) -> None:
        self.task = task
        self.delta = delta
        self.ties = ties
        self.space = SwitchSpace.full(task.n, task.count)
        self.one_rule = Static(task) if ties is None else Greedy(task, StaticSpace.full(task.n), ties=ties)
        self.readings: list[tuple[tuple[int, ...], str]] = []
        self._before = self.space

    def observe(self, placed: tuple[int, ...], reading: str) -> None:
        if self.space.count:
            self._before = self.space
        self.space = self.space.after(placed, reading)
        self.one_rule.observe(placed, reading)
        self.readings.append((placed, reading))

    def spend(self, moves: int) -> None:
        """Ignore moves: switch points count activations."""

    def decide(self, placed: tuple[int, ...]) -> Decision:
        without_switch = self.one_rule.decide(placed)
        if isinstance(without_switch, Move):
            return without_switch
        if isinstance(without_switch, Found) and certifiable(without_switch.value):
            return self._certify(without_switch.value, placed)
        return self._decide_by_probability(placed)

    def _certify(self, rule: Rule, placed: tuple[int, ...]) -> Decision:
        # at most |S| probes, each at most n toggles away
        missing = missing_probes(self.task.n, rule, self.readings)
        if not missing:
            return Found(rule)
        nearest = min(missing, key=lambda probe: ((probe ^ set_of(placed)).bit_count(), probe))
        probe = nearest if self.ties is None else missing[0]
        return first_toggle(Sets(self.task.n), self.task, placed, probe, self.ties)

    def _decide_by_probability(self, placed: tuple[int, ...]) -> Decision:
        if not self.space.count:
            if isinstance(self.one_rule.decide(placed), Found):
                return Found(self.one_rule.guess())  # the readings refute every switch of the class, but not one rule
            return Impossible(self.space.in_words)
        answer, probability = best_answer(self.space)
        if probability >= 1 - self.delta:
            return Found(answer)
        return greedy_move(self.space, self.task, placed, self.ties)

    def guess(self) -> Rule:
        if self.one_rule.space.count == 1:
            return self.one_rule.guess()
        return best_answer(self.space if self.space.count else self._before)[0]


class Seek(SwitchAware):
    """Greedy control, then activations until the probability that the switch is still to come is below delta."""

    def _certify(self, rule: Rule, placed: tuple[int, ...]) -> Decision:
        if not self.space.count or self.space.still_to_come() < self.delta:
            return super()._certify(rule, placed)
        return self._activate(rule, placed)

    def _activate(self, rule: Rule, placed: tuple[int, ...]) -> Decision:
        """Place all objects on the detector; then remove one and place it again, in turns.

        If every ACTIVE reading counts, that is a distractor if there is one; else it is a blicket.
        """
        everything = (1 << self.task.n) - 1
        present = set_of(placed)
        distractors = everything & ~rule.blickets
        # without a distractor the rule stays satisfied, so each move activates; but if only a change from INACTIVE to
        # ACTIVE counts, a blicket must be removed and placed again: two moves for each activation
        togglable = everything & ~present or (distractors if self.task.count is Count.LEVEL else 0) or rule.blickets
        index = (togglable & -togglable).bit_length() - 1
        verb = "remove" if present >> index & 1 else "place"
        return Move({verb: self.task.objects[index]}, apply_move(placed, verb, index))
