"""Lines with an episode: its steps as records have them or in a benchmark's trace format, or the system's replies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

STEPS_FIELD = "steps"
REPLIES_FIELD = "replies"  # texts or objects, one a turn
DIALOGUE_FIELD = "dialogue"  # options under which they were given
ITEM_FIELD, AGENT_FIELD = "item", "agent"  # of a trace


def is_trace(line: Mapping[str, Any]) -> bool:
    """Return whether a line is one in a benchmark's own trace format."""
    return isinstance(line.get(ITEM_FIELD), str) and isinstance(line.get(AGENT_FIELD), str) and STEPS_FIELD in line
