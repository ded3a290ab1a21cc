"""Episodes as text, curricula, and replies that trainers score."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibrant.baselines.blickets.dialogue import BASE, CG, CG_DB, Prompting
from calibrant.bench.blickets.agents import text_episode
from calibrant.bench.core.registry import NAMES, benchmark
from calibrant.bench.episodes import JsonChat, Reaction, TextEpisode
from calibrant.bench.training import FIRST_DRAWN, endless, in_stages, in_turns, replies
from calibrant.dsl.blickets.item import BlicketItem, Form, Rule
from calibrant.dsl.episode import Step, sole_action
from calibrant.dsl.errors import CalibrantError
from calibrant.dsl.item import Message
from tests.support.benchmarks.blickets import items, static_item
from tests.support.counter_game import NumberGame

# --- Episodes as text: the shape that frameworks wrap, its documented examples, and agents that say anything ----------
DOCUMENT = (Path(__file__).resolve().parents[2] / "docs" / "episodes.md").read_text(encoding="utf-8")
CODE = re.findall(r"```python\n(.*?)```", DOCUMENT, re.DOTALL)
ITEM = static_item(Rule(Form.CONJUNCTIVE, 3), 3)
CHECK = 'ACTION: {"check": {"rule": "conjunctive", "blickets": ["A", "B"]}}'
ALL = pytest.mark.parametrize("prompting", [BASE, CG, CG_DB], ids=lambda p: p.name)


def stub_agent(messages: Sequence[Message]) -> str:
    """Places A, then B, then submits; it counts its own replies."""
    said = ["ACTION: place A", "ACTION: place B", CHECK]
    return said[sum(message["role"] == "assistant" for message in messages)]


# --- blickets ---------------------------------------------------------------------------------------------------------


@ALL
def test_a_stub_agent_gets_its_reward_at_the_end(prompting: Prompting) -> None:
    episode = text_episode(ITEM, prompting)
    messages = episode.reset()
    assert [message["role"] for message in messages] == ["user"]
    reactions: list[Reaction] = []
    while not (reactions and reactions[-1].done):
        reactions.append(episode.reply(stub_agent(episode.messages)))
    assert [(r.reward, r.done) for r in reactions] == [(0, False), (0, False), (1, True)]
    assert reactions[1].text.startswith("The detector is ACTIVE. On the detector: A, B. Moves left: 73.")
    assert reactions[1].info == {
        "left": 73,
        "steps": [{"action": {"place": "B"}, "reading": "ACTIVE", "refused": "", "cost": 1}],
    }
    assert reactions[2].info["score"]["correct"] is True
    with pytest.raises(ValueError, match="call reset"):
        episode.reply("ACTION: place C")


def test_before_a_reset_there_is_nothing_to_reply_to() -> None:
    episode = text_episode(ITEM)
    assert episode.messages == []
    with pytest.raises(ValueError, match="call reset"):
        episode.reply("ACTION: place A")


def test_a_reset_begins_anew() -> None:
    episode = text_episode(ITEM, CG)
    first = episode.reset()
    one = [episode.reply(text) for text in ("ACTION: place A", "TRANSITION: COMBINATION_TESTING", CHECK)]
    assert episode.reset() == first
    assert [episode.reply(text) for text in ("ACTION: place A", "TRANSITION: COMBINATION_TESTING", CHECK)] == one


def test_a_wrong_answer_a_timeout_and_mere_talk_are_worth_nothing_and_told_apart() -> None:
    short = static_item(Rule(Form.CONJUNCTIVE, 7), 3, budget=1)
    ends: list[Any] = []
    for said in (CHECK, "ACTION: place A", "Well."):
        episode = text_episode(short)
        episode.reset()
        last = episode.reply(said)
        while not last.done:
            last = episode.reply(said)
        assert last.reward == 0
        ends.append([last.info["score"][key] for key in ("closed", "correct", "errors")])
    assert ends == [["answered", False, ["under"]], ["timeout", False, ["timeout"]], ["open", None, []]]


@ALL
@given(item=items(), replies=st.lists(st.one_of(st.text(), st.none(), st.binary()), min_size=1, max_size=40))
def test_whatever_is_said_there_is_a_reaction_that_fits_json(
    prompting: Prompting, item: BlicketItem, replies: list[object]
) -> None:
    episode = text_episode(item, prompting)
    episode.reset()
    for said in replies:
        reaction = episode.reply(said)
        json.dumps(reaction.info)
        assert reaction.done is ("score" in reaction.info)
        if reaction.done:
            break


# --- any benchmark ----------------------------------------------------------------------------------------------------


def _game() -> TextEpisode:
    def opened() -> JsonChat:
        game = NumberGame(number=5, allowance=4)
        return JsonChat(game, "Guess.", lambda step, left: f"{step.refused or step.reading}; {left} left", max_turns=6)

    def score(steps: Sequence[Step[Any]]) -> dict[str, Any]:
        return {"guess": steps[-1].action.get("submit") if steps else None}

    return TextEpisode(opened, score, lambda found: 1.0 if found["guess"] == 5 else 0.0)


def test_an_episode_of_any_benchmark_is_played_in_json() -> None:
    episode = _game()
    assert episode.reset() == [{"role": "user", "content": "Guess."}]
    assert episode.reply('Is it high? {"ask": 5}').text == "True; 3 left"
    assert episode.reply("I do not know.").text == "Not understood: expected a JSON object, found 'I do not know.'."
    assert episode.reply('{"ask": 5, "submit": 5}').text.startswith("several verbs")
    assert episode.reply('{"ask": 6}').text == "False; 1 left"
    over = episode.reply('{"submit": 5}')
    assert (over.reward, over.done, over.info["score"]) == (1.0, True, {"guess": 5})


def test_talk_is_bounded() -> None:
    episode = _game()
    episode.reset()
    assert [episode.reply("hm").done for _ in range(6)] == [False] * 5 + [True]


@pytest.mark.parametrize(
    ("text", "action"),
    [
        ('{"ask": 1}', {"ask": 1}),
        ('so {"ask": {"x": 1}} then', {"ask": {"x": 1}}),
        ('{"ask": 1} and again {"ask": 1}', {"ask": 1}),
    ],
)
def test_one_action_is_read_from_a_reply(text: str, action: object) -> None:
    assert sole_action(text) == action


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"ask": 1} or {"ask": 2}', "several actions; a reply carries one"),
        ('{"ask": ', "expected a JSON object, found '{\"ask\": '"),
        (3, "expected text, found 3"),
    ],
)
def test_a_reply_without_one_action_is_refused(text: object, why: str) -> None:
    episode = _game()
    episode.reset()
    reaction = episode.reply(text)
    assert (reaction.text, reaction.info["left"]) == (f"Not understood: {why}.", 4)


# --- what the document says -------------------------------------------------------------------------------------------


def test_the_documented_loop_prints_what_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    promised = [line.split("# ", 1)[1] for line in CODE[0].splitlines() if line.startswith("print(")]
    exec(compile(CODE[0], "episodes.md", "exec"), {})
    assert capsys.readouterr().out.splitlines() == promised


def test_the_documented_shapes_drive_an_episode() -> None:
    names: dict[str, Any] = {}
    for code in CODE[1:]:
        exec(compile(code, "episodes.md", "exec"), names)
    environment = names["Environment"](text_episode(ITEM))
    text, info = environment.reset(seed=1)
    assert (text.startswith("You are examining"), info) == (True, {})
    results = [environment.step(said) for said in ("ACTION: place A", "ACTION: place B", CHECK)]
    assert [(reward, done, cut) for _, reward, done, cut, _ in results] == [(0, False, False)] * 2 + [(1, True, False)]

    conversation = names["Conversation"](text_episode(ITEM))
    messages = conversation.start()
    while not conversation.done:
        messages.append({"role": "assistant", "content": stub_agent(messages)})
        messages.append(conversation.respond(messages))
    assert conversation.reward == 1
    assert conversation.info["score"]["steps"] == 2


# --- Items without end: the same for the same seed, however many are taken --------------------------------------------
EASY = {name: benchmark(name).training.stages[0] for name in NAMES}


@pytest.mark.parametrize("name", NAMES)
def test_item_i_is_the_same_however_many_are_taken(name: str) -> None:
    bench = benchmark(name)
    taken = list(islice(endless(bench, EASY[name], 3), FIRST_DRAWN + 2))
    assert taken[: FIRST_DRAWN - 1] == list(bench.suites.draw((EASY[name],), 3, FIRST_DRAWN - 1))
    assert len({item.id for item in taken}) == len(taken)
    assert taken[0] != next(endless(bench, EASY[name], 4))


@pytest.mark.parametrize("name", NAMES)
def test_stages_are_suites_of_the_benchmark(name: str) -> None:
    bench = benchmark(name)
    assert len(bench.training.stages) > 1
    assert set(bench.training.stages) <= set(bench.suites.names)


@pytest.mark.parametrize("name", NAMES)
def test_the_labels_of_an_item_are_numbers_of_the_same_names(name: str) -> None:
    bench = benchmark(name)
    labels = [bench.training.difficulty(next(endless(bench, stage, 1))) for stage in bench.training.stages[:3]]
    assert len({tuple(one) for one in labels}) == 1
    assert all(type(value) is int for one in labels for value in one.values())


def test_turns_and_stages() -> None:
    bench, suites = benchmark("blickets"), ("conjunctive", "easy-3")
    turns = [(one.suite, one.stage, one.place) for one in islice(in_turns(bench, suites, 1), 4)]
    assert turns == [("conjunctive", 0, 0), ("easy-3", 1, 0), ("conjunctive", 0, 1), ("easy-3", 1, 1)]
    stages = [(one.suite, one.stage, one.place) for one in islice(in_stages(bench, suites, 1, 2), 5)]
    assert stages == [("conjunctive", 0, 0), ("conjunctive", 0, 1), *(("easy-3", 1, place) for place in range(3))]
    assert next(in_stages(bench, (), 1, 2)).suite == bench.training.stages[0]


def test_difficulty_rises_with_the_stages_of_causalab() -> None:
    bench = benchmark("causalab")
    nodes = [bench.training.difficulty(next(endless(bench, stage, 1)))["nodes"] for stage in bench.training.stages[:5]]
    assert nodes == [3, 4, 5, 6, 7]


def test_what_cannot_be_meant() -> None:
    bench = benchmark("blickets")
    with pytest.raises(CalibrantError, match="unknown suite 'nowhere'; known: conjunctive"):
        next(in_turns(bench, ("nowhere",), 1))
    with pytest.raises(CalibrantError, match="0 items a stage"):
        next(in_stages(bench, (), 1, 0))


# --- Completions of every shape that trainers have --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("completion", "said"),
    [
        ("text", ["text"]),
        ("", [""]),
        ([], []),
        ([{"role": "assistant", "content": "a"}], ["a"]),
        (
            [
                {"role": "assistant", "content": "a"},
                {"role": "user", "content": "told"},
                {"role": "tool", "content": "told"},
                {"role": "assistant", "content": "b"},
            ],
            ["a", "b"],
        ),
        ([{"role": "assistant", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}], ["ab"]),
        ([{"role": "assistant", "content": [{"type": "image"}, "a text"]}], ["a text"]),
        ([{"role": "assistant", "content": None}, {"role": "assistant"}], ["", ""]),
        ([{"content": "nobody"}], []),
    ],
)
def test_what_the_model_said(completion: object, said: list[str]) -> None:
    responses = replies(completion)
    assert responses is not None
    assert [response.text or "" for response in responses] == said


@pytest.mark.parametrize("completion", [None, 1, {"role": "assistant", "content": "a"}, ["a"], [None]])
def test_what_is_no_completion(completion: object) -> None:
    assert replies(completion) is None
