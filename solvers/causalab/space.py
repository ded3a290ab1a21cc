"""Version space of linear laboratories without noise: weight vectors of each node, and acyclic assignments of them.

A node's weights are independent of the other nodes' weights, so the members are the acyclic assignments of one vector
to each node, and their number is a sum over DAGs of products (solvers.acyclic.count): no member is enumerated to count.

All weights 0 to 3 are tried: 4**k vectors for k possible parents. Readings are multiples of 0.01, so that all tests
are exact in integers (hundredths).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import prod
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from calibrant.dsl.causalab.generation import BASE
from calibrant.dsl.causalab.item import Family, Task, Weights
from calibrant.dsl.causalab.mechanism import FREQUENCY, Edge, Mechanism, Values
from calibrant.dsl.causalab.reference import SettingMeaning
from calibrant.solvers.acyclic.count import Layers, total
from calibrant.solvers.acyclic.count import Weights as DagWeights
from calibrant.solvers.acyclic.least import members_of
from calibrant.solvers.causalab.evidence import (
    MAX_EXACT_READING,
    Evidence,
    Floats,
    linear_matrix,
    mechanism_of,
    predict_frequency,
)
from calibrant.solvers.outcome import BudgetSpent
from calibrant.solvers.space import space_repr

# --- Local fit: the weight vectors with which one node explains its own readings, independent of the other nodes ------
Integers: TypeAlias = npt.NDArray[np.int64]

MAX_WEIGHT = 3  # weights are 0 to 3
PER_UNIT = 100  # readings are multiples of 0.01, so in hundredths everything is an integer
LOWEST_BASE, HIGHEST_BASE = 0, 100  # sampled bases of properties
FREQUENCY_BASE = BASE  # least and largest base of the frequency that the generator draws
MAX_PARENTS = 7  # possible parents of a node: 4**7 = 16,384 vectors


@lru_cache(maxsize=64)
def _vectors(nodes: int, candidates: int) -> Integers:
    """Return every vector of weights 0 to 3 that is 0 outside the candidates (a mask); shape (vectors, nodes)."""
    parents = [i for i in range(nodes) if candidates >> i & 1]
    vectors = np.zeros(((MAX_WEIGHT + 1) ** len(parents), nodes), dtype=np.int64)
    # the weights are the digits of the vector's index to the base 4
    remaining_digits = np.arange(len(vectors))
    for parent in parents:
        remaining_digits, vectors[:, parent] = np.divmod(remaining_digits, MAX_WEIGHT + 1)
    vectors.flags.writeable = False
    return vectors


@dataclass(frozen=True)
class Local:
    """Weight vectors of one node that explain its readings.

    vectors: integers 0 to 3, shape (vectors, nodes); the nodes of nonzero weight are the parents
    """

    node: int
    vectors: Integers

    @property
    def masks(self) -> Integers:
        """Parent set of each vector, bit i for node i."""
        return np.asarray((self.vectors > 0) @ (1 << np.arange(self.vectors.shape[1])))

    def filter_explaining(self, differences: Floats) -> Local:
        """Keep the vectors for which, in every row, the node's change is the weighted sum of the others' changes."""
        hundredths = in_hundredths(differences)
        # readings to 1e10 are 1e12 hundredths, differences 2e12: 7 parents of weight 3 stay below 5e13, far from 2**63
        residuals = self.vectors @ hundredths.T - hundredths[:, self.node]
        return Local(self.node, self.vectors[np.all(residuals == 0, axis=1)])

    def bases(self, readings: Floats) -> Integers:
        """Return the node's base in each reading, in hundredths; shape (vectors, readings)."""
        hundredths = in_hundredths(readings)
        return np.asarray(hundredths[:, self.node] - self.vectors @ hundredths.T)

    def filter(self, keep: npt.NDArray[np.bool_]) -> Local:
        return Local(self.node, self.vectors[keep])


def in_hundredths(readings: Floats) -> Integers:
    """Convert readings, all within MAX_EXACT_READING, to integers."""
    return np.rint(readings * PER_UNIT).astype(np.int64)


