"""Predictions about blicket items: answers that are submitted at once, steps that are replayed, and what is refused."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from calibrant.bench.blickets.scoring import BlicketVerdict
from calibrant.bench.cli import main
from calibrant.bench.runs.records import step_records
from calibrant.bench.scoring import files
from calibrant.dsl.blickets.item import Form, Rule
from calibrant.dsl.blickets.records import write_pool
from tests.support.benchmarks.blickets import opened, static_item
from tests.support.commands import jsonl, refused

ITEM = static_item(Rule(Form.CONJUNCTIVE, 0b011), 3)  # A and B
GOOD: dict[str, Any] = {"rule": "conjunctive", "blickets": ["B", "A"]}
WRONG: dict[str, Any] = {"rule": "disjunctive", "blickets": ["C"]}
MOVES: list[Any] = [{"place": "A"}, {"place": "Z"}, {"place": "B"}]


def steps(*actions: Any) -> list[dict[str, Any]]:
    """Return the item's readings after these actions, as records have them."""
    listed: list[dict[str, Any]] = msgspec.to_builtins(step_records(opened(ITEM, list(actions)).steps))
    return listed


@pytest.fixture
def pool(tmp_path: Path) -> Path:
    path = tmp_path / "pool.jsonl"
    write_pool(path, "three", [ITEM])
    return path


def scored(capsys: pytest.CaptureFixture[str], pool: Path, *lines: Any) -> tuple[list[dict[str, Any]], str]:
    """Return the verdicts on these predictions, and what was said of them."""
    file = jsonl(pool.parent / "predictions.jsonl", *({"id": "static", "model": "m", **line} for line in lines))
    assert main(["score", str(pool), str(file), "--json"]) == 0
    printed = capsys.readouterr()
    return [json.loads(line) for line in printed.out.splitlines()], printed.err


