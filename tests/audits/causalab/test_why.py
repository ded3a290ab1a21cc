"""What readings of a laboratory leave, against mechanisms enumerated and run by the reference."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from calibrant.audits.causalab.why import explain
from calibrant.bench.core.registry import benchmark, bundled_sample
from calibrant.dsl.causalab.episode import LabEpisode
from calibrant.dsl.causalab.item import Weights
from calibrant.dsl.causalab.mechanism import FREQUENCY, Equation, Mechanism, Term
from calibrant.solvers.causalab.evidence import EXACT, evidence_of, misfit
from tests.support.benchmarks.causalab import made_item, members_by_reference

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
        pairs = [term.split(" ", 1) for term in terms]
        listed = tuple(Term(cause, 1, float(weight)) for weight, cause in pairs)
        read[node] = Equation(listed, float(base) if node == FREQUENCY else None)
    return Mechanism(read)
