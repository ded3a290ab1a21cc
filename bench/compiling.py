"""Messages of a command while kernels are compiled, which it does once for each version of the program."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

from calibrant.dsl.kernel_cache import CompileListener

EVERY = 5.0  # seconds between lines


class CompilingLines:
    """A line at once, then one now and then."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._started = self._last = 0.0
        self._count = 0

    def say(self, kernel: str) -> None:
        now = self._clock()
        self._count += 1
        if self._count == 1:
            self._started = self._last = now
            self._line("once for each version, 5 to 20 s of processor time in all")
        elif now - self._last >= EVERY:
            self._last = now
            self._line(f"{kernel} is number {self._count}, after {now - self._started:.0f} s")

    def _line(self, text: str) -> None:
        print(f"compiling kernels: {text}", file=sys.stderr, flush=True)


_lines = CompilingLines()


def say_compiling(kernel: str) -> None:
    """Report the compilation of a kernel on standard error; processes started by this one report theirs through it."""
    _lines.say(kernel)


def tell_compiling() -> None:
    """From now on this process says on standard error what it compiles."""
    CompileListener.listener = say_compiling
