"""Completions of every shape that trainers have."""

from __future__ import annotations

import pytest

from calibrant.bench.training import replies


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
        ([{"role": "assistant", "content": [{"type": "image"}, "odd"]}], [""]),
        ([{"role": "assistant", "content": None}, {"role": "assistant"}], ["", ""]),
        ([{"content": "nobody"}], []),
    ],
)
def test_what_the_model_said(completion: object, said: list[str]) -> None:
    assert replies(completion) == said


@pytest.mark.parametrize("completion", [None, 1, {"role": "assistant", "content": "a"}, ["a"], [None]])
def test_what_is_no_completion(completion: object) -> None:
    assert replies(completion) is None
