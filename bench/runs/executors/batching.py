"""Jobs that wait for workers elsewhere, in batches: what one message carries there.

A message costs the same for a job of a millisecond as for one of an hour. So batches of short jobs grow until they take
about BATCH_SECONDS. A worker that was sent more than it did in this time returns the rest, so a long job holds up
little but itself. The last jobs, as many as can run at once, wait here for an idle worker: a batch that waits behind a
long job elsewhere comes late, and all wait for it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from math import ceil
from typing import Any

BATCH_SECONDS = 0.5  # after which a worker begins no other job of a batch
MAX_BATCH_JOBS = 64
FIRST_BATCH_JOBS = 8  # before any job was timed; a message costs as much as a tenth of an audit
# batches that each of the workers' slots should still get, so that all of them end at about the same time
BATCHES_PER_SLOT = 1.5
MIN_BATCH_PART = 4  # but no batch is smaller than such a part of what takes BATCH_SECONDS
BATCHES_AHEAD = 2  # batches sent out for each slot, so that none waits for the next message


class Batcher:
    """Queue of jobs that were not sent out, or came back; gives batches by the keys of the jobs."""

    def __init__(self, jobs: Mapping[Any, Any]) -> None:
        self._jobs = jobs
        self._waiting = deque(jobs)
        self._suspects: deque[Any] = deque()
        self._last_suspect: list[Any] = []  # the one that was sent out last, alone
        self._size = FIRST_BATCH_JOBS

    def __bool__(self) -> bool:
        return bool(self._waiting or self._suspects)

    def next(self, slots: int, num_out: int) -> list[dict[Any, Any]]:
        """Return what each slot begins with first, or what may follow that; nothing while there is enough to do.

        slots: how many jobs can run at once; num_out: batches sent out that are not back. A suspect is sent out only
        when none are, after all other jobs
        """
        batches: list[dict[Any, Any]] = []
        while self._waiting and len(batches) < min(slots, self._max_out(slots) - num_out):
            batches.append(self._next_batch(slots))
        if self._suspects and slots and not num_out and not batches:
            key = self._suspects.popleft()
            self._last_suspect = [key]
            batches.append({key: self._jobs[key]})
        return batches

    def _max_out(self, slots: int) -> int:
        return BATCHES_AHEAD * slots if len(self._waiting) > slots else slots

    def _next_batch(self, slots: int) -> dict[Any, Any]:
        before_the_last = max(1, len(self._waiting) - slots)
        fair = ceil(len(self._waiting) / (BATCHES_PER_SLOT * slots))
        size = min(self._size, max(fair, self._size // MIN_BATCH_PART), before_the_last)
        return {key: self._jobs[key] for key in [self._waiting.popleft() for _ in range(size)]}

    def requeue_rest(self, keys: list[Any], num_done: int, early: bool) -> None:
        """Requeue the unfinished rest of a batch and adapt the batch size.

        num_done: the first so many jobs are done; early: the batch took less than half of BATCH_SECONDS
        """
        self._waiting.extendleft(reversed(keys[num_done:]))
        if num_done < len(keys):
            self._size = max(1, num_done)
        elif early:
            self._size = min(MAX_BATCH_JOBS, max(self._size, 2 * num_done))

    def suspect_jobs(self, keys: list[Any]) -> list[Any]:
        """Return the jobs of a batch that killed its workers: none before each was tried alone.

        Any job that a worker had may be the one, also of another batch.
        """
        if keys == self._last_suspect:
            return keys
        self._suspects.extend(keys)
        return []
