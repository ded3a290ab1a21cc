"""The version space of weighted DAGs against enumeration; the exact solvers on every suite."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrant.dsl.causalab.configs import View, item_of_config
from calibrant.dsl.causalab.episode import LabEpisode
from calibrant.dsl.causalab.generation import PLANS, NoisePlan, Plan, generate_items
from calibrant.dsl.causalab.item import Bases, Family, LabItem, Name, Terms, Weights, lab_item
from calibrant.dsl.causalab.mechanism import FREQUENCY, Draw, Equation, Mechanism, accurate, hypothesis, state_mechanism
from calibrant.dsl.causalab.reference import SettingMeaning
from calibrant.dsl.causalab.score import HypothesisScore, Scorer
from calibrant.solvers.causalab.evidence import Answer, Evidence, evidence_of, predict_frequency, submit_answer
from calibrant.solvers.causalab.exact import solve
from calibrant.solvers.causalab.experiments import candidates, solve_by_experiments
from calibrant.solvers.causalab.space import MAX_LISTED, WeightedDags, weighted_dags
from calibrant.solvers.outcome import BudgetSpent, Found, Impossible, Outcome, OutOfBudget
from tests.support.benchmarks.causalab import (
    LINEAR,
    SUITES,
    TwinEpisode,
    fitting_mechanisms,
    items,
    key,
    keys_of,
    members_by_reference,
    released_suite,
)
from tests.support.effort import examples


# --- The version space of weighted DAGs against enumeration, and the contract of spaces -------------------------------
def after_settings(item: LabItem, names: tuple[str, ...]) -> Evidence:
    episode = LabEpisode(item)
    for i, name in enumerate(names):
        episode.act({"set": name, "value": 100 - 37 * i})
    return evidence_of(item.task, episode.steps)


def items_of(plan: Plan, count: int = 6) -> list[LabItem]:
    return list(generate_items(plan, 11, count))


def check_by_enumeration(evidence: Evidence) -> None:
    """Compare both spaces, bounded or not, with one enumeration."""
    fitting = fitting_mechanisms(evidence)
    for bounded in (False, True):
        space, expected = weighted_dags(evidence, bounded=bounded), keys_of(fitting, evidence, bounded=bounded)
        assert {key(m) for m in space.members()} == expected
        assert space.count == len(expected)


@pytest.mark.parametrize("reading", SettingMeaning)
def test_three_nodes_count_as_enumeration_does(reading: SettingMeaning) -> None:
    for item in items_of(Plan("3nodes", 3, reading=reading)):
        for names in [(), item.task.properties[:1], item.task.properties[1:], item.task.properties * 2]:
            check_by_enumeration(after_settings(item, names))


def test_four_nodes_and_frequency_parents_count_as_enumeration_does() -> None:
    plans = [(Plan("4nodes", 4), 1), (Plan("3nodes_freqparent", 3, freq_parent=True), 2)]
    for item in [item for plan, count in plans for item in items_of(plan, count)]:
        check_by_enumeration(after_settings(item, item.task.properties[:1]))


@pytest.mark.parametrize("reading", SettingMeaning)
def test_bases_of_the_frequencys_children_are_bounded_by_what_each_member_predicts(reading: SettingMeaning) -> None:
    """Without records members may predict different frequencies, so the reactor crystal bounds each in another way."""
    plan, num_undecided = Plan("3nodes", 3, records=0, freq_parent=True, reading=reading), 0
    for item in [items_of(plan, 60)[i] for i in (10, 48, 54, 58)]:
        start = weighted_dags(evidence_of(item.task), bounded=True)
        name, episode = item.task.properties[0], LabEpisode(item)
        after = start.after((name, 100.0), episode.act({"set": name, "value": 100.0}).reading or {})
        for space in (start, after, weighted_dags(evidence_of(item.task, episode.steps), bounded=True)):
            members, expected = list(space.members()), members_by_reference(space.evidence, bounded=True)
            assert len(members) == space.count == len(expected)
            assert {key(member) for member in members} == expected
            assert space.verdicts() == Counter(predict_frequency(member, space.evidence) for member in members)
            assert space.edge_counts == Counter(edge for member in members for edge in member.edges)
            graphs = Counter(member.edges for member in members)
            assert {graph: space.having_graph(graph) for graph in graphs} == graphs
            loose = list(weighted_dags(space.evidence, bounded=False).members())
            assert {key(member) for member in loose if space.fits(member)} == expected
            assert {key(member) for member in space.sample(np.random.default_rng(1), 20)} <= expected
            num_undecided += len(graphs) > 1 and len(space.verdicts()) > 1
    assert num_undecided >= 3


@pytest.mark.parametrize("bounded", [False, True])
def test_a_frequency_that_never_moves_may_have_no_parent(bounded: bool) -> None:
    bases = Bases(({"a": 3.0, "b": 4.0},), {"a": 5.0, "b": 6.0}, {"a": 7.0, "b": 8.0})
    mechanism = Mechanism({"a": Equation(), "b": Equation(), FREQUENCY: Equation((), 20.0)})
    item = lab_item(Name("x", "s"), Terms(Family.LINEAR, 4), mechanism, bases)
    for names in [(), item.task.properties]:
        evidence = after_settings(item, names)
        space = weighted_dags(evidence, bounded=bounded)
        assert space.fits(mechanism)
        assert {key(m) for m in space.members()} == members_by_reference(evidence, bounded=bounded)


def test_five_nodes_count_as_the_enumeration_of_their_properties_does() -> None:
    """The frequency is a sink, so its vectors multiply; the properties' weightings are tried one by one."""
    (item,) = items_of(Plan("5nodes", 5), 1)
    evidence = after_settings(item, item.task.properties[1:2])
    space = weighted_dags(evidence, bounded=False)
    properties = item.task.properties
    table = evidence.table
    rows = {node: evidence.differences(i) for i, node in enumerate(evidence.nodes)}

    @cache
    def explained(i: int, terms: tuple[tuple[int, int], ...]) -> bool:
        own = rows[properties[i]]
        return np.allclose(own[:, i], sum((w * own[:, p] for p, w in terms), start=np.zeros(len(own))))

    fitting = sum(
        all(explained(i, tuple(own.items())) for i, own in enumerate(terms)) for terms in acyclic_weightings(properties)
    )
    vectors = [np.array(v) for v in product(range(4), repeat=4)]
    frequency = sum(np.ptp(table[:, 4] - table[:, :4] @ v) < 1e-9 for v in vectors)
    assert space.count == fitting * frequency


