"""The version space of linear laboratories with hidden noise: mechanisms together with what the noise was.

Given the draws, fit is local again: a node that the noise shifts changes by the weighted sum of its parents plus the
difference of two draws. So the draws are followed reading by reading, each sequence with the vectors that every node
has left, and members are counted over the acyclic choices for each sequence. Exact for the class in words, which is
larger than what the laboratory can do in one respect: what base a setting leaves is not used.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product

import numpy as np
import numpy.typing as npt

from dsl.causalab.mechanism import FREQUENCY, Edge, Mechanism, Values
from solvers.budget import BudgetSpent
from solvers.causalab.choices import choices, masks_of
from solvers.causalab.evidence import Evidence
from solvers.causalab.local import PER_UNIT, Integers, Local, in_hundredths, local
from solvers.causalab.replay import EXACT, mechanism_of, misfit
from solvers.causalab.space import MAX_LISTED, acyclic_choices, frequencies
from solvers.space import space_repr

SCALES = (0.5, 5.0, 50.0)  # of the released suites
DRAWS = (-1, 0, 1)
MAX_WORLDS = 5_000


@dataclass(frozen=True)
class Shifted:
    """What one node may still be: a weight vector, and whether the noise shifts the node.

    vectors: (rows, nodes); shifted: (rows,)
    """

    node: int
    vectors: Integers
    shifted: npt.NDArray[np.bool_]

    def explaining(self, change: Integers, shift: int) -> Shifted:
        """The rows whose change is the weighted sum of the others' and, where the node is shifted, `shift`."""
        kept = self.vectors @ change - change[self.node] + shift * self.shifted == 0
        return Shifted(self.node, self.vectors[kept], self.shifted[kept])

    def options(self, *, shifted: bool) -> dict[int, int]:
        """Number of rows by mask of parents; only those that are not shifted unless told."""
        vectors = self.vectors if shifted else self.vectors[~self.shifted]
        return Counter(Local(self.node, vectors).masks.tolist())


@dataclass(frozen=True)
class World:
    """One scale and the sequences of draws that end in `last`, with what every node may be under each of them.

    sequences: how many; draws that no node shows leave the nodes as they are
    """

    scale: float
    last: int
    nodes: tuple[Shifted, ...]
    sequences: int = 1

    @cached_property
    def count(self) -> int:
        """Acyclic choices in which some node is shifted."""
        every = {n.node: n.options(shifted=True) for n in self.nodes}
        quiet = {n.node: n.options(shifted=False) for n in self.nodes}
        return self.sequences * (choices(every) - choices(quiet))

    def having(self, parent: int, child: int) -> int:
        """Members with an edge."""
        both = []
        for shifted in (True, False):
            options = {n.node: n.options(shifted=shifted) for n in self.nodes}
            options[child] = {mask: number for mask, number in options[child].items() if mask >> parent & 1}
            both.append(choices(options))
        return self.sequences * (both[0] - both[1])

    def with_parents(self, masks: Sequence[int]) -> int:
        """Members whose parents are these masks."""
        both = []
        for shifted in (True, False):
            own = [n.options(shifted=shifted) for n in self.nodes]
            both.append(choices({i: {m: o[m]} if (m := masks[i]) in o else {} for i, o in enumerate(own)}))
        return self.sequences * (both[0] - both[1])

    def where(self, node: int, keep: npt.NDArray[np.bool_]) -> World:
        """With some rows of one node only."""
        own = self.nodes[node]
        kept = Shifted(node, own.vectors[keep], own.shifted[keep])
        return replace(self, nodes=tuple(kept if n.node == node else n for n in self.nodes))


