"""Reading of released configs: all of them, and one clear line for what cannot be meant."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import calibrant.dsl.records
from calibrant.dsl.causalab.configs import config, explains, is_suite, item_of_config, read_configs, suite_pool
from calibrant.dsl.causalab.hypothesis import WrittenTerm, written_equation
from calibrant.dsl.causalab.item import Family
from calibrant.dsl.causalab.mechanism import FREQUENCY
from calibrant.dsl.errors import PoolError
from calibrant.dsl.records import StoredItems
from tests.oracles.causalab import transitions_of
from tests.support.benchmarks.causalab import SUITES, released_suite
from tests.support.effort import examples
from tests.support.shared import shared_file


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
    written = written_equation("base_freq + coeff2_a_freq * (a ^ 2) + coeff1_a_freq * a")
    assert written.base == "base_freq"
    assert written.terms == (WrittenTerm("coeff2_a_freq", "a", 2), WrittenTerm("coeff1_a_freq", "a", 1))


@pytest.mark.parametrize(
    "text",
    ["", "3", "base_a + 2 * b", "base_a - c * b", "base_a + c * (b ^ 3)", "base_a + __import__('os')", "base_a + b"],
)
def test_what_is_not_of_the_grammar_is_refused(text: str) -> None:
    with pytest.raises(PoolError):
        written_equation(text)


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
