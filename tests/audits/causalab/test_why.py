"""Kinds of CausaLab answers, and what readings of a laboratory leave, against enumerated mechanisms."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings

from calibrant.audits.attribution import DECIDED_AT, Kind
from calibrant.audits.causalab.attribution import (
    RunAttribution,
    attribute_run,
    frequency_posterior,
    graph_posterior,
    run_space,
    space_of,
    trajectory,
)
from calibrant.audits.causalab.why import explain
from calibrant.baselines.causalab.rows import ROWS, play
from calibrant.bench.causalab.benchmark import BENCHMARK
from calibrant.bench.core.registry import benchmark, bundled_sample
from calibrant.bench.pages.capabilities import EPISODE_VIEWS
from calibrant.dsl.causalab.configs import View, item_of_config
from calibrant.dsl.causalab.episode import LabEpisode
from calibrant.dsl.causalab.generation import PLANS, Plan, generate_items
from calibrant.dsl.causalab.item import LabItem, Weights
from calibrant.dsl.causalab.mechanism import FREQUENCY, Draw, Equation, Mechanism, Term, state_mechanism
from calibrant.dsl.errors import CalibrantError
from calibrant.solvers.causalab.evidence import EXACT, evidence_of, misfit
from calibrant.solvers.outcome import BudgetSpent
from tests.support.benchmarks.causalab import LINEAR, items, made_item, members_by_reference, released_suite
from tests.support.effort import examples

# --- Attribution and trajectories of runs -----------------------------------------------------------------------------
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
    assert found.moments[-1].equation_fits
    assert not found.moments[-1].contradicted
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


# --- Attribution under hidden noise: the law that the item has, the laboratory's own rules, a posterior that decides
SUITE = PLANS["4nodes_hidden_n1"]


def with_noise(item: LabItem, values: tuple[float, ...], draw: Draw = Draw.SHARED, weight: float = 1.0) -> LabItem:
    assert item.sealed.noise is not None
    noise = replace(item.sealed.noise, values=values, draw=draw, weight=weight)
    return replace(item, sealed=replace(item.sealed, noise=noise))


def ran_noisy(item: LabItem, row: str = "exact") -> LabEpisode:
    episode = LabEpisode(item)
    play(ROWS[row], episode, 0)
    return episode


@pytest.mark.parametrize(
    "values", [(-2.0, 0.0, 2.0), (-5.0, 0.0, 5.0), (-7.5, 0.0, 7.5), (-2.0, 0.0, 0.0, 2.0), (-0.5, 0.0, 0.5)], ids=str
)
def test_a_run_that_is_right_is_earned_whatever_the_scale(values: tuple[float, ...]) -> None:
    for made in generate_items(SUITE, 3, 2):
        item = with_noise(made, values)
        found = attribute_run(item, ran_noisy(item).steps)
        assert (found.frequency.kind, found.graph.kind) == (Kind.EARNED, Kind.EARNED)
        assert min(found.frequency.members, found.graph.members) > 0
        assert not found.edges.contradicted


@pytest.mark.parametrize("values", [(-4.0, -2.0, 0.0, 2.0, 4.0), (1.0,), (0.0, 3.0), (-1e3, 1e3)], ids=str)
def test_no_law_leaves_a_run_without_a_member(values: tuple[float, ...]) -> None:
    for made in generate_items(SUITE, 5, 2):
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
    episode = ran_noisy(item, "total-effects")
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
            attribute_run(item, ran_noisy(made, "total-effects").steps)


def test_readings_that_nothing_explains_are_refused() -> None:
    item = next(generate_items(SUITE, 1, 1))
    steps = list(ran_noisy(item, "total-effects").steps)
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
    steps = ran_noisy(item, "total-effects").steps
    assert BENCHMARK.attribution(item, {}, steps, {}) is None
    with pytest.raises(CalibrantError, match="no picture: only noise with one draw for all affected nodes"):
        BENCHMARK.require(EPISODE_VIEWS).text(item, steps, "m")
    with pytest.raises(CalibrantError, match="no picture: only noise with one draw for all affected nodes"):
        BENCHMARK.require(EPISODE_VIEWS).page(item, [("m", steps)])


# --- What readings of a laboratory leave, against mechanisms enumerated and run by the reference ----------------------
SEEDS = tuple(range(5))
POOL = benchmark("causalab").items.read_pool(bundled_sample("causalab"))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("num_settings", [0, 1])
def test_edges_and_settings_are_those_of_every_mechanism_that_fits(seed: int, num_settings: int) -> None:
    item = made_item("3nodes", seed)
    episode = LabEpisode(item)
    for name in item.task.settable[:num_settings]:
        episode.act({"set": name, "value": 0})
    why = explain(item, episode.steps)
    members = members_by_reference(evidence_of(item.task, episode.steps), bounded=False)
    assert int(why.count.lower) == len(members)
    edges = Counter(edge for member in members for edge in _edges(member))
    assert {(one.cause, one.effect): int(one.number) for one in why.edges} == dict(edges)
    assert (why.state == "decided") == (len(why.frequencies) == 1 and set(edges.values()) == {len(members)})
    for one in why.experiments:
        assert sum(int(outcome.remaining) for outcome in one.outcomes) == len(members)
    for name in item.task.settable:  # what a setting promises is what it leaves once it is done
        after = LabEpisode(item)
        for step in episode.steps:
            after.act(step.action)
        promised = next((one for one in why.experiments if one.in_words.startswith(f"set {name} to ")), None)
        if promised is None:
            continue
        step = after.act({"set": name, "value": float(promised.in_words.rpartition(" ")[2])})
        left = len(members_by_reference(evidence_of(item.task, after.steps), bounded=False))
        assert left in [int(outcome.remaining) for outcome in promised.outcomes]
        assert not step.refused


def _edges(member: tuple[Any, ...]) -> set[tuple[str, str]]:
    """Return the edges of a mechanism, from the key that the support module gives it."""
    return {(term[1], term[0]) for term in member[1]}


@pytest.mark.parametrize("seed", SEEDS[:3])
def test_the_reading_that_rules_an_edge_out_is_the_first_after_which_no_mechanism_has_it(seed: int) -> None:
    """Mechanisms are enumerated anew after each reading; the reactor's shown values are no reading."""
    item = made_item("3nodes", seed)
    episode = LabEpisode(item)
    episode.act({"set": item.task.settable[0], "value": 0})
    why, evidence = explain(item, episode.steps), evidence_of(item.task, episode.steps)
    possible = []
    for number in range(1, len(evidence.observations) + 1):
        first = evidence.observations[:number]
        crystals = {reading.crystal for reading in first}
        part = replace(evidence, observations=first, fresh=evidence.fresh & crystals)
        possible.append({edge for member in members_by_reference(part, bounded=False) for edge in _edges(member)})
    assert len(why.ruled_out) + len(why.edges) == len(evidence.nodes) * (len(evidence.nodes) - 1)
    for edge in why.ruled_out:
        pair = edge.cause, edge.effect
        assert all(pair not in edges for edges in possible[max(0, edge.reading - 1) :])
        if edge.reading > 1:
            assert pair in possible[edge.reading - 2]
        if edge.reading == 0:
            assert edge.cause == FREQUENCY