@dataclass(frozen=True)
class NoisyDags:
    """Mechanisms, affected nodes, scales and draws that explain the evidence."""

    evidence: Evidence
    worlds: tuple[World, ...]
    bounded: bool = False

    __repr__ = space_repr

    @property
    def in_words(self) -> str:
        sink = "" if self.evidence.task.freq_parent else f", {FREQUENCY} without children"
        drawn = "bases as they are drawn (integers from 0 to 100, 15 to 25 for the frequency)"
        bases = drawn if self.bounded else "any bases"
        scales = ", ".join(f"{scale:g}" for scale in SCALES)
        return (
            f"linear mechanisms with weights 1, 2, 3{sink} and {bases}, together with one or more shifted nodes, "
            f"a scale s of {scales}, and a draw of -s, 0 or s for every setting; what base a setting leaves is not used"
        )

    @cached_property
    def count(self) -> int:
        return sum(world.count for world in self.worlds)

    def fits(self, member: Mechanism) -> bool:
        """Whether the mechanism is that of a member."""
        nodes = self.evidence.nodes
        rows = [[member.weights(child).get(parent, 0.0) for parent in nodes] for child in nodes]
        return any(_holds(world, rows) for world in self.worlds)

    def noises(self, member: Mechanism) -> list[tuple[float, tuple[str, ...]]]:
        """Scale and shifted nodes of every member with this mechanism."""
        nodes = self.evidence.nodes
        found: set[tuple[float, tuple[str, ...]]] = set()
        for world in self.worlds:
            flags = []
            for own, child in zip(world.nodes, nodes, strict=True):
                row = [member.weights(child).get(parent, 0.0) for parent in nodes]
                flags.append(sorted(set(own.shifted[np.all(own.vectors == row, axis=1)].tolist())))
            for chosen in product(*flags):
                shifted = tuple(node for node, flag in zip(nodes, chosen, strict=True) if flag)
                if shifted:
                    found.add((world.scale, shifted))
        return sorted(found)

    def after(self, experiment: tuple[str, float], reading: Values) -> NoisyDags:
        """With one more reading; `BudgetSpent` if the draws leave more than MAX_WORLDS different outcomes."""
        evidence = self.evidence.after(*experiment, reading)
        return NoisyDags(evidence, tuple(_followed(self.worlds, evidence)), self.bounded)

    def verdicts(self) -> Mapping[float, int]:
        """How many members predict each frequency of the reactor crystal; NaN where a parent is not shown."""
        unknown = float("nan")  # one object, so that it is one key
        found: Counter[float] = Counter()
        for world in self.worlds:
            own = world.nodes[-1]
            values = frequencies(Local(own.node, own.vectors), self.evidence)
            for value in np.unique(values[~np.isnan(values)]).tolist():
                found[value / PER_UNIT] += world.where(own.node, values == value).count
            found[unknown] += world.where(own.node, np.isnan(values)).count
        return {value: number for value, number in found.items() if number}

    @cached_property
    def edge_counts(self) -> dict[Edge, int]:
        """How many members have each edge that some member has."""
        nodes, found = self.evidence.nodes, Counter[Edge]()
        for world in self.worlds:
            for child in range(len(nodes)):
                for parent in range(len(nodes)):
                    found[nodes[parent], nodes[child]] += world.having(parent, child)
        return {edge: number for edge, number in found.items() if number}

    def having_graph(self, edges: Set[Edge]) -> int:
        """How many members have exactly these edges."""
        masks = masks_of(edges, self.evidence.nodes)
        return 0 if masks is None else sum(world.with_parents(masks) for world in self.worlds)

    @property
    def certain_edges(self) -> frozenset[Edge]:
        return frozenset(edge for edge, number in self.edge_counts.items() if number == self.count)

    @property
    def possible_edges(self) -> frozenset[Edge]:
        return frozenset(self.edge_counts)

    @property
    def graph_decided(self) -> bool:
        return self.count > 0 and self.certain_edges == self.possible_edges

    def mechanisms(self) -> list[Mechanism]:
        """The mechanisms of members, each once; `BudgetSpent` if members are too many to list."""
        if self.count > MAX_LISTED:
            raise BudgetSpent(f"{self.count} members; at most {MAX_LISTED} are written out")
        found = {matrix for world in self.worlds for matrix in _matrices(world)}
        return [self._mechanism(np.array(matrix)) for matrix in sorted(found)]

    def _mechanism(self, matrix: Integers) -> Mechanism:
        weights = [{int(p): float(row[p]) for p in np.flatnonzero(row)} for row in matrix]
        first = self.evidence.table[0]
        return mechanism_of(self.evidence.nodes, weights, float(np.round(first[-1] - first @ matrix[-1], 2)))


