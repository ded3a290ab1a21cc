"""Compilation of kernels: one process compiles, the others wait and load; a listener is notified.

Imports no compiler, so that a program can ask to be told before there is one.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

PATIENCE = 300.0  # seconds to wait for another process; then two compile the same


class CompileListener:
    """The callback that receives the name of a kernel before it is compiled; None by default."""

    listener: Callable[[str], None] | None = None


class CompileLock:
    """A reentrant lock between processes that compile into a folder; callers must serialize threads."""

    def __init__(self, folder: Path) -> None:
        from filelock import FileLock  # takes longer to import than `calibrant --version` takes without it

        self._lock = FileLock(folder / "compiling.lock", timeout=PATIENCE)
        self._depth = 0

    def __enter__(self) -> CompileLock:
        self._depth += 1
        return self

    def __exit__(self, *_: object) -> None:
        self._depth -= 1
        if self._depth == 0 and self._lock.is_locked:
            self._lock.release()

    def wait(self) -> None:
        """Wait until no other process compiles; return at once where files cannot be locked."""
        if not self._lock.is_locked:
            with suppress(OSError, NotImplementedError):  # a timeout is one of them
                self._lock.acquire()

    @staticmethod
    def notify(kernel: str) -> None:
        if CompileListener.listener is not None:
            CompileListener.listener(kernel)
