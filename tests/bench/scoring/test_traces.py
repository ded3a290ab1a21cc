"""Traces as predictions: in the benchmark's own format, and as the public text game's results, which need no pool."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest

from calibrant.bench.blickets.scoring import BlicketVerdict
from calibrant.bench.cli import main
from calibrant.bench.core.registry import bundled_pool
from calibrant.bench.runs.records import step_records
from calibrant.dsl.blickets.episode import sealed_view, trace_line, trace_of
from calibrant.dsl.blickets.item import Form, Rule
from calibrant.dsl.blickets.records import write_pool
from calibrant.dsl.replayscm.pools.files import read_pool
from tests.support.benchmarks.blickets import opened, static_item, text_game_expected, text_game_lines
from tests.support.commands import jsonl, refused

ITEM = static_item(Rule(Form.CONJUNCTIVE, 0b011), 3)  # A and B
AB = {"rule": "conjunctive", "blickets": ["A", "B"]}
MOVES: list[Any] = [{"place": "A"}, {"place": "Z"}, {"place": "B"}, {"remove": "A"}]


def traced(*played: Any, sealed: bool = False) -> dict[str, Any]:
    trace = trace_of(ITEM, "an agent", opened(ITEM, list(played)).steps)
    line: dict[str, Any] = json.loads(trace_line(sealed_view(trace, ITEM) if sealed else trace))
    return line


TRACE = traced(*MOVES, {"check": AB})


def changed(number: int, **changes: Any) -> dict[str, Any]:
    steps = [{**step, **(changes if k == number else {})} for k, step in enumerate(TRACE["steps"])]
    return {**TRACE, "steps": steps}


@pytest.fixture
def pool(tmp_path: Path) -> Path:
    write_pool(tmp_path / "pool.jsonl", "mine", [ITEM], {})
    return tmp_path / "pool.jsonl"


# --- the own format ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sealed", [False, True])
def test_a_trace_is_scored_as_the_episode_that_it_tells(
    sealed: bool, pool: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = jsonl(tmp_path / "t.jsonl", traced(*MOVES, {"check": AB}, sealed=sealed))
    assert main(["score", str(pool), str(file), "--json"]) == 0
    printed = capsys.readouterr()
    verdict = json.loads(printed.out)
    msgspec.convert(verdict, BlicketVerdict, strict=True)
    assert (verdict["model"], verdict["correct"], verdict["steps"], verdict["refused"]) == ("an agent", True, 4, 1)
    assert verdict["attribution"]["kind"] == "earned"  # B alone is inactive: neither B nor any of B, C
    assert "item from item; model from agent; answer from steps (trace)" in printed.err


def test_an_open_trace_is_not_right_and_says_why(
    pool: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["score", str(pool), str(jsonl(tmp_path / "t.jsonl", traced(*MOVES))), "--json"]) == 0
    printed = capsys.readouterr()
    verdict = json.loads(printed.out)
    assert (verdict["correct"], verdict["problem"], verdict["closed"]) == (None, "no answer", "open")
    assert "nothing was submitted in 1 of them" in printed.err


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (changed(0, reading="ACTIVE"), "step 0: recorded as t = 1, ACTIVE"),
        (changed(1, refused=""), "step 1: recorded as t = 2, no reading"),
        (changed(2, activations=2), "step 2: recorded as t = 3, ACTIVE, 2 activations"),
        (changed(2, state=["A"]), "step 2: recorded as t = 3, ACTIVE, 1 activations, 'A' on the detector; was "),
        (changed(3, t=5), "step 3: recorded as t = 5"),
        (changed(0, rule_in_force={"rule": "disjunctive", "blickets": ["C"]}), "step 0: rule_in_force "),
        (changed(0, mood="good"), "Object contains unknown field `mood`"),
        ({**TRACE, "steps": TRACE["steps"][:4]}, "recorded, was None"),
        ({**TRACE, "verdict": {"correct": False, "errors": []}}, "False recorded, was True"),
        ({**TRACE, "class": "RE"}, "'RE' recorded, was None"),
        ({**TRACE, "item": "nobody"}, "mine has no instance 'nobody'"),
        ({**TRACE, "steps": 3}, "Expected `array`, got `int`"),
        ({**TRACE, "extra": 1}, "unknown field `extra`"),
    ],
    ids=lambda value: value[:30] if isinstance(value, str) else "",
)
def test_a_trace_that_is_not_so_is_refused_by_line_and_place(
    line: dict[str, Any], told: str, pool: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, out = jsonl(tmp_path / "t.jsonl", TRACE, line), tmp_path / "out.jsonl"
    said = refused(capsys, "score", pool, file, "--out", out)
    assert f"{file}: line 2: " in said
    assert told in said
    assert not out.exists()


# --- the public text game ---------------------------------------------------------------------------------------------


def test_the_public_runs_have_the_counts_that_are_expected(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, out = tmp_path / "runs.jsonl.gz", tmp_path / "scored.jsonl"
    file.write_bytes(gzip.compress("".join(text_game_lines()).encode()))
    assert main(["score", str(file), "--out", str(out)]) == 0
    assert "(all)" in capsys.readouterr().out
    counts: dict[str, Counter[str]] = {}
    for line in map(json.loads, out.read_text(encoding="utf-8").splitlines()):
        decided = "decided" if line["attribution"]["decided"] else "undecided"
        place = f"{line['stratum']}, {line['setting']}"
        counts.setdefault(place, Counter())[f"{decided} and {'right' if line['correct'] else 'wrong'}"] += 1
    assert counts == text_game_expected()["counts"]
    assert main(["table", str(out), "--by", "stratum", "--attribution", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert sum(row["n"] for row in rows) == text_game_expected()["rows"]


def told(first: str, *moves: str) -> str:
    """Return a text of two objects on the floor, with this light at first, and these moves."""
    start = "There are two objects: stone is on the floor, cup is on the floor.\n\nThe light on the machine is "
    return "\n> ".join([f"{start}{first}.", *moves])


RUN: dict[str, Any] = {
    "metric_type": "trial",
    "obj_name_list": ["stone", "cup"],
    "blicket_indices": [0],
    "num_questions": 2,
    "num_correct": 2,
    "expl_cfg": {"env_kwargs": {"rule": "disjunctive", "num_objects": 2}},
    "qa_cfg": {"model": "m"},
    "history_obs": told(
        "currently off",
        "put stone on the machine\nYou put stone on the machine. The light on the machine is now on.",
        "put stone on machine\nWhat? The light on the machine is now on.",
        "take stone off the machine\nYou took stone off of the machine.\n\nThe light on the machine is currently off.",
        "put cup on the machine\nYou put cup on the machine. The light on the machine is currently off.",
    ),
}


def test_a_run_is_replayed_and_attributed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The stone alone is active, so it is a blicket, alone or one of two that are enough; the cup alone is not."""
    other = {"metric_type": "trajectory", "whatever": 1}
    file = jsonl(tmp_path / "runs.jsonl", other, RUN, {**RUN, "num_correct": 1, "qa_cfg": {}})
    assert main(["score", str(file), "--json"]) == 0
    one, two = map(json.loads, capsys.readouterr().out.splitlines())
    for line in (one, two):
        msgspec.convert(line, BlicketVerdict, strict=True)
    assert (one["instanceId"], one["model"], one["correct"], one["steps"], one["refused"]) == (
        "line 2",
        "m",
        True,
        4,
        1,
    )
    assert (one["attribution"]["kind"], two["attribution"]["kind"]) == ("earned", "missed")
    assert one["attribution"]["decided_at"] == 4
    assert (two["model"], two["correct"]) == (None, False)


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("{", "line 2: not a JSON object in UTF-8"),
        ({**RUN, "num_correct": 3}, "line 2: num_correct: 3 of 2 questions right"),
        ({**RUN, "history_obs": "no light"}, "line 2: history_obs: "),
        ({**RUN, "blicket_indices": [1]}, "line 2: step 1: reading ACTIVE recorded, was INACTIVE"),
    ],
    ids=["no object", "counts", "text", "contradicts its truth"],
)
def test_a_bad_run_is_one_line(line: Any, problem: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, out = jsonl(tmp_path / "runs.jsonl", RUN, line), tmp_path / "out.jsonl"
    said = refused(capsys, "score", file, "--out", out)
    assert said.startswith(f"{file}: ")
    assert problem in said
    assert not out.exists()


def test_what_is_no_log_and_what_is_none_beside_one(
    pool: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log, empty = jsonl(tmp_path / "runs.jsonl", RUN), jsonl(tmp_path / "empty.jsonl", {"metric_type": "summary"})
    assert "no line with the metric_type trial in it" in refused(capsys, "score", empty)
    assert "this is none" in refused(capsys, "score", log, pool)
    assert "give at least one pool" in refused(capsys, "score", pool)
    assert "--structure applies to ReplaySCM, not to Extended blickets (runs.jsonl)" in refused(
        capsys, "score", log, "--structure"
    )
    for line in (["run", "static", log, "--out", tmp_path / "run"], ["show", log, "line 1"], ["pool", "check", log]):
        assert "`calibrant score` reads it alone" in refused(capsys, *line)


# --- raw predictions in a report --------------------------------------------------------------------------------------


def test_a_report_takes_answers_and_transcripts(pool: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = jsonl(tmp_path / "p.jsonl", TRACE, {"id": "static", "model": "m", "answer": AB})
    line = ["report", "--predictions", str(file), "--pools", str(pool), "--out"]
    assert main([*line, str(tmp_path / "r.csv"), "--table", "standing", "--table", "attribution"]) == 0
    rows = csv.DictReader(io.StringIO((tmp_path / "r.csv").read_text(encoding="utf-8")))
    found = {(row["system"], row["column"]): row["value"] for row in rows}
    for system, kind in (("an agent", "earned"), ("m", "lucky")):
        assert (found[system, "accuracy"], found[system, kind]) == ("1.000", "1.000")
    assert "2 predictions; item from item 1, id 1" in capsys.readouterr().err
    assert main([*line, str(tmp_path / "r.html")]) == 0
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    for label in ("an agent on static", "m on static"):  # earned with readings, lucky without
        assert f'aria-label="{label}"' in page
    capsys.readouterr()
    false = jsonl(tmp_path / "f.jsonl", changed(0, reading="ACTIVE"))
    said = refused(capsys, "report", "--predictions", false, "--pools", pool)
    assert "line 1: step 0: recorded as t = 1, ACTIVE" in said


def test_the_pools_of_two_benchmarks_are_told_apart(pool: Path, tmp_path: Path) -> None:
    other = bundled_pool("ordered")
    scms = {"id": read_pool(other).problems[0].id, "model": "an SCM", "answer": {"mechanisms": {}}}
    files = [jsonl(tmp_path / "p.jsonl", TRACE), jsonl(tmp_path / "q.jsonl", scms)]
    line = ["report", "--pools", str(other), "--pools", str(pool), "--no-paper", "--no-times"]
    for file in files:
        line += ["--predictions", str(file)]
    assert main([*line, "--out", str(tmp_path / "r.html")]) == 0
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    for text in ("<td>an agent</td>", "<td>an SCM</td>", 'aria-label="an agent on static"'):
        assert text in page


def test_fields_that_were_named_are_read_for_the_episodes_too(pool: Path, tmp_path: Path) -> None:
    steps = msgspec.to_builtins(step_records(opened(ITEM, [*MOVES, {"check": AB}]).steps))
    file = jsonl(tmp_path / "p.jsonl", {"which": "static", "who": "someone", "steps": steps})
    line = ["report", "--predictions", str(file), "--pools", str(pool), "--out", str(tmp_path / "r.html")]
    assert main([*line, "--id-field", "which", "--model-field", "who"]) == 0
    assert 'aria-label="someone on static"' in (tmp_path / "r.html").read_text(encoding="utf-8")
