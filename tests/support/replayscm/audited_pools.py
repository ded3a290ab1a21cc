"""Pools for tests of audits: written ones whose members are known, and parts of the bundled ones."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from calibrant.bench.cli import main
from calibrant.bench.core.registry import bundled_pool
from calibrant.dsl.replayscm.pools.files import write_pool
from tests.support.stub_protocols import small_pool

ALL_ROWS = ("000", "100", "010", "111")
TWO_MEMBERS = ("000", "100", "010")
FOUR_MEMBERS = ("000", "100")


def written_pool(path: Path, evidence: Sequence[Sequence[str]], **changes: Any) -> Path:
    """Return a pool of X3 = X1 and X2 with these training rows, one instance each; changes go into every record."""
    write_pool(small_pool(["good"] * len(evidence)), path)
    header, *lines = path.read_text(encoding="utf-8").splitlines()
    records = [json.loads(line) for line in lines]
    for record, rows in zip(records, evidence, strict=True):
        record["training"][0].update(rows=list(rows), units=[f"u{i}" for i in range(len(rows))])
        record.update(changes)
    path.write_text("\n".join([header, *map(json.dumps, records)]) + "\n", encoding="utf-8")
    return path


def audited(capsys: pytest.CaptureFixture[str], *arguments: object) -> list[dict[str, Any]]:
    """Return the records that the command prints."""
    assert main(["audit", *map(str, arguments), "--json", "--workers", "1"]) == 0
    records: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["instances"]
    return records


def two_bundled(path: Path) -> Path:
    """Two instances of a bundled Hidden-order pool."""
    lines = bundled_pool("hidden-order").read_text(encoding="utf-8").splitlines(keepends=True)
    path.write_text("".join(lines[:3]), encoding="utf-8")
    return path


def with_a_wide_gold(path: Path) -> Path:
    """Return the same two and one whose gold has five parents somewhere; nothing of four fits that."""
    lines = bundled_pool("hidden-order").read_text(encoding="utf-8").splitlines(keepends=True)
    (strict,) = [line for line in lines if '"CAL_vhs_n9_dense_strict_20000001"' in line]
    path.write_text("".join([*lines[:3], strict]), encoding="utf-8")
    return path
