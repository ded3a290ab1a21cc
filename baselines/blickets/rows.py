"""Simple agents: a grid of strategies to explore, to revise beliefs and to stop, and agents with a single strategy.

The 3 x 3 x 3 combinations are not imitations of prompts: they show how each strategy changes the statistics of a table.
Source of the strategies: arXiv 2604.20039, sections 3 and 5.
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
GROUP_SIZES = (1, 2, 3)  # objects on the detector


class ExplorationScript:
    """Every single object, every pair, every triple, one after another; the detector is cleared in between.

    size: number of objects of the current group
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
        """Return the object to place or remove next; after the last triple the script restarts."""
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
    return (set_of(members) for size in GROUP_SIZES for members in combinations(range(n), size))


def lowest(objects: int) -> int:
    """Return the lowest number in a set of objects; -1 if it is empty."""
    return (objects & -objects).bit_length() - 1


# --- The strategies that the agents of the grid combine ---------------------------------------------------------------


class ExplorationStrategy(StrEnum):
    """Rule for the object toggled while more than one blicket rule is consistent."""

    RANDOM = "random"  # any
    SCRIPT = "script"  # those of the next group: every single object, every pair, every triple, from an empty detector
    GREEDY = "greedy"  # towards the configuration of largest expected information per move


class Revise(StrEnum):
    """Reaction to a reading that no rule explains together with the earlier readings."""

    NONE = "none"  # the reading is ignored
    SUFFIX = "suffix"  # the readings before it are forgotten
    DB = "db"  # it is ignored until a dynamic behaviour fires, which names another class of detectors


class Stop(StrEnum):
    """When the answer is submitted."""

    RESOLVE = "resolve"  # once one rule is left
    CONFIRM = "confirm"  # once one rule is left, and the detector was ACTIVE `confirmations` times since
    SILENT = "silent"  # once one rule is left, and INACTIVE probes rule out a switch (not for a disjunctive rule)


# --- Beliefs of an agent of the grid about the detector, and their revision after contradictions ----------------------


class Beliefs:
    """The consistent rules of an agent in one episode.

    space: a StaticSpace until a behaviour has named order or chance
    contradiction: index of the first reading that was ignored since the last revision, None without one
    revisions: number of times that readings were forgotten or interpreted anew
    """

    def __init__(self, task: Task, revise: Revise) -> None:
        self.task = task
        self.revise = revise
        self.memory = blickets_context.EpisodeMemory(task)
        self.space: Revisable = StaticSpace.full(task.n)
        self.contradiction: int | None = None
        self.revisions = 0
        self._watch = blickets_context.Watch(
            blickets_context.BEHAVIOURS if revise is Revise.DB else (), blickets_context.deterministic_scorer
        )
        self._fired: set[str] = set()

    @property
    def is_static(self) -> bool:
        """Return whether the rule is taken to be reliable and independent of the order of placing."""
        return isinstance(self.space, StaticSpace)

    @property
    def rule(self) -> Rule | None:
        """The only consistent rule, or one of probability 1 - DELTA for an unreliable detector; else None."""
        if self.is_static and self.space.count > 1:
            return None
        answer, probability = best_answer(self.space)
        return answer if probability >= 1 - DELTA else None

    def note(self, step: Step[str]) -> None:
        """Update the beliefs by the next step of the episode."""
        self.memory.note(step)
        if step.reading is not None:
            self._note_reading(self.memory.observations[-1])
        if step.cost:
            scores = self._watch.scores(blickets_context.Situation(self.memory, "", ()))
            self._fired |= {score.behaviour.key for score in scores if score.fired}
        if self.contradiction is not None and self._fired:
            self._reconsider(self.contradiction)

    def _note_reading(self, last: blickets_context.Observation) -> None:
        after = _after(self.space, last)
        if after.count:
            self.space = after
        elif self.revise is Revise.SUFFIX:
            self._believe_since(len(self.memory.observations) - 1)
        elif self.contradiction is None:
            self.contradiction = len(self.memory.observations) - 1

    def _reconsider(self, contradiction: int) -> None:
        """Revise by the behaviours that fired, each once: DB4 a switch since then, DB2 order, DB3 noise."""
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
        """Forget all readings before index `first`, and restart at each later reading that contradicts those since.

        A reading that no rule gives, such as INACTIVE with all objects, is ignored.
        """
        everything: Revisable = StaticSpace.full(self.task.n)
        belief = everything
        for observation in self.memory.observations[first:]:
            candidates = (_after(belief, observation), _after(everything, observation), everything)
            belief = next(space for space in candidates if space.count)
        self._believe(belief)

    def _believe_all(self, space: Revisable) -> None:
        """Interpret all readings in another class, if some member of it gives them all."""
        for observation in self.memory.observations:
            space = _after(space, observation)
        if space.count:
            self._believe(space)

    def _believe(self, belief: Revisable) -> None:
        self.space = belief
        self.contradiction = None
        self.revisions += 1


