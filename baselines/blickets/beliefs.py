"""Beliefs of an agent of the grid about the detector, and their revision after contradictions."""

from __future__ import annotations

from calibrant.baselines.blickets.behaviours import BEHAVIOURS
from calibrant.baselines.blickets.memory import EpisodeMemory, Observation
from calibrant.baselines.blickets.monitors import Situation, Watch, deterministic
from calibrant.baselines.blickets.strategy import Revise
from calibrant.dsl.blickets.item import Task
from calibrant.dsl.blickets.reference import ACTIVE, INACTIVE
from calibrant.dsl.blickets.rule import Rule
from calibrant.dsl.episode import Step
from calibrant.solvers.blickets.conditions import MAX_CONTROLLED, NoiseSpace, OrderSpace
from calibrant.solvers.blickets.learner import DELTA, Revisable, best_answer
from calibrant.solvers.blickets.space import StaticSpace


class Beliefs:
    """The rules that are left in one episode.

    left: a StaticSpace until a behaviour has named order or chance
    contradiction: number of the first reading that was ignored since the last revision, None without one
    revisions: how often readings were forgotten or read anew
    """

    def __init__(self, task: Task, revise: Revise) -> None:
        self.task = task
        self.revise = revise
        self.memory = EpisodeMemory(task)
        self.left: Revisable = StaticSpace.full(task.n)
        self.contradiction: int | None = None
        self.revisions = 0
        self._watch = Watch(BEHAVIOURS if revise is Revise.DB else (), deterministic)
        self._fired: set[str] = set()

    @property
    def is_static(self) -> bool:
        """Return whether the rule is taken to be reliable and independent of the order of placing."""
        return isinstance(self.left, StaticSpace)

    @property
    def rule(self) -> Rule | None:
        """The rule that is left, if it is one; of an unreliable detector one that is probable enough."""
        if self.is_static and self.left.count > 1:
            return None
        answer, probability = best_answer(self.left)
        return answer if probability >= 1 - DELTA else None

    def note(self, step: Step[str]) -> None:
        """Take note of the next step of the episode."""
        self.memory.note(step)
        if step.reading is not None:
            self._note_reading(self.memory.observations[-1])
        if step.cost:
            scores = self._watch.scores(Situation(self.memory, "", ()))
            self._fired |= {score.behaviour.key for score in scores if score.fired}
        if self.contradiction is not None and self._fired:
            self._reconsider(self.contradiction)

    def _note_reading(self, last: Observation) -> None:
        after = _after(self.left, last)
        if after.count:
            self.left = after
        elif self.revise is Revise.SUFFIX:
            self._believe_since(len(self.memory.observations) - 1)
        elif self.contradiction is None:
            self.contradiction = len(self.memory.observations) - 1

    def _reconsider(self, contradiction: int) -> None:
        """Believe what the behaviours that fired suggest, each once: a change since then, else order, else chance."""
        if "DB4" in self._fired:
            self._fired.remove("DB4")
            self._believe_since(contradiction)
        elif "DB2" in self._fired and self.task.n <= MAX_CONTROLLED:
            self._fired.remove("DB2")
            self._believe_all(OrderSpace.full(self.task.n, self.task.order_reading))
        elif "DB3" in self._fired:
            self._fired.remove("DB3")
            self._believe_all(NoiseSpace.full(self.task.n))

    def _believe_since(self, first: int) -> None:
        """Forget all readings before this one, and those since again at every reading that contradicts them.

        A reading that no rule gives, such as INACTIVE with all objects, is left out.
        """
        everything: Revisable = StaticSpace.full(self.task.n)
        belief = everything
        for observation in self.memory.observations[first:]:
            candidates = (_after(belief, observation), _after(everything, observation), everything)
            belief = next(space for space in candidates if space.count)
        self._believe(belief)

    def _believe_all(self, space: Revisable) -> None:
        """All readings in another class, if something in it gives them all."""
        for observation in self.memory.observations:
            space = _after(space, observation)
        if space.count:
            self._believe(space)

    def _believe(self, belief: Revisable) -> None:
        self.left = belief
        self.contradiction = None
        self.revisions += 1


def _after(space: Revisable, observation: Observation) -> Revisable:
    return space.after(observation.placed, ACTIVE if observation.active else INACTIVE)
