"""Learned graphs: their orientation against enumeration, and what the libraries recover from plenty of rows."""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from calibrant.baselines.replayscm.discovery import (
    ges_graph,
    gies_graph,
    hill_climbing_graph,
    pc_graph,
    unclamped_score,
)
from calibrant.baselines.structure_learning.graph import (
    Constraints,
    Frame,
    Graph,
    block_constraints,
    disclosed_graph,
    frame_from_rows,
    free_constraints,
    graph_from_matrix,
    is_acyclic,
    order_constraints,
    orient,
    root_constraints,
)
from tests.support.effort import examples
from tests.support.structure_learning import (
    Dag,
    all_dags,
    arcs,
    class_of,
    colliders,
    counted,
    likelihood_score,
    skeleton,
    urn_score,
)


def _classes(num_vars: int) -> dict[frozenset[object], list[Dag]]:
    """Markov equivalence classes by skeleton and colliders (Verma and Pearl 1990)."""
    classes: dict[frozenset[object], list[Dag]] = defaultdict(list)
    for dag in all_dags(num_vars):
        classes[class_of(dag, ())].append(dag)
    return classes


def _essential(members: list[Dag]) -> Graph:
    """All directions that occur in a class."""
    return tuple(_union([dag[v] for dag in members]) for v in range(len(members[0])))


def _union(masks: list[int]) -> int:
    total = 0
    for mask in masks:
        total |= mask
    return total


@pytest.mark.parametrize("num_vars", [1, 2, 3, 4])
def test_an_essential_graph_becomes_a_member_of_its_class(num_vars: int) -> None:
    for members in _classes(num_vars).values():
        assert orient(_essential(members), free_constraints(num_vars)).dag in members


@pytest.mark.parametrize("num_vars", [2, 3, 4])
def test_an_essential_graph_and_a_members_order_give_that_member(num_vars: int) -> None:
    names = [f"X{v}" for v in range(num_vars)]
    for members in _classes(num_vars).values():
        essential = _essential(members)
        for order in permutations(range(num_vars)):
            fitting = [dag for dag in members if all(order.index(i) < order.index(j) for i, j in arcs(dag))]
            if fitting:
                (only,) = fitting
                known = order_constraints(names, [names[v] for v in order])
                placed = orient(disclosed_graph(essential, known), known)
                assert placed.dag == only
                assert placed.order == order


@st.composite
def _knowledge(draw: st.DrawFn, num_vars: int) -> Constraints:
    """Draw constraints as the four disclosures state them."""
    names = [f"X{v}" for v in range(num_vars)]
    order = draw(st.permutations(names))
    cuts = sorted(draw(st.sets(st.integers(1, num_vars))) | {num_vars})
    blocks = [order[a:b] for a, b in zip([0, *cuts], cuts, strict=False)]
    roots = draw(st.integers(0, num_vars))
    match draw(st.sampled_from(["order", "blocks", "roots", "nothing"])):
        case "order":
            return order_constraints(names, order).with_roots(1 << names.index(order[0]))
        case "blocks":
            firsts = [v for v in blocks[0] if draw(st.booleans())]
            return block_constraints(names, blocks).with_roots(sum(1 << names.index(v) for v in firsts))
        case "roots":
            return root_constraints(names, order[:roots])
        case _:
            return free_constraints(num_vars)


@given(st.data())
def test_any_graph_becomes_a_dag_that_obeys_and_loses_only_forbidden_edges(data: st.DataObject) -> None:
    num_vars = data.draw(st.integers(1, 7))
    known = data.draw(_knowledge(num_vars))
    everything = (1 << num_vars) - 1
    graph = tuple(data.draw(st.integers(0, everything)) & ~(1 << v) for v in range(num_vars))
    placed = orient(disclosed_graph(graph, known), known)
    assert known.admits(placed.dag)
    for place, variable in enumerate(placed.order):
        before = sum(1 << u for u in placed.order[:place])
        assert (placed.dag[variable] | known.earlier[variable]) & ~before == 0
    possible = {edge for edge in skeleton(graph) if any(known.allowed[v] >> u & 1 for u in edge for v in edge - {u})}
    assert skeleton(placed.dag) == possible


@given(st.data())
def test_what_agrees_with_the_disclosure_is_left_alone(data: st.DataObject) -> None:
    dag = data.draw(st.sampled_from(all_dags(4)))
    order = orient(dag, free_constraints(4)).order
    names = [f"X{v}" for v in range(4)]
    known = order_constraints(names, [names[v] for v in order])
    assert disclosed_graph(dag, known) == dag
    assert orient(dag, known).dag == dag


def test_arcs_in_a_circle_are_broken() -> None:
    circle = (0b100, 0b001, 0b010)  # 2 -> 0 -> 1 -> 2
    placed = orient(circle, free_constraints(3))
    assert is_acyclic(placed.dag)
    assert skeleton(placed.dag) == skeleton(circle)
    assert len(arcs(placed.dag) & arcs(circle)) == 2


