"""Logic models for tests: shared vectors as tasks, and small random problems."""

from __future__ import annotations

import csv
import io
import random
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import islice
from typing import Any

from calibrant.dsl.logic.item import (
    ROUNDINGS,
    Edge,
    Experiment,
    Model,
    Options,
    Setup,
    Task,
    Tolerance,
    edges_by_target,
    is_cyclic,
    parse_clause,
)
from calibrant.dsl.logic.reference import clauses_into, formulas_over
from calibrant.dsl.logic.series import SERIES_COLUMN, Series
from calibrant.solvers.logic.family import LogicFamily, solve_family
from calibrant.solvers.outcome import Found
from tests.support.shared import matching, shared_records

# --- The shared vectors of logic models as tasks, and small random problems -------------------------------------------
Vector = dict[str, Any]


@cache
def read_vectors() -> tuple[Vector, ...]:
    return tuple(shared_records("vectors_logic_dev.jsonl", part="frontier"))


def vectors_of(kind: str) -> Iterator[Vector]:
    return matching(read_vectors(), kind=kind)


def experiment_of(record: Mapping[str, Any]) -> Experiment:
    return Experiment(frozenset(record["stimuli"]), frozenset(record["inhibited"]))


def task_of(vector: Vector) -> Task:
    return Task(
        tuple(Edge(*edge) for edge in vector["pkn"]),
        Setup(*(tuple(vector[role]) for role in ("stimuli", "inhibitors", "readouts"))),
        tuple(map(experiment_of, vector["experiments"])),
        tuple(map(tuple, vector["values"])),
        Options(vector["factor"], vector["rounding"], vector["compress"], vector["max_clause"]),
        Tolerance(vector["fit"], vector["size"]),
    )


def family_of(task: Task) -> LogicFamily:
    outcome = solve_family(task)
    assert isinstance(outcome, Found)
    return outcome.value


def model_of(texts: list[str]) -> Model:
    return frozenset(map(parse_clause, texts))


# --- Small random problems of logic models, for comparison with listing every model -----------------------------------
MAX_COMBINATIONS = 4_000  # of formulas over all nodes: what listing takes at most


def random_task(rng: random.Random, *, cyclic: bool) -> Task:
    """Return a random task: hidden nodes, both signs, inhibited readouts, missing values, every rounding.

    cyclic: edges are drawn in any direction, else from earlier to later nodes
    """
    while True:
        task = _draw(rng, cyclic=cyclic)
        combinations = 1
        for edges in edges_by_target(task.edges).values():
            # six sources have 7,828,353 formulas, and more cannot be listed: counting ends where the task is too large
            formulas = islice(formulas_over(clauses_into(edges, task.options.max_clause)), MAX_COMBINATIONS + 1)
            combinations *= sum(1 for _ in formulas)
            if combinations > MAX_COMBINATIONS:
                break
        if combinations <= MAX_COMBINATIONS and (not cyclic or is_cyclic(task.edges) or rng.random() < 0.1):
            return task


def _draw(rng: random.Random, *, cyclic: bool) -> Task:
    stimuli = [f"s{i}" for i in range(rng.randint(1, 3))]
    nodes = [f"n{i}" for i in range(rng.randint(2, 6))]
    rng.shuffle(nodes)
    edges = set()
    for _ in range(rng.randint(3, 13)):
        target = rng.randrange(len(nodes))
        sources = stimuli + (nodes if cyclic else nodes[:target])
        edges.add(Edge(rng.choice(sources), rng.choice((1, 1, -1)), nodes[target]))
    if rng.random() < 0.1:
        edges.add(Edge(rng.choice(nodes), 1, rng.choice(stimuli)))
    readouts = rng.sample(nodes, rng.randint(1, min(3, len(nodes))))
    if rng.random() < 0.1:
        readouts.append(rng.choice([*stimuli, "absent"]))
    inhibitors = rng.sample(nodes, rng.randint(0, 2))
    experiments = tuple(
        Experiment(
            frozenset(name for name in stimuli if rng.random() < 0.5),
            frozenset(name for name in inhibitors if rng.random() < 0.4),
        )
        for _ in range(rng.randint(1, 6))
    )
    digits = rng.choice((1, 2, 3))
    values = tuple(
        tuple(None if rng.random() < 0.15 else round(rng.random() * 1.1, digits) for _ in readouts) for _ in experiments
    )
    options = Options(rng.choice((1, 10, 100)), rng.choice(ROUNDINGS), rng.random() < 0.6, rng.choice((0, 0, 1, 2)))
    tolerance = Tolerance(rng.choice(("0", "0.1", "0.5", "1.5", "any")), rng.choice((0, 1, 3, None)))
    edge_list = sorted(edges)
    rng.shuffle(edge_list)
    setup = Setup(tuple(stimuli), tuple(inhibitors), tuple(readouts))
    return Task(tuple(edge_list), setup, experiments, values, options, tolerance)


def random_tasks(seed: int, number: int) -> Iterator[Task]:
    """Yield so many random tasks, every second drawn with cycles."""
    for i in range(number):
        yield random_task(random.Random(f"{seed} {i}"), cyclic=i % 2 == 1)


def series_text(genes: Sequence[str], series: Sequence[Series]) -> str:
    """Return series as CSV."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow([SERIES_COLUMN, *genes])
    for number, entry in enumerate(series, 1):
        writer.writerows([number, *state] for state in entry.states)
    return buffer.getvalue()
