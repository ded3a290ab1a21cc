"""Canonical order: equal spellings iff graphs are isomorphic, exhaustively for tiny ones."""

from __future__ import annotations

from itertools import combinations, permutations

import numpy as np
import pytest

from calibrant.solvers.canonical import CanonicalOrder, Structure, StructureBuilder, canonical_order, orbit

Edges = frozenset[tuple[int, int]]


def _structure(num_vertices: int, edges: Edges, *, directed: bool) -> Structure:
    builder = StructureBuilder()
    for _ in range(num_vertices):
        builder.vertex("point")
    for source, target in sorted(edges):
        builder.edge(source, target)
        if not directed:
            builder.edge(target, source)
    return builder.build(num_vertices)


def _spelling(structure: Structure) -> bytes:
    return structure.edge_list(canonical_order(structure).order)


def _renamed(edges: Edges, image: tuple[int, ...], *, directed: bool) -> Edges:
    pairs = ((image[a], image[b]) for a, b in edges)
    return frozenset(pairs if directed else (tuple(sorted(pair)) for pair in pairs))  # type: ignore[misc]


@pytest.mark.parametrize(("num_vertices", "directed", "num_classes"), [(5, False, 34), (3, True, 16)])
def test_spellings_are_the_isomorphism_classes_of_all_tiny_graphs(
    num_vertices: int, directed: bool, num_classes: int
) -> None:
    # 34 graphs of 5 vertices, 16 digraphs of 3 (OEIS A000088, A000273)
    pairs = list(permutations(range(num_vertices), 2) if directed else combinations(range(num_vertices), 2))
    class_of: dict[Edges, Edges] = {}
    spellings: dict[Edges, bytes] = {}
    for chosen in range(1 << len(pairs)):
        edges: Edges = frozenset(pair for i, pair in enumerate(pairs) if chosen >> i & 1)
        if edges not in class_of:
            for image in permutations(range(num_vertices)):
                class_of[_renamed(edges, image, directed=directed)] = edges
        spellings[edges] = _spelling(_structure(num_vertices, edges, directed=directed))
    assert len(set(class_of.values())) == num_classes
    assert len({(class_of[edges], spelling) for edges, spelling in spellings.items()}) == num_classes
    assert len(set(spellings.values())) == num_classes


def _orbits(result: CanonicalOrder, num_vertices: int) -> set[frozenset[int]]:
    return {frozenset(orbit(vertex, result.automorphisms)) for vertex in range(num_vertices)}


def test_automorphisms_are_those_of_the_graph() -> None:
    for num_edges in range(7):
        for edges in map(frozenset, combinations(combinations(range(4), 2), num_edges)):
            result = canonical_order(_structure(4, edges, directed=False))
            kept = [p for p in permutations(range(4)) if _renamed(edges, p, directed=False) == edges]
            assert set(result.automorphisms) <= set(kept)
            assert _orbits(result, 4) == {frozenset(image[v] for image in kept) for v in range(4)}


def test_graphs_that_refinement_does_not_separate_are_separated_by_the_search() -> None:
    cycle: Edges = frozenset((i, (i + 1) % 6) for i in range(6))
    triangles: Edges = frozenset({(0, 1), (1, 2), (0, 2), (3, 4), (4, 5), (3, 5)})
    assert _spelling(_structure(6, cycle, directed=False)) != _spelling(_structure(6, triangles, directed=False))


def test_many_alike_are_few_leaves() -> None:
    result = canonical_order(_structure(30, frozenset(), directed=False))
    assert result.is_complete
    assert set(orbit(0, result.automorphisms)) == set(range(30))


def test_a_search_that_is_cut_off_does_not_claim_to_be_complete() -> None:
    # twelve alike vertices: one leaf cannot show it
    assert not canonical_order(_structure(12, frozenset(), directed=False), max_leaves=1).is_complete
    assert np.array_equal(sorted(canonical_order(_structure(12, frozenset(), directed=False)).order), range(12))
