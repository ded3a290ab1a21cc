"""Families straight from files: a prior network as SIF and perturbation data as MIDAS."""

from __future__ import annotations

from pathlib import Path

from calibrant.dsl.errors import CalibrantError, PoolError
from calibrant.dsl.logic.files.midas import Dataset, Normalisation, read_midas
from calibrant.dsl.logic.files.networks import read_sif
from calibrant.dsl.logic.item import Options, Task, Tolerance, node_names
from calibrant.dsl.logic.prompt import MAX_LISTED_NAMES
from calibrant.solvers.logic.family import LogicFamily, solve_family
from calibrant.solvers.logic.search import USUAL_LIMITS, Limits
from calibrant.solvers.outcome import Found, OutOfBudget

USUAL_OPTIONS = Options()


def read_data(
    pkn: Path | str,
    midas: Path | str,
    time: float | str | None = None,
    *,
    fit: str = "0",
    size: int | None = 0,
    options: Options = USUAL_OPTIONS,
    normalise: Normalisation | None = None,
) -> tuple[Task, Dataset]:
    """Return the task of two files, and the data that it has; `PoolError` names what is refused and where.

    time: of the measurements, None if there is one only; fit: a decimal text; size: None for no limit
    normalise: how readings become values in [0, 1], see `read_midas`
    """
    prior = read_sif(Path(pkn))
    data = read_midas(Path(midas), time, prior, normalise)
    try:
        task = Task(prior, data.setup, data.experiments, data.values, options, Tolerance(fit, size))
    except PoolError:
        raise
    except CalibrantError as error:
        raise PoolError(str(error), file=Path(midas).name) from None
    _require_match(task, Path(pkn).name, Path(midas).name)
    return task, data


def _require_match(task: Task, prior_file: str, data_file: str) -> None:
    """`PoolError` for a prior without an edge of the class, or without a stimulus or readout of the data."""
    names = node_names(task.prior)
    for role, role_names in (("stimulus", task.setup.stimuli), ("readout", task.setup.readouts)):
        if not names & set(role_names):
            examples = ", ".join(role_names[:MAX_LISTED_NAMES]) or "none"
            problem = (
                f"no {role} of {data_file} is a node of the prior ({examples}); names must be equal, case included"
            )
            raise PoolError(problem, file=prior_file)
    if not task.edges:
        problem = f"no edge is left between stimuli and readouts of {data_file}: every model is empty"
        raise PoolError(problem, file=prior_file)


def logic_family(
    pkn: Path | str,
    midas: Path | str,
    time: float | str | None = None,
    fit: str = "0",
    size: int | None = 0,
    *,
    options: Options = USUAL_OPTIONS,
    limits: Limits = USUAL_LIMITS,
    normalise: Normalisation | None = None,
) -> Found[LogicFamily] | OutOfBudget:
    """Return the family of two files, counted exactly; see `read_data` and `LogicFamily`."""
    task, _ = read_data(pkn, midas, time, fit=fit, size=size, options=options, normalise=normalise)
    return solve_family(task, limits)
