"""The context graph of an agent's inquiry, and dynamic behaviours that extend it during an episode.

Source: arXiv 2604.20039, sections 3.2 and 3.3. States, edges, behaviours, their conditions and the states that they add
are the paper's; the wording is ours.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, TypeAlias

from calibrant.dsl.blickets.item import Count, Task, all_rules, names_of, set_of
from calibrant.dsl.blickets.reference import is_active
from calibrant.dsl.episode import Step
from calibrant.dsl.errors import short_repr
from calibrant.dsl.item import Message
from calibrant.solvers.blickets.space import activated_rules

# --- The context graph: the stages of an inquiry and the transitions between them -------------------------------------


class StateType(StrEnum):
    """Main activity of an agent in a state."""

    ACTION = "action"
    REFLECTION = "reflection"
    DECISION = "decision"


@dataclass(frozen=True, slots=True)
class State:
    """A stage of the inquiry; objective and guidelines are shown to the agent while it is in the stage."""

    name: str
    type: StateType
    objective: str
    guidelines: tuple[str, ...]


class Edge(NamedTuple):
    source: str
    target: str


@dataclass(frozen=True, slots=True)
class Graph:
    """Graph of states.

    edges: all declared edges; one to or from a state that is not in `states` has no effect until that state is added
    """

    states: tuple[State, ...]
    edges: tuple[Edge, ...]

    def state(self, name: str) -> State | None:
        return next((state for state in self.states if state.name == name), None)

    def targets(self, name: str) -> tuple[str, ...]:
        """Return the states that a state leads to, in the order of declaration."""
        return tuple(edge.target for edge in self.edges if edge.source == name and self.state(edge.target))

    def add_state(self, state: State, edges: Iterable[Edge]) -> Graph:
        """Return the graph with one more state; `ValueError` if it has a state of that name."""
        if self.state(state.name):
            raise ValueError(f"the graph has a state {state.name} already")
        return Graph((*self.states, state), (*self.edges, *edges))


class TransitionOutcome(NamedTuple):
    """Outcome of a `TRANSITION:` line; `refused` is the reason for a refusal, empty if the transition was taken."""

    requested: str
    is_taken: bool
    refused: str = ""


MAX_CHANGES = 3  # changes of the graph that an agent is shown (paper, appendix A.2)


@dataclass(frozen=True, slots=True)
class Context:
    """Current state of an agent in a graph; changes: changes of the graph so far, in words."""

    graph: Graph
    state: State
    changes: tuple[str, ...] = ()

    def move(self, requested: str) -> tuple[Context, TransitionOutcome]:
        """Return the context after a transition; the same context if the graph has no such edge."""
        legal = self.graph.targets(self.state.name)
        target = self.graph.state(requested) if requested in legal else None
        if target is None:
            allowed = ", ".join(legal)
            return self, TransitionOutcome(
                requested, False, f"no edge from {self.state.name} to {short_repr(requested)}; allowed: {allowed}"
            )
        return Context(self.graph, target, self.changes), TransitionOutcome(requested, True)

    def toward(self, goal: str) -> str:
        """Return the next state on a shortest path to a state; empty if it is the current one or unreachable."""
        waiting, visited = deque((first, first) for first in self.graph.targets(self.state.name)), {self.state.name}
        while waiting and goal != self.state.name:
            first, name = waiting.popleft()
            if name == goal:
                return first
            if name not in visited:
                visited.add(name)
                waiting.extend((first, target) for target in self.graph.targets(name))
        return ""

    def add_state(self, state: State, edges: Iterable[Edge]) -> Context:
        added = tuple(edges)
        arrows = ", ".join(f"{edge.source} -> {edge.target}" for edge in added)
        change = f"added {state.name} ({state.type})" + (f"; edges: {arrows}" if added else "")
        return Context(self.graph.add_state(state, added), self.state, (*self.changes, change))

    def render(self) -> str:
        """Return the text shown to the agent every turn: state, objective, guidelines, legal moves, overview.

        A graph that was changed ends with its last MAX_CHANGES changes.
        """
        log = ("Last changes of this graph:", *(f"- {line}" for line in self.changes[-MAX_CHANGES:]))
        legal = self.graph.targets(self.state.name)
        return "\n".join(
            (
                f"CONTEXT: {self.state.name} ({self.state.type})",
                f"Objective: {self.state.objective}",
                "Guidelines:",
                *(f"- {line}" for line in self.state.guidelines),
                f"Transitions open to you: {', '.join(legal)}",
                "To change the state, add a line `TRANSITION: NAME`; without one you stay.",
                "Overview:",
                *(f"- {s.name} ({s.type}) -> {', '.join(self.graph.targets(s.name))}" for s in self.graph.states),
                *(log if self.changes else ()),
            )
        )


INITIAL_EXPLORATION = State(
    "INITIAL_EXPLORATION",
    StateType.ACTION,
    "See what each object does on its own.",
    ("Have one object on the detector at a time.", "Note which of them make it react."),
)
COMBINATION_TESTING = State(
    "COMBINATION_TESTING",
    StateType.ACTION,
    "See what groups, arrangements and sequences of objects do.",
    ("Change one object at a time, so that each reading says something about that object.", "Repeat what surprises."),
)
HYPOTHESIS_EVALUATION = State(
    "HYPOTHESIS_EVALUATION",
    StateType.REFLECTION,
    "Say which rule type and which members agree with all that was read, and what does not agree.",
    ("Check every reading against the rule, not only the last one.", "List the rules that are left."),
)
VERIFICATION = State(
    "VERIFICATION",
    StateType.DECISION,
    "Make the test that tells the rules left apart, then submit.",
    ("Prefer a test whose outcome would change the answer.", "Submit with `check` when nothing is open."),
)

_EDGES = (
    (INITIAL_EXPLORATION, (COMBINATION_TESTING,)),
    (COMBINATION_TESTING, (HYPOTHESIS_EVALUATION, INITIAL_EXPLORATION)),
    (HYPOTHESIS_EVALUATION, (VERIFICATION, COMBINATION_TESTING)),
    (VERIFICATION, (HYPOTHESIS_EVALUATION,)),
)
GRAPH = Graph(
    tuple(source for source, _ in _EDGES),
    tuple(Edge(source.name, target.name) for source, targets in _EDGES for target in targets),
)
START = Context(GRAPH, INITIAL_EXPLORATION)


# --- Dynamic behaviours: conditions that are scored during an episode and, once met, extend the context graph ---------
THRESHOLD = 6.0  # least score, from 0 to 10, at which a behaviour fires
MAX_RUNNER_UP_GAP = 1.0  # a second behaviour fires too if its score is at most so far below the highest


@dataclass(frozen=True, slots=True)
class Behaviour:
    """Dynamic behaviour: a condition on the episode that, once met, extends the context graph.

    key: its number in the paper; minimum: number of steps before it is scored; condition: the text that scorers judge
    state: state that it adds to the graph, with edges from `sources` and to `targets`; notice: message to the agent
    """

    key: str
    name: str
    minimum: int
    condition: str
    state: State
    sources: tuple[str, ...]
    targets: tuple[str, ...]
    notice: str

    def extend_context(self, context: Context) -> Context:
        """Return a context with the behaviour's state and edges; an end of an edge may be a state added later."""
        name = self.state.name
        into = [Edge(source, name) for source in self.sources]
        return context.add_state(self.state, [*into, *(Edge(name, target) for target in self.targets)])


