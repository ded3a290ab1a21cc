"""The best experiment against its definition, and the loop that carries experiments out."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, permutations

import numpy as np
import pytest

from calibrant.solvers.canonical import CanonicalOrder, Structure, StructureBuilder, canonical_order, orbit
from calibrant.solvers.outcome import Found, Impossible
from calibrant.solvers.space import Move, RatedExperiment, Space, best_experiment, play
from tests.support.counter_game import NumberGame, Numbers

NumberSpace = Space[int, int, bool, int]


def test_the_experiment_that_halves_the_space_is_best_and_the_first_of_equals_is_taken() -> None:
    assert best_experiment(Numbers(0, 7), range(9), lambda x: 1) == Found(RatedExperiment(4, 1, Fraction(1, 2)))
    # 3 of 7 and 4 of 7 leave the same share; 3 is first, unless the candidates come the other way round
    assert best_experiment(Numbers(0, 6), range(9), lambda x: 1) == Found(RatedExperiment(3, 1, Fraction(25, 49)))
    assert best_experiment(Numbers(0, 6), range(9, 0, -1), lambda x: 1) == Found(
        RatedExperiment(4, 1, Fraction(25, 49))
    )


def test_shares_are_compared_per_cost() -> None:
    """1/2 for a cost of 2 is as good as 0.7071 a unit: worse than 5/8 for 1, better than 25/32 for 1."""
    halving = {4: 2}
    assert best_experiment(Numbers(0, 7), [4, 2], lambda x: halving.get(x, 1)) == Found(
        RatedExperiment(2, 1, Fraction(5, 8))
    )
    assert best_experiment(Numbers(0, 7), [4, 1], lambda x: halving.get(x, 1)) == Found(
        RatedExperiment(4, 2, Fraction(1, 2))
    )


def test_no_experiment_is_best_where_none_splits() -> None:
    found = best_experiment(Numbers(3, 3), range(9), lambda x: 1)
    assert isinstance(found, Impossible)
    assert "the numbers" in found.exhausted
    with pytest.raises(ValueError, match="costs are 1 or more"):
        best_experiment(Numbers(0, 3), [2], lambda x: 0)


def _halving(space: NumberSpace) -> Move[int]:
    found = best_experiment(space, range(100), lambda x: 1)
    assert isinstance(found, Found)
    return Move({"ask": found.value.experiment}, found.value.experiment)


def test_play_acts_until_told_to_stop() -> None:
    for number in range(64):
        game = NumberGame(number, allowance=50)
        space = play(game, Numbers(0, 63), _halving, lambda space: space.count == 1)
        assert space.verdicts() == {number: 1}
        assert len(game.steps) == 6


def test_play_ends_with_the_allowance_and_does_not_hide_a_refusal() -> None:
    game = NumberGame(5, allowance=2)
    assert play(game, Numbers(0, 63), _halving, lambda space: False).count == 16
    with pytest.raises(ValueError, match="was refused: no verb"):
        play(NumberGame(5, 9), Numbers(0, 63), lambda space: Move({"fly": 1}, 1), lambda space: False)


# --- Canonical order: equal spellings iff graphs are isomorphic, exhaustively for tiny ones ---------------------------
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
