"""HiGHS (extra `large`): silent programs in one thread, independent of other uses of HiGHS in the process."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from calibrant.dsl.errors import CalibrantError, MissingExtraError

if TYPE_CHECKING:
    from highspy import Highs


def require_highs() -> None:
    """Raise `MissingExtraError` without HiGHS."""
    if not find_spec("highspy"):
        raise MissingExtraError("highspy is missing; run: pip install 'calibrant[large]'")


def empty_program(**options: str | float | int) -> Highs:
    """Create a program without columns and rows; `options` by their names in HiGHS."""
    import highspy

    program = highspy.Highs()
    # one thread: a pool is already spread over processes (bench.runs.executors); `options` may ask for more
    for name, chosen in {"output_flag": False, "threads": 1, **options}.items():
        program.setOptionValue(name, chosen)
    return program


def run(program: Highs) -> bool:
    """Solve a program; return whether it reached an optimum. `CalibrantError` if HiGHS refuses it."""
    import highspy

    # HiGHS has one scheduler for the process: if another program set it up with more threads, this run is refused
    if program.run() == highspy.HighsStatus.kError:
        highspy.Highs.resetGlobalScheduler(True)
        if program.run() == highspy.HighsStatus.kError:
            raise CalibrantError(f"HiGHS refuses a program: {program.modelStatusToString(program.getModelStatus())}")
    return bool(program.getModelStatus() == highspy.HighsModelStatus.kOptimal)
