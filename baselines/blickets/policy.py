"""Next actions of an agent of the grid in one episode."""

from __future__ import annotations

from random import Random

from calibrant.baselines.blickets.beliefs import Beliefs
from calibrant.baselines.blickets.context import Context
from calibrant.baselines.blickets.memory import Observation
from calibrant.baselines.blickets.script import ExplorationScript, lowest
from calibrant.baselines.blickets.strategy import ExplorationStrategy, Revise, Stop
from calibrant.dsl.blickets.item import Task
from calibrant.dsl.blickets.rule import Form, Rule
from calibrant.dsl.episode import Action, Step
from calibrant.solvers.blickets.learner import best_answer, greedy_move


class GridPolicy:
    """One agent in one episode.

    num_steps: how many steps it has taken note of
    confirmed: ACTIVE readings since one rule was left; probed: objects of that rule whose silent probe was made
    """

    def __init__(
        self, task: Task, explore: ExplorationStrategy, revise: Revise, stop: Stop, confirmations: int, rng: Random
    ) -> None:
        self.task = task
        self.explore = explore
        self.stop = stop
        self.confirmations = confirmations
        self.rng = rng
        self.beliefs = Beliefs(task, revise)
        self.num_steps = 0
        self.confirmed = 0
        self.probed = 0
        self._script = ExplorationScript(task.n)
        self._was_refused = False

    # --- what a step changes ------------------------------------------------------------------------------------------

    def note(self, step: Step[str]) -> None:
        """Take note of the next step of the episode."""
        rule, revisions = self.beliefs.rule, self.beliefs.revisions
        self.beliefs.note(step)
        self.num_steps += 1
        self._was_refused = bool(step.refused)
        if self.beliefs.revisions > revisions:
            self.confirmed = self.probed = 0
        elif rule is not None and step.reading is not None:
            self._count(rule, self.beliefs.memory.observations[-1])

    def _count(self, rule: Rule, last: Observation) -> None:
        if rule.active(last.present) != last.active:
            return
        if last.active:
            self.confirmed += 1
            self.probed = 0  # a switch may have come with it
        else:
            missing = _everything(self.task.n) & ~last.present
            self.probed |= missing & rule.blickets if missing.bit_count() == 1 else 0

    # --- what to do next ----------------------------------------------------------------------------------------------

    def action(self, budget_left: int) -> Action:
        """Return the next action.

        budget_left: moves that remain; with 0 only a submission makes sense
        """
        if budget_left == 0 or (self.is_done and not self._was_refused):
            return {"check": best_answer(self.beliefs.left)[0].as_json(self.task.objects)}
        index = self._choose_toggle()
        return {"remove" if index in self.beliefs.memory.placed else "place": self.task.objects[index]}

    @property
    def is_done(self) -> bool:
        """Return whether the stopping rule is met."""
        rule = self.beliefs.rule
        if rule is None or not self.beliefs.is_static:  # only a static rule is confirmed or probed
            return rule is not None
        if self.stop is Stop.CONFIRM:
            return self.confirmed >= self.confirmations
        return self.stop is Stop.RESOLVE or rule.form is Form.DISJUNCTIVE or self.probed == rule.blickets

    def _choose_toggle(self) -> int:
        """Return the object that is placed or removed next."""
        rule, present = self.beliefs.rule, self.beliefs.memory.present
        if rule is not None:
            return self._probe(rule, present) if self.stop is Stop.SILENT else self._confirmation(rule, present)
        if self.explore is ExplorationStrategy.RANDOM:
            return self.rng.randrange(self.task.n)
        if (
            self.explore is ExplorationStrategy.SCRIPT and self.beliefs.is_static
        ):  # no group of the script tests orders or repeats itself
            return self._script.next_toggle(present)
        (name,) = greedy_move(self.beliefs.left, self.task, self.beliefs.memory.placed).action.values()
        return self.task.objects.index(name)

    def _confirmation(self, rule: Rule, present: int) -> int:
        """Towards another ACTIVE reading: complete the rule, else toggle any object that leaves it satisfied."""
        if not rule.active(present):
            return lowest(rule.blickets & ~present)
        harmless = [i for i in range(self.task.n) if rule.active(present ^ 1 << i)]
        return self.rng.choice(harmless) if harmless else lowest(rule.blickets)

    def _probe(self, rule: Rule, present: int) -> int:
        """Towards all objects but one of the rule's, which goes first, so that no reading on the way is ACTIVE."""
        missing = rule.blickets & ~self.probed or rule.blickets
        first = missing & -missing
        return lowest(present & first or _everything(self.task.n) & ~first & ~present or present)

    # --- what it says of itself ---------------------------------------------------------------------------------------

    def thought(self) -> str:
        """Return the belief in a line."""
        rule = self.beliefs.rule
        return (
            f"{self.beliefs.left.count} rules are left" if rule is None else f"left: {rule.in_words(self.task.objects)}"
        )

    def transition(self, context: Context | None) -> str:
        """Return the next state on a shortest way to the one that fits what is done now.

        Empty if that is where it is.
        """
        return context.toward(self._stage()) if context else ""

    def _stage(self) -> str:
        if self.beliefs.rule is not None:
            return "VERIFICATION"
        singles = self.explore is ExplorationStrategy.SCRIPT and self._script.size == 1
        return "INITIAL_EXPLORATION" if singles else "COMBINATION_TESTING"


def _everything(n: int) -> int:
    return (1 << n) - 1
