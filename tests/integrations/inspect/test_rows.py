"""Rows of ours through Inspect: what they answer and score there is what `calibrant run` records."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from calibrant.bench.protocols import protocols_of
from tests.support.packages import needs

needs("inspect_ai")

import calibrant
from calibrant import inspect as adapter
from calibrant.bench.cli import main
from calibrant.bench.core.metrics import InvalidHandling
from calibrant.bench.core.registry import benchmark
from calibrant.inspect import protocol
from tests.integrations.inspect.logs import evaluated, figures, metrics, own_id, samples


@pytest.mark.parametrize("row", ["exact", None])
def test_a_row_scores_as_in_a_run(pool: Path, tmp_path: Path, row: str | None) -> None:
    of = benchmark(pool.stem)
    name = row or list(protocols_of(of))[-1]
    log = evaluated(getattr(adapter, of.name)(str(pool)), tmp_path, solver=protocol(name))
    recorded = {record.instance: record for record in calibrant.run(name, pool, tmp_path / "runs")}
    assert len(samples(log)) == len(recorded) == 4
    columns = of.metrics.views[of.metrics.default_view].metrics
    for sample in samples(log):
        record = recorded[own_id(sample)]
        assert json.loads(sample.output.completion or "{}") == record.answer
        asked = of.metrics.verdict(record.score, record.setting, InvalidHandling.PUBLISHED)
        expected = {column.key: column.value(asked) for column in columns} | {
            "correct": record.score["correct"] is True
        }
        found = figures(sample)
        assert found.keys() == expected.keys()
        for key, value in expected.items():
            assert math.isnan(found[key]) if value is None else found[key] == value
    if name == "exact":
        assert metrics(log)["correct"] == {"mean": 1.0, "stderr": 0.0}


def test_epochs_are_samples_of_the_row(pool: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = evaluated(getattr(adapter, pool.stem)(str(pool)), tmp_path, solver=protocol("exact"), epochs=2)
    assert main(["score", str(pool), log.location, "--json"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    ids = [item.id for item in benchmark(pool.stem).items.read_pool(pool).items]
    assert [(line["instanceId"], line["sample"]) for line in lines] == [(one, k) for one in ids for k in (0, 1)]
    assert {(line["model"], line["correct"]) for line in lines} == {("exact", True)}


def test_a_log_is_read_by_a_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from tests.integrations.inspect.conftest import pool_of

    pool = pool_of("replayscm", tmp_path)
    log = evaluated(adapter.replayscm(str(pool)), tmp_path, solver=protocol("exact"))
    line = ["report", "--predictions", log.location, "--pools", str(pool), "--format", "csv", "--no-times"]
    assert main([*line, "--table", "1"]) == 0
    assert ",exact," in capsys.readouterr().out


def test_what_a_row_cannot_be_is_said(pool: Path, tmp_path: Path) -> None:
    task = getattr(adapter, pool.stem)
    for wrong, said in ((protocol("nothing"), "unknown protocol 'nothing'"), (protocol("exact", no=1), "its options")):
        log = evaluated(task(str(pool)), tmp_path, solver=wrong)
        assert log.status == "error"
        assert log.error is not None
        assert said in log.error.message


def test_a_file_is_no_name_of_a_row(pool: Path, tmp_path: Path) -> None:
    own = tmp_path / "own.py"
    own.write_text("raise SystemExit('this was run')\n", encoding="utf-8")
    log = evaluated(getattr(adapter, pool.stem)(str(pool)), tmp_path, solver=protocol(f"{own}:Row"))
    assert log.error is not None
    assert "unknown protocol" in log.error.message


def test_a_pool_of_another_benchmark_is_refused(pool: Path) -> None:
    for name in ("replayscm", "blickets", "causalab", "causim"):
        if name != pool.stem:
            with pytest.raises(calibrant.CalibrantError, match=f"the task is calibrant/{pool.stem}"):
                getattr(adapter, name)(str(pool))
