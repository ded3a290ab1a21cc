"""The published data sets of logic models with what is known of their families, and how the table is measured.

The data come from the user's own installation of caspo 4.0.3 (GPL); nothing of it is part of this project. Numbers of
members are those that caspo lists, where it lists them in minutes.
"""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from calibrant.dsl.errors import MissingExtraError
from calibrant.dsl.logic.files.midas import read_midas
from calibrant.dsl.logic.files.setup import candidate_experiments, read_setup
from calibrant.dsl.logic.files.sif import read_sif
from calibrant.dsl.logic.task import Experiment, Options, Task, Tolerance
from calibrant.solvers.logic.family import LogicFamily, solve_family
from calibrant.solvers.outcome import Found


@dataclass(frozen=True, slots=True)
class Case:
    """A row of the table.

    clauses: possible and always; edges: possible, always, and those of the class
    seconds: processor time on one core of a plain implementation of the specification
    """

    data: str
    time: int
    fit: str
    size: int | None
    optimum: tuple[int, int]
    at_optimum: int
    members: int
    clauses: tuple[int, int]
    edges: tuple[int, int, int]
    seconds: float
    caspo_lists: bool = True


TOY, LIVER_TOY = ("Toy", 10), ("LiverToy", 10)
DREAM, EXTENDED = ("LiverDREAM", 30), ("ExtLiver", 30)
DREAM_OPTIMUM, EXTENDED_OPTIMUM = (65_291, 15), (427_905, 28)
CASES = (
    Case(*TOY, "0.1", 5, (8_800, 7), 1, 5, (8, 5), (9, 7, 10), 0.0),
    Case(*LIVER_TOY, "0.1", 5, (44_977, 7), 1, 5, (10, 7), (11, 7, 15), 0.0),
    Case(*DREAM, "0", 0, DREAM_OPTIMUM, 8, 8, (18, 12), (18, 12, 32), 0.10),
    Case(*DREAM, "0.1", 5, DREAM_OPTIMUM, 8, 3_670, (43, 8), (31, 12, 32), 0.10),
    Case(*DREAM, "0.1", None, DREAM_OPTIMUM, 8, 525_312, (43, 8), (31, 12, 32), 0.09, caspo_lists=False),
    Case(*DREAM, "0.5", 10, DREAM_OPTIMUM, 8, 731_767, (53, 5), (31, 10, 32), 0.19, caspo_lists=False),
    Case(*EXTENDED, "0", 0, EXTENDED_OPTIMUM, 16, 16, (32, 24), (32, 24, 53), 0.27),
    Case(*EXTENDED, "0.02", 4, EXTENDED_OPTIMUM, 16, 33_898, (67, 16), (48, 22, 53), 0.30),
    Case(*EXTENDED, "0.02", None, EXTENDED_OPTIMUM, 16, 171_744_768, (68, 16), (48, 22, 53), 0.24, caspo_lists=False),
    Case(*EXTENDED, "0.1", 10, EXTENDED_OPTIMUM, 16, 51_814_539, (73, 14), (50, 18, 53), 0.53, caspo_lists=False),
)
HEADINGS = (
    "data, time",
    "fit, size",
    "m*, z*, at optimum",
    "members",
    "clauses possible/always",
    "edges possible/always/of",
    "caspo s",
    "ours s",
    "known s",
    "agrees",
)
MODELS = {
    "Toy": 1_524,
    "LiverToy": 1_452,
    "LiverDREAM": 5_181_685_710_804,
    "ExtLiver": 3_291_387_457_422_925_179_424,
}


def data_folder() -> Path:
    """Return the data folder of the installed caspo; `MissingExtraError` if there is none."""
    caspo_spec = importlib.util.find_spec("caspo")
    if caspo_spec is None or not caspo_spec.submodule_search_locations:
        raise MissingExtraError("caspo is missing; run: pip install caspo==4.0.3 (GPL; its data files are read)")
    return Path(next(iter(caspo_spec.submodule_search_locations))) / "data"


def case_task(case: Case, options: Options = Options()) -> Task:  # noqa: B008  # frozen
    """Return the task of a row."""
    folder = data_folder() / case.data
    prior = read_sif(folder / "pkn.sif")
    data = read_midas(folder / "dataset.csv", case.time, prior, "none")
    return Task(prior, data.setup, data.experiments, data.values, options, Tolerance(case.fit, case.size))


def case_candidates(case: Case) -> list[Experiment]:
    """Return the candidates of a data set's own setup: two stimuli at most, one inhibitor."""
    return candidate_experiments(read_setup(data_folder() / case.data / "setup.json"))


@dataclass(frozen=True)
class Measurement:
    """Numbers of a row, with the processor time to the count of members and to the marginals."""

    case: Case
    family: LogicFamily
    seconds: float
    marginal_seconds: float

    @cached_property
    def numbers(self) -> tuple[object, ...]:
        """Numbers in the order of the case's fields."""
        family = self.family
        edges = family.edges().values()
        return (
            family.optimum,
            family.spectrum[family.optimum],
            family.count,
            (len(family.clauses()), len(family.always())),
            (len(edges), sum(number == family.count for number in edges), len(family.task.edges)),
        )

    @property
    def agrees(self) -> bool:
        """Whether every number is the known one."""
        case = self.case
        return self.numbers == (case.optimum, case.at_optimum, case.members, case.clauses, case.edges)


def measure(case: Case) -> Measurement:
    """Return a row, measured; `AssertionError` if the budget runs out."""
    task = case_task(case)
    started = time.process_time()
    outcome = solve_family(task)
    assert isinstance(outcome, Found)
    family = outcome.value
    assert family.count > 0
    counted = time.process_time()
    family.clauses()
    return Measurement(case, family, counted - started, time.process_time() - counted)


def rows(measurements: Iterator[tuple[Measurement, float | None]]) -> Iterator[str]:
    """Yield the table as Markdown; beside each measurement the seconds of caspo, None where it was not run."""
    yield f"| {' | '.join(HEADINGS)} |"
    yield "|---" * len(HEADINGS) + "|"
    for entry, rival in measurements:
        case, family = entry.case, entry.family
        _, at_optimum, members, clauses, edges = entry.numbers
        cells = [
            f"{case.data}, {case.time}",
            f"{case.fit}, {'none' if case.size is None else f'+{case.size}'}",
            f"{family.optimum[0]:,}, {family.optimum[1]}, {at_optimum}",
            f"{members:,}",
            "/".join(map(str, clauses)),  # type: ignore[call-overload]
            "/".join(map(str, edges)),  # type: ignore[call-overload]
            "" if rival is None else f"{rival:.2f}",
            f"{entry.seconds:.2f}",
            f"{case.seconds:.2f}",
            "yes" if entry.agrees else "NO",
        ]
        yield f"| {' | '.join(cells)} |"
