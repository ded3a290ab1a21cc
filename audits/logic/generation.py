"""Items sampled by seed: a random prior network, a gold model, noisy values and labels.

The gold model is uniform among those of a random size. Item i of a seed depends on the plan, the seed and i alone.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from calibrant.dsl.logic import reference
from calibrant.dsl.logic.files.midas import candidate_experiments
from calibrant.dsl.logic.item import (
    Edge,
    Experiment,
    LogicError,
    LogicItem,
    Model,
    Options,
    Sealed,
    Setup,
    Task,
    Tolerance,
    reachable,
    successors,
)
from calibrant.solvers.logic.elimination.lattice import LatticeLimitError
from calibrant.solvers.logic.family import LogicFamily, solve_class, solve_family
from calibrant.solvers.logic.search import Limits
from calibrant.solvers.outcome import Found

MAX_ATTEMPTS = 1_000  # draws for one item
DRAW_LIMITS = Limits(200_000, 200_000)  # draws beyond are rejected, so that an item is solved in seconds
INHIBITION = 0.3  # share of edges with sign -1, as in published priors

Search = Callable[[Task], Model]  # its result is compared with the optimum for the label `greedy_optimal`


@dataclass(frozen=True, slots=True)
class LogicPlan:
    """The distribution that items are sampled from.

    nodes: number of nodes besides stimuli, spread over `layers`; in_degree: most edges from earlier layers into a node
    loops: number of edges that close a cycle; inhibitors: number of nodes that experiments may inhibit, one at a time
    noise: standard deviation of values, 0 for exact ones; missing: share of values that are not measured
    questions: number of held-out experiments, or as many as remain after `experiments`
    fit, size: tolerances of misfit and size
    """

    nodes: int = 10
    layers: int = 3
    in_degree: int = 3
    stimuli: int = 3
    readouts: int = 4
    inhibitors: int = 2
    experiments: int = 8
    questions: int = 8
    noise: float = 0.1
    missing: float = 0.0
    loops: int = 0
    fit: str = "0.1"
    size: int | None = 2

    def __post_init__(self) -> None:
        wrong = {
            "nodes: 2 to 60": not 2 <= self.nodes <= 60,
            "layers: 1 to nodes": not 1 <= self.layers <= self.nodes,
            "in_degree: 1 to 5": not 1 <= self.in_degree <= 5,
            "stimuli: 1 to 12": not 1 <= self.stimuli <= 12,
            "readouts: 1 to nodes": not 1 <= self.readouts <= self.nodes,
            "inhibitors: 0 to nodes": not 0 <= self.inhibitors <= self.nodes,
            "experiments: 1 to 500": not 1 <= self.experiments <= 500,
            "questions: 0 to 500": not 0 <= self.questions <= 500,
            "noise: 0 to 1": not 0 <= self.noise <= 1,
            "missing: 0 to 0.9": not 0 <= self.missing <= 0.9,
            "loops: 0 to 30": not 0 <= self.loops <= 30,
        }
        for allowed, is_wrong in wrong.items():
            if is_wrong:
                raise LogicError(f"plan: {allowed}")


def generate_items(
    plan: LogicPlan, seed: int, count: int, search: Search | None = None, first: int = 0
) -> Iterator[LogicItem]:
    """Yield items `first` to `first + count - 1` of a seed; with `search` they have the label `greedy_optimal`."""
    for index in range(first, first + count):
        yield generate_item(plan, seed, index, search)


def generate_item(plan: LogicPlan, seed: int, index: int, search: Search | None = None) -> LogicItem:
    """Return one item; `LogicError` if no draw meets the plan."""
    rng = random.Random(f"{seed} {index}")
    for _ in range(MAX_ATTEMPTS):
        item = _attempt_item(plan, rng, f"logic-{seed}-{index}", search)
        if item is not None:
            return item
    raise LogicError(f"no item in {MAX_ATTEMPTS} draws: allow more nodes or stimuli, fewer readouts, less noise")


def _attempt_item(plan: LogicPlan, rng: random.Random, name: str, search: Search | None) -> LogicItem | None:
    prior, setup = _draw_prior(plan, rng)
    task = Task(prior, setup, (), (), Options(), Tolerance(plan.fit, plan.size))
    outcome = solve_class(task, DRAW_LIMITS)
    if not isinstance(outcome, Found):
        return None
    gold = _draw_gold(outcome.value, task, rng)
    if gold is None:
        return None
    clampings = candidate_experiments(setup, max_stimuli=len(setup.stimuli), max_inhibitors=1)
    rng.shuffle(clampings)
    experiments, unused = clampings[: plan.experiments], clampings[plan.experiments :]
    task = replace(
        task,
        experiments=tuple(experiments),
        values=_draw_values(plan, gold, setup, experiments, rng),
        questions=tuple(unused[: plan.questions]),
    )
    family = solve_family(task, DRAW_LIMITS)
    if not isinstance(family, Found) or not family.value.fits(gold):
        return None
    answers = tuple(reference.predict(gold, setup, question) for question in task.questions)
    labels = _labels(family.value, task, search)
    return None if labels is None else LogicItem(name, task, Sealed(gold, answers, family.value.optimum), labels)


def _draw_prior(plan: LogicPlan, rng: random.Random) -> tuple[tuple[Edge, ...], Setup]:
    stimuli = [f"s{i + 1}" for i in range(plan.stimuli)]
    nodes = [f"n{i + 1}" for i in range(plan.nodes)]
    layer_of = {v: 1 + i * plan.layers // plan.nodes for i, v in enumerate(nodes)} | dict.fromkeys(stimuli, 0)
    edges: set[Edge] = set()
    for node in nodes:
        nearest = [v for v in layer_of if layer_of[v] == layer_of[node] - 1]
        earlier = [v for v in layer_of if layer_of[v] < layer_of[node]]
        sources = {rng.choice(nearest), *(rng.choice(earlier) for _ in range(rng.randrange(plan.in_degree)))}
        edges.update(Edge(source, _sign(rng), node) for source in sorted(sources))
    for _ in range(plan.loops):
        early = rng.choice(nodes)
        later = sorted(reachable([early], successors(edges)) - {early})
        if later:
            edges.add(Edge(rng.choice(later), _sign(rng), early))
    readouts = sorted(rng.sample(nodes, plan.readouts), key=nodes.index)
    inhibitors = sorted(rng.sample(nodes, plan.inhibitors), key=nodes.index)
    return tuple(sorted(edges)), Setup(tuple(stimuli), tuple(inhibitors), tuple(readouts))


def _sign(rng: random.Random) -> int:
    return -1 if rng.random() < INHIBITION else 1


def _draw_gold(models: LogicFamily, task: Task, rng: random.Random) -> Model | None:
    """Sample a model of a random size in which every readout has both values; None after 20 draws without one."""
    sizes = sorted(size for _, size in models.spectrum)
    clampings = candidate_experiments(task.setup, max_stimuli=len(task.setup.stimuli), max_inhibitors=1)
    draws = np.random.default_rng(rng.getrandbits(64))
    for _ in range(20):
        gold = models.draw_sized(rng.choice(sizes), draws, 1)[0]
        tables = [reference.predict(gold, task.setup, x) for x in clampings]
        if all(len({text[r] for text in tables}) == 2 for r in range(len(task.setup.readouts))):
            return gold
    return None


def _draw_values(
    plan: LogicPlan, gold: Model, setup: Setup, experiments: list[Experiment], rng: random.Random
) -> tuple[tuple[float | None, ...], ...]:
    rows = []
    for experiment in experiments:
        row: list[float | None] = []
        for answer in reference.predict(gold, setup, experiment):
            value = float(answer)
            if plan.noise:
                value = round(min(1.0, max(0.0, value + rng.gauss(0, plan.noise))), 3)
            row.append(None if rng.random() < plan.missing else value)
        rows.append(tuple(row))
    return tuple(rows)


def _labels(family: LogicFamily, task: Task, search: Search | None) -> dict[str, str] | None:
    """Return the labels of difficulty; None if the members give too many different answers."""
    try:
        predictions = family.predict(task.questions)
    except LatticeLimitError:
        return None
    is_decided = [share in (0, 1) for k in range(len(task.questions)) for share in predictions.shares(k)]
    assert family.lattice is not None
    labels = {
        "members": str(family.count),
        "behaviours": "unknown" if predictions.behaviours is None else str(predictions.behaviours),
        "decided_cells": f"{sum(is_decided)}/{len(is_decided)}",
        "decided": "yes" if all(is_decided) else "no",
        "states": str(family.num_states),
        "largest_component": str(max((len(stage.unit) for stage in family.lattice.stages), default=0)),
    }
    if search is not None:
        labels["greedy_optimal"] = "yes" if reference.misfit(search(task), task) == family.optimum[0] else "no"
    return labels


# --- Suites of items of logic models by name, the easiest first -------------------------------------------------------
SUITES: Mapping[str, LogicPlan] = {
    "exact": LogicPlan(nodes=6, readouts=3, noise=0.0, fit="0", size=0),
    "noisy": LogicPlan(),
    "missing": LogicPlan(missing=0.2, experiments=10),
    "loops": LogicPlan(loops=2),
    "large": LogicPlan(nodes=16, layers=4, readouts=6, experiments=12),
}