def explain_node(evidence: Evidence, node: int, *, bounded: bool) -> Local:
    """Return the vectors of a node that explain all its readings.

    bounded: whether sampled bases are known to be integers from 0 to 100, the frequency's from 15 to 25
    """
    k, frequency = len(evidence.nodes), evidence.frequency
    candidates = (1 << k) - 1 & ~(1 << node)
    if not evidence.task.freq_parent:
        candidates &= ~(1 << frequency)
    local_space = Local(node, _vectors(k, candidates)).filter_explaining(evidence.differences(node))
    if node == frequency:
        return _keep_bases_in(local_space, evidence.table[:1], FREQUENCY_BASE) if bounded else local_space
    if evidence.task.reading is SettingMeaning.BASE:
        local_space = _keep_stated_bases(local_space, evidence)
    return _keep_bounded_bases(local_space, evidence) if bounded else local_space


def _keep_stated_bases(local_space: Local, evidence: Evidence) -> Local:
    """Keep vectors with the bases that the settings of the manipulator crystal state (the paper's meaning)."""
    manipulator = evidence.manipulator
    rows = [
        i
        for i, observation in enumerate(evidence.observations)
        if observation.changed == local_space.node and observation.crystal == manipulator
    ]
    rows = [
        i
        for i in rows
        if np.abs(evidence.table[i]).max() <= MAX_EXACT_READING
        and abs(evidence.observations[i].setting) <= MAX_EXACT_READING
    ]
    if not rows:
        return local_space
    stated = np.rint([round(evidence.observations[i].setting, 2) * PER_UNIT for i in rows])
    agrees: npt.NDArray[np.bool_] = np.all(local_space.bases(evidence.table[rows]) == stated[None, :], axis=1)
    return local_space.filter(agrees)


def _keep_bounded_bases(local_space: Local, evidence: Evidence) -> Local:
    """Keep vectors whose sampled bases are in range, in first readings of fresh crystals and in the reactor crystal."""
    first = [
        next(i for i, observation in enumerate(evidence.observations) if observation.crystal == c)
        for c in sorted(evidence.fresh)
    ]
    local_space = _keep_bases_in(local_space, evidence.table[first], (LOWEST_BASE, HIGHEST_BASE))
    return _keep_reactor_bases(local_space, evidence.reactor)


def _keep_reactor_bases(local_space: Local, reactor: Floats) -> Local:
    """Keep vectors whose base in the reactor crystal is in range; its unknown values are NaN."""
    is_known = ~np.isnan(reactor)
    if not is_known[local_space.node]:
        return local_space
    # the base is known only if no parent is hidden; a vector with a hidden parent stays
    has_known_parents = ~np.any(local_space.vectors[:, ~is_known] > 0, axis=1)
    row = np.nan_to_num(reactor)[None, :]
    inside = _has_base_in(local_space, row, (LOWEST_BASE, HIGHEST_BASE))
    return local_space.filter(inside | ~has_known_parents)


def _keep_bases_in(local_space: Local, readings: Floats, limits: tuple[int, int]) -> Local:
    return local_space.filter(_has_base_in(local_space, readings, limits))


def _has_base_in(local_space: Local, readings: Floats, limits: tuple[int, int]) -> npt.NDArray[np.bool_]:
    """Return whether the base is an integer within limits in every reading."""
    bases = local_space.bases(readings)
    low, high = limits
    inside = (bases >= low * PER_UNIT) & (bases <= high * PER_UNIT) & (bases % PER_UNIT == 0)
    return np.asarray(np.all(inside, axis=1))


# --- Counts of acyclic assignments of weight vectors: all, by edge, or with a given graph -----------------------------
Options: TypeAlias = Mapping[int, Mapping[int, int]]  # node -> parent set (mask) -> number of weight vectors


def count_choices(options: Options) -> int:
    """Count the acyclic assignments of one weight vector to each node."""
    return total(DagWeights(options, 0)) if all(options.values()) else 0