def _after(space: Revisable, observation: blickets_context.Observation) -> Revisable:
    return space.after(observation.placed, ACTIVE if observation.active else INACTIVE)


# --- Next actions of an agent of the grid in one episode --------------------------------------------------------------


class GridPolicy:
    """One agent in one episode.

    num_steps: number of steps noted so far
    confirmed: number of ACTIVE readings since one rule was left
    probed: objects of that rule, as a set, without which a probe was INACTIVE since the last ACTIVE reading
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
        """Update beliefs and counts by the next step of the episode."""
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

        budget_left: number of moves that remain; with 0 the agent submits
        """
        if budget_left == 0 or (self.is_done and not self._was_refused):
            return {"check": best_answer(self.beliefs.space)[0].as_json(self.task.objects)}
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
        """Return the object to place or remove next."""
        rule, present = self.beliefs.rule, self.beliefs.memory.present
        if rule is not None:
            return self._probe(rule, present) if self.stop is Stop.SILENT else self._confirmation(rule, present)
        if self.explore is ExplorationStrategy.RANDOM:
            return self.rng.randrange(self.task.n)
        if (
            self.explore is ExplorationStrategy.SCRIPT and self.beliefs.is_static
        ):  # no group of the script tests orders or repeats itself
            return self._script.next_toggle(present)
        (name,) = greedy_move(self.beliefs.space, self.task, self.beliefs.memory.placed).action.values()
        return self.task.objects.index(name)

    def _confirmation(self, rule: Rule, present: int) -> int:
        """Return a toggle towards another ACTIVE reading: complete the rule, else one that leaves it satisfied."""
        if not rule.active(present):
            return lowest(rule.blickets & ~present)
        harmless = [i for i in range(self.task.n) if rule.active(present ^ 1 << i)]
        return self.rng.choice(harmless) if harmless else lowest(rule.blickets)

    def _probe(self, rule: Rule, present: int) -> int:
        """Return a toggle towards all objects but one of the rule's, which is removed first: no reading is ACTIVE."""
        missing = rule.blickets & ~self.probed or rule.blickets
        first = missing & -missing
        return lowest(present & first or _everything(self.task.n) & ~first & ~present or present)

    # --- text and state for a dialogue --------------------------------------------------------------------------------

    def thought(self) -> str:
        """Return the belief in a line."""
        rule = self.beliefs.rule
        return (
            f"{self.beliefs.space.count} rules are left"
            if rule is None
            else f"left: {rule.in_words(self.task.objects)}"
        )

    def transition(self, context: blickets_context.Context | None) -> str:
        """Return the next state on a shortest path to the state of the agent's stage; "" if it is there."""
        return context.toward(self._stage()) if context else ""

    def _stage(self) -> str:
        if self.beliefs.rule is not None:
            return "VERIFICATION"
        singles = self.explore is ExplorationStrategy.SCRIPT and self._script.size == 1
        return "INITIAL_EXPLORATION" if singles else "COMBINATION_TESTING"


def _everything(n: int) -> int:
    return (1 << n) - 1


# --- A grid of simple agents: strategies to explore, to revise after a contradiction, and to stop ---------------------
CONFIRMATIONS = 2  # ACTIVE readings


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
        """Act in an episode until an answer was accepted; with no moves left, submit the most probable rule."""
        policy = self._policy(episode.task, rng)
        while not episode.closed:
            episode.act(_next_action(policy, episode))

    def policy(self, task: Task, rng: Random) -> Policy:
        """Return the agent as a policy for one dialogue; in a context graph it moves to the state of its stage."""
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

