"""The dialogue: prompts state what is disclosed and nothing sealed, replies act by their last marked line."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrant.dsl.episode import ActionError
from calibrant.dsl.replayscm.dialogue import NO_ACTION, TextDialogue, read_reply
from calibrant.dsl.replayscm.episode import ScmEpisode
from tests.support.replayscm.extensions.vectors import frontier_vectors, problem_of

NAMES = ("plain0", "noise0", "hidden0", "chosen0", "drawn0", "ordered0")


def _dialogue(kind: str, **changes: Any) -> TextDialogue:
    line = next(x for x in frontier_vectors("episode") if x["id"].endswith(f"-{kind}"))
    return TextDialogue(ScmEpisode(problem_of(line, **changes)))


@pytest.mark.parametrize("kind", NAMES)
def test_the_prompt_is_one_of_disclosed_fields(kind: str) -> None:
    dialogue = _dialogue(kind)
    text = dialogue.prompt()
    extension = dialogue.episode.task.extension
    assert extension is not None
    for variable in extension.variables:
        assert variable in text
    assert ("H1 (a function of" in text) == (kind == "hidden0")
    assert ("is flipped with probability" in text) == (kind == "noise0")
    assert ('"contexts"' in text) == (kind == "chosen0")
    assert "World 0 (nothing is set):" in text
    assert f"{dialogue.episode.left} worlds left." in text
    example = read_reply(text[: text.index('ACTION: {"submit"')])
    assert dialogue.episode.act(example).refused == ""


def test_the_last_marked_line_acts() -> None:
    dialogue = _dialogue("plain0")
    answer = dialogue.reply('First\nACTION: {"do": {"X1": 7}}\nno, rather\nACTION: {"do": {"X1": 1}}\nthanks')
    assert answer.startswith("World 1 (X1=1):\n- X1=1 ")
    assert dialogue.reply("I do not know") == NO_ACTION
    assert dialogue.reply("ACTION: do X1").startswith("expected a JSON object")
    assert dialogue.reply('ACTION: {"do": {"X9": 1}}').startswith("Refused: 'X9' is no variable")
    assert dialogue.refusals == 3
    assert dialogue.reply('ACTION: {"submit": {"mechanisms": {}}}') == "Submitted. The episode is over."
    assert dialogue.closed
    assert dialogue.reply("ACTION: {}") == "The episode is over."


def test_replies_are_limited() -> None:
    dialogue = _dialogue("plain0")
    extension = dialogue.episode.task.extension
    assert extension is not None
    assert extension.allowance is not None
    for _ in range(2 * extension.allowance.worlds + 10):
        assert not dialogue.closed
        dialogue.reply("hm")
    assert dialogue.closed
    assert not dialogue.episode.closed


def test_a_grid_and_a_forecast_are_stated() -> None:
    noise = {"shared": [["0", "1/2"], ["1/10", "1/2"]]}
    line = next(x for x in frontier_vectors("episode") if x["id"].endswith("-noise0"))
    worlds = [{"constants": {}, "contexts": ["0"]}]
    changes: dict[str, Any] = {"question": "forecast", "asked": worlds}
    text = _dialogue("noise0", **changes).prompt()
    assert "Forecast: of each world below" in text
    shape = read_reply(next(x for x in text.splitlines() if "forecast" in x and x.startswith("ACTION:")))
    assert json.dumps(shape).count("0.5") == len(line["item"]["gold"])
    grid = _dialogue("noise0", noise=noise).prompt()
    assert "one of 0 (probability 1/2), 1/10 (probability 1/2)" in grid
    assert '"noise": "0"' in grid


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=60), st.text(max_size=60))
def test_no_reply_raises(head: str, tail: str) -> None:
    for text in (head, f"{head}\nACTION:{tail}", f"ACTION: {tail}"):
        with suppress(ActionError):
            assert isinstance(read_reply(text), dict)
