"""HiGHS (extra `large`): programs that print nothing and run in one thread, whatever else in the process uses HiGHS."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING

from calibrant.dsl.errors import CalibrantError, require_extra

if TYPE_CHECKING:
    from highspy import Highs


def has_highs() -> bool:
    """Return whether HiGHS is installed."""
    return find_spec("highspy") is not None


def require_highs() -> None:
    """Raise `MissingExtraError` without HiGHS."""
    require_extra("large", "highspy")


def empty_program(**options: str | float | int) -> Highs:
    """Create a program without columns and rows; `options` have their names in HiGHS."""
    import highspy

    with _stdout_discarded():
        program = highspy.Highs()
    # one thread: pools already run in several processes (bench.runs.executors); `options` may ask for more
    for name, chosen in {"output_flag": False, "threads": 1, **options}.items():
        program.setOptionValue(name, chosen)
    return program


@contextmanager
def _stdout_discarded() -> Iterator[None]:
    """Discard what C code writes to standard output, as a new HiGHS prints a banner before options can be set."""
    try:
        original = os.dup(1)
    except OSError:  # standard output is closed, so nothing can be written to it
        yield
        return
    try:
        with open(os.devnull, "wb") as discarded:
            os.dup2(discarded.fileno(), 1)
        yield
    finally:
        os.dup2(original, 1)
        os.close(original)


def run(program: Highs) -> bool:
    """Solve a program; return whether it reached an optimum. `CalibrantError` if HiGHS refuses it."""
    import highspy

    # HiGHS has one scheduler in the process: if another program started it with more threads, this run is refused
    if program.run() == highspy.HighsStatus.kError:
        reset = getattr(highspy.Highs, "resetGlobalScheduler", None)
        if reset is not None:  # highspy 1.7 has no reset, so the second run is refused too
            reset(True)
        if program.run() == highspy.HighsStatus.kError:
            raise CalibrantError(f"HiGHS refuses a program: {program.modelStatusToString(program.getModelStatus())}")
    return bool(program.getModelStatus() == highspy.HighsModelStatus.kOptimal)
