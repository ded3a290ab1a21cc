"""The version space of linear laboratories with hidden noise: mechanisms together with what the noise was.

Given the draws, fit is local again: a node that the noise shifts changes by the weighted sum of its parents plus the
difference of two draws. So the draws are followed reading by reading, each sequence with the vectors that every node
has left, and members are counted over the acyclic choices for each sequence. Exact for the class in words, which is
larger than what the laboratory can do in one respect: what base a setting leaves is not used. With `settings` that is
used as far as it is local; `solvers.causalab.noise.replayed` keeps the members that the laboratory itself leaves.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from calibrant.dsl.causalab.mechanism import FREQUENCY, Edge, Mechanism, Values
from calibrant.dsl.causalab.reference import Reading
from calibrant.solvers.budget import BudgetSpent
from calibrant.solvers.causalab.choices import choices, masks_of
from calibrant.solvers.causalab.evidence import LARGEST, Evidence, Floats
from calibrant.solvers.causalab.graphs import GraphSpace
from calibrant.solvers.causalab.local import PER_UNIT, Integers, Local, in_hundredths, local
from calibrant.solvers.causalab.replay import EXACT, linear_matrix, mechanism_of, misfit
from calibrant.solvers.causalab.space import MAX_LISTED, acyclic_choices, frequencies
from calibrant.solvers.space import space_repr

SCALES = (0.5, 5.0, 50.0)  # of the released suites
MAX_WORLDS = 5_000

Law: TypeAlias = tuple[int, ...]  # what a draw adds to a shifted node, in hundredths, each with equal probability
RELEASED_LAWS: tuple[Law, ...] = tuple((-round(s * PER_UNIT), 0, round(s * PER_UNIT)) for s in SCALES)


@dataclass(frozen=True)
class Shifted:
    """Remaining hypothesis on one node: a weight vector, and whether the noise shifts the node.

    vectors: (rows, nodes); shifted: (rows,)
    """

    node: int
    vectors: Integers
    shifted: npt.NDArray[np.bool_]

    def explaining(self, change: Integers, shift: int) -> Shifted:
        """The rows whose change is the weighted sum of the others' and, where the node is shifted, `shift`."""
        return self.where(self.vectors @ change - change[self.node] + shift * self.shifted == 0)

    def responding(self, responses: Sequence[int | None]) -> Shifted:
        """The rows that give the node its response to a draw, from those of its parents as far as they are known."""
        own_response = responses[self.node]
        if own_response is None:
            return self
        known = np.array([response or 0 for response in responses], dtype=np.int64)
        is_open = np.array([response is None for response in responses])
        sums = self.vectors @ known + self.shifted
        is_complete = ~np.any(self.vectors[:, is_open] > 0, axis=1)
        return self.where(np.where(is_complete, sums == own_response, sums <= own_response))  # no response is negative

    def based(self, reading: Integers, base: int, shift: int) -> Shifted:
        """The rows that leave the node this base in a reading."""
        return self.where(reading[self.node] - self.vectors @ reading - shift * self.shifted == base)

    def where(self, keep: npt.NDArray[np.bool_]) -> Shifted:
        return Shifted(self.node, self.vectors[keep], self.shifted[keep])

    def options(self, *, shifted: bool) -> dict[int, int]:
        """Number of rows by mask of parents; only those that are not shifted unless told."""
        vectors = self.vectors if shifted else self.vectors[~self.shifted]
        return Counter(Local(self.node, vectors).masks.tolist())


@dataclass(frozen=True)
class World:
    """One law and the sequences of draws that end in `last`, with what every node may be under each of them.

    sequences: how many; draws that no node shows leave the nodes as they are
    responses: by how much a draw of 1 moves each node, where that was seen; empty if settings are not used
    """

    law: Law
    last: int
    nodes: tuple[Shifted, ...]
    sequences: int = 1
    responses: tuple[int | None, ...] = ()

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
            options_by_node = [n.options(shifted=shifted) for n in self.nodes]
            both.append(choices({i: {m: o[m]} if (m := masks[i]) in o else {} for i, o in enumerate(options_by_node)}))
        return self.sequences * (both[0] - both[1])

    def where(self, node: int, keep: npt.NDArray[np.bool_]) -> World:
        """With some rows of one node only."""
        narrowed = self.nodes[node].where(keep)
        return replace(self, nodes=tuple(narrowed if n.node == node else n for n in self.nodes))


