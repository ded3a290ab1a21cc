"""Spaces of noisy and quadratic laboratories: the truth stays, counts and decisions agree with enumeration."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import product
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrant.dsl.causalab.configs import item_of_config
from calibrant.dsl.causalab.episode import LabEpisode
from calibrant.dsl.causalab.generation import PLANS, SQUARE_WEIGHTS, NoisePlan, Plan, generate_items
from calibrant.dsl.causalab.item import Family, LabItem, Task
from calibrant.dsl.causalab.mechanism import FREQUENCY, Equation, Mechanism, Noise, Term
from calibrant.dsl.causalab.reference import SettingMeaning, bases_after, bases_of, values
from calibrant.solvers.causalab import noise_sequences, noisy
from calibrant.solvers.causalab.evidence import Evidence, evidence_of, predict_frequency
from calibrant.solvers.causalab.exact import solve
from calibrant.solvers.causalab.experiments import solve_noisy_by_experiments
from calibrant.solvers.causalab.noise_sequences import ReplayedDags, law_of, replayed_dags
from calibrant.solvers.causalab.noisy import RELEASED_LAWS, SCALES, Law, NoisyDags, noisy_dags
from calibrant.solvers.causalab.quadratic import (
    ROUNDING,
    fit_rationally,
    least_norm_fit,
    quadratic_dags,
    solve_quadratic,
    solve_to_six_decimals,
)
from calibrant.solvers.outcome import BudgetSpent, Found
from tests.support.benchmarks.causalab import items, released_suite
from tests.support.effort import examples

# --- The space of noisy laboratories: the truth stays, counts agree with enumeration, decisions are right -------------
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


@pytest.mark.parametrize("seed", range(3))
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
    for item in generate_items(PLANS[suite], 12, 16):
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


# --- The mechanisms that a noisy laboratory leaves under its own rules, against one by one through the reference ------
LAWS: tuple[tuple[Law, ...], ...] = (
    RELEASED_LAWS,
    ((-200, 0, 200),),
    ((-700, -300, 0, 300, 700),),
    ((-500, 0, 0, 500),),
    ((150,),),
)


def lab(law: Law, seed: int, reading: SettingMeaning = SettingMeaning.VALUE) -> LabItem:
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
@pytest.mark.parametrize("reading", SettingMeaning)
@pytest.mark.parametrize("seed", range(1))
def test_members_are_those_of_the_reference(laws: tuple[Law, ...], reading: SettingMeaning, seed: int) -> None:
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
    monkeypatch.setattr(noise_sequences, "MAX_REPLAYED", noise_sequences.MAX_REPLAYED if listed else 0)
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
    monkeypatch.setattr(noise_sequences, "MAX_REPLAYED", 0)
    space = replayed_dags(evidence, RELEASED_LAWS)
    assert isinstance(space, NoisyDags)
    assert "used where it is local" in space.in_words


def test_a_law_is_of_whole_hundredths() -> None:
    assert law_of((2.0, -2.0, 0.0), 1.0) == (-200, 0, 200)
    assert law_of((1.0, 1.0), 0.5) == (50, 50)
    assert law_of((0.001, 0.0), 1.0) is None
    assert law_of((1e300, 0.0), 1.0) is None
    assert np.array_equal(RELEASED_LAWS, [(-50, 0, 50), (-500, 0, 500), (-5000, 0, 5000)])


# --- The space of quadratic laboratories: the truth stays, counts agree with enumeration, settings decide the graph ---
THREE = Plan("3quad", 3, Family.QUADRATIC)


def completed(evidence: Evidence, node: int, squares: dict[int, float]) -> bool:
    """Whether linear weights exist that leave residuals within rounding: by projection, not by a solver's fit."""
    rows = [i for stretch in evidence.stretches(node) for i in stretch]
    own = [n for n, stretch in enumerate(evidence.stretches(node)) for _ in stretch]
    table = evidence.table[rows]
    goal = table[:, node] - sum((w * table[:, p] ** 2 for p, w in squares.items()), start=np.zeros(len(rows)))
    known = [(np.array(own) == n).astype(float) for n in sorted(set(own))] + [table[:, p] for p in squares]
    basis, sizes, _ = np.linalg.svd(np.array(known).T, full_matrices=False)
    basis = basis[:, sizes > 1e-9 * sizes.max()]
    left = goal - basis @ (basis.T @ goal)
    alone = sum(len(stretch) == 1 for stretch in evidence.stretches(node))
    return bool(np.sum(left**2) <= (len(rows) - alone) * (ROUNDING + 1e-6) ** 2 + 1e-12)


def count_by_definition(evidence: Evidence) -> int:
    a, b, f = range(3)
    weights = (0.0, *SQUARE_WEIGHTS)
    count = 0
    for ab, ba, af, bf in product(weights, repeat=4):
        if (ab and ba) or not (af or bf):
            continue
        parents = {a: {b: ba}, b: {a: ab}, f: {a: af, b: bf}}
        count += all(completed(evidence, n, {p: w for p, w in own.items() if w}) for n, own in parents.items())
    return count