@pytest.mark.parametrize(
    ("given", "correct", "problem"),
    [
        ({"answer": GOOD}, True, ""),
        ({"answer": json.dumps(GOOD)}, True, ""),
        ({"response": f"I think\n```json\n{json.dumps({'answer': GOOD})}\n```"}, True, ""),
        ({"response": f"{json.dumps(GOOD)}, that is {json.dumps({**GOOD, 'blickets': ['A', 'B']})}"}, True, ""),
        ({"answer": WRONG}, False, ""),
        ({"response": f"{json.dumps(GOOD)} or {json.dumps(WRONG)}"}, False, "2 different rules in the text"),
        ({"response": "A and B"}, False, "no JSON object with the keys rule and blickets"),
        ({"answer": {**GOOD, "blickets": ["Q"]}}, False, "unknown object 'Q'"),
        ({"answer": {**GOOD, "rule": "xor"}}, False, "unknown rule type 'xor'"),
        ({"answer": None}, False, "no answer"),
    ],
    ids=str,
)
def test_an_answer_alone_is_submitted_at_once(
    given: dict[str, Any], correct: bool | None, problem: str, pool: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (line,), said = scored(capsys, pool, given)
    assert (line["correct"], line["steps"], line["benchmark"]) == (correct, 0, "blickets")
    assert line["closed"] == ("open" if problem else "answered")
    assert line["problem"].startswith(problem)
    assert bool(line["problem"]) == bool(problem) == ("nothing was submitted in 1 of them" in said)
    assert line["attribution"]["kind"] == ("lucky" if correct else "short")
    msgspec.convert(line, BlicketVerdict, strict=True)


def test_steps_are_replayed_and_their_readings_count(pool: Path, capsys: pytest.CaptureFixture[str]) -> None:
    certain = [{"place": "A"}, {"place": "B"}, {"remove": "A"}, {"place": "C"}, {"place": "A"}, {"remove": "B"}]
    given: list[dict[str, Any]] = [
        {"steps": steps(*certain, {"check": GOOD})},
        {"steps": steps(*certain), "answer": GOOD},
        {"steps": steps(*certain, {"check": GOOD}), "response": f"It is {json.dumps(GOOD)}"},
        {"steps": steps(*certain, {"check": WRONG})},
        {"steps": steps(*MOVES)},
    ]
    lines, said = scored(capsys, pool, *({**one, "model": str(k)} for k, one in enumerate(given)))
    assert [(line["correct"], line["steps"], line["refused"]) for line in lines] == [
        (True, 6, 0),
        (True, 6, 0),
        (True, 6, 0),
        (False, 6, 0),
        (None, 3, 1),
    ]
    assert [line["attribution"]["kind"] for line in lines] == ["earned", "earned", "earned", "missed", "short"]
    assert "nothing was submitted in 1 of them" in said


def _changed(number: int, **changes: Any) -> list[dict[str, Any]]:
    made = steps(*MOVES, {"check": GOOD})
    made[number] = {**made[number], **changes}
    return made


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ({"steps": _changed(0, reading="ACTIVE")}, "step 0: reading 'ACTIVE' recorded, was 'INACTIVE'"),
        ({"steps": _changed(2, reading=None)}, "step 2: reading None recorded, was 'ACTIVE'"),
        ({"steps": _changed(1, refused="")}, "step 1: recorded as carried out, was refused"),
        ({"steps": _changed(2, cost=0)}, "step 2: cost 0 recorded, was 1"),
        ({"steps": _changed(3, action={"check": GOOD}, refused="no")}, "step 3: recorded as refused, was carried out"),
        ({"steps": _changed(0, action="place A")}, "step 0: Expected `object`, got `str` - at `$.action`"),
        ({"steps": {}}, "steps is {}, not a list of steps"),
        ({"steps": _changed(0), "answer": WRONG}, "is not what the steps submit: "),
        ({"model": "m"}, "no answer in it"),
    ],
    ids=str,
)
def test_what_is_false_is_refused_by_line_and_step(
    line: dict[str, Any], told: str, pool: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = jsonl(tmp_path / "p.jsonl", {"id": "static", "answer": GOOD}, {"id": "static", **line})
    out = tmp_path / "out.jsonl"
    assert told in (said := refused(capsys, "score", pool, file, "--out", out))
    assert f"{file}: line 2: " in said
    assert not out.exists()


@pytest.mark.parametrize(
    ("given", "rules"),
    [
        ({"response": "{'rule': 'conjunctive', 'blickets': ['A', 'B']}"}, (False, False, True)),
        ({"response": f"<think>{json.dumps(GOOD)}"}, (False, True, False)),
        ({"response": f"<think>{json.dumps(WRONG)}</think>{json.dumps(GOOD)}"}, (True, True, True)),
        ({"response": "none"}, (False, False, False)),
    ],
    ids=str,
)
def test_every_rule_submits_its_answer_behind_the_steps(
    given: dict[str, Any], rules: tuple[bool, bool, bool], pool: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (line,), _ = scored(capsys, pool, {**given, "steps": steps(*MOVES)})
    assert (line["correct"], line["correctPublished"], line["correctLenient"]) == rules
    assert line["steps"] == len(MOVES)


def test_steps_that_submit_leave_no_rule_a_choice(pool: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (line,), _ = scored(capsys, pool, {"response": "as submitted", "steps": steps(*MOVES, {"check": GOOD})})
    assert (line["correct"], line["correctPublished"], line["correctLenient"], line["reason"]) == (True, True, True, "")


def test_a_line_that_is_too_long_can_be_left_out(
    pool: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "MAX_JSON_BYTES", 1_000)
    good = {"id": "static", "model": "m", "answer": GOOD}
    file = jsonl(tmp_path / "long.jsonl", {**good, "answer": "a" * 5_000}, good, {**good, "note": "b" * 1_000})
    assert main(["score", str(pool), str(file), "--json", "--on-error", "skip"]) == 0
    *lines, last = map(json.loads, capsys.readouterr().out.splitlines())
    assert [line["correct"] for line in lines] == [True]
    assert [skipped["line"] for skipped in last["summary"]["skipped"]] == [1, 3]
    assert "line 1: longer than" in refused(capsys, "score", pool, file)


def test_samples_and_tables(pool: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "p.jsonl.gz"
    lines = [{"id": "static", "model": "m", "answer": answer} for answer in (GOOD, WRONG, GOOD)]
    file.write_bytes(gzip.compress("\n".join(map(json.dumps, lines)).encode()))
    out = tmp_path / "scored.jsonl"
    assert main(["score", str(pool), str(file), "--out", str(out)]) == 0
    assert "Several samples" in capsys.readouterr().out
    assert main(["table", str(out), "--json"]) == 0
    made = json.loads(capsys.readouterr().out)
    (row,) = made["rows"]
    assert (row["benchmark"], row["setting"], row["n"], row["answers"]) == ("blickets", "conjunctive", 1, 3)
    assert row["accuracy"] == pytest.approx(2 / 3)
    assert row["lucky"] == pytest.approx(2 / 3)
    assert {one["system"] for one in made["samples"]} == {"m"}


def test_a_line_that_was_changed_is_no_verdict(pool: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (line,), _ = scored(capsys, pool, {"answer": GOOD})
    for changes in ({"class": "x"}, {"benchmark": "chess"}, {"attribution": None}, {"errors": 1}):
        changed = jsonl(tmp_path / "changed.jsonl", {**line, **changes})
        assert "line 1: not a line that `calibrant score` wrote" in refused(capsys, "table", changed)
