"""Classes of networks against listing of all DAGs, of all orientations, and the shared vectors."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from itertools import combinations, permutations, product
from pathlib import Path
from random import Random
from time import process_time

import pytest

from calibrant.baselines.structure_learning.classes import (
    count_orientations,
    essential_graph,
    model_string,
    network_class,
)
from calibrant.baselines.structure_learning.constraints import Dag, is_acyclic
from calibrant.dsl.errors import CalibrantError
from calibrant.dsl.knowledge import Knowledge, state_knowledge
from tests.support.effort import effort

NAMES = ("A", "B", "C", "D", "E")


@cache
def all_dags(num_vars: int) -> list[Dag]:
    sets = [[mask for mask in range(1 << num_vars) if not mask >> v & 1] for v in range(num_vars)]
    return [dag for dag in product(*sets) if is_acyclic(dag)]


def key(dag: Dag, targets: list[int]) -> tuple[object, ...]:
    """Skeleton and colliders of the DAG without the arcs into each set of targets."""
    keys = []
    for target in targets:
        arcs = {(u, v) for v, mask in enumerate(dag) for u in range(len(dag)) if mask >> u & 1 and not target >> v & 1}
        edges = {frozenset(arc) for arc in arcs}
        colliders = {
            (frozenset((a, b)), c)
            for c in range(len(dag))
            for a, b in combinations(range(len(dag)), 2)
            if (a, c) in arcs and (b, c) in arcs and frozenset((a, b)) not in edges
        }
        keys.append((frozenset(edges), frozenset(colliders)))
    return tuple(keys)


def arcs_of(dag: Dag) -> list[tuple[str, str]]:
    return [(NAMES[u], NAMES[v]) for v, mask in enumerate(dag) for u in range(len(dag)) if mask >> u & 1]


def random_targets(rng: Random, num_vars: int) -> list[int]:
    """Return sets of targets with every column free in one of them."""
    while True:
        targets = sorted({rng.randrange(1 << num_vars) if rng.random() < 0.7 else 0 for _ in range(rng.randint(1, 3))})
        common = (1 << num_vars) - 1
        for target in targets:
            common &= target
        if not common:
            return targets


@cache
def classes(num_vars: int, targets: tuple[int, ...]) -> dict[object, list[Dag]]:
    groups: dict[object, list[Dag]] = {}
    for dag in all_dags(num_vars):
        groups.setdefault(key(dag, list(targets)), []).append(dag)
    return groups


@pytest.mark.parametrize("seed", range(effort(6, 60)))
def test_members_arcs_and_next_experiment_are_those_of_listing(seed: int) -> None:
    rng = Random(seed)
    num_vars = 4
    targets = random_targets(rng, num_vars)
    names = NAMES[:num_vars]
    sets = [[names[v] for v in range(num_vars) if target >> v & 1] for target in targets]
    groups = classes(num_vars, tuple(targets))
    for members in rng.sample(list(groups.values()), min(30, len(groups))):
        result = network_class(names, arcs_of(members[0]), sets)
        shared = set(arcs_of(members[0])).intersection(*map(arcs_of, members))
        either = {arc for dag in members for arc in arcs_of(dag)} - shared
        assert result.members == len(members)
        assert set(result.directed) == shared
        assert {frozenset(arc) for arc in result.undirected} == {frozenset(arc) for arc in either}
        assert result.observational_members == len(classes(num_vars, (0,))[key(members[0], [0])])
        for v, name in enumerate(names):
            split: dict[object, int] = {}
            for dag in members:
                split[key(dag, [*targets, 1 << v])] = split.get(key(dag, [*targets, 1 << v]), 0) + 1
            assert result.left_after[name] == Fraction(sum(n * n for n in split.values()), len(members))


@pytest.mark.parametrize("seed", range(effort(20, 200)))
def test_knowledge_leaves_the_members_that_it_admits(seed: int) -> None:
    rng = Random(1_000 + seed)
    names = NAMES[:4]
    dag = rng.choice(all_dags(4))
    members = classes(4, (0,))[key(dag, [0])]
    pairs = list(permutations(names, 2))
    forbid = rng.sample(pairs, rng.randint(0, 3))
    limits = {rng.choice(names): rng.randint(0, 2)} if rng.random() < 0.5 else {}
    admitted = [
        arcs
        for arcs in map(arcs_of, members)
        if not set(arcs) & set(forbid)
        and all(sum(child == name for _, child in arcs) <= limit for name, limit in limits.items())
    ]
    result = network_class(names, arcs_of(dag), knowledge=state_knowledge(forbid=forbid, max_parents_of=limits))
    assert result.members == len(admitted)
    if admitted:
        shared = set(admitted[0]).intersection(*admitted)
        assert set(result.directed) == shared
        assert {frozenset(arc) for arc in result.undirected} == {
            frozenset(arc) for arcs in admitted for arc in arcs if arc not in shared
        }


@pytest.mark.parametrize("seed", range(effort(40, 400)))
def test_orientations_of_chordal_graphs_are_counted_as_listed(seed: int) -> None:
    rng = Random(seed)
    size = rng.randint(2, 6)
    neighbours = chordal_graph(rng, size, rng.choice([1, 2, 3]))
    edges = [(u, v) for u in range(size) for v in range(u + 1, size) if neighbours[u] >> v & 1]
    count = 0
    for ways in product((0, 1), repeat=len(edges)):
        dag = [0] * size
        for (u, v), way in zip(edges, ways, strict=True):
            dag[v if way else u] |= 1 << (u if way else v)
        pairs = ((v, a, b) for v in range(size) for a, b in combinations(range(size), 2))
        collides = any(dag[v] >> a & 1 and dag[v] >> b & 1 and not neighbours[a] >> b & 1 for v, a, b in pairs)
        count += not collides and is_acyclic(tuple(dag))
    assert count_orientations((1 << size) - 1, neighbours) == count


def chordal_graph(rng: Random, size: int, width: int) -> list[int]:
    """Return a connected graph: every node is joined to a clique of up to `width` earlier ones."""
    neighbours = [0] * size
    for v in range(1, size):
        clique = {rng.randrange(v)}
        for u in rng.sample(range(v), v):
            if len(clique) < width and all(neighbours[u] >> w & 1 for w in clique):
                clique.add(u)
        for u in clique:
            neighbours[u] |= 1 << v
            neighbours[v] |= 1 << u
    return neighbours


def test_forty_nodes_are_counted_in_a_tenth_of_a_second() -> None:
    neighbours = chordal_graph(Random(4), 40, 4)
    count_orientations(0b11, [0b10, 0b01])
    start = process_time()
    count = count_orientations((1 << 40) - 1, neighbours)
    assert process_time() - start < 0.1
    listed = chordal_graph(Random(4), 9, 4)  # the first nodes alone, as a lower bound made by listing
    graph = essential_graph((0,) * 9, [0])
    assert count > sum(1 for _ in graph.__class__((0,) * 9, tuple(listed)).members()) > 1


def test_a_column_that_is_always_set_counts_as_a_root() -> None:
    result = network_class(["A", "B"], [("A", "B")], [["B"]])
    assert (result.members, result.directed, result.modelstring) == (1, (), "[A][B]")


def test_model_string_takes_the_smallest_topological_order() -> None:
    assert model_string(("A", "B", "C"), (0, 0b101, 0)) == "[A][C][B|A:C]"


@pytest.mark.parametrize(
    ("arcs", "words"),
    [([("A", "Z")], "'Z'"), ([("A", "A")], "its own parent"), ([("A", "B"), ("B", "A")], "cycle")],
)
def test_impossible_graphs_are_refused(arcs: list[tuple[str, str]], words: str) -> None:
    with pytest.raises(CalibrantError, match=words):
        network_class(["A", "B"], arcs)


def test_two_columns_of_one_name_are_refused() -> None:
    with pytest.raises(CalibrantError, match="two columns have one name: A, B, A"):
        network_class(["A", "B", "A"], [("A", "B")])


def test_no_knowledge_admits_everything() -> None:
    assert network_class(["A", "B"], [("A", "B")], knowledge=Knowledge()).members == 2


def test_knowledge_is_a_text_or_a_file(tmp_path: Path) -> None:
    """Of a chain three orientations share the skeleton without a collider; in one of them A has no parent."""
    (tmp_path / "known.txt").write_text("roots A\n", "utf-8")
    for knowledge in ("roots A", tmp_path / "known.txt"):
        restricted = network_class(["A", "B", "C"], [("A", "B"), ("B", "C")], knowledge=knowledge)
        assert (restricted.members, restricted.directed) == (1, (("A", "B"), ("B", "C")))
    with pytest.raises(CalibrantError, match="a text of lines or a"):
        network_class(["A", "B"], [("A", "B")], knowledge=["roots A"])  # type: ignore[arg-type]
