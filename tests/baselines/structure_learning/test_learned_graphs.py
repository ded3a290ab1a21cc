"""Learned graphs: orientation against enumeration, bootstrap and averaging against bnlearn's records."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cache
from itertools import permutations, product

import numpy as np
import numpy.typing as npt
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
from calibrant.baselines.structure_learning.constraints import (
    Constraints,
    Frame,
    Graph,
    arc_constraints,
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
from calibrant.baselines.structure_learning.scores import LocalScores, bde, bic, mbde
from calibrant.baselines.structure_learning.search import (
    ArcStrengths,
    CountedAs,
    HillClimbing,
    Method,
    Resamples,
    Tabu,
    arc_strengths,
    bootstrap_dags,
    draw_resamples,
    essential_arcs,
    learn,
    protected_arcs,
)
from tests.support import bnlearn
from tests.support.bnlearn import Record, RRandom
from tests.support.effort import examples
from tests.support.structure_learning import (
    Dag,
    all_dags,
    arcs,
    class_of,
    colliders,
    constraint_sets,
    counted,
    frames,
    likelihood_score,
    skeleton,
    urn_score,
)


# --- Learned graphs: their orientation against enumeration, and what the libraries recover from plenty of rows --------
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
    for index, variable in enumerate(placed.order):
        before = sum(1 << u for u in placed.order[:index])
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
@pytest.mark.parametrize("score", ["bdeu", "k2"])
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


# --- Bootstrap and averaging against bnlearn's records, replicate by replicate, and against their definitions ---------
EXACT = 1e-9
F64 = npt.NDArray[np.float64]

# --- bnlearn's records ------------------------------------------------------------------------------------------


@cache
def r_resamples(seed: int, num_rows: int, num_vars: int, replicates: int) -> Resamples:
    """Return the draws of boot.strength: per replicate the rows, then the order of the columns."""
    rng = RRandom(seed)
    drawn = [(rng.with_replacement(num_rows), rng.permutation(num_vars)) for _ in range(replicates)]
    return Resamples(np.array([rows for rows, _ in drawn]), np.array([order for _, order in drawn]))


def computed_strengths(record: Record) -> ArcStrengths:
    """Our strengths from the resamples that R drew."""
    frame = bnlearn.frame_of(record["ds"])
    is_own_loop = record["how"] == "own_loop_correct_exp"
    strengths = arc_strengths if is_own_loop else bnlearn.arc_strengths
    return strengths(
        frame,
        bnlearn.score_named(record["score"], record["iss"]),
        free_constraints(frame.num_vars, max_parents=record["maxp"]),
        bnlearn.method_of(record),
        r_resamples(record["seed"], frame.num_rows, frame.num_vars, record["R"]),
        counted_as=CountedAs.CPDAG if record["cpdag"] else CountedAs.DAG,
    )


def difference(one: ArcStrengths, other: ArcStrengths) -> float:
    return float(max(np.abs(one.strength - other.strength).max(), np.abs(one.direction - other.direction).max()))


def correct_records() -> list[Record]:
    """Bootstraps in which bnlearn's interventions are right: none, or an own loop around its search."""
    every = bnlearn.records("boot")
    return [r for r in every if r["how"] == "own_loop_correct_exp" or r["score"] == "bde"]


@pytest.mark.parametrize("algorithm", ["hc", "tabu"])
def test_strengths_are_those_of_bnlearn_when_its_interventions_are_right(algorithm: str) -> None:
    """76 runs of 96 to 1000 replicates: from the same resamples the same strength and direction of every arc."""
    records = [record for record in correct_records() if record["algo"] == algorithm]
    assert len(records) == {"hc": 38, "tabu": 38}[algorithm]
    for record in records:
        frame = bnlearn.frame_of(record["ds"])
        recorded = bnlearn.recorded_strengths(record, frame.variables)
        assert difference(computed_strengths(record), recorded) <= EXACT, record["ds"]


def test_drifting_interventions_are_those_of_bnlearn() -> None:
    """28 runs of boot.strength with mbde: the sizes of the lists, and the strengths as near as R code came to them.

    `max_abs_diff` is what an R loop with the same drift differed by from boot.strength, which reads past the end of a
    list now and then; in 17 runs it is 0.
    """
    checks = list(bnlearn.records("boot_check"))
    assert len(checks) == 28
    assert sum(check["max_abs_diff"] == 0 for check in checks) == 17
    for check in checks:
        frame = bnlearn.frame_of(check["ds"])
        resamples = r_resamples(42, frame.num_rows, frame.num_vars, 96)
        drifting = bnlearn.drifting_interventions(frame, resamples)
        sizes = [sum(word.bit_count() for word in replicate) for replicate in drifting.tolist()]
        assert sizes == check["exp_sizes"]
        key = {name: check[name] for name in ("ds", "algo", "cpdag")}
        record = next(bnlearn.records("boot", how="boot.strength", score="mbde", R=96, **key))
        found = difference(computed_strengths(record), bnlearn.recorded_strengths(record, frame.variables))
        assert abs(found - check["max_abs_diff"]) <= EXACT, key


