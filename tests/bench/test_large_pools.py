"""Commands write the same of items that stay in their file as of items that are kept."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest

import calibrant.bench.scoring.lines
import calibrant.dsl.records
from calibrant.audits.replayscm.items import AuditOptions
from calibrant.bench.cli import main
from calibrant.bench.core.registry import benchmark_of, bundled_files
from calibrant.bench.lab.speed.memory import CHEAP
from calibrant.bench.protocols import _pool
from calibrant.bench.replayscm.audit import audit_pool
from calibrant.bench.runs.runner import Selection
from calibrant.dsl.records import StoredItems

SUITES = {"blickets": "easy-3", "causalab": "3nodes", "causim": "chain", "logic": "exact"}


@pytest.fixture(autouse=True)
def fresh_pools() -> Iterator[None]:
    _pool.cache_clear()
    yield
    _pool.cache_clear()


def outputs(benchmark: str, folder: Path, capfd: pytest.CaptureFixture[str]) -> dict[str, object]:
    """Return the output of every command on the first four items."""
    folder.mkdir()
    pool, told = folder / "pool.jsonl", folder / "responses.jsonl"
    with bundled_files()[benchmark][0].open(encoding="utf-8") as lines:
        pool.write_text("".join(islice(lines, 5)), encoding="utf-8")
    ids = [json.loads(line)["id"] for line in pool.read_text(encoding="utf-8").splitlines()[1:]]
    told.write_text("".join(json.dumps({"instanceId": name, "response": "{}"}) + "\n" for name in ids))
    written = {name: folder / name for name in ("converted.jsonl", "prompts.jsonl", "scores.jsonl")}
    commands = [
        ["pool", "check", pool, "--json"],
        ["pool", "stats", pool, "--json"],
        ["pool", "convert", pool, written["converted.jsonl"]],
        ["prompts", pool, "--out", written["prompts.jsonl"]],
        ["prompts", pool, "--text", "--limit", "2", "--only", ids[0], "--only", ids[3]],
        ["run", CHEAP[benchmark], pool, "--out", folder / "runs", "--workers", "1", "--limit", "2"],
        ["run", CHEAP[benchmark], pool, "--out", folder / "runs", "--workers", "1"],
        ["score", pool, told, "--out", written["scores.jsonl"], "--workers", "1"],
        ["show", pool, ids[2]],
        *([["audit", pool], ["audit", pool, "--json"]] if benchmark != "replayscm" else []),
    ]
    if benchmark in SUITES:
        written["drawn.jsonl"] = drawn = folder / "drawn.jsonl"
        suite = ["--benchmark", benchmark, "--strata", SUITES[benchmark]]
        commands.append(["generate", *suite, "--per-stratum", "3", "--seed", "1", "--workers", "1", "--out", drawn])
    if benchmark == "causim":
        written |= {name: folder / name for name in ("hardened.jsonl", "report.jsonl")}
        to = ["--out", written["hardened.jsonl"], "--report", written["report.jsonl"]]
        commands.append(["harden", pool, *to, "--workers", "1"])
    found: dict[str, object] = {}
    for command in commands:
        status = main([*map(str, command)])
        heard = capfd.readouterr()
        found[" ".join(map(str, command)).replace(str(folder), "")] = status, heard.out
    found |= {name: path.read_bytes() for name, path in written.items()}
    records = [json.loads(line) for line in (folder / "runs" / "records.jsonl").read_text().splitlines()]
    return found | {"records": [record | {"timing": None} for record in records]}


@pytest.mark.parametrize("benchmark", sorted(CHEAP))
def test_commands_write_the_same(
    benchmark: str, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = outputs(benchmark, tmp_path / "kept", capfd)
    monkeypatch.setattr(calibrant.dsl.records, "MAX_CACHED_ITEMS", 1)
    pool = tmp_path / "kept" / "pool.jsonl"
    assert isinstance(benchmark_of(pool).items.read_pool(pool).items, StoredItems)
    _pool.cache_clear()
    stored = outputs(benchmark, tmp_path / "stored", capfd)
    for name, value in kept.items():
        assert stored[name] == value, name
    ended = {name: value[0] for name, value in kept.items() if isinstance(value, tuple)}
    assert all(status == name.startswith("harden") for name, status in ended.items())  # one item cannot be decided


def test_processes_that_score_read_the_same_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibrant.dsl.records, "MAX_CACHED_ITEMS", 1)
    monkeypatch.setattr(calibrant.bench.scoring.lines, "PARALLEL_THRESHOLD", 1)
    pool, told = bundled_files()["causim"][0], tmp_path / "responses.jsonl"
    ids = [item.id for item in benchmark_of(pool).items.read_pool(pool).items]
    told.write_text("".join(json.dumps({"instanceId": name, "response": "{}"}) + "\n" for name in ids))
    for workers in ("1", "2"):  # also: what this process has met before does not hinder sending it
        assert main(["score", str(pool), str(told), "--out", str(tmp_path / workers), "--workers", workers]) == 0
    assert (tmp_path / "1").read_bytes() == (tmp_path / "2").read_bytes()


def made_of(folder: Path, capfd: pytest.CaptureFixture[str]) -> dict[str, object]:
    """Return the output of a resumed audit, stopped after one instance, and of a hardening, on the first two items."""
    folder.mkdir()
    pool, hardened = folder / "pool.jsonl", folder / "hardened.jsonl"
    with bundled_files()["replayscm"][0].open(encoding="utf-8") as lines:
        pool.write_text("".join(islice(lines, 3)), encoding="utf-8")
    options = AuditOptions(2, (2,))
    audit_pool(pool, folder, options, Selection(limit=1))
    audited = audit_pool(pool, folder, options)
    assert audited.skipped == 1
    assert isinstance(audited.items, StoredItems) == (calibrant.dsl.records.MAX_CACHED_ITEMS == 1)
    assert isinstance(audited.records, tuple) == (calibrant.dsl.records.MAX_CACHED_ITEMS > 1)
    report = folder / "report.jsonl"
    harden = ["harden", str(pool), "--out", str(hardened), "--report", str(report), "--mode", "extra-worlds"]
    assert main([*harden, "--workers", "1"]) == 0
    audit = ["audit", str(pool), "--out", str(folder / "audits"), "--max-parents", "2", "--workers", "1"]
    printed = [main([*audit, *more]) for more in ((), ("--json",), ("--details",))], capfd.readouterr().out
    return {
        "pool": [problem.id for problem in audited.items],
        "audits": [record.to_dict() for record in audited.records],
        "hardened": hardened.read_bytes(),
        "report": report.read_bytes(),
        "printed": printed,
    }


def test_audits_and_hardening_make_the_same(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = made_of(tmp_path / "kept", capfd)
    monkeypatch.setattr(calibrant.dsl.records, "MAX_CACHED_ITEMS", 1)
    assert made_of(tmp_path / "stored", capfd) == kept
