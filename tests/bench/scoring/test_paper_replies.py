"""Replies in CausaLab's own format, frequencies that cannot be read, answers inside other objects."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import calibrant
from calibrant.bench.causalab.benchmark import BENCHMARK
from calibrant.bench.cli import main
from calibrant.bench.training import conversation, score_replies
from calibrant.dsl.causalab.item import BENCHMARK as NAME
from calibrant.dsl.causalab.mechanism import state_mechanism
from calibrant.dsl.causalab.records import write_pool
from calibrant.dsl.item import Pool
from tests.support.benchmarks.causalab import made_item
from tests.support.commands import jsonl

ITEM = made_item("4nodes", seed=3)
TARGET = ITEM.sealed.target
TRUTH = state_mechanism(ITEM.sealed.mechanism)
PROPERTY = ITEM.task.settable[0]
NOTES: dict[str, Any] = {
    "memory": "settings so far: none",
    "thought": "{not json}",
    "past_data": [{"id": "0/N", "props": {PROPERTY: 3}, "freq": 20.0}],
}
NAN, INFINITE = float("nan"), float("inf")


@pytest.fixture
def pool(tmp_path: Path) -> Path:
    path = tmp_path / "pool.jsonl"
    write_pool(Pool("lab", NAME, (ITEM,), {}), path)
    return path


def scored(capsys: pytest.CaptureFixture[str], pool: Path, *answers: Any) -> tuple[list[dict[str, Any]], str]:
    lines = ({"id": ITEM.id, "model": str(k), "response": json.dumps(a)} for k, a in enumerate(answers))
    file = jsonl(pool.parent / "predictions.jsonl", *lines)
    assert main(["score", str(pool), str(file), "--json"]) == 0
    printed = capsys.readouterr()
    return [json.loads(line) for line in printed.out.splitlines()], printed.err


RIGHT: list[dict[str, Any]] = [
    {"frequency": TARGET, "hypothesis": TRUTH},
    {"reactor": TARGET, "hypothesis": TRUTH},
    {"submit": {"frequency": TARGET, "hypothesis": TRUTH}},
    {**NOTES, "hypothesis": TRUTH, "experiment": {}, "value": TARGET},
    {**NOTES, "hypothesis": TRUTH, "value": TARGET},
    {**NOTES, "hypothesis": TRUTH, "experiment": None, "value": TARGET, "action": None},
    {**NOTES, "hypothesis": TRUTH, "experiment": {"target_prop": " ", "target_value": 3}, "value": TARGET},
    {**NOTES, "hypothesis": TRUTH, "action": "SUBMIT", "value": TARGET},
    {"answer": {"frequency": TARGET, "hypothesis": TRUTH}},
    {"thoughts": "x", "final": {"answer": {**NOTES, "hypothesis": TRUTH, "value": TARGET}}},
    {"submit": {"answer": {"frequency": TARGET, "hypothesis": TRUTH}}},
]


def test_one_right_answer_has_the_same_verdict_in_every_format(pool: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines, said_ = scored(capsys, pool, *RIGHT)
    assert len(lines) == len(RIGHT)
    for line in lines:
        assert {**line, "model": "0"} == lines[0]
    assert (lines[0]["correct"], lines[0]["graph_correct"], lines[0]["problem"]) == (True, True, "")
    assert "that can be read" not in said_
    assert "part of an answer" not in said_


@pytest.mark.parametrize(
    ("stated_frequency", "problem"),
    [
        ({"frequency": "288.0"}, "no frequency: '288.0' is not a finite number"),
        ({"frequency": NAN}, "no frequency: nan is not a finite number"),
        ({"reactor": INFINITE}, "no frequency: inf is not a finite number"),
        ({"frequency": True}, "no frequency: True is not a finite number"),
        ({"frequency": [TARGET]}, "no frequency: "),
        ({"frequency": {"value": TARGET}}, "no frequency: "),
        ({"frequency": 10**400}, "no frequency: "),
        ({"frequency": 7, "reactor": 8}, "no frequency: two frequencies: 7.0 and 8.0"),
        ({"frequency": 7, "value": 8}, "no frequency: two frequencies: 7.0 and 8.0"),
        ({"value": "288.0"}, "no frequency: '288.0' is not a finite number"),
        ({"value": 50, "experiment": {"target_prop": PROPERTY}}, "no frequency: its value is a setting of "),
        ({"value": 50, "experiment": PROPERTY}, "no frequency: experiment is "),
        ({"action": "MOVE", "arg1": "north"}, "no frequency: action 'MOVE' belongs to the world around"),
        ({"chosen_dialog_option_int": 0}, "no frequency: chosen_dialog_option_int 0 belongs to the world around"),
        ({"action": "SUBMIT"}, "no frequency"),
        ({}, "no frequency"),
        ({"frequency": None}, "no frequency"),
    ],
    ids=str,
)
def test_a_frequency_that_cannot_be_read_leaves_the_hypothesis(
    stated_frequency: dict[str, Any], problem: str, pool: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (line, wrapped), said_ = scored(
        capsys, pool, {"hypothesis": TRUTH, **stated_frequency}, {"submit": {"hypothesis": TRUTH, **stated_frequency}}
    )
    for one in (line, wrapped):
        assert (one["graph_correct"], one["freq_weight_f1"], one["submitted"]) == (True, 1.0, 1.0)
        assert (one["frequency"], one["correct"]) == (None, False)
    assert line["problem"].startswith(problem) if problem != "no frequency" else line["problem"] == problem
    assert f"2 responses hold an answer that is incomplete or misplaced (first: {ITEM.id}: no frequency" in said_
    assert "nothing was submitted" not in said_


def test_a_hypothesis_that_cannot_be_read_leaves_the_frequency(pool: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (line,), said_ = scored(capsys, pool, {"frequency": TARGET, "hypothesis": [1]})
    assert (line["correct"], line["problem"]) == (True, "hypothesis is [1], not an object")
    assert "1 response holds an answer that is incomplete or misplaced" in said_


def test_notes_are_no_answer(pool: Path, capsys: pytest.CaptureFixture[str]) -> None:
    two: dict[str, Any] = {"a": {"edges": []}, "b": {"edges": []}}
    empty = [{"memory": {"hypothesis": TRUTH}}, {"experiment": {"frequency": 3}}, NOTES, two]
    lines, said_ = scored(capsys, pool, *empty)
    assert [(line["submitted"], line["frequency"]) for line in lines] == [(0.0, None)] * 4
    assert all(line["problem"] for line in lines)
    assert f"4 responses hold no answer that can be read (first: {ITEM.id}: no frequency and no hypothesis" in said_


def test_the_public_verb_scores_what_can_be_read() -> None:
    score = calibrant.score(ITEM, {"frequency": "288.0", "hypothesis": TRUTH})
    assert (score.valid, score.correct, score.details.hypothesis.distance.shd) == (True, False, 0)
    assert score.failure == "no frequency: '288.0' is not a finite number"
    assert calibrant.score(ITEM, {"memory": "", "hypothesis": TRUTH, "value": TARGET}).failure is None


def _spelled(name: str) -> str:
    return f" {name.upper()[:2]}_{name.upper()[2:]}-"


def test_a_conversation_takes_replies_of_the_paper() -> None:
    chat = conversation(BENCHMARK, ITEM)
    left = chat.episode.left
    free = [
        {**NOTES, "action": "MOVE", "arg1": "north"},
        {**NOTES, "chosen_dialog_option_int": 2},
        {**NOTES, "value": 3, "experiment": 7},
    ]
    for reply in free:
        chat.take_text(json.dumps(reply))
        assert chat.messages[-1]["content"].startswith("Not understood: ")
        assert "\n" not in chat.messages[-1]["content"]
    assert (len(chat.episode.steps), chat.episode.left) == (0, left)
    experiment = {"target_prop": _spelled(PROPERTY), "target_value": 20}
    chat.take_text(json.dumps({**NOTES, "hypothesis": TRUTH, "experiment": experiment, "value": 20}))
    chat.take_text(json.dumps({**NOTES, "experiment": {"target_prop": "nonsense"}, "value": 20}))
    chat.take_text(json.dumps({**NOTES, "hypothesis": {}, "experiment": {}, "value": TARGET}))
    chat.take_text(json.dumps({**NOTES, "hypothesis": TRUTH, "action": "submit"}))
    steps = chat.episode.steps
    assert [dict(step.action) for step in steps] == [
        {"set": PROPERTY, "value": 20, "hypothesis": TRUTH},
        {"set": "nonsense", "value": 20},
        {"reactor": TARGET, "hypothesis": {}},
        {"submit": {"hypothesis": TRUTH}},
    ]
    assert [bool(step.refused) for step in steps] == [False, True, False, False]
    assert chat.closed


def test_a_name_that_could_mean_two_properties_means_none() -> None:
    from calibrant.dsl.causalab.replies import resolved_property

    assert resolved_property("Temp_C", ("tempC", "TEMPC")) == "Temp_C"
    assert resolved_property("tempC", ("tempC", "TEMPC")) == "tempC"
    assert resolved_property("quantum Size", ("quantumSize", "ph")) == "quantumSize"
    assert resolved_property(["ph"], ("ph",)) == ["ph"]


def test_the_last_reply_of_a_conversation_is_handed_in_without_its_frequency() -> None:
    verdict = score_replies(BENCHMARK, ITEM, [json.dumps({"frequency": "7", "hypothesis": TRUTH})])
    assert verdict.answered
    assert verdict.verdict.details.hypothesis.distance.shd == 0
