"""The same answer in every form and place that a model or a person may write it: one meaning, never a silent 0."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import calibrant
from calibrant.bench.blickets.text_environment import text_episode
from calibrant.bench.cli import main
from calibrant.bench.core.registry import benchmark
from calibrant.bench.training import conversation, score_replies
from calibrant.dsl.blickets.item import Form, Rule
from calibrant.dsl.blickets.records import write_pool
from calibrant.dsl.blickets.replies import answer_of, stated_action
from calibrant.dsl.episode import ActionError
from tests.support.benchmarks.blickets import static_item

OBJECTS = tuple("ABCDE")
ITEM = static_item(Rule(Form.CONJUNCTIVE, 0b10001), 5)
ANSWER = {"rule": "conjunctive", "blickets": ["A", "E"]}
OF = benchmark("blickets")

FORMS = [
    '{"rule": "conjunctive", "blickets": ["A", "E"]}',
    '{"check": {"rule": "conjunctive", "blickets": ["A", "E"]}}',
    '{"rule": "Conjunctive", "blickets": ["a", "e"]}',
    '{"RULE_TYPE": "CONJUNCTIVE", "Blickets": "A, E"}',
    "conjunctive A, E",
    "check conjunctive A E",
    "Check Conjunctive: [A, E].",
    "ACTION: check conjunctive A E",
    "ACTION: conjunctive A, E",
    "**ACTION:** `check conjunctive A and E`",
    'REASONING: both\nACTION: {"check": {"rule": "CONJUNCTIVE", "blickets": ["E", "A"]}}',
    "RULE_TYPE: conjunctive\nBLICKETS: A, E",
    "BLICKETS: A, E\nRULE_TYPE: conjunctive",
    "rule_type: Conjunctive\nblickets: a, e",
    "**RULE_TYPE:** **conjunctive**\n**BLICKETS:** **A**, **E**",
    "- `RULE_TYPE`: conjunctive\n- `BLICKETS`: [A, E]",
    "REASONING: only both together light it\n\nRULE TYPE: Conjunctive\nBLICKETS: A and E.",
    "REASONING: x\nACTION: check\nRULE_TYPE: CONJUNCTIVE\nBLICKETS: {A, E}",
]


def _by_score(form: str) -> bool:
    return calibrant.score(ITEM, form).correct is True


def _by_text_episode(form: str) -> bool:
    episode = text_episode(ITEM)
    episode.reset()
    return episode.reply(form).reward == 1


def _by_conversation(form: str) -> bool:
    chat = conversation(OF, ITEM)
    chat.hear(form)
    return chat.closed and OF.scoring.score(ITEM, {}, list(chat.episode.steps))["correct"] is True


def _by_reward(form: str) -> bool:
    return bool(score_replies(OF, ITEM, [form]).verdict.correct)


@pytest.mark.parametrize("way", [_by_score, _by_text_episode, _by_conversation, _by_reward])
@pytest.mark.parametrize("form", FORMS)
def test_one_right_answer_has_the_same_verdict_in_every_form_and_place(form: str, way: Any) -> None:
    assert way(form)


@pytest.mark.parametrize("form", [form for form in FORMS if "\n" not in form])
def test_play_reads_what_is_typed_as_scores_do(
    form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pool = tmp_path / "pool.jsonl"
    write_pool(pool, "made", [ITEM])
    monkeypatch.setattr("sys.stdin", io.StringIO(f"ACTION: place a\n{form}\n"))
    assert main(["play", str(pool)]) == 0
    assert "Refused" not in capsys.readouterr().out


WRAPPED: list[Any] = [
    {"answer": ANSWER},
    {"answer": "conjunctive A, E"},
    {"memory": "A and E were on", "answer": ANSWER},
    {"memory": {"seen": [1, 2]}, "hypothesis": {"rule": "Conjunctive", "blickets": ["E", "A"]}},
    {"result": {"final": [{"check": ANSWER}]}},
    {"response": json.dumps(ANSWER)},
    {"response": "RULE_TYPE: conjunctive\nBLICKETS: A, E"},
    {**ANSWER, "confidence": 0.9},
]


@pytest.mark.parametrize("wrapped", WRAPPED)
def test_answers_in_other_wrappings_are_read(wrapped: Mapping[str, Any]) -> None:
    for response in (wrapped, json.dumps(wrapped), f"So:\n```json\n{json.dumps(wrapped)}\n```"):
        if isinstance(response, str) and response[0] != "{" and any(isinstance(v, str) for v in wrapped.values()):
            continue  # words inside a string of an object inside a text
        assert calibrant.score(ITEM, response).correct, response


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("RULE_TYPE: conjunctive\nRULE_TYPE: disjunctive\nBLICKETS: A", "several lines `RULE_TYPE:`"),
        ("RULE_TYPE: conjunctive\nBLICKETS: A\nBLICKETS: B", "several lines `BLICKETS:`"),
        ("RULE_TYPE: both\nBLICKETS: A, E", "expected conjunctive or disjunctive after `RULE_TYPE:`, found 'both'"),
        ("RULE_TYPE: conjunctive\nBLICKETS: A, Z", "unknown object 'Z'"),
        ("RULE_TYPE: conjunctive\nBLICKETS:", "expected a non-empty list of objects"),
        ("RULE_TYPE: conjunctive\nBLICKETS: A, a", "listed twice"),
        ("conjunctive A, E\nconjunctive A, B", "2 different rules"),
        ("check conjunctive A Z", "unknown object 'Z'"),
        ("A and E", "no JSON object with the keys rule and blickets"),
        ("RULE_TYPE: conjunctive", "no JSON object with the keys rule and blickets"),
    ],
)
def test_what_cannot_be_read_has_a_reason(text: str, reason: str) -> None:
    with pytest.raises(ActionError, match=reason):
        answer_of(text, OBJECTS)
    score = calibrant.score(ITEM, text)
    assert not score.correct
    assert reason in str(score.failure)


@pytest.mark.parametrize("wrapped", [{"answer": {"kind": "both"}}, {"memory": "nothing"}, {"answer": None}, {}])
def test_objects_without_an_answer_have_a_reason(wrapped: dict[str, Any]) -> None:
    assert calibrant.score(ITEM, wrapped).failure


@pytest.mark.parametrize(
    ("text", "action"),
    [
        ("ACTION: place A", {"place": "A"}),
        ("ACTION: place a", {"place": "A"}),
        ("**Action:** remove B.", {"remove": "B"}),
        ("place A", {"place": "A"}),
        ("TRANSITION: VERIFICATION", None),
        ("I would place A.", None),
        ("REASONING: conjunctive A, E", None),
    ],
)
def test_moves_are_read_in_words(text: str, action: object) -> None:
    assert stated_action(text, OBJECTS) == action


def test_names_of_several_words_are_read_whole() -> None:
    objects = ("Red block", "blue block", "ball")
    assert stated_action("ACTION: place red block", objects) == {"place": "Red block"}
    expected = {"rule": "disjunctive", "blickets": ["Red block", "ball"]}
    assert answer_of("RULE_TYPE: disjunctive\nBLICKETS: red block and ball", objects) == expected


def test_of_two_objects_that_differ_in_case_each_is_itself() -> None:
    assert answer_of("conjunctive a, A", ("a", "A")) == {"rule": "conjunctive", "blickets": ["a", "A"]}


PIECES = [
    "RULE_TYPE:",
    "BLICKETS:",
    "ACTION:",
    "check ",
    "conjunctive ",
    "A",
    ", ",
    "\n",
    "{",
    "}",
    '"',
    "*",
    '{"answer":',
]


@given(st.lists(st.sampled_from(PIECES), max_size=30).map("".join))
def test_any_text_gives_an_answer_or_a_reason_in_one_line(text: str) -> None:
    reason = ""
    try:
        answer = answer_of(text, OBJECTS)
    except ActionError as error:
        answer, reason = {}, str(error)
    assert answer.keys() == {"rule", "blickets"} or reason
    assert "\n" not in reason
