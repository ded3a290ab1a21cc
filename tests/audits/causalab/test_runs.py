"""Attribution and trajectories of runs."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from calibrant.audits.attribution import Kind
from calibrant.audits.causalab.attribution import RunAttribution, attribute_run, space_of, trajectory
from calibrant.baselines.causalab.rows import ROWS, play
from calibrant.dsl.causalab.configs import View, item_of_config
from calibrant.dsl.causalab.episode import LabEpisode
from calibrant.dsl.causalab.generation import Plan, generate_items
from calibrant.dsl.causalab.hypothesis import state_mechanism
from calibrant.dsl.causalab.item import LabItem, Weights
from calibrant.dsl.causalab.mechanism import FREQUENCY
from calibrant.solvers.outcome import BudgetSpent
from tests.support.causalab.laboratories import LINEAR, items, released_suite
from tests.support.effort import examples

ENUMERATED = (
    *LINEAR[:4],
    "4nodes_freqparent",
    "4nodes_hidden_n1",
    "4nodes_hidden_freqnode_n2",
    "4nodes_golden",
    "4nodes_quad_hard",
)


def ran(row: str, item: LabItem) -> LabEpisode:
    episode = LabEpisode(item)
    play(ROWS[row], episode, 0)
    return episode


def attributed(row: str, item: LabItem) -> RunAttribution:
    return attribute_run(item, ran(row, item).steps)


@settings(max_examples=examples(40), deadline=None)
@given(items(ENUMERATED))
def test_the_exact_row_earns_what_its_evidence_decides(item: LabItem) -> None:
    found = attributed("exact", item)
    assert found.frequency.kind is not Kind.MISSED
    assert found.graph.kind is not Kind.MISSED
    if found.graph.decided:
        assert found.graph.kind is Kind.EARNED
        assert found.graph.fits
    assert found.graph.members >= 1


def test_what_a_run_was_shown_is_what_it_is_judged_by_whoever_was_judged_before() -> None:
    for suite in ("3nodes", "4nodes"):
        item = item_of_config(released_suite(suite)[7], 0)
        steps = ran("exact", item).steps
        first = next(number for number, step in enumerate(steps, 1) if step.cost)
        counts = [attribute_run(item, shown).graph.members for shown in (steps, (), steps[:first], steps)]
        left = [space_of(item.task, shown).count for shown in (steps, (), steps[:first])]
        assert counts == [*left, left[0]]
        assert counts[0] < counts[1]


def test_kinds_tell_inference_from_evidence() -> None:
    item = item_of_config(released_suite("4nodes")[7], 0)
    assert attributed("exact", item).graph.kind is Kind.EARNED
    assert attributed("abstain", item).graph.kind is Kind.SHORT
    assert attributed("abstain", item).frequency.kind is Kind.EARNED
    assert attributed("mean", item).frequency.kind is Kind.MISSED
    assert attributed("mean", item).frequency.fits is False
    assert attributed("prior", item).frequency.fits is None
    episode = LabEpisode(item)  # the truth without any evidence for it
    episode.act({"submit": {"hypothesis": state_mechanism(item.sealed.mechanism)}})
    found = attribute_run(item, episode.steps).graph
    assert (found.kind, found.fits) == (Kind.LUCKY, True)


def test_a_graph_of_no_member_does_not_fit() -> None:
    item = item_of_config(released_suite("4nodes")[7], 0)
    episode = ran("exact", item)
    assert attribute_run(item, episode.steps[:-1]).graph.fits is False  # the empty hypothesis
    assert attributed("random", item).graph.fits is False


def test_known_draws_of_bases_leave_fewer_members() -> None:
    item = item_of_config(released_suite("6nodes")[2], 0)
    steps = ran("abstain", item).steps
    free, bounded = (attribute_run(item, steps, bounded=b).graph for b in (False, True))
    assert bounded.members < free.members
    assert "integers from 0 to 100" in bounded.in_words


def test_classes_without_a_listed_space_say_so() -> None:
    (item,) = generate_items(Plan("fine", 4, weights=Weights.HUNDREDTHS), 0, 1)
    with pytest.raises(BudgetSpent):
        attributed("exact", item)


def test_frequencies_that_depend_on_what_is_not_shown_are_never_decided() -> None:
    for item in generate_items(Plan("hide", 4, view=View.HIDE_ONE), 0, 5):
        found = attribute_run(item, ran("greedy", item).steps, bounded=True)
        assert not found.frequency.decided
        assert found.graph.kind is Kind.EARNED


def test_a_trajectory_says_when_what_was_decided() -> None:
    item = item_of_config(released_suite("5nodes")[11], 0)
    found = trajectory(item, ran("exact", item).steps)
    assert found.frequency_decided == 0
    assert found.settings == 4
    assert found.graph_decided is not None
    assert found.wasted == 4 - found.graph_decided
    assert not found.premature
    assert found.edges.contradicted == found.edges.unproven == found.edges.missed == frozenset()
    assert [m.settings for m in found.moments] == [1, 2, 3, 4, 4, 4]
    members = [m.members for m in found.moments]
    assert members == sorted(members, reverse=True)
    assert members[-1] == 1
    assert found.moments[-1].reproduces
    assert found.moments[-1].score.distance.shd == 0
    assert not found.moments[0].equation_fits


def test_claims_are_contradicted_unproven_or_missed() -> None:
    item = item_of_config(released_suite("5nodes")[11], 0)
    total = trajectory(item, ran("total-effects", item).steps)
    assert not total.edges.contradicted & item.sealed.mechanism.edges
    assert not total.edges.missed
    abstaining = trajectory(item, ran("abstain", item).steps)
    assert abstaining.premature
    assert abstaining.edges.contradicted == abstaining.edges.unproven == frozenset()
    episode = LabEpisode(item)
    first, second = item.task.properties[:2]
    guess = {"edges": [{"from": first, "to": second}, {"from": FREQUENCY, "to": first}]}
    episode.act({"submit": {"hypothesis": guess}})
    found = trajectory(item, episode.steps)
    assert found.edges.unproven == {(first, second)}
    assert found.edges.contradicted == {(FREQUENCY, first)}
    assert all(child == FREQUENCY for _, child in found.edges.missed)


@settings(max_examples=examples(15), deadline=None)
@given(items(ENUMERATED))
def test_a_trajectory_and_an_attribution_say_the_same_of_a_run(item: LabItem) -> None:
    """The one looks at the evidence after every step, the other where it has to."""
    for row in ("exact", "total-effects", "abstain"):
        steps = ran(row, item).steps
        one, other = attribute_run(item, steps), trajectory(item, steps)
        assert one.edges == other.edges
        assert (one.frequency_decided, one.graph_decided) == (other.frequency_decided, other.graph_decided)
        assert (one.premature, one.wasted, len(one.settings)) == (other.premature, other.wasted, other.settings)


@settings(max_examples=examples(25), deadline=None)
@given(items(ENUMERATED))
def test_what_is_missed_or_contradicted_is_so_by_the_truth(item: LabItem) -> None:
    for row in ("greedy", "random", "total-effects"):
        found = trajectory(item, ran(row, item).steps)
        truth = item.sealed.mechanism.edges
        assert found.edges.missed <= truth
        assert not found.edges.contradicted & truth
        assert found.wasted >= 0
