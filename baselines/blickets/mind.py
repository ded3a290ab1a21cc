"""What an agent of the grid believes in one episode, and what it does next."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import combinations
from random import Random

from baselines.blickets.behaviours import BEHAVIOURS
from baselines.blickets.context import Context
from baselines.blickets.habits import Explore, Revise, Stop
from baselines.blickets.monitors import Situation, Watch, deterministic
from baselines.blickets.notebook import Notebook, Observation
from dsl.action import Action
from dsl.blickets.item import Task
from dsl.blickets.reference import ACTIVE, INACTIVE
from dsl.blickets.rule import Form, Rule, set_of
from dsl.episode import Step
from solvers.blickets.control import best_answer, greedy_move
from solvers.blickets.learner import DELTA, Revisable
from solvers.blickets.noise import NoiseSpace
from solvers.blickets.order import MAX_CONTROLLED, OrderSpace
from solvers.blickets.static import StaticSpace

SCRIPTED_SIZES = (1, 2, 3)


class Mind:
    """One agent in one episode.

    num_steps: how many steps it has taken note of
    belief: the rules that are left; not only of a StaticSpace once a behaviour has named order or chance
    contradiction: number of the first reading that was ignored since the belief was last revised, None without one
    confirmed: ACTIVE readings since one rule was left; probed: objects of that rule whose silent probe was made
    """

    def __init__(
        self, task: Task, explore: Explore, revise: Revise, stop: Stop, confirmations: int, rng: Random
    ) -> None:
        self.task = task
        self.explore = explore
        self.revise = revise
        self.stop = stop
        self.confirmations = confirmations
        self.rng = rng
        self.notebook = Notebook(task)
        self.num_steps = 0
        self.belief: Revisable = StaticSpace.full(task.n)
        self.contradiction: int | None = None
        self.confirmed = 0
        self.probed = 0
        self._watch = Watch(BEHAVIOURS if revise is Revise.DB else (), deterministic)
        self._fired: set[str] = set()
        self._script = Script(task.n)
        self._was_refused = False

    # --- what a step changes ------------------------------------------------------------------------------------------

    def note(self, step: Step[str]) -> None:
        """Take note of the next step of the episode."""
        self.num_steps += 1
        self.notebook.note(step)
        self._was_refused = bool(step.refused)
        if step.reading is not None:
            self._read(self.notebook.observations[-1])
        if step.cost:
            scores = self._watch.scores(Situation(self.notebook, "", ()))
            self._fired |= {score.behaviour.key for score in scores if score.fired}
        if self.contradiction is not None and self._fired:
            self._reconsider(self.contradiction)

    def _read(self, last: Observation) -> None:
        rule, after = self.rule, _after(self.belief, last)
        if after.count:
            self.belief = after
            if rule is not None:
                self._count(rule, last)
        elif self.revise is Revise.SUFFIX:
            self._believe_since(len(self.notebook.observations) - 1)
        elif self.contradiction is None:
            self.contradiction = len(self.notebook.observations) - 1

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
        for observation in self.notebook.observations[first:]:
            candidates = (_after(belief, observation), _after(everything, observation), everything)
            belief = next(space for space in candidates if space.count)
        self._believe(belief)

    def _believe_all(self, space: Revisable) -> None:
        """All readings in another class, if something in it gives them all."""
        for observation in self.notebook.observations:
            space = _after(space, observation)
        if space.count:
            self._believe(space)

    def _believe(self, belief: Revisable) -> None:
        self.belief = belief
        self.contradiction = None
        self.confirmed = 0
        self.probed = 0

    def _count(self, rule: Rule, last: Observation) -> None:
        if last.active:
            self.confirmed += 1
            self.probed = 0  # a switch may have come with it
        else:
            missing = _everything(self.task.n) & ~last.present
            self.probed |= missing & rule.blickets if missing.bit_count() == 1 else 0

    # --- what to do next ----------------------------------------------------------------------------------------------

    @property
    def rule(self) -> Rule | None:
        """The rule that is left, if it is one; of an unreliable detector one that is probable enough."""
        if isinstance(self.belief, StaticSpace) and self.belief.count > 1:
            return None
        answer, probability = best_answer(self.belief)
        return answer if probability >= 1 - DELTA else None

    def action(self, left: int) -> Action:
        """The next action. left: of the budget; without any only a submission makes sense"""
        if left == 0 or (self.is_done and not self._was_refused):
            return {"check": best_answer(self.belief)[0].as_json(self.task.objects)}
        index = self._toggled()
        return {"remove" if index in self.notebook.placed else "place": self.task.objects[index]}

    @property
    def is_done(self) -> bool:
        """Whether the stopping rule is met."""
        rule = self.rule
        if rule is None or not isinstance(self.belief, StaticSpace):  # what is confirmed and probed is a static rule
            return rule is not None
        if self.stop is Stop.CONFIRM:
            return self.confirmed >= self.confirmations
        return self.stop is Stop.RESOLVE or rule.form is Form.DISJUNCTIVE or self.probed == rule.blickets

    def _toggled(self) -> int:
        """The object that is placed or removed next."""
        rule, present = self.rule, self.notebook.present
        if rule is not None:
            return self._probe(rule, present) if self.stop is Stop.SILENT else self._confirmation(rule, present)
        is_static = isinstance(self.belief, StaticSpace)
        if self.explore is Explore.RANDOM:
            return self.rng.randrange(self.task.n)
        if self.explore is Explore.SCRIPT and is_static:  # no group of the script tests orders or repeats itself
            return self._script.toggled(present)
        (name,) = greedy_move(self.belief, self.task, self.notebook.placed).action.values()
        return self.task.objects.index(name)

    def _confirmation(self, rule: Rule, present: int) -> int:
        """Towards another ACTIVE reading: complete the rule, else toggle any object that leaves it satisfied."""
        if not rule.active(present):
            return _lowest(rule.blickets & ~present)
        harmless = [i for i in range(self.task.n) if rule.active(present ^ 1 << i)]
        return self.rng.choice(harmless) if harmless else _lowest(rule.blickets)

    def _probe(self, rule: Rule, present: int) -> int:
        """Towards all objects but one of the rule's, which goes first, so that no reading on the way is ACTIVE."""
        missing = rule.blickets & ~self.probed or rule.blickets
        lowest = missing & -missing
        return _lowest(present & lowest or _everything(self.task.n) & ~lowest & ~present or present)

    # --- what it says of itself ---------------------------------------------------------------------------------------

    def thought(self) -> str:
        """The belief in a line."""
        rule = self.rule
        return f"{self.belief.count} rules are left" if rule is None else f"left: {rule.in_words(self.task.objects)}"

    def transition(self, context: Context | None) -> str:
        """The next state on a shortest way to the one that fits what is done now; empty if that is where it is."""
        if context is None or context.state.name == self._stage():
            return ""
        return _first_step(context, self._stage())

    def _stage(self) -> str:
        if self.rule is not None:
            return "VERIFICATION"
        singles = self.explore is Explore.SCRIPT and self._script.size == 1
        return "INITIAL_EXPLORATION" if singles else "COMBINATION_TESTING"


