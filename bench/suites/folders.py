"""Folders that a command makes: complete or not at all, and never over something that is there."""

from __future__ import annotations

from pathlib import Path

from calibrant.dsl.errors import CalibrantError


def require_free(out: Path, name: str) -> None:
    """Raise `CalibrantError` if there is something at a path already; name: of what would be written."""
    if out.is_symlink() or (out.exists() and (not out.is_dir() or any(out.iterdir()))):
        raise CalibrantError(f"{out}: there already; {name} is a folder of its own")
