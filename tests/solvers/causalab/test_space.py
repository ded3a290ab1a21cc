"""The version space of weighted DAGs against enumeration, and the contract of spaces."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import cache
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrant.dsl.causalab.configs import View, item_of_config
from calibrant.dsl.causalab.episode import LabEpisode
from calibrant.dsl.causalab.generation import PLANS, Plan, generate_items
from calibrant.dsl.causalab.item import Bases, Family, LabItem, Name, Terms, Weights, lab_item
from calibrant.dsl.causalab.mechanism import FREQUENCY, Equation, Mechanism
from calibrant.dsl.causalab.reference import Reading
from calibrant.solvers.causalab.evidence import Evidence, evidence_of, predict_frequency
from calibrant.solvers.causalab.experiments import candidates
from calibrant.solvers.causalab.space import MAX_LISTED, WeightedDags, weighted_dags
from calibrant.solvers.outcome import BudgetSpent
from tests.support.benchmarks.causalab import LINEAR, key, members_by_reference, released_suite
from tests.support.effort import examples


def after_settings(item: LabItem, names: tuple[str, ...]) -> Evidence:
    episode = LabEpisode(item)
    for i, name in enumerate(names):
        episode.act({"set": name, "value": 100 - 37 * i})
    return evidence_of(item.task, episode.steps)


def items_of(plan: Plan, count: int = 6) -> list[LabItem]:
    return list(generate_items(plan, 11, count))


@pytest.mark.parametrize("bounded", [False, True])
@pytest.mark.parametrize("reading", Reading)
def test_three_nodes_count_as_enumeration_does(bounded: bool, reading: Reading) -> None:
    for item in items_of(Plan("3nodes", 3, reading=reading)):
        for names in [(), item.task.properties[:1], item.task.properties[1:], item.task.properties * 2]:
            evidence = after_settings(item, names)
            space = weighted_dags(evidence, bounded=bounded)
            expected = members_by_reference(evidence, bounded=bounded)
            assert {key(m) for m in space.members()} == expected
            assert space.count == len(expected)


@pytest.mark.parametrize("bounded", [False, True])
def test_four_nodes_and_frequency_parents_count_as_enumeration_does(bounded: bool) -> None:
    plans = [(Plan("4nodes", 4), 1), (Plan("3nodes_freqparent", 3, freq_parent=True), 5)]
    for item in [item for plan, count in plans for item in items_of(plan, count)]:
        evidence = after_settings(item, item.task.properties[:1])
        space = weighted_dags(evidence, bounded=bounded)
        expected = members_by_reference(evidence, bounded=bounded)
        assert {key(m) for m in space.members()} == expected
        assert space.count == len(expected)


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
            Plan("base", 5, reading=Reading.BASE),
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
