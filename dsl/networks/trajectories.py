"""Trajectories of a network under clamps, and what is asked of the next one; the meaning, slow and plain.

All genes are updated together. A state is a text, a character a gene in their order. A gene's functions are over its
candidates: in the class `signed` none that falls where a candidate of sign `+` rises, or rises where one of `-` does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from calibrant.dsl.networks.network import Network
from calibrant.dsl.text import Wording

FunctionClass: TypeAlias = Literal["signed", "free"]
FUNCTION_CLASSES: Final = ("signed", "free")


@dataclass(frozen=True, slots=True)
class Trajectory:
    """States in the order of time. clamps: genes held throughout, which give no reading."""

    clamps: Mapping[str, int]
    states: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Question:
    """Clamps and a start; steps: how many states are asked for, None for the attractor that is reached."""

    clamps: Mapping[str, int]
    start: str
    steps: int | None


@dataclass(frozen=True, slots=True)
class TrajectoryTask:
    """All that a solver may read.

    genes: in the order of the characters of states; candidates: of each gene, with signs `+`, `-` or `both`
    function_class: the functions of the candidates that a gene may have; wording: of the prompt
    """

    genes: tuple[str, ...]
    candidates: Mapping[str, tuple[tuple[str, str], ...]]
    evidence: tuple[Trajectory, ...]
    question: Question
    function_class: FunctionClass = "signed"
    wording: Wording = "standard"

    @property
    def in_words(self) -> str:
        """The class of networks, in the words of a claim."""
        kind = "monotone as their signs say" if self.function_class == "signed" else "of any kind"
        num_candidates = sum(map(len, self.candidates.values()))
        return f"networks of {len(self.genes)} genes, functions of {num_candidates} candidates, {kind}"


def clamped(state: str, genes: Sequence[str], clamps: Mapping[str, int]) -> str:
    """Return a state with the values of held genes."""
    return "".join(str(clamps.get(gene, value)) for gene, value in zip(genes, state, strict=True))


def next_state(network: Network, genes: Sequence[str], state: str, clamps: Mapping[str, int]) -> str:
    """Return the state after one step. genes: all nodes, in the order of the characters of states."""
    values = {gene: int(value) for gene, value in zip(genes, state, strict=True)}
    after = (network.function(gene).value(values) if gene not in clamps else clamps[gene] for gene in genes)
    return "".join(map(str, after))


def simulate(
    network: Network, genes: Sequence[str], start: str, clamps: Mapping[str, int], steps: int
) -> tuple[str, ...]:
    """Return the start, with held genes set, and the states of so many steps."""
    states = [clamped(start, genes, clamps)]
    for _ in range(steps):
        states.append(next_state(network, genes, states[-1], clamps))
    return tuple(states)


def path_to_attractor(
    network: Network, genes: Sequence[str], start: str, clamps: Mapping[str, int]
) -> tuple[int, tuple[str, ...]]:
    """Return the steps before the attractor, and its states from the least one on."""
    places: dict[str, int] = {}
    state = clamped(start, genes, clamps)
    while state not in places:
        places[state] = len(places)
        state = next_state(network, genes, state, clamps)
    return places[state], rotated([*places][places[state] :])


def rotated(cycle: Sequence[str]) -> tuple[str, ...]:
    """Return the states of a cycle from the least one on."""
    first = min(range(len(cycle)), key=lambda i: cycle[i])
    return (*cycle[first:], *cycle[:first])


def readings(task: TrajectoryTask, gene: str) -> Iterator[tuple[tuple[int, ...], int]]:
    """Yield the values of a gene's candidates before, and its value after, of each step that does not hold it."""
    position = task.genes.index(gene)
    sources = [task.genes.index(name) for name, _ in task.candidates[gene]]
    for trajectory in task.evidence:
        if gene not in trajectory.clamps:
            for before, after in zip(trajectory.states, trajectory.states[1:], strict=False):
                yield tuple(int(before[s]) for s in sources), int(after[position])


def broken_rule(network: Network, task: TrajectoryTask) -> str:
    """Return why a network is not of the class of a task; empty if it is."""
    if set(network.nodes) != set(task.genes):
        strange = sorted(set(network.nodes) ^ set(task.genes))
        return f"{strange[0]} is {'no gene' if strange[0] in network.nodes else 'a gene without a function'}"
    for gene in task.genes:
        allowed, function = dict(task.candidates[gene]), network.function(gene)
        for source, sign in zip(function.inputs, function.signs, strict=True):
            if source not in allowed:
                return f"{gene} depends on {source}, which is no candidate of it"
            if task.function_class == "signed" and allowed[source] not in ("both", sign):
                return f"{gene} depends on {source} with sign {sign}, not {allowed[source]}"
    return ""


def fits(network: Network, task: TrajectoryTask) -> bool:
    """Return whether a network gives every state of the evidence from the one before."""
    return all(
        next_state(network, task.genes, before, trajectory.clamps) == after
        for trajectory in task.evidence
        for before, after in zip(trajectory.states, trajectory.states[1:], strict=False)
    )


def answer_question(network: Network, task: TrajectoryTask) -> tuple[str, ...]:
    """Return a network's answer: the states after the start, or those of the attractor from the least one on."""
    question = task.question
    if question.steps is None:
        return path_to_attractor(network, task.genes, question.start, question.clamps)[1]
    return simulate(network, task.genes, question.start, question.clamps, question.steps)[1:]
