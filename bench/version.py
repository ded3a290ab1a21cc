"""The version that records and `--version` state. The build reads it here: this is its only source."""

from __future__ import annotations

__version__ = "0.1.0"


def program_version() -> str:
    """Return the version of the code that runs, installed or not."""
    return __version__
