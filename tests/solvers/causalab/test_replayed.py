"""The mechanisms that a noisy laboratory leaves under its own rules, against one by one through the reference."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrant.dsl.causalab.episode import LabEpisode
from calibrant.dsl.causalab.generation import NoisePlan, Plan, generate_items
from calibrant.dsl.causalab.item import LabItem, Task
from calibrant.dsl.causalab.mechanism import FREQUENCY, Equation, Mechanism, Noise, Term
from calibrant.dsl.causalab.reference import Reading, bases_after, bases_of, values
from calibrant.solvers.causalab import replayed
from calibrant.solvers.causalab.evidence import Evidence, evidence_of
from calibrant.solvers.causalab.noisy import RELEASED_LAWS, Law, NoisyDags, noisy_dags
from calibrant.solvers.causalab.replayed import ReplayedDags, law_of, replayed_dags
from tests.support.effort import examples

LAWS: tuple[tuple[Law, ...], ...] = (
    RELEASED_LAWS,
    ((-200, 0, 200),),
    ((-700, -300, 0, 300, 700),),
    ((-500, 0, 0, 500),),
    ((150,),),
)


def lab(law: Law, seed: int, reading: Reading = Reading.VALUE) -> LabItem:
    """Three nodes with noise whose draws are of this law."""
    plan = Plan("3nodes_hidden", 3, noise=NoisePlan(1 + seed % 2, frequency=seed % 3 == 0), reading=reading)
    item = next(generate_items(plan, seed, 1))
    assert item.sealed.noise is not None
    noise: Noise = replace(item.sealed.noise, values=tuple(shift / 100 for shift in law), weight=1.0)
    return replace(item, sealed=replace(item.sealed, noise=noise))


def mechanisms(task: Task) -> Iterator[tuple[tuple[int, int, int, int], Mechanism]]:
    """Every linear mechanism of two properties with weights up to 3 whose base the first measurement allows."""
    a, b = task.properties
    for w_ab, w_ba, w_af, w_bf in product(range(4), repeat=4):
        if (w_ab and w_ba) or not (w_af or w_bf):
            continue
        weights = {a: {b: w_ba}, b: {a: w_ab}, FREQUENCY: {a: w_af, b: w_bf}}
        terms = {n: tuple(Term(p, 1, float(w)) for p, w in by.items() if w) for n, by in weights.items()}
        base = task.baseline[FREQUENCY] - w_af * task.baseline[a] - w_bf * task.baseline[b]
        yield (
            (w_ab, w_ba, w_af, w_bf),
            Mechanism({n: Equation(t, base if n == FREQUENCY else None) for n, t in terms.items()}),
        )


def by_definition(evidence: Evidence, steps: list[Any], laws: tuple[Law, ...]) -> Counter[tuple[Any, ...]]:
    """Sequences of draws by mechanism, shifted nodes and law, under which the reference gives all that was seen."""
    task = evidence.task
    found: Counter[tuple[Any, ...]] = Counter()
    for (w_ab, w_ba, w_af, w_bf), member in mechanisms(task):
        if any(values(member, bases_of(member, record)) != record for record in (*task.records, task.baseline)):
            continue
        for flags in product((0, 1), repeat=3):
            shifted = [node for node, flag in zip(task.nodes, flags, strict=True) if flag]
            if shifted:
                named = w_ab, w_ba, w_af, w_bf, flags
                found.update({(*named, law): _ways(member, steps, task, shifted, law) for law in laws})
    return +found


def _ways(member: Mechanism, steps: list[Any], task: Any, shifted: list[str], law: Law) -> int:
    bases, ways = bases_of(member, task.baseline), 1
    for step in steps:
        bases = bases_after(member, bases, step.action["set"], step.action["value"], task.reading)
        same = (values(member, bases, dict.fromkeys(shifted, shift / 100)) == dict(step.reading) for shift in law)
        ways *= sum(same)
    return ways


@pytest.mark.parametrize("laws", LAWS, ids=str)
@pytest.mark.parametrize("reading", Reading)
@pytest.mark.parametrize("seed", range(3))
def test_members_are_those_of_the_reference(laws: tuple[Law, ...], reading: Reading, seed: int) -> None:
    item = lab(laws[-1], seed, reading)
    episode = LabEpisode(item)
    for i, name in enumerate(item.task.properties * 2):
        episode.act({"set": name, "value": 50.25 - 13 * i})
        steps = list(episode.steps)
        evidence = evidence_of(item.task, steps)
        space = replayed_dags(evidence, laws)
        assert isinstance(space, ReplayedDags)
        expected = by_definition(evidence, steps, laws)
        assert space.count == sum(expected.values()) > 0
        graphs: Counter[frozenset[Any]] = Counter()
        a, b = item.task.properties
        for (w_ab, w_ba, w_af, w_bf, _, _), number in expected.items():
            pairs = {(a, b): w_ab, (b, a): w_ba, (a, FREQUENCY): w_af, (b, FREQUENCY): w_bf}
            graphs[frozenset(edge for edge, weight in pairs.items() if weight)] += number
        assert {edges: space.having_graph(edges) for edges in graphs} == graphs
        assert sum(space.verdicts().values()) == space.count
        fitting = {weights for weights, member in mechanisms(item.task) if space.fits(member)}
        assert fitting == {named[:4] for named in expected}
        larger = noisy_dags(evidence, laws=laws, settings=True)
        assert space.count <= larger.count <= noisy_dags(evidence, laws=laws).count


@settings(max_examples=examples(30), deadline=None)
@given(
    st.integers(0, 10**6),
    st.sampled_from(LAWS[1:]),
    st.lists(st.tuples(st.integers(0, 3), st.floats(-1e3, 1e3) | st.integers(-(10**12), 10**12)), max_size=6),
)
def test_the_truth_is_never_ruled_out(seed: int, laws: tuple[Law, ...], chosen: list[tuple[int, float]]) -> None:
    plan = Plan("4nodes_hidden", 4, noise=NoisePlan(1 + seed % 3))
    item = next(generate_items(plan, seed, 1))
    assert item.sealed.noise is not None
    noise = replace(item.sealed.noise, values=tuple(shift / 100 for shift in laws[0]), weight=1.0)
    item = replace(item, sealed=replace(item.sealed, noise=noise))
    episode = LabEpisode(item)
    for number, value in chosen:
        episode.act({"set": item.task.properties[number % 3], "value": value})
    space = replayed_dags(evidence_of(item.task, episode.steps), laws)
    assert space.having_graph(item.sealed.mechanism.edges) > 0


@pytest.mark.parametrize("listed", [True, False], ids=["listed", "followed"])
def test_what_is_not_of_the_class_does_not_fit(listed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another base, a square, other nodes: beside a member that has the same weights."""
    item = lab(RELEASED_LAWS[0], 1)
    episode = LabEpisode(item)
    episode.act({"set": item.task.properties[0], "value": 3})
    monkeypatch.setattr(replayed, "MAX_REPLAYED", replayed.MAX_REPLAYED if listed else 0)
    space = replayed_dags(evidence_of(item.task, episode.steps), RELEASED_LAWS)
    assert isinstance(space, ReplayedDags) == listed
    truth = item.sealed.mechanism
    assert space.fits(truth)
    equation = truth.equations[FREQUENCY]
    assert equation.base is not None
    moved = replace(equation, base=equation.base + 1)
    parent = equation.terms[0].parent
    squared = replace(equation, terms=(*equation.terms, Term(parent, 2, 1.0)))
    more = {**truth.equations, "another": Equation()}
    for changed in ({**truth.equations, FREQUENCY: moved}, {**truth.equations, FREQUENCY: squared}, more):
        assert not space.fits(Mechanism(changed))


def test_too_many_members_leave_the_larger_class(monkeypatch: pytest.MonkeyPatch) -> None:
    item = lab(RELEASED_LAWS[0], 1)
    episode = LabEpisode(item)
    episode.act({"set": item.task.properties[0], "value": 3})
    evidence = evidence_of(item.task, episode.steps)
    assert isinstance(replayed_dags(evidence, RELEASED_LAWS), ReplayedDags)
    assert "laboratory gives them" in replayed_dags(evidence, RELEASED_LAWS).in_words
    monkeypatch.setattr(replayed, "MAX_REPLAYED", 0)
    space = replayed_dags(evidence, RELEASED_LAWS)
    assert isinstance(space, NoisyDags)
    assert "used where it is local" in space.in_words


def test_a_law_is_of_whole_hundredths() -> None:
    assert law_of((2.0, -2.0, 0.0), 1.0) == (-200, 0, 200)
    assert law_of((1.0, 1.0), 0.5) == (50, 50)
    assert law_of((0.001, 0.0), 1.0) is None
    assert law_of((1e300, 0.0), 1.0) is None
    assert np.array_equal(RELEASED_LAWS, [(-50, 0, 50), (-500, 0, 500), (-5000, 0, 5000)])
