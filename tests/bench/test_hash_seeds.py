"""What a command writes does not depend on the hash seed of the process."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from tests.support.commands import program
from tests.support.shared import shared_file


def written(folder: Path) -> dict[str, Any]:
    """Everything in a folder by its path, JSON lines without times and bytes otherwise."""
    made: dict[str, Any] = {}
    for path in sorted(folder.rglob("*")):
        if path.suffix == ".jsonl":
            lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
            made[str(path.relative_to(folder))] = [{k: v for k, v in one.items() if k != "timing"} for one in lines]
        elif path.is_file() and path.suffix != ".lock":
            made[str(path.relative_to(folder))] = path.read_bytes()
    return made


def test_every_command_writes_the_same_under_every_hash_seed(tmp_path: Path) -> None:
    """The shared instance is one whose best split once depended on it."""
    pool = shared_file("hash_seed.jsonl", part="replayscm/adversarial")
    made, printed = [], []
    for seed in ("0", "3"):
        folder = tmp_path / seed
        folder.mkdir()
        done = program("-m", "tests.support.every_writer", folder, pool, env={**os.environ, "PYTHONHASHSEED": seed})
        assert done.returncode == 0, done.stderr
        assert "Traceback" not in done.stderr
        made.append(written(folder))
        printed.append([line for line in done.stdout.splitlines() if line.endswith((": 0", ": 1", ": 2"))])
    assert printed[0] == printed[1]
    assert not any(line.endswith(": 2") for line in printed[0])
    assert len(made[0]) >= 20
    assert made[0].keys() == made[1].keys()
    for name, content in made[0].items():
        assert content == made[1][name], name
