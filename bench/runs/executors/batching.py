"""Jobs that wait for workers elsewhere, in shares: what one message carries there.

A message costs the same for a job of a millisecond as for one of an hour. So shares of short jobs grow until they take
about SHARE seconds. A worker that was handed more than it did in this time gives the rest back, so a long job holds
up little but itself. The last jobs, as many as can be done at once, wait here for a worker that has nothing to do: a
share that waits behind a long job elsewhere comes late, and all wait for it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from math import ceil
from typing import Any

SHARE = 0.5  # seconds after which a worker begins no other job of a share
LARGEST = 64  # jobs
FIRST = 8  # jobs, when nothing is known of them; a message costs as much as a tenth of an audit
TURNS = 1.5  # shares that each of the workers' slots should still get, so that all of them end at about the same time
LEAST = 4  # but no share is smaller than such a part of what takes SHARE seconds
AHEAD = 2  # shares handed out for each slot, so that none waits for the next message


class Shares:
    """What has not been handed out, or has come back; shares of it, by the keys of the jobs."""

    def __init__(self, jobs: Mapping[Any, Any]) -> None:
        self._jobs = jobs
        self._waiting = deque(jobs)
        self._suspects: deque[Any] = deque()
        self._alone: list[Any] = []  # the suspect that was handed out last
        self._size = FIRST

    def __bool__(self) -> bool:
        return bool(self._waiting or self._suspects)

    def next(self, slots: int, out: int) -> list[dict[Any, Any]]:
        """Return what each slot begins with first, or what may follow that; nothing while there is enough to do.

        slots: how many jobs can be done at once; out: shares handed out that are not back. A suspect is handed out only
        when none are, after all other jobs
        """
        shares: list[dict[Any, Any]] = []
        while self._waiting and len(shares) < min(slots, self._ahead(slots) - out):
            shares.append(self._taken(slots))
        if self._suspects and slots and not out and not shares:
            key = self._suspects.popleft()
            self._alone = [key]
            shares.append({key: self._jobs[key]})
        return shares

    def _ahead(self, slots: int) -> int:
        return AHEAD * slots if len(self._waiting) > slots else slots

    def _taken(self, slots: int) -> dict[Any, Any]:
        before_the_last = max(1, len(self._waiting) - slots)
        fair = ceil(len(self._waiting) / (TURNS * slots))
        size = min(self._size, max(fair, self._size // LEAST), before_the_last)
        return {key: self._jobs[key] for key in [self._waiting.popleft() for _ in range(size)]}

    def came_back(self, keys: list[Any], done: int, early: bool) -> None:
        """A share of which so many jobs, the first, are done: the rest waits again, and the size of shares follows."""
        self._waiting.extendleft(reversed(keys[done:]))
        if done < len(keys):
            self._size = max(1, done)
        elif early:
            self._size = min(LARGEST, max(self._size, 2 * done))

    def guilty(self, keys: list[Any]) -> list[Any]:
        """Of a share under which workers died, those that killed them: none before each has been tried alone.

        Any job that a worker had may be the one, also of another share.
        """
        if keys == self._alone:
            return keys
        self._suspects.extend(keys)
        return []
