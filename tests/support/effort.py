"""How much a test does: few well-chosen cases whenever all tests run, many in `python3 tasks.py soak`.

A test that asks here is marked `soak`, says in its docstring what the few cases still cover, and runs there with all
of them.
"""

from __future__ import annotations

import os
from typing import TypeVar

T = TypeVar("T")

SOAKING = os.environ.get("CALIBRANT_SOAK") == "1"
UNTIL = float(os.environ.get("CALIBRANT_SOAK_UNTIL", "inf"))  # seconds of time.time(); a soak begins no test after it


def effort(usual: T, soaking: T) -> T:
    """The first whenever all tests run, the second in a soak."""
    return soaking if SOAKING else usual