def test_matrices_are_read_from_cause_to_effect() -> None:
    assert graph_from_matrix(np.array([[0, 1, 0], [0, 0, 1], [0, 1, 0]])) == (0b000, 0b101, 0b010)


# --- what the libraries recover ---------------------------------------------------------------------------------------

NUM_ROWS = 4_000
DAGS: dict[str, Dag] = {
    "collider": (0, 0, 0b011),
    "chain": (0, 0b001, 0b010),
    "collider and tail": (0, 0, 0b011, 0b100),
}


def _noisy(dag: Dag, *, targets: tuple[int, ...] = (), seed: int = 3) -> list[str]:
    """Rows of a noisy disjunction: a child is 1 with probability 0.9 if a parent is, else 0.1; targets are coins."""
    rng = np.random.default_rng(seed)
    rows = np.zeros((NUM_ROWS, len(dag)), bool)
    for v, parents in enumerate(dag):  # the DAGs above are in causal order
        coins = rng.random(NUM_ROWS)
        active = rows[:, [u for u in range(v) if parents >> u & 1]].any(axis=1)
        rows[:, v] = coins < (0.5 if not parents or v in targets else np.where(active, 0.9, 0.1))
    return ["".join("01"[int(bit)] for bit in row) for row in rows]


def _frame(dag: Dag) -> Frame:
    return frame_from_rows([f"V{v}" for v in range(len(dag))], _noisy(dag))


def _class(dag: Dag) -> Graph:
    return _essential([other for other in all_dags(len(dag)) if class_of(other, ()) == class_of(dag, ())])


@pytest.mark.parametrize("name", DAGS)
def test_pc_and_ges_recover_the_class(name: str) -> None:
    dag = DAGS[name]
    frame, free = _frame(dag), free_constraints(len(dag))
    expected = _class(dag)
    assert pc_graph(frame, free, alpha=0.001) == expected
    assert pc_graph(frame, free, alpha=0.001, test="chisq") == expected
    assert ges_graph(frame) == expected
    assert ges_graph(frame, score="bic") == expected


def test_pc_uses_what_is_known() -> None:
    dag = DAGS["chain"]
    names = [f"V{v}" for v in range(3)]
    assert pc_graph(_frame(dag), order_constraints(names, names), alpha=0.001) == dag
    backwards = order_constraints(names, names[::-1])
    assert pc_graph(_frame(dag), backwards, alpha=0.001) == (0b010, 0b100, 0)


@pytest.mark.parametrize("name", DAGS)
@pytest.mark.parametrize("score", ["bdeu", "bic", "k2"])
def test_pgmpy_recovers_the_dag_under_its_order(name: str, score: str) -> None:
    dag = DAGS[name]
    frame = _frame(dag)
    known = order_constraints(frame.variables, frame.variables)
    assert hill_climbing_graph(frame, known, score=score) == dag  # type: ignore[arg-type]
    learned = hill_climbing_graph(frame, free_constraints(len(dag)), score=score)  # type: ignore[arg-type]
    assert skeleton(dag) <= skeleton(learned)
    assert is_acyclic(learned)


def test_gies_orients_by_interventions() -> None:
    dag = DAGS["chain"]  # without interventions its class has three members
    rows = [*_noisy(dag), *_noisy(dag, targets=(1,), seed=4)]
    frame = frame_from_rows(["A", "B", "C"], rows, {"B": range(NUM_ROWS, 2 * NUM_ROWS)})
    assert gies_graph(frame, [[], [1]]) == dag
    assert gies_graph(frame_from_rows(["A", "B", "C"], rows[:NUM_ROWS]), [[]]) == _class(dag)
    assert colliders(dag) == frozenset()


@settings(max_examples=examples(40))
@given(st.data())
def test_pgmpy_scores_leave_out_the_rows_in_which_the_variable_was_set(data: st.DataObject) -> None:
    rows = data.draw(st.lists(st.text("01", min_size=3, max_size=3), min_size=4, max_size=12))
    clamped = data.draw(st.sets(st.integers(0, len(rows) - 2)))
    frame = frame_from_rows(["A", "B", "C"], rows, {"C": clamped})
    parents = data.draw(st.sampled_from([(), (0,), (1,), (0, 1)]))
    mask = sum(1 << p for p in parents)
    free = counted(frame, 2, mask, True)
    assume({value for _, value in free} == {0, 1})  # pgmpy miscounts a variable with one value
    cell = Fraction(1, 2 << len(parents))
    assert unclamped_score(frame, "bdeu", 1.0).local_score(2, parents) == pytest.approx(urn_score(free, cell))
    assert unclamped_score(frame, "k2", 1.0).local_score(2, parents) == pytest.approx(urn_score(free, Fraction(1)))
    penalty = 0.5 * np.log(len(free)) * 2 ** len(parents)
    assert unclamped_score(frame, "bic", 1.0).local_score(2, parents) == pytest.approx(likelihood_score(free) - penalty)