def count_by_edge(options: Options, nodes: Sequence[str]) -> dict[Edge, int]:
    """Count, for each edge of some assignment, the assignments that have it."""
    if not all(options.values()):
        return {}
    # counts multiply over components, so an edge needs a sum over its child's component alone
    groups = DagWeights(options, 0).components()
    group_counts = [total(group) for group in groups]
    edge_counts = {}
    for child, (group, num_others) in sorted(_group_of_node(groups, group_counts).items()):
        options_by_node = dict(zip(group.endogenous, group.options, strict=True))
        roots = group.available & ~sum(1 << node for node in options_by_node)
        for parent in range(len(nodes)):
            with_parent = {mask: count for mask, count in options_by_node[child].items() if mask >> parent & 1}
            if (
                with_parent
                and num_others
                and (count := total(DagWeights({**options_by_node, child: with_parent}, roots)))
            ):
                edge_counts[nodes[parent], nodes[child]] = count * num_others
    return edge_counts


def _group_of_node(groups: Sequence[DagWeights], group_counts: Sequence[int]) -> dict[int, tuple[DagWeights, int]]:
    """Return node -> (its component, number of assignments of all other components)."""
    return {
        node: (group, prod(count for index, count in enumerate(group_counts) if index != group_index))
        for group_index, group in enumerate(groups)
        for node in group.endogenous
    }


def count_graph(options: Options, edges: Set[Edge], nodes: Sequence[str]) -> int:
    """Count the assignments with exactly these edges."""
    masks = masks_of(edges, nodes)
    if masks is None:
        return 0
    count = prod(candidates.get(masks[node], 0) for node, candidates in options.items())
    return count if count and _is_acyclic(masks) else 0


def _is_acyclic(parents: Sequence[int]) -> bool:
    placed, remaining = 0, list(enumerate(parents))
    while remaining:
        blocked = [(node, mask) for node, mask in remaining if mask & ~placed]
        if len(blocked) == len(remaining):
            return False
        placed |= sum(1 << node for node, mask in remaining if not mask & ~placed)
        remaining = blocked
    return True


def masks_of(edges: Set[Edge], nodes: Sequence[str]) -> list[int] | None:
    """Return the parents of each node as masks; None if an edge is not between two of the nodes."""
    index = {node: i for i, node in enumerate(nodes)}
    masks = [0] * len(nodes)
    for parent, child in edges:
        if parent not in index or child not in index:
            return None
        masks[index[child]] |= 1 << index[parent]
    return masks


# --- Certain and possible edges of a laboratory's space ---------------------------------------------------------------


class GraphSpace(ABC):
    """Space that counts its members, and the members with each edge."""

    @property
    @abstractmethod
    def count(self) -> int: ...
    @property
    @abstractmethod
    def edge_counts(self) -> Mapping[Edge, int]: ...

    @cached_property
    def certain_edges(self) -> frozenset[Edge]:
        """Edges of every member; none if there is no member."""
        return frozenset(edge for edge, count in self.edge_counts.items() if count == self.count)

    @cached_property
    def possible_edges(self) -> frozenset[Edge]:
        """Edges of some member."""
        return frozenset(self.edge_counts)

    @property
    def graph_decided(self) -> bool:
        """Whether all members have the same edges, and there is a member."""
        return self.count > 0 and self.certain_edges == self.possible_edges


# --- Version space of linear laboratories without noise: weighted DAGs that explain every reading ---------------------
Setting: TypeAlias = tuple[str, float]  # (property, value)
Outcome: TypeAlias = tuple[float, ...]  # values of the nodes, the frequency last
MAX_LISTED = 20_000  # members that are listed


