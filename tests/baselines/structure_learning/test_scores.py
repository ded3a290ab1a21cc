"""Local scores against bnlearn's records and against their definitions; frames and constraints."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from math import isclose, log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrant.baselines.replayscm.fit import disclosed_constraints, frame_from_panel
from calibrant.baselines.structure_learning.constraints import (
    Frame,
    arc_constraints,
    block_constraints,
    frame_from_rows,
    free_constraints,
    order_constraints,
    root_constraints,
)
from calibrant.baselines.structure_learning.levels import LevelScore, LevelScores, family_score, frame_of_codes
from calibrant.baselines.structure_learning.scores import (
    Interventional,
    LocalScores,
    NetworkScore,
    VariableSelection,
    aic,
    bde,
    bdj,
    bds,
    bic,
    k2,
    loglik,
    mbde,
)
from calibrant.bench.lab.speed.replayscm.structures import all_families, dictionary_score, local_scores
from calibrant.dsl.knowledge import Knowledge, Statement
from calibrant.dsl.replayscm.disclosure import Blocks, HiddenOrder, HiddenRoots, Ordered
from calibrant.dsl.replayscm.item import Problem
from calibrant.dsl.replayscm.world import Intervention, Panel, World
from tests.support import bnlearn
from tests.support.effort import examples
from tests.support.replayscm.strategies import problems
from tests.support.structure_learning import (
    constraint_sets,
    counted,
    covered_arcs,
    dags,
    frames,
    likelihood_score,
    reversed_arc,
    urn_score,
)

EXACT = 1e-9
ALL_SCORES = (bde(), bde(10.0), mbde(), bds(), bdj(), k2(), loglik(), aic(), bic(), VariableSelection(mbde(), 0.2))
EQUIVALENT = (bde(), bde(7.5), loglik(), aic(), bic())

# --- bnlearn's records ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "count"),
    [
        ("mbde", 1320),
        ("bde", 990),
        ("bds", 660),
        ("bdj", 330),
        ("k2", 330),
        ("bic", 330),
        ("aic", 330),
        ("loglik", 330),
    ],
)
def test_every_score_record_of_bnlearn(kind: str, count: int) -> None:
    seen = 0
    for record in bnlearn.records("score", type=kind):
        scores = bnlearn.scores_of(record["ds"], kind, record["iss"], record.get("beta"))
        dag = bnlearn.dag_of(record["ds"], record["dag"])
        for child, variable in enumerate(scores.frame.variables):
            assert abs(scores.local(child, dag[child]) - record["local"][variable]) <= EXACT, record
        assert abs(scores.total(dag) - record["total"]) <= EXACT, record
        seen += 1
    assert seen == count


# --- definitions --------------------------------------------------------------------------------------------------


@given(st.data())
@settings(deadline=None)
def test_dirichlet_scores_are_sequential_predictions(data: st.DataObject) -> None:
    frame = data.draw(frames())
    child = data.draw(st.integers(0, frame.num_vars - 1))
    parents = data.draw(dags(frame.num_vars))[child]
    iss = data.draw(st.sampled_from([1, 10]))
    everything, unset = (counted(frame, child, parents, flag) for flag in (False, True))
    uniform = Fraction(iss, 2 << parents.bit_count())
    occupied = len({configuration for configuration, _ in everything})
    wanted = {
        bde(iss): urn_score(everything, uniform),
        mbde(iss): urn_score(unset, uniform),
        bds(iss): urn_score(everything, Fraction(iss, 2 * max(1, occupied))),
        k2(): urn_score(everything, Fraction(1)),
        bdj(): urn_score(everything, Fraction(1, 2)),
        Interventional(k2()): urn_score(unset, Fraction(1)),
        VariableSelection(bde(iss), 0.2): urn_score(everything, uniform) - parents.bit_count() * log(4),
    }
    for score, value in wanted.items():
        assert isclose(LocalScores(frame, score).local(child, parents), value, abs_tol=EXACT), score


@given(st.data())
@settings(deadline=None)
def test_likelihood_scores_are_frequencies_less_a_price(data: st.DataObject) -> None:
    frame = data.draw(frames())
    child = data.draw(st.integers(0, frame.num_vars - 1))
    parents = data.draw(dags(frame.num_vars))[child]
    value = likelihood_score(counted(frame, child, parents, False))
    parameters = 1 << parents.bit_count()
    wanted = {
        loglik(): value,
        aic(): value - parameters,
        bic(): value - parameters * log(max(1, frame.num_rows)) / 2,
        Interventional(loglik()): likelihood_score(counted(frame, child, parents, True)),
    }
    for score, expected in wanted.items():
        assert isclose(LocalScores(frame, score).local(child, parents), expected, abs_tol=EXACT), score


@given(st.data())
@settings(deadline=None)
def test_the_rival_of_the_speed_comparison_computes_the_same(data: st.DataObject) -> None:
    frame = data.draw(frames())
    families = all_families(frame.num_vars)
    scores = [dictionary_score(frame, *family) for family in families]
    np.testing.assert_allclose(local_scores(frame, families), scores, rtol=0, atol=EXACT)


def test_a_root_of_four_rows_by_hand() -> None:
    frame = frame_from_rows(["A"], ["1", "1", "0", "1"])
    # one imaginary row a cell: 1/2 * 2/3 * 1/4 * 3/5
    assert isclose(LocalScores(frame, k2()).local(0, 0), log(1 / 20))
    assert isclose(LocalScores(frame, bdj()).local(0, 0), log(1 / 2 * 3 / 4 * 1 / 6 * 5 / 8))
    assert isclose(LocalScores(frame, loglik()).local(0, 0), 3 * log(3 / 4) + log(1 / 4))


def test_rows_in_which_only_a_parent_was_set_count() -> None:
    rows = ["00", "11", "10"]
    free, parent_set, child_set = (
        LocalScores(frame_from_rows(["A", "B"], rows, clamped), mbde()) for clamped in ({}, {"A": [0, 1]}, {"B": [2]})
    )
    assert free.local(1, 1) == parent_set.local(1, 1)
    assert child_set.local(1, 1) == LocalScores(frame_from_rows(["A", "B"], rows[:2]), bde()).local(1, 1)


def test_a_variable_set_in_every_row_scores_nothing() -> None:
    scores = LocalScores(frame_from_rows(["A", "B"], ["00", "11", "10"], {"B": [2, 0, 1]}), mbde())
    assert [scores.local(1, 0), scores.local(1, 1)] == [0.0, 0.0]


# --- invariants ---------------------------------------------------------------------------------------------------


@given(st.data(), st.sampled_from(EQUIVALENT))
@settings(deadline=None)
def test_equivalent_networks_score_the_same(data: st.DataObject, score: NetworkScore) -> None:
    frame = data.draw(frames(min_vars=2, interventions=False))
    scores = LocalScores(frame, score)
    dag = data.draw(dags(frame.num_vars))
    for i, j in covered_arcs(dag):
        assert isclose(scores.total(dag), scores.total(reversed_arc(dag, i, j)), abs_tol=EXACT)


@given(st.data())
@settings(deadline=None)
def test_mbde_tells_equivalent_networks_apart_only_where_one_end_was_set(data: st.DataObject) -> None:
    frame = data.draw(frames(min_vars=2))
    scores = LocalScores(frame, mbde())
    dag = data.draw(dags(frame.num_vars))
    for i, j in covered_arcs(dag):
        if all((clamped >> i & 1) == (clamped >> j & 1) for clamped in frame.clamped.tolist()):
            assert isclose(scores.total(dag), scores.total(reversed_arc(dag, i, j)), abs_tol=EXACT)


def test_mbde_finds_a_direction_where_one_end_was_set() -> None:
    frame = frame_from_rows(["A", "B"], ["00", "11"] * 5 + ["00", "11"] * 5, {"A": range(10, 20)})
    scores = LocalScores(frame, mbde())
    assert scores.total((0, 1)) > scores.total((2, 0)) + 1


@given(st.data(), st.sampled_from(ALL_SCORES))
@settings(deadline=None)
def test_a_network_is_the_sum_of_its_families(data: st.DataObject, score: NetworkScore) -> None:
    frame = data.draw(frames(min_vars=2))
    scores = LocalScores(frame, score)
    one, other = data.draw(dags(frame.num_vars)), data.draw(dags(frame.num_vars))
    change = sum(
        scores.local(v, other[v]) - scores.local(v, one[v]) for v in range(frame.num_vars) if one[v] != other[v]
    )
    assert isclose(scores.total(other) - scores.total(one), change, abs_tol=EXACT)


@given(st.data(), st.sampled_from(ALL_SCORES))
@settings(deadline=None)
def test_neither_the_order_of_rows_nor_of_columns_matters(data: st.DataObject, score: NetworkScore) -> None:
    frame = data.draw(frames())
    dag = data.draw(dags(frame.num_vars))
    names = {v: frame.names(parents) for v, parents in zip(frame.variables, dag, strict=True)}
    rows = np.array(data.draw(st.permutations(range(frame.num_rows))), np.int64)
    moved = frame.take(rows).reorder(data.draw(st.permutations(frame.variables)))
    total = LocalScores(moved, score).total(moved.dag(names))
    assert isclose(total, LocalScores(frame, score).total(dag), abs_tol=EXACT)


@given(frames(interventions=False), st.sampled_from([1.0, 10.0]))
@settings(deadline=None)
def test_without_interventions_mbde_is_bde(frame: Frame, iss: float) -> None:
    dag = tuple((1 << v) - 1 for v in range(frame.num_vars))
    assert LocalScores(frame, mbde(iss)).total(dag) == LocalScores(frame, bde(iss)).total(dag)


def test_a_full_cache_changes_no_score() -> None:
    """More parent sets than slots, asked for in two orders: every answer is that of an empty cache."""
    num_vars, rng = 20, np.random.default_rng(0)
    rows = ["".join(row) for row in rng.choice(["0", "1"], (90, num_vars))]
    frame = frame_from_rows([f"X{v}" for v in range(num_vars)], rows)
    masks = [int(mask) << 1 for mask in rng.integers(1 << (num_vars - 1), size=9000)]
    scores = LocalScores(frame, bde())
    there, back = [scores.local(0, m) for m in masks], [scores.local(0, m) for m in reversed(masks)]
    assert there == back[::-1]
    for mask in masks[:300]:
        assert LocalScores(frame, bde()).local(0, mask) == scores.local(0, mask)
    assert scores.of_families([0] * 500, masks[:500]).tolist() == there[:500]


@given(st.data(), st.sampled_from(ALL_SCORES), st.integers(0, 6))
@settings(deadline=None, max_examples=examples(60))
def test_the_table_has_the_admitted_local_scores(
    data: st.DataObject, score: NetworkScore, share_variables: int
) -> None:
    frame = data.draw(frames())
    constraints = data.draw(constraint_sets(frame.num_vars))
    scores, reports = LocalScores(frame, score), list[tuple[int, int]]()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("calibrant.baselines.structure_learning.scores.MAX_BATCH_VARIABLES", share_variables)
        table = scores.table(constraints, lambda done, total: reports.append((done, total)))
    num_shares = 1 << max(0, frame.num_vars - share_variables)
    assert reports == [(k, num_shares) for k in range(num_shares + 1)]
    for child in range(frame.num_vars):
        may, must = constraints.allowed[child], constraints.required[child]
        for parents in range(1 << frame.num_vars):
            fits = parents | may == may and parents & must == must
            if fits and (parents == must or parents.bit_count() <= constraints.max_parents):
                assert isclose(table[child, parents], scores.local(child, parents), abs_tol=EXACT)
            else:
                assert table[child, parents] == -np.inf


# --- frames -------------------------------------------------------------------------------------------------------


@given(problems())
@settings(deadline=None)
def test_a_panel_becomes_a_frame_row_by_row(problem: Problem) -> None:
    panel = problem.task.training
    frame = frame_from_panel(panel)
    wanted = [
        (row[variable], variable in world.intervention.targets)
        for world in panel.worlds
        for row in world.rows()
        for variable in panel.variables
    ]
    found = [
        (value >> v & 1, bool(clamped >> v & 1))
        for value, clamped in zip(frame.values.tolist(), frame.clamped.tolist(), strict=True)
        for v in range(frame.num_vars)
    ]
    assert found == wanted


def test_bnlearn_rows_and_a_panel_are_the_same_table() -> None:
    worlds = (
        World("a", Intervention(), ("X1", "X2"), ("u", "v"), (0b01, 0b11)),
        World("b", Intervention({"X2": 1}), ("X1", "X2"), ("u", "v", "w"), (0b110, 0b111)),
    )
    from_panel = frame_from_panel(Panel(("X1", "X2"), worlds))
    from_rows = frame_from_rows(["X1", "X2"], ["11", "01", "01", "11", "11"], {"X2": [4, 2, 3]})
    assert from_panel.values.tolist() == from_rows.values.tolist() == [3, 2, 2, 3, 3]
    assert from_panel.clamped.tolist() == from_rows.clamped.tolist() == [0, 0, 2, 2, 2]


@pytest.mark.parametrize(
    ("variables", "rows", "clamped", "message"),
    [
        (["A", "B"], ["01", "0"], {}, "row 1 is '0'; expected 2 characters"),
        (["A"], ["2"], {}, "row 0 is '2'"),
        (["A"], ["0"], {"B": [0]}, "unknown variable 'B'; known: A"),
        (["A"], ["0"], {"A": [1]}, "A is set in row 1; rows are 0 to 0"),
        (["A"], ["0"], {"A": [-1]}, "A is set in row -1"),
        (["A", "A"], ["00"], {}, "a variable is named twice in A, A"),
        ([], [], {}, "0 variables; 1 to 62"),
        ([f"X{i}" for i in range(63)], [], {}, "63 variables; 1 to 62"),
    ],
)
def test_a_table_that_makes_no_sense_is_refused(
    variables: list[str], rows: list[str], clamped: dict[str, list[int]], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        frame_from_rows(variables, rows, clamped)


def test_arguments_out_of_range_are_refused() -> None:
    frame = frame_from_rows(["A", "B"], ["01"])
    scores = LocalScores(frame, bde())
    for child, parents in ((0, 1), (0, 4), (1, 2)):
        with pytest.raises(ValueError, match="cannot have the parent set"):
            scores.local(child, parents)
    with pytest.raises(ValueError, match="is not an order of A, B"):
        frame.reorder(["A", "A"])
    with pytest.raises(ValueError, match="unknown variables C"):
        frame.dag({"C": []})
    with pytest.raises(ValueError, match="positive"):
        bde(0.0)
    with pytest.raises(ValueError, match="between 0 and 1"):
        VariableSelection(bde(), 1.0)
    wide = frame_from_rows([f"X{i}" for i in range(19)], ["0" * 19])
    with pytest.raises(ValueError, match="at most 18"):
        LocalScores(wide, bde()).table(free_constraints(19))


def test_62_variables_are_not_too_many() -> None:
    names = [f"X{i}" for i in range(62)]
    frame = frame_from_rows(names, ["0" * 61 + "1", "1" * 62], {names[61]: [0]})
    assert isclose(LocalScores(frame, mbde()).local(61, 1), log(1 / 2))
    assert frame.names(1 << 61 | 1) == ("X0", "X61")


# --- constraints --------------------------------------------------------------------------------------------------

NAMES = ("A", "B", "C", "D")


def test_orders_blocks_and_roots_are_sets_of_allowed_parents() -> None:
    assert order_constraints(NAMES, "CADB").allowed == (0b0100, 0b1101, 0, 0b0101)
    assert block_constraints(NAMES, ["DB", "AC"]).allowed == (0b1110, 0b1000, 0b1011, 0b0010)
    assert root_constraints(NAMES, "BD").allowed == (0b1110, 0, 0b1011, 0)
    assert free_constraints(4).allowed == (0b1110, 0b1101, 0b1011, 0b0111)
    assert free_constraints(4).max_parents == 3
    assert root_constraints(NAMES, "BD", max_parents=2).max_parents == 2
    assert free_constraints(4).with_roots(0b1010) == root_constraints(NAMES, "BD")


def test_what_comes_earlier_is_remembered() -> None:
    assert free_constraints(4).earlier == arc_constraints(NAMES, blacklist=[("A", "B")]).earlier == (0, 0, 0, 0)
    assert order_constraints(NAMES, "CADB").earlier == (0b0100, 0b1101, 0, 0b0101)
    assert block_constraints(NAMES, ["DB", "AC"]).earlier == (0b1010, 0, 0b1010, 0)
    assert root_constraints(NAMES, "BD").earlier == (0b1010, 0, 0b1010, 0)
    assert block_constraints(NAMES, ["DB", "AC"]).with_roots(0b1100).earlier == (0b1110, 0b1000, 0b1010, 0)


def test_a_whitelisted_arc_wins_over_the_blacklist_and_forbids_its_reverse() -> None:
    constraints = arc_constraints(NAMES, blacklist=[("A", "B"), ("C", "D")], whitelist=[("A", "B")])
    assert constraints.allowed == (0b1100, 0b1101, 0b1011, 0b0011)
    assert constraints.required == (0, 1, 0, 0)


@pytest.mark.parametrize(
    ("whitelist", "message"),
    [
        ([("A", "B"), ("B", "A")], "A -> B and its reverse"),
        ([("A", "A")], "A -> A and its reverse"),
        ([("A", "B"), ("B", "C"), ("C", "A")], "close a cycle"),
    ],
)
def test_impossible_whitelists_are_refused(whitelist: list[tuple[str, str]], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        arc_constraints(NAMES, whitelist=whitelist)


def test_blocks_that_are_no_partition_are_refused() -> None:
    for blocks in (["AB", "C"], ["ABC", "CD"]):
        with pytest.raises(ValueError, match="not a partition"):
            block_constraints(NAMES, blocks)


def test_disclosures_become_constraints() -> None:
    order, blocks, roots = tuple("CADB"), (("A", "C"), ("B", "D")), ("A", "C")
    assert disclosed_constraints(Ordered(order, ("C",)), NAMES).allowed == (0b0100, 0b1101, 0, 0b0101)
    assert disclosed_constraints(Blocks(blocks, roots), NAMES).allowed == (0, 0b1101, 0, 0b0111)
    assert disclosed_constraints(HiddenOrder(NAMES, roots), NAMES).allowed == (0, 0b1101, 0, 0b0111)
    assert disclosed_constraints(HiddenRoots(NAMES, 2), NAMES, max_parents=1) == free_constraints(4, max_parents=1)


@given(st.permutations(NAMES))
@settings(deadline=None)
def test_an_order_admits_its_chain_and_no_longer_one(order: list[str]) -> None:
    constraints = order_constraints(NAMES, order, max_parents=1)
    frame = frame_from_rows(NAMES, [])
    assert constraints.admits(frame.dag({v: [u] for u, v in pairwise(order)}))
    assert not constraints.admits(frame.dag({u: [v] for u, v in pairwise(order)}))
    assert not constraints.admits(frame.dag({order[3]: order[:2]}))


@pytest.mark.parametrize("name", ["bde", "bds", "k2", "bdj", "bic", "aic"])
@pytest.mark.parametrize("levels", [(2, 3, 1, 4, 2), (2,) * 7])
def test_dense_counts_and_refined_rows_have_the_same_scores(
    name: str, levels: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(len(levels))
    codes = np.array([rng.integers(0, num_values, 4_000) for num_values in levels], np.int32)
    codes[:, :2_500] = codes[:, :1]  # a pattern of more rows than terms are remembered of
    clamped = np.where(rng.random(4_000) < 0.3, np.uint64(2), np.uint64(0))
    frame = frame_of_codes([f"c{k}" for k in range(len(levels))], levels, codes, clamped)
    tables = []
    for is_dense in (True, False):
        monkeypatch.setattr(LevelScores, "_has_dense_counts", lambda self, size, is_dense=is_dense: is_dense)
        scores = LevelScores(frame, LevelScore(name), Knowledge().check(frame.variables))
        tables.append(scores.scored_sets()[1])
    assert np.isfinite(tables[0]).sum() == len(levels) << (len(levels) - 1)
    np.testing.assert_allclose(tables[0], tables[1], rtol=1e-13, atol=1e-10)


@pytest.mark.parametrize("clamped", [(0, 0, 0, 0), (1, 0, 0, 0), (1, 2, 3, 0)])
def test_tables_with_and_without_set_rows_need_one_kernel(clamped: tuple[int, ...]) -> None:
    """An array that is not contiguous is another type, for which everything is compiled again."""
    codes = np.array([[0, 1, 0, 1], [0, 0, 1, 1]], np.int32)
    frame = frame_of_codes(["a", "b"], (2, 2), codes, np.array(clamped, np.uint64))
    levels = LevelScores(frame, LevelScore("bde"), Knowledge().check(frame.variables))._levels
    assert all(array.flags.c_contiguous for array in levels if isinstance(array, np.ndarray))


@pytest.mark.parametrize("name", ["bde", "bds", "k2", "bic"])
@pytest.mark.parametrize("levels", [(4, 3, 3, 2, 2, 2), (2,) * 7])
@pytest.mark.parametrize("is_dense", [True, False])
def test_scores_of_limited_sets_are_those_of_their_definition(
    name: str, levels: tuple[int, ...], is_dense: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counts of sets larger than the limit must not reach the terms that are remembered of smaller ones."""
    rng = np.random.default_rng(7)
    codes = np.array([rng.integers(0, num_values, 80) for num_values in levels], np.int32)
    clamped = np.where(rng.random(80) < 0.3, np.uint64(2), np.uint64(0))
    frame = frame_of_codes([f"c{k}" for k in range(len(levels))], levels, codes, clamped)
    monkeypatch.setattr(LevelScores, "_has_dense_counts", lambda self, size: is_dense)
    limit = Knowledge((Statement("max-parents", "test", limits=(("", 1),)),)).check(frame.variables)
    score = LevelScore(name)
    masks, scores = LevelScores(frame, score, limit).scored_sets()
    for child, number in zip(*np.nonzero(np.isfinite(scores)), strict=True):
        expected = family_score(frame, score, int(child), int(masks[number]))
        assert scores[child, number] == pytest.approx(expected, abs=1e-9)
    assert np.isfinite(scores).sum() == len(levels) ** 2


