"""Clocks of studies: seconds while a program runs, stored on disk so that the next program continues from them."""

from __future__ import annotations

import threading
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from math import inf
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from calibrant.dsl.atomic_write import write_privately
from calibrant.dsl.errors import CalibrantError
from calibrant.dsl.parse_limits import TooLargeError, decode_json, read_bounded


class StudyTime:
    """Seconds of a participant's study; time in which no program runs does not count.

    limit: seconds after which the study ends, 0 for none; before: seconds counted by earlier programs
    clock: returns the seconds of a monotonic clock
    """

    def __init__(self, limit: float, before: float, clock: Callable[[], float], *, has_begun: bool) -> None:
        self.limit = limit
        self._before = before
        self._clock = clock
        self._since = clock() if has_begun else None

    def start(self) -> None:
        """Start counting, unless the participant has begun."""
        if self._since is None:
            self._since = self._clock()

    @property
    def seconds(self) -> float:
        """Seconds until now; 0 before the participant begins."""
        return 0.0 if self._since is None else self._before + self._clock() - self._since

    @property
    def balance(self) -> float:
        """Seconds until the study ends, negative after its end; infinite without a limit."""
        return self.limit - self.seconds if self.limit else inf

    @property
    def overtime(self) -> float:
        """Seconds since the study ended by its limit; 0 before."""
        return max(0.0, -self.balance)


# --- Seconds since the last event, stored regularly so that the next program continues after a kill -------------------
CLOCK_FILE = "clock.json"
STORE_SECONDS = 1.0  # between two stores; a kill loses at most so much


class Elapsed(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Seconds of one participant since their last event."""

    pool_digest: Annotated[str, Meta(description="of the item; empty of a page, and where nothing is open")]
    instance: Annotated[str, Meta(description="the item, or the page; empty where nothing is open")]
    number: Annotated[int, Meta(description="events of the item or the page by then")]
    seconds: Annotated[float, Meta(ge=0, description="since the last of them, or since the page was shown")]
    study_seconds: Annotated[float, Meta(ge=0, description="of the study; 0 where it has no limit")] = 0.0


def read_elapsed(folder: Path) -> dict[str, Elapsed]:
    """Return participant -> seconds stored by the program before; `CalibrantError` for another file of the name."""
    file = folder / CLOCK_FILE
    if not file.is_file():
        return {}
    try:
        return decode_json(read_bounded(file), dict[str, Elapsed])
    except (msgspec.DecodeError, UnicodeDecodeError, TooLargeError) as error:
        raise CalibrantError(
            f"{file}: no times of a server: {error}; delete it, times since the last events are lost"
        ) from None


def write_elapsed(folder: Path, elapsed: Mapping[str, Elapsed]) -> None:
    """Store the seconds of all participants, replacing the file."""
    write_privately(folder / CLOCK_FILE, msgspec.json.encode(elapsed).decode())


@contextmanager
def ticking(tick: Callable[[], None]) -> Iterator[None]:
    """Call a function every STORE_SECONDS in a thread, and once at the end."""
    is_over = threading.Event()

    def run() -> None:
        is_waiting = True
        while is_waiting:
            is_waiting = not is_over.wait(STORE_SECONDS)
            try:
                tick()
            except Exception:  # a bug, or a full disk: the next call may succeed
                traceback.print_exc()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()