def acyclic_weightings(nodes: tuple[str, ...]) -> Iterator[list[dict[int, int]]]:
    """Every weighting of an acyclic graph, by numbers: orders are tried so that each graph comes once."""
    pairs = [(p, c) for p in range(len(nodes)) for c in range(len(nodes)) if p != c]
    for mask in range(1 << len(pairs)):
        edges = [pair for i, pair in enumerate(pairs) if mask >> i & 1]
        if is_acyclic(len(nodes), edges):
            for weights in product((1, 2, 3), repeat=len(edges)):
                terms: list[dict[int, int]] = [{} for _ in nodes]
                for (p, c), w in zip(edges, weights, strict=True):
                    terms[c][p] = w
                yield terms


def is_acyclic(n: int, edges: list[tuple[int, int]]) -> bool:
    left = set(range(n))
    while left:
        free = {v for v in left if not any(p in left for p, c in edges if c == v)}
        if not free:
            return False
        left -= free
    return True


@pytest.mark.parametrize(("k", "count"), [(3, 7), (4, 289), (6, 69_711_361), (7, 367_404_658_687)])
def test_nothing_but_the_order_of_magnitude_is_known_of_a_graph_before_any_setting(k: int, count: int) -> None:
    """Where records decide the frequency, what is left are all weighted DAGs of the properties (printed figures)."""
    item = item_of_config(released_suite(f"{k}nodes")[0], 0)
    assert weighted_dags(evidence_of(item.task), bounded=False).count == count


