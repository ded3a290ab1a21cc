"""Hill climbing and tabu search against bnlearn's records and against what they promise."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrant.baselines.structure_learning.graph import (
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
    HillClimbing,
    Learned,
    Method,
    Tabu,
    disturb,
    learn,
    learn_with_restarts,
)
from tests.support.bnlearn import vectors as bnlearn
from tests.support.effort import examples
from tests.support.structure_learning.dags import all_dags
from tests.support.structure_learning.frames import constraint_sets, frames

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