@dataclass(frozen=True)
class NoisyDags(GraphSpace):
    """Mechanisms, affected nodes, scales and draws that explain the evidence."""

    evidence: Evidence
    worlds: tuple[World, ...]
    bounded: bool = False
    laws: tuple[Law, ...] = RELEASED_LAWS
    settings: bool = False

    __repr__ = space_repr

    @property
    def in_words(self) -> str:
        sink = "" if self.evidence.task.freq_parent else f", {FREQUENCY} without children"
        bases_note = "bases as they are drawn (integers from 0 to 100, 15 to 25 for the frequency)"
        bases = bases_note if self.bounded else "any bases"
        settings_note = "used where it is local" if self.settings else "not used"
        return (
            f"linear mechanisms with weights 1, 2, 3{sink} and {bases}, together with one or more shifted nodes, "
            f"{law_words(self.laws)} for every setting; what base a setting leaves is {settings_note}"
        )

    @cached_property
    def count(self) -> int:
        return sum(world.count for world in self.worlds)

    def fits(self, member: Mechanism) -> bool:
        """Return whether the mechanism is that of a member."""
        matrix = linear_matrix(member, self.evidence)
        return matrix is not None and any(_holds(world, matrix) for world in self.worlds)

    def noises(self, member: Mechanism) -> list[tuple[Law, tuple[str, ...]]]:
        """Law and shifted nodes of every member with this mechanism."""
        nodes = self.evidence.nodes
        laws: set[tuple[Law, tuple[str, ...]]] = set()
        for world in self.worlds:
            flags = []
            for node, child in zip(world.nodes, nodes, strict=True):
                row = [member.weights(child).get(parent, 0.0) for parent in nodes]
                flags.append(sorted(set(node.shifted[np.all(node.vectors == row, axis=1)].tolist())))
            for chosen in product(*flags):
                shifted = tuple(node for node, flag in zip(nodes, chosen, strict=True) if flag)
                if shifted:
                    laws.add((world.law, shifted))
        return sorted(laws)

    def after(self, experiment: tuple[str, float], reading: Values) -> NoisyDags:
        """With one more reading; `BudgetSpent` if the draws leave more than MAX_WORLDS different outcomes."""
        evidence = self.evidence.after(*experiment, reading)
        return replace(self, evidence=evidence, worlds=tuple(_followed(self.worlds, evidence)))

    def verdicts(self) -> Mapping[float, int]:
        """Return how many members predict each frequency of the reactor crystal; NaN where a parent is not shown."""
        unknown = float("nan")  # one object, so that it is one key
        value_counts: Counter[float] = Counter()
        for world in self.worlds:
            frequency_node = world.nodes[-1]
            values = frequencies(Local(frequency_node.node, frequency_node.vectors), self.evidence)
            for value in np.unique(values[~np.isnan(values)]).tolist():
                value_counts[value / PER_UNIT] += world.where(frequency_node.node, values == value).count
            value_counts[unknown] += world.where(frequency_node.node, np.isnan(values)).count
        return {value: number for value, number in value_counts.items() if number}

    @cached_property
    def edge_counts(self) -> dict[Edge, int]:
        """Return how many members have each edge that some member has."""
        nodes, edge_counts = self.evidence.nodes, Counter[Edge]()
        for world in self.worlds:
            for child in range(len(nodes)):
                for parent in range(len(nodes)):
                    edge_counts[nodes[parent], nodes[child]] += world.having(parent, child)
        return {edge: number for edge, number in edge_counts.items() if number}

    def having_graph(self, edges: Set[Edge]) -> int:
        """Return how many members have exactly these edges."""
        masks = masks_of(edges, self.evidence.nodes)
        return 0 if masks is None else sum(world.with_parents(masks) for world in self.worlds)

    def mechanisms(self) -> list[Mechanism]:
        """The mechanisms of members, each once; `BudgetSpent` if members are too many to list."""
        if self.count > MAX_LISTED:
            raise BudgetSpent(f"{self.count} members; at most {MAX_LISTED} are written out")
        distinct = {matrix for world in self.worlds for matrix in _matrices(world)}
        return [self._mechanism(np.array(matrix)) for matrix in sorted(distinct)]

    def _mechanism(self, matrix: Integers) -> Mechanism:
        weights = [{int(p): float(row[p]) for p in np.flatnonzero(row)} for row in matrix]
        first = self.evidence.table[0]
        return mechanism_of(self.evidence.nodes, weights, float(np.round(first[-1] - first @ matrix[-1], 2)))


def law_words(laws: Sequence[Law]) -> str:
    """Return what a draw is, as the class in words has it."""
    if tuple(laws) == RELEASED_LAWS:
        return f"a scale s of {', '.join(f'{scale:g}' for scale in SCALES)}, and a draw of -s, 0 or s"
    return "and a draw of " + " or ".join(", ".join(f"{shift / PER_UNIT:g}" for shift in law) for law in laws)


def noisy_dags(
    evidence: Evidence, *, bounded: bool = False, laws: Sequence[Law] = RELEASED_LAWS, settings: bool = False
) -> NoisyDags:
    """The space of a linear noisy task; `BudgetSpent` if the draws leave more than MAX_WORLDS different outcomes.

    bounded: whether bases that were drawn are known to be integers from 0 to 100, the frequency's from 15 to 25
    laws: what draws may be like; settings: whether what base a setting leaves is used as far as it is local
    """
    quiet = [observation.noisy for observation in evidence.seen]
    start = quiet.index(True) if True in quiet else len(quiet)
    before = Evidence(evidence.task, evidence.seen[:start], evidence.fresh)
    nodes = []
    for node in range(len(evidence.nodes)):
        vectors = local(before, node, bounded=bounded).vectors
        both = np.repeat([False, True], len(vectors))
        nodes.append(Shifted(node, np.vstack([vectors, vectors]), both))
    responses = (None,) * len(nodes) if settings else ()
    worlds = [World(law, 0, tuple(nodes), 1, responses) for law in laws]
    for end in range(start + 1, len(evidence.seen) + 1):
        worlds = _followed(worlds, Evidence(evidence.task, evidence.seen[:end], evidence.fresh))
    return NoisyDags(evidence, tuple(worlds), bounded, tuple(laws), settings)


