"""The exact optimum against bnlearn's records, against all DAGs of a few variables, and against itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from math import isclose, log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrant.baselines.structure_learning.constraints import (
    Constraints,
    Dag,
    arc_constraints,
    frame_from_rows,
    free_constraints,
    order_constraints,
)
from calibrant.baselines.structure_learning.levels import ScoreOptimum
from calibrant.baselines.structure_learning.scores import LocalScores, NetworkScore, bde, bds, bic, k2, mbde
from tests.support import bnlearn
from tests.support.effort import examples
from tests.support.shared import shared_file
from tests.support.structure_learning import all_dags, constraint_sets, frames, num_orders

EXACT = 1e-9
SCORES: tuple[NetworkScore, ...] = (mbde(), mbde(10.0), bde(), bic(), k2(), bds())

# --- bnlearn's records ------------------------------------------------------------------------------------------


def test_the_optimum_of_every_record_and_never_below_bnlearn() -> None:
    """Every search of the file that states an optimum, of each data set under each kind of constraints."""
    found: dict[tuple[object, ...], float] = {}
    seen = 0
    for record in (r for r in bnlearn.records("search") if "global_optimum" in r):
        key = tuple(record[name] for name in ("ds", "iss", "constraint", "maxp"))
        if key not in found:
            constraints = bnlearn.constraints_of(record)
            scores = bnlearn.scores_of(record["ds"], record["score"], record["iss"])
            best = ScoreOptimum(scores, constraints).best()
            assert constraints.admits(best.dag)
            assert abs(scores.total(best.dag) - best.score) <= EXACT
            found[key] = best.score
        assert abs(found[key] - record["global_optimum"]) <= EXACT, key
        assert found[key] >= record["score_total"] - EXACT, key
        seen += 1
    text = shared_file("bnlearn_vectors.jsonl", part="bnlearn").read_text(encoding="utf-8")
    assert seen == text.count('"global_optimum"') >= 3 * len(found) > 0


# --- all DAGs -----------------------------------------------------------------------------------------------------


def _setting(data: st.DataObject, *, max_vars: int = 4) -> tuple[ScoreOptimum, Mapping[Dag, float]]:
    """Return an exact search, and the score of every admitted DAG."""
    frame = data.draw(frames(max_vars=max_vars))
    scores = LocalScores(frame, data.draw(st.sampled_from(SCORES)))
    constraints = data.draw(st.one_of(st.just(free_constraints(frame.num_vars)), constraint_sets(frame.num_vars)))
    return ScoreOptimum(scores, constraints), every_total(scores, constraints)


def every_total(scores: LocalScores, constraints: Constraints) -> Mapping[Dag, float]:
    admitted = (dag for dag in all_dags(constraints.num_vars) if constraints.admits(dag))
    return {dag: scores.total(dag) for dag in admitted}


@given(st.data())
@settings(deadline=None, max_examples=examples(60))
def test_the_best_network_is_the_best_of_all(data: st.DataObject) -> None:
    optimum, totals = _setting(data)
    best = optimum.best()
    assert isclose(best.score, max(totals.values()), abs_tol=EXACT)
    assert isclose(best.score, totals[best.dag], abs_tol=EXACT)


@given(st.data(), st.sampled_from([1, 2, 7, 60, 1000]))
@settings(deadline=None, max_examples=examples(60))
def test_the_k_best_networks_are_the_best_of_all(data: st.DataObject, k: int) -> None:
    optimum, totals = _setting(data)
    listed = optimum.k_best(k)
    wanted = sorted(totals.values(), reverse=True)[:k]
    assert len({dag for dag, _ in listed}) == len(listed) == len(wanted)
    for (dag, score), value in zip(listed, wanted, strict=True):
        assert isclose(score, value, abs_tol=EXACT)
        assert isclose(totals[dag], value, abs_tol=EXACT)


@given(st.data(), st.sampled_from([1e-9, 0.5, 3.0, 1e6]))
@settings(deadline=None, max_examples=examples(60))
def test_networks_within_a_gap_are_all_of_them(data: st.DataObject, gap: float) -> None:
    optimum, totals = _setting(data)
    least = max(totals.values()) - gap
    if not any(abs(value - least) < 1e-10 for value in totals.values()):  # else rounding decides
        listed = optimum.within(gap)
        assert listed.is_complete
        assert {dag for dag, _ in listed.dags} == {dag for dag, value in totals.items() if value >= least}
        assert len({dag for dag, _ in listed.dags}) == len(listed.dags)
        assert [score for _, score in listed.dags] == sorted((s for _, s in listed.dags), reverse=True)


@given(st.data())
@settings(deadline=None, max_examples=examples(60))
def test_posteriors_are_sums_over_orders_and_networks(data: st.DataObject) -> None:
    optimum, totals = _setting(data)
    top = max(totals.values())
    weights = {dag: orders_of(dag, optimum.earlier) * np.exp(value - top) for dag, value in totals.items()}
    total = sum(weights.values())
    posteriors = optimum.posteriors()
    num_vars = len(posteriors.variables)
    assert isclose(posteriors.log_evidence, top + log(total), abs_tol=1e-8)
    for child in range(num_vars):
        for parents in range(1 << num_vars):
            share = sum(weight for dag, weight in weights.items() if dag[child] == parents) / total
            assert isclose(posteriors.parent_sets[child, parents], share, abs_tol=EXACT)
    frequency = posteriors.arcs().frequency()
    for parent in range(num_vars):
        for child in range(num_vars):
            share = sum(weight for dag, weight in weights.items() if dag[child] >> parent & 1) / total
            assert isclose(frequency[parent, child], share, abs_tol=EXACT)


def orders_of(dag: Dag, earlier: Sequence[int]) -> int:
    """Orders that agree with a network and with what is known of the order."""
    return num_orders(tuple(parents | before for parents, before in zip(dag, earlier, strict=True)))


def test_networks_that_agree_with_no_possible_order_have_no_posterior() -> None:
    scores = LocalScores(frame_from_rows("AB", ["01"]), bde())
    constraints = replace(arc_constraints("AB", whitelist=[("A", "B")]), earlier=(0b10, 0))
    with pytest.raises(ValueError, match="agrees with the known order"):
        ScoreOptimum(scores, constraints).posteriors()


@given(st.data())
@settings(deadline=None, max_examples=examples(60))
def test_known_roots_are_one_more_constraint(data: st.DataObject) -> None:
    optimum, totals = _setting(data)
    num_vars = len(optimum.table)
    hypotheses = [sum(1 << v for v in chosen) for chosen in combinations(range(num_vars), num_vars // 2)]
    able = np.isfinite(optimum.table[:, 0])  # columns whose set of no parents is admitted
    legal = [roots for roots in hypotheses if able[_members(roots)].all()]
    listed = optimum.best_by_roots(legal)
    assert sorted(roots for roots, _ in listed) == sorted(legal)
    assert [best.score for _, best in listed] == sorted((best.score for _, best in listed), reverse=True)
    for roots, best in listed:
        fitting = {dag: value for dag, value in totals.items() if not any(dag[v] for v in _members(roots))}
        assert isclose(best.score, max(fitting.values()), abs_tol=EXACT)
        assert best.dag in fitting


def _members(mask: int) -> list[int]:
    return [v for v in range(mask.bit_length()) if mask >> v & 1]


# --- larger problems, one answer against another --------------------------------------------------------------------


@pytest.mark.parametrize("num_vars", [6, 10])
def test_the_k_best_are_what_lies_within_the_gap_of_the_last(num_vars: int) -> None:
    scores = bnlearn.scores_of(bnlearn.dataset_with(num_vars), "mbde", 1)
    optimum = ScoreOptimum(scores, free_constraints(scores.frame.num_vars, max_parents=5))
    listed = optimum.k_best(100)
    within = optimum.within(listed[0].score - listed[-1].score + EXACT)
    assert within.is_complete
    assert {dag for dag, _ in listed} <= {dag for dag, _ in within.dags}
    tied = sum(abs(score - listed[-1].score) <= 2 * EXACT for _, score in listed)
    tied_within = sum(abs(score - listed[-1].score) <= 2 * EXACT for _, score in within.dags)
    assert len(within.dags) == 100 + tied_within - tied
    assert listed[0].score == optimum.best().score


def test_posteriors_under_a_full_order_are_products() -> None:
    """With one order left, every variable's parent set has the probability that its own score gives it."""
    scores = bnlearn.scores_of(bnlearn.dataset_with(10), "mbde", 1)
    names = scores.frame.variables
    optimum = ScoreOptimum(scores, order_constraints(names, names, max_parents=3))
    posteriors = optimum.posteriors()
    for child in range(len(names)):
        inside = [mask for mask in range(1 << child) if mask.bit_count() <= 3]
        weights = np.exp([scores.local(child, mask) for mask in inside])
        np.testing.assert_allclose(posteriors.parent_sets[child, inside], weights / weights.sum(), atol=EXACT)
        assert isclose(posteriors.parent_sets[child].sum(), 1, abs_tol=EXACT)
        likeliest = posteriors.likeliest_parent_sets(child, 3)
        best = optimum.best_parent_sets(child, 3)
        assert [item.parents for item in likeliest] == [item.parents for item in best]
        assert best[0].value == max(scores.local(child, mask) for mask in inside)


