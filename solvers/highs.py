"""HiGHS (extra `large`): programs in one thread, silent, and run whatever else the process uses it for."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from calibrant.dsl.errors import CalibrantError, MissingExtraError

if TYPE_CHECKING:
    from highspy import Highs


def require_highs() -> None:
    """`MissingExtraError` without HiGHS."""
    if not find_spec("highspy"):
        raise MissingExtraError("highspy is missing; run: pip install 'calibrant[large]'")


def empty_program(**options: str | float | int) -> Highs:
    """options: by their names in HiGHS"""
    import highspy

    program = highspy.Highs()
    for name, chosen in {"output_flag": False, "threads": 1, **options}.items():
        program.setOptionValue(name, chosen)
    return program


def run(program: Highs) -> bool:
    """Return whether it was solved to its end; False if a limit of it was met. `CalibrantError` if HiGHS refuses it."""
    import highspy

    if program.run() == highspy.HighsStatus.kError:  # so, if another program of the process has run in more threads
        highspy.Highs.resetGlobalScheduler(True)
        if program.run() == highspy.HighsStatus.kError:
            raise CalibrantError(f"HiGHS refuses a program: {program.modelStatusToString(program.getModelStatus())}")
    return bool(program.getModelStatus() == highspy.HighsModelStatus.kOptimal)
