"""Predicates on known graphs, and insertions that keep them."""

from __future__ import annotations

import numpy as np
import pytest

from calibrant.dsl.causim.topology import (
    TOPOLOGIES,
    Insertion,
    insert_node,
    insertions,
    is_acyclic,
    satisfies,
    topologies,
)


@pytest.mark.parametrize(
    ("graph", "expected"),
    [
        ({"a": []}, {*TOPOLOGIES, "poly_tree_strict"}),
        ({"a": [], "b": ["a"]}, {*TOPOLOGIES, "poly_tree_strict"}),
        ({"a": [], "b": ["a"], "c": ["b"]}, {"chain", "tree", "layered", "poly_tree", "poly_tree_strict"}),
        ({"a": [], "b": ["a"], "c": ["a"]}, {"star", "tree", "layered", "poly_tree", "poly_tree_strict"}),
        ({"a": [], "b": [], "c": ["a", "b"]}, {"inverted_star", "layered", "poly_tree", "poly_tree_strict"}),
        ({"a": [], "b": ["a"], "c": ["a", "b"]}, {"poly_tree"}),
        ({"a": [], "b": ["a"], "c": [], "d": ["b", "c"]}, {"poly_tree", "poly_tree_strict"}),
        ({"a": [], "b": ["a"], "c": ["a"], "d": ["b", "c"]}, {"layered", "poly_tree"}),
        ({"a": [], "b": []}, set()),
        ({"a": ["b"], "b": ["a"]}, set()),
    ],
)
def test_predicates_of_known_graphs(graph: dict[str, list[str]], expected: set[str]) -> None:
    assert {name for name, holds in topologies(graph).items() if holds} == expected


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_every_insertion_keeps_the_topology(topology: str) -> None:
    rng = np.random.default_rng(3)
    for _ in range(4):
        graph: dict[str, tuple[str, ...]] = {}
        for k in range(8):
            grown = [insert_node(graph, place, f"N{k}") for place in insertions(graph, topology)]
            assert all(satisfies(one, topology) and len(one) == k + 1 for one in grown)
            graph = grown[int(rng.integers(len(grown)))]


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_parents_come_before_their_children_in_a_grown_graph(topology: str) -> None:
    graph: dict[str, tuple[str, ...]] = {}
    for k in range(7):
        graph = insert_node(graph, insertions(graph, topology)[-1], f"N{k}")
        seen: set[str] = set()
        for node, parents in graph.items():
            assert set(parents) <= seen
            seen.add(node)


def test_a_node_between_others_takes_the_childs_place_under_its_parent() -> None:
    graph = {"a": (), "b": ("a",)}
    between = Insertion(("a",), (("b", ("",)),))
    assert between in insertions(graph, "chain")
    assert insert_node(graph, between, "c") == {"a": (), "c": ("a",), "b": ("c",)}
    assert is_acyclic(graph)
