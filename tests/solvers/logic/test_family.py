"""Families of logic models: shared vectors, listing by brute force, and properties."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pytest

from calibrant.audits.claims import verify
from calibrant.audits.logic.items import count_certificate
from calibrant.audits.logic.verify import VERIFIERS, evidence_of
from calibrant.dsl.errors import CalibrantError, PoolError
from calibrant.dsl.logic import reference
from calibrant.dsl.logic.files.midas import candidate_experiments
from calibrant.dsl.logic.files.networks import ListedModel
from calibrant.dsl.logic.item import (
    Clause,
    Edge,
    Experiment,
    LogicError,
    Model,
    Options,
    Setup,
    Task,
    Tolerance,
    model_size,
    parse_clause,
)
from calibrant.dsl.logic.prompt import task_notes
from calibrant.dsl.logic.reference import misfit
from calibrant.solvers.logic.data import logic_family
from calibrant.solvers.logic.family import solve_class, solve_family
from calibrant.solvers.logic.search import Limits
from calibrant.solvers.outcome import BestSoFar, Found, OutOfBudget
from tests.support.benchmarks.logic import experiment_of, family_of, model_of, random_tasks, task_of, vectors_of
from tests.support.effort import effort

# --- Every field of the shared vectors of families: numbers that were obtained by listing every model -----------------


def test_numbers_of_models() -> None:
    for vector in vectors_of("family"):
        expected, family = vector["expected"], family_of(task_of(vector))
        total = solve_class(family.task)
        assert isinstance(total, Found)
        assert total.value.count == expected["total"], vector["id"]
        assert [*family.optimum, family.spectrum[family.optimum]] == expected["optimum"]
        assert [family.misfit_limit, family.size_limit] == expected["limit"]
        assert family.count == expected["count"]
        assert [[*point, number] for point, number in family.spectrum.items()] == expected["spectrum"]


def test_clauses_edges_and_pairs() -> None:
    for vector in vectors_of("family"):
        expected, family = vector["expected"], family_of(task_of(vector))
        assert {str(clause): number for clause, number in family.clauses().items()} == expected["clauses"], vector["id"]
        assert {str(edge): number for edge, number in family.edges().items()} == expected["edges"]
        exclusive, inclusive = family.pairs()
        assert [[str(clause) for clause in pair] for pair in exclusive] == expected["exclusive"]
        assert [[str(clause) for clause in pair] for pair in inclusive] == expected["inclusive"]


def test_predictions_and_the_next_experiment() -> None:
    for vector in vectors_of("family"):
        expected, family = vector["expected"], family_of(task_of(vector))
        best = family.best_next([experiment_of(record) for record in vector["candidates"]])
        assert best is not None
        assert list(best.predictions.outcomes) == expected["outcomes"], vector["id"]
        assert best.predictions.behaviours == expected["behaviours"]
        assert {"candidate": best.number, "squares": best.squares} == expected["next"]


def test_models_of_a_list() -> None:
    for vector in vectors_of("family"):
        family = family_of(task_of(vector))
        ensemble = vector["expected"]["ensemble"]
        comparison = family.compare([model_of(entry["model"]) for entry in ensemble])
        breaks = {model.number: model.rule for model in comparison.outside_class}
        assert breaks == {i: entry["breaks"] for i, entry in enumerate(ensemble) if entry["breaks"]}, vector["id"]
        outside = {model.number: (model.misfit, model.size) for model in comparison.outside_limits}
        assert outside == {
            i: (entry["misfit"], entry["size"])
            for i, entry in enumerate(ensemble)
            if not entry["breaks"] and not entry["member"]
        }
        members = {frozenset(entry["model"]) for entry in ensemble if entry.get("member")}
        assert comparison.num_members == len(members)


@pytest.mark.parametrize("number", [0, 15, 51, 85])
def test_members_are_listed_in_order(number: int) -> None:

    vector = list(vectors_of("family"))[number]
    family = family_of(task_of(vector))
    members = list(family.models())
    points = [(misfit(model, family.task), model_size(model)) for model in members]
    assert points == sorted(points)
    assert len(set(members)) == len(members) == vector["expected"]["count"]
    assert all(map(family.fits, members))


# --- Random small problems, half of them drawn with cycles, against listing every model with the reference ------------
Pair: TypeAlias = tuple[Clause, Clause]


def compare_with_listing(task: Task, rng: random.Random) -> None:
    """Compare every number of a family with the listing of its class."""
    total = solve_class(task)
    assert isinstance(total, Found)
    assert total.value.count == sum(1 for _ in reference.all_models(task))
    family, members = family_of(task), reference.family(task)
    models = [model for _, _, model in members]
    assert Counter((misfit, size) for misfit, size, _ in members) == family.spectrum
    assert family.count == len(members)
    assert set(family.models()) == set(models)
    assert Counter(clause for model in models for clause in model) == family.clauses()
    edges = Counter(edge for model in models for edge in {edge for clause in model for edge in clause.edges})
    assert edges == family.edges()
    _compare_pairs(family.pairs(), models)
    candidates = candidate_experiments(task.setup)
    predictions = family.predict(candidates)
    tables = Counter(tuple(reference.predict(model, task.setup, x) for x in candidates) for model in models)
    assert tables == predictions.tables
    _compare_parts(task, models, rng)


def _compare_pairs(pairs: tuple[list[Pair], list[Pair]], models: list[Model]) -> None:
    always = frozenset.intersection(*models)
    candidates = sorted(frozenset.union(*models) - always, key=str)
    exclusive, inclusive = [], []
    for first, second in combinations(candidates, 2):
        together = {(first in model) == (second in model) for model in models}
        exclusive += [(first, second)] if together == {False} else []
        inclusive += [(first, second)] if together == {True} else []
    assert pairs == (exclusive, inclusive)


def _compare_parts(task: Task, models: list[Model], rng: random.Random) -> None:
    family = family_of(task)
    clauses = sorted({clause for model in models for clause in model})
    if clauses:
        chosen, present = rng.choice(clauses), rng.random() < 0.5
        having = [model for model in models if (chosen in model) == present]
        part = family.condition(chosen, present=present)
        assert (part.count, part.clauses()) == (len(having), Counter(c for model in having for c in model))
        assert set(part.models()) == set(having)
    experiment = rng.choice(candidate_experiments(task.setup))
    reading = reference.predict(rng.choice(models), task.setup, experiment)
    after = family.after(experiment, reading)
    remaining = [model for model in models if reference.predict(model, task.setup, experiment) == reading]
    assert set(after.models()) == set(remaining)
    assert after.outcomes(experiment) == {reading: len(remaining)}
    assert all(model in remaining for model in after.draw(np.random.default_rng(0), 3))


@pytest.mark.soak
@pytest.mark.parametrize("part", range(4))
def test_families_are_those_of_the_listing(part: int) -> None:
    """32 problems: acyclic and cyclic, with every option of the class; a soak has 1,500 and more of other seeds."""
    number = effort(8, 400)
    for i, task in enumerate(random_tasks(part, number)):
        compare_with_listing(task, random.Random(i))


# --- Properties of families: what must not change a number, what may only fall, uniform draws, budgets ----------------


def test_draws_are_members_and_uniform() -> None:
    """Chi-square with 33 degrees of freedom: 63.9 is exceeded once in a thousand; the seed is fixed."""
    vector = next(iter(vectors_of("family")))
    family = family_of(task_of(vector))
    assert family.count == 34
    draws = Counter(family.draw(np.random.default_rng(5), 3_400))
    assert set(draws) == set(family.models())
    assert sum((number - 100) ** 2 / 100 for number in draws.values()) < 63.9
    assert family.draw(np.random.default_rng(7), 5) == family.draw(np.random.default_rng(7), 5)


def test_draws_of_one_size() -> None:
    task = task_of(next(iter(vectors_of("family"))))
    outcome = solve_class(task)
    assert isinstance(outcome, Found)
    models = {model for model in reference.all_models(task) if model_size(model) == 3}
    assert set(outcome.value.draw_sized(3, np.random.default_rng(1), 400)) == models
    with pytest.raises(ValueError, match="no member of size 99"):
        outcome.value.draw_sized(99, np.random.default_rng(1), 1)


def test_verdicts_are_tables_of_the_questions() -> None:
    for task in random_tasks(26, 10):
        family = family_of(replace(task, questions=tuple(candidate_experiments(task.setup)[:3])))
        tables = Counter(
            tuple(reference.predict(m, task.setup, x) for x in family.task.questions) for m in family.models()
        )
        assert family.verdicts() == tables


def _wide_task(sources: int, max_clause: int = 0) -> Task:
    names = tuple(f"s{i}" for i in range(sources))
    prior = tuple(Edge(name, 1, "r") for name in names)
    return Task(prior, Setup(names, (), ("r",)), (Experiment(),), ((0.3,),), Options(max_clause=max_clause))


def test_too_many_formulas_are_refused_at_once() -> None:
    outcome = solve_family(_wide_task(7))
    assert isinstance(outcome, OutOfBudget)
    assert outcome.reached == "over 1,000,000 formulas of node r with 7 sources: try a smaller --max-clause"
    assert isinstance(solve_class(_wide_task(3_000, max_clause=1)), OutOfBudget)
    counted = solve_class(_wide_task(6, max_clause=2))
    assert isinstance(counted, Found)
    assert counted.value.count == 40_069


@pytest.mark.parametrize(("sources", "formulas"), [(1, 2), (2, 5), (3, 19), (4, 167), (5, 7_580)])
def test_numbers_of_formulas(sources: int, formulas: int) -> None:
    counted = solve_class(_wide_task(sources))
    assert isinstance(counted, Found)
    assert counted.value.count == formulas


def test_too_many_states_name_node_and_frontier() -> None:
    task = task_of(next(v for v in vectors_of("family") if v["expected"]["total"] > 500 and not v["compress"]))
    task = replace(task, tolerance=Tolerance("any", None))
    outcome = solve_family(task, Limits(states=4))
    assert isinstance(outcome, OutOfBudget)
    assert outcome.reached.startswith("over 4 states at node ")
    assert "frontier " in outcome.reached
    assert outcome.reached.endswith("try --max-clause 2 or a smaller --fit")
    assert isinstance(outcome, BestSoFar)
    assert outcome.lower_bound is not None
    best = min(cost for cost, _, _ in reference.family(task))
    assert outcome.lower_bound <= best <= outcome.upper_bound == reference.misfit(outcome.incumbent, task)


def test_conditions_of_one_clause_partition_the_members() -> None:
    for task in random_tasks(27, 8):
        family = family_of(task)
        for clause, number in family.clauses().items():
            assert family.condition(clause).count == number
            assert family.condition(str(clause), present=False).count == family.count - number
        with pytest.raises(LogicError, match="no clause of the class"):
            family.condition("x<-y")


def test_a_list_that_claims_too_much() -> None:
    task = Task(
        (Edge("a", 1, "r"), Edge("b", 1, "r")),
        Setup(("a", "b"), (), ("r",)),
        (Experiment(frozenset("ab")),),
        ((1.0,),),
        Options(),
        Tolerance("0", 0),
    )
    family = family_of(task)  # r<-a or r<-b
    part = family.compare([ListedModel(frozenset([parse_clause("r<-a")]), 3, mse=0.5, size=2)])
    assert (part.num_listed, part.num_members, str(part.share)) == (1, 1, "1/2")
    claims = [
        (str(claim.part), claim.claimed, claim.count, sorted(map(str, claim.witness))) for claim in part.overclaims
    ]
    assert claims == [
        ("r<-a", "always", 1, ["r<-b"]),
        ("r<-b", "never", 1, ["r<-b"]),
        ("a 1 r", "always", 1, ["r<-b"]),
        ("b 1 r", "never", 1, ["r<-b"]),
    ]
    assert [(entry.field, entry.stated, entry.actual) for entry in part.misstatements] == [
        ("size", 2, 1),
        ("mse", 0.5, 0.0),
    ]
    assert (str(part.max_difference), str(part.max_difference_clause)) == ("1/2", "r<-a")
    whole = family.compare(list(family.models()))
    assert whole.share == 1
    assert not whole.overclaims
    assert whole.max_difference == 0
    strange = family.compare([frozenset([parse_clause("r<-c")])])
    assert [str(edge) for edge in strange.unknown_edges] == ["c 1 r"]


def test_no_value_at_all() -> None:
    task = Task(
        (Edge("a", 1, "r"),), Setup(("a",), (), ("r",)), (Experiment(),), ((None,),), Options(), Tolerance("0", 5)
    )
    assert family_of(task).spectrum == {(0, 0): 1, (0, 1): 1}


def test_notes() -> None:
    task = Task(
        (
            Edge("r", 1, "a"),
            Edge("r", 1, "r"),
            Edge("a", 1, "r"),
            Edge("x", 1, "q"),
            Edge("y", 1, "x"),
            Edge("z", 1, "x"),
        ),
        Setup(("a", "b"), (), ("r", "q", "absent", "a")),
        (Experiment(),),
        ((1.5, None, -0.5, 0.0),),
        Options(compress=False),
    )
    assert task_notes(task) == [
        "edges into stimuli, dropped: r 1 a",
        "self-edges, dropped: r 1 r",
        "stimuli that the prior lacks: b",
        "readouts that the prior lacks, predicted 0: absent",
        "readouts that no stimulus reaches, of constant misfit: q",
        "readouts that are stimuli, predicted by their clamp: a",
        "values outside [0, 1]: -0.5, 1.5",
    ]


def test_a_family_straight_from_files(tmp_path: Path) -> None:
    pkn, midas = tmp_path / "p.sif", tmp_path / "d.csv"
    pkn.write_text("a 1 n\nn 1 r\nb -1 r\n")
    midas.write_text("TR:C:CellLine,TR:a,TR:b,DA:r,DV:r\n1,1,0,30,0.9\n1,1,1,30,0.1\n1,0,0,30,0.2\n1,0,0,0,0\n")
    outcome = logic_family(pkn, midas, time=30, fit="0.1", size=1)
    assert isinstance(outcome, Found)
    family = outcome.value
    assert (family.optimum, family.count) == ((100 + 100 + 400, 2), 1)
    assert list(map(str, family.witness)) == ["r<-a+!b"]
    assert repr(family).startswith("<LogicFamily: acyclic logic models over 2 merged edges")
    with pytest.raises(PoolError, match=r"d.csv: no time 5; there are: 0, 30"):
        logic_family(pkn, midas, time=5)
    with pytest.raises(CalibrantError, match=r"size 1.5; an integer of 0 or more, or none"):
        logic_family(pkn, midas, time=30, size=1.5)  # type: ignore[arg-type]
    with pytest.raises(CalibrantError, match=r"fit '-1'; a decimal of 0 or more"):
        logic_family(pkn, midas, time=30, fit=-1)
    several = [
        logic_family(pkn, midas, time=times, fit=fit, size=1) for times, fit in (("0,30", "0.1"), ([0, 30], 0.1))
    ]
    assert [each.value.task.values for each in several if isinstance(each, Found)] == [
        ((0.9,), (0.1,), (0.2,), (0.0,))
    ] * 2


@pytest.mark.parametrize("fit", ["0.5", "any"])
def test_values_of_any_magnitude(fit: str) -> None:
    """Misfits beyond the largest double; the solver and a count of its own agree with the listing."""
    for index, task in enumerate(random_tasks(31, 4)):
        rng = random.Random(index)
        values = tuple(tuple(rng.choice((None, -1e60, 1e200, 1.5e302)) for _ in row) for row in task.values)
        large = replace(task, values=values, tolerance=Tolerance(fit, 2))
        family = family_of(large)
        members = reference.family(large)
        assert family.spectrum == Counter((misfit, size) for misfit, size, _ in members)
        verdict = verify(count_certificate(family), evidence_of(large), VERIFIERS)
        assert verdict.reason == ""
