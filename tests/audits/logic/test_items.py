"""Logic models audited: generated items, certificates and forgeries, reasons verified by the reference."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import msgspec
import pytest

from calibrant.audits.claims import Certificate, RecountLimitError, evidence_digest, limited_recount, verify
from calibrant.audits.logic.generation import LogicPlan, generate_item, generate_items
from calibrant.audits.logic.items import better_certificate, count_certificate, missing_certificate, open_certificate
from calibrant.audits.logic.verify import VERIFIERS, evidence_of
from calibrant.audits.logic.why import LogicWhy, explain
from calibrant.baselines.logic import rows
from calibrant.baselines.logic.rows import GeneticPlan, greedy_model
from calibrant.bench.logic.why import EXPLANATIONS
from calibrant.dsl.errors import CalibrantError
from calibrant.dsl.logic import reference
from calibrant.dsl.logic.files.midas import candidate_experiments
from calibrant.dsl.logic.files.networks import ListedModel
from calibrant.dsl.logic.item import (
    Clause,
    Edge,
    Experiment,
    LogicError,
    LogicItem,
    Options,
    Setup,
    Task,
    Tolerance,
    fit_limit,
    model_size,
    parse_clause,
)
from calibrant.dsl.logic.records import item_from_record, record_from_item
from calibrant.dsl.logic.score import answer_json, grade
from calibrant.solvers.logic import family as exact_rows
from calibrant.solvers.logic.elimination.lattice import LatticeLimitError
from calibrant.solvers.logic.family import LogicFamily, solve_family
from calibrant.solvers.logic.network import ModelCosts
from calibrant.solvers.outcome import Found
from tests.support.accessibility import measure, needs_axe
from tests.support.benchmarks.logic import family_of, random_tasks, task_of, vectors_of
from tests.support.effort import effort

# --- Generated items: gold is a member, labels are those of the family, the same bytes from the same seed -------------
PLAN = LogicPlan(nodes=9, loops=2, noise=0.2, missing=0.1)


def test_items_depend_on_plan_seed_and_number_alone() -> None:
    items = list(generate_items(PLAN, 5, 4, greedy_model))
    assert [generate_item(PLAN, 5, number, greedy_model) for number in (3, 1)] == [items[3], items[1]]
    assert items[0] != generate_item(PLAN, 6, 0, greedy_model)
    for item in items:
        assert item_from_record(record_from_item(item)) == item
        assert msgspec.json.encode(record_from_item(item))


def test_gold_and_labels() -> None:
    for item in generate_items(PLAN, 8, 5, greedy_model):
        task, sealed = item.task, item.sealed
        assert sealed is not None
        assert not set(task.questions) & set(task.experiments)
        limit = fit_limit(sealed.optimum[0], task.tolerance.fit)
        assert limit is not None
        assert reference.class_violation(sealed.gold, task) == ""
        assert reference.misfit(sealed.gold, task) <= limit
        assert model_size(sealed.gold) <= sealed.optimum[1] + 2
        outcome = solve_family(task)
        assert isinstance(outcome, Found)
        assert item.labels["members"] == str(outcome.value.count)
        tables = {tuple(reference.predict(m, task.setup, x) for x in task.questions) for m in outcome.value.models()}
        assert item.labels["behaviours"] == str(len(tables))
        assert item.labels["decided"] == ("yes" if len(tables) == 1 else "no")
        optimal = reference.misfit(greedy_model(task), task) == sealed.optimum[0]
        assert item.labels["greedy_optimal"] == ("yes" if optimal else "no")


def test_without_noise_gold_has_no_misfit() -> None:
    for item in generate_items(replace(PLAN, noise=0, missing=0), 1, 3):
        assert item.sealed is not None
        assert item.sealed.optimum[0] == reference.misfit(item.sealed.gold, item.task) == 0


def test_methods_answer_every_item() -> None:
    for item in generate_items(PLAN, 3, 2):
        task = item.task
        outcomes = {
            "exact": exact_rows.exact(task),
            "vote": exact_rows.vote(task),
            "posterior": exact_rows.posterior(task),
            "abstain": rows.abstain(task),
            "random": rows.random_model(task, 1),
            "greedy": rows.greedy(task),
            "genetic": rows.genetic(task, 1, GeneticPlan(generations=15)),
            "listed": rows.listed(task, [ListedModel(frozenset()), ListedModel(greedy_model(task), 3)]),
        }
        verdicts = {}
        for name, outcome in outcomes.items():
            assert isinstance(outcome, Found), name
            verdicts[name] = grade(item, answer_json(outcome.value))
            assert verdicts[name].error == "", name
        assert verdicts["exact"].optimal
        assert verdicts["abstain"].brier == 0.25
        briers = [verdicts[name].brier for name in ("vote", "posterior")]
        assert all(brier is not None for brier in briers)


def test_shares_and_votes_are_those_of_the_members() -> None:
    item = next(item for item in generate_items(PLAN, 4, 20) if item.labels["decided"] == "no")
    outcome = solve_family(item.task)
    assert isinstance(outcome, Found)
    members = list(outcome.value.models())
    posterior, vote = exact_rows.posterior(item.task), exact_rows.vote(item.task)
    assert isinstance(posterior, Found)
    assert isinstance(vote, Found)
    for question, shares, votes in zip(item.task.questions, posterior.value, vote.value, strict=True):
        texts = [reference.predict(model, item.task.setup, question) for model in members]
        for r, (share, majority) in enumerate(zip(shares, votes, strict=True)):
            ones = sum(text[r] == "1" for text in texts)
            assert share == ones / len(members)
            assert majority == float(2 * ones > len(members))


def test_fast_misfits_are_those_of_the_reference() -> None:
    for task in random_tasks(11, 30):
        costs = ModelCosts(task)
        for index, model in enumerate(reference.all_models(task)):
            assert costs.misfit(model) == reference.misfit(model, task)
            if index > 20:
                break


def test_local_search_and_the_genetic_algorithm_give_models_of_the_class() -> None:
    for task in random_tasks(12, 20):
        assert reference.class_violation(greedy_model(task), task) == ""
        outcome = rows.genetic(task, 3, GeneticPlan(generations=5, population=12))
        assert isinstance(outcome, Found)
        assert reference.class_violation(outcome.value, task) == ""


def test_a_plan_that_is_refused() -> None:
    with pytest.raises(LogicError, match="plan: readouts: 1 to nodes"):
        LogicPlan(nodes=3, readouts=4)


# --- Certificates of families: those that solvers make hold, and no forged one does -----------------------------------
def _reason(certificate: Certificate | None, task: Task) -> str:
    assert certificate is not None
    sent = msgspec.json.decode(msgspec.json.encode(certificate), type=Certificate)
    return verify(sent, evidence_of(task), VERIFIERS).reason


@pytest.mark.soak
def test_counts_of_vectors_and_random_problems_are_recounted() -> None:
    """Every third vector and 40 random problems, half of them cyclic, by an elimination of another kind."""
    tasks = [task_of(vector) for vector in list(vectors_of("family"))[:: effort(3, 1)]]
    tasks += random_tasks(7, effort(40, 1_000))
    for task in tasks:
        family = family_of(task)
        assert _reason(count_certificate(family, family.open_clauses()[:2]), task) == ""


def _example() -> LogicFamily:
    """Return a cyclic vector with open clauses and edges."""
    for vector in vectors_of("family"):
        if vector["expected"]["cyclic"] and vector["size"] is not None:
            family = family_of(task_of(vector))
            if 5 < family.count < 100 and family.open_clauses():
                return family
    raise AssertionError("no such vector")


def test_the_budget_holds_for_models_of_many_clauses() -> None:
    family = _example()
    certificate = better_certificate(family, list(family.models())[-1])
    assert certificate is not None
    chain = [f"a{k}<-a{k + 1}" for k in range(100)]
    forged = msgspec.structs.replace(certificate, data={**certificate.data, "model": chain})
    with pytest.raises(RecountLimitError, match="clauses"), limited_recount(-1):
        _reason(forged, family.task)


def test_open_better_and_missing() -> None:
    family = _example()
    clause = family.open_clauses()[0]
    edge = next(edge for edge, number in family.edges().items() if number < family.count)
    assert _reason(open_certificate(family, clause), family.task) == ""
    assert _reason(open_certificate(family, edge), family.task) == ""
    members = list(family.models())
    assert open_certificate(family, Edge("absent", 1, "absent")) is None
    worse = members[-1]
    assert _reason(better_certificate(family, worse), family.task) == ""
    assert _reason(missing_certificate(family, members[1:]), family.task) == ""
    assert missing_certificate(family, members) is None


def _bump(text: str) -> str:
    return str(int(text) + 1)


Forge = Callable[[dict[str, Any]], object]
FORGERIES: list[tuple[str, Forge]] = [
    ("count", lambda data: data.update(count=_bump(data["count"]))),
    ("count", lambda data: data["spectrum"].pop()),
    ("count", lambda data: data["spectrum"][0].__setitem__(2, _bump(data["spectrum"][0][2]))),
    ("count", lambda data: data["limits"].update(least_misfit=data["limits"]["least_misfit"] - 1)),
    ("count", lambda data: data["limits"].update(least_misfit=data["limits"]["least_misfit"] + 1)),
    ("count", lambda data: data["limits"].update(least_size=data["limits"]["least_size"] + 1)),
    ("count", lambda data: data["limits"].update(fit="9")),
    ("count", lambda data: data["limits"].update(size=None)),
    ("count", lambda data: data["limits"].update(fit="-1")),
    ("count", lambda data: data["clauses"].update({k: _bump(v) for k, v in data["clauses"].items()})),
    ("count", lambda data: data["clauses"].update({"x<-y": "1"})),
    ("count", lambda data: data["clauses"].update({"no clause": "0"})),
    ("count", lambda data: data.update(more=1)),
    ("count", lambda data: data.pop("count")),
    ("open", lambda data: data.update(having=data["lacking"], lacking=data["having"])),
    ("open", lambda data: data.update(lacking=data["having"])),
    ("open", lambda data: data.update(part="x<-y")),
    ("open", lambda data: data["lacking"].append("x<-y")),
    ("open", lambda data: data["limits"].update(least_misfit=0, fit="0")),
    ("better", lambda data: data.update(better=data["model"])),
    ("better", lambda data: data["better"].append("x<-y")),
    ("better", lambda data: data["model"].extend(["x<-y", "y<-x"])),
    ("missing", lambda data: data["listed"].append(data["member"])),
    ("missing", lambda data: data.update(member=["x<-y"])),
    ("missing", lambda data: data["limits"].update(least_misfit=10**9)),
]


@pytest.mark.parametrize("number", range(len(FORGERIES)))
def test_a_forged_certificate_does_not_hold(number: int) -> None:
    claim, forge = FORGERIES[number]
    family = _example()
    members = list(family.models())
    certificates = {
        "count": count_certificate(family, family.open_clauses()[:1]),
        "open": open_certificate(family, family.open_clauses()[0]),
        "better": better_certificate(family, members[-1]),
        "missing": missing_certificate(family, members[1:]),
    }
    certificate = certificates[claim]
    assert certificate is not None
    assert _reason(certificate, family.task) == ""
    data = msgspec.json.decode(msgspec.json.encode(certificate.data))
    forge(data)
    assert data != certificate.data
    assert _reason(msgspec.structs.replace(certificate, data=data), family.task) != ""


@pytest.mark.parametrize(("fit", "size"), [("9", 0), ("0", 40), ("0", None), ("any", 0)])
def test_a_certificate_of_other_tolerances_is_refused(fit: str, size: int | None) -> None:
    """Each of the four kinds: as it was made, and bound anew to the item whose tolerances it does not have."""
    family = _example()
    task = family.task
    assert task.tolerance not in (Tolerance(fit, size), Tolerance("0", 0))
    other = family_of(replace(task, tolerance=Tolerance(fit, size)))
    members = list(family.models())
    certificates = [
        count_certificate(family),
        open_certificate(family, family.open_clauses()[0]),
        missing_certificate(family, members[1:]),
        better_certificate(family, members[-1]),
    ]
    for certificate in certificates:
        assert _reason(certificate, task) == ""
        assert _reason(certificate, other.task) == "made for other evidence"
    for certificate in certificates[:3]:
        assert certificate is not None
        bound = msgspec.structs.replace(certificate, evidence=evidence_digest(evidence_of(other.task)))
        assert f"the item has fit {fit} and size {'none' if size is None else size}" in _reason(bound, other.task)


def test_other_evidence_and_another_class_are_noticed() -> None:
    family = _example()
    certificate = count_certificate(family)
    other_task = Task(family.task.prior, family.task.setup, (), ())
    assert _reason(certificate, other_task) == "made for other evidence"
    assert "another class" in _reason(msgspec.structs.replace(certificate, in_words="all models"), family.task)
    with pytest.raises(ValueError, match="whole family"):
        count_certificate(family.condition(family.open_clauses()[0]))


def test_the_verifier_imports_no_solver() -> None:
    source = Path(__file__).parents[3] / "audits" / "logic" / "verify.py"
    imports = [node for node in ast.walk(ast.parse(source.read_text())) if isinstance(node, ast.ImportFrom)]
    names = [f"{node.module}.{alias.name}" for node in imports for alias in node.names]
    assert "calibrant.dsl.logic.item" in names
    assert not [name for name in names if ".solvers" in name]


# --- The reason for logic models: its numbers and its pair are verified from the evidence by the reference alone ------
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
    models = [model for model in models if not reference.class_violation(model, task)]
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
    assert (
        "Every experiment at hand was measured. They differ where it was measured, most in s: repeat" in why.reason_text
    )


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
