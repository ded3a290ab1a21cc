"""Edge sets compared, with every convention about empty and reversed ones."""

from __future__ import annotations

from itertools import combinations, product

import pytest

from calibrant.dsl.graph_metrics import EdgeScores, distance, edge_scores, skeleton, v_structures

AB, BA, BC, AC, CB = ("A", "B"), ("B", "A"), ("B", "C"), ("A", "C"), ("C", "B")
Edges = frozenset[tuple[str, str]]
NONE: Edges = frozenset()


@pytest.mark.parametrize(
    ("true", "predicted", "scores"),
    [
        (NONE, NONE, EdgeScores(1, 1, 1)),
        (frozenset({AB}), NONE, EdgeScores(0, 0, 0)),
        (NONE, frozenset({AB}), EdgeScores(0, 0, 0)),
        (frozenset({AB}), frozenset({BA}), EdgeScores(0, 0, 0)),
        (frozenset({AB, BC}), frozenset({AB}), EdgeScores(1, 0.5, 2 / 3)),
        (frozenset({AB}), frozenset({AB, BC, AC, CB}), EdgeScores(0.25, 1, 0.4)),
    ],
)
def test_precision_recall_and_f1(true: Edges, predicted: Edges, scores: EdgeScores) -> None:
    assert edge_scores(true, predicted) == scores


def test_over_all_pairs_of_graphs_the_distance_adds_up_pair_by_pair() -> None:
    """Each pair of nodes has no edge or one of two directions; between DAG-like graphs it costs 1 where it differs."""
    pairs = list(combinations("ABC", 2))
    graphs = list(product((None, 0, 1), repeat=len(pairs)))

    def edges(graph: tuple[int | None, ...]) -> Edges:
        return frozenset(
            pair if way == 0 else (pair[1], pair[0]) for pair, way in zip(pairs, graph, strict=True) if way is not None
        )

    for one, other in product(graphs, repeat=2):
        assert distance(edges(one), edges(other)).shd == sum(a != b for a, b in zip(one, other, strict=True))


def test_skeleton_and_v_structures() -> None:
    collider = frozenset({AC, BC})
    assert skeleton(collider | {("A", "A")}) == {frozenset("AC"), frozenset("BC")}
    assert v_structures(collider) == {(frozenset("AB"), "C")}
    assert v_structures(collider | {AB}) == frozenset()
    assert v_structures(frozenset({AB, BC})) == frozenset()
    assert v_structures(frozenset({AC, BC, ("D", "C")})) == {
        (frozenset("AB"), "C"),
        (frozenset("AD"), "C"),
        (frozenset("BD"), "C"),
    }
