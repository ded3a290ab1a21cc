"""Time of studies: seconds while a program of one runs, and what an ended program had counted since the last event."""

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
    """Seconds of a participant's study while a program of it runs.

    limit: seconds after which the study ends; 0 for none; before: seconds of earlier programs
    clock: seconds on a clock that does not go back
    """

    def __init__(self, limit: float, before: float, clock: Callable[[], float], *, has_begun: bool) -> None:
        self.limit = limit
        self._before = before
        self._clock = clock
        self._since = clock() if has_begun else None

    def start(self) -> None:
        """Count from now on, unless the participant began before."""
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


# --- Seconds that stand in no event yet: a program stores them, so that the next one goes on where a killed one was ---
CLOCK_FILE = "clock.json"
STORE_SECONDS = 1.0  # between two times at which a program stores them: what a kill may lose


class Elapsed(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Seconds of one participant since their last event."""

    pool_digest: Annotated[str, Meta(description="of the item; empty of a page, and where nothing is open")]
    instance: Annotated[str, Meta(description="the item, or the page; empty where nothing is open")]
    number: Annotated[int, Meta(description="events of the item or the page by then")]
    seconds: Annotated[float, Meta(ge=0, description="since the last of them, or since the page was shown")]
    study_seconds: Annotated[float, Meta(ge=0, description="of the study; 0 where it has no limit")] = 0.0


def read_elapsed(folder: Path) -> dict[str, Elapsed]:
    """Return what the program before had counted, by participant; `CalibrantError` for another file of the name."""
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
    """Store them in the place of those before."""
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
            except Exception:  # a fault of the program, or a full disk: the next may succeed
                traceback.print_exc()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()
