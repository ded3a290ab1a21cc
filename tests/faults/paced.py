"""A row of its own, slow enough to be killed in the middle: `calibrant run tests/faults/paced.py:Paced POOL`."""

from __future__ import annotations

import os
import time
from hashlib import sha256

from calibrant.bench.protocols import ProtocolResult
from calibrant.bench.replayscm.rows.exact import Exact
from calibrant.dsl.replayscm.item import Task


class Paced(Exact, frozen=True):
    """What `exact` answers, after a pause.

    pause: seconds; dies: the mark of a task that kills the process it is answered in
    """

    name = "paced"
    pause: float = 0.1
    dies: str = ""

    def answer(self, task: Task) -> ProtocolResult:
        """Return the answer of `exact`."""
        time.sleep(self.pause)
        if self.dies and mark(task) == self.dies:
            os._exit(9)
        return super().answer(task)


def mark(task: Task) -> str:
    """Short, and another one for another task."""
    return sha256(repr([(world.id, world.columns) for world in task.training.worlds]).encode()).hexdigest()[:16]
