"""The version that records and `--version` state."""

from __future__ import annotations

import importlib.metadata
import tomllib
from functools import cache
from pathlib import Path


@cache
def program_version() -> str:
    """The installed distribution's version; in a checkout that is not installed, the one of pyproject.toml."""
    try:
        return importlib.metadata.version("calibrant")
    except importlib.metadata.PackageNotFoundError:
        project = Path(__file__).resolve().parent.parent / "pyproject.toml"
        return str(tomllib.loads(project.read_text(encoding="utf-8"))["project"]["version"])