def firing(scores: Mapping[Behaviour, float]) -> tuple[Behaviour, ...]:
    """Return the behaviours that fire in one step: that of the highest score, and the next if it is close.

    Scores below THRESHOLD never fire. Of equal scores the first in `scores` counts as higher.
    """
    ranked = sorted((b for b, score in scores.items() if score >= THRESHOLD), key=lambda b: -scores[b])
    return tuple(b for b in ranked[:2] if scores[ranked[0]] - scores[b] <= MAX_RUNNER_UP_GAP)


_DIMENSION_DISCOVERY = State(
    "DIMENSION_DISCOVERY",
    StateType.REFLECTION,
    "Ask what else than the set of objects could matter, since nothing has made the detector react.",
    ("Consider the order of placing, chance, and conditions that change with time.", "Plan a test for each."),
)
_ORDER_TESTING = State(
    "ORDER_TESTING",
    StateType.ACTION,
    "Find out whether the order in which objects are placed decides the reading.",
    ("Build the same set in another order.", "Keep everything else as it was."),
)
_RELIABILITY_TESTING = State(
    "RELIABILITY_TESTING",
    StateType.ACTION,
    "Find out how often one configuration makes the detector react.",
    ("Repeat the same configuration several times.", "One reading that differs does not refute a rule here."),
)
_MODERATOR_DETECTION = State(
    "MODERATOR_DETECTION",
    StateType.REFLECTION,
    "Decide whether the rule has changed, and since when.",
    ("Trust readings since the change.", "Ask which rule is in force now, not which one was."),
)

