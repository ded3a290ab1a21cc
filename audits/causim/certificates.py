"""Certificates of CauSim claims, and verifiers that import no solver: they run mechanisms and compare.

The evidence is the program and, for claims about a question, the question as files hold it. Local sets are the noise
values that each node's seen value allows; where the fitting worlds are their product, a claim about all worlds is a
claim about each node. Elsewhere worlds are run, up to MAX_WORLDS of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import combinations, product
from math import comb, prod
from typing import Final

import msgspec

from audits.claims import Certificate, Verifier, certified
from dsl.causim.bundle import load_source
from dsl.causim.model import Model, run
from dsl.causim.question import Answer, Question, QuestionRecord, copied, project, question_from_record, record_of
from dsl.causim.reasons import allowed_noise, reasons
from dsl.causim.reference import worlds
from dsl.causim.values import Assignment, ModelError, assignment_text, plain, symbols

MAX_WORLDS: Final = 200_000
MAX_SUBSETS: Final = 200_000
_WORLDS: Final = "all worlds that agree with noise and evidence"


class Evidence(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a claim is about."""

    program: str
    type: str = ""
    question: QuestionRecord | None = None
    with_noise: bool = False


def evidence_of(source: str, question: Question | None = None) -> Evidence:
    """The evidence of a claim about a program, or about a question on it."""
    if question is None:
        return Evidence(source)
    return Evidence(source, question.type, record_of(question), question.with_noise)


def _model_of(evidence: Evidence) -> Model:
    return load_source(evidence.program)


def _question_of(evidence: Evidence, model: Model) -> Question:
    if evidence.question is None:
        raise ValueError("the evidence has no question")
    return question_from_record(evidence.question, evidence.type, model, with_noise=evidence.with_noise)  # type: ignore[arg-type]


# --- claims ----------------------------------------------------------------------------------------------------------


def vacuous_edge(source: str, parent: str, child: str, question: Question | None = None) -> Certificate:
    """That no change of the parent ever changes the child. question: of an item, whose evidence holds one"""
    in_words = "all values of the child's parents and noise in their domains"
    return certified("vacuous_edge", in_words, evidence_of(source, question), {"parent": parent, "child": child})


def trivial(source: str, question: Question) -> Certificate:
    """That the intervention states every required key."""
    return certified("trivial", "the required keys", evidence_of(source, question), {})


def copyable(source: str, question: Question) -> Certificate:
    """That the evidence with `do` written over it is right."""
    return certified("copyable", _WORLDS, evidence_of(source, question), {})


def vacuous_intervention(source: str, question: Question) -> Certificate:
    """That no variable outside `do` changes in any world."""
    return certified("vacuous_intervention", _WORLDS, evidence_of(source, question), {})


def answer_count(source: str, question: Question, size: int) -> Certificate:
    """How many answers are right."""
    evidence = evidence_of(source, question)
    return certified("answer_count", _WORLDS, evidence, {"size": size})


def unique_answer(source: str, question: Question, answer: Assignment) -> Certificate:
    """That one answer is right, and which."""
    return certified("unique_answer", _WORLDS, evidence_of(source, question), {"answer": plain(answer)})


def minimal_evidence_claim(
    source: str, question: Question, world: Assignment, observe: tuple[str, ...], against: tuple[Assignment, ...],
    candidates: tuple[str, ...],
) -> Certificate:  # fmt: skip
    """That observing these leaves the true world's answer, and that no smaller set of candidates does."""
    data = {
        "world": plain(world),
        "observe": list(observe),
        "against": [plain(other) for other in against],
        "candidates": list(candidates),
    }
    return certified("minimal_evidence", "all sets of the candidates", evidence_of(source, question), data)


# --- verifiers -------------------------------------------------------------------------------------------------------


