"""Where the shared vectors and pools are found: beside the checkout, or where CALIBRANT_SHARED says.

They are not part of the project. Outside continuous integration their absence is a visible skip; with CI=true it is a
failure.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

_CHECKOUT = Path(__file__).resolve().parent.parent.parent


def shared_folder() -> Path | None:
    """Return the folder that holds replayscm/, or None."""
    named = os.environ.get("CALIBRANT_SHARED")
    candidates = [Path(named)] if named else [_CHECKOUT.parent / "shared"]
    return next((path for path in candidates if (path / "replayscm").is_dir()), None)


def shared_file(name: str, *, part: str = "replayscm") -> Path:
    """Return a file of a part of the shared folder; skip the test (fail it under CI=true) when there is none."""
    folder = shared_folder()
    path = folder / part / name if folder else None
    if path is not None and path.exists():
        return path
    reason = f"shared {part}/{name} not found beside the checkout; set CALIBRANT_SHARED to the folder that holds it"
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


def shared_vectors(name: str) -> Iterator[dict[str, Any]]:
    """Yield the records of a shared JSONL file."""
    with shared_file(name).open(encoding="utf-8") as lines:
        yield from (json.loads(line) for line in lines)
