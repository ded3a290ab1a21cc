"""Folders that a command makes: complete or not at all, and never over something that is there."""

from __future__ import annotations

import glob
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from calibrant.bench.terminal.existing import elsewhere_error
from calibrant.bench.terminal.next_commands import unused_path

_LOCK, _MADE, _SCRATCH = "calibrant.lock", "made", "scratch"


def require_free(out: Path, name: str) -> None:
    """Raise `HintedError`, with a free path, if there is something at a path; name: of what would be written."""
    if out.is_symlink() or (out.exists() and (not out.is_dir() or any(out.iterdir()))):
        raise elsewhere_error(f"{out}: there already; {name} is a folder of its own", out, unused_path(str(out)))


@contextmanager
def making_folder(out: Path) -> Iterator[tuple[Path, Path]]:
    """Give the path of a folder to make, which becomes `out` in the end, and of one for files that do not stay.

    Both are in a folder beside `out`, which the next call for the same `out` removes if this process was killed.
    """
    existing = next(folder for folder in out.absolute().parents if folder.exists())
    prefix = f".{out.name}."
    _remove_leftovers(existing, prefix)
    work = Path(tempfile.mkdtemp(dir=existing, prefix=prefix))
    lock = FileLock(work / "new.lock")
    try:
        lock.acquire()
        os.rename(work / "new.lock", work / _LOCK)  # under this name it is locked while its process lives
        yield work / _MADE, work / _SCRATCH
        out.parent.mkdir(parents=True, exist_ok=True)
        os.rename(work / _MADE, out)  # onto an empty folder too
    finally:
        shutil.rmtree(work, ignore_errors=True)
        lock.release()


def _remove_leftovers(parent: Path, prefix: str) -> None:
    """Remove folders of killed processes: with our lock, which nobody holds, and nothing that is not ours."""
    for leftover in parent.glob(f"{glob.escape(prefix)}????????"):
        lock = leftover / _LOCK
        is_ours = not leftover.is_symlink() and lock.is_file() and not lock.is_symlink()
        if not is_ours or {entry.name for entry in leftover.iterdir()} - {_LOCK, _MADE, _SCRATCH}:
            continue
        try:
            with FileLock(lock, timeout=0):
                shutil.rmtree(leftover, ignore_errors=True)
        except (Timeout, OSError):  # its process is at work; a folder of another user
            continue


def write_json(path: Path, value: Any) -> None:
    """Write a value as a JSON text."""
    path.write_text(json.dumps(value, indent=1) + "\n", encoding="utf-8")
