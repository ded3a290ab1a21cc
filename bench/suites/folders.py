"""Folders that a command makes: complete or not at all, and never over something that is there."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from calibrant.bench.terminal.existing import elsewhere_error
from calibrant.bench.terminal.next_commands import unused_path


def require_free(out: Path, name: str) -> None:
    """Raise `HintedError`, with a free path, if there is something at a path; name: of what would be written."""
    if out.is_symlink() or (out.exists() and (not out.is_dir() or any(out.iterdir()))):
        raise elsewhere_error(f"{out}: there already; {name} is a folder of its own", out, unused_path(str(out)))


@contextmanager
def making_folder(out: Path) -> Iterator[tuple[Path, Path]]:
    """Give the path of a folder to make, which becomes `out` in the end, and of one for files that do not stay."""
    existing = next(folder for folder in out.absolute().parents if folder.exists())
    work = Path(tempfile.mkdtemp(dir=existing, prefix=f".{out.name}."))
    try:
        yield work / "made", work / "scratch"
        out.parent.mkdir(parents=True, exist_ok=True)
        os.rename(work / "made", out)  # onto an empty folder too
    finally:
        shutil.rmtree(work, ignore_errors=True)


def write_json(path: Path, value: Any) -> None:
    """Write a value as a JSON text."""
    path.write_text(json.dumps(value, indent=1) + "\n", encoding="utf-8")
