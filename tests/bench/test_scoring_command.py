"""`calibrant score`: prediction files in, verdicts out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from calibrant.bench.cli import main
from calibrant.dsl.replayscm.pools.files import read_pool, write_pool
from tests.bench.commands.lines import app
from tests.support.commands import command, jsonl, refused
from tests.support.shared import shared_file, shared_records
from tests.support.stub_protocols import small_pool

GOOD, WRONG = {"mechanisms": {"X3": "(and X1 X2)"}}, {"mechanisms": {"X3": "(xor X1 X2)"}}
SMALL = ["good", "or", "good"]


@pytest.fixture
def pool(tmp_path: Path) -> Path:
    path = tmp_path / "small.jsonl"
    write_pool(small_pool(SMALL), path)
    return path


def test_score_of_the_official_sample_predictions_is_the_published_one(capsys: pytest.CaptureFixture[str]) -> None:
    pool = shared_file("official_sample.runtime.yaml")
    assert main(["score", str(pool), str(shared_file("official_sample_predictions.jsonl")), "--json"]) == 0
    printed = capsys.readouterr()
    scored = {line["instanceId"]: line for line in map(json.loads, printed.out.splitlines())}
    expected = {
        vector["instanceId"]: vector["expect"]
        for vector in shared_records("conformance_dev.jsonl")
        if vector["kind"] == "alt_good_sample"
    }
    assert scored.keys() == expected.keys()
    assert len(scored) == 2
    for instance, verdict in expected.items():
        known = ("valid", "correct", "trainExact", "heldoutExact", "heldoutAccuracy", "jointSuccess", "witnessValid")
        assert {key: scored[instance][key] for key in known} == {key: verdict[key] for key in known}
        assert scored[instance]["model"] == "sample-reference"
    assert "sample-reference" in printed.err  # the table


def test_stored_responses_are_scored_as_stored_by_their_answers(tmp_path: Path) -> None:
    """The 18 real model answers of the official sample, through a prediction file and back."""
    pool = shared_file("official_sample.runtime.yaml")
    stored = [(p.id, result) for p in read_pool(pool).problems for result in p.results()]
    lines = [{"instanceId": i, "model": r.model, "extractedAnswer": r.extracted_answer} for i, r in stored]
    made = tmp_path / "scores.jsonl"
    result = CliRunner().invoke(
        app, ["score", str(pool), str(jsonl(tmp_path / "in.jsonl", *lines)), "--out", str(made)]
    )
    assert result.exit_code == 0
    scored = [json.loads(line) for line in made.read_text(encoding="utf-8").splitlines()]
    assert len(scored) == 18
    for line, (instance, stored_result) in zip(scored, stored, strict=True):
        assert (line["instanceId"], line["model"]) == (instance, stored_result.model)
        assert line["valid"] == stored_result.evaluation["valid"]
        assert line["correct"] == stored_result.evaluation["correct"]
    table = CliRunner().invoke(app, ["table", str(made), "--json"])
    assert table.exit_code == 0
    assert sum(row["n"] for row in json.loads(table.stdout)["rows"]) == 18


def test_every_way_to_give_an_answer(pool: Path, tmp_path: Path) -> None:
    text = f"Sure.\n```json\n{json.dumps(GOOD)}\n```"
    ways: list[dict[str, Any]] = [
        {"extractedAnswer": GOOD},
        {"rawResponse": text},
        {"response": json.dumps(GOOD)},
        {"text": text},
        {"response": None},
    ]
    lines = [{"instanceId": "I0", "model": f"m{i}", **way} for i, way in enumerate(ways)]
    lines += [{"instanceId": "I2", "extractedAnswer": WRONG}, {"instanceId": "I1", "model": None, "text": ""}]
    file = jsonl(tmp_path / "in.jsonl", *lines[:3], "", *lines[3:])
    result = CliRunner().invoke(app, ["score", str(pool), str(file), "--json"])
    assert result.exit_code == 0
    scored = [json.loads(line) for line in result.stdout.splitlines()]
    assert [line["valid"] for line in scored] == [True, True, True, True, False, True, False]
    assert [line["correct"] for line in scored] == [True, True, True, True, False, False, False]
    assert [line["strictJson"] for line in scored][:4] == [None, False, True, False]
    assert [line["model"] for line in scored] == ["m0", "m1", "m2", "m3", "m4", None, None]
    assert "(no model)" in result.stderr


def test_the_extractor_is_a_choice(pool: Path, tmp_path: Path) -> None:
    nested: dict[str, Any] = {"instanceId": "I0", "model": "m", "rawResponse": json.dumps({"answer": GOOD})}
    file = jsonl(tmp_path / "in.jsonl", nested)
    for extractor, valid in (("paper", True), ("published", False)):
        result = CliRunner().invoke(app, ["score", str(pool), str(file), "--json", "--extractor", extractor])
        assert json.loads(result.stdout)["valid"] is valid


def test_structure_metrics_are_there_where_they_are_asked_for(pool: Path, tmp_path: Path) -> None:
    file = jsonl(tmp_path / "in.jsonl", {"instanceId": "I0", "model": "m", "extractedAnswer": WRONG})
    plain, with_structure = (
        json.loads(CliRunner().invoke(app, ["score", str(pool), str(file), "--json", *extra]).stdout)
        for extra in ([], ["--structure"])
    )
    assert "structure" not in plain
    assert (with_structure["structure"]["exact_map"], with_structure["structure"]["local_match"]) == (True, 0.0)


def test_predictions_come_from_standard_input_too(pool: Path) -> None:
    line = json.dumps({"instanceId": "I0", "model": "m", "extractedAnswer": GOOD})
    done = command("score", pool, "-", "--json", input=line)
    assert done.returncode == 0
    assert json.loads(done.stdout)["correct"] is True


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('{"instanceId": "I0", "response": "x", "instanceId": "I1"}', "key 'instanceId' occurs twice in one object"),
        ('{"id": "I0", "answer": {"mechanisms": {"X3": "X1", "X3": "X2"}}}', "key 'X3' occurs twice in one object"),
        ("{", "not a JSON object in UTF-8"),
        ("[]", "not a JSON object in UTF-8"),
        ("[" * 100_000, "nested more than 200 deep"),
        ('{"instanceId": ' + "9" * 5000 + "}", "not a JSON object in UTF-8"),
        ({"model": "m"}, "it names no item; its keys are model; --id-field names the one that does"),
        ({"instanceId": ["I0"]}, "instanceId is ['I0'], not a text"),
        ({"instanceId": "I0", "model": 4}, "model is 4, not a text"),
        ({"instanceId": "I9", "model": "m"}, "small has no instance 'I9'; --skip-unknown passes over such lines"),
        (
            {"instanceId": "I0", "model": "first", "prediction": "{}"},
            "no answer in it; its keys are instanceId, model, prediction; --text-field names the one that holds it",
        ),
        ({"instanceId": "I0", "text": "", "seconds": -1}, "seconds is -1, not a duration"),
        ({"instanceId": "I0", "text": "", "sample": "one"}, "sample is 'one', not a number of a sample"),
        ({"instanceId": "I0", "model": "first", "text": "", "epoch": 0}, "a second sample 0 of model 'first' for 'I0'"),
    ],
)
def test_lines_that_cannot_be_scored_are_refused_with_their_number(
    pool: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], line: Any, reason: str
) -> None:
    file = jsonl(tmp_path / "in.jsonl", {"instanceId": "I0", "model": "first", "text": ""}, "", line)
    out = tmp_path / "scores.jsonl"
    assert refused(capsys, "score", pool, file, "--out", out) == (
        f"{file}: line 3: {reason}; the line before it is good; --on-error skip leaves such lines out"
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.jsonl", "small.jsonl"]  # nothing half written


def test_unknown_instances_can_be_passed_over(pool: Path, tmp_path: Path) -> None:
    known = {"instanceId": "I0", "model": "m", "extractedAnswer": GOOD}
    file = jsonl(tmp_path / "in.jsonl", {"instanceId": "I9", "model": "m"}, known)
    result = CliRunner().invoke(app, ["score", str(pool), str(file), "--json", "--skip-unknown"])
    assert [json.loads(line)["instanceId"] for line in result.stdout.splitlines()] == ["I0"]
    assert "1 lines are for instances that small does not have" in result.stderr


def test_a_score_line_is_strict_json_whatever_was_submitted(tmp_path: Path) -> None:
    pool = shared_file("official_sample.runtime.yaml")
    sample = next(shared_records("official_sample_predictions.jsonl"))
    sample["extractedAnswer"]["experiment"] = {"type": "\ud800", "assignments": {"X1": float("nan")}}
    result = CliRunner().invoke(
        app, ["score", str(pool), str(jsonl(tmp_path / "in.jsonl", sample)), "--json", "--skip-unknown"]
    )
    assert result.exit_code == 0

    def no_constant(name: str) -> None:
        raise AssertionError(name)

    scored = json.loads(result.stdout, parse_constant=no_constant)
    assert scored["experiment"]["assignments"] == {"X1": None}


def test_a_file_that_score_did_not_write_is_no_source_for_a_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = jsonl(tmp_path / "x.jsonl", {"instanceId": "I0"})
    refusal = refused(capsys, "table", file)
    assert refusal.startswith(f"{file}: line 1: not a line that `calibrant score` wrote; predictions are scored first")
