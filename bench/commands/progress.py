"""How commands that work through pools use the machine and show where they are."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from bench.terminal import drawn_on, printable
from dsl.errors import in_one_line


def usable_cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def progress_bar(doing: str = "") -> Iterator[Callable[[str, int, int], None]]:
    """A bar per pool on standard error, where that is a terminal; elsewhere nothing.

    doing: what is done to the pools; stands before their names
    """
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import Progress, TaskID

    console = Console(file=drawn_on(sys.stderr))
    bars: dict[str, TaskID] = {}
    with Progress(console=console, disable=not console.is_terminal) as bar:

        def report(name: str, done: int, total: int) -> None:
            if name not in bars:
                bars[name] = bar.add_task(escape(printable(in_one_line(doing + name))), total=total)
            bar.update(bars[name], completed=done)

        yield report