BEHAVIOURS = (
    Behaviour(
        "DB1",
        "exploration_stagnation",
        6,
        "The detector has never been active.",
        _DIMENSION_DISCOVERY,
        (HYPOTHESIS_EVALUATION.name, COMBINATION_TESTING.name),
        (COMBINATION_TESTING.name, VERIFICATION.name),
        "Nothing has made the detector react yet. Something else than the set of objects may matter.",
    ),
    Behaviour(
        "DB2",
        "order_hypothesis",
        8,
        "The same set of objects gave another result when it was placed in another order.",
        _ORDER_TESTING,
        (_DIMENSION_DISCOVERY.name, COMBINATION_TESTING.name),
        (HYPOTHESIS_EVALUATION.name, VERIFICATION.name),
        "The same objects gave different readings. The order in which they are placed may matter.",
    ),
    Behaviour(
        "DB3",
        "stochasticity_hypothesis",
        8,
        "The same configuration gave another result.",
        _RELIABILITY_TESTING,
        (_DIMENSION_DISCOVERY.name, COMBINATION_TESTING.name),
        (HYPOTHESIS_EVALUATION.name,),
        "The same configuration gave different readings. The detector may be unreliable.",
    ),
    Behaviour(
        "DB4",
        "rule_change_hypothesis",
        10,
        "A rule that worked has stopped working.",
        _MODERATOR_DETECTION,
        (_DIMENSION_DISCOVERY.name, HYPOTHESIS_EVALUATION.name),
        (COMBINATION_TESTING.name, VERIFICATION.name),
        "A rule that was confirmed has failed. The rule may have changed.",
    ),
)


# --- Memory of an episode, from its steps: the objects on the detector, and the reading of each configuration ---------


class Observation(NamedTuple):
    """One reading.

    placed: numbers of the objects on the detector, first placed first
    """

    placed: tuple[int, ...]
    active: bool

    @property
    def present(self) -> int:
        """Return the objects as a set: bit i is object i."""
        return set_of(self.placed)


class EpisodeMemory:
    """The readings of an episode so far, derived from its steps alone.

    placed: numbers of the objects on the detector, first placed first
    moves: number of moves, refused ones included; activations: their number by the task's convention
    """

    __slots__ = ("_index", "activations", "moves", "observations", "placed", "task")

    def __init__(self, task: Task) -> None:
        self.task = task
        self.placed: tuple[int, ...] = ()
        self.observations: list[Observation] = []
        self.activations = 0
        self.moves = 0
        self._index = {name: i for i, name in enumerate(task.objects)}

    def note(self, step: Step[str]) -> None:
        """Record the next step of the episode."""
        self.moves += step.cost
        if step.reading is None:
            return
        action = step.action
        if "place" in action:
            self.placed = (*self.placed, self._index[action["place"]])
        elif "remove" in action:
            removed = self._index[action["remove"]]
            self.placed = tuple(i for i in self.placed if i != removed)
        else:  # the objects at the start
            self.placed = tuple(self._index[name] for name in action["start"])
        active = is_active(step.reading)
        was_active = bool(self.observations) and self.observations[-1].active
        self.activations += active and (self.task.count is Count.LEVEL or not was_active)
        self.observations.append(Observation(self.placed, active))

    @property
    def present(self) -> int:
        """The objects on the detector as a set: bit i is object i."""
        return set_of(self.placed)

    @property
    def placed_names(self) -> tuple[str, ...]:
        """Names of the objects on the detector, first placed first."""
        return tuple(self.task.objects[i] for i in self.placed)

    def summary(self) -> str:
        """Return steps, activations and every different reading, in one line."""
        distinct = dict.fromkeys((names_of(o.present, self.task.objects), o.active) for o in self.observations)
        readings = "; ".join(
            f"{', '.join(names) or 'nothing'}: {'ACTIVE' if on else 'INACTIVE'}" for names, on in distinct
        )
        return f"{self.moves} moves, {self.activations} activations; readings: {readings or 'none'}"


# --- Scorers of dynamic behaviours: a deterministic one, and one that asks a language model ---------------------------
MAX_SCORE = 10.0
CONFIRMATIONS = 2  # right readings of the only consistent rule before a wrong one counts as a change of the rule
NUM_MESSAGES = 5  # last messages that a scorer sees
MAX_MESSAGE_CHARS = 300