def test_posteriors_do_not_underflow_on_many_rows() -> None:
    """Scores of -7000 a variable: only their differences count."""
    rng = np.random.default_rng(0)
    cause, other = rng.integers(2, size=(2, 10_000))
    rows = [f"{a}{a ^ (r < 0.1):d}{b}" for a, r, b in zip(cause, rng.random(10_000), other, strict=True)]
    optimum = ScoreOptimum(LocalScores(frame_from_rows("ABC", rows), bde()), free_constraints(3))
    arcs = optimum.posteriors().arcs()
    assert isclose(arcs.strength[0, 1], 1, abs_tol=EXACT)
    assert arcs.strength[0, 2] < 0.1


def test_interventions_tell_cause_from_effect() -> None:
    """B follows A where nothing is set and where A is set; where B is set A stays what it was."""
    rows = ["00", "11"] * 10 + ["00", "11"] * 10 + ["01", "00", "11", "10"] * 5
    frame = frame_from_rows("AB", rows, {"A": range(20, 40), "B": range(40, 60)})
    optimum = ScoreOptimum(LocalScores(frame, mbde()), free_constraints(2))
    assert optimum.best().dag == (0, 1)
    assert optimum.posteriors().arcs().frequency()[0, 1] > 0.999


# --- ties and limits ------------------------------------------------------------------------------------------------


