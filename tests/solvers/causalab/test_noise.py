"""The space of noisy laboratories: the truth stays, counts agree with enumeration, decisions are right."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrant.dsl.causalab.episode import LabEpisode
from calibrant.dsl.causalab.generation import PLANS, NoisePlan, Plan, generate_items
from calibrant.dsl.causalab.item import LabItem
from calibrant.dsl.causalab.mechanism import FREQUENCY
from calibrant.solvers.causalab import noisy
from calibrant.solvers.causalab.evidence import Evidence, evidence_of, predict_frequency
from calibrant.solvers.causalab.experiments import solve_noisy_by_experiments
from calibrant.solvers.causalab.noisy import SCALES, NoisyDags, noisy_dags
from calibrant.solvers.outcome import BudgetSpent, Found
from tests.support.benchmarks.causalab import items
from tests.support.effort import examples

HIDDEN = tuple(suite for suite in PLANS if "hidden" in suite)


def members_by_definition(evidence: Evidence) -> int:
    """Mechanisms of three nodes, shifted nodes, scales and draws for which every change is explained, one by one."""
    a, b, f = range(3)
    noisy = [i for i, seen in enumerate(evidence.observations) if seen.noisy]
    count = 0
    for w_ab, w_ba, w_af, w_bf in product(range(4), repeat=4):
        if (w_ab and w_ba) or not (w_af or w_bf):
            continue
        parents = {a: {b: w_ba}, b: {a: w_ab}, f: {a: w_af, b: w_bf}}
        changes = [
            (node, i, j, base(evidence, parents[node], node, i) - base(evidence, parents[node], node, j))
            for node in (a, b, f)
            for stretch in evidence.stretches(node)
            for i, j in zip(stretch[1:], stretch, strict=False)
        ]
        for shifted in product((0, 1), repeat=3):
            if not any(shifted):
                continue
            for scale, drawn in product(SCALES, product((-1, 0, 1), repeat=len(noisy))):
                draws = dict(zip(noisy, drawn, strict=True))
                count += all(
                    abs(change - shifted[node] * scale * (draws.get(i, 0) - draws.get(j, 0))) < 1e-6
                    for node, i, j, change in changes
                )
    return count


def base(evidence: Evidence, parents: dict[int, int], node: int, reading: int) -> float:
    row = evidence.observations[reading].values
    return row[node] - sum(weight * row[parent] for parent, weight in parents.items())


@pytest.mark.parametrize("seed", range(6))
def test_three_nodes_count_as_the_definition_does(seed: int) -> None:
    plan = Plan("3nodes_hidden", 3, noise=NoisePlan(1 + seed % 2, frequency=seed % 3 == 0, scale=SCALES[seed % 3]))
    item = next(generate_items(plan, seed, 1))
    episode = LabEpisode(item)
    for i, name in enumerate(item.task.properties * 2):
        evidence = evidence_of(item.task, episode.steps)
        assert noisy_dags(evidence).count == members_by_definition(evidence)
        if i < 3:
            episode.act({"set": name, "value": 50 - 13 * i})


@settings(max_examples=examples(40), deadline=None)
@given(items(HIDDEN), st.lists(st.tuples(st.integers(0, 2), st.integers(0, 100)), min_size=6, max_size=8))
def test_the_truth_is_a_member_and_following_is_recounting(item: LabItem, chosen: list[tuple[int, int]]) -> None:
    episode, truth = LabEpisode(item), item.sealed.mechanism
    space = noisy_dags(evidence_of(item.task))
    for number, value in chosen:
        name = item.task.properties[number]
        step = episode.act({"set": name, "value": value})
        assert step.reading is not None
        space = space.after((name, float(value)), step.reading)
        assert space.fits(truth)
    assert space.count == noisy_dags(evidence_of(item.task, episode.steps)).count
    verdicts = space.verdicts()
    assert sum(verdicts.values()) == space.count
    assert predict_frequency(truth, space.evidence) in verdicts
    assert item.sealed.noise is not None
    noise = (
        tuple(round(100 * value) for value in item.sealed.noise.values),
        tuple(n for n in item.task.nodes if n in item.sealed.noise.affected),
    )
    assert noise in space.noises(truth)
    if space.graph_decided:
        assert space.certain_edges == truth.edges


def test_mechanisms_are_listed_once_each() -> None:
    item = next(generate_items(PLANS["4nodes_hidden_n1"], 1, 1))
    episode = LabEpisode(item)
    for i, name in enumerate(item.task.properties * 3):
        episode.act({"set": name, "value": 10 + 37 * i % 100})
    space = noisy_dags(evidence_of(item.task, episode.steps))
    listed = space.mechanisms()
    assert [m.edges for m in listed] == [item.sealed.mechanism.edges]
    assert all(space.fits(m) for m in listed)


def test_too_many_sequences_of_draws_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(noisy, "MAX_WORLDS", 1)
    item = next(generate_items(PLANS["4nodes_hidden_n1"], 1, 1))
    episode = LabEpisode(item)
    episode.act({"set": item.task.properties[0], "value": 3})
    with pytest.raises(BudgetSpent, match="outcomes of the draws"):
        noisy_dags(evidence_of(item.task, episode.steps))


def test_a_scale_outside_the_class_leaves_nothing_or_something_that_is_said() -> None:
    item = next(generate_items(replace(PLANS["4nodes_hidden_freqnode_n3"], noise=NoisePlan(3, True, 7.0)), 2, 1))
    episode = LabEpisode(item)
    space: NoisyDags = noisy_dags(evidence_of(item.task))
    for _ in range(8):
        step = episode.act({"set": item.task.properties[0], "value": 40})
        assert step.reading is not None
        space = space.after((item.task.properties[0], 40.0), step.reading)
    assert space.count == 0
    assert not space.graph_decided
    assert FREQUENCY in space.in_words


@pytest.mark.parametrize("suite", HIDDEN)
def test_few_settings_suffice_where_bases_are_known_to_be_drawn(suite: str) -> None:
    used = []
    for item in generate_items(PLANS[suite], 12, 40):
        episode = LabEpisode(item)
        outcome = solve_noisy_by_experiments(episode)
        assert isinstance(outcome, Found)
        assert outcome.value.frequency == item.sealed.target
        assert not outcome.value.unique or outcome.value.mechanism.edges == item.sealed.mechanism.edges
        used.append(len(episode.steps))
    assert sum(used) / len(used) < 1


@settings(max_examples=examples(25), deadline=None)
@given(items(HIDDEN), st.lists(st.integers(0, 2), max_size=5))
def test_known_draws_of_bases_keep_the_truth_and_never_more_than_without(item: LabItem, chosen: list[int]) -> None:
    episode = LabEpisode(item)
    for number in chosen:
        episode.act({"set": item.task.properties[number], "value": 30 + 17 * number})
    evidence = evidence_of(item.task, episode.steps)
    bounded = noisy_dags(evidence, bounded=True)
    assert bounded.fits(item.sealed.mechanism)
    assert bounded.count <= noisy_dags(evidence).count
    assert "integers" in bounded.in_words
