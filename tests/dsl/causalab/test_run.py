"""Success of a run: the state that the last try of the reactor leaves, and whether any try opened it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from calibrant.dsl.causalab.episode import LabEpisode, run_score
from calibrant.dsl.episode import replay_actions
from tests.support.causalab.laboratories import made_item

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