def noisy_dags(evidence: Evidence, *, bounded: bool = False) -> NoisyDags:
    """The space of a linear noisy task; `BudgetSpent` if the draws leave more than MAX_WORLDS different outcomes.

    bounded: whether bases that were drawn are known to be integers from 0 to 100, the frequency's from 15 to 25
    """
    quiet = [seen.noisy for seen in evidence.seen]
    start = quiet.index(True) if True in quiet else len(quiet)
    before = Evidence(evidence.task, evidence.seen[:start], evidence.fresh)
    nodes = []
    for node in range(len(evidence.nodes)):
        vectors = local(before, node, bounded=bounded).vectors
        both = np.repeat([False, True], len(vectors))
        nodes.append(Shifted(node, np.vstack([vectors, vectors]), both))
    worlds = [World(scale, 0, tuple(nodes)) for scale in SCALES]
    for end in range(start + 1, len(evidence.seen) + 1):
        worlds = _followed(worlds, Evidence(evidence.task, evidence.seen[:end], evidence.fresh))
    return NoisyDags(evidence, tuple(worlds), bounded)


def _followed(worlds: Sequence[World], evidence: Evidence) -> list[World]:
    """Every world with every next draw under which each node, and some shifted one, still explains its readings."""
    changed = evidence.seen[-1].changed
    step = evidence.step
    found: dict[tuple[object, ...], World] = {}
    for world in worlds:
        for draw in DRAWS:
            shift = round(world.scale * PER_UNIT) * (draw - world.last)
            nodes = world.nodes
            if len(step):
                change = in_hundredths(step)[0]
                nodes = tuple(n if n.node == changed else n.explaining(change, shift) for n in world.nodes)
            if all(len(n.vectors) for n in nodes) and any(n.shifted.any() for n in nodes):
                key = (world.scale, draw, *(part for n in nodes for part in (n.vectors.tobytes(), n.shifted.tobytes())))
                before = found[key].sequences if key in found else 0
                found[key] = World(world.scale, draw, nodes, before + world.sequences)
    if len(found) > MAX_WORLDS:
        raise BudgetSpent(f"{len(found)} different outcomes of the draws; at most {MAX_WORLDS} are followed")
    return list(found.values())


def _holds(world: World, rows: Sequence[Sequence[float]]) -> bool:
    shifted = False
    for own, row in zip(world.nodes, rows, strict=True):
        same = np.all(own.vectors == row, axis=1)
        if not same.any():
            return False
        shifted |= bool(own.shifted[same].any())
    return shifted


def _matrices(world: World) -> Iterator[tuple[tuple[int, ...], ...]]:
    order = sorted(world.nodes, key=lambda n: len(n.vectors))
    for rows in acyclic_choices([Local(n.node, n.vectors) for n in order]):
        if any(n.shifted[row] for n, row in zip(order, rows, strict=True)):
            matrix = {n.node: tuple(n.vectors[row].tolist()) for n, row in zip(order, rows, strict=True)}
            yield tuple(matrix[node] for node in sorted(matrix))


def replays(space: NoisyDags, member: Mechanism) -> bool:
    """Whether the reference gives every reading under one of the noises that the space leaves the mechanism."""
    for scale, nodes in space.noises(member):
        shifts = [dict.fromkeys(nodes, scale * draw) for draw in DRAWS]
        if misfit(member, space.evidence, reading=space.evidence.task.reading, shifts=shifts) <= EXACT:
            return True
    return False
