"""Synchronous series: every field of the shared vectors, and the readings of clamped genes."""

from __future__ import annotations

import shutil

import pytest

from calibrant.bench.lab.logic import compare_series
from calibrant.dsl.errors import PoolError
from calibrant.dsl.logic.item import Edge, LogicError
from calibrant.dsl.logic.series import Series, SeriesTask, count_errors, parse_series, readings
from calibrant.solvers.logic.series import count_functions, solve_series
from calibrant.solvers.outcome import Found, OutOfBudget
from tests.support.logic.problems import series_text
from tests.support.logic.vectors import Vector, vectors_of


def _task(vector: Vector) -> SeriesTask:
    return SeriesTask(
        tuple(vector["genes"]),
        tuple(Edge(*edge) for edge in vector["pkn"]),
        tuple(Series(tuple(map(tuple, entry["states"])), entry["clamped"]) for entry in vector["series"]),
        vector["max_clause"],
        vector["extra_errors"],
    )


def test_formulas_of_the_vectors() -> None:
    for vector in vectors_of("series"):
        expected, outcome = vector["expected"], solve_series(_task(vector))
        assert isinstance(outcome, Found)
        family = outcome.value
        for gene in family.genes:
            assert list(gene.optimum) == expected["genes"][gene.gene]["optimum"], vector["id"]
            assert [list(pair) for pair in gene.errors.items()] == expected["genes"][gene.gene]["errors"]
        assert (family.least_errors, family.limit) == (expected["least_errors"], expected["limit"])
        assert str(family.count) == expected["count"]
        assert {str(edge): str(number) for edge, number in family.edges.items()} == expected["edges"]
        assert sum(count_errors(family.witness, family.task, g) for g in family.task.genes) == family.least_errors


def test_functions_of_the_vectors() -> None:
    for vector in vectors_of("series"):
        outcome = count_functions(_task(vector), vector["max_parents"])
        assert isinstance(outcome, Found)
        functions = {
            gene.gene: {
                "errors": gene.errors,
                "functions": {"+".join(parents): number for parents, number in gene.functions.items()},
            }
            for gene in outcome.value
        }
        assert functions == vector["expected"]["functions"], vector["id"]


def test_a_series_gives_no_reading_of_what_it_clamps() -> None:
    states = ((0, 1), (1, 1), (0, 1))
    task = SeriesTask(("a", "b"), (), (Series(states, {"b": 1}),))
    assert list(readings(task, "b")) == []
    assert [after for _, after in readings(task, "a")] == [1, 0]


@pytest.mark.parametrize(
    ("series", "problem"),
    [
        (Series(((0, 2),)), "a state has a 0 or 1"),
        (Series(((0,),)), "for each of 2 genes"),
        (Series(((0, 0),), {"b": 1}), "'b' is clamped to 1 and has another value"),
        (Series(((0, 0),), {"c": 1}), "'c' is no gene"),
    ],
)
def test_series_that_are_refused(series: Series, problem: str) -> None:
    with pytest.raises(LogicError, match=problem):
        SeriesTask(("a", "b"), (), (series,))


def test_too_many_formulas() -> None:
    genes = tuple(f"g{i}" for i in range(7))
    prior = tuple(Edge(gene, 1, "g0") for gene in genes)
    outcome = solve_series(SeriesTask(genes, prior, ()))
    assert isinstance(outcome, OutOfBudget)
    assert outcome.reached == "over 1,000,000 formulas of gene g0: try a smaller --max-clause"
    assert isinstance(solve_series(SeriesTask(genes, prior, (), max_clause=1)), Found)


def test_a_file_of_series() -> None:
    text = "a,series,b\n0,x,1\n1,x,1\n0,y,0\n"
    genes, series = parse_series(text)
    assert (genes, [entry.states for entry in series]) == (("a", "b"), [((0, 1), (1, 1)), ((0, 0),)])
    assert parse_series(series_text(genes, series)) == (genes, series)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "empty"),
        ("a,b\n0,1\n", "no column 'series'"),
        ("a,a,series\n0,1,1\n", "occurs twice"),
        ("a,series\n0.5,1\n", "line 2: column 'a': '0.5'; a value is 0 or 1"),
        ("a,series\n", "no row"),
        ("series\n1\n", "no column of a gene"),
        ("a,series\n1\n", "1 fields; the header has 2"),
    ],
)
def test_a_file_that_is_refused(text: str, problem: str) -> None:
    with pytest.raises(PoolError, match=problem):
        parse_series(text, "s.csv")


@pytest.mark.skipif(shutil.which("Rscript") is None, reason="no R on this machine; Debian has r-cran-boolnet")
def test_functions_are_those_of_boolnet() -> None:
    comparison = compare_series(10, 3)
    assert comparison.functions > 100
    assert comparison.differences == ()