PLANNED = st.builds(
    lambda plan, seed: next(generate_items(plan, seed, 1)),
    st.sampled_from(
        [
            *(PLANS[suite] for suite in LINEAR),
            PLANS["4nodes_freqparent"],
            PLANS["6nodes_freqparent"],
            Plan("base", 5, reading=SettingMeaning.BASE),
            Plan("roots", 5, view=View.ROOTS),
            Plan("hide", 4, view=View.HIDE_ONE),
        ]
    ),
    st.integers(0, 10**6),
)


@settings(max_examples=examples(60), deadline=None)
@given(PLANNED, st.booleans(), st.data())
def test_the_truth_is_a_member_after_any_settings_and_counts_never_grow(
    item: LabItem, bounded: bool, data: st.DataObject
) -> None:
    episode, truth = LabEpisode(item), item.sealed.mechanism
    space = weighted_dags(evidence_of(item.task), bounded=bounded)
    for _ in range(data.draw(st.integers(0, 4))):
        name = data.draw(st.sampled_from(item.task.properties))
        value = data.draw(st.floats(-300, 300) | st.integers(-5, 5) | st.just(1e14))
        step = episode.act({"set": name, "value": value})
        assert step.reading is not None
        before, space = space.count, space.after((name, value), step.reading)
        assert space.count <= before
    assert space.fits(truth)
    assert weighted_dags(evidence_of(item.task, episode.steps), bounded=bounded).fits(truth)
    if item.suite in ("roots", "hide") and space.count > MAX_LISTED:
        return  # frequencies that depend on properties that are not shown are found by listing
    counts = space.verdicts()
    assert sum(counts.values()) == space.count
    assert predict_frequency(truth, space.evidence) in counts


@settings(max_examples=examples(40), deadline=None)
@given(PLANNED)
def test_outcomes_partition_the_members(item: LabItem) -> None:
    space = weighted_dags(evidence_of(item.task), bounded=True)
    for setting in candidates(space):
        counts = space.outcomes(setting)
        assert sum(counts.values()) == space.count
        for reading, number in counts.items():
            assert space.after(setting, reading).count == number


@settings(max_examples=examples(40), deadline=None)
@given(PLANNED)
def test_an_outcome_is_what_the_member_reads_in_the_episode(item: LabItem) -> None:
    space = weighted_dags(evidence_of(item.task), bounded=True)
    index = [key(m) for m in space.members()].index(key(item.sealed.mechanism))
    for setting in candidates(space):
        step = LabEpisode(item).act({"set": setting[0], "value": setting[1]})
        assert step.reading is not None
        assert space.readings(setting)[index].tolist() == [step.reading[node] for node in item.task.nodes]


def test_draws_are_uniform_over_the_members() -> None:
    item = items_of(Plan("4nodes_freqparent", 4, freq_parent=True), 1)[0]
    space = weighted_dags(after_settings(item, item.task.properties[:1]), bounded=True)
    assert 2 <= space.count <= 40
    drawn = Counter(key(m) for m in space.sample(np.random.default_rng(0), 100 * space.count))
    assert len(drawn) == space.count
    assert all(60 < number < 140 for number in drawn.values())


def test_edges_are_counted_over_the_members() -> None:
    item = items_of(Plan("4nodes", 4), 1)[0]
    space = weighted_dags(evidence_of(item.task), bounded=False)
    expected = Counter(edge for member in space.members() for edge in member.edges)
    assert space.edge_counts == expected
    assert space.certain_edges == {edge for edge, n in expected.items() if n == space.count}
    assert space.possible_edges == set(expected)
    assert not space.graph_decided


def test_what_has_no_such_space_says_so() -> None:
    for plan in [PLANS["4nodes_quad_hard"], PLANS["4nodes_hidden_n1"], Plan("w", 4, weights=Weights.HUNDREDTHS)]:
        with pytest.raises(BudgetSpent):
            weighted_dags(evidence_of(items_of(plan, 1)[0].task), bounded=False)
    item = items_of(PLANS["7nodes"], 1)[0]
    with pytest.raises(BudgetSpent, match="written out"):
        list(weighted_dags(evidence_of(item.task), bounded=False).members())


