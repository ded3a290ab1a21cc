"""The command `python -m calibrant.bench.lab.logic`: the table of published data sets in docs/logic.md.

The data come from the user's own installation of caspo 4.0.3 (GPL); nothing of it is part of this project. Numbers of
members are those that caspo lists, where it lists them in minutes.

R is run as a program; nothing of BoolNet is part of this project. Debian has it as `r-cran-boolnet`.
"""

from __future__ import annotations

import argparse
import csv
import importlib.util
import random
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import import_module
from pathlib import Path
from random import Random
from typing import TypeAlias
from unittest.mock import patch

from calibrant.bench.lab.renamings import RenamedItem, permuted_names, shuffled
from calibrant.dsl.errors import CalibrantError, MissingExtraError
from calibrant.dsl.logic.files.midas import candidate_experiments, read_midas, read_setup
from calibrant.dsl.logic.files.networks import ListedModel, read_networks, read_sif
from calibrant.dsl.logic.item import Edge, Experiment, LogicItem, Options, Sealed, Task, Tolerance, clause, kept_names
from calibrant.dsl.logic.series import Series, SeriesTask
from calibrant.solvers.logic.canonical import rename_task
from calibrant.solvers.logic.elimination import lattice
from calibrant.solvers.logic.elimination.lattice import LatticeBuilder, prune
from calibrant.solvers.logic.family import LogicFamily, solve_family
from calibrant.solvers.logic.network import Columns, Network
from calibrant.solvers.logic.search import Limits, search
from calibrant.solvers.logic.series import count_functions
from calibrant.solvers.outcome import Found

# --- The published data sets of logic models with what is known of their families, and how the table is measured ------


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
        """Return the family's numbers, in the order of the case's fields."""
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
        """Return whether every number is the known one."""
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


# --- BoolNet (R) on the same fully observed series: best-fit functions of every gene, all solutions -------------------
GENES = ("a", "b", "c", "d", "e")
# one line for each function: number of the task, gene, its parents joined by +, wrong readings
PROGRAM = """
suppressMessages(library(BoolNet))
for (name in readLines("tasks.txt")) {
  rows <- read.csv(paste0(name, ".csv"), check.names = FALSE)
  series <- lapply(split(rows[, -1], rows[, 1]), function(part) t(as.matrix(part)))
  most <- as.integer(sub(".*-", "", name))
  fitted <- reconstructNetwork(series, method = "bestfit", maxK = most, allSolutions = TRUE, returnPBN = TRUE)
  for (gene in fitted$genes) for (entry in fitted$interactions[[gene]])
    cat(name, gene, paste(sort(fitted$genes[entry$input]), collapse = "+"), entry$error, "\\n", sep = "\\t")
}
"""


@dataclass(frozen=True)
class SeriesComparison:
    """Functions of random series, counted twice.

    seconds: processor time here; rival_seconds: of the clock, with the start of R
    differences: task, gene, functions here, functions in BoolNet
    """

    tasks: int
    functions: int
    seconds: float
    rival_seconds: float
    differences: tuple[tuple[int, str, Counter[str], Counter[str]], ...]


def compare_series(number: int, seed: int) -> SeriesComparison:
    """Return how functions of random series agree; `MissingExtraError` without R and BoolNet."""
    if shutil.which("Rscript") is None:
        raise MissingExtraError("R is missing; install Debian's r-cran-boolnet, or BoolNet in your R")
    rng = random.Random(seed)
    tasks = [_random_task(rng) for _ in range(number)]
    started = time.process_time()
    counts = [_function_counts(task, most) for task, most in tasks]
    seconds = time.process_time() - started
    started = time.perf_counter()
    rival_counts = _rival_counts(tasks)
    rival_seconds = time.perf_counter() - started
    differences = tuple(
        (k, gene, mine, rival_counts[k][gene])
        for k in range(number)
        for gene, mine in counts[k].items()
        if mine != rival_counts[k][gene]
    )
    functions = sum(sum(counts.values()) for by_gene in counts for counts in by_gene.values())
    return SeriesComparison(number, functions, seconds, rival_seconds, differences)


def _random_task(rng: random.Random) -> tuple[SeriesTask, int]:
    genes = GENES[: rng.randint(2, 5)]
    series = tuple(
        Series(tuple(tuple(rng.randint(0, 1) for _ in genes) for _ in range(rng.randint(2, 7))))
        for _ in range(rng.randint(1, 3))
    )
    return SeriesTask(genes, (), series), rng.randint(1, min(3, len(genes)))


