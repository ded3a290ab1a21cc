"""Actions, steps and transcripts, as every interactive benchmark has them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from calibrant.dsl.episode import (
    ActionError,
    Step,
    TranscriptError,
    action_of_text,
    replay_actions,
    replay_transcript,
    verb_of,
)
from calibrant.dsl.errors import CalibrantError
from tests.support.counter_game import NumberGame

VERBS = {"place": frozenset[str](), "set": frozenset({"value"})}


def test_an_action_has_exactly_one_verb_with_exactly_its_keys() -> None:
    assert verb_of({"place": "A"}, VERBS) == "place"
    assert verb_of({"set": "density", "value": 20}, VERBS) == "set"


@pytest.mark.parametrize(
    ("action", "says"),
    [
        ([], "expected a JSON object"),
        (None, "expected a JSON object"),
        ({}, "no verb"),
        ({"value": 3}, "no verb"),
        ({3: 4}, "no verb"),
        ({"place": "A", "set": "x"}, "several verbs"),
        ({"set": "density"}, "'set' takes the keys set, value"),
        ({"place": "A", "note": 1}, "'place' takes the keys place"),
    ],
)
def test_anything_else_is_refused_in_one_line(action: Any, says: str) -> None:
    with pytest.raises(ActionError, match=says) as refused:
        verb_of(action, VERBS)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "3", '{"a": 1} x', "\x00", '{"a": NaN}}', "[" * 100_000, '{"a":' * 9_000]
)
def test_text_that_is_no_json_object_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(ActionError) as refused:
        action_of_text(text)
    assert len(str(refused.value).splitlines()) == 1


def test_text_that_is_a_json_object_is_that_object() -> None:
    assert action_of_text('  {"place": "A"}\n') == {"place": "A"}


def test_a_transcript_that_the_item_answers_is_verified_and_one_that_lies_is_refused_by_step() -> None:
    actions: list[dict[str, Any]] = [{"ask": 3}, {"ask": 9}, {"fly": 1}, {"submit": 5}]
    steps = replay_actions(NumberGame(5, 20), actions).steps
    assert [step.reading for step in steps] == [True, False, None, None]
    again = replay_transcript(NumberGame(5, 20), steps)
    assert again.steps == steps
    assert again.closed
    lies: list[tuple[int, Step[Any]]] = [
        (0, replace(steps[0], reading=False)),
        (1, replace(steps[1], reading=None)),
        (1, Step(steps[1].action, 0, cost=1)),  # equal to False, but not what was read
        (2, replace(steps[2], refused="")),
        (3, replace(steps[3], cost=1)),
    ]
    for number, lie in lies:
        with pytest.raises(TranscriptError, match=f"^step {number}: ") as refused:
            replay_transcript(NumberGame(5, 20), [*steps[:number], lie, *steps[number + 1 :]])
        assert refused.value.number == number


def test_steps_of_its_own_at_the_front_have_to_be_in_the_transcript() -> None:
    first: Step[bool] = Step({"start": []}, True)
    game = NumberGame(5, 20, [first])
    game.act({"ask": 3})
    assert replay_transcript(NumberGame(5, 20, [first]), game.steps).steps == game.steps
    with pytest.raises(CalibrantError, match="step 0: missing"):
        replay_transcript(NumberGame(5, 20, [first]), [])
    with pytest.raises(CalibrantError, match="step 0: action"):
        replay_transcript(NumberGame(5, 20, [first]), game.steps[1:])
