"""Predictions about laboratories: answers of the four prompt families, steps that are replayed, what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from calibrant.bench.causalab.scoring import LabVerdict
from calibrant.bench.cli import main
from calibrant.bench.runs.records import step_records
from calibrant.dsl.causalab.episode import LabEpisode
from calibrant.dsl.causalab.item import BENCHMARK, LabItem
from calibrant.dsl.causalab.mechanism import FREQUENCY, state_mechanism
from calibrant.dsl.causalab.records import write_pool
from calibrant.dsl.episode import replay_actions
from calibrant.dsl.item import Pool
from tests.support.benchmarks.causalab import made_item
from tests.support.commands import jsonl, refused

FAMILIES = ("4nodes", "4nodes_quad_hard", "4nodes_hidden_n1", "4nodes_freqparent")
ITEMS = {suite: made_item(suite, seed=3) for suite in FAMILIES}
ITEM = ITEMS["4nodes"]
NAME = ITEM.task.settable[0]
TRUE: dict[str, Any] = {"frequency": ITEM.sealed.target, "hypothesis": state_mechanism(ITEM.sealed.mechanism)}
WRONG: dict[str, Any] = {"frequency": ITEM.sealed.target + 50, "hypothesis": {"edges": [["density", "density"]]}}
SET = {"set": NAME, "value": 20}
FREE = 'which is not simulated; give a value, or "action": "SUBMIT"'


def steps(*actions: Any, item: LabItem = ITEM) -> list[dict[str, Any]]:
    """Return the item's readings after these actions, as records have them."""
    listed: list[dict[str, Any]] = msgspec.to_builtins(step_records(replay_actions(LabEpisode(item), actions).steps))
    return listed


@pytest.fixture
def pool(tmp_path: Path) -> Path:
    path = tmp_path / "pool.jsonl"
    write_pool(Pool("four", BENCHMARK, tuple(ITEMS.values()), {}), path)
    return path


def scored(capsys: pytest.CaptureFixture[str], pool: Path, *lines: Any) -> tuple[list[dict[str, Any]], str]:
    """Return the verdicts on these predictions, and what was said of them."""
    file = jsonl(pool.parent / "predictions.jsonl", *({"id": ITEM.id, "model": "m", **line} for line in lines))
    assert main(["score", str(pool), str(file), "--json"]) == 0
    printed = capsys.readouterr()
    return [json.loads(line) for line in printed.out.splitlines()], printed.err


def _fenced(value: Any) -> str:
    return f"<think>{{not this}}</think> So:\n```json\n{json.dumps(value)}\n```\nThat is it."


