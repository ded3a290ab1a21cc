"""Responses without an answer, or with one that is incomplete or misplaced, counted: nothing is scored 0 in silence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from calibrant.bench.core.verdict import LazyVerdict
from calibrant.dsl.errors import in_one_line, short_repr

UNREAD_STAGES = (
    "extracted",
    "schema",
)  # of ReplaySCM's funnel: what is rejected there is no object of the task's shape


class UnreadAnswers:
    """Numbers of such responses, each with the first one's item and reason."""

    def __init__(self) -> None:
        self._without = _Tally()
        self._partial = _Tally()

    def add(self, instance: str, reason: str) -> None:
        """Count a response without an answer; an empty reason is none."""
        self._without.add(instance, reason)

    def add_partial(self, instance: str, reason: str) -> None:
        """Count a response whose answer has a missing, misplaced or unreadable part; an empty reason is none."""
        self._partial.add(instance, reason)

    def lines(self) -> Iterator[str]:
        """Yield one line for each of the two, where there are any."""
        for tally, problem in (
            (self._without, "no answer that can be read"),
            (self._partial, "an answer that is incomplete or misplaced"),
        ):
            if tally.number:
                subject = "1 response holds" if tally.number == 1 else f"{tally.number} responses hold"
                yield f"{subject} {problem} {tally.first}"


class _Tally:
    def __init__(self) -> None:
        self.number = 0
        self.first = ""

    def add(self, instance: str, reason: str) -> None:
        if not reason:
            return
        if not self.number:
            self.first = f"(first: {short_repr(instance)[1:-1]}: {in_one_line(reason)[:200]})"
        self.number += 1


def unread_reason(line: Mapping[str, Any]) -> str:
    """Why a response to ReplaySCM has no answer, from its verdict; empty if it has one."""
    if isinstance(line, LazyVerdict):
        return line.unread
    if "benchmark" in line:  # other benchmarks' answers are read before they are scored
        return ""
    return str(line.get("failureExplanation")) if line.get("stage") in UNREAD_STAGES else ""