@dataclass(frozen=True)
class WeightedDags(GraphSpace):
    """Mechanisms with weights 1, 2, 3 and acyclic parents that explain the evidence; `bounded` as in `explain_node`."""

    evidence: Evidence
    bounded: bool
    locals: tuple[Local, ...]

    __repr__ = space_repr

    @property
    def in_words(self) -> str:
        sink = "" if self.evidence.task.freq_parent else f", {FREQUENCY} without children"
        limits = "integers from 0 to 100 where they were drawn, 15 to 25 for the frequency" if self.bounded else "any"
        return f"linear mechanisms without noise, weights 1, 2, 3{sink}; bases {limits}"

    @cached_property
    def products(self) -> tuple[tuple[Local, ...], ...]:
        """Disjoint parts of the space; the members of a part are the acyclic choices of a vector for each node.

        With bounded bases, those of the frequency's children in the reactor crystal depend on the frequency that a
        member predicts there, so there is a part for each prediction.
        """
        if not (self.bounded and self.evidence.task.freq_parent):
            return (self.locals,)
        predictions = predict_frequencies(self.locals[-1], self.evidence)
        parts = []
        for value in np.unique(predictions):
            reactor = self.evidence.reactor.copy()
            reactor[-1] = value / PER_UNIT
            predicting = np.isnan(predictions) if np.isnan(value) else predictions == value
            children = [_keep_reactor_bases(local_space, reactor) for local_space in self.locals[:-1]]
            parts.append((*children, self.locals[-1].filter(predicting)))
        return tuple(parts)

    @cached_property
    def _options(self) -> list[dict[int, dict[int, int]]]:
        return [{local.node: Counter(local.masks.tolist()) for local in part} for part in self.products]

    @cached_property
    def count(self) -> int:
        return sum(map(count_choices, self._options))

    def fits(self, member: Mechanism) -> bool:
        """Return whether a mechanism is a member; its base has to be the one that its weights imply."""
        matrix = linear_matrix(member, self.evidence)
        return matrix is not None and any(
            all(np.any(np.all(local.vectors == matrix[local.node], axis=1)) for local in part) for part in self.products
        )

    def _base(self, vector: Integers) -> float:
        """Return the base of the frequency that its weights and the first reading imply."""
        row = self.evidence.table[0]
        return float(np.round(row[-1] - row @ vector, 2))

    def sample(self, rng: np.random.Generator, n: int) -> Sequence[Mechanism]:
        """Sample uniformly with replacement; `ValueError` if there is no member."""
        if not self.count:
            raise ValueError("no member to draw")
        parts = [
            (part, Layers(DagWeights(options, 0)), count)
            for part, options in zip(self.products, self._options, strict=True)
            if (count := count_choices(options))
        ]
        counts = [count for _, _, count in parts]
        members = []
        for _ in range(n):
            part, layers, _ = parts[_pick(rng, counts) if len(parts) > 1 else 0]
            members.append(self.member(self._sample_matrix(part, layers, rng)))
        return members

    def _sample_matrix(self, part: Sequence[Local], layers: Layers, rng: np.random.Generator) -> Floats:
        matrix = np.zeros((len(part),) * 2)
        placed = last = 0
        while placed != layers.weights.full:
            steps = list(layers.steps(placed, last))
            step = steps[_pick(rng, [s.weight for s in steps])]
            for index in members_of(step.layer):
                parent_sets = layers.parent_sets(index, placed, last)
                mask = parent_sets[_pick(rng, [weight for _, weight in parent_sets])][0]
                local_space = part[layers.weights.endogenous[index]]
                rows = np.flatnonzero(local_space.masks == mask)
                matrix[local_space.node] = local_space.vectors[rows[int(rng.integers(len(rows)))]]
            placed, last = placed | step.layer, step.layer
        return matrix

    @cached_property
    def matrices(self) -> Floats:
        """Weights of every member, row = child; shape (members, nodes, nodes); `BudgetSpent` above MAX_LISTED."""
        if self.count > MAX_LISTED:
            raise BudgetSpent(f"{self.count} members; at most {MAX_LISTED} are written out")
        k = len(self.locals)
        matrices = np.zeros((self.count, k, k))
        i = 0
        for part in self.products:
            # nodes with few vectors first: the search tree is narrow at the top
            order = sorted(part, key=lambda local_space: len(local_space.vectors))
            for rows in acyclic_choices(order):
                for choice, row in zip(order, rows, strict=True):
                    matrices[i, choice.node] = choice.vectors[row]
                i += 1
        return matrices

    def members(self) -> Iterator[Mechanism]:
        """List every member; `BudgetSpent` above MAX_LISTED."""
        return map(self.member, self.matrices)

    def member(self, matrix: Floats) -> Mechanism:
        """Return the member with these weights, row = child."""
        weights = [{int(p): float(row[p]) for p in np.flatnonzero(row)} for row in matrix]
        return mechanism_of(self.evidence.nodes, weights, self._base(matrix[-1].astype(np.int64)))

    def after(self, experiment: Setting, reading: Values | Outcome) -> WeightedDags:
        """Return the space after an experiment with this reading of the manipulator crystal."""
        name, value = experiment
        values = reading if isinstance(reading, Mapping) else dict(zip(self.evidence.nodes, reading, strict=True))
        evidence = self.evidence.after(name, value, values)
        changed = evidence.observations[-1].changed
        row = evidence.last_difference
        # the property that was set has a new base, so its change gives no equation for its weights
        narrowed = tuple(
            local_space if local_space.node == changed else local_space.filter_explaining(row)
            for local_space in self.locals
        )
        if evidence.task.reading is SettingMeaning.BASE and changed is not None:
            stated = explain_node(evidence, changed, bounded=self.bounded)
            narrowed = tuple(stated if local_space.node == changed else local_space for local_space in narrowed)
        return WeightedDags(evidence, self.bounded, narrowed)

    def outcomes(self, experiment: Setting) -> Mapping[Outcome, int]:
        """Count the members by reading; `BudgetSpent` above MAX_LISTED."""
        return Counter(map(tuple, self.readings(experiment).tolist()))

    def readings(self, experiment: Setting) -> Floats:
        """Return the reading of each listed member; shape (members, nodes)."""
        return readings_of(self.matrices, self.totals, self.evidence, experiment)

    @cached_property
    def totals(self) -> Floats:
        """Total effects of the listed members; shape (members, nodes, nodes)."""
        # integer weights on a DAG have integer total effects: rounding removes the error of the inverse
        totals: Floats = np.rint(np.linalg.inv(np.eye(len(self.locals)) - self.matrices))
        return totals

    def verdicts(self) -> Mapping[float, int]:
        """Count the members by predicted frequency of the reactor crystal; hidden parents have base 50."""
        return self._verdicts

    @cached_property
    def _verdicts(self) -> Mapping[float, int]:
        if not self.count:
            return {}
        if not self.predicts:
            return self._verdicts_by_listing()
        value_counts: dict[float, int] = {}
        for part, options in zip(self.products, self._options, strict=True):
            frequency = part[-1]
            values = predict_frequencies(frequency, self.evidence)
            for value in sorted(set(values.tolist())):
                # DAGs are counted for the frequency's vectors of each value: no member is listed
                group = frequency.filter(values == value)
                value_counts[value / PER_UNIT] = count_choices({**options, group.node: Counter(group.masks.tolist())})
        return {value: count for value, count in value_counts.items() if count}

    @cached_property
    def predicts(self) -> bool:
        """Whether all members' predictions follow from the shown values of the reactor crystal."""
        return not np.isnan(predict_frequencies(self.locals[-1], self.evidence)).any()

    def _verdicts_by_listing(self) -> Mapping[float, int]:
        return Counter(predict_frequency(member, self.evidence) for member in self.members())

    @cached_property
    def edge_counts(self) -> dict[Edge, int]:
        """Number of members with each edge that some member has."""
        counts: Counter[Edge] = Counter()
        for options in self._options:
            counts.update(count_by_edge(options, self.evidence.nodes))
        return dict(counts)

    def having_graph(self, edges: Set[Edge]) -> int:
        """Count the members with exactly these edges."""
        return sum(count_graph(options, edges, self.evidence.nodes) for options in self._options)