def _check_vacuous_edge(evidence: Evidence, certificate: Certificate) -> str:
    model = _model_of(evidence)
    parent, child = certificate.data["parent"], certificate.data["child"]
    node = model.nodes[model.position[child]]
    if parent not in node.parents:
        return f"{parent} is no parent of {child}"
    place = node.parents.index(parent)
    domains = [model.system[model.position[name]].domain for name in node.parents]
    if prod(map(len, domains)) * len(node.support) > MAX_WORLDS:
        return "the table is too large to be checked"
    for row in product(*domains):
        first = (*row[:place], domains[place][0], *row[place + 1 :])
        for noise in node.support:
            if node.value(row, noise) != node.value(first, noise):
                return f"{child} changes with {parent}"
    return ""


def _fitting(model: Model, question: Question) -> Iterator[tuple[dict[str, str], Answer]]:
    total = prod(1 if node.noise in question.fixed else len(node.support) for node in model.nodes)
    if total > MAX_WORLDS:
        raise ValueError(f"{total} worlds are too many to be run")
    for noise, _ in worlds(model, question.fixed):
        factual = run(model, noise, {})
        if all(factual[name] == value for name, value in question.observed.items()):
            yield noise, project(question, model, noise, run(model, noise, question.do))


def _local_sets(model: Model, question: Question) -> Mapping[str, tuple[str, ...]] | None:
    try:
        return allowed_noise(model, question)
    except ModelError:
        return None


def _check_answer_count(evidence: Evidence, certificate: Certificate) -> str:
    model = _model_of(evidence)
    question = _question_of(evidence, model)
    sets = _local_sets(model, question)
    if sets is not None and (question.type == "abduction" or question.with_noise):
        found = prod(map(len, sets.values()))
    else:
        found = len({assignment_text(answer) for _, answer in _fitting(model, question)})
    claimed = certificate.data["size"]
    return "" if type(claimed) is int and found == claimed else f"{found} answers are right"


def _check_unique(evidence: Evidence, certificate: Certificate) -> str:
    model = _model_of(evidence)
    question = _question_of(evidence, model)
    return _not_unique(model, question, symbols(certificate.data["answer"]))


def _not_unique(model: Model, question: Question, answer: Mapping[str, str]) -> str:
    """Why an answer is not the only one; empty if it is."""
    if set(answer) != set(question.required_keys(model)):
        return "the answer has other keys than the question asks for"
    sets = _local_sets(model, question)
    if sets is None:
        texts = {assignment_text(other) for _, other in _fitting(model, question)}
        return "" if texts == {assignment_text(answer)} else f"{len(texts)} answers are right"
    if not all(sets.values()):
        return "no world fits"
    if question.type == "abduction" or question.with_noise:
        several = [noise for noise in question.unknown if sets[noise] != (answer[noise],)]
        if several:
            return f"{several[0]} is not settled"
    if question.type == "abduction":
        return ""
    for node in model.nodes:  # given the values of its parents, all that its noise may be gives the same
        if node.name in question.do:
            given = {question.do[node.name]}
        else:
            parents = tuple(answer[parent] for parent in node.parents)
            given = {node.value(parents, noise) for noise in sets[node.noise]}
        if given != {answer[node.name]}:
            return f"{node.name} is not settled, or has another value"
    return ""


def _check_trivial(evidence: Evidence, certificate: Certificate) -> str:
    model = _model_of(evidence)
    question = _question_of(evidence, model)
    left = sorted(set(question.required_keys(model)) - set(question.do))
    return f"{left[0]} is not set" if left else ""


def _check_copyable(evidence: Evidence, certificate: Certificate) -> str:
    model = _model_of(evidence)
    question = _question_of(evidence, model)
    answer = copied(question)
    if set(answer) != set(question.required_keys(model)):
        return "the question does not show a value for every key"
    if _local_sets(model, question) is not None and not question.with_noise:
        wrong = [name for name, reason in reasons(model, question, answer).items() if reason != "ok"]
        return f"{wrong[0]} has a wrong value" if wrong else ""
    return "" if any(other == answer for _, other in _fitting(model, question)) else "no world gives the copy"