def _function_counts(task: SeriesTask, most: int) -> dict[str, Counter[str]]:
    outcome = count_functions(task, most)
    if not isinstance(outcome, Found):
        raise CalibrantError(outcome.reached)
    return {
        entry.gene: Counter({f"{'+'.join(parents)} {entry.errors}": n for parents, n in entry.functions.items()})
        for entry in outcome.value
    }


def _rival_counts(tasks: list[tuple[SeriesTask, int]]) -> list[dict[str, Counter[str]]]:
    counts: list[dict[str, Counter[str]]] = [{gene: Counter() for gene in task.genes} for task, _ in tasks]
    with tempfile.TemporaryDirectory() as folder:
        names = [f"{k}-{most}" for k, (_, most) in enumerate(tasks)]
        for name, (task, _) in zip(names, tasks, strict=True):
            rows = [",".join(map(str, (k, *state))) for k, entry in enumerate(task.series, 1) for state in entry.states]
            text = "\n".join([",".join(("series", *task.genes)), *rows]) + "\n"
            (Path(folder) / f"{name}.csv").write_text(text, encoding="utf-8")
        (Path(folder) / "tasks.txt").write_text("\n".join(names) + "\n", encoding="utf-8")
        line = ["Rscript", "-e", PROGRAM]
        done = subprocess.run(line, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise MissingExtraError(f"BoolNet does not run: {done.stderr.strip().splitlines()[-1:]}")
    for row in done.stdout.splitlines():
        name, gene, parents, errors = row.split("\t")[:4]
        counts[int(name.partition("-")[0])][gene][f"{parents} {errors}"] += 1
    return counts


# --- caspo on the same data: prior and experiments in, the list of networks out ---------------------------------------


@dataclass(frozen=True)
class CaspoResult:
    """Result of caspo.

    edges: after its compression; size: of the optimum; seconds: processor time
    """

    edges: frozenset[Edge]
    size: int
    models: tuple[ListedModel, ...]
    seconds: float


def run_caspo(task: Task) -> CaspoResult:
    """Return what caspo lists for a task with a size limit; its rounding and tolerances are the task's."""
    core, learn = import_module("caspo.core"), import_module("caspo.learn")
    assert task.tolerance.size is not None
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of its libraries, which are newer than it
        path = Path(folder) / "data.csv"
        write_midas(task, path)
        started = time.process_time()
        dataset = core.Dataset(str(path), 0)
        graph = core.Graph.from_tuples((edge.source, edge.target, edge.sign) for edge in sorted(set(task.prior)))
        if task.options.compress:
            graph = graph.compress(dataset.setup)
        options = task.options
        learner = learn.Learner(graph, dataset, options.max_clause, options.rounding, options.factor)
        learner.learn(float(task.tolerance.fit), task.tolerance.size)
        seconds = time.process_time() - started
        edges = frozenset(Edge(u, data["sign"], v) for u, v, data in graph.edges(data=True))
        output = Path(folder) / "networks.csv"
        learner.networks.to_csv(str(output))
        models = read_networks(output)
        return CaspoResult(edges, learner.optimum.size, tuple(models), seconds)


def write_midas(task: Task, path: Path) -> None:
    """Write the experiments of a task as MIDAS, all at time 0."""
    setup = task.setup
    header = ["TR:Cell:CellLine", *(f"TR:{s}" for s in setup.stimuli), *(f"TR:{i}i" for i in setup.inhibitors)]
    header += [f"DA:{r}" for r in setup.readouts] + [f"DV:{r}" for r in setup.readouts]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        for experiment, values in zip(task.experiments, task.values, strict=True):
            clamps = [int(s in experiment.on) for s in setup.stimuli]
            clamps += [int(i in experiment.inhibited) for i in setup.inhibitors]
            measured = ["" if value is None else repr(value) for value in values]
            writer.writerow([1, *clamps, *(0 for _ in setup.readouts), *measured])


# --- The search over many states: its states, transitions and processor time, with arrays and state by state ----------
DataSet: TypeAlias = tuple[str, int]
LARGE: tuple[tuple[DataSet, str, bool], ...] = ((DREAM, "6", False), (EXTENDED, "1", True))  # fit, compressed
MAX_STATES = 4_000_000
NEVER = 1 << 62  # more states than a layer has


def state_lines() -> Iterator[str]:
    """Yield a line for each data set: one pass within the misfit limit and its pruning, both ways in turn."""
    for data, fit, is_compressed in LARGE:
        task = _large_task(data, fit, is_compressed)
        limit = _find_limit(task)
        arrays, num_states, num_transitions = _time_pass(task, limit, lattice.MANY_STATES)
        one_by_one, _, _ = _time_pass(task, limit, NEVER)
        yield (
            f"{data[0]}, fit {fit}{'' if is_compressed else ', without compression'}: {num_states:,} states, "
            f"{num_transitions:,} transitions; {arrays:.2f} s ({1e6 * arrays / num_states:.1f} s a million states), "
            f"state by state {one_by_one:.2f} s, ratio {one_by_one / arrays:.1f}"
        )


def _large_task(data: DataSet, fit: str, is_compressed: bool) -> Task:
    case = next(case for case in CASES if (case.data, case.time) == data)
    return case_task(replace(case, fit=fit, size=None), Options(compress=is_compressed))


def _find_limit(task: Task) -> int:
    """Return the greatest misfit of members, without the constant."""
    outcome = search(task, Limits(MAX_STATES))
    assert isinstance(outcome, Found)
    limit = outcome.value.lattice.limit
    assert limit is not None
    return limit


def _time_pass(task: Task, limit: int, many: int) -> tuple[float, int, int]:
    """Return seconds of processor time, states and transitions; limit: of the misfit, without the constant."""
    network = Network(task)
    columns = Columns(network, task.experiments, task=task)
    with patch.object(lattice, "MANY_STATES", many):
        start = time.process_time()
        builder = LatticeBuilder(network, columns, max_states=MAX_STATES)
        whole = builder.full(limit + columns.constant)
        prune(whole, limit + columns.constant)
        seconds = time.process_time() - start
    return seconds, whole.num_states, sum(len(layer.targets) for layer in whole.layers)


def main() -> int:
    """Print the table; 1 if a number is another one than is known, 2 without the data."""
    parser = argparse.ArgumentParser(prog="python -m calibrant.bench.lab.logic", description=__doc__)
    parser.add_argument(
        "--caspo", action="store_true", help="Run caspo in the same process where it lists all members."
    )
    parser.add_argument(
        "--boolnet",
        type=int,
        metavar="N",
        help="Compare functions of N random series with BoolNet in R, and nothing else.",
    )
    parser.add_argument(
        "--states", action="store_true", help="Time the search on the data sets with most states, and nothing else."
    )
    options = parser.parse_args()
    agreed = []

    def measured() -> Iterator[tuple[Measurement, float | None]]:
        for case in CASES:
            entry = measure(case)
            agreed.append(entry.agrees)
            yield entry, _rival_seconds(case) if options.caspo and case.caspo_lists else None

    try:
        if options.boolnet:
            return _compare_series(options.boolnet)
        if options.states:
            for line in state_lines():
                print(line, flush=True)
            return 0
        for line in rows(measured()):
            print(line, flush=True)
    except CalibrantError as error:
        print(f"bench.lab.logic: {error}", file=sys.stderr)
        return 2
    return 0 if all(agreed) else 1


def _compare_series(number: int) -> int:
    comparison = compare_series(number, 1)
    for k, gene, counts, rival_counts in comparison.differences:
        print(f"series {k}, gene {gene}: {dict(counts)} here, {dict(rival_counts)} in BoolNet")
    print(
        f"{comparison.tasks} tasks, {comparison.functions:,} functions, {len(comparison.differences)} genes differ;"
        f" {comparison.seconds:.2f} s here, {comparison.rival_seconds:.1f} s in R with its start"
    )
    return 1 if comparison.differences else 0


def _rival_seconds(case: Case) -> float:
    """Return the seconds of caspo; `CalibrantError` if it lists another number of members."""
    result = run_caspo(case_task(case))
    if len(result.models) != case.members:
        raise CalibrantError(f"caspo lists {len(result.models)} networks of {case.data}, {case.members} are known")
    return result.seconds


# --- Items of logic models over other names, with experiments and columns in another order ----------------------------


def rename(item: LogicItem, random: Random) -> RenamedItem:
    """Return an item with other names of clamped and measured nodes, experiments and columns in another order.

    Nodes that compression merges keep their names: merging goes by them.
    """
    stable = sorted(kept_names(item.task.setup))
    nodes = {name for edge in item.task.prior for name in (edge.source, edge.target)}
    names = {name: name for name in nodes} | permuted_names(stable, random)
    task = rename_task(item.task, names, shuffled(range(len(item.task.experiments)), random))
    if item.sealed is None:
        return RenamedItem(replace(item, task=task), names)
    old = item.task.setup.readouts
    places = tuple(next(i for i, name in enumerate(old) if names[name] == new) for new in task.setup.readouts)
    gold = frozenset(
        clause(names[part.target], ((names[source], sign) for source, sign in part.literals))
        for part in item.sealed.gold
    )
    answers = tuple("".join(answer[place] for place in places) for answer in item.sealed.answers)
    return RenamedItem(replace(item, task=task, sealed=Sealed(gold, answers, item.sealed.optimum)), names, places)


if __name__ == "__main__":
    sys.exit(main())
