"""Hill climbing and tabu search against bnlearn's records and against what they promise."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from random import Random

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrant.baselines.structure_learning.constraints import (
    Constraints,
    Dag,
    Frame,
    arc_constraints,
    frame_from_rows,
    free_constraints,
)
from calibrant.baselines.structure_learning.scores import LocalScores, bde, bic, mbde
from calibrant.baselines.structure_learning.search import (
    SCORE_TOLERANCE,
    ArcStrengths,
    HillClimbing,
    Learned,
    Method,
    Tabu,
    averaged_network,
    disturb,
    inclusion_threshold,
    learn,
    learn_with_restarts,
    strengths_from_frequencies,
)
from tests.support import bnlearn
from tests.support.bnlearn import Record, quicksort_order
from tests.support.effort import examples
from tests.support.structure_learning import all_dags, constraint_sets, frames

EXACT = 1e-9
METHODS: tuple[Method, ...] = (HillClimbing(), HillClimbing(2), Tabu(1), Tabu(3), Tabu(10), Tabu(4, 5))
VERB = {"add": "adding", "drop": "removing", "reverse": "reversing"}

# --- bnlearn's records ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("score", "algorithm", "count"),
    [
        ("mbde", "hc", 1782),
        ("mbde", "tabu", 3366),
        ("bde", "hc", 132),
        ("bde", "tabu", 264),
        ("bic", "hc", 132),
        ("bic", "tabu", 264),
    ],
)
def test_every_search_record_of_bnlearn(score: str, algorithm: str, count: int) -> None:
    """The identical DAG, its score, and where it was recorded the identical sequence of moves."""
    seen = 0
    for record in bnlearn.records("search", score=score, algo=algorithm):
        scores = bnlearn.scores_of(record["ds"], score, record["iss"])
        learned = learn(scores, bnlearn.constraints_of(record), bnlearn.method_of(record))
        assert bnlearn.arcs_of(scores.frame, learned.dag) == sorted(record["arcs"]), record
        assert abs(learned.score - record["score_total"]) <= EXACT, record
        if "trace" in record:
            assert described(scores.frame, learned) == record["trace"], record
        seen += 1
    assert seen == count


def test_bnlearn_recorded_198_traces() -> None:
    assert sum("trace" in record for record in bnlearn.records("search")) == 198


def described(frame: Frame, learned: Learned) -> list[str]:
    """Return the moves in the words of the records."""
    return [f"{VERB[m.kind]} {frame.variables[m.parent]} -> {frame.variables[m.child]}" for m in learned.moves]


# --- what a search promises ---------------------------------------------------------------------------------------


def neighbours(dag: Dag, constraints: Constraints) -> list[Dag]:
    """Every admitted DAG that differs by one arc: there, not there, or the other way round."""
    return [other for other in all_dags(len(dag)) if _is_one_step(dag, other) and constraints.admits(other)]


def _is_one_step(one: Dag, other: Dag) -> bool:
    changed = [(v, a ^ b) for v, (a, b) in enumerate(zip(one, other, strict=True)) if a != b]
    if len(changed) == 1:
        return changed[0][1].bit_count() == 1
    return len(changed) == 2 and all(changed[i][1] == 1 << changed[1 - i][0] for i in range(2))


@given(st.data())
@settings(deadline=None, max_examples=examples(60))
def test_no_single_move_improves_what_hill_climbing_found(data: st.DataObject) -> None:
    scores, constraints, start = _setting(data)
    learned = learn(scores, constraints, HillClimbing(), start=start)
    for other in neighbours(learned.dag, constraints):
        assert scores.total(other) <= learned.score + 3 * SCORE_TOLERANCE


@given(st.data(), st.sampled_from(METHODS))
@settings(deadline=None, max_examples=examples(120))
def test_moves_lead_from_the_start_to_legal_networks_and_past_the_result(data: st.DataObject, method: Method) -> None:
    scores, constraints, start = _setting(data)
    learned = learn(scores, constraints, method, start=start)
    dag, visited = start, [start]
    for move in learned.moves:
        dag = tuple(
            parents
            ^ (1 << move.parent if v == move.child else 0)
            ^ (1 << move.child if v == move.parent and move.kind == "reverse" else 0)
            for v, parents in enumerate(dag)
        )
        visited.append(dag)
    assert all(constraints.admits(network) for network in visited)
    assert learned.dag in visited
    assert learned.score == scores.total(learned.dag)
    match method:
        case HillClimbing(max_moves):
            assert visited[-1] == learned.dag
            assert len(learned.moves) <= max_moves
        case Tabu(length, max_iterations):
            assert all(network not in visited[max(0, i - length) : i] for i, network in enumerate(visited))
            assert len(learned.moves) <= max_iterations
            if max_iterations > len(learned.moves):  # it stopped of its own accord
                assert learned.score >= max(map(scores.total, visited)) - 2 * SCORE_TOLERANCE


def _setting(data: st.DataObject) -> tuple[LocalScores, Constraints, Dag]:
    """Scores of some rows, constraints, and a start that they admit."""
    frame = data.draw(frames(min_vars=1, max_vars=4))
    constraints = data.draw(constraint_sets(frame.num_vars))
    admitted = [dag for dag in all_dags(frame.num_vars) if constraints.admits(dag)]
    return (
        LocalScores(frame, data.draw(st.sampled_from([mbde(), bde(10.0), bic()]))),
        constraints,
        data.draw(st.sampled_from(admitted)),
    )


def test_tabu_walks_out_of_a_local_optimum() -> None:
    """C is A xor B: no first arc improves anything, so hill climbing stays where it is."""
    rows = [f"{a}{b}{a ^ b}" for a in (0, 1) for b in (0, 1)] * 6
    scores = LocalScores(frame_from_rows(["A", "B", "C"], rows), bde())
    free = free_constraints(3)
    assert learn(scores, free, HillClimbing()).dag == (0, 0, 0)
    found = learn(scores, free, Tabu())
    assert sorted(parents.bit_count() for parents in found.dag) == [0, 0, 2]
    assert found.score > scores.total((0, 0, 0)) + 5


def test_ties_go_to_the_earlier_column() -> None:
    """Both directions of an arc score the same; the arc leaves the first column, whatever its name."""
    frame = frame_from_rows(["A", "B"], ["00", "11"] * 10)
    for variables in (["A", "B"], ["B", "A"]):
        scores = LocalScores(frame.reorder(variables), bde())
        assert learn(scores, free_constraints(2), HillClimbing()).dag == (0, 1)


def test_a_start_is_made_legal_first() -> None:
    frame = frame_from_rows(["A", "B", "C"], ["000", "111"] * 8, {v: range(16) for v in "ABC"})
    scores = LocalScores(frame, mbde())  # every variable set everywhere: all networks score 0, nothing moves
    constraints = arc_constraints("ABC", blacklist=[("A", "C")], whitelist=[("B", "C")])
    assert learn(scores, constraints, HillClimbing()).dag == (0, 0, 0b010)
    assert learn(scores, constraints, HillClimbing(), start=(0, 1, 1)).dag == (0, 1, 0b010)
    with pytest.raises(ValueError, match="has a cycle"):
        learn(scores, free_constraints(3), HillClimbing(), start=(2, 1, 0))


# --- restarts -----------------------------------------------------------------------------------------------------


@given(st.data(), st.integers(0, 3), st.integers(1, 3))
@settings(deadline=None, max_examples=examples(60))
def test_restarts_never_lose_and_repeat_with_the_seed(data: st.DataObject, restarts: int, changes: int) -> None:
    scores, constraints, start = _setting(data)
    once = learn(scores, constraints, HillClimbing(), start=start)
    runs = [
        learn_with_restarts(scores, constraints, Random(7), restarts=restarts, changes=changes, start=start)
        for _ in range(2)
    ]
    assert runs[0] == runs[1]
    assert runs[0].score >= once.score
    assert runs[0].moves[: len(once.moves)] == once.moves
    assert constraints.admits(runs[0].dag)
    if not restarts:
        assert runs[0] == once


def test_restarts_find_what_one_climb_misses() -> None:
    rows = [f"{a}{b}{a ^ b}" for a in (0, 1) for b in (0, 1)] * 6
    scores = LocalScores(frame_from_rows(["A", "B", "C"], rows), bde())
    found = learn_with_restarts(scores, free_constraints(3), Random(0), restarts=20, changes=2)
    assert found.score > learn(scores, free_constraints(3), HillClimbing()).score + 5
    limited = learn_with_restarts(scores, free_constraints(3), Random(0), restarts=20, changes=2, max_moves=3)
    assert len(limited.moves) <= 3


@given(st.data(), st.integers(1, 4), st.integers(0, 99))
@settings(deadline=None)
def test_a_disturbance_is_legal_and_small(data: st.DataObject, changes: int, seed: int) -> None:
    num_vars = data.draw(st.integers(1, 4))
    constraints = data.draw(constraint_sets(num_vars))
    dag = data.draw(st.sampled_from([dag for dag in all_dags(num_vars) if constraints.admits(dag)]))
    after = disturb(dag, constraints, Random(seed), changes)
    assert constraints.admits(after)
    within = {dag}
    for _ in range(changes):
        within |= {other for reached in within for other in neighbours(reached, constraints)}
    assert after in within


def test_a_disturbance_makes_as_many_changes_as_are_wanted_if_it_can() -> None:
    free = free_constraints(4)
    moved = {seed: disturb((0, 0, 0, 0), free, Random(seed), 1) for seed in range(40)}
    sizes = {seed: sum(parents.bit_count() for parents in dag) for seed, dag in moved.items()}
    assert set(sizes.values()) == {0, 1}  # three draws of a kind; only an addition is possible
    assert len(set(moved.values())) > 8


# --- arguments ----------------------------------------------------------------------------------------------------


def test_arguments_out_of_range_are_refused() -> None:
    scores = LocalScores(frame_from_rows(["A", "B"], ["01"]), bde())
    for wrong in (lambda: HillClimbing(0), lambda: Tabu(0), lambda: Tabu(1, 0)):
        with pytest.raises(ValueError, match="at least 1"):
            wrong()
    with pytest.raises(ValueError, match="constraints on 3 variables, a frame of 2"):
        learn(scores, free_constraints(3), Tabu())
    with pytest.raises(ValueError, match="at least 0 and 1"):
        learn_with_restarts(scores, free_constraints(2), Random(0), restarts=-1)
    with pytest.raises(ValueError, match="max_parents is -1"):
        free_constraints(2, max_parents=-1)
    with pytest.raises(ValueError, match="masks for 1, 2, 1 variables"):
        Constraints((0,), (0, 0), 1, (0,))
    with pytest.raises(ValueError, match="variable 0 may have the parents"):
        Constraints((1,), (0,), 1, (0,))
    with pytest.raises(ValueError, match="come before itself"):
        Constraints((2, 1), (0, 0), 1, (2, 1))


# --- Inclusion thresholds and averaged networks against bnlearn's records and against their definitions ---------------
F64 = npt.NDArray[np.float64]

# --- bnlearn's records ------------------------------------------------------------------------------------------


@cache
def averaging_records() -> tuple[tuple[Record, ArcStrengths], ...]:
    listed = [(r, list(r["nodes"])) for r in bnlearn.records("threshold")]
    listed += [(r, list(bnlearn.frame_of(r["ds"]).variables)) for r in bnlearn.records("boot")]
    return tuple((record, bnlearn.recorded_strengths(record, variables)) for record, variables in listed)


def named(strengths: ArcStrengths, found: Sequence[tuple[int, int]]) -> list[list[str]]:
    return sorted([strengths.variables[i], strengths.variables[j]] for i, j in found)


def test_thresholds_are_those_of_bnlearn() -> None:
    records = averaging_records()
    assert len(records) == 164
    for record, strengths in records:
        assert abs(bnlearn.inclusion_threshold(strengths) - record["threshold"]) <= EXACT


def test_averaged_networks_are_those_of_bnlearn() -> None:
    for record, strengths in averaging_records():
        found = bnlearn.averaged_network(strengths)
        if "cycle_warnings" in record:
            assert len(found.refused) == record["cycle_warnings"]
        assert named(strengths, found.arcs) == sorted(record["averaged_arcs"])


def test_averaged_networks_at_one_half_are_those_of_bnlearn() -> None:
    records = [(r, s) for r, s in averaging_records() if "averaged_arcs_at_0.5" in r]
    assert len(records) == 60
    for record, strengths in records:
        found = bnlearn.averaged_network(strengths, threshold=0.5)
        assert named(strengths, found.arcs) == sorted(record["averaged_arcs_at_0.5"])


@given(st.lists(st.one_of(st.integers(0, 3), st.integers(0, 1000)), max_size=100))
@settings(deadline=None)
def test_the_order_of_quicksort_is_ascending(keys: list[int]) -> None:
    order = quicksort_order(keys)
    assert sorted(order) == list(range(len(keys)))
    assert [keys[i] for i in order] == sorted(keys)


# --- averaging ----------------------------------------------------------------------------------------------------


def strengths_of(num_vars: int, listed: dict[tuple[int, int], float]) -> ArcStrengths:
    """Arcs of these probabilities, their reverses of none."""
    frequency = np.zeros((num_vars, num_vars))
    for arc, value in listed.items():
        frequency[arc] = value
    return strengths_from_frequencies(tuple("ABCDEF"[:num_vars]), frequency)


def test_the_weakest_arc_of_a_cycle_is_left_out() -> None:
    cycle = strengths_of(3, {(0, 1): 0.9, (1, 2): 0.8, (2, 0): 0.6})
    assert averaged_network(cycle, threshold=0.5) == (((0, 1), (1, 2)), ((2, 0),))
    assert bnlearn.averaged_network(cycle, threshold=0.5) == (((1, 2), (2, 0)), ((0, 1),))


def test_equally_strong_arcs_are_taken_by_column_order() -> None:
    cycle = strengths_of(3, {(0, 1): 0.7, (1, 2): 0.7, (2, 0): 0.7})
    assert averaged_network(cycle, threshold=0.5).refused == ((2, 0),)


def test_an_undecided_arc_stays_undirected() -> None:
    frequency = np.array([[0, 0.45, 0], [0.45, 0, 0.9], [0, 0, 0]])
    strengths = strengths_from_frequencies(("A", "B", "C"), frequency)
    assert averaged_network(strengths, threshold=0.5).arcs == ((0, 1), (1, 0), (1, 2))
    assert strengths.frequency().tolist() == frequency.tolist()


def test_undecided_arcs_are_no_cycle_with_each_other() -> None:
    """Every tree of undecided arcs stays as it is, whatever the order of the columns."""
    for tree in (
        [(0, 1), (1, 2)],
        [(0, 2), (1, 2)],
        [(0, 1), (0, 2)],
        [(0, 3), (1, 3), (2, 3)],
        [(0, 1), (1, 2), (2, 3)],
    ):
        frequency = np.zeros((4, 4))
        for i, j in tree:
            frequency[i, j] = frequency[j, i] = 0.45
        arcs_both_ways = sorted([*tree, *((j, i) for i, j in tree)])
        strengths = strengths_from_frequencies(tuple("ABCD"), frequency)
        assert averaged_network(strengths, threshold=0.5) == (tuple(arcs_both_ways), ())


def test_an_undecided_arc_loses_the_direction_that_closes_a_cycle() -> None:
    frequency = np.array([[0, 0.3, 0], [0.3, 0, 0.9], [0.8, 0, 0]])
    strengths = strengths_from_frequencies(("A", "B", "C"), frequency)
    assert averaged_network(strengths, threshold=0.5) == (((1, 0), (1, 2), (2, 0)), ((0, 1),))


def test_what_is_certain_is_significant_whatever_the_threshold() -> None:
    strengths = strengths_of(3, {(0, 1): 1.0, (1, 2): 0.99})
    assert averaged_network(strengths, threshold=1.0).arcs == ((0, 1),)


def l1_distance(strengths: F64, share: float) -> float:
    """Area between the distribution of the strengths and the constant, straight from the definition."""
    listed: list[float] = strengths.tolist()
    points = sorted({0.0, 1.0, *listed})
    below = [sum(s <= point for s in listed) / len(listed) for point in points]
    return sum((after - point) * abs(at - share) for (point, after), at in zip(pairwise(points), below, strict=False))


@given(st.data())
@settings(deadline=None)
def test_the_threshold_is_the_quantile_at_the_least_l1_distance(data: st.DataObject) -> None:
    num_vars = data.draw(st.integers(2, 4))
    values = st.one_of(st.sampled_from([0.0, 0.25, 0.5, 1.0]), st.floats(0, 1).map(lambda x: round(x, 3)))
    listed = {(i, j): data.draw(values) for i in range(num_vars) for j in range(i + 1, num_vars)}
    strengths = strengths_of(num_vars, listed)
    ordered = strengths.sorted_strengths()
    assert ordered.tolist() == sorted([*listed.values()] * 2)
    heights = sorted({0.0, 1.0, *(float((ordered <= s).mean()) for s in ordered)})  # it is linear between these
    least = min(l1_distance(ordered, share) for share in heights)
    best = [share for share in heights if l1_distance(ordered, share) <= least + 1e-9]
    quantiles = [min(s for s in [*ordered, 2.0] if (ordered <= s).mean() >= share - 1e-12) for share in best]
    assert inclusion_threshold(strengths) in quantiles


def test_one_variable_has_no_arcs() -> None:
    nothing = strengths_of(1, {})
    assert (inclusion_threshold(nothing), averaged_network(nothing)) == (0.0, ((), ()))


def test_brent_finds_the_bottom_of_a_valley() -> None:
    assert abs(bnlearn.minimum_by_brent(lambda x: (x - 1 / 3) ** 2, 0.0, 1.0, 1e-6) - 1 / 3) < 1e-5
    assert abs(bnlearn.minimum_by_brent(lambda x: abs(x - 0.7) + x / 2, 0.0, 1.0, 1e-6) - 0.7) < 1e-5
    assert bnlearn.minimum_by_brent(lambda x: x, 0.0, 1.0, 1e-6) < 1e-5
    assert bnlearn.minimum_by_brent(lambda x: -x, 2.0, 3.0, 1e-6) > 3 - 1e-5
