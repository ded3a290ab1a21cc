"""The published data sets, and caspo on random priors; both need the user's installation of caspo."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

import pytest

from calibrant.dsl.logic.item import (
    Edge,
    Experiment,
    Options,
    Setup,
    Task,
    Tolerance,
    class_edges,
    is_cyclic,
    kept_names,
)
from calibrant.solvers.logic.family import solve_class
from calibrant.solvers.outcome import Found
from tests.support.benchmarks.logic import family_of
from tests.support.effort import effort
from tests.support.packages import needs

needs("caspo", "clingo")

from calibrant.bench.lab.logic import CASES, MODELS, Case, case_candidates, case_task, measure, run_caspo  # noqa: E402

DREAM = next(case for case in CASES if (case.data, case.fit, case.size) == ("LiverDREAM", "0.1", 5))
EXTENDED = next(case for case in CASES if (case.data, case.fit, case.size) == ("ExtLiver", "0.02", 4))


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.data} {case.fit} {case.size}")
def test_families_of_published_data(case: Case) -> None:
    measurement = measure(case)
    assert measurement.agrees, measurement.numbers


def test_all_models_of_published_data() -> None:
    for case in {case.data: case for case in CASES}.values():
        outcome = solve_class(case_task(case))
        assert isinstance(outcome, Found)
        assert outcome.value.count == MODELS[case.data]


@pytest.mark.parametrize(
    ("case", "pairs", "candidates", "experiment", "squares", "behaviours"),
    [
        (DREAM, (5, 1), 55, "tgfa + tnfa, p38 inhibited", 7_444_212, 11),
        (EXTENDED, (7, 1), 232, "IGF1 + IL1a, mTOR inhibited", 417_765_372, 68),
    ],
    ids=["LiverDREAM", "ExtLiver"],
)
def test_pairs_and_the_next_experiment(
    case: Case, pairs: tuple[int, int], candidates: int, experiment: str, squares: int, behaviours: int
) -> None:
    family = family_of(case_task(case))
    exclusive, inclusive = family.pairs()
    assert (len(exclusive), len(inclusive)) == pairs
    experiments = case_candidates(case)
    assert len(experiments) == candidates
    best = family.best_next(experiments)
    assert best is not None
    assert (best.experiment.text(family.task.setup), best.squares) == (experiment, squares)
    assert best.predictions.behaviours == behaviours
    assert [best.predictions.sum_of_squared_counts(i) for i in range(candidates)].count(squares) == 1


def test_spectra_of_published_data() -> None:
    family = family_of(case_task(DREAM))
    assert family.spectrum == dict(
        zip([(65_291, z) for z in range(15, 21)], (8, 36, 134, 396, 970, 2_126), strict=True)
    )
    family = family_of(case_task(EXTENDED))
    assert sum(number for (_, size), number in family.spectrum.items() if size == 27) == 16


def test_without_compression() -> None:
    expected = [("LiverToy", "0.1", 5, (44_977, 14), 3), ("LiverDREAM", "0.02", 2, (65_291, 30), 78)]
    for data, fit, size, optimum, members in expected:
        case = replace(next(case for case in CASES if case.data == data), fit=fit, size=size)
        family = family_of(case_task(case, Options(compress=False)))
        assert (family.optimum, family.count) == (optimum, members)


def _comparable_task(rng: random.Random, *, cyclic: bool) -> Task:
    """Return a task on which caspo is meant to agree: the next tests have the differences on purpose."""
    while True:
        stimuli = [f"s{i}" for i in range(rng.randint(1, 3))]
        nodes = [f"n{i}" for i in range(rng.randint(3, 6))]
        edges = set()
        for _ in range(rng.randint(4, 12)):
            target = rng.randrange(len(nodes))
            edges.add(
                Edge(rng.choice(stimuli + (nodes if cyclic else nodes[:target])), rng.choice((1, -1)), nodes[target])
            )
        inhibitors, readouts = rng.sample(nodes, rng.randint(0, 1)), rng.sample(nodes, 2)
        setup = Setup(tuple(stimuli), tuple(inhibitors), tuple(readouts))
        experiments = tuple(
            Experiment(
                frozenset(s for s in stimuli if rng.random() < 0.5),
                frozenset(i for i in inhibitors if rng.random() < 0.4),
            )
            for _ in range(rng.randint(2, 5))
        )
        values = tuple(tuple(round(rng.random(), 3) for _ in readouts) for _ in experiments)
        task = Task(tuple(sorted(edges)), setup, experiments, values, Options(), Tolerance("0.1", 2))
        # both signs between two nodes after merging: caspo lists such networks repeatedly
        pairs = {(edge.source, edge.target) for edge in task.edges}
        if 0 < len(task.edges) == len(pairs) <= 10 and is_cyclic(task.edges) == cyclic:
            names = {name for edge in task.edges for name in (edge.source, edge.target)}
            if set(readouts) <= names and set(stimuli) <= names:
                return task


@pytest.mark.soak
def test_caspo_lists_the_same_families() -> None:
    """Ten random priors, half of them cyclic; a soak has 200."""
    for number in range(effort(10, 200)):
        task = _comparable_task(random.Random(f"caspo {number}"), cyclic=number % 2 == 1)
        result, family = run_caspo(task), family_of(task)
        merged = class_edges(task.prior, task.setup.stimuli, kept_names(task.setup), compress=True)
        assert {edge for edge in result.edges if edge.source != edge.target} == set(merged), number
        assert (result.size, len(result.models)) == (family.optimum[1], family.count), number
        assert Counter(clause for entry in result.models for clause in entry.model) == family.clauses()


def _small(edges: list[str], readouts: tuple[str, ...], values: list[float | None], stimuli: str = "s") -> Task:
    prior = tuple(Edge(u, int(sign), v) for u, sign, v in map(str.split, edges))
    experiments = (Experiment(), Experiment(frozenset("s")))
    rows = tuple((value,) * len(readouts) for value in values)
    return Task(prior, Setup(tuple(stimuli), (), readouts), experiments, rows, Options(), Tolerance("0", 5))


def test_an_edge_into_a_stimulus_doubles_the_networks_of_caspo() -> None:
    task = _small(["b -1 r", "s 1 b"], ("r",), [0.8, 0.8], stimuli="sb")
    assert family_of(task).count == 1
    assert len(run_caspo(task).models) == 2  # with and without a formula of b, which is clamped and has no effect


def test_merged_nodes_with_both_signs_are_listed_once() -> None:
    task = _small(["s 1 n", "s -1 n", "n 1 r", "n -1 r"], ("r",), [0.2, 0.8])
    assert list(map(str, task.edges)) == ["s -1 r", "s 1 r"]
    models = list(family_of(task).models())
    assert len(models) == len(set(models))
    listed = [entry.model for entry in run_caspo(task).models]
    assert set(listed) == set(models)
    assert len(listed) > len(models)


def test_no_value_at_all_gives_every_model_the_misfit_0() -> None:
    task = _small(["s 1 r"], ("r",), [None, None])
    assert family_of(task).spectrum == {(0, 0): 1, (0, 1): 1}
    with pytest.raises(Exception):  # noqa: B017, PT011  # caspo fails in a library of its own
        run_caspo(task)