# --- resamples ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", [HillClimbing(), HillClimbing(2), Tabu(), Tabu(3, 4)])
def test_each_replicate_is_a_search_on_the_rows_drawn(method: Method) -> None:
    """One compiled loop for all replicates, or a frame of its own for each: the same networks."""
    frame = bnlearn.frame_of(bnlearn.dataset_with(6))
    constraints = arc_constraints(
        frame.variables, blacklist=[("X1", "X2")], whitelist=[("X3", "X5"), ("X5", "X6")], max_parents=2
    )
    resamples = draw_resamples(np.random.default_rng(1), frame.num_rows, frame.num_vars, replicates=12)
    found = bootstrap_dags(frame, mbde(), constraints, method, resamples)
    for dag, rows, order in zip(found, resamples.rows, resamples.orders.tolist(), strict=True):
        names = [frame.variables[v] for v in order]
        moved = frame.take(rows).reorder(names)
        there = arc_constraints(names, blacklist=[("X1", "X2")], whitelist=[("X3", "X5"), ("X5", "X6")], max_parents=2)
        learned = learn(LocalScores(moved, mbde()), there, method)
        assert bnlearn.arcs_of(frame, dag) == bnlearn.arcs_of(moved, learned.dag)


def test_copies_of_a_row_keep_what_was_set_in_it() -> None:
    frame = frame_from_rows(["A", "B"], ["00", "11", "01"], {"A": [2], "B": [0, 1]})
    drawn = frame.take(np.array([2, 2, 0, 1, 2]))
    assert drawn.clamped.tolist() == [1, 1, 2, 2, 1]
    assert drawn.values.tolist() == [2, 2, 0, 3, 2]


def test_drift_forgets_the_interventions_after_the_first_replicate() -> None:
    frame = frame_from_rows(["A"], ["0", "1", "0"], {"A": [0]})
    resamples = Resamples(np.array([[1, 0, 0], [2, 2, 0], [0, 1, 1]]), np.zeros((3, 1), np.int64))
    drifting = bnlearn.drifting_interventions(frame, resamples)
    assert drifting.tolist() == [[0, 1, 1], [1, 1, 0], [1, 1, 1]]
    assert frame.clamped[resamples.rows].tolist() == [[0, 1, 1], [0, 0, 1], [1, 0, 0]]


def test_resamples_depend_on_the_seed_alone() -> None:
    one, same, other = (draw_resamples(np.random.default_rng(seed), 20, 5, replicates=30) for seed in (3, 3, 4))
    assert np.array_equal(one.rows, same.rows)
    assert np.array_equal(one.orders, same.orders)
    assert not np.array_equal(one.rows, other.rows)
    assert one.rows.shape == (30, 20)
    assert {tuple(sorted(order)) for order in one.orders.tolist()} == {(0, 1, 2, 3, 4)}
    assert len({tuple(order) for order in one.orders.tolist()}) > 10
    fixed = draw_resamples(np.random.default_rng(3), 20, 5, replicates=2, shuffle_columns=False)
    assert fixed.orders.tolist() == [[0, 1, 2, 3, 4]] * 2


def test_resamples_that_do_not_fit_are_refused() -> None:
    frame = frame_from_rows(["A", "B"], ["01", "10"])
    right = draw_resamples(np.random.default_rng(0), 2, 2, replicates=2)
    free = free_constraints(2)
    with pytest.raises(ValueError, match="not 2 permutations of 2 columns"):
        bootstrap_dags(frame, bde(), free, Tabu(), right._replace(orders=np.zeros((2, 2), np.int64)))
    with pytest.raises(ValueError, match="among the 2 of the frame"):
        bootstrap_dags(frame, bde(), free, Tabu(), right._replace(rows=np.array([[0, 2], [1, 1]])))
    with pytest.raises(ValueError, match="constraints on 3 variables"):
        bootstrap_dags(frame, bde(), free_constraints(3), Tabu(), right)


# --- classes ------------------------------------------------------------------------------------------------------


def shared_arcs(dag: tuple[int, ...], family: Sequence[int], protected: Sequence[int]) -> set[tuple[int, int]]:
    """Return the arcs of a DAG that stand in all DAGs of its class in which its protected arcs stand too."""
    kept = {(i, j) for i, j in arcs(dag) if protected[j] >> i & 1}
    members = classes(len(dag), tuple(family))[class_of(dag, family)]
    return set.intersection(*(member for member in members if kept <= member))


@cache
def classes(num_vars: int, family: Sequence[int]) -> Mapping[object, list[set[tuple[int, int]]]]:
    """Return the arcs of the members of every class."""
    members: dict[object, list[set[tuple[int, int]]]] = defaultdict(list)
    for dag in all_dags(num_vars):
        members[class_of(dag, family)].append(arcs(dag))
    return members