def weighted_dags(evidence: Evidence, *, bounded: bool) -> WeightedDags:
    """Return the space of a linear task without noise; `BudgetSpent` for classes and sizes that are not enumerated."""
    if (reason := reason_not_enumerable(evidence.task)) is not None:
        raise BudgetSpent(reason)
    return WeightedDags(
        evidence, bounded, tuple(explain_node(evidence, node, bounded=bounded) for node in range(len(evidence.nodes)))
    )


def likely_dags(evidence: Evidence) -> WeightedDags:
    """Return the space for bases as the generator draws them, or for any bases if that space is empty."""
    space = weighted_dags(evidence, bounded=True)
    return space if space.count else weighted_dags(evidence, bounded=False)


def predict_frequencies(frequency: Local, evidence: Evidence) -> Floats:
    """Return the reactor crystal's frequency in hundredths for each vector; NaN where a parent is hidden."""
    row = evidence.reactor[:-1]
    baseline = evidence.table[0]
    differences = np.rint((np.nan_to_num(row) - baseline[:-1]) * PER_UNIT)
    predictions = np.rint(baseline[-1] * PER_UNIT) + frequency.vectors[:, :-1] @ differences
    return np.where(np.any(frequency.vectors[:, :-1][:, np.isnan(row)] > 0, axis=1), np.nan, predictions)


