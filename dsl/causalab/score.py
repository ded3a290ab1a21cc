"""Scores of a hypothesis and of a frequency formula, and interventional Markov equivalence classes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from math import inf
from typing import Any

from calibrant.dsl.causalab.mechanism import FREQUENCY, Edge, Hypothesis, Mechanism, WeightKey, as_number
from calibrant.dsl.graph_metrics import Distance, EdgeScores, distance, edge_scores, f1, v_structures

# --- Score of a hypothesis: published metrics as the released code computes them, and metrics of ours -----------------
PUBLISHED_TOLERANCE = 1e-6
DISPLAY_TOLERANCE = 0.01  # error of a linear weight that readings of two decimals allow
SQUARE_TOLERANCE = 0.0005  # square weights of the released suites have three decimals
_WEIGHT_PREFIXES = ("c_", "coeff_")
_WEIGHT_AFFIX = re.compile(r"^(?:c|coeff)[12]?_|_(?:[12]|freq|frequency)$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class WeightScores:
    """Precision (correct / predicted) and recall (correct / true) of weights, 0 for an empty denominator."""

    precision: float
    recall: float
    f1: float
    num_predicted: int
    num_true: int
    num_correct: int


@dataclass(frozen=True, slots=True)
class HypothesisScore:
    """Scores of a hypothesis.

    all_edge, freq_edge, root, distance, freq_weight: published metrics; distance: structural Hamming distance
    freq_weight_display: linear weights within DISPLAY_TOLERANCE
    freq_weight_unnamed: the same, under any key that contains the parent's name
    all_weight: weights of every equation, squares included; needs our field `weights`
    """

    all_edge: EdgeScores
    freq_edge: EdgeScores
    root: EdgeScores
    distance: Distance
    freq_weight: WeightScores
    freq_weight_display: WeightScores
    freq_weight_unnamed: WeightScores
    all_weight: WeightScores

    def flat(self) -> dict[str, float]:
        """Return the statistics under the flat names by which tables average them."""
        figures: dict[str, float] = {}
        for name, edges in (("all_edge", self.all_edge), ("freq_edge", self.freq_edge), ("root", self.root)):
            figures |= {f"{name}_precision": edges.precision, f"{name}_recall": edges.recall, f"{name}_f1": edges.f1}
        for name, weights in (
            ("freq_weight", self.freq_weight),
            ("freq_weight_display", self.freq_weight_display),
            ("freq_weight_unnamed", self.freq_weight_unnamed),
            ("all_weight", self.all_weight),
        ):
            figures |= {
                f"{name}_precision": weights.precision,
                f"{name}_recall": weights.recall,
                f"{name}_f1": weights.f1,
            }
        return figures | {"shd": self.distance.shd}


class Scorer:
    """Scores hypotheses against one mechanism."""

    def __init__(self, truth: Mechanism) -> None:
        self._edges = truth.edges
        self._into_frequency = into_frequency(truth.edges)
        self._roots = roots(truth.edges)
        self._linear = truth.weights(FREQUENCY)
        self._weights = truth.all_weights

    def score(self, hypothesis: Hypothesis) -> HypothesisScore:
        weights = given_weights(self._linear, hypothesis.coefficients)
        return HypothesisScore(
            edge_scores(self._edges, hypothesis.edges),
            edge_scores(self._into_frequency, into_frequency(hypothesis.edges)),
            edge_scores(self._roots, roots(hypothesis.edges)),
            distance(self._edges, hypothesis.edges),
            weights.scores(PUBLISHED_TOLERANCE),
            weights.scores(DISPLAY_TOLERANCE),
            unnamed_weights(self._linear, hypothesis.coefficients, DISPLAY_TOLERANCE),
            all_weights(self._weights, hypothesis),
        )


@lru_cache(maxsize=4096)
def into_frequency(edges: frozenset[Edge]) -> frozenset[Edge]:
    return frozenset(edge for edge in edges if edge[1] == FREQUENCY)


@lru_cache(maxsize=4096)
def roots(edges: frozenset[Edge]) -> frozenset[str]:
    """Return the parentless ancestors of the frequency."""
    parents: dict[str, list[str]] = {}
    for parent, child in edges:
        parents.setdefault(child, []).append(parent)
    ancestors = {FREQUENCY}
    unseen = [FREQUENCY]
    while unseen:
        for parent in parents.get(unseen.pop(), ()):
            if parent not in ancestors:
                ancestors.add(parent)
                unseen.append(parent)
    ancestors.discard(FREQUENCY)
    return frozenset(node for node in ancestors if node not in parents)


@dataclass(frozen=True, slots=True)
class GivenWeights:
    """Stated linear weights of the frequency's parents, under the names that the released code looks up.

    true: parent -> true weight; by_parent: parent -> stated weight, for the parents that have one
    predicted: number of predicted weights, the denominator of precision
    """

    true: Mapping[str, float]
    by_parent: Mapping[str, float]
    predicted: int

    def scores(self, tolerance: float) -> WeightScores:
        correct = sum(abs(weight - self.true[p]) <= tolerance for p, weight in self.by_parent.items())
        return weight_scores(self.predicted, len(self.true), correct)


def given_weights(true: Mapping[str, float], coefficients: Mapping[str, Any]) -> GivenWeights:
    """Read the weights of the true parents; case is ignored if no key has exactly the looked-up name.

    The number of predicted weights is that of keys with an affix of a weight, at least that of weights read.
    """
    by_parent: dict[str, float] = {}
    ignoring_case: dict[str, Any] | None = None
    for parent in true:
        for name in _weight_names(parent):
            if name in coefficients:
                weight = as_number(coefficients[name])
            else:
                if ignoring_case is None:
                    # of keys equal up to case, the last counts
                    ignoring_case = {key.lower(): value for key, value in coefficients.items()}
                weight = as_number(ignoring_case.get(name.lower()))
            if weight is not None:
                by_parent[parent] = weight
                break
    num_named = sum(key.startswith(_WEIGHT_PREFIXES) for key in coefficients)
    return GivenWeights(true, by_parent, max(len(by_parent), num_named))


@lru_cache(maxsize=256)
def _weight_names(parent: str) -> tuple[str, ...]:
    """Return the keys that the released code looks up, in its order."""
    return f"c_{parent}", f"coeff_{parent}_freq", f"coeff_{parent}_frequency", parent


def unnamed_weights(true: Mapping[str, float], coefficients: Mapping[str, Any], tolerance: float) -> WeightScores:
    """Score the weights under any key that names a parent: c_p, c1_p, c_p_2, coeff1_p_freq, p.

    A weight is correct if one of the parent's keys has it. Predicted weights are the names with a number.
    """
    by_name: dict[str, list[float]] = {}
    for key, value in coefficients.items():
        weight = as_number(value)
        if weight is not None and key != "base":
            by_name.setdefault(_parent_name(key), []).append(weight)
    correct = 0
    for parent, true_weight in true.items():
        for weight in by_name.get(parent.lower(), ()):
            if abs(weight - true_weight) <= tolerance:
                correct += 1
                break
    return weight_scores(len(by_name), len(true), correct)


@lru_cache(maxsize=4096)
def _parent_name(key: str) -> str:
    """Return the parent's name in a key, in lower case, without affixes that mark a weight."""
    name = key.lower()
    while (shorter := _WEIGHT_AFFIX.sub("", name)) not in ("", name):
        name = shorter
    return name