@pytest.mark.parametrize("name", ["bde", "bds", "k2", "bic"])
@pytest.mark.parametrize("levels", [(3, 2, 1, 4), (2,) * 5])
@pytest.mark.parametrize("is_dense", [True, False])
def test_rows_in_which_each_column_was_set_are_taken_out_of_its_counts(
    name: str, levels: tuple[int, ...], is_dense: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counts of 1,500 fall below those that are remembered where the column was set; some rows set all columns."""
    rng = np.random.default_rng(3)
    codes = np.array([rng.integers(0, num_values, 1_700) for num_values in levels], np.int32)
    codes[:, :1_500] = codes[:, :1]
    clamped = np.array([sum(1 << v for v in range(len(levels)) if rng.random() < 0.2) for _ in range(1_700)], np.uint64)
    clamped[:700] = 1
    clamped[-5:] = (1 << len(levels)) - 1
    frame = frame_of_codes([f"c{k}" for k in range(len(levels))], levels, codes, clamped)
    monkeypatch.setattr(LevelScores, "_has_dense_counts", lambda self, size: is_dense)
    for iss in (0.01, 1.0, 100.0):
        score = LevelScore(name, iss)
        masks, scores = LevelScores(frame, score, Knowledge().check(frame.variables)).scored_sets()
        assert np.isfinite(scores).sum() == len(levels) << (len(levels) - 1)
        for child, number in zip(*np.nonzero(np.isfinite(scores)), strict=True):
            expected = family_score(frame, score, int(child), int(masks[number]))
            assert scores[child, number] == pytest.approx(expected, rel=1e-12, abs=1e-9)


@pytest.mark.parametrize(("name", "score"), [("bde", bde()), ("bds", bds()), ("k2", k2()), ("bdj", bdj())])
def test_scores_of_levels_are_those_of_packed_columns_where_all_have_two_values(name: str, score: NetworkScore) -> None:
    rng = np.random.default_rng(11)
    codes, clamped = rng.integers(0, 2, (4, 30)).astype(np.int32), rng.choice([0, 0, 1, 4], 30).astype(np.uint64)
    words = (codes.astype(np.uint64) << np.arange(4, dtype=np.uint64)[:, None]).sum(axis=0, dtype=np.uint64)
    packed = LocalScores(Frame(NAMES, words, clamped), Interventional(score))
    frame = frame_of_codes(NAMES, (2,) * 4, codes, clamped)
    for child in range(4):
        for parents in range(16):
            if not parents >> child & 1:
                expected = packed.local(child, parents)
                assert family_score(frame, LevelScore(name), child, parents) == pytest.approx(expected, abs=1e-9)
