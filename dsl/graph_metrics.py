"""Directed graphs as edge sets, compared: precision, recall, F1, structural Hamming distance, skeleton, v-structures.

An edge (u, v) means u -> v. Sets: an edge given twice counts once; self-loops and unknown names are ordinary (wrong)
edges.
"""

from __future__ import annotations

from collections.abc import Hashable, Set
from dataclasses import dataclass
from itertools import combinations
from typing import TypeVar

N = TypeVar("N", bound=Hashable)


@dataclass(frozen=True, slots=True)
class EdgeScores:
    """Scores of predicted edges.

    precision: hits / predicted; where nothing is predicted, 1 if the truth is empty too, else 0
    recall: hits / true; where the truth is empty, 1 if nothing is predicted either, else 0
    f1: their harmonic mean; 0 where both are 0
    """

    precision: float
    recall: float
    f1: float


def edge_scores(true: Set[N], predicted: Set[N]) -> EdgeScores:
    """Scores of a predicted set of edges (or of nodes: anything that is a hit or not)."""
    hits = len(true & predicted)
    both_empty = float(not true and not predicted)
    precision = hits / len(predicted) if predicted else both_empty
    recall = hits / len(true) if true else both_empty
    return EdgeScores(precision, recall, f1(precision, recall))


def f1(precision: float, recall: float) -> float:
    """Return the harmonic mean; 0 where both are 0."""
    total = precision + recall
    return 2 * precision * recall / total if total else 0.0


@dataclass(frozen=True, slots=True)
class Distance:
    """Structural Hamming distance and its parts: missing, extra, and missing ones whose reverse was predicted."""

    shd: int
    missing: int
    extra: int
    reversed: int


def distance(true: Set[tuple[N, N]], predicted: Set[tuple[N, N]]) -> Distance:
    """Return the distance; a missing edge whose reverse was predicted instead costs 1 in all, not 2."""
    missing, extra = true - predicted, predicted - true
    turned = sum((v, u) in missing for u, v in extra)
    return Distance(len(missing) + len(extra) - turned, len(missing) - turned, len(extra) - turned, turned)


def skeleton(edges: Set[tuple[N, N]]) -> frozenset[frozenset[N]]:
    """Return the adjacent pairs, without direction; self-loops are no pair."""
    return frozenset(frozenset(edge) for edge in edges if edge[0] != edge[1])


def v_structures(edges: Set[tuple[N, N]]) -> frozenset[tuple[frozenset[N], N]]:
    """({u, v}, w) for every u -> w <- v whose u and v are not adjacent."""
    adjacent = skeleton(edges)
    parents: dict[N, set[N]] = {}
    for parent, child in edges:
        if parent != child:
            parents.setdefault(child, set()).add(parent)
    return frozenset(
        (frozenset(pair), child)
        for child, around in parents.items()
        for pair in combinations(around, 2)
        if frozenset(pair) not in adjacent
    )
