"""docs/pools.md: its smallest pool is one, and is audited as the page says."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from calibrant.bench.cli import main
from tests.support.commands import CHECKOUT

PAGE = (CHECKOUT / "docs" / "pools.md").read_text(encoding="utf-8")
LINES = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)[0]


def _members(pool: Path, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["audit", str(pool), "--json", "--workers", "1"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["instances"]
    (headline,) = [one for one in found["findings"]["classes"] if one["max_parents"] == 2]
    return str(headline["members"])


def test_the_smallest_pool_is_checked_shown_and_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pool = tmp_path / "mine.jsonl"
    pool.write_text(LINES, encoding="utf-8")
    for command in re.findall(r"^    calibrant (.*?) +#", PAGE, re.MULTILINE):
        assert main(command.replace("mine.jsonl", str(pool)).split()) == 0
    capsys.readouterr()
    assert _members(pool, capsys) == "2"
    closed = LINES.replace('"u2"]', '"u2", "u3"]').replace('"111"]', '"111", "100"]')
    pool.write_text(closed, encoding="utf-8")
    assert _members(pool, capsys) == "1"