def frequency_equation(space: WeightedDags) -> Integers:
    """Return the frequency's vector whose prediction most members share; in a tie, one with fewest parents."""
    verdicts = space.verdicts()
    predictions = (predict_frequencies(space.locals[-1], space.evidence) / PER_UNIT).tolist()
    rows: list[list[int]] = space.locals[-1].vectors.tolist()
    ranked = sorted(
        range(len(rows)), key=lambda i: (-verdicts.get(predictions[i], 0), sum(map(bool, rows[i])), rows[i])
    )
    return np.asarray(space.locals[-1].vectors[ranked[0]])


def reason_not_enumerable(task: Task) -> str | None:
    """Return the reason why a task has no space of this kind; None if it has one."""
    if task.family is not Family.LINEAR or task.noise:
        return "only linear tasks without noise have a space of weighted DAGs"
    if task.weights is not Weights.SMALL:
        return "weights in hundredths are too many to list"
    if len(task.properties) > MAX_PARENTS:
        return f"{len(task.properties)} properties; {MAX_PARENTS} possible parents can be listed"
    return None


def readings_of(matrices: Floats, totals: Floats, evidence: Evidence, experiment: Setting) -> Floats:
    """Predict the readings of members after a setting of the manipulator crystal; shape (members, nodes)."""
    name, value = experiment
    node, last = evidence.task.properties.index(name), evidence.table[-1]
    if evidence.task.reading is SettingMeaning.BASE:
        change = round(value, 2) - (last[node] - matrices[:, node] @ last)
    else:
        change = np.full(len(matrices), round(value, 2) - last[node])
    return np.asarray(np.round(last + totals[:, :, node] * change[:, None], 2) + 0.0)


def acyclic_choices(order: Sequence[Local]) -> Iterator[tuple[int, ...]]:
    """Yield every acyclic assignment of one vector to each node, as indices of vectors, by depth-first search."""
    masks = [local_space.masks.tolist() for local_space in order]

    def extend(position: int, ancestors: dict[int, int], rows: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        if position == len(order):
            yield rows
            return
        node = order[position].node
        for row, mask in enumerate(masks[position]):
            node_ancestors = mask
            for parent, parent_ancestors in ancestors.items():
                if mask >> parent & 1:
                    node_ancestors |= parent_ancestors
            if node_ancestors >> node & 1:
                continue
            # descendants of the node inherit its ancestors, so that a cycle is refused at the node that closes it
            extended = {descendant: a | (node_ancestors if a >> node & 1 else 0) for descendant, a in ancestors.items()}
            if not any(a >> descendant & 1 for descendant, a in extended.items()):
                yield from extend(position + 1, {**extended, node: node_ancestors}, (*rows, row))

    return extend(0, {}, ())


def _pick(rng: np.random.Generator, weights: Sequence[int]) -> int:
    """Sample an index with probability proportional to an integer weight of any size."""
    total = sum(weights)
    # bytes and rejection: counts of DAGs exceed the 64 bits of numpy's integers
    bits = total.bit_length()
    while True:
        threshold = int.from_bytes(rng.bytes((bits + 7) // 8), "little") >> (-bits % 8)
        if threshold < total:
            break
    for index, weight in enumerate(weights):
        threshold -= weight
        if threshold < 0:
            return index
    raise AssertionError("weights do not add up")