def _followed(worlds: Sequence[World], evidence: Evidence) -> list[World]:
    """Every world with every next draw under which each node, and some shifted one, still explains its readings."""
    changed = evidence.seen[-1].changed
    step = evidence.step
    worlds_by_key: dict[tuple[object, ...], World] = {}
    for world in worlds:
        for shift, times in Counter(world.law).items():
            nodes = world.nodes
            if len(step):
                change = in_hundredths(step)[0]
                moved = shift - world.last
                nodes = tuple(n if n.node == changed else n.explaining(change, moved) for n in world.nodes)
            shifted_world = _set(replace(world, last=shift, nodes=nodes, sequences=world.sequences * times), evidence)
            if (
                shifted_world is not None
                and all(len(n.vectors) for n in shifted_world.nodes)
                and any(n.shifted.any() for n in shifted_world.nodes)
            ):
                parts = (part for n in shifted_world.nodes for part in (n.vectors.tobytes(), n.shifted.tobytes()))
                key = (shifted_world.law, shift, shifted_world.responses, *parts)
                before = worlds_by_key[key].sequences if key in worlds_by_key else 0
                worlds_by_key[key] = replace(shifted_world, sequences=before + shifted_world.sequences)
    if len(worlds_by_key) > MAX_WORLDS:
        raise BudgetSpent(f"{len(worlds_by_key)} different outcomes of the draws; at most {MAX_WORLDS} are followed")
    return list(worlds_by_key.values())


def _set(world: World, evidence: Evidence) -> World | None:
    """The world after what the last setting says of the property that it set; None if the draw contradicts it.

    Without noise the property would have the value that it was set to, so what is beyond is a multiple of the draw, the
    same multiple at every setting of it. In the paper's reading the value is the base.
    """
    observation = evidence.seen[-1]
    value = set_hundredths(observation.setting)
    if (
        not world.responses
        or observation.changed is None
        or value is None
        or not np.all(np.abs(observation.values) <= LARGEST)
    ):
        return world
    reading = in_hundredths(np.array(observation.values))
    if evidence.task.reading is Reading.BASE:
        based_node = world.nodes[observation.changed].based(reading, value, world.last)
        return replace(world, nodes=tuple(based_node if n.node == based_node.node else n for n in world.nodes))
    beyond = int(reading[observation.changed]) - value
    if world.last == 0:
        return None if beyond else world
    response, remainder = divmod(beyond, world.last)
    if remainder or response < 0 or world.responses[observation.changed] not in (None, response):
        return None
    responses = tuple(response if i == observation.changed else r for i, r in enumerate(world.responses))
    return replace(world, responses=responses, nodes=tuple(n.responding(responses) for n in world.nodes))


def set_hundredths(setting: float) -> int | None:
    """The value that a setting leaves without noise; None beyond LARGEST, and between two hundredths."""
    if not abs(setting) <= LARGEST or abs(abs(setting * PER_UNIT) % 1 - 0.5) < 1e-4:
        return None
    return round(setting * PER_UNIT)


def _holds(world: World, matrix: Floats) -> bool:
    shifted = False
    for node, row in zip(world.nodes, matrix, strict=True):
        matching = np.all(node.vectors == row, axis=1)
        if not matching.any():
            return False
        shifted |= bool(node.shifted[matching].any())
    return shifted


def _matrices(world: World) -> Iterator[tuple[tuple[int, ...], ...]]:
    return (matrix for matrix, _ in list_members(world))


def list_members(world: World) -> Iterator[tuple[tuple[tuple[int, ...], ...], tuple[bool, ...]]]:
    """The weights of every acyclic choice, row = child, and which nodes are shifted in it."""
    order = sorted(world.nodes, key=lambda n: len(n.vectors))
    for rows in acyclic_choices([Local(n.node, n.vectors) for n in order]):
        chosen = {n.node: (tuple(n.vectors[r].tolist()), bool(n.shifted[r])) for n, r in zip(order, rows, strict=True)}
        matrix, shifted = zip(*(chosen[node] for node in sorted(chosen)), strict=True)
        if any(shifted):
            yield matrix, shifted


def replays(space: NoisyDags, member: Mechanism) -> bool:
    """Return whether the reference gives every reading under one of the noises that the space leaves the mechanism."""
    for law, nodes in space.noises(member):
        shifts = [dict.fromkeys(nodes, shift / PER_UNIT) for shift in law]
        if misfit(member, space.evidence, reading=space.evidence.task.reading, shifts=shifts) <= EXACT:
            return True
    return False
