"""Mechanisms consistent with a noisy laboratory under its own rules, by listing and replay.

Without noise a property has the stated value after a setting, so each mechanism determines the noise-free crystal, and
a reading is that crystal plus a draw times the responses of the nodes. A member is a mechanism with its shifted nodes
and the law of the draws; its weight is the number of sequences of draws that reproduce every reading.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from calibrant.dsl.causalab.mechanism import FREQUENCY, Edge, Mechanism
from calibrant.dsl.causalab.reference import SettingMeaning
from calibrant.solvers.causalab.evidence import MAX_EXACT_READING, Evidence, linear_matrix
from calibrant.solvers.causalab.noisy import Law, NoisyDags, law_words, list_members, noisy_dags, set_hundredths
from calibrant.solvers.causalab.space import (
    PER_UNIT,
    GraphSpace,
    Integers,
    Local,
    in_hundredths,
    masks_of,
    predict_frequencies,
)
from calibrant.solvers.space import space_repr

MAX_REPLAYED = 4_000  # members that are listed and replayed: 50 ms


@dataclass(frozen=True, eq=False)
class ReplayedDags(GraphSpace):
    """Members with their weights.

    matrices: (members, nodes, nodes), weights of parents, row = child
    weights: (members,), numbers of sequences of draws
    """

    evidence: Evidence
    laws: tuple[Law, ...]
    matrices: Integers
    weights: tuple[int, ...]

    __repr__ = space_repr

    @property
    def in_words(self) -> str:
        sink = "" if self.evidence.task.freq_parent else f", {FREQUENCY} without children"
        return (
            f"linear mechanisms with weights 1, 2, 3{sink} and any bases, together with one or more shifted nodes, "
            f"{law_words(self.laws)} for every setting; settings leave the base that the laboratory gives them"
        )

    @cached_property
    def count(self) -> int:
        return sum(self.weights)

    def fits(self, member: Mechanism) -> bool:
        """Return whether some member has this mechanism."""
        matrix = linear_matrix(member, self.evidence)
        return matrix is not None and bool(np.any(np.all(self.matrices == matrix, axis=(1, 2))))

    def verdicts(self) -> Mapping[float, int]:
        """Return the weight of members by predicted frequency of the reactor crystal; NaN where a parent is hidden."""
        unknown = float("nan")  # one object, so that it is one key
        values = predict_frequencies(Local(self.evidence.frequency, self.matrices[:, -1]), self.evidence)
        value_counts: Counter[float] = Counter()
        for value, weight in zip(values.tolist(), self.weights, strict=True):
            value_counts[unknown if value != value else value / PER_UNIT] += weight
        return value_counts

    @cached_property
    def graphs(self) -> Mapping[tuple[int, ...], int]:
        """Weight of members by graph, as the parents of each node (masks)."""
        bits = 1 << np.arange(self.matrices.shape[1])
        graph_weights: Counter[tuple[int, ...]] = Counter()
        for masks, weight in zip(((self.matrices > 0) @ bits).tolist(), self.weights, strict=True):
            graph_weights[tuple(masks)] += weight
        return graph_weights

    @cached_property
    def edge_counts(self) -> dict[Edge, int]:
        """Weight of members with each edge that some member has."""
        nodes, edge_counts = self.evidence.nodes, Counter[Edge]()
        for masks, weight in self.graphs.items():
            for child, mask in enumerate(masks):
                for parent, name in enumerate(nodes):
                    if mask >> parent & 1:
                        edge_counts[name, nodes[child]] += weight
        return dict(edge_counts)

    def having_graph(self, edges: Set[Edge]) -> int:
        """Return the weight of members with exactly these edges."""
        masks = masks_of(edges, self.evidence.nodes)
        return 0 if masks is None else self.graphs.get(tuple(masks), 0)


def replayed_dags(evidence: Evidence, laws: Sequence[Law]) -> NoisyDags | ReplayedDags:
    """Return the space under the laboratory's rules; `BudgetSpent` as `noisy_dags`.

    If members are too many to list, or a reading or setting is too large or between two hundredths, the result is the
    larger class of `noisy_dags`, which uses the rules locally.
    """
    space = noisy_dags(evidence, laws=laws, settings=True)
    if space.count > MAX_REPLAYED or not _is_exact(evidence):
        return space
    members: dict[tuple[object, ...], int] = {}
    for world in space.worlds:
        for matrix, shifted in list_members(world):
            members[world.law, shifted, matrix] = 0
    for law in laws:
        same_law = [member for member in members if member[0] == law]
        counts = _count_sequences(evidence, law, np.array([m[1] for m in same_law]), np.array([m[2] for m in same_law]))
        members |= dict(zip(same_law, counts, strict=True))
    survivors = [(member[2], count) for member, count in members.items() if count]
    k = len(evidence.nodes)
    matrices = np.array([matrix for matrix, _ in survivors], dtype=np.int64).reshape(-1, k, k)
    return ReplayedDags(evidence, tuple(laws), matrices, tuple(count for _, count in survivors))


def _is_exact(evidence: Evidence) -> bool:
    """Return whether every noisy reading, and every setting that led to it, is a whole number of hundredths."""
    return all(
        max(map(abs, observation.values)) <= MAX_EXACT_READING and set_hundredths(observation.setting) is not None
        for observation in evidence.observations
        if observation.noisy or observation.crystal == evidence.manipulator
    )


def _count_sequences(evidence: Evidence, law: Law, shifted: Integers, matrices: Integers) -> list[int]:
    """Count the sequences of draws that reproduce every noisy reading; [members].

    shifted: (members, nodes); matrices: (members, nodes, nodes), row = child
    """
    if not len(matrices):
        return []
    totals = np.rint(np.linalg.inv(np.eye(matrices.shape[1]) - matrices)).astype(np.int64)
    responses = np.einsum("mij,mj->mi", totals, shifted.astype(np.int64))
    draws = Counter(law)
    first = next(
        (i for i, observation in enumerate(evidence.observations) if observation.noisy), len(evidence.observations)
    )
    noise_free = np.repeat(in_hundredths(evidence.table[first - 1 : first]), len(matrices), axis=0)
    # Python integers: 40 readings have up to 3**40 sequences of three draws, beyond 64 bits
    counts = np.ones(len(matrices), dtype=object)
    for observation in evidence.observations[first:]:
        if observation.changed is not None:
            value = set_hundredths(observation.setting)
            assert value is not None
            current = noise_free[:, observation.changed]
            if evidence.task.reading is SettingMeaning.BASE:
                current = current - np.einsum("mj,mj->m", matrices[:, observation.changed], noise_free)
            noise_free = noise_free + totals[:, :, observation.changed] * (value - current)[:, None]
        excess = in_hundredths(np.array(observation.values))[None, :] - noise_free
        num_draws = np.zeros(len(matrices), dtype=np.int64)
        for shift, times in draws.items():
            num_draws += times * np.all(excess == shift * responses, axis=1)
        counts = counts * num_draws
    return [int(count) for count in counts]


def law_of(values: Sequence[float], weight: float) -> Law | None:
    """Return the law of draws of weight * value; None if one of them is not a whole number of hundredths."""
    shifts = [weight * value * PER_UNIT for value in values]
    if not all(abs(shift) <= MAX_EXACT_READING and abs(shift - round(shift)) < 1e-6 for shift in shifts):
        return None
    return tuple(sorted(map(round, shifts)))
