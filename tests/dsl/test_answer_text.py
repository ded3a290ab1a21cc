"""Thoughts apart from the answer text, whatever stands in them."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

import calibrant
from calibrant.datasets import bundled_pool, right_answer
from calibrant.dsl.answer_text import read_answer_text

ITEM = calibrant.load_pool(bundled_pool("causim"))[0]
RIGHT = json.dumps(right_answer(ITEM))
PLAIN = st.text(st.characters(exclude_characters="<>[]`◁▷|", exclude_categories=["Cs"]), max_size=40)
DRAFTS = st.one_of(PLAIN, st.just(RIGHT), st.builds("{} {}".format, PLAIN, st.just(RIGHT)))


def test_the_draft_is_right_where_it_is_the_answer() -> None:
    assert calibrant.score(ITEM, RIGHT).correct is True


@given(DRAFTS, DRAFTS)
def test_thoughts_change_nothing(draft: str, text: str) -> None:
    if "assistantfinal" in draft + text or text.lstrip().startswith("analysis"):
        return
    alone = calibrant.score(ITEM, text).correct
    assert calibrant.score(ITEM, f"<think>{draft}</think>{text}").correct is alone
    assert calibrant.score(ITEM, f"{draft}</think>{text}").correct is alone
    assert calibrant.score(ITEM, f"<think>{draft}").correct is False


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("<think>a</think>b", "b"),
        ("b<think>a", "b"),
        ("a</think>b</think>c", "c"),
        ("<think>a</thinking>b", ""),
        ("< Think x='1' >a</ THINK >b", "b"),
        ("`<think>` b", "`<think>` b"),
        ("``<think>`` b", "``"),
        ('{"a": "<think>"}', '{"a": "<think>"}'),
        ("<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>final<|message|>b<|return|>", "b"),
        ("<|channel|>analysis<|message|>a<|end|>b", "b"),
        ("analysisWe think.assistantfinalb", "b"),
    ],
)
def test_what_is_outside(text: str, answer: str) -> None:
    assert read_answer_text(text).text == answer


def test_a_kelvin_sign_is_no_letter_of_a_mark() -> None:
    assert read_answer_text("<thin\N{KELVIN SIGN}>a").text == "<thin\N{KELVIN SIGN}>a"
