"""Labels of generated items: the fewest settings against brute force over sequences of settings and all mechanisms."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest

from calibrant.audits.causalab.items import generate_labelled, labels, mattering_edges
from calibrant.dsl.causalab.configs import View
from calibrant.dsl.causalab.episode import LabEpisode
from calibrant.dsl.causalab.generation import PLANS, Plan, generate_items
from calibrant.dsl.causalab.item import Bases, Family, LabItem, Name, Terms, lab_item
from calibrant.dsl.causalab.mechanism import FREQUENCY, Equation, Mechanism, Term
from calibrant.dsl.causalab.records import item_of_record, record_of_item
from calibrant.dsl.causalab.reference import Reading, bases_of
from calibrant.dsl.causalab.score import imec_by_definition
from calibrant.solvers.causalab.evidence import EXACT, Evidence, evidence_of, misfit, predict_frequency
from calibrant.solvers.causalab.experiments import solve_by_experiments
from calibrant.solvers.outcome import Found
from tests.support.causalab.enumerated import weighted_graphs

VALUES = (0, 100, 37)


def all_members(evidence: Evidence) -> list[Mechanism]:
    """By the reference: every mechanism whose crystals have integer bases from 0 to 100, and 15 to 25 for F."""
    found = []
    first = dict(zip(evidence.nodes, evidence.observations[0].values, strict=True))
    for terms in weighted_graphs(evidence.nodes, sink=not evidence.task.freq_parent):
        base = first[FREQUENCY] - sum(t.weight * first[t.parent] for t in terms[FREQUENCY])
        if not 15 <= base <= 25:
            continue
        made = Mechanism({n: Equation(own, base if n == FREQUENCY else None) for n, own in terms.items()})
        crystals = [dict(zip(evidence.nodes, s.values, strict=True)) for s in evidence.observations]
        crystals.append(dict(evidence.task.reactor) | {FREQUENCY: predict_frequency(made, evidence)})
        bases = [b for crystal in crystals for b in bases_of(made, crystal).values()]
        fits = all(0 <= b <= 100 and b == int(b) for b in bases)
        if fits and misfit(made, evidence, reading=evidence.task.reading, shifts=()) <= EXACT:
            found.append(made)
    return found


def left_after(item: LabItem, members: list[Mechanism], names: tuple[str, ...]) -> int:
    """Verdicts of the members that read as the truth does after these settings, least over a few values."""
    numbers = []
    for values in product(VALUES, repeat=len(names)):
        episode = LabEpisode(item)
        for name, value in zip(names, values, strict=True):
            episode.act({"set": name, "value": value})
        evidence = evidence_of(item.task, episode.steps)
        kept = [m for m in members if misfit(m, evidence, reading=item.task.reading, shifts=()) <= EXACT]
        numbers.append(len({(m.edges, predict_frequency(m, evidence)) for m in kept}))
    return min(numbers)


@pytest.mark.parametrize(
    ("plan", "count"),
    [
        (Plan("3nodes", 3), 12),
        (Plan("3base", 3, reading=Reading.BASE), 8),
        (Plan("3freqparent", 3, freq_parent=True), 10),
        (Plan("4nodes", 4), 4),
    ],
    ids=lambda value: value.suite if isinstance(value, Plan) else str(value),
)
def test_the_fewest_settings_are_those_of_brute_force(plan: Plan, count: int) -> None:
    """Sequences with repeats, values of three kinds; half of the items are chosen because something is left to do."""
    first = list(generate_items(plan, 21, 100))
    undecided = [item for item in first if labels(item)["members_bounded"] > 1]
    for item in [*first[: count - count // 2], *undecided[: count // 2]]:
        members = all_members(evidence_of(item.task))
        properties = item.task.properties
        final = left_after(item, members, properties)
        fewest = next(
            size
            for size in range(len(properties) + 1)
            if any(left_after(item, members, names) == final for names in product(properties, repeat=size))
        )
        found = labels(item)
        assert found["members_bounded"] == len(members)
        assert (found["fewest_settings"], found["decidable"]) == (fewest, float(final == 1))
    assert len(undecided) >= count // 2


@pytest.mark.parametrize("suite", PLANS)
def test_labels_are_there_for_every_suite_and_travel_with_the_item(suite: str) -> None:
    for item in generate_labelled(PLANS[suite], 4, 3):
        found = item.sealed.labels
        edges = item.sealed.mechanism.edges
        assert found["edges"] == len(edges)
        assert found["mattering"] == len(mattering_edges(item)) / len(edges)
        assert "members" in found
        assert ("fewest_settings" in found) == (item.task.family.value == "linear" and not item.task.noise)
        if item.task.allowance == 0 and "fewest_settings" in found:
            assert found["fewest_settings"] == 0
        if len(edges) <= 7:
            assert found["imec"] == imec_by_definition(edges)
        assert item_of_record(record_of_item(item)) == item


def test_no_experimenter_needs_fewer_settings_than_the_label_says() -> None:
    for item in generate_items(PLANS["6nodes"], 5, 25):
        episode = LabEpisode(item)
        outcome = solve_by_experiments(episode)
        assert isinstance(outcome, Found)
        assert outcome.value.unique
        found = labels(item)
        assert found["fewest_settings"] <= len(episode.steps)
        assert found["decidable"]


def test_settings_that_are_not_allowed_do_not_count() -> None:
    for item in generate_items(replace(PLANS["5nodes"], fixed=3), 6, 10):
        assert labels(item)["fewest_settings"] <= 1
    for item in generate_items(replace(PLANS["5nodes"], view=View.HIDE_ONE), 6, 3):
        assert labels(item)["mattering"] > 0


def test_a_laboratory_without_edges_has_labels_without_shares() -> None:
    bases = Bases(({"a": 3.0, "b": 4.0},), {"a": 5.0, "b": 6.0}, {"a": 7.0, "b": 8.0})
    mechanism = Mechanism({"a": Equation(), "b": Equation(), FREQUENCY: Equation((), 20.0)})
    found = labels(lab_item(Name("x", "s"), Terms(Family.LINEAR, 4), mechanism, bases))
    assert (found["edges"], found["imec"], found["winnable"]) == (0, 1, 1.0)
    assert "mattering" not in found
    # by hand: no edge, or one of weight 1 to 3 in either direction; with bases in range no edge, or a -> b of weight 1
    assert (found["members"], found["members_bounded"], found["fewest_settings"]) == (7, 2, 1)


def test_a_mechanism_outside_the_class_has_no_fewest_settings() -> None:
    bases = Bases(({"a": 3.0, "b": 4.0},), {"a": 5.0, "b": 6.0}, {"a": 7.0, "b": 8.0})
    mechanism = Mechanism({"a": Equation(), "b": Equation(), FREQUENCY: Equation((Term("a", 1, 2.5),), 20.0)})
    found = labels(lab_item(Name("x", "s"), Terms(Family.LINEAR, 4), mechanism, bases))
    assert found["mattering"] == 1
    assert "fewest_settings" not in found
