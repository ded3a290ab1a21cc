"""Where golden outputs are kept."""

from __future__ import annotations

import json
from pathlib import Path

OUTPUTS = Path(__file__).parent / "outputs"
DIGESTS = Path(__file__).parent / "development.json"


def read_digests() -> dict[str, dict[str, str]]:
    """Return the digest of each line's output by session, empty before the first update."""
    digests: dict[str, dict[str, str]] = json.loads(DIGESTS.read_text(encoding="utf-8")) if DIGESTS.exists() else {}
    return digests
