"""`calibrant table --official`: the evaluations that official files embed, recomputed."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from calibrant.bench.cli import main
from calibrant.bench.replayscm.pools.stored_results import StoredResults, is_same_value
from tests.support.commands import refused
from tests.support.replayscm.records import written_file
from tests.support.shared import shared_file

SAMPLE = "official_sample.runtime.yaml"


@pytest.fixture(scope="module")
def records() -> list[dict[str, Any]]:
    document = yaml.load(shared_file(SAMPLE).read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
    loaded: list[dict[str, Any]] = document["problems"]
    return loaded


def test_all_stored_evaluations_of_the_sample_come_out_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["table", "--official", str(shared_file(SAMPLE)), "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["disagreements"] == []
    rows = {row["system"]: row for row in printed["rows"]}
    assert len(rows) == 9
    assert all((row["n"], row["setting"]) == (2, "Alt-Ordered") for row in rows.values())
    # jointSuccess as the file stores it, model by model
    assert {model: row["alt_scm_joint"] for model, row in rows.items()} == _stored_rates("jointSuccess")
    assert main(["table", "--official", str(shared_file(SAMPLE))]) == 0
    assert capsys.readouterr().out.endswith(f"{SAMPLE}: 18 of 18 stored evaluations come out the same\n")


def _stored_rates(key: str) -> dict[str, float]:
    document = yaml.load(shared_file(SAMPLE).read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
    held: dict[str, list[bool]] = {}
    for record in document["problems"]:
        for model, result in record["modelResults"].items():
            held.setdefault(model, []).append(result["evaluation"].get(key) is True)
    return {model: sum(values) / len(values) for model, values in held.items()}


@pytest.mark.parametrize(
    ("key", "value"),
    [("trainExact", False), ("heldoutAccuracy", 0.5), ("candidateStats", {}), ("jointSuccess", 1)],
)
def test_every_changed_verdict_is_found(
    key: str, value: Any, records: list[dict[str, Any]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    changed = copy.deepcopy(records)
    evaluation = changed[0]["modelResults"]["gpt-5.4"]["evaluation"]
    true = evaluation[key]
    evaluation[key] = value
    path = written_file(changed, tmp_path / "changed.yaml")
    results = StoredResults(path)
    assert len(list(results.answers())) == 18
    found = [one for one in results.disagreements if one.source == "answer"]
    assert [(one.model, one.key, one.stored, one.ours) for one in found] == [("gpt-5.4", key, value, true)]
    assert main(["table", "--official", str(path)]) == 1
    printed = capsys.readouterr().out
    assert f"gpt-5.4: answer: {key} is {value} in the file, " in printed
    assert printed.endswith("changed.yaml: 17 of 18 stored evaluations come out the same\n")


def test_a_text_that_says_something_else_than_the_stored_answer_is_found(
    records: list[dict[str, Any]], tmp_path: Path
) -> None:
    changed = copy.deepcopy(records)
    changed[1]["modelResults"]["grok4"]["rawResponse"] = "I do not know."
    results = StoredResults(written_file(changed, tmp_path / "changed.yaml"))
    scores = {(run.system, run.instance): score for run, score in results.answers()}
    assert {(one.model, one.source) for one in results.disagreements} == {("grok4", "text")}
    assert {one.key: (one.stored, one.ours) for one in results.disagreements}["valid"] == (True, False)
    instance = changed[1]["problem"]["instanceId"]
    assert scores["grok4", instance]["valid"] is True  # the row is the stored answer's
    assert scores["grok4", instance]["strictJson"] is False


def test_a_result_without_evaluation_is_a_row_but_not_compared(records: list[dict[str, Any]], tmp_path: Path) -> None:
    changed = copy.deepcopy(records)
    for key in ("evaluation", "valid", "correct"):
        del changed[0]["modelResults"]["grok4"][key]
    results = StoredResults(written_file(changed, tmp_path / "changed.yaml"))
    assert len(list(results.answers())) == 18
    assert (results.num_results, results.num_evaluated, results.disagreements) == (18, 17, [])


@pytest.mark.parametrize("key", ["valid", "correct"])
@pytest.mark.parametrize("evaluated", [True, False])
def test_the_verdict_beside_an_evaluation_is_compared_too(
    records: list[dict[str, Any]], tmp_path: Path, key: str, evaluated: bool
) -> None:
    changed = copy.deepcopy(records)
    result = changed[0]["modelResults"]["grok4"]
    result[key] = not result[key]
    if not evaluated:
        del result["evaluation"]
    results = StoredResults(written_file(changed, tmp_path / "changed.yaml"))
    assert len(list(results.answers())) == results.num_evaluated == 18
    (found,) = results.disagreements
    assert (found.model, found.source, found.key, found.stored) == ("grok4", "result", key, result[key])


def test_a_verdict_that_an_evaluation_lacks_is_a_disagreement(records: list[dict[str, Any]], tmp_path: Path) -> None:
    changed = copy.deepcopy(records)
    del changed[0]["modelResults"]["grok4"]["evaluation"]["valid"]
    results = StoredResults(written_file(changed, tmp_path / "changed.yaml"))
    assert len(list(results.answers())) == 18
    assert [(d.source, d.key, d.stored) for d in results.disagreements] == [("evaluation", "valid", None)]


def test_an_evaluation_that_is_no_mapping_is_refused(
    records: list[dict[str, Any]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    changed = copy.deepcopy(records)
    changed[0]["modelResults"]["grok4"]["evaluation"] = [1]
    told = refused(capsys, "table", "--official", written_file(changed, tmp_path / "changed.yaml"))
    assert "modelResults.grok4.evaluation" in told
    assert "expected a mapping" in told


def test_a_file_without_results_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = shared_file("pool_dev_t1_ordered.runtime.yaml")
    assert refused(capsys, "table", "--official", path) == f"{path}: embeds no model results"
    assert "folders of runs, or --official FILE" in refused(capsys, "table")


def test_equality_of_stored_values() -> None:
    assert is_same_value({"a": [1, 0.5, None]}, {"a": [1.0, 0.5 + 1e-12, None]})
    assert not is_same_value(True, 1)
    assert not is_same_value(1, True)
    assert not is_same_value({"a": 1}, {"a": 1, "b": None})
    assert not is_same_value([1], [1, 2])
    assert not is_same_value(0.5, 0.5001)
    assert not is_same_value(None, 0)
