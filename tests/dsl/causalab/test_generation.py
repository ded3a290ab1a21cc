"""Generated items: ranges of the released suites, seeds, options that no release has; prompts of all of them."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from itertools import combinations

import pytest

from calibrant.dsl.causalab.configs import View
from calibrant.dsl.causalab.generation import MAX_PARENTS, PLANS, NoisePlan, Plan, generate_items
from calibrant.dsl.causalab.item import LabItem, Weights
from calibrant.dsl.causalab.mechanism import FREQUENCY, Draw
from calibrant.dsl.causalab.prompt import messages, shown_step, shown_task
from calibrant.dsl.causalab.reference import Reading
from calibrant.dsl.causalab.score import roots
from calibrant.dsl.episode import Step
from tests.support.benchmarks.causalab import SUITES, made_item, released_suite


@pytest.mark.parametrize("suite", SUITES)
def test_items_keep_to_the_ranges_of_their_suite(suite: str) -> None:
    plan = PLANS[suite]
    found = list(generate_items(plan, 7, 60))
    k = plan.nodes
    for item in found:
        mechanism = item.sealed.mechanism
        assert len(mechanism.equations) == k
        assert k - 1 <= len(mechanism.edges) <= min(k * (k - 1) // 2, 2 * k)
        assert len(mechanism.frequency.parents) >= 1
        assert max(len(e.parents) for e in mechanism.equations.values()) <= MAX_PARENTS
        assert plan.freq_parent or all(parent != FREQUENCY for parent, _ in mechanism.edges)
        assert item.task.allowance == (0 if plan.golden else 4 * (k - 1))
        assert bool(item.task.trace) == plan.golden
        assert item.task.noise == (item.sealed.noise is not None) == (plan.noise is not None)
    assert len({item.id for item in found}) == 60
    topologies = {(item.sealed.mechanism.edges, item.task.properties) for item in found}
    assert len(topologies) == 60
    if plan.freq_parent:
        assert any(parent == FREQUENCY for item in found for parent, _ in item.sealed.mechanism.edges)


@pytest.mark.parametrize("k", range(3, 8))
def test_the_mean_number_of_edges_is_that_of_the_range(k: int) -> None:
    plan = PLANS[f"{k}nodes"]  # few items a seed: 196 of three nodes are all there are
    found = [len(item.sealed.mechanism.edges) for seed in range(12) for item in generate_items(plan, seed, 20)]
    low, high = k - 1, min(k * (k - 1) // 2, 2 * k)
    assert abs(sum(found) / len(found) - (low + high) / 2) < 0.12 * (high - low)


def test_released_suites_have_a_plan_each_with_their_noise() -> None:
    for suite in SUITES:
        plan = PLANS[suite]
        released = released_suite(suite)
        assert {len(c.mechanism.equations) for c in released} == {plan.nodes}
        assert {c.freq_parent for c in released} == {plan.freq_parent}
        assert {c.family for c in released} == {plan.family}
        for c in released:
            assert (c.hidden is None) == (plan.noise is None)
            if c.hidden is not None and plan.noise is not None:
                assert len(c.hidden.affected) == plan.noise.affected
                assert (FREQUENCY in c.hidden.affected) == plan.noise.frequency
                assert max(c.hidden.values) == plan.noise.scale


def test_more_items_than_topologies_can_be_asked_for() -> None:
    found = list(generate_items(PLANS["3nodes"], 0, 400))
    assert len({item.sealed.mechanism.edges for item in found}) == 196  # 28 pairs of names, 7 graphs each
    assert len(found) == 400


def test_an_item_is_the_same_whatever_is_asked_after_it() -> None:
    long = list(generate_items(PLANS["5nodes"], 2, 20))
    assert list(generate_items(PLANS["5nodes"], 2, 5)) == long[:5]
    assert list(generate_items(PLANS["5nodes"], 3, 5)) != long[:5]


def test_items_do_not_depend_on_the_hash_seed() -> None:
    program = (
        "from calibrant.dsl.causalab.generation import PLANS, generate_items\n"
        "from calibrant.dsl.causalab.records import record_of_item\nimport msgspec\n"
        "for s in ('6nodes_freqparent', '4nodes_hidden_n3', '4nodes_quad_hard', '6nodes_golden'):\n"
        "    print([msgspec.json.encode(record_of_item(i)) for i in generate_items(PLANS[s], 1, 6)])\n"
    )
    texts = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
            timeout=60,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(texts) == 1


def item_of(plan: Plan) -> LabItem:
    (item,) = generate_items(plan, 4, 1)
    return item


def test_options_that_no_release_has() -> None:
    plan = PLANS["6nodes"]
    rooted = item_of(replace(plan, view=View.ROOTS))
    assert set(rooted.task.reactor) == roots(rooted.sealed.mechanism.edges)
    hidden = item_of(replace(plan, view=View.HIDE_ONE))
    assert len(hidden.task.reactor) == 4
    assert len(hidden.sealed.mechanism.frequency.parents - set(hidden.task.reactor)) == 1
    assert len(item_of(replace(plan, fixed=2)).task.settable) == 3
    assert item_of(replace(plan, allowance=2)).task.allowance == 2
    assert item_of(replace(plan, reading=Reading.BASE)).task.reading is Reading.BASE
    fine = item_of(replace(plan, weights=Weights.HUNDREDTHS))
    weights = [t.weight for e in fine.sealed.mechanism.equations.values() for t in e.terms]
    assert all(abs(100 * w - round(100 * w)) < 1e-9 for w in weights)
    assert any(w != round(w) for w in weights)
    noisy = item_of(replace(plan, noise=NoisePlan(2, draw=Draw.INDEPENDENT)))
    assert noisy.sealed.noise is not None
    assert noisy.sealed.noise.draw is Draw.INDEPENDENT


@pytest.mark.parametrize("change", [{"nodes": 2}, {"nodes": 10}, {"fixed": 4}, {"allowance": -1}])
def test_plans_that_cannot_be_meant_are_refused(change: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=r"nodes|properties|allowance"):
        replace(PLANS["4nodes"], **change)  # type: ignore[arg-type]


@pytest.mark.parametrize("suite", SUITES)
def test_prompts_say_what_is_shown_and_nothing_sealed(suite: str) -> None:
    item = made_item(suite, 5)
    said = messages(item.task)
    assert [m["role"] for m in said] == ["system", "user"]
    text = "\n".join(m["content"] for m in said)
    for value in item.task.baseline.values():
        assert str(value) in text
    assert ("disturbs" in text) == item.task.noise
    assert ("p^2" in text) == (item.task.family.value == "quadratic")
    assert ("may be a cause" in text) == item.task.freq_parent
    for first, second in combinations(sorted(item.task.nodes), 2):
        lines = shown_task(item.task).splitlines()[3]
        assert lines.index(f'"{first}"') < lines.index(f'"{second}"')


def test_steps_are_told_in_words() -> None:
    assert shown_step(Step({}, None, "no such thing")) == "Refused: no such thing."
    assert shown_step(Step({}, {"activated": True, "dial": 3.0})) == "The reactor is activated."
    assert '"ph": 3.0' in shown_step(Step({}, {"ph": 3.0}))
    assert shown_step(Step({"submit": {}}, None)) == "Submitted."
