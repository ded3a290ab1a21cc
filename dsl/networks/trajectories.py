"""Trajectories of a network under clamps, and what is asked of the next one; the meaning, slow and plain.

All genes are updated together. A state is a text, a character a gene in their order. A gene's functions are over its
candidates: in the class `signed` none that falls where a candidate of sign `+` rises, or rises where one of `-` does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from calibrant.dsl.networks.network import Network

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

    genes: in code point order; candidates: of each gene, with signs `+`, `-` or `both`
    """

    genes: tuple[str, ...]
    candidates: Mapping[str, tuple[tuple[str, str], ...]]
    evidence: tuple[Trajectory, ...]
    question: Question


def clamped(state: str, genes: Sequence[str], clamps: Mapping[str, int]) -> str:
    """Return a state with the values of held genes."""
    return "".join(str(clamps.get(gene, value)) for gene, value in zip(genes, state, strict=True))


def next_state(network: Network, state: str, clamps: Mapping[str, int]) -> str:
    """Return the state after one step."""
    values = {gene: int(value) for gene, value in zip(network.nodes, state, strict=True)}
    after = (network.function(gene).value(values) if gene not in clamps else clamps[gene] for gene in network.nodes)
    return "".join(map(str, after))


def simulate(network: Network, start: str, clamps: Mapping[str, int], steps: int) -> tuple[str, ...]:
    """Return the start, with held genes set, and the states of so many steps."""
    states = [clamped(start, network.nodes, clamps)]
    for _ in range(steps):
        states.append(next_state(network, states[-1], clamps))
    return tuple(states)


def path_to_attractor(network: Network, start: str, clamps: Mapping[str, int]) -> tuple[int, tuple[str, ...]]:
    """Return the steps before the attractor, and its states from the least one on."""
    places: dict[str, int] = {}
    state = clamped(start, network.nodes, clamps)
    while state not in places:
        places[state] = len(places)
        state = next_state(network, state, clamps)
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