class Script:
    """Every single object, every pair, every triple, one after the other; the detector is cleared in between.

    size: of the group that is built at present
    """

    def __init__(self, n: int) -> None:
        self._n = n
        self._groups = _groups(n)
        self._group = next(self._groups)
        self._is_clearing = True

    @property
    def size(self) -> int:
        return self._group.bit_count()

    def toggled(self, present: int) -> int:
        """The object that is placed or removed next; after the last triple it begins again."""
        if present == self._group and not self._is_clearing:
            following = next(self._groups, 0)
            if not following:
                self._groups = _groups(self._n)
                following = next(self._groups)
            self._group = following
            self._is_clearing = True
        if self._is_clearing and present:
            return _lowest(present)
        self._is_clearing = False
        return _lowest(present & ~self._group or self._group & ~present)


def _groups(n: int) -> Iterator[int]:
    return (set_of(members) for size in SCRIPTED_SIZES for members in combinations(range(n), size))


def _after(space: Revisable, observation: Observation) -> Revisable:
    return space.after(observation.placed, ACTIVE if observation.active else INACTIVE)


def _everything(n: int) -> int:
    return (1 << n) - 1


def _lowest(objects: int) -> int:
    return (objects & -objects).bit_length() - 1


def _first_step(context: Context, goal: str) -> str:
    """Breadth first; empty if there is no way."""
    start = context.state.name
    waiting, seen = deque((target, target) for target in context.graph.targets(start)), {start}
    while waiting:
        first, here = waiting.popleft()
        if here == goal:
            return first
        if here not in seen:
            seen.add(here)
            waiting.extend((first, target) for target in context.graph.targets(here))
    return ""