def all_weights(true: Mapping[WeightKey, float], hypothesis: Hypothesis) -> WeightScores:
    correct = sum(
        abs(hypothesis.weights[key] - weight) <= (DISPLAY_TOLERANCE if key[2] == 1 else SQUARE_TOLERANCE)
        for key, weight in true.items()
        if key in hypothesis.weights
    )
    return weight_scores(len(hypothesis.weights), len(true), correct)


def weight_scores(predicted: int, true: int, correct: int) -> WeightScores:
    precision = correct / predicted if predicted else 0.0
    recall = correct / true if true else 0.0
    return WeightScores(precision, recall, f1(precision, recall), predicted, true, correct)


def _float(weight: float) -> float:
    """Return a number as a float; inf for an integer beyond the range of floats, which is wrong by any tolerance."""
    try:
        return float(weight)
    except OverflowError:
        return inf


# --- Interventional Markov equivalence: graphs that no ideal experiment on the targets distinguishes from the truth


def imec_size(edges: Set[Edge], targets: Iterable[str] = ()) -> int:
    """Return the number of DAGs in the interventional Markov equivalence class of a DAG.

    These have the skeleton and v-structures of `edges`, and orient every edge at a target as `edges` do.
    """
    return len(imec_members(edges, targets))


def imec_members(edges: Set[Edge], targets: Iterable[str] = ()) -> list[frozenset[Edge]]:
    """Return the DAGs that `imec_size` counts, each as its edges.

    Edges are oriented one by one; a branch ends as soon as it has a cycle or a v-structure that `edges` lacks.
    """
    fixed = set(targets)
    colliders = v_structures(edges)
    directed = {(u, v) for u, v in edges if u in fixed or v in fixed}
    directed |= {(u, w) for pair, w in colliders for u in pair}
    undecided = sorted(edge for edge in edges if edge not in directed)
    adjacent = {frozenset(edge) for edge in edges}
    members: list[frozenset[Edge]] = []

    def orient(position: int, parents: dict[str, set[str]]) -> None:
        if position == len(undecided):
            members.append(frozenset((p, child) for child, node_parents in parents.items() for p in node_parents))
            return
        for parent, child in (undecided[position], undecided[position][::-1]):
            node_parents = parents.get(child, set())
            collides = any(
                frozenset((parent, co_parent)) not in adjacent
                and (frozenset((parent, co_parent)), child) not in colliders
                for co_parent in node_parents
            )
            if not collides and not _reaches(parents, child, parent):
                orient(position + 1, {**parents, child: node_parents | {parent}})

    decided: dict[str, set[str]] = {}
    for parent, child in directed:
        decided.setdefault(child, set()).add(parent)
    orient(0, decided)
    return members


def _reaches(parents: dict[str, set[str]], ancestor: str, node: str) -> bool:
    """Return whether `ancestor` is `node` or one of its ancestors."""
    visited, unseen = {node}, [node]
    while unseen:
        for parent in parents.get(unseen.pop(), ()):
            if parent not in visited:
                visited.add(parent)
                unseen.append(parent)
    return ancestor in visited


def imec_by_definition(edges: Set[Edge], targets: Iterable[str] = ()) -> int:
    """Return `imec_size` by trial of every orientation of the skeleton; the plain reference."""
    fixed, ordered = set(targets), sorted(edges)
    colliders = v_structures(edges)
    count = 0
    for size in range(len(ordered) + 1):
        for turned in combinations([e for e in ordered if fixed.isdisjoint(e)], size):
            candidate = frozenset(ordered) - set(turned) | {(v, u) for u, v in turned}
            count += _acyclic(candidate) and v_structures(candidate) == colliders
    return count


def _acyclic(edges: Set[Edge]) -> bool:
    parents: dict[str, set[str]] = {}
    for parent, child in edges:
        parents.setdefault(child, set()).add(parent)
    return all(not _reaches(parents, child, parent) for parent, child in edges)


# --- A frequency formula over root properties, as a text: parsed as Python arithmetic, computed by us, never evaluated
