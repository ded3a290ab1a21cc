"""BoolNet (R) on the same fully observed series: best-fit functions of every gene, all solutions.

R is run as a program; nothing of BoolNet is part of this project. Debian has it as `r-cran-boolnet`.
"""

from __future__ import annotations

import random
import shutil
import subprocess
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from calibrant.dsl.errors import CalibrantError, MissingExtraError
from calibrant.dsl.logic.series import Series, SeriesTask
from calibrant.solvers.logic.series import count_functions
from calibrant.solvers.outcome import Found

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
