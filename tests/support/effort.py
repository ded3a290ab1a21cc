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
    """Return the first value whenever all tests run, the second in a soak."""
    return soaking if SOAKING else usual


def examples(usual: int) -> int:
    """How many examples a property draws: a quarter of that in every run of the tests, ten times it in each of a soak.

    They are other ones in each run, so what few of them do not meet today they meet in one of the next.
    """
    return effort(max(5, usual // 4), 10 * usual)


def cases(all_of_them: int) -> int:
    """How many drawn problems are compared with brute force: a fifth whenever all tests run, all of them in a soak.

    They are the first of the same stream, in which settings and shapes take turns: a fifth has each of them too.
    """
    return effort(all_of_them // 5, all_of_them)
