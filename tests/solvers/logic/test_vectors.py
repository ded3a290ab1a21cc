"""Every field of the shared vectors of families: numbers that were obtained by listing every model."""

from __future__ import annotations

import pytest

from calibrant.dsl.logic.item import model_size
from calibrant.dsl.logic.reference import misfit
from calibrant.solvers.logic.family import LogicFamily, solve_class, solve_family
from calibrant.solvers.outcome import Found
from tests.support.logic.vectors import Vector, experiment_of, model_of, task_of, vectors_of


def _family(vector: Vector) -> LogicFamily:
    outcome = solve_family(task_of(vector))
    assert isinstance(outcome, Found)
    return outcome.value


def test_numbers_of_models() -> None:
    for vector in vectors_of("family"):
        expected, family = vector["expected"], _family(vector)
        total = solve_class(family.task)
        assert isinstance(total, Found)
        assert total.value.count == expected["total"], vector["id"]
        assert [*family.optimum, family.spectrum[family.optimum]] == expected["optimum"]
        assert [family.misfit_limit, family.size_limit] == expected["limit"]
        assert family.count == expected["count"]
        assert [[*point, number] for point, number in family.spectrum.items()] == expected["spectrum"]


def test_clauses_edges_and_pairs() -> None:
    for vector in vectors_of("family"):
        expected, family = vector["expected"], _family(vector)
        assert {str(clause): number for clause, number in family.clauses().items()} == expected["clauses"], vector["id"]
        assert {str(edge): number for edge, number in family.edges().items()} == expected["edges"]
        exclusive, inclusive = family.pairs()
        assert [[str(clause) for clause in pair] for pair in exclusive] == expected["exclusive"]
        assert [[str(clause) for clause in pair] for pair in inclusive] == expected["inclusive"]


def test_predictions_and_the_next_experiment() -> None:
    for vector in vectors_of("family"):
        expected, family = vector["expected"], _family(vector)
        best = family.best_next([experiment_of(record) for record in vector["candidates"]])
        assert best is not None
        assert list(best.predictions.outcomes) == expected["outcomes"], vector["id"]
        assert best.predictions.behaviours == expected["behaviours"]
        assert {"candidate": best.number, "squares": best.squares} == expected["next"]


def test_models_of_a_list() -> None:
    for vector in vectors_of("family"):
        family = _family(vector)
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
    family = _family(vector)
    members = list(family.models())
    points = [(misfit(model, family.task), model_size(model)) for model in members]
    assert points == sorted(points)
    assert len(set(members)) == len(members) == vector["expected"]["count"]
    assert all(map(family.fits, members))