def _check_vacuous_intervention(evidence: Evidence, certificate: Certificate) -> str:
    model = _model_of(evidence)
    question = replace(_question_of(evidence, model), with_noise=False)
    if not question.do:
        return "there is no intervention"
    if question.has_full_evidence(model):
        return _not_unique(model, question, copied(question))
    fitting = 0
    for noise, answer in _fitting(model, question):
        fitting += 1
        for name, value in run(model, noise, {}).items():
            if name not in question.do and answer[name] != value:
                return f"{name} changes"
    return "" if fitting else "no world fits"


def _check_minimal(evidence: Evidence, certificate: Certificate) -> str:
    model = _model_of(evidence)
    question = _question_of(evidence, model)
    data = certificate.data
    world = symbols(data["world"])
    truth = {**world, **run(model, world, {})}
    answer = project(question, model, world, run(model, world, question.do))
    differences = []
    for given in data["against"]:
        other = symbols(given)
        seen = {**other, **run(model, other, {})}
        if not _fits(model, question, other):
            return "a world brought against smaller sets does not fit"
        if project(question, model, other, run(model, other, question.do)) == answer:
            return "a world brought against smaller sets has the same answer"
        differences.append({name for name in data["candidates"] if seen[name] != truth[name]})
    observe, candidates = list(data["observe"]), list(data["candidates"])
    if not _fits(model, question, world) or not set(observe) <= set(candidates):
        return "the true world does not fit, or something is observed that is no candidate"
    smaller = len(observe) - 1
    if smaller >= 0 and comb(len(candidates), smaller) > MAX_SUBSETS:
        return "too many smaller sets to be checked"
    if smaller >= 0:
        for chosen in combinations(candidates, smaller):
            if all(set(chosen) & different for different in differences):
                return f"observing {', '.join(chosen) or 'nothing'} is not refuted"
    return _left_over(model, question, truth, observe, answer)


def _fits(model: Model, question: Question, world: Assignment) -> bool:
    if set(world) != set(model.noises) or any(world[name] != value for name, value in question.fixed.items()):
        return False
    if any(world[node.noise] not in node.support for node in model.nodes):
        return False
    factual = run(model, world, {})
    return all(factual[name] == value for name, value in question.observed.items())


def _left_over(
    model: Model, question: Question, truth: Assignment, observe: list[str], answer: Mapping[str, str]
) -> str:
    """Why the observations do not leave one answer."""
    fixed = {**question.fixed, **{name: truth[name] for name in observe if name in model.of_noise}}
    seen = {**question.observed, **{name: truth[name] for name in observe if name in model.position}}
    kind = "counterfactual" if seen and question.type in ("deduction", "intervention") else question.type
    unknown = tuple(name for name in question.unknown if name not in fixed)
    told = Question(kind, fixed, unknown, question.do, seen, question.with_noise)
    keys = told.required_keys(model)
    return _not_unique(model, told, {key: answer[key] for key in keys if key in answer})


def _one_line(check: Verifier) -> Verifier:
    """The check, with what it stumbles over in the data told as a reason."""

    def checked(evidence: Evidence, certificate: Certificate) -> str:
        try:
            return check(evidence, certificate)
        except (ModelError, AttributeError) as error:
            return f"data that do not fit the claim: {error}"

    return checked


VERIFIERS: Final[dict[str, Verifier]] = {
    "vacuous_edge": _one_line(_check_vacuous_edge),
    "answer_count": _one_line(_check_answer_count),
    "unique_answer": _one_line(_check_unique),
    "trivial": _one_line(_check_trivial),
    "copyable": _one_line(_check_copyable),
    "vacuous_intervention": _one_line(_check_vacuous_intervention),
    "minimal_evidence": _one_line(_check_minimal),
}
