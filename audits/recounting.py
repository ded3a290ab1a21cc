"""The limit on the time of a check, and where it stands: verifiers pass checkpoints, the caller listens and may stop.

A check that is stopped has shown nothing: the certificate is neither verified nor refuted.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TypeAlias

from calibrant.dsl.errors import CalibrantError

Listener: TypeAlias = Callable[[str, int, int], None]  # part, how much of it is done, of how much


class RecountLimitError(CalibrantError):
    """The limit of time was reached; the message names what had been recounted of what."""


@dataclass
class _Watch:
    seconds: float
    listen: Listener
    started: float = field(default_factory=time.monotonic)


_watch: ContextVar[_Watch | None] = ContextVar("recount", default=None)


@contextmanager
def limited_recount(seconds: float, listen: Listener = lambda part, done, total: None) -> Iterator[None]:
    """Stop checks inside after so many seconds, at their next checkpoint, by `RecountLimitError`."""
    token = _watch.set(_Watch(seconds, listen))
    try:
        yield
    finally:
        _watch.reset(token)


def checkpoint(part: str, done: int, total: int) -> None:
    """Report where a check stands; `RecountLimitError` once the time is over."""
    watch = _watch.get()
    if watch is None:
        return
    if time.monotonic() - watch.started > watch.seconds:
        raise RecountLimitError(f"in {watch.seconds:g} seconds (--budget): {part} (step {done} of {total})")
    watch.listen(part, done, total)