def test_nothing_fits_readings_that_no_member_gives() -> None:
    item = items_of(PLANS["3nodes"], 1)[0]
    forged = {node: value + 0.37 for node, value in item.task.baseline.items()}
    name = item.task.properties[0]
    space: WeightedDags = weighted_dags(evidence_of(item.task), bounded=False).after((name, 50.0), forged)
    assert space.count == 0
    assert space.verdicts() == {}
    assert not space.graph_decided
    with pytest.raises(ValueError, match="no member"):
        space.sample(np.random.default_rng(0), 1)


# --- The exact solvers: full marks on every suite, answers from the readings alone, honest outcomes -------------------
def found(outcome: Outcome[Answer]) -> Answer:
    assert isinstance(outcome, Found), outcome
    return outcome.value


def scored(item: LabItem, answer: Answer) -> HypothesisScore:
    return Scorer(item.sealed.mechanism).score(hypothesis(state_mechanism(answer.mechanism)))


IDENTIFIED = tuple(s for s in SUITES if "freqparent" not in s and s != "6nodes_golden")


@settings(max_examples=examples(150), deadline=None)
@given(items(IDENTIFIED))
def test_generated_items_are_solved_completely(item: LabItem) -> None:
    outcome = solve(LabEpisode(item))
    if isinstance(outcome, OutOfBudget):  # six draws of zero in a row
        assert item.task.noise
        return
    answer = found(outcome)
    assert abs(answer.frequency - item.sealed.target) <= 0.02
    score = scored(item, answer)
    assert (score.distance.shd, score.all_edge.f1, score.all_weight.f1) == (0, 1, 1)
    assert answer.unique


@pytest.mark.parametrize("suite", SUITES)
def test_released_configs_are_solved_as_far_as_anything_can(suite: str) -> None:
    for made in released_suite(suite)[::5]:
        item = item_of_config(made, 1)
        episode = LabEpisode(item)
        answer = found(solve(episode))
        assert accurate(answer.frequency, item.sealed.target)
        score = scored(item, answer)
        offline = bool(made.trace) and len(made.trace) == 2
        assert score.freq_edge.f1 == 1
        assert score.distance.shd == 0 or "freqparent" in suite or offline
        assert not offline or score.all_edge.precision == 1
        assert len(episode.steps) <= item.task.allowance


@pytest.mark.parametrize(
    ("suite", "settings_made"), [(f"{k}nodes", k - 1) for k in range(3, 8)] + [("4nodes_quad_hard", 6)]
)
def test_settings_are_as_few_as_the_method_needs(suite: str, settings_made: int) -> None:
    for item in generate_items(PLANS[suite], 3, 10):
        episode = LabEpisode(item)
        found(solve(episode))
        assert len(episode.steps) == settings_made


@settings(max_examples=examples(60), deadline=None)
@given(items())
def test_answers_come_from_the_task_and_the_readings_alone(item: LabItem) -> None:
    """The twin knows the recorded steps only, and fails on any other action."""
    for solver in (solve, solve_by_experiments):
        episode = LabEpisode(item)
        first = solver(episode)
        if isinstance(first, Found):
            submit_answer(episode, first.value)
        twin = TwinEpisode(item.task, episode.steps, item.task.allowance)
        second = solver(twin)
        if isinstance(second, Found):
            submit_answer(twin, second.value)
        assert second == first
        assert twin.steps == list(episode.steps)


def test_no_solver_names_a_private_member_of_an_episode() -> None:
    folder = Path(__file__).resolve().parents[3] / "solvers" / "causalab"
    for path in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.startswith("__"):
                assert ast.unparse(node.value) in ("self", "cls"), f"{path.name}: {ast.unparse(node)}"
            if isinstance(node, ast.ImportFrom):
                assert node.module != "calibrant.dsl.causalab.records"
                assert not any(alias.name in ("Sealed", "LabItem") for alias in node.names)


@pytest.mark.parametrize("suite", ["4nodes_freqparent", "6nodes_freqparent"])
def test_frequency_parents_are_identified_up_to_what_reads_the_same(suite: str) -> None:
    for item in generate_items(PLANS[suite], 8, 25):
        answer = found(solve(LabEpisode(item)))
        assert answer.frequency == item.sealed.target
        score = scored(item, answer)
        assert score.freq_edge.f1 == 1
        assert score.distance.shd == 0 or not answer.unique