@pytest.mark.parametrize("seed", SEEDS[:3])
def test_pair_witness_and_sealed_column_hold_in_episodes(seed: int) -> None:
    """What a setting reads under each of the pair, and what it leaves here, is what an episode with it reads."""
    item = made_item("4nodes", seed)
    why = explain(item, (), reveal_sealed=True)
    assert why.pair is not None
    assert why.witness is not None
    assert why.true_edges == tuple(sorted(item.sealed.mechanism.edges))
    assert len({tuple(member.equations.values()) for member in why.pair}) == 2
    name, _, value = why.witness.in_words.removeprefix("set ").rpartition(" to ")
    for member, promised in zip(why.pair, (why.witness.first, why.witness.second), strict=True):
        mechanism = mechanism_in_words(member.equations)
        assert misfit(mechanism, evidence_of(item.task), reading=item.task.reading, shifts=()) <= EXACT
        assert readings_after(mechanism, item.task.baseline, [(name, float(value))])[-1] == pytest.approx(promised)
    for entry in why.experiments:
        name, _, value = entry.in_words.removeprefix("set ").rpartition(" to ")
        episode = LabEpisode(item)
        episode.act({"set": name, "value": float(value)})
        assert entry.sealed == explain(item, episode.steps).count.lower


@pytest.mark.parametrize("seed", SEEDS)
def test_two_settings_that_are_said_to_decide_together_do_so_whatever_the_truth(seed: int) -> None:
    item = made_item("3nodes", seed)
    why = explain(item, ())
    if not why.jointly:
        return
    words = [entry.removeprefix("set ").rpartition(" to ") for entry in why.jointly]
    settings = [(name, float(value)) for name, _, value in words]
    graphs = defaultdict(set)
    for member in members_by_reference(evidence_of(item.task), bounded=False):
        mechanism = mechanism_of_key(member, evidence_of(item.task).nodes)
        readings = readings_after(mechanism, item.task.baseline, settings)
        graphs[tuple(round(value, 2) for reading in readings for value in reading.values())].add(mechanism.edges)
    assert all(len(group) == 1 for group in graphs.values())


