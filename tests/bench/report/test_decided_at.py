"""`--decided-at`: the posterior from which noisy readings decide; refused where no answer has one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from calibrant.audits.attribution import DECIDED_AT, Attribution
from calibrant.bench.cli import main
from calibrant.bench.core.attribution import (
    DEFAULT_LEVEL,
    KINDS,
    LEVELS,
    attribution_record,
    decided_from,
    decision_notes,
)
from calibrant.bench.core.registry import benchmark
from tests.support.commands import refused


def generated(folder: Path, benchmark: str, strata: str, count: int = 2) -> Path:
    pool = folder / f"{strata}.jsonl"
    options = ["--strata", strata, "--per-stratum", str(count), "--seed", "3"]
    assert main(["generate", "--benchmark", benchmark, *options, "--out", str(pool)]) == 0
    assert main(["run", "exact", str(pool), "--out", str(folder / strata), "--workers", "1"]) == 0
    return folder / strata


def rows(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict[str, Any]:
    capsys.readouterr()
    assert main(["table", *map(str, arguments), "--attribution", "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


@pytest.mark.parametrize(("benchmark", "strata"), [("blickets", "stochastic"), ("causalab", "4nodes_hidden_n1")])
def test_exact_earns_what_a_posterior_decides(
    benchmark: str, strata: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = generated(tmp_path, benchmark, strata, 4)
    found = rows(capsys, run)
    (row,) = found["rows"]
    said = [json.loads(line).get("attribution") for line in next(run.rglob("*.jsonl")).read_text().splitlines()]
    posteriors = [one["posterior"] for one in said if one is not None]
    assert row["decided"] == sum(posterior >= 0.99 for posterior in posteriors) / len(posteriors) > 0.5
    assert (row["accuracy"], row["earned"]) == (1.0, row["decided"])
    assert found["notes"] == [
        "Decided: the readings left one answer; noisy readings, one with a posterior of at least 0.99."
    ]
    by_level = [rows(capsys, run, "--decided-at", level) for level in ("0.95", ".99", "0.999")]
    decided = [one["rows"][0]["decided"] for one in by_level]
    assert decided == sorted(decided, reverse=True)
    assert by_level[1]["rows"] == found["rows"]
    assert [one["notes"][0].split()[-1] for one in by_level] == ["0.95.", "0.99.", "0.999."]
    assert main(["table", str(run), "--attribution", "--decided-at", ".95"]) == 0
    assert "noisy readings, one with a posterior of at least 0.95." in capsys.readouterr().out
    assert main(["report", str(run), "--attribution", "--decided-at", ".999", "--format", "markdown"]) == 0
    assert "at least 0.999." in capsys.readouterr().out
    assert main(["report", str(run), "--format", "markdown"]) == 0
    assert "at least 0.99." in capsys.readouterr().out


def test_it_is_refused_where_it_decides_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = generated(tmp_path, "blickets", "conjunctive")
    capsys.readouterr()
    for command in ("table", "report"):
        assert "give both" in refused(capsys, command, run, "--decided-at", ".95")
        assert "1 is none of 0.95, 0.99, 0.999" in refused(capsys, command, run, "--attribution", "--decided-at", "1")
        said = refused(capsys, command, run, "--attribution", "--decided-at", ".95")
        assert "no answer has a posterior" in said
    found = rows(capsys, run)
    assert "notes" not in found


def test_answers_whose_evidence_is_not_counted_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = generated(tmp_path, "causalab", "4nodes_hidden_n1")
    records = next(run.rglob("*.jsonl"))
    lines = [json.loads(line) for line in records.read_text().splitlines()]
    for line in lines:
        line.pop("attribution", None)
    records.write_text("".join(json.dumps(line) + "\n" for line in lines))
    capsys.readouterr()
    assert "have none; add --pool POOL" in refused(capsys, "table", run, "--attribution")
    assert "have none; add --pool POOL" in refused(capsys, "report", run, "--attribution")
    monkeypatch.setattr(type(benchmark("causalab")), "attribution", lambda *_: None)  # as where too much is left
    first, pool = lines[0]["instance"], tmp_path / "4nodes_hidden_n1.jsonl"
    for line in (["table", run], ["report", run]):
        assert main([*map(str, line), "--attribution", "--pool", str(pool)]) == 0
        expected = (
            f"{len(lines)} answers have no attribution: what their evidence leaves is not counted (first: {first})"
        )
        assert expected in capsys.readouterr().err.splitlines()


def test_records_are_decided_anew_by_their_posterior() -> None:
    assert DEFAULT_LEVEL == DECIDED_AT
    assert DEFAULT_LEVEL in LEVELS
    for posterior, levels in ((0.97, [True, False, False]), (0.99, [True, True, False]), (0.5, [False] * 3)):
        for correct in (True, False):
            made = Attribution(posterior >= DECIDED_AT, correct, None, 7, "a class", posterior)
            record = attribution_record(made) | {"decided_at": 3}
            again = [decided_from(record, level) for level in LEVELS]
            assert [one["decided"] for one in again] == levels
            kinds = [KINDS[(not decided) * 2 + (not correct)] for decided in levels]
            assert [one["kind"] for one in again] == kinds
            assert again[1]["kind"] == str(made.kind)
            assert [one["decided_at"] for one in again] == [
                3 if decided == made.decided else None for decided in levels
            ]
    exact = attribution_record(Attribution(False, True, None, 7, "a class"))
    assert decided_from(exact, 0.95) == exact
    assert decision_notes([{"attribution": exact}, {}]) == ()