@pytest.mark.parametrize("seed", range(8))
def test_three_quadratic_nodes_count_as_the_definition_does(seed: int) -> None:
    item = next(generate_items(THREE, seed, 1))
    episode = LabEpisode(item)
    for i, name in enumerate([*item.task.properties, *item.task.properties]):
        evidence = evidence_of(item.task, episode.steps)
        assert quadratic_dags(evidence).count == count_by_definition(evidence)
        episode.act({"set": name, "value": 90 - 31 * i})


@settings(max_examples=examples(40), deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(SettingMeaning), st.data())
def test_the_truth_is_a_member_after_any_settings(seed: int, reading: SettingMeaning, data: st.DataObject) -> None:
    item = next(generate_items(Plan("quad", 4, Family.QUADRATIC, reading=reading), seed, 1))
    episode = LabEpisode(item)
    space = quadratic_dags(evidence_of(item.task))
    for _ in range(data.draw(st.integers(0, 5))):
        name = data.draw(st.sampled_from(item.task.properties))
        value = data.draw(st.floats(-200, 300) | st.just(3e5))
        step = episode.act({"set": name, "value": value})
        assert step.reading is not None
        before, space = space.count, space.after((name, value), step.reading)
        assert space.count <= before
    assert space.fits(item.sealed.mechanism)
    assert sum(space.verdicts().values()) == space.count
    assert space.having_graph(item.sealed.mechanism.edges) >= 1


def test_two_settings_of_every_property_decide_graph_and_frequency() -> None:
    for made in released_suite("4nodes_quad_hard")[:15]:
        item = item_of_config(made, 0)
        episode = LabEpisode(item)
        assert isinstance(solve(episode), Found)
        space = quadratic_dags(evidence_of(item.task, episode.steps))
        assert space.graph_decided
        assert space.certain_edges == made.mechanism.edges
        (frequency,) = space.verdicts()
        assert abs(frequency - item.sealed.target) <= 0.1


def test_other_families_have_no_such_space() -> None:
    for suite in ("4nodes", "4nodes_hidden_n1"):
        with pytest.raises(BudgetSpent, match="quadratic"):
            quadratic_dags(evidence_of(next(generate_items(PLANS[suite], 0, 1)).task))
    with pytest.raises(BudgetSpent, match="6 properties"):
        quadratic_dags(evidence_of(next(generate_items(Plan("big", 7, Family.QUADRATIC), 0, 1)).task))


def test_further_settings_give_the_frequencys_weights_to_six_decimals() -> None:
    for item in generate_items(PLANS["4nodes_quad_hard"], 31, 12):
        first, further = LabEpisode(item), LabEpisode(item)
        coarse, fine = solve_quadratic(first), solve_to_six_decimals(further)
        assert isinstance(coarse, Found)
        assert isinstance(fine, Found)
        true, found = item.sealed.mechanism.weights(FREQUENCY), fine.value.mechanism.weights(FREQUENCY)
        assert {parent: round(weight, 6) for parent, weight in true.items()} == found
        assert fine.value.mechanism.edges == coarse.value.mechanism.edges
        assert fine.value.frequency == coarse.value.frequency
        settings = sum(step.cost for step in further.steps)
        assert sum(step.cost for step in first.steps) < settings <= item.task.allowance


def test_without_settings_left_the_answer_is_that_of_the_exact_solver() -> None:
    for item in generate_items(replace(PLANS["4nodes_quad_hard"], allowance=6), 32, 4):
        assert solve_to_six_decimals(LabEpisode(item)) == solve_quadratic(LabEpisode(item))


def test_rational_fits_are_those_of_linear_algebra() -> None:
    rng = Random(2)
    for num_columns in (1, 2, 4):
        design = [[Fraction(rng.randint(-9_999, 9_999), 100) for _ in range(num_columns)] for _ in range(7)]
        goal = [Fraction(rng.randint(-9_999, 9_999), 100) for _ in range(7)]
        fitted = fit_rationally(design, goal)
        assert fitted is not None
        weights, residual = fitted
        matrix, values = np.array(design, float), np.array(goal, float)
        expected = np.linalg.lstsq(matrix, values, rcond=None)[0]
        assert weights == pytest.approx(expected, rel=1e-9)
        assert residual == pytest.approx(np.sqrt(np.mean((matrix @ expected - values) ** 2)), rel=1e-9)
        dependent = [[*row, 2 * row[0]] for row in design]
        assert fit_rationally(dependent, goal) is None
        for rows in (dependent, design[:2], dependent[:1]):  # more weights than equations, and the other way round
            shortest = np.linalg.lstsq(np.array(rows, float), values[: len(rows)], rcond=None)[0]
            assert list(map(float, least_norm_fit(rows, goal[: len(rows)]))) == pytest.approx(shortest, rel=1e-9)
