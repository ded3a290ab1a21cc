"""Episodes: settings, noise, the reactor, refusals, transcripts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrant.bench.causalab.scoring import COMMITMENT
from calibrant.dsl.causalab.episode import LabEpisode, UnknownSetting, own_fit, own_readings, run_score
from calibrant.dsl.causalab.generation import PLANS, generate_items
from calibrant.dsl.causalab.item import Bases, Family, LabItem, Name, Terms, lab_item
from calibrant.dsl.causalab.mechanism import (
    FREQUENCY,
    Draw,
    Equation,
    Mechanism,
    Noise,
    Reactor,
    Term,
    hypothesis,
    state_mechanism,
    winnable,
)
from calibrant.dsl.causalab.reference import SettingMeaning, bases_of, values
from calibrant.dsl.episode import TranscriptError, replay_transcript
from tests.support.benchmarks.causalab import items, made_item
from tests.support.effort import examples

MECHANISM = Mechanism(
    {
        FREQUENCY: Equation((Term("density", 1, 1.0), Term("moisture", 1, 1.0)), 25.0),
        "quantumSize": Equation((Term("density", 1, 1.0),)),
        "density": Equation(),
        "moisture": Equation(),
    }
)
CRYSTAL = {"quantumSize": 13.0, "density": 79.0, "moisture": 18.0}


def worked(reading: SettingMeaning = SettingMeaning.VALUE, noise: Noise | None = None, allowance: int = 12) -> LabItem:
    """Return the worked example of the specification."""
    terms = Terms(Family.LINEAR, allowance, reading=reading)
    return lab_item(Name("worked", "4nodes"), terms, MECHANISM, Bases((), CRYSTAL, CRYSTAL), noise)


def read(episode: LabEpisode, name: str, value: Any) -> Any:
    return episode.act({"set": name, "value": value}).reading


def test_the_worked_example_of_a_setting_with_parents() -> None:
    episode = LabEpisode(worked())
    assert dict(episode.task.baseline) == {"density": 79, "moisture": 18, "quantumSize": 92, FREQUENCY: 122}
    assert read(episode, "quantumSize", 77.777) == {"density": 79, "moisture": 18, "quantumSize": 77.78, FREQUENCY: 122}
    assert read(episode, "density", -5) == {"density": -5, "moisture": 18, "quantumSize": -6.22, FREQUENCY: 38}
    assert episode.left == 10


def test_in_the_paper_a_setting_replaces_the_base() -> None:
    episode = LabEpisode(worked(SettingMeaning.BASE))
    assert read(episode, "quantumSize", 77)["quantumSize"] == 77 + 79


def test_both_readings_agree_for_properties_without_parents() -> None:
    pair = [LabEpisode(worked(reading)) for reading in SettingMeaning]
    assert read(pair[0], "density", 4.005) == read(pair[1], "density", 4.005)


def test_noise_is_the_seeds_and_no_part_of_a_setting() -> None:
    noise = Noise((-5.0, 5.0), 1.0, ("density",), 3)
    shifts = [noise.stream().shifts() for _ in range(2)]
    assert shifts[0] == shifts[1]
    episode = LabEpisode(worked(noise=noise))
    stream = noise.stream()
    for _ in range(6):
        shift = stream.shifts()["density"]
        assert read(episode, "density", 50)["density"] == 50 + shift
    seen = read(episode, "quantumSize", 90)  # by the undisturbed density of 50, whatever the draw
    assert seen["quantumSize"] - seen["density"] == 90 - 50


@pytest.mark.parametrize("draw", Draw)
def test_every_kind_of_noise_leaves_records_and_starting_crystals_alone(draw: Draw) -> None:
    item = worked(noise=Noise((7.0,), 0.5, ("density", FREQUENCY), 0, draw))
    assert dict(item.task.baseline) == {"density": 79, "moisture": 18, "quantumSize": 92, FREQUENCY: 122}
    assert read(LabEpisode(item), "moisture", 18)["density"] == 82.5


def test_the_reactor_locks_settings_and_its_last_try_never_opens() -> None:
    episode = LabEpisode(worked())
    assert episode.act({"reactor": 0}).reading == {"activated": False, "dial": 0}
    assert episode.act({"set": "density", "value": 1}).refused
    assert episode.act({"reactor": 122}).reading == {"activated": True, "dial": 122}
    assert episode.act({"reactor": 122}).reading == {"activated": False, "dial": 122}
    assert episode.act({"reactor": 122}).refused
    assert episode.left == 0


def test_a_try_locks_settings_whether_it_activates_or_not_and_a_refused_one_does_not() -> None:
    """In all reactor vectors of the released code settings are locked, in 11 of 23 without any activation."""
    for frequency in (0, 122):
        episode = LabEpisode(worked())
        assert episode.act({"reactor": "none"}).refused
        assert (read(episode, "density", 1)["density"], episode.left) == (1, 11)
        assert not episode.act({"reactor": frequency}).refused
        assert episode.left == 0
        step = episode.act({"set": "density", "value": 1})
        assert (step.refused, step.cost) == ("the reactor has been tried; nothing can be set any more", 0)
    without_tries = LabEpisode(replace(worked(), task=replace(worked().task, tries=0)))
    assert without_tries.act({"reactor": 122}).refused
    assert without_tries.left == 12


@given(st.integers(-20, 10_020), st.integers(0, 4))
def test_winnable_is_what_some_dialled_number_shows(target: int, limit: int) -> None:
    tried = [Reactor(target, limit).dial_frequency(f).activated for f in {*range(target - 6, target + 7), 0, 10_000}]
    assert winnable(target, limit) == any(tried)


@pytest.mark.parametrize(
    "action",
    [
        {"set": FREQUENCY, "value": 3},
        {"set": "unobtainium", "value": 3},
        {"set": ["density"], "value": 3},
        {"set": "density"},
        {"set": "density", "value": True},
        {"set": "density", "value": "3"},
        {"set": "density", "value": float("nan")},
        {"set": "density", "value": 10**400},
        {"set": "density", "value": 3, "reactor": 4},
        {"reactor": None},
        {"submit": []},
        {"wait": 1},
        {},
        [],
        "set",
    ],
)
def test_what_cannot_be_meant_is_refused_and_changes_nothing(action: Any) -> None:
    episode = LabEpisode(worked())
    step = episode.act(action)
    assert step.refused
    assert (step.reading, step.cost, episode.left, episode.closed) == (None, 0, 12, False)
    assert read(episode, "density", 79) == dict(episode.task.baseline)


def test_values_beyond_every_number_are_refused() -> None:
    item = worked()
    squared = Mechanism({**MECHANISM.equations, "quantumSize": Equation((Term("density", 2, 1.0),))})
    episode = LabEpisode(replace(item, sealed=replace(item.sealed, mechanism=squared)))
    assert episode.act({"set": "density", "value": 1e200}).refused
    assert read(episode, "density", 3)["quantumSize"] == 22


def test_over_the_allowance_nothing_is_set() -> None:
    episode = LabEpisode(worked(allowance=1))
    assert read(episode, "density", 1)["density"] == 1
    assert episode.act({"set": "density", "value": 2}).refused
    assert not episode.closed


def test_unknown_settings_can_be_counted_as_the_released_code_does() -> None:
    episode = LabEpisode(worked(noise=Noise((5.0,), 1.0, ("density",), 0)), UnknownSetting.COUNTED)
    assert read(episode, "unobtainium", 1)["density"] == 84
    assert episode.left == 11


def test_after_the_submission_nothing_is_answered() -> None:
    episode = LabEpisode(worked())
    assert not episode.act({"submit": {"hypothesis": {}}}).refused
    assert episode.closed
    assert episode.act({"set": "density", "value": 1}).refused
    assert episode.act({"submit": {}}).refused


ACTIONS = st.one_of(
    st.builds(
        lambda name, value: {"set": name, "value": value},
        st.sampled_from(["density", "moisture", "ph", "pressure", "conductivity", "quantumSize", FREQUENCY, "x"]),
        st.integers(-50, 200) | st.floats(),
    ),
    st.builds(lambda f: {"reactor": f}, st.floats()),
    st.just({"submit": {}}),
)


@settings(max_examples=examples(150), deadline=None)
@given(items(), st.lists(ACTIONS, max_size=8))
def test_a_transcript_gives_the_same_readings_again(item: LabItem, actions: list[dict[str, Any]]) -> None:
    episode = LabEpisode(item)
    for action in actions:
        episode.act(action)
    again = replay_transcript(LabEpisode(item), episode.steps)
    assert again.left == episode.left
    json.dumps([step.reading for step in episode.steps], allow_nan=False)


def test_a_forged_reading_is_noticed() -> None:
    episode = LabEpisode(worked())
    read(episode, "density", 3)
    step = episode.steps[0]
    forged = replace(step, reading={**(step.reading or {}), FREQUENCY: 0.0})
    with pytest.raises(TranscriptError, match="step 0"):
        replay_transcript(LabEpisode(worked()), [forged])


@settings(max_examples=examples(100), deadline=None)
@given(items(("3nodes", "5nodes", "4nodes_freqparent", "7nodes")))
def test_bases_follow_from_values_of_linear_crystals(item: LabItem) -> None:
    mechanism, bases = item.sealed.mechanism, item.sealed.bases.reactor
    assert bases_of(mechanism, values(mechanism, bases)) == bases


def test_what_is_sealed_is_not_in_the_task() -> None:
    item = made_item("6nodes_freqparent")
    assert FREQUENCY not in item.task.reactor
    public = {name for name in dir(LabEpisode(item)) if not name.startswith("_")}
    assert public == {"act", "closed", "left", "steps", "task"}


# --- A hypothesis beside the data of its own run ----------------------------------------------------------------------
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
