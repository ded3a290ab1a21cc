"""Comparison of directed graphs: precision, recall, F1, structural Hamming distance, skeleton, v-structures.

A graph is a set of edges; an edge (u, v) means u -> v. Self-loops and unknown names are ordinary (wrong) edges.
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

    precision: hits / predicted; if nothing is predicted, 1 for an empty truth, else 0
    recall: hits / true; if the truth is empty, 1 for an empty prediction, else 0
    f1: their harmonic mean; 0 if both are 0
    """

    precision: float
    recall: float
    f1: float


def edge_scores(true: Set[N], predicted: Set[N]) -> EdgeScores:
    """Return the scores of a predicted set of edges, or of nodes."""
    hits = len(true & predicted)
    both_empty = float(not true and not predicted)
    precision = hits / len(predicted) if predicted else both_empty
    recall = hits / len(true) if true else both_empty
    return EdgeScores(precision, recall, f1(precision, recall))


def f1(precision: float, recall: float) -> float:
    """Return the harmonic mean; 0 if both are 0."""
    total = precision + recall
    return 2 * precision * recall / total if total else 0.0


@dataclass(frozen=True, slots=True)
class Distance:
    """Structural Hamming distance, with the numbers of missing, extra and reversed edges."""

    shd: int
    missing: int
    extra: int
    reversed: int


def distance(true: Set[tuple[N, N]], predicted: Set[tuple[N, N]]) -> Distance:
    """Return the distance; an edge predicted in reverse costs 1, not 2."""
    missing, extra = true - predicted, predicted - true
    turned = sum((v, u) in missing for u, v in extra)
    return Distance(len(missing) + len(extra) - turned, len(missing) - turned, len(extra) - turned, turned)


def skeleton(edges: Set[tuple[N, N]]) -> frozenset[frozenset[N]]:
    """Return the adjacent pairs of nodes; self-loops are left out."""
    return frozenset(frozenset(edge) for edge in edges if edge[0] != edge[1])


def v_structures(edges: Set[tuple[N, N]]) -> frozenset[tuple[frozenset[N], N]]:
    """Return ({u, v}, w) for every u -> w <- v with u and v not adjacent."""
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
