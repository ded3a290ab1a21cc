"""The reason for logic models: its numbers and its pair are verified from the evidence by the reference alone."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import pytest

from calibrant.audits.logic.why import LogicWhy, explain
from calibrant.bench.logic.why import EXPLANATIONS
from calibrant.dsl.errors import CalibrantError
from calibrant.dsl.logic import reference
from calibrant.dsl.logic.files.midas import candidate_experiments
from calibrant.dsl.logic.item import (
    Clause,
    Edge,
    Experiment,
    LogicItem,
    Options,
    Setup,
    Task,
    Tolerance,
    fit_limit,
    model_size,
    parse_clause,
)
from calibrant.solvers.logic.elimination.lattice import LatticeLimitError
from calibrant.solvers.logic.family import LogicFamily
from tests.support.accessibility import measure, needs_axe

# d and e are read; a cycle d - e, both signs, and one value that no model gives
EDGES = (Edge("a", 1, "d"), Edge("b", -1, "d"), Edge("e", 1, "d"), Edge("b", 1, "e"), Edge("d", 1, "e"))
SETUP = Setup(("a", "b"), ("d",), ("d", "e"))
MEASURED = (Experiment(frozenset("a")), Experiment(frozenset("b")), Experiment(frozenset("ab"), frozenset("d")))
VALUES: tuple[tuple[float | None, ...], ...] = ((0.9, 0.2), (0.1, 0.8), (0.0, None))


def _task() -> Task:
    return Task(EDGES, SETUP, MEASURED, VALUES, Options(), Tolerance("2", 3))


def _members(task: Task) -> list[frozenset[Clause]]:
    """Return the family by listing every set of clauses; for a class of a few clauses."""
    literals = {"d": ["a", "!b", "e"], "e": ["b", "d"]}
    clauses = [
        parse_clause(f"{target}<-{'+'.join(chosen)}")
        for target, of in literals.items()
        for size in range(1, len(of) + 1)
        for chosen in combinations(of, size)
    ]
    models = [frozenset(m) for size in range(6) for m in combinations(clauses, size)]
    models = [model for model in models if not reference.broken_rule(model, task)]
    optimum = min((reference.misfit(model, task), model_size(model)) for model in models)
    limit = fit_limit(optimum[0], task.tolerance.fit)
    assert limit is not None
    assert task.tolerance.size is not None
    size = optimum[1] + task.tolerance.size
    return [m for m in models if reference.misfit(m, task) <= limit and model_size(m) <= size]


@pytest.fixture(scope="module")
def why() -> LogicWhy:
    return explain(LogicItem("cells", _task()))


def test_counts_and_shares_are_those_of_a_listing(why: LogicWhy) -> None:
    task = _task()
    members = _members(task)
    assert int(why.count.lower) == len(members) > 1
    for edge in why.edges:
        using = sum(any(Edge(edge.source, edge.sign, edge.target) in c.edges for c in m) for m in members)
        assert int(edge.members) == using
    assert {c.text: int(c.members) for c in why.clauses} == {
        str(clause): sum(clause in m for m in members) for clause in frozenset.union(*members)
    }
    assert sum(int(point.members) for point in why.spectrum) == len(members)


def test_models_that_differ_on_a_question_alone_are_not_called_alike() -> None:
    """Every other experiment was measured or is asked for: a question is the witness."""
    task = _task()
    questions = tuple(c for c in candidate_experiments(task.setup) if c not in {*task.experiments})
    why = explain(LogicItem("asked", replace(task, questions=questions)))
    assert why.pair is not None
    clamps = Experiment(frozenset(why.pair.stimuli), frozenset(why.pair.inhibited))
    answers = {reference.predict(m, task.setup, clamps) for m in _members(task)}
    assert clamps in questions
    assert len(answers) > 1


def test_the_pair_fits_and_disagrees_where_it_says(why: LogicWhy) -> None:
    task = _task()
    members = _members(task)
    assert why.pair is not None
    clamps = Experiment(frozenset(why.pair.stimuli), frozenset(why.pair.inhibited))
    assert clamps not in task.experiments  # it was never measured
    for texts, answers in (
        (why.pair.first, why.pair.first_answers),
        (why.pair.second, why.pair.second_answers),
    ):
        model = frozenset(map(parse_clause, texts))
        assert model in members
        assert reference.predict(model, task.setup, clamps) == answers
    assert why.pair.first_answers != why.pair.second_answers
    assert clamps.text(task.setup) in why.reason_text


def test_candidates_have_the_answers_of_a_listing(why: LogicWhy) -> None:
    task = _task()
    members = _members(task)
    by_words = {
        Experiment(frozenset(on), frozenset(off)).text(task.setup): Experiment(frozenset(on), frozenset(off))
        for on in ("", "a", "b", "ab")
        for off in ("", "d")
    }
    shares = []
    for candidate in why.candidates:
        answers = [reference.predict(model, task.setup, by_words[candidate.in_words]) for model in members]
        assert {text: int(number) for text, number in candidate.readings} == {t: answers.count(t) for t in set(answers)}
        assert candidate.share == sum(answers.count(t) ** 2 for t in set(answers)) / len(members) ** 2
        shares.append(candidate.share)
    assert shares == sorted(shares)
    assert len(shares) == 8 - len(MEASURED)


def _readouts(number: int, measured: tuple[Experiment, ...]) -> Task:
    """Return a task of one stimulus and so many readouts, each of them with a value between both answers."""
    names = tuple(f"r{k}" for k in range(number))
    values = tuple((0.0 if not x.on else 0.5,) * number for x in measured)
    return Task(
        tuple(Edge("s", 1, name) for name in names),
        Setup(("s",), (), names),
        measured,
        values,
        Options(),
        Tolerance("0", number),
    )


def test_answers_that_were_not_compared_are_not_called_alike() -> None:
    """17 readouts that a stimulus activates or not give 2**17 answers, too many to list."""
    why = explain(LogicItem("wide", _readouts(17, (Experiment(),))))
    assert int(why.count.lower) == 2**17
    assert "Their answers were not compared: over " in why.reason_text
    assert "alike" not in why.reason_text
    assert not why.candidates


def test_experiments_that_were_all_measured_are_not_compared() -> None:
    """A stimulus is there or not, and both were measured; models differ on the latter, which was read as 0.5."""
    task = _readouts(1, (Experiment(), Experiment(frozenset("s"))))
    members = [frozenset[Clause](), frozenset({parse_clause("r0<-s")})]
    assert len({reference.predict(m, task.setup, Experiment(frozenset("s"))) for m in members}) == 2
    why = explain(LogicItem("measured", task))
    assert int(why.count.lower) == len(members)
    assert "were not compared: every experiment at hand was measured" in why.reason_text


def test_the_number_of_experiments_compared_is_stated() -> None:
    """Models differ on the measured experiment alone; of inhibited r0 both are 0."""
    task = _readouts(1, (Experiment(), Experiment(frozenset("s"))))
    task = replace(task, setup=replace(task.setup, inhibitors=("r0",)))
    why = explain(LogicItem("inhibited", task))
    assert "They answer alike in the 2 experiments that were compared." in why.reason_text


def test_an_experiment_without_a_pair_is_said_to_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where two members that differ are too many states to find, the experiment is still named."""

    def raise_limit(*_: object) -> None:
        raise LatticeLimitError("over 1 state")

    monkeypatch.setattr(LogicFamily, "after", raise_limit)
    why = explain(LogicItem("cells", _readouts(2, (Experiment(),))))
    assert why.pair is None
    assert "s was never measured: there they give 4 different answers" in why.reason_text


def test_nothing_sealed_is_told_and_too_many_models_are_said(why: LogicWhy) -> None:
    assert not why.sealed
    assert why.to_dict()["count"]["lower"] == why.count.lower
    wide = Task(
        tuple(Edge(f"s{k}", 1, "r") for k in range(6)),
        Setup(tuple(f"s{k}" for k in range(6)), (), ("r",)),
        (Experiment(),),
        ((1.0,),),
        Options(),
        Tolerance("any", None),
    )
    with pytest.raises(CalibrantError, match="are not counted"):
        explain(LogicItem("wide", wide))


@needs_axe
def test_the_page_is_accessible_in_both_themes(why: LogicWhy, tmp_path_factory: pytest.TempPathFactory) -> None:
    from calibrant.bench.pages.why import why_page

    page = why_page(why, EXPLANATIONS.body(why, "why"), "cells")
    for theme in ("light", "dark"):
        measured = measure(page, tmp_path_factory.mktemp(theme), theme=theme)
        assert not measured.violations
