"""Attribution under hidden noise: the law that the item has, the laboratory's own rules, a posterior that decides."""

from __future__ import annotations

from dataclasses import replace

import pytest

from calibrant.audits.attribution import DECIDED_AT, Kind
from calibrant.audits.causalab.attribution import (
    attribute_run,
    frequency_posterior,
    graph_posterior,
    run_space,
    space_of,
    trajectory,
)
from calibrant.baselines.causalab.rows import ROWS, play
from calibrant.bench.causalab.benchmark import BENCHMARK
from calibrant.bench.pages.capabilities import EPISODE_VIEWS
from calibrant.dsl.causalab.episode import LabEpisode
from calibrant.dsl.causalab.generation import PLANS, generate_items
from calibrant.dsl.causalab.item import LabItem, Weights
from calibrant.dsl.causalab.mechanism import Draw
from calibrant.dsl.errors import CalibrantError
from calibrant.solvers.outcome import BudgetSpent
from tests.support.effort import examples

SUITE = PLANS["4nodes_hidden_n1"]


def with_noise(item: LabItem, values: tuple[float, ...], draw: Draw = Draw.SHARED, weight: float = 1.0) -> LabItem:
    assert item.sealed.noise is not None
    noise = replace(item.sealed.noise, values=values, draw=draw, weight=weight)
    return replace(item, sealed=replace(item.sealed, noise=noise))


def ran(item: LabItem, row: str = "exact") -> LabEpisode:
    episode = LabEpisode(item)
    play(ROWS[row], episode, 0)
    return episode


@pytest.mark.parametrize(
    "values", [(-2.0, 0.0, 2.0), (-5.0, 0.0, 5.0), (-7.5, 0.0, 7.5), (-2.0, 0.0, 0.0, 2.0), (-0.5, 0.0, 0.5)], ids=str
)
def test_a_run_that_is_right_is_earned_whatever_the_scale(values: tuple[float, ...]) -> None:
    for made in generate_items(SUITE, 3, examples(5)):
        item = with_noise(made, values)
        found = attribute_run(item, ran(item).steps)
        assert (found.frequency.kind, found.graph.kind) == (Kind.EARNED, Kind.EARNED)
        assert min(found.frequency.members, found.graph.members) > 0
        assert not found.edges.contradicted


@pytest.mark.parametrize("values", [(-4.0, -2.0, 0.0, 2.0, 4.0), (1.0,), (0.0, 3.0), (-1e3, 1e3)], ids=str)
def test_no_law_leaves_a_run_without_a_member(values: tuple[float, ...]) -> None:
    for made in generate_items(SUITE, 5, examples(3)):
        item = with_noise(made, values)
        episode = LabEpisode(item)
        for k, name in enumerate(item.task.properties * 2):
            episode.act({"set": name, "value": 20 + 31 * k % 100})
            found = attribute_run(item, episode.steps)
            assert found.frequency.members > 0
            assert found.edges.contradicted == frozenset()
            space = run_space(item, episode.steps)
            assert item.sealed.mechanism.edges <= space.possible_edges


@pytest.mark.parametrize("draw", [Draw.INDEPENDENT, Draw.OBSERVED])
def test_draws_that_are_not_shared_are_refused_and_not_attributed_to_nothing(draw: Draw) -> None:
    item = with_noise(next(generate_items(SUITE, 1, 1)), (-5.0, 0.0, 5.0), draw)
    episode = ran(item, "total-effects")
    assert any(step.cost for step in episode.steps)
    with pytest.raises(BudgetSpent, match="one draw for all affected nodes"):
        attribute_run(item, episode.steps)
    with pytest.raises(BudgetSpent, match="one draw for all affected nodes"):
        trajectory(item, episode.steps)
    assert attribute_run(item, ()).frequency.members > 0  # nothing noisy was read yet


def test_what_the_class_does_not_hold_is_refused() -> None:
    made = next(generate_items(SUITE, 1, 1))
    for item, why in (
        (with_noise(made, (-0.001, 0.001)), "multiples of 0.01"),
        (replace(made, task=replace(made.task, weights=Weights.HUNDREDTHS)), "weights in hundredths"),
    ):
        with pytest.raises(BudgetSpent, match=why):
            attribute_run(item, ran(made, "total-effects").steps)


def test_readings_that_nothing_explains_are_refused() -> None:
    item = next(generate_items(SUITE, 1, 1))
    steps = list(ran(item, "total-effects").steps)
    place = next(i for i, step in enumerate(steps) if step.cost)
    assert steps[place].reading is not None
    false = {name: value + 0.37 for name, value in (steps[place].reading or {}).items()}
    steps[place] = replace(steps[place], reading=false)
    with pytest.raises(BudgetSpent, match="no member of the class explains the readings"):
        attribute_run(item, steps)


def test_the_rules_of_the_laboratory_decide_what_the_larger_class_leaves_open() -> None:
    """A property that is set and reads what it was set to had a draw of 0, unless nothing shifts it."""
    gained = 0
    for item in generate_items(PLANS["4nodes_hidden_n2"], 11, 12):
        episode = LabEpisode(item)
        for name in item.task.properties:
            episode.act({"set": name, "value": 100 if item.task.baseline[name] <= 50 else 0})
            before, after = space_of(item.task, episode.steps), run_space(item, episode.steps)
            assert after.count <= before.count
            assert after.certain_edges >= before.certain_edges
            gained += after.graph_decided and not before.graph_decided
    assert gained > 0


def test_a_posterior_of_99_per_cent_decides_and_steps_count_from_where_it_stays() -> None:
    below = 0
    for item in generate_items(PLANS["4nodes_hidden_n1"], 2, 5):
        episode = LabEpisode(item)
        shares = []
        for k, name in enumerate(item.task.properties * 3):
            episode.act({"set": name, "value": 15 + 37 * k % 100})
            space = run_space(item, episode.steps)
            share = graph_posterior(space)
            assert share is not None
            shares.append(share)
            found = attribute_run(item, episode.steps)
            assert found.graph.posterior == share
            assert found.graph.decided == (share >= DECIDED_AT)
            assert found.frequency.posterior == frequency_posterior(space)
            below += 0.5 < share < DECIDED_AT
            if found.graph_decided:
                assert all(share >= DECIDED_AT for share in shares[found.graph_decided - 1 :])
                assert found.graph_decided == 1 or shares[found.graph_decided - 2] < DECIDED_AT
    assert below > 0
    assert attribute_run(next(generate_items(PLANS["4nodes"], 2, 1)), ()).graph.posterior is None


def test_a_run_without_a_space_has_no_picture_and_one_line_says_why() -> None:
    item = with_noise(next(generate_items(SUITE, 1, 1)), (-5.0, 0.0, 5.0), Draw.INDEPENDENT)
    steps = ran(item, "total-effects").steps
    assert BENCHMARK.attribution(item, {}, steps, {}) is None
    with pytest.raises(CalibrantError, match="no picture: only noise with one draw for all affected nodes"):
        BENCHMARK.require(EPISODE_VIEWS).text(item, steps, "m")
    with pytest.raises(CalibrantError, match="no picture: only noise with one draw for all affected nodes"):
        BENCHMARK.require(EPISODE_VIEWS).page(item, [("m", steps)])