def _indifferent(num_vars: int) -> LocalScores:
    """Every variable set in every row: all networks score 0."""
    names = "ABCDEFG"[:num_vars]
    return LocalScores(frame_from_rows(names, ["0" * num_vars], {v: [0] for v in names}), mbde())


def test_all_co_optimal_networks_are_counted() -> None:
    for num_vars, count in ((1, 1), (2, 3), (3, 25), (4, 543), (5, 29281)):  # Robinson 1973
        listed = ScoreOptimum(_indifferent(num_vars), free_constraints(num_vars)).co_optimal(limit=30_000)
        assert (len(listed.dags), listed.is_complete) == (count, True)


def test_a_limit_is_admitted() -> None:
    optimum = ScoreOptimum(_indifferent(4), free_constraints(4))
    for limit, is_complete in ((542, False), (543, True), (544, True)):
        listed = optimum.co_optimal(limit=limit)
        assert (len(listed.dags), listed.is_complete) == (min(limit, 543), is_complete)
        assert len({dag for dag, _ in listed.dags}) == len(listed.dags)


def test_a_twin_of_a_parent_is_as_good() -> None:
    """C copies A and D copies both: either is the parent of D, and every order of the three copies will do."""
    rows = [f"{a}{b}{a}" for a in (0, 1) for b in (0, 1)] * 5
    optimum = ScoreOptimum(LocalScores(frame_from_rows("ABC", rows), bde()), free_constraints(3))
    listed = optimum.co_optimal()
    assert {dag for dag, _ in listed.dags} == {(0, 0, 1), (4, 0, 0)}
    assert listed.dags[0].score > optimum.k_best(3)[2].score + 0.1


def test_arguments_out_of_range_are_refused() -> None:
    scores = LocalScores(frame_from_rows("AB", ["01"]), bde())
    with pytest.raises(ValueError, match="constraints on 3 variables, a frame of 2"):
        ScoreOptimum(scores, free_constraints(3))
    optimum = ScoreOptimum(scores, arc_constraints("AB", whitelist=[("A", "B")]))
    for k in (0, 1 << 40):
        with pytest.raises(ValueError, match="are possible with 2 variables"):
            optimum.k_best(k)
    with pytest.raises(ValueError, match="a root is required to have a parent"):
        optimum.best(roots=0b10)
    assert optimum.best(roots=0b01).dag == (0, 1)
