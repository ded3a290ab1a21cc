"""Notes of `pool check` on ReplaySCM: items that stay open, and headers that contradict their records."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from calibrant.bench.cli import main
from calibrant.bench.core.registry import bundled_pool
from tests.support.commands import jsonl

SETTINGS = ("ordered", "block", "hidden-order", "hidden-roots")


def _notes(pool: Path, capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    capsys.readouterr()
    assert main(["pool", "check", str(pool), "--json"]) == 0
    (report,) = json.loads(capsys.readouterr().out)
    return list(report.get("notes", []))


def _part(tmp_path: Path, setting: str, num_items: int, metadata: Mapping[str, str] = {}) -> Path:
    header, *lines = bundled_pool(setting).read_text(encoding="utf-8").splitlines()
    return jsonl(tmp_path / "part.jsonl", json.loads(header) | {"metadata": dict(metadata)}, *lines[:num_items])


@pytest.mark.parametrize("setting", SETTINGS)
def test_ambiguous_items_are_those_of_the_audit(
    setting: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pool = _part(tmp_path, setting, 3)
    notes = _notes(pool, capsys)
    assert [note["kind"] for note in notes] == ["ambiguous"] * 3
    assert main(["audit", str(pool), "--out", str(tmp_path / "audit")]) == 0
    audited = [json.loads(line) for line in (tmp_path / "audit" / "audits.jsonl").read_text("utf-8").splitlines()]
    findings = {record["instance"]: record["findings"] for record in audited if record.get("findings")}
    assert len(findings) == 3
    capsys.readouterr()
    assert main(["list", str(pool), "--why"]) == 0
    listed = capsys.readouterr().out
    for note in notes:
        counted = findings[note["instance"]]
        (members,) = (c["members"] for c in counted["classes"] if c["max_parents"] == counted["headline"])
        assert int(members) > 1
        assert note["claim"].startswith(f"{int(members):,} SCMs fit: functional parents <= {counted['headline']}")
        if counted["headline"] == 4:
            assert f"{int(members):,}" in listed


def test_an_item_of_one_scm_is_not_called_ambiguous(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, target = _part(tmp_path, "ordered", 2), tmp_path / "hard.jsonl"
    assert main(["harden", str(source), "--out", str(target), "--seed", "1"]) == 0
    assert not [note for note in _notes(target, capsys) if note["kind"] == "ambiguous"]


@pytest.mark.parametrize("field", ["disclosure", "setting"])
def test_a_header_of_another_disclosure_is_noted(
    field: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    notes = _notes(_part(tmp_path, "hidden-order", 3, {field: "ordered"}), capsys)
    headers = [note for note in notes if note["kind"] == "header"]
    assert len(headers) == 3
    assert headers[0]["claim"] == f"the record is Hidden-order; the header states {field}: ordered"


@pytest.mark.parametrize("stated", ["hidden_order", "hidden-order", "mine"])
def test_a_header_that_does_not_contradict_is_not_noted(
    stated: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    notes = _notes(_part(tmp_path, "hidden-order", 2, {"disclosure": stated}), capsys)
    assert {note["kind"] for note in notes} == {"ambiguous"}