def test_nothing_sealed_is_in_a_reason_without_gold() -> None:
    item = made_item("4nodes", 1)
    twin = replace(item, sealed=made_item("4nodes", 2).sealed)
    assert explain(item, ()) == explain(twin, ())
    assert explain(item, (), reveal_sealed=True) != explain(twin, (), reveal_sealed=True)


@pytest.mark.parametrize("suite", ["4nodes_quad_hard", "4nodes_hidden_n1"])
def test_quadratic_and_noisy_laboratories_have_a_reason(suite: str) -> None:
    item = next(item for item in POOL.items if item.id.startswith(suite))
    episode = LabEpisode(item)
    for name in item.task.settable[:2]:
        why = explain(item, episode.steps)
        assert why.state in ("open", "decided")
        true_edges = item.sealed.mechanism.edges
        assert set(why.open) | set(why.decided) >= {f"{cause} to {effect}" for cause, effect in true_edges}
        assert not {(one.cause, one.effect) for one in why.ruled_out} & true_edges
        episode.act({"set": name, "value": 0})


def test_what_is_not_enumerated_is_said_to_be_not_counted() -> None:
    task = replace(made_item("4nodes", 0).task, weights=Weights.HUNDREDTHS)
    why = explain(replace(made_item("4nodes", 0), task=task), ())
    assert (why.state, why.count.in_words()) == ("uncounted", "not counted")
    assert "weights in hundredths are too many to list" in why.reason_text
    assert len(why.readings) > 0


def readings_after(
    mechanism: Mechanism, baseline: Mapping[str, float], settings: list[tuple[str, float]]
) -> list[dict[str, float]]:
    """Return what a mechanism shows after each setting, computed by hand: set values stay, the rest follows."""
    values = dict(baseline)
    bases = {n: values[n] - sum(w * values[u] for u, w in mechanism.weights(n).items()) for n in mechanism.equations}
    readings = []
    for name, value in settings:
        bases[name] = value - sum(w * values[u] for u, w in mechanism.weights(name).items())
        for node in mechanism.order:
            values[node] = bases[node] + sum(w * values[u] for u, w in mechanism.weights(node).items())
        readings.append({node: values[node] for node in sorted(values)})
    return readings


def mechanism_of_key(member: tuple[Any, ...], nodes: tuple[str, ...]) -> Mechanism:
    """Return the mechanism of a key of the support module."""
    base, terms = member
    equations = {}
    for node in nodes:
        listed = tuple(Term(parent, power, weight) for child, parent, power, weight in terms if child == node)
        equations[node] = Equation(listed, base if node == FREQUENCY else None)
    return Mechanism(equations)


def mechanism_in_words(equations: dict[str, str]) -> Mechanism:
    """Read a mechanism back from its words."""
    read = {}
    for node, text in equations.items():
        *terms, base = text.split(" + ")
        pairs = [term.split(" * ") if " * " in term else ["1", term] for term in terms]
        listed = tuple(Term(cause, 1, float(weight)) for weight, cause in pairs)
        read[node] = Equation(listed, float(base) if node == FREQUENCY else None)
    return Mechanism(read)