def test_arcs_common_to_a_class_are_found_for_every_dag_of_four_variables() -> None:
    for dag in all_dags(4):
        assert arcs(essential_arcs(dag, np.zeros(4, np.int64))) == shared_arcs(dag, (), (0,) * 4)


@given(st.data())
@settings(deadline=None, max_examples=examples(40))
def test_protected_arcs_decide_others(data: st.DataObject) -> None:
    dag = data.draw(st.sampled_from(all_dags(4)))
    protected = [data.draw(st.integers(0, 15)) for _ in range(4)]
    assert arcs(essential_arcs(dag, np.array(protected))) == shared_arcs(dag, (), protected)


@given(st.data())
@settings(deadline=None, max_examples=examples(40))
def test_interventions_split_classes(data: st.DataObject) -> None:
    """Rows in which a set of variables was set: the arcs that all interventionally equivalent DAGs share."""
    family = data.draw(st.lists(st.integers(1, 15), max_size=2))
    clamped = {f"X{v}": [row for row, targets in enumerate(family, 1) if targets >> v & 1] for v in range(4)}
    frame = frame_from_rows([f"X{v}" for v in range(4)], ["0000"] * (1 + len(family)), clamped)
    dag = data.draw(st.sampled_from(all_dags(4)))
    protected = protected_arcs(frame, mbde(), free_constraints(4), CountedAs.CLASS)
    assert arcs(essential_arcs(dag, protected)) == shared_arcs(dag, family, (0,) * 4)
    assert protected_arcs(frame, bde(), free_constraints(4), CountedAs.CLASS).tolist() == [0] * 4


@given(st.data())
@settings(deadline=None, max_examples=examples(60))
def test_equivalent_networks_of_an_interventional_score_are_one_class(data: st.DataObject) -> None:
    """A class in the sense of `CountedAs.CLASS` is constant in mbde on the rows it was made of."""
    frame = data.draw(frames(min_vars=3, max_vars=3, max_rows=20))
    family = sorted(set(frame.clamped.tolist()) - {0})
    scores = LocalScores(frame, mbde())
    totals: dict[object, float] = {}
    for dag in all_dags(3):
        if 0 in frame.clamped.tolist():  # theorem 10 speaks of families in which nothing is always set
            assert abs(totals.setdefault(class_of(dag, family), scores.total(dag)) - scores.total(dag)) <= EXACT


@given(st.data())
@settings(deadline=None, max_examples=examples(40))
def test_forbidden_and_required_arcs_are_protected(data: st.DataObject) -> None:
    constraints = data.draw(constraint_sets(4))
    frame = frame_from_rows("ABCD", ["0000"])
    protected = protected_arcs(frame, bde(), constraints, CountedAs.CPDAG)
    for i, j in product(range(4), repeat=2):
        if i != j:
            must_stay = not constraints.allowed[i] >> j & 1 or constraints.required[j] >> i & 1
            assert bool(protected[j] >> i & 1) == bool(must_stay)


def test_an_open_arc_counts_half_each_way() -> None:
    frame = frame_from_rows(["A", "B"], ["00", "11"] * 10)
    resamples = draw_resamples(np.random.default_rng(0), 20, 2, replicates=25, shuffle_columns=False)
    free = free_constraints(2)
    as_dags = arc_strengths(frame, bde(), free, Tabu(), resamples, counted_as=CountedAs.DAG)
    as_classes = arc_strengths(frame, bde(), free, Tabu(), resamples)
    assert as_dags.strength[0, 1] == as_classes.strength[0, 1] == 1.0
    assert as_dags.direction[0, 1] == 1.0  # ties go to the first column
    assert as_classes.direction[0, 1] == as_classes.direction[1, 0] == 0.5


def test_an_intervention_on_one_end_closes_it() -> None:
    frame = frame_from_rows(["A", "B"], ["00", "11"] * 10 + ["01", "00", "11", "10"] * 5, {"B": range(20, 40)})
    resamples = draw_resamples(np.random.default_rng(0), 40, 2, replicates=25)
    free = free_constraints(2)
    by_class = arc_strengths(frame, mbde(), free, HillClimbing(), resamples)
    as_cpdags = arc_strengths(frame, mbde(), free, HillClimbing(), resamples, counted_as=CountedAs.CPDAG)
    assert by_class.direction[0, 1] > 0.9
    assert np.array_equal(by_class.frequency() * 25, np.rint(by_class.frequency() * 25))
    assert as_cpdags.strength[0, 1] == by_class.strength[0, 1]
    assert as_cpdags.direction[0, 1] == 0.5


def test_strengths_of_rows_that_say_nothing_are_zero() -> None:
    frame = frame_from_rows(["A", "B"], ["01"] * 12)
    resamples = draw_resamples(np.random.default_rng(0), 12, 2, replicates=10)
    strengths = arc_strengths(frame, bic(), free_constraints(2), Tabu(), resamples)
    assert strengths.strength.tolist() == strengths.direction.tolist() == [[0, 0], [0, 0]]
