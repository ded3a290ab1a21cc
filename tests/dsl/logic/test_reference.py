"""The reference against the shared vectors and small cases by hand."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import islice

import pytest

from calibrant.dsl.errors import CalibrantError
from calibrant.dsl.logic import reference
from calibrant.dsl.logic.files.midas import candidate_experiments
from calibrant.dsl.logic.item import (
    ClauseError,
    Edge,
    Experiment,
    LogicError,
    Options,
    Setup,
    Task,
    Tolerance,
    class_edges,
    discretise,
    fit_limit,
    is_cyclic,
    merge_nodes,
    parse_clause,
)
from calibrant.dsl.logic.reference import all_models, predict
from tests.support.benchmarks.logic import experiment_of, model_of, random_tasks, task_of, vectors_of
from tests.support.effort import effort

LISTED = 15  # models of a class at most that this file lists; solvers are compared with all vectors


def test_merged_nodes_change_no_prediction() -> None:
    """Models over the uncompressed prior, of random problems: with their merged nodes put in they answer as before."""
    num_merged = num_compared = 0
    for task in random_tasks(11, effort(150, 2_000)):
        compressed = replace(task, options=replace(task.options, compress=True, max_clause=0))
        whole = replace(compressed, options=replace(compressed.options, compress=False))
        if not compressed.merged_nodes or len(whole.edges) > 7:  # listing models over more takes seconds
            continue
        for model in islice(all_models(whole), 0, 200, 10):
            merged = merge_nodes(model, compressed.merged_nodes)
            num_merged += merged != model
            for experiment in candidate_experiments(task.setup):
                answers = predict(model, task.setup, experiment)
                if merged is None:
                    continue
                assert predict(merged, task.setup, experiment) == answers
                num_compared += 1
            if merged is not None:
                assert not compressed.merged_nodes & {n for c in merged for n in (c.target, *c.sources)}
    assert num_merged > 20
    assert num_compared > 500


def test_merged_nodes_by_hand() -> None:
    """Negation of a disjunction, a contradiction that goes, a node without a formula, a constant, and too many."""

    def merge(*texts: str) -> list[str] | None:
        model = merge_nodes(frozenset(map(parse_clause, texts)), {"m", "n"})
        return None if model is None else sorted(map(str, model))

    assert merge("d<-!m", "m<-a", "m<-!b+c") == ["d<-!a+!c", "d<-!a+b"]
    assert merge("d<-m+!a", "m<-a", "m<-n", "n<-b") == ["d<-!a+b"]
    assert merge("d<-m", "d<-e") == ["d<-e"]
    assert merge("d<-!m") is None
    assert merge("n<-a", "d<-b") == ["d<-b"]
    assert merge("d<-a", "d<-a+b") == ["d<-a", "d<-a+b"]  # as it was: no node is merged
    wide = [f"m<-a{k}+b{k}" for k in range(11)]
    with pytest.raises(ClauseError, match="over 1000 clauses of 'd' once merged nodes are put in"):
        merge("d<-!m", *wide)


def test_class_edges_and_rules_of_the_vectors() -> None:
    for vector in vectors_of("family"):
        task, expected = task_of(vector), vector["expected"]
        assert [list(edge) for edge in task.edges] == expected["class_edges"], vector["id"]
        assert is_cyclic(task.edges) == expected["cyclic"]
        for entry in expected["ensemble"]:
            model = model_of(entry["model"])
            assert reference.class_violation(model, task) == entry["breaks"]
            if not entry["breaks"]:
                assert reference.misfit(model, task) == entry["misfit"]


def test_families_of_the_vectors() -> None:
    listed = 0
    for vector in vectors_of("family"):
        task, expected = task_of(vector), vector["expected"]
        if expected["total"] > LISTED:
            continue
        listed += 1
        assert sum(1 for _ in reference.all_models(task)) == expected["total"]
        members = reference.family(task)
        spectrum = Counter((misfit, size) for misfit, size, _ in members)
        assert [[*point, number] for point, number in sorted(spectrum.items())] == expected["spectrum"]
        for record, outcomes in zip(vector["candidates"][:4], expected["outcomes"], strict=False):
            answers = (reference.predict(model, task.setup, experiment_of(record)) for _, _, model in members)
            assert Counter(answers) == outcomes
    assert listed > 30


def _edges(*texts: str) -> list[Edge]:
    return [Edge(source, int(sign), target) for source, sign, target in map(str.split, texts)]


@pytest.mark.parametrize(
    ("edges", "expected"),
    [
        (["s 1 n", "n -1 r"], ["s -1 r"]),
        (["s 1 n", "n -1 r", "n 1 q"], ["s -1 r", "s 1 q"]),
        (["s 1 n", "t 1 n", "n -1 r"], ["s -1 r", "t -1 r"]),
        (["s 1 n", "t 1 n", "n 1 r", "n 1 q"], ["n 1 q", "n 1 r", "s 1 n", "t 1 n"]),
        (["n 1 r"], []),
        (["r 1 n"], []),
        (["r 1 r", "s 1 r"], ["s 1 r"]),
        (["r 1 s", "s 1 r"], ["s 1 r"]),
        (["r 1 n", "n 1 r", "s 1 r"], ["n 1 r", "r 1 n", "s 1 r"]),
        (["s 1 n", "s -1 n", "n 1 r", "n -1 r"], ["s -1 r", "s 1 r"]),
        (["n 1 n", "s 1 n", "n 1 r"], ["n 1 r", "s 1 n"]),
    ],
)
def test_compression(edges: list[str], expected: list[str]) -> None:
    names = {"s", "t", "r", "q"}
    assert list(map(str, class_edges(_edges(*edges), ["s", "t"], names, compress=True))) == sorted(expected)


def test_without_compression_hidden_nodes_stay() -> None:
    assert list(map(str, class_edges(_edges("s 1 n", "n 1 r", "n 1 n"), ["s"], {"r", "s"}, compress=False))) == [
        "n 1 r",
        "s 1 n",
    ]


@pytest.mark.parametrize(
    ("value", "rounding", "expected"),
    [(0.145, "round", 14), (0.125, "round", 12), (0.285, "round", 28), (0.145, "ceil", 15), (0.149, "floor", 14)],
)
def test_discretisation(value: float, rounding: str, expected: int) -> None:
    assert discretise(value, Options(rounding=rounding)) == expected  # type: ignore[arg-type]


def test_the_limit_is_an_exact_fraction() -> None:
    assert fit_limit(10, "0.1") == 11  # in doubles 10 * 1.1 is 11.000000000000002, and 3000 * 1.1 is below 3300
    assert fit_limit(3_000, "0.1") == 3_300
    assert fit_limit(7, "any") is None


@pytest.mark.parametrize("fit", ["-0.1", "1e3", "x", "", "0,1", "1" * 50, "nan"])
def test_a_fit_that_is_no_decimal_is_refused(fit: str) -> None:
    with pytest.raises(LogicError, match="a decimal of 0 or more"):
        _task_with(fit)


def _task_with(fit: str) -> Task:
    return Task(tuple(_edges("s 1 r")), Setup(("s",), (), ("r",)), (), (), tolerance=Tolerance(fit))


def test_a_stimulus_that_is_a_readout_is_predicted_by_its_clamp() -> None:
    setup = Setup(("s",), (), ("s", "r", "absent"))
    assert reference.predict([parse_clause("r<-!s")], setup, Experiment()) == "010"
    assert reference.predict([parse_clause("r<-!s")], setup, Experiment(frozenset("s"))) == "100"
    assert reference.predict([parse_clause("r<-!s")], setup, Experiment(frozenset(), frozenset("r"))) == "000"


@pytest.mark.parametrize("text", ["", "v", "v<-", "<-a", "v<-a+", "v<-a+!a", "v<-a b", "v<-!!a", "v<-a+a"])
def test_a_text_that_is_no_clause_is_refused(text: str) -> None:
    with pytest.raises(CalibrantError):
        parse_clause(text)


def test_a_clause_has_one_text() -> None:
    assert str(parse_clause(" v <- b + !a ")) == "v<-!a+b"


def test_merging_is_bounded() -> None:
    """A chain of 3,000 nodes before a hub of 3,000 targets: the hub goes first, and each node then moves its edges."""
    chain = [Edge(f"m{k + 1:04}", 1, f"m{k:04}") for k in range(3_000)]
    hub = [Edge("m0000", 1, f"r{k}") for k in range(3_000)]
    with pytest.raises(
        CalibrantError, match="merging nodes of the prior makes over 1,000,000 edges; see --no-compress"
    ):
        class_edges([*chain, *hub], [], [f"r{k}" for k in range(3_000)] + ["m3000"], compress=True)
