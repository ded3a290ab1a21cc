"""A small suite with private gold, as files that `calibrant release` builds."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

SPECIFICATION = """
name = "two-pools"
version = "1.0"
title = "Two pools"
summary = "Items for tests."
license = "MIT"
url = "https://example.org/two-pools"
creators = ["A. Author"]
date = 2026-01-02
master = "master.key"
formats = ["jsonl"]

[[pool]]
name = "detectors"
benchmark = "blickets"
seed = 5
strata = "easy-3,order-2-of-4"
per_stratum = 2
rows = ["static", "quiet"]

[[pool]]
name = "questions"
benchmark = "causim"
seed = 6
strata = "chain"
per_stratum = 3
harden = {}
rows = ["exact", "copy"]

[statements]
judge = "None: answers are executed."
"""
MASTER = "ab" * 32


def write_specification(folder: Path, text: str = SPECIFICATION) -> Path:
    """Write the specification and its master; return the file of the first."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "master.key").write_text(MASTER, encoding="ascii")
    path = folder / "suite.toml"
    path.write_text(text, encoding="utf-8")
    return path


def build_apart(specification: Path, out: Path, hash_seed: int, *options: str) -> None:
    """Build the release in a process of its own with this hash seed."""
    command = [sys.executable, "-m", "calibrant.bench.cli", "release", str(specification), "--out", str(out)]
    subprocess.run(
        [*command, "--workers", "1", *options],
        env=os.environ | {"PYTHONHASHSEED": str(hash_seed)},
        check=True,
        capture_output=True,
        timeout=300,
    )
