"""A hypothesis beside the data of its own run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from calibrant.bench.causalab.scoring import COMMITMENT
from calibrant.dsl.causalab.episode import LabEpisode, own_fit, own_readings, run_score
from calibrant.dsl.causalab.generation import PLANS, generate_items
from calibrant.dsl.causalab.hypothesis import hypothesis, state_mechanism
from calibrant.dsl.causalab.mechanism import FREQUENCY

COLUMNS = {metric.key: metric for metric in COMMITMENT}


def test_the_truth_gives_all_own_readings_of_every_linear_suite() -> None:
    for suite in ("4nodes", "4nodes_hidden_n1", "6nodes", "4nodes_golden"):
        (item,) = generate_items(PLANS[suite], 3, 1)
        episode = LabEpisode(item)
        for node in item.task.properties:
            episode.act({"set": node, "value": 90})
        fit = own_fit(hypothesis(state_mechanism(item.sealed.mechanism)), item.task, episode.steps)
        assert fit.share == 1
        assert fit.error == pytest.approx(0, abs=0.01)


def test_a_wrong_base_gives_none_of_them_and_its_error_is_the_difference() -> None:
    (item,) = generate_items(PLANS["4nodes"], 3, 1)
    raw = state_mechanism(item.sealed.mechanism)
    raw["coefficients"]["base"] += 2.5
    fit = own_fit(hypothesis(raw), item.task, ())
    assert fit.share == 0
    assert fit.error == pytest.approx(2.5, abs=0.01)


def test_a_constant_equation_gives_the_readings_that_equal_it() -> None:
    (item,) = generate_items(PLANS["4nodes"], 3, 1)
    frequencies = [reading[FREQUENCY] for reading in own_readings(item.task, ())]
    assert len(set(frequencies)) == 3
    fit = own_fit(hypothesis({"coefficients": {"base": frequencies[0]}}), item.task, ())
    assert fit.share == pytest.approx(1 / 3)
    assert fit.error == pytest.approx(sum(abs(f - frequencies[0]) for f in frequencies) / 3)


@pytest.mark.parametrize("coefficients", [{}, {"base": None}, {"base": "x"}, {"base": True}, {"c_density": 1}])
def test_without_a_base_there_is_no_equation(coefficients: Mapping[str, Any]) -> None:
    (item,) = generate_items(PLANS["4nodes"], 3, 1)
    assert own_fit(hypothesis({"coefficients": coefficients}), item.task, ()) == (0, None)


@pytest.mark.parametrize("base", [1e308, float("inf"), float("nan"), "1e400"])
def test_an_equation_beyond_floats_has_no_error_that_json_cannot_hold(base: object) -> None:
    (item,) = generate_items(PLANS["4nodes"], 3, 1)
    coefficients = {"base": base} | {f"c_{node}": 1e308 for node in item.task.properties}
    assert own_fit(hypothesis({"coefficients": coefficients}), item.task, ()) == (0, None)


def test_settings_with_noise_are_no_readings_of_ones_own() -> None:
    for suite, number in (("4nodes", 5), ("4nodes_hidden_n1", 3)):
        (item,) = generate_items(PLANS[suite], 3, 1)
        episode = LabEpisode(item)
        for _ in range(2):
            episode.act({"set": item.task.properties[0], "value": 90})
        episode.act({"set": "nothing", "value": 90})
        assert len(list(own_readings(item.task, episode.steps))) == number  # two records and the baseline


def test_columns_of_early_commitment() -> None:
    """Two of twelve settings, one edge contradicted: unused 10/12, not consistent; split by outcome."""
    (item,) = generate_items(PLANS["4nodes"], 3, 1)
    episode = LabEpisode(item)
    for _ in range(2):
        episode.act({"set": item.task.properties[0], "value": 90})
    episode.act({"submit": {"hypothesis": state_mechanism(item.sealed.mechanism)}})
    score = run_score(item, episode.steps).as_json()
    graph = {"contradicted": [], "foreign": 0}
    score["attribution"] = {"graph": graph}
    assert (score["records"], score["allowance"]) == (2, 12)
    values = {key: metric.value(score) for key, metric in COLUMNS.items()}
    assert values["unused"] == values["unused_not"] == pytest.approx(10 / 12)
    assert values["unused_activated"] is None
    assert values["own_fit"] == values["consistent"] == 1
    graph["contradicted"] = [["density", "ph"]]
    assert COLUMNS["consistent"].value(score) == 0
    assert COLUMNS["unused"].value(score | {"allowance": 0}) is None
    old = {"settings": 2, "activated": 0.0}
    assert [metric.value(old) for metric in COMMITMENT] == [None] * len(COMMITMENT)
