"""Replies as models write them, and as nobody should."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibrant.baselines.blickets.dialogue import Reply, read_reply

PLACE = {"place": "A"}
CHECK = {"check": {"rule": "conjunctive", "blickets": ["A", "B"]}}


@pytest.mark.parametrize(
    ("text", "action"),
    [
        ('REASONING: try it\nACTION: {"place": "A"}', PLACE),
        ('REASONING: try it\n\nACTION: {"place": "A"}\nTRANSITION: VERIFICATION', PLACE),
        ("ACTION: place A", PLACE),
        ("**ACTION:** `place A`.", PLACE),
        ("- Action : Place A\n", PLACE),
        ("ACTION: remove B", {"remove": "B"}),
        ('ACTION:\n```json\n{"place": "A"}\n```', PLACE),
        ('ACTION: {"check": {"rule": "conjunctive", "blickets": ["A", "B"]}}', CHECK),
        ('ACTION: {"check":\n  {"rule": "conjunctive",\n   "blickets": ["A", "B"]}}\n', CHECK),
        ("ACTION: check conjunctive A, B", CHECK),
        ("ACTION: check conjunctive: {A, B}", CHECK),
        ("ACTION: CHECK Conjunctive [A B]", CHECK),
        ('ACTION: {"place": "A"}\nACTION: place A', PLACE),
        ("REASONING: not ACTION: place B but this\nACTION: place A", PLACE),
        ('ACTION: {"fly": 1}', {"fly": 1}),  # read; the episode refuses it
    ],
)
def test_actions_are_read_as_json_or_in_words(text: str, action: object) -> None:
    reply = read_reply(text)
    assert reply.action == action
    assert reply.problems == ()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "no line `ACTION:`"),
        ("I would place A.", "no line `ACTION:`"),
        ("REASONING: I think so", "no line `ACTION:`"),
        ("ACTION:", "expected an action after `ACTION:`, found ''"),
        ("ACTION: dance", "expected an action after `ACTION:`, found 'dance'"),
        ('ACTION: {"place": "A"', 'expected an action after `ACTION:`, found \'{"place": "A"\''),
        ("ACTION: place A\nACTION: place B", "several actions; a reply carries one"),
        ('ACTION: {"place": "A"} {"place": "B"}', "several actions; a reply carries one"),
        (None, "expected text, found None"),
        (b"ACTION: place A", "expected text, found b'ACTION: place A'"),
        (7, "expected text, found 7"),
    ],
)
def test_what_cannot_be_read_is_refused_in_one_line(text: object, problem: str) -> None:
    assert read_reply(text) == Reply(reasoning=read_reply(text).reasoning, problems=(problem,))


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("TRANSITION: VERIFICATION", "VERIFICATION"),
        ("TRANSITION: **verification**.", "VERIFICATION"),
        ("TRANSITION: `ORDER_TESTING` because", "ORDER_TESTING"),
        ("ACTION: place A\nTRANSITION: X\nTRANSITION: X", "X"),
    ],
)
def test_transitions_are_read(text: str, name: str) -> None:
    reply = read_reply(text)
    assert (reply.transition, reply.problems) == (name, ())


def test_of_two_transitions_none_is_taken_and_the_action_stands() -> None:
    reply = read_reply("ACTION: place A\nTRANSITION: X\nTRANSITION: Y")
    assert (reply.action, reply.transition) == (PLACE, "")
    assert reply.problems == ("several transitions; a reply carries at most one",)
    assert read_reply("TRANSITION: !").problems == ("expected the name of a state after `TRANSITION:`",)


def test_reasoning_is_what_stands_before_the_next_mark() -> None:
    assert read_reply("REASONING: first\nsecond\nACTION: place A").reasoning == "first\nsecond"


PIECES = ["ACTION:", "TRANSITION:", "REASONING:", "\n", "place A", "check ", "{", "}", '"', "[", "é", "\0", " ", "*"]


@given(st.one_of(st.text(), st.lists(st.sampled_from(PIECES)).map("".join)))
def test_any_text_gives_a_reply_or_says_why_not(text: str) -> None:
    reply = read_reply(text)
    assert reply.action is not None or reply.transition or reply.problems
    assert all("\n" not in problem for problem in reply.problems)


@pytest.mark.parametrize(
    "piece",
    ["ACTION: ", "ACTION:\n", "\n", "{", "[", '{"a":', "*_ \t", "TRANSITION: _", "ACTION: check conjunctive ", '"'],
)
def test_long_replies_take_linear_time(piece: str) -> None:
    text = "ACTION: " + piece * (1_000_000 // len(piece))
    started = time.process_time()
    read_reply(text)
    assert time.process_time() - started < 20  # a quadratic reader takes hours