@pytest.mark.parametrize("reading", SettingMeaning)
@pytest.mark.parametrize("weights", Weights)
def test_both_readings_of_a_setting_and_fine_weights_are_solved(reading: SettingMeaning, weights: Weights) -> None:
    plan = Plan("6nodes", 6, weights=weights, reading=reading)
    for item in generate_items(plan, 9, 20):
        score = scored(item, found(solve(LabEpisode(item))))
        assert (score.distance.shd, score.all_weight.f1) == (0, 1)


@pytest.mark.parametrize("suite", LINEAR)
def test_the_experimenter_needs_fewer_settings_and_is_never_wrong_where_it_calls_its_answer_unique(suite: str) -> None:
    used = []
    for made in released_suite(suite):
        item = item_of_config(made, 2)
        episode = LabEpisode(item)
        answer = found(solve_by_experiments(episode))
        assert answer.unique
        assert scored(item, answer).distance.shd == 0
        assert answer.frequency == item.sealed.target
        used.append(len(episode.steps))
    printed = {"3nodes": 0.06, "4nodes": 0.36, "5nodes": 0.78, "6nodes": 1.16, "7nodes": 1.56}
    assert sum(used) / len(used) <= printed[suite] + 0.3  # 50 fresh crystals each


@pytest.mark.parametrize("reading", SettingMeaning)
def test_static_traces_mean_the_same_whatever_a_setting_would_mean(reading: SettingMeaning) -> None:
    for made in released_suite("4nodes_golden")[:10]:
        item = item_of_config(made, 0, reading=reading)
        answer = found(solve(LabEpisode(item)))
        assert scored(item, answer).distance.shd == 0
        assert weighted_dags(evidence_of(item.task), bounded=False).fits(made.mechanism)


def test_properties_that_cannot_be_set_are_worked_around_or_admitted() -> None:
    for item in generate_items(replace(PLANS["5nodes"], fixed=2), 1, 20):
        outcome = solve(LabEpisode(item))
        answer = found(outcome)
        assert not answer.unique or scored(item, answer).distance.shd == 0


def test_a_small_allowance_is_kept() -> None:
    for item in generate_items(replace(PLANS["7nodes"], allowance=1), 1, 10):
        episode = LabEpisode(item)
        answer = found(solve(episode))
        assert len(episode.steps) <= 1
        assert not answer.unique or scored(item, answer).distance.shd == 0


@pytest.mark.parametrize("draw", [Draw.INDEPENDENT, Draw.OBSERVED])
def test_noise_of_another_kind_is_not_explained_away(draw: Draw) -> None:
    """Either nothing of the class explains the readings, or what does is right about one affected node."""
    plan = replace(PLANS["4nodes_hidden_n2"], noise=NoisePlan(2, draw=draw))
    outcomes = [solve(LabEpisode(item)) for item in generate_items(plan, 5, 20)]
    assert any(isinstance(outcome, Impossible) for outcome in outcomes)


def test_without_noise_to_be_seen_the_noisy_solver_gives_up_honestly() -> None:
    item = next(generate_items(PLANS["4nodes_hidden_n1"], 0, 1))
    assert item.sealed.noise is not None
    silent = replace(item, sealed=replace(item.sealed, noise=replace(item.sealed.noise, values=(0.0,))))
    outcome = solve(LabEpisode(silent))  # no change is noise, so the plain settings may still leave one mechanism
    assert isinstance(outcome, OutOfBudget) or scored(silent, found(outcome)).distance.shd == 0


def test_the_submitted_answer_opens_the_reactor() -> None:
    item = item_of_config(released_suite("5nodes")[4], 0)
    episode = LabEpisode(item)
    submit_answer(episode, found(solve(episode)))
    assert episode.closed
    assert [s.reading["activated"] for s in episode.steps if s.reading and "activated" in s.reading] == [True]
    assert FREQUENCY in episode.task.baseline
    assert evidence_of(item.task, episode.steps).table.shape == (3 + 4, 5)
