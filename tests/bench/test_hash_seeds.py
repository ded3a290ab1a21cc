"""What a command writes does not depend on the hash seed of the process."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from tests.support.commands import program
from tests.support.every_writer import codes
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
    """Here, under a seed of chance or one that was set, and in a process of another one.

    The shared instance is one whose best split once depended on it.
    """
    pool = shared_file("hash_seed.jsonl", part="replayscm/adversarial")
    here, there = tmp_path / "here", tmp_path / "there"
    for folder in (here, there):
        folder.mkdir()
    said = list(codes(here, pool))
    seed = "3" if os.environ.get("PYTHONHASHSEED") == "0" else "0"
    done = program("-m", "tests.support.every_writer", there, pool, env={**os.environ, "PYTHONHASHSEED": seed})
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert [line for line in done.stdout.splitlines() if line.endswith((": 0", ": 1", ": 2"))] == said
    assert not any(line.endswith(": 2") for line in said)
    made, again = written(here), written(there)
    assert len(made) >= 20
    assert made.keys() == again.keys()
    for name, content in made.items():
        assert content == again[name], name
