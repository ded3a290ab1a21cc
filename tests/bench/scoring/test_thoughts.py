"""An object in a closed <think> block never counts, whichever benchmark reads the reply."""

from __future__ import annotations

import json

import pytest

from calibrant.bench.core.registry import benchmark, bundled_sample
from calibrant.dsl.episode import ActionError
from calibrant.dsl.json_objects import without_thoughts
from tests.support.commands import called

ANSWERS = {
    "causim": ({"a": 1}, {"b": 2}),
    "blickets": ({"rule": "conjunctive", "blickets": ["A", "B"]}, {"rule": "disjunctive", "blickets": ["C"]}),
    "causalab": ({"frequency": 7}, {"frequency": 8}),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_what_is_thought_is_no_answer(name: str) -> None:
    of = benchmark(name)
    item = of.items.read_pool(bundled_sample(name)).items[0]
    thought, answer = map(json.dumps, ANSWERS[name])
    assert of.scoring.extract(item, f"<think>{thought}</think> {answer}") == ANSWERS[name][1]
    assert of.scoring.extract(item, f"{answer} <think>perhaps {thought}</think>") == ANSWERS[name][1]
    with pytest.raises(ActionError):
        of.scoring.extract(item, f"<think>{answer}</think> that is all")
    with pytest.raises(ActionError):
        of.scoring.extract(item, f"<think>{answer}</think><think>{thought}</think>")


def test_an_open_block_stays() -> None:
    assert without_thoughts("a<think>b") == "a<think>b"
    assert without_thoughts("a<think>b</think>c</think>d<think>e</think>") == "ac</think>d"
    assert without_thoughts("<think><think>x</think>y") == "y"


def test_prompts_may_ask_for_tags() -> None:
    path = bundled_sample("causim")
    usual, tagged = (
        json.loads(called("prompts", path, "--limit", 1, *words).stdout) for words in ([], ["--system", "think"])
    )
    assert usual["system"] == ""
    assert "<think>" in tagged["system"]
    assert usual["prompt"] == tagged["prompt"]
