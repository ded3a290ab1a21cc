"""Simple agents: a grid of what they explore, believe and when they stop, and rows that show what a rate is worth.

3 x 3 x 3 combinations of plain habits, not imitations of prompts: they show which habit makes which figure of a table.
Source of the habits: arXiv 2604.20039, sections 3 and 5.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from itertools import combinations, product
from random import Random
from typing import TypeAlias

from calibrant.baselines.blickets import context as blickets_context
from calibrant.baselines.blickets.dialogue import Dialogue, Policy, Reply
from calibrant.dsl.blickets.item import Form, Rule, Task, all_rules, set_of
from calibrant.dsl.blickets.reference import ACTIVE, INACTIVE
from calibrant.dsl.episode import Action, Episode, Step
from calibrant.solvers.blickets.conditions import MAX_CONTROLLED, NoiseSpace, OrderSpace
from calibrant.solvers.blickets.learner import DELTA, Revisable, best_answer, greedy_move
from calibrant.solvers.blickets.space import StaticSpace

# --- A fixed plan of tests: every single object, every pair, every triple ---------------------------------------------
SIZES = (1, 2, 3)


class ExplorationScript:
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

    def next_toggle(self, present: int) -> int:
        """Return the object that is placed or removed next; after the last triple it begins again."""
        if present == self._group and not self._is_clearing:
            following = next(self._groups, 0)
            if not following:
                self._groups = _groups(self._n)
                following = next(self._groups)
            self._group = following
            self._is_clearing = True
        if self._is_clearing and present:
            return lowest(present)
        self._is_clearing = False
        return lowest(present & ~self._group or self._group & ~present)


def _groups(n: int) -> Iterator[int]:
    return (set_of(members) for size in SIZES for members in combinations(range(n), size))


def lowest(objects: int) -> int:
    """Return the lowest number in a set of objects; -1 if it is empty."""
    return (objects & -objects).bit_length() - 1


# --- The habits that the agents of the grid combine -------------------------------------------------------------------


class ExplorationStrategy(StrEnum):
    """Rule for the object toggled while more than one blicket rule is consistent."""

    RANDOM = "random"  # any
    SCRIPT = "script"  # those of the next group: every single object, every pair, every triple, from an empty detector
    GREEDY = "greedy"  # towards the configuration that is expected to tell most per move


class Revise(StrEnum):
    """Reaction to a reading that no rule explains together with the earlier readings."""

    NONE = "none"  # the reading is ignored
    SUFFIX = "suffix"  # the readings before it are forgotten
    DB = "db"  # it is ignored until a dynamic behaviour fires, which says what to believe instead


class Stop(StrEnum):
    """When the answer is submitted."""

    RESOLVE = "resolve"  # one rule is left
    CONFIRM = "confirm"  # and the detector was ACTIVE so many times more
    SILENT = "silent"  # and a switch is ruled out by probes that cannot trigger one; a disjunctive rule has none


# --- Beliefs of an agent of the grid about the detector, and their revision after contradictions ----------------------


class Beliefs:
    """The rules that are left in one episode.

    left: a StaticSpace until a behaviour has named order or chance
    contradiction: number of the first reading that was ignored since the last revision, None without one
    revisions: how often readings were forgotten or read anew
    """

    def __init__(self, task: Task, revise: Revise) -> None:
        self.task = task
        self.revise = revise
        self.memory = blickets_context.EpisodeMemory(task)
        self.left: Revisable = StaticSpace.full(task.n)
        self.contradiction: int | None = None
        self.revisions = 0
        self._watch = blickets_context.Watch(
            blickets_context.BEHAVIOURS if revise is Revise.DB else (), blickets_context.deterministic
        )
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
            scores = self._watch.scores(blickets_context.Situation(self.memory, "", ()))
            self._fired |= {score.behaviour.key for score in scores if score.fired}
        if self.contradiction is not None and self._fired:
            self._reconsider(self.contradiction)

    def _note_reading(self, last: blickets_context.Observation) -> None:
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


def _after(space: Revisable, observation: blickets_context.Observation) -> Revisable:
    return space.after(observation.placed, ACTIVE if observation.active else INACTIVE)


# --- Next actions of an agent of the grid in one episode --------------------------------------------------------------


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

    def _count(self, rule: Rule, last: blickets_context.Observation) -> None:
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

    def transition(self, context: blickets_context.Context | None) -> str:
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


# --- A grid of simple agents: how they explore, what they do about a contradiction, and when they stop ----------------
CONFIRMATIONS = 2


@dataclass(frozen=True, slots=True)
class GridAgent:
    """One agent of the grid.

    confirmations: for `Stop.CONFIRM`, 1 or more
    """

    explore: ExplorationStrategy
    revise: Revise
    stop: Stop
    confirmations: int = CONFIRMATIONS

    @property
    def name(self) -> str:
        stop = f"confirm-{self.confirmations}" if self.stop is Stop.CONFIRM else str(self.stop)
        return f"{self.explore}/{self.revise}/{stop}"

    def play(self, episode: Episode[Task, str], rng: Random) -> None:
        """Act in an episode until it is closed: an answer was accepted. When the budget is spent, the best there is."""
        policy = self._policy(episode.task, rng)
        while not episode.closed:
            episode.act(_next_action(policy, episode))

    def policy(self, task: Task, rng: Random) -> Policy:
        """Return the agent as a policy for one dialogue; with a context graph it moves to the state that it acts in."""
        policy = self._policy(task, rng)

        def reply(dialogue: Dialogue) -> Reply:
            action = _next_action(policy, dialogue.episode)
            return Reply(policy.thought(), action, policy.transition(dialogue.context))

        return reply

    def _policy(self, task: Task, rng: Random) -> GridPolicy:
        return GridPolicy(task, self.explore, self.revise, self.stop, self.confirmations, rng)


def _next_action(policy: GridPolicy, episode: Episode[Task, str]) -> Action:
    for step in episode.steps[policy.num_steps :]:
        policy.note(step)
    return policy.action(budget_left=episode.left)


GRID = tuple(GridAgent(explore, revise, stop) for explore, revise, stop in product(ExplorationStrategy, Revise, Stop))

PRESETS = {  # what stands beside the paper's rows
    "base": GridAgent(ExplorationStrategy.RANDOM, Revise.NONE, Stop.CONFIRM, 1),
    "cg": GridAgent(ExplorationStrategy.SCRIPT, Revise.SUFFIX, Stop.CONFIRM),
    "cg+db": GridAgent(ExplorationStrategy.SCRIPT, Revise.DB, Stop.CONFIRM),
}


# --- Rows that show what a figure is worth: agents that hardly look, or that have one trick ---------------------------
MOVES = 10  # moves of the rows that look around at random

BlicketEpisode: TypeAlias = Episode[Task, str]


@dataclass(frozen=True, slots=True)
class SimpleAgent:
    """A name and what it does in an episode; all of it depends on the generator that it is given."""

    name: str
    play: Callable[[BlicketEpisode, Random], None]


def play_random(episode: BlicketEpisode, rng: Random) -> None:
    """Make MOVES random toggles, then submit a random rule of those that fit; of all rules if none does."""
    memory = _looked_around(episode, rng)
    space = StaticSpace.full(episode.task.n)
    for placed, active in memory.observations:
        space = space.after(placed, ACTIVE if active else INACTIVE)
    _submit(episode, memory, rng.choice(list(space.verdicts()) or all_rules(episode.task.n)))


def play_copy(episode: BlicketEpisode, rng: Random) -> None:
    """Make MOVES random toggles, then submit the last set that was ACTIVE as a conjunction; all objects if none was."""
    memory = _looked_around(episode, rng)
    everything = (1 << episode.task.n) - 1
    last = next((o.present for o in reversed(memory.observations) if o.active and o.placed), everything)
    _submit(episode, memory, Rule(Form.CONJUNCTIVE, last))


def play_quiet(episode: BlicketEpisode, rng: Random) -> None:
    """Single objects, pairs, triples until the first ACTIVE reading, then the first rule that fits."""
    memory = _open_notebook(episode)
    script = ExplorationScript(episode.task.n)
    while episode.left and not memory.activations:
        _toggle(episode, memory, script.next_toggle(memory.present))
    space = StaticSpace.full(episode.task.n)
    for placed, active in memory.observations:
        space = space.after(placed, ACTIVE if active else INACTIVE)
    _submit(episode, memory, next(iter(space.verdicts()), all_rules(episode.task.n)[0]))


def play_abstain(episode: BlicketEpisode, rng: Random) -> None:
    """Nothing at all: no move and no answer."""


SIMPLE = (
    SimpleAgent("random", play_random),
    SimpleAgent("quiet", play_quiet),
    SimpleAgent("abstain", play_abstain),
    SimpleAgent("copy", play_copy),
)


def _open_notebook(episode: BlicketEpisode) -> blickets_context.EpisodeMemory:
    memory = blickets_context.EpisodeMemory(episode.task)
    for step in episode.steps:
        memory.note(step)
    return memory


def _looked_around(episode: BlicketEpisode, rng: Random) -> blickets_context.EpisodeMemory:
    memory = _open_notebook(episode)
    for _ in range(min(MOVES, episode.left)):
        _toggle(episode, memory, rng.randrange(episode.task.n))
    return memory


def _toggle(episode: BlicketEpisode, memory: blickets_context.EpisodeMemory, index: int) -> None:
    verb = "remove" if index in memory.placed else "place"
    memory.note(episode.act({verb: episode.task.objects[index]}))


def _submit(episode: BlicketEpisode, memory: blickets_context.EpisodeMemory, rule: Rule) -> None:
    """Submit until it is accepted: some items refuse an answer that comes too early, and every refusal costs a move."""
    answer = rule.as_json(episode.task.objects)
    while not episode.closed:
        if episode.act({"check": answer}).refused and episode.left:
            _toggle(episode, memory, 0)
