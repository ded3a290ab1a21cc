"""Episodes: settings, noise, the reactor, refusals, transcripts."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrant.dsl.causalab.episode import LabEpisode, UnknownSetting
from calibrant.dsl.causalab.item import Bases, Family, LabItem, Name, Terms, lab_item
from calibrant.dsl.causalab.mechanism import FREQUENCY, Draw, Equation, Mechanism, Noise, Reactor, Term, winnable
from calibrant.dsl.causalab.reference import Reading, bases_of, values
from calibrant.dsl.episode import TranscriptError, verify_transcript
from tests.support.causalab.laboratories import items, made_item
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


def worked(reading: Reading = Reading.VALUE, noise: Noise | None = None, allowance: int = 12) -> LabItem:
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
    episode = LabEpisode(worked(Reading.BASE))
    assert read(episode, "quantumSize", 77)["quantumSize"] == 77 + 79


def test_both_readings_agree_for_properties_without_parents() -> None:
    pair = [LabEpisode(worked(reading)) for reading in Reading]
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
    again = verify_transcript(LabEpisode(item), episode.steps)
    assert again.left == episode.left
    json.dumps([step.reading for step in episode.steps], allow_nan=False)


def test_a_forged_reading_is_noticed() -> None:
    episode = LabEpisode(worked())
    read(episode, "density", 3)
    step = episode.steps[0]
    forged = replace(step, reading={**(step.reading or {}), FREQUENCY: 0.0})
    with pytest.raises(TranscriptError, match="step 0"):
        verify_transcript(LabEpisode(worked()), [forged])


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
