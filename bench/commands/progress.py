"""Cores and progress of commands that work through pools."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from threading import Event, Thread
from typing import TYPE_CHECKING, TextIO

from calibrant.bench.terminal import drawn_on, printable
from calibrant.dsl.errors import in_one_line

if TYPE_CHECKING:
    from rich.console import Console

    from calibrant.bench.runs.jobs import Progress

FIRST, EVERY = 5.0, 30.0  # seconds before the first line where there is no terminal, and between lines
PROMPT = 2.0  # seconds before the first line of work that is short as a rule


def usable_cores() -> int:
    """Return the cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def progress_bar(doing: str = "", first: float | None = None) -> AbstractContextManager[Progress]:
    """Show a bar per pool on standard error if that is a terminal; else a line now and then, none for short work.

    doing: the activity, which stands before the names of pools; first: seconds before the first line, FIRST by default
    """
    from rich.console import Console

    console = Console(file=drawn_on(sys.stderr))
    return _bars(console, doing) if console.is_terminal else _spoken(doing, FIRST if first is None else first)


@contextmanager
def _bars(console: Console, doing: str) -> Iterator[Progress]:
    from rich.markup import escape
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    bars: dict[str, TaskID] = {}
    with Progress(*columns, console=console) as bar:

        def report(name: str, done: int, total: int) -> None:
            if name not in bars:
                bars[name] = bar.add_task(escape(_line(doing + name)), total=total)
            bar.update(bars[name], completed=done)

        yield report


@contextmanager
def _spoken(doing: str, first: float) -> Iterator[Progress]:
    lines, over = ProgressLines(doing, first=first), Event()
    speaker = Thread(target=lines.speak, args=(over.wait, sys.stderr), daemon=True)
    speaker.start()
    try:
        yield lines.report
    finally:
        over.set()
        speaker.join()


class ProgressLines:
    """Progress in lines: after the first seconds, then every EVERY; nothing once all is done."""

    def __init__(
        self, doing: str = "", clock: Callable[[], float] = time.monotonic, first: float | None = None
    ) -> None:
        self._doing = doing
        self._first = FIRST if first is None else first
        self._clock = clock
        self._started = clock()
        self._latest: tuple[str, int, int] | None = None

    def report(self, name: str, done: int, total: int) -> None:
        self._latest = name, done, total

    def speak(self, over: Callable[[float], bool], out: TextIO) -> None:
        """Write lines until the work is over.

        over: waits so many seconds, or until the work is over; returns whether it is
        """
        wait = self._first
        while not over(wait):
            wait = EVERY
            if line := self.line():
                print(line, file=out, flush=True)

    def line(self) -> str:
        seconds = f"after {self._clock() - self._started:.0f} s"
        if self._latest is None:
            return _line(f"{self._doing}reading, {seconds}")
        name, done, total = self._latest
        if done >= total:
            return ""
        return _line(f"{self._doing}{name}: {done} of {total} done {seconds}")


def _line(text: str) -> str:
    return printable(in_one_line(text))
