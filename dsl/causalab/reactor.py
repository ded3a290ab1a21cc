"""The reactor's dial, as the released code has it: clamped, cut to an integer, never open at the last try."""

from __future__ import annotations

from dataclasses import dataclass

LOWEST, HIGHEST = 0.0, 10_000.0
TOLERANCE = 5.0
TRIES = 3


@dataclass(frozen=True, slots=True)
class Reactor:
    """State of the reactor.

    target: the crystal's frequency
    limit: tries that are answered; the last of them never activates
    dial: what the last answered try left on the dial; None before the first
    count: answered tries
    activated: whether the last try activated the reactor
    refused: whether the last try came after the limit
    """

    target: float
    limit: int = TRIES
    dial: float | None = None
    count: int = 0
    activated: bool = False
    refused: bool = False

    def dial_frequency(self, frequency: float) -> Reactor:
        """Return the reactor after a finite frequency was dialled."""
        if self.count >= self.limit:
            return Reactor(self.target, self.limit, self.dial, self.count, activated=False, refused=True)
        dialled = min(max(frequency, LOWEST), HIGHEST)
        count = self.count + 1
        hit = abs(dialled - self.target) < TOLERANCE and count < self.limit
        dial = self.target if int(dialled) == int(self.target) else float(int(dialled))
        return Reactor(self.target, self.limit, dial, count, hit and abs(dial - self.target) < TOLERANCE)


def accurate(frequency: float, target: float) -> bool:
    """Return whether a prediction counts as right, before the dial rounds or clips it."""
    return abs(frequency - target) < TOLERANCE


def winnable(target: float, limit: int = TRIES) -> bool:
    """Return whether any frequency activates the reactor: the dial ends at 10,000, and a lone try is the last."""
    return limit >= 2 and LOWEST - TOLERANCE < target < HIGHEST + TOLERANCE