@dataclass(frozen=True, slots=True)
class Situation:
    """State of an episode as a scorer sees it.

    state: name of the state that the agent is in, empty without a context graph
    messages: the last NUM_MESSAGES, each cut to MAX_MESSAGE_CHARS
    """

    memory: EpisodeMemory
    state: str
    messages: tuple[Message, ...]


Scorer: TypeAlias = Callable[[Behaviour, Situation], float]  # from 0 to 10


class BehaviourScore(NamedTuple):
    """Score of a behaviour in one step, and whether the behaviour fired."""

    behaviour: Behaviour
    score: float
    fired: bool


class Watch:
    """The behaviours of one episode that have not fired yet."""

    def __init__(self, behaviours: Iterable[Behaviour], scorer: Scorer) -> None:
        self.waiting = list(behaviours)
        self.scorer = scorer

    def scores(self, situation: Situation) -> tuple[BehaviourScore, ...]:
        """Score the behaviours past their minimum that have not fired; `ValueError` for a score outside 0 to 10."""
        due = [b for b in self.waiting if situation.memory.moves >= b.minimum]
        scores = {b: _check_score(b, self.scorer(b, situation)) for b in due}
        fired = firing(scores)
        self.waiting = [b for b in self.waiting if b not in fired]
        return tuple(BehaviourScore(b, score, b in fired) for b, score in scores.items())


def _check_score(behaviour: Behaviour, score: float) -> float:
    if not 0 <= score <= MAX_SCORE:
        raise ValueError(f"{behaviour.name} was scored {score}; scores are from 0 to {MAX_SCORE:.0f}")
    return float(score)


def first_firings(task: Task, steps: Iterable[Step[str]]) -> dict[str, int]:
    """Return behaviour key -> number of moves until it first fires under the deterministic scorer."""
    memory, watch = EpisodeMemory(task), Watch(BEHAVIOURS, deterministic_scorer)
    fired: dict[str, int] = {}
    for step in steps:
        memory.note(step)
        if step.cost:
            scores = watch.scores(Situation(memory, "", ()))
            fired |= {score.behaviour.key: memory.moves for score in scores if score.fired}
    return fired


# --- deterministic ----------------------------------------------------------------------------------------------------


def deterministic_scorer(behaviour: Behaviour, situation: Situation) -> float:
    """Return 10 if the behaviour's condition holds in the readings so far, else 0."""
    memory = situation.memory
    return MAX_SCORE if _CONDITIONS[behaviour.key](memory.observations, memory.task.n) else 0.0


def never_active(observations: Sequence[Observation], _num_objects: int) -> bool:
    return not any(o.active for o in observations)


def has_order_effect(observations: Sequence[Observation], _num_objects: int) -> bool:
    """Return whether one set, placed in two orders, gave different readings."""
    orders: dict[int, tuple[set[tuple[int, ...]], set[tuple[int, ...]]]] = {}
    for observation in observations:
        orders.setdefault(observation.present, (set(), set()))[observation.active].add(observation.placed)
    return any(off and on and len(off | on) > 1 for off, on in orders.values())


def has_varying_readings(observations: Sequence[Observation], _num_objects: int) -> bool:
    """Return whether the same objects, placed in the same order, gave different readings."""
    first: dict[tuple[int, ...], bool] = {}
    return any(first.setdefault(placed, active) != active for placed, active in observations)


def confirmed_rule_failed(observations: Sequence[Observation], num_objects: int) -> bool:
    """Return whether a rule predicted CONFIRMATIONS readings after it was the only consistent one, and then failed.

    Consistency is counted over all rules; after a reading that no rule explains, it restarts with that reading.
    """
    satisfied = activated_rules(num_objects)
    everything = candidates = (1 << len(all_rules(num_objects))) - 1
    right = 0
    for observation in observations:
        active = satisfied[observation.present]
        fitting = active if observation.active else everything & ~active
        settled = candidates.bit_count() == 1
        candidates &= fitting
        if candidates:
            right += settled
        elif right >= CONFIRMATIONS:
            return True
        else:
            candidates, right = fitting, 0
    return False


_CONDITIONS: dict[str, Callable[[Sequence[Observation], int], bool]] = {
    "DB1": never_active,
    "DB2": has_order_effect,
    "DB3": has_varying_readings,
    "DB4": confirmed_rule_failed,
}
