"""caspo on the same data: prior and experiments in, the list of networks out."""

from __future__ import annotations

import csv
import tempfile
import time
import warnings
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from calibrant.dsl.logic.files.networks import ListedModel, read_networks
from calibrant.dsl.logic.prior import Edge
from calibrant.dsl.logic.task import Task


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