PRESETS = {  # agents that are compared with the paper's rows
    "base": GridAgent(ExplorationStrategy.RANDOM, Revise.NONE, Stop.CONFIRM, 1),
    "cg": GridAgent(ExplorationStrategy.SCRIPT, Revise.SUFFIX, Stop.CONFIRM),
    "cg+db": GridAgent(ExplorationStrategy.SCRIPT, Revise.DB, Stop.CONFIRM),
}


# --- Agents with a single strategy, as points of comparison for rates -------------------------------------------------
NUM_RANDOM_MOVES = 10  # of the agents that toggle at random before they submit

BlicketEpisode: TypeAlias = Episode[Task, str]


@dataclass(frozen=True, slots=True)
class SimpleAgent:
    """A name, and a function that plays an episode; its choices depend on the given generator alone."""

    name: str
    play: Callable[[BlicketEpisode, Random], None]


def play_random(episode: BlicketEpisode, rng: Random) -> None:
    """Make NUM_RANDOM_MOVES toggles, then submit a random rule of those that fit; of all rules if none does."""
    memory = _toggle_randomly(episode, rng)
    space = StaticSpace.full(episode.task.n)
    for placed, active in memory.observations:
        space = space.after(placed, ACTIVE if active else INACTIVE)
    _submit(episode, memory, rng.choice(list(space.verdicts()) or all_rules(episode.task.n)))


def play_copy(episode: BlicketEpisode, rng: Random) -> None:
    """Make NUM_RANDOM_MOVES toggles, then submit the last ACTIVE set as a conjunction; all objects if none was."""
    memory = _toggle_randomly(episode, rng)
    everything = (1 << episode.task.n) - 1
    last = next((o.present for o in reversed(memory.observations) if o.active and o.placed), everything)
    _submit(episode, memory, Rule(Form.CONJUNCTIVE, last))


def play_quiet(episode: BlicketEpisode, rng: Random) -> None:
    """Try single objects, pairs, triples until the first ACTIVE reading, then submit the first rule that fits."""
    memory = _start_memory(episode)
    script = ExplorationScript(episode.task.n)
    while episode.left and not memory.activations:
        _toggle(episode, memory, script.next_toggle(memory.present))
    space = StaticSpace.full(episode.task.n)
    for placed, active in memory.observations:
        space = space.after(placed, ACTIVE if active else INACTIVE)
    _submit(episode, memory, next(iter(space.verdicts()), all_rules(episode.task.n)[0]))


def play_abstain(episode: BlicketEpisode, rng: Random) -> None:
    """Make no move and give no answer."""


SIMPLE = (
    SimpleAgent("random", play_random),
    SimpleAgent("quiet", play_quiet),
    SimpleAgent("abstain", play_abstain),
    SimpleAgent("copy", play_copy),
)


def _start_memory(episode: BlicketEpisode) -> blickets_context.EpisodeMemory:
    memory = blickets_context.EpisodeMemory(episode.task)
    for step in episode.steps:
        memory.note(step)
    return memory


def _toggle_randomly(episode: BlicketEpisode, rng: Random) -> blickets_context.EpisodeMemory:
    memory = _start_memory(episode)
    for _ in range(min(NUM_RANDOM_MOVES, episode.left)):
        _toggle(episode, memory, rng.randrange(episode.task.n))
    return memory


def _toggle(episode: BlicketEpisode, memory: blickets_context.EpisodeMemory, index: int) -> None:
    verb = "remove" if index in memory.placed else "place"
    memory.note(episode.act({verb: episode.task.objects[index]}))


def _submit(episode: BlicketEpisode, memory: blickets_context.EpisodeMemory, rule: Rule) -> None:
    """Submit until the answer is accepted: some items refuse early answers, and every refusal costs a move."""
    answer = rule.as_json(episode.task.objects)
    while not episode.closed:
        if episode.act({"check": answer}).refused and episode.left:
            _toggle(episode, memory, 0)
