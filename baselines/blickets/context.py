"""The context graph: where an agent stands in its inquiry, and where it may go from there.

Source: arXiv 2604.20039, section 3.2. The states and edges are the paper's; the wording is ours.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from calibrant.dsl.errors import short_repr


class StateType(StrEnum):
    """Main activity of an agent in a state."""

    ACTION = "action"
    REFLECTION = "reflection"
    DECISION = "decision"


@dataclass(frozen=True, slots=True)
class State:
    """A stage of the inquiry, and what the agent is told while it is there."""

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

    edges: all that were declared; one whose end does not exist (yet) leads nowhere until it does
    """

    states: tuple[State, ...]
    edges: tuple[Edge, ...]

    def state(self, name: str) -> State | None:
        return next((state for state in self.states if state.name == name), None)

    def targets(self, name: str) -> tuple[str, ...]:
        """Return the states that a state leads to, in the order of declaration."""
        return tuple(edge.target for edge in self.edges if edge.source == name and self.state(edge.target))

    def add_state(self, state: State, edges: Iterable[Edge]) -> Graph:
        """With one more state; `ValueError` if it is there already."""
        if self.state(state.name):
            raise ValueError(f"the graph has a state {state.name} already")
        return Graph((*self.states, state), (*self.edges, *edges))


class TransitionOutcome(NamedTuple):
    """Outcome of a `TRANSITION:` line; `refused` is the reason for a refusal, empty if the transition was taken."""

    requested: str
    is_taken: bool
    refused: str = ""


MAX_CHANGES = 3  # of the graph that an agent is shown (paper, appendix A.2)


@dataclass(frozen=True, slots=True)
class Context:
    """An agent's place in a graph.

    changes: of the graph so far, in words
    """

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
        """Return the next state on a shortest way to another one; empty if it is this one, or if there is no way."""
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