@pytest.mark.parametrize("suite", FAMILIES)
def test_answers_of_every_family_are_dialled_and_submitted(
    suite: str, pool: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    item = ITEMS[suite]
    truth, target = state_mechanism(item.sealed.mechanism), item.sealed.target
    lines, said = scored(
        capsys,
        pool,
        {"id": item.id, "answer": {"frequency": target, "hypothesis": truth}},
        {"id": item.id, "response": _fenced({"reactor": target, "hypothesis": truth})},
        {"id": item.id, "response": f"so {json.dumps({'submit': {'frequency': target, 'hypothesis': truth}})}"},
        {"id": item.id, "answer": {"frequency": target + 5, "hypothesis": {}}},
        {"id": item.id, "text": json.dumps(truth)},
    )
    assert [(line["correct"], line["graph_correct"], line["frequency"]) for line in lines] == [
        *[(True, True, target)] * 3,
        (False, False, target + 5),
        (False, True, None),
    ]
    assert [line["settings"] for line in lines] == [0] * 5
    assert {line["benchmark"] for line in lines} == {"causalab"}
    assert [line["submitted"] for line in lines] == [1.0] * 5
    assert [line["problem"] for line in lines] == [*[""] * 4, "no frequency"]
    assert "nothing was submitted" not in said
    assert f"1 response holds an answer that is incomplete or misplaced (first: {item.id}: no frequency)" in said
    for line in lines:
        msgspec.convert(line, LabVerdict, strict=True)
        if line["attribution"] is not None:
            assert line["attribution"]["graph"]["kind"] in ("earned", "lucky", "short", "missed")


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"response": "F is 7"}, "no JSON in the text"),
        ({"response": "```json\n[1, 2]\n```"}, "not a JSON object: '[1, 2]'"),
        ({"response": _fenced({"act": "WAIT"})}, "no frequency and no hypothesis in it; its keys are 'act'"),
        (
            {"response": _fenced({"action": "WAIT"})},
            "action 'WAIT' belongs to the world around the laboratory, " + FREE,
        ),
        ({"response": _fenced({"memory": "7"})}, "no frequency and no hypothesis in it; its keys are 'memory'"),
        (
            {"response": _fenced({"memory": {"edges": []}})},
            "no frequency and no hypothesis in it; its keys are 'memory'",
        ),
        ({"answer": {}}, "no frequency and no hypothesis in it; its keys are none"),
        ({"answer": {"frequency": "7"}}, "'7' is not a finite number"),
        ({"answer": {"frequency": 7, "reactor": 8}}, "two frequencies: 7.0 and 8.0"),
        ({"answer": {"hypothesis": [1]}}, "hypothesis is [1], not an object"),
        ({"answer": None}, "no answer"),
    ],
    ids=str,
)
def test_what_cannot_be_handed_in_is_said(
    given: dict[str, Any], problem: str, pool: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (line,), said = scored(capsys, pool, given)
    assert line["problem"] == problem
    assert (line["correct"], line["submitted"], line["frequency"]) == (False, 0.0, None)
    assert "nothing was submitted in 1 of them" in said
    assert f"1 response holds no answer that can be read (first: {ITEM.id}: {problem})" in said


def test_steps_are_replayed_and_count(pool: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hypothesis = TRUE["hypothesis"]
    everything = [{"set": name, "value": 30} for name in ITEM.task.settable]
    submit = {"submit": {"hypothesis": hypothesis}}
    dial = {"reactor": ITEM.sealed.target}
    believed = {**SET, "hypothesis": hypothesis}
    given: list[dict[str, Any]] = [
        {"steps": steps(*everything, dial, submit)},
        {"steps": steps(*everything, dial, submit), "answer": TRUE},
        {"steps": steps(*everything), "answer": TRUE},
        {"steps": steps(*everything, dial), "response": _fenced({"submit": {"hypothesis": hypothesis}})},
        {"steps": steps(*everything, {"reactor": 1}, {"reactor": 2}, dial), "answer": TRUE},
        {"steps": steps(believed)},
        {"steps": steps(believed, dial), "response": "no more"},
        {"steps": steps(*[{"reactor": 1}] * 3), "answer": TRUE},
    ]
    lines, said = scored(capsys, pool, *({"model": str(k), **one} for k, one in enumerate(given)))
    settings = len(everything)
    assert [(x["correct"], x["activated"], x["shd"], x["settings"], x["submitted"]) for x in lines] == [
        *[(True, 1.0, 0, settings, 1.0)] * 4,
        (True, 0.0, 0, settings, 1.0),  # the last try never activates, and is not repeated
        (False, 0.0, 0, 1, 0.0),
        (True, 1.0, 0, 1, 0.0),
        (False, 0.0, len(ITEM.sealed.mechanism.edges), 0, 0.0),
    ]
    problems = [line["problem"] for line in lines]
    assert problems == [""] * 5 + ["no answer", "no JSON in the text", "all 3 tries of the reactor are used"]
    assert [line["attribution"]["graph"]["kind"] for line in lines[:3]] == ["earned"] * 3
    assert "nothing was submitted in 3 of them" in said


def _changed(number: int, **changes: Any) -> list[dict[str, Any]]:
    made = steps(SET, {"set": FREQUENCY, "value": 1}, {"reactor": 7}, {"submit": {"hypothesis": {}}})
    made[number] = {**made[number], **changes}
    return made


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ({"steps": _changed(0, reading={**steps(SET)[0]["reading"], FREQUENCY: -1.0})}, "step 0: reading {"),
        ({"steps": _changed(1, refused="")}, "step 1: recorded as carried out, was refused"),
        ({"steps": _changed(2, reading={"activated": True, "dial": 7.0})}, "step 2: reading {'activated': True, "),
        ({"steps": _changed(0, cost=0)}, "step 0: cost 0 recorded, was 1"),
        ({"steps": _changed(3, reading={})}, "step 3: reading {} recorded, was None"),
        ({"steps": _changed(0), "answer": TRUE}, "is not what the steps submit: "),
        ({"steps": _changed(0), "answer": {"frequency": 8}}, "the answer {'frequency': 8.0} is not what the steps"),
        ({"steps": [7]}, "step 0: Expected `object`, got `int`"),
        ({"model": "m"}, "no answer in it"),
    ],
    ids=lambda one: one if isinstance(one, str) else "",
)
def test_what_is_false_is_refused_by_line_and_step(
    line: dict[str, Any], told: str, pool: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = jsonl(tmp_path / "p.jsonl", {"id": ITEM.id, "answer": TRUE}, {"id": ITEM.id, **line})
    out = tmp_path / "out.jsonl"
    assert told in (said := refused(capsys, "score", pool, file, "--out", out))
    assert f"{file}: line 2: " in said
    assert not out.exists()
