"""While kernels are compiled: one process does it, the others wait and load; whoever wants to be told is told.

Imports no compiler, so that a program can ask to be told before there is one.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

PATIENCE = 300.0  # seconds to wait for another process; then two compile the same


class Told:
    """Who is told the name of a kernel that is about to be compiled; nobody unless a program asks."""

    listener: Callable[[str], None] | None = None


class Turn:
    """One process at a time compiles into a folder. Nested as kernels are; the caller sees to it that threads wait."""

    def __init__(self, folder: Path) -> None:
        from filelock import FileLock  # takes longer to import than `calibrant --version` takes without it

        self._lock = FileLock(folder / "compiling.lock", timeout=PATIENCE)
        self._depth = 0

    def __enter__(self) -> Turn:
        self._depth += 1
        return self

    def __exit__(self, *_: object) -> None:
        self._depth -= 1
        if self._depth == 0 and self._lock.is_locked:
            self._lock.release()

    def wait(self) -> None:
        """Until no other process compiles; where files cannot be locked nobody waits."""
        if not self._lock.is_locked:
            with suppress(OSError, NotImplementedError):  # a timeout is one of them
                self._lock.acquire()

    @staticmethod
    def say(kernel: str) -> None:
        if Told.listener is not None:
            Told.listener(kernel)
