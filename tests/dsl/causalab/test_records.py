"""CausaLab items: released configs, generated items, native pools and every number recomputed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import calibrant.dsl.records
from calibrant.bench.causalab.benchmark import BENCHMARK
from calibrant.dsl.causalab.configs import View, config, explains, is_suite, item_of_config, read_configs, suite_pool
from calibrant.dsl.causalab.episode import LabEpisode, run_score
from calibrant.dsl.causalab.generation import MAX_PARENTS, PLANS, NoisePlan, Plan, generate_items
from calibrant.dsl.causalab.item import Bases, Family, LabItem, Name, Terms, Traced, Weights, lab_item
from calibrant.dsl.causalab.mechanism import (
    FREQUENCY,
    Draw,
    Equation,
    Mechanism,
    Noise,
    Term,
    WrittenTerm,
    parse_equation,
)
from calibrant.dsl.causalab.prompt import messages, shown_step, shown_task
from calibrant.dsl.causalab.records import item_of_record, read_pool, record_of_item, write_pool
from calibrant.dsl.causalab.reference import SettingMeaning, bases_after, round_value, values
from calibrant.dsl.causalab.score import roots
from calibrant.dsl.episode import Step, replay_actions
from calibrant.dsl.errors import PoolError
from calibrant.dsl.item import Pool
from calibrant.dsl.records import StoredItems
from tests.oracles.causalab import transitions_of
from tests.support.benchmarks.causalab import SUITES, items, made_item, released_suite
from tests.support.effort import examples
from tests.support.shared import shared_file


# --- Native pools: round trip, and recomputation of every number that is shown ----------------------------------------
@pytest.mark.parametrize("suite", SUITES)
def test_pools_round_trip(suite: str, tmp_path: Path) -> None:
    pool = Pool(suite, "causalab", tuple(generate_items(PLANS[suite], 1, 4)), {"seed": 1})
    write_pool(pool, tmp_path / "pool.jsonl")
    first = (tmp_path / "pool.jsonl").read_bytes()
    assert read_pool(tmp_path / "pool.jsonl") == pool
    write_pool(read_pool(tmp_path / "pool.jsonl"), tmp_path / "again.jsonl")
    assert (tmp_path / "again.jsonl").read_bytes() == first


@settings(max_examples=examples(100), deadline=None)
@given(items())
def test_item_to_record_to_item_is_the_identity(item: LabItem) -> None:
    assert item_of_record(record_of_item(item)) == item


def damaged(tmp_path: Path, path: list[Any], value: Any, suite: str = "4nodes_hidden_n1") -> Path:
    file = tmp_path / "pool.jsonl"
    write_pool(Pool("p", "causalab", (made_item(suite),), {}), file)
    header, line = file.read_text(encoding="utf-8").splitlines()
    raw = json.loads(line)
    at = raw
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    file.write_text(f"{header}\n{json.dumps(raw)}\n", encoding="utf-8")
    return file


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (["baseline", "resonanceFreq"], 1.5, "baseline: states"),
        (["sealed", "target"], -3.0, "sealed.target: states"),
        (["records", 0], {}, "records: states"),
        (["noise"], False, "noise: states"),
        (["allowance"], -1, "allowance: below 0"),
        (["tries"], -1, "tries: below 0"),
        (["reading"], "mood", "reading"),
        (["sealed", "equations"], {}, "sealed.equations: no equation for resonanceFreq"),
        (["sealed", "hidden", "values"], [], "sealed.hidden.values: empty"),
        (["sealed", "hidden", "affected"], ["x"], "sealed.hidden.affected"),
        (["properties"], ["a"], "properties: does not agree"),
        (["surprise"], 1, "surprise"),
        (["sealed", "target"], 1e999, "Infinity is not a JSON number"),
    ],
)
def test_what_disagrees_is_named(tmp_path: Path, path: list[Any], value: Any, said: str) -> None:
    file = damaged(tmp_path, path, value)
    with pytest.raises(PoolError) as caught:
        read_pool(file)
    assert said in str(caught.value)
    assert str(caught.value).startswith("pool.jsonl: ")


def test_two_items_of_one_id_are_refused(tmp_path: Path) -> None:
    item = made_item("3nodes")
    write_pool(Pool("p", "causalab", (item, item), {}), tmp_path / "p.jsonl")
    with pytest.raises(PoolError, match="second item of that id"):
        read_pool(tmp_path / "p.jsonl")


# --- Success of a run: the state that the last try of the reactor leaves, and whether any try opened it ---------------


ITEM = made_item("3nodes")
TARGET = 636.0
LAB = replace(ITEM, sealed=replace(ITEM.sealed, target=TARGET))
SUBMIT: dict[str, Any] = {"submit": {"hypothesis": {}}}


def success(*tries: Any) -> tuple[bool, bool]:
    """(activated, opened) after these tries and a submission."""
    actions = [*({"reactor": tried} for tried in tries), SUBMIT]
    score = run_score(LAB, replay_actions(LabEpisode(LAB), actions).steps)
    assert score.flat()["activated"] == score.activated
    assert score.flat()["opened"] == score.opened
    return score.activated, score.opened


@pytest.mark.parametrize(
    ("tries", "expected"),
    [
        ((), (False, False)),
        ((636,), (True, True)),
        ((248, 636), (True, True)),
        ((636, 636), (True, True)),
        ((636, 1136), (False, True)),  # a miss shuts it
        ((636, 248, 636), (False, True)),  # and the third try never opens
        ((636, 636, 636), (False, True)),  # the third shuts it whatever it dials
        ((636, 636, 636, 636), (False, True)),  # refused
        ((248, 636, 636), (False, True)),
        ((1, 2, 636), (False, False)),
        ((1, 2, 3, 636), (False, False)),
        ((631, 640.9), (True, True)),  # the dial is cut to 631, which is 5 away, then to 640
        ((632, 641), (False, True)),
        ((636, "636"), (True, True)),  # no number: not a try
        ((636, float("nan")), (True, True)),
    ],
)
def test_success_is_the_state_after_the_last_try(tries: tuple[Any, ...], expected: tuple[bool, bool]) -> None:
    assert success(*tries) == expected


def test_a_try_after_the_submission_is_none() -> None:
    actions = [{"reactor": TARGET}, SUBMIT, {"reactor": 0}]
    score = run_score(LAB, replay_actions(LabEpisode(LAB), actions).steps)
    assert (score.activated, score.opened) == (True, True)


def test_a_generated_laboratory_that_is_shut_again_does_not_count() -> None:
    item = made_item("3nodes", seed=5)
    assert abs(item.sealed.target - 288) < 5
    for tries, activated in (((288, 0), False), ((288,), True), ((0, 288), True)):
        actions = [*({"reactor": tried} for tried in tries), SUBMIT]
        score = run_score(item, replay_actions(LabEpisode(item), actions).steps)
        assert (score.activated, score.opened) == (activated, True)


# --- Zero is written one way: no reading, record, prompt or verdict of a laboratory has -0.0 --------------------------


MECHANISM = Mechanism(
    {"a": Equation(), "b": Equation((Term("a", 1, 1.0),)), FREQUENCY: Equation((Term("b", 1, 2.0),), -0.0)}
)
TRACE = (Traced({"a": -0.0, "b": 0.0, FREQUENCY: -0.0}), Traced({"a": 1.0, "b": 1.0, FREQUENCY: 2.0}, "a", -0.0))
NOISE = Noise((-0.0, 0.0), 1.0, ("a", "b", FREQUENCY), 3)


def lab(reading: SettingMeaning, noise: Noise | None = None, trace: tuple[Traced, ...] = ()) -> LabItem:
    bases = Bases(({"a": -0.0, "b": -0.001},), {"a": -0.0, "b": 0.0}, {"a": -0.004, "b": -0.0})
    return lab_item(Name("x", "s"), Terms(Family.LINEAR, 9, reading=reading, trace=trace), MECHANISM, bases, noise)


def negative_zeros(value: Any) -> list[str]:
    """Where JSON text or a value holds a negative zero."""
    text = value if isinstance(value, str) else json.dumps(value)
    parts = text.replace(",", " ").replace("}", " ").replace("]", " ").split()
    return [part for part in parts if part.endswith("-0.0")]


@pytest.mark.parametrize("reading", SettingMeaning)
@pytest.mark.parametrize("noise", [None, NOISE], ids=["quiet", "noisy"])
@pytest.mark.parametrize("trace", [(), TRACE], ids=["", "trace"])
def test_no_reading_is_a_negative_zero(
    reading: SettingMeaning, noise: Noise | None, trace: tuple[Traced, ...], tmp_path: Path
) -> None:
    assert negative_zeros([-0.0]) == ["[-0.0"]
    made = lab(reading, noise, trace)
    path = tmp_path / "pool.jsonl"
    write_pool(Pool("p", "causalab", (made,), {}), path)
    for item in (made, read_pool(path).items[0]):
        task = item.task
        rows = [*task.records, task.baseline, task.reactor, *(entry.values for entry in task.trace)]
        assert negative_zeros([dict(row) for row in rows]) == []
        assert negative_zeros([entry.value for entry in task.trace]) == []
        assert negative_zeros([item.sealed.target]) == []
        assert negative_zeros(BENCHMARK.items.prompt(item)) == []
        record = BENCHMARK.items.record(item)
        assert negative_zeros({key: record.get(key) for key in ("records", "baseline", "reactor", "trace")}) == []
        episode = LabEpisode(item)
        for value in (-0.0, -0.001, 0, 5, -5, -0.0, 1e-9, -1e-9):
            for name in ("a", "b"):
                step = episode.act({"set": name, "value": value})
                assert step.reading is None or negative_zeros(dict(step.reading)) == []
                assert negative_zeros(BENCHMARK.play.describe(episode, step)) == []
        assert negative_zeros(dict(episode.act({"reactor": -0.0}).reading or {})) == []
        score = BENCHMARK.scoring.score(item, {"frequency": -0.0, "hypothesis": {}}, ())
        assert negative_zeros(score) == []
        assert negative_zeros(BENCHMARK.scoring.extract(item, {"frequency": -0.0})) == []


def test_rounding_keeps_whole_numbers_whole() -> None:
    assert [repr(round_value(number)) for number in (-0.0, 0, -0.004, 7, -1.239)] == ["0.0", "0", "0.0", "7", "-1.24"]
    assert negative_zeros(values(MECHANISM, {"a": -0.001, "b": -0.0}, {"a": -0.0})) == []
    bases = {"a": 0.0, "b": 0.0}
    assert negative_zeros([bases_after(MECHANISM, bases, name, -0.0, r) for name in "ab" for r in SettingMeaning]) == []


# --- Reading of released configs: all of them, and one clear line for what cannot be meant ----------------------------
def sample() -> dict[str, Any]:
    return {
        "graph_id": "g",
        "nodes": {
            FREQUENCY: {"is_controllable": False, "computation": "base_freq + coeff_ph_freq * ph"},
            "ph": {"computation": "base_ph + coeff_temp_ph * temperatureC"},
            "temperatureC": {},
        },
        "edges": [{"from": "ph", "to": FREQUENCY}, {"from": "temperatureC", "to": "ph"}],
        "params": {"base_freq": 20.0, "coeff_ph_freq": 2, "coeff_temp_ph": 3},
        "budget": 8,
    }


def test_all_released_configs_are_read() -> None:
    for suite in SUITES:
        found = released_suite(suite)
        assert [c.line for c in found] == list(range(50))
        assert all(c.settable == c.mechanism.properties for c in found)
    assert {c.family for c in released_suite("4nodes_quad_hard")} == {Family.QUADRATIC}
    assert all(c.presets.reactor is not None for c in released_suite("4nodes_quad_hard"))
    assert all(
        c.hidden is not None and FREQUENCY in c.hidden.affected for c in released_suite("4nodes_hidden_freqnode_n1")
    )


@pytest.mark.parametrize(("suite", "without"), [("4nodes_golden", 0), ("6nodes_golden", 14)])
def test_golden_traces_follow_from_entry_zero(suite: str, without: int) -> None:
    found = released_suite(suite)
    chains = [transitions_of(c.trace, listed_order=False) for c in found]
    assert all(explains(c, t) for c, chain in zip(found, chains, strict=True) for t in chain)
    assert sum(not chain for chain in chains) == without


def test_a_config_means_what_its_text_says() -> None:
    made = config(json.dumps(sample()), "s", 3)
    assert made.id == "s/3"
    assert made.mechanism.edges == {("ph", FREQUENCY), ("temperatureC", "ph")}
    assert made.mechanism.frequency_base == 20
    assert made.mechanism.order == ("temperatureC", "ph", FREQUENCY)


def test_an_equation_is_parsed_and_its_names_are_not_built() -> None:
    written = parse_equation("base_freq + coeff2_a_freq * (a ^ 2) + coeff1_a_freq * a")
    assert written.base == "base_freq"
    assert written.terms == (WrittenTerm("coeff2_a_freq", "a", 2), WrittenTerm("coeff1_a_freq", "a", 1))


@pytest.mark.parametrize(
    "text",
    ["", "3", "base_a + 2 * b", "base_a - c * b", "base_a + c * (b ^ 3)", "base_a + __import__('os')", "base_a + b"],
)
def test_what_is_not_of_the_grammar_is_refused(text: str) -> None:
    with pytest.raises(PoolError):
        parse_equation(text)


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (["budget"], -1, "line 1: budget: -1"),
        (["budget"], "8", "Expected `int`"),
        (["params", "coeff_ph_freq"], None, "params"),
        (["params", "coeff_temp_ph"], 1e999, "Infinity is not"),
        (["params"], {}, "no parameter 'coeff_ph_freq'"),
        (["edges"], [], "is in an equation but not in edges"),
        (["edges", 0, "from"], "temperatureC", "-> 'resonanceFreq' is in"),
        (["nodes", "temperatureC", "computation"], "base_t + coeff_temp_ph * ph", "cycle"),
        (["nodes", "ph", "computation"], "base_ph + coeff_temp_ph * radiation", "unknown parent radiation"),
        (["nodes", FREQUENCY, "computation"], None, "no computation"),
        (["equation_family"], "cubic", "equation_family"),
        (["hidden_variable"], {"enabled": True, "value_space": [], "affected_nodes": []}, "value_space: empty"),
        (["hidden_variable"], {"enabled": True, "value_space": [1], "affected_nodes": ["x"]}, "unknown node 'x'"),
        (["bootstrap_past_data"], [{"props": {"ph": 1}, "freq": 2}], "the properties are meant"),
    ],
)
def test_bad_configs_are_refused_in_one_line(path: list[Any], value: Any, said: str) -> None:
    raw: Any = sample()
    at = raw
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    with pytest.raises(PoolError) as caught:
        config(json.dumps(raw), "s", 0)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@settings(max_examples=examples(200), deadline=None)
@given(st.text() | st.recursive(st.none() | st.floats() | st.text(), st.lists).map(json.dumps))
def test_any_line_is_a_config_or_one_line_of_error(text: str) -> None:
    with pytest.raises(PoolError):
        config(text, "s", 0)


@settings(max_examples=examples(300), deadline=None)
@given(st.data())
def test_damaged_configs_are_read_or_refused(data: st.DataObject) -> None:
    text = json.dumps(sample())
    start = data.draw(st.integers(0, len(text)))
    damaged = text[:start] + data.draw(st.text(max_size=4)) + text[start + data.draw(st.integers(0, 4)) :]
    try:
        made = config(damaged, "s", 0)
    except PoolError:
        return
    item_of_config(made, 0)


def test_the_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_bytes(b"\xff")
    with pytest.raises(PoolError, match=r"x\.jsonl: not UTF-8 at byte 0"):
        read_configs(tmp_path / "x.jsonl")
    with pytest.raises(PoolError, match=r"no\.jsonl: cannot be read"):
        read_configs(tmp_path / "no.jsonl")


def test_items_of_configs_depend_on_the_seed_alone() -> None:
    made = released_suite("4nodes_hidden_n2")[7]
    assert item_of_config(made, 5) == item_of_config(made, 5)
    assert item_of_config(made, 5).sealed.bases != item_of_config(made, 6).sealed.bases
    released = item_of_config(made, 5, records="released"), item_of_config(made, 6, records="released")
    assert released[0].task.records == released[1].task.records


def test_static_traces_allow_no_settings() -> None:
    assert item_of_config(released_suite("6nodes_golden")[0], 1).task.allowance == 0


@pytest.mark.parametrize("suite", SUITES)
def test_items_of_a_large_suite_stay_in_a_file(suite: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = shared_file(f"data/{suite}.jsonl", part="causalab")
    kept = suite_pool(path, 3)
    assert kept.items == tuple(item_of_config(made, 3) for made in released_suite(suite))
    monkeypatch.setattr(calibrant.dsl.records, "MAX_CACHED_ITEMS", 9)
    stored = suite_pool(path, 3)
    assert isinstance(stored.items, StoredItems)
    assert stored == kept


def test_a_config_over_several_lines_is_read(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_text(json.dumps(sample()))
    in_one_line = suite_pool(path, 0)
    path.write_text(json.dumps(sample(), indent=2))
    assert suite_pool(path, 0).items == in_one_line.items
    path.write_text('{\n  "graph_id": "c",\n  "nodes": {}\n}')
    assert is_suite(path)
    with pytest.raises(PoolError, match="missing required field"):
        suite_pool(path, 0)


def test_what_is_wrong_with_a_suite_is_told_in_this_order(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    good, no_budget = json.dumps(sample()).encode(), json.dumps(sample() | {"budget": -1}).encode()
    endless = sample()
    endless["params"]["base_freq"] = 1e308
    endless["params"]["coeff_ph_freq"] = 1e308
    beyond = json.dumps(endless).encode()
    path.write_bytes(b"\n".join([good, b"", no_budget, b"\xff"]))
    with pytest.raises(PoolError, match=rf"s\.jsonl.*not UTF-8 at byte {len(good) + len(no_budget) + 3}"):
        suite_pool(path, 0)
    path.write_bytes(b"\n".join([beyond, b"", no_budget]))
    with pytest.raises(PoolError, match=r"s\.jsonl.*line 3.*budget"):
        suite_pool(path, 0)
    path.write_bytes(beyond)
    with pytest.raises(PoolError, match=r"s\.jsonl.*line 1.*resonanceFreq would not be a finite number"):
        suite_pool(path, 0)


# --- Generated items: ranges of the released suites, seeds, options that no release has; prompts of all of them -------
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
    assert item_of(replace(plan, reading=SettingMeaning.BASE)).task.reading is SettingMeaning.BASE
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
