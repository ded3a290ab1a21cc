"""Learners for silent switches: `SwitchAware` certifies its rule without activating, `Seek` activates on purpose.

Both first find the rule as if there were one only. SwitchAware then takes the probes of the silent certificate. Where
there is none (a disjunctive rule) it keeps experimenting until the class itself leaves one answer. Seek, instead,
activates the detector until the switch has come or no switch point is left to come.
"""

from __future__ import annotations

from random import Random

from calibrant.dsl.blickets.episode import apply_move
from calibrant.dsl.blickets.item import Count, Task
from calibrant.dsl.blickets.rule import Rule, set_of
from calibrant.solvers.blickets.certificate import certifiable, missing_probes
from calibrant.solvers.blickets.control import best_answer, first_toggle, greedy_move
from calibrant.solvers.blickets.geometry import Sets
from calibrant.solvers.blickets.learner import DELTA, Decision, Greedy, Static
from calibrant.solvers.blickets.static import StaticSpace
from calibrant.solvers.blickets.switch import SwitchSpace
from calibrant.solvers.outcome import Found, Impossible
from calibrant.solvers.space import Move


class SwitchAware:
    """Greedy control, then the silent certificate.

    A certified answer holds unless the detector has switched to a conjunctive rule that contains the first, which no
    silent probe can tell. Otherwise the answer is given at probability 1 - delta.

    ties: as in `Greedy`; the probes are then taken in the order of the blickets, on shortest ways that are drawn.
    Without it the nearest probe is next
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
        """Switch points count activations."""

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
                return Found(self.one_rule.guess())  # every switch of the class is refuted, one rule is not
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
    """Greedy control, then activations until the switch still to come is less probable than delta."""

    def _certify(self, rule: Rule, placed: tuple[int, ...]) -> Decision:
        if not self.space.count or self.space.still_to_come() < self.delta:
            return super()._certify(rule, placed)
        return self._activate(rule, placed)

    def _activate(self, rule: Rule, placed: tuple[int, ...]) -> Decision:
        """Put everything on the detector; then take one object off and put it back, in turns.

        With count = level that is a distractor, so that every move activates; with edge it has to be a blicket.
        """
        everything = (1 << self.task.n) - 1
        present = set_of(placed)
        distractors = everything & ~rule.blickets
        # a distractor leaves a conjunctive rule satisfied: each move activates; by edge only INACTIVE to ACTIVE counts,
        # so that a blicket has to go and come back, two moves for an activation
        togglable = everything & ~present or (distractors if self.task.count is Count.LEVEL else 0) or rule.blickets
        index = (togglable & -togglable).bit_length() - 1
        verb = "remove" if present >> index & 1 else "place"
        return Move({verb: self.task.objects[index]}, apply_move(placed, verb, index))
