"""Certificates of CauSim claims, and verifiers that import no solver: they run mechanisms and compare.

The evidence is the program and, for claims about a question, the question as files hold it. A local set has the noise
values that are consistent with a node's observed value. If the fitting worlds are the product of the local sets, a
claim about all worlds is checked node by node. Otherwise worlds are run, up to MAX_WORLDS of them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import combinations, product
from math import comb, prod
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from calibrant.audits.claims import Certificate, ClaimKind, NoData, Verifier, certify, checkpoint, fixed_words
from calibrant.dsl.causim.bundle import load_source
from calibrant.dsl.causim.model import Assignment, Model, ModelError, assignment_text, plain, run, symbols
from calibrant.dsl.causim.question import (
    Answer,
    Question,
    QuestionRecord,
    copy_evidence,
    project,
    question_from_record,
    record_of,
)
from calibrant.dsl.causim.reference import worlds
from calibrant.dsl.causim.score import allowed_noise, reasons

MAX_WORLDS: Final = 200_000  # worlds or rows of a table that are run for one claim
MAX_SUBSETS: Final = 200_000  # smaller sets of observations that are refuted for one claim
MAX_AGAINST: Final = 20_000  # counterexample worlds that a certificate may bring against smaller sets
_WORLDS: Final = "all worlds that agree with noise and evidence"
_TABLE: Final = "all values of the child's parents and noise in their domains"
_KEYS: Final = "the required keys"
_SUBSETS: Final = "all sets of the candidates"


class Evidence(msgspec.Struct, frozen=True, omit_defaults=True):
    """Evidence of a claim.

    type, question, with_noise: empty for claims about a program alone
    world: the sealed world of the pool, empty if it has none; None without a pool
    """

    program: str
    type: str = ""
    question: QuestionRecord | None = None
    with_noise: bool = False
    world: dict[str, Any] | None = None

    @property
    def digested(self) -> Evidence:
        """The evidence without the sealed world, which is in a pool and in no question."""
        return replace(self, world=None)


def evidence_of(source: str, question: Question | None = None, world: Assignment | None = None) -> Evidence:
    """Return the evidence of a claim about a program, or about a question on it.

    world: the sealed world that the question was sampled from, with which claims are compared; no part of the digest
    """
    if question is None:
        return Evidence(source)
    sealed_world = None if world is None else plain(world)
    return Evidence(source, question.type, record_of(question), question.with_noise, sealed_world)


def _model_of(evidence: Evidence) -> Model:
    return load_source(evidence.program)


def _question_of(evidence: Evidence, model: Model) -> Question:
    if evidence.question is None:
        raise ValueError("the evidence has no question")
    return question_from_record(evidence.question, evidence.type, model, with_noise=evidence.with_noise)  # type: ignore[arg-type]


# --- claims ----------------------------------------------------------------------------------------------------------


def vacuous_edge(source: str, parent: str, child: str, question: Question | None = None) -> Certificate:
    """Certify that no change of the parent changes the child; `question`: part of the evidence if it is an item's."""
    return certify("vacuous_edge", _TABLE, evidence_of(source, question), {"parent": parent, "child": child})


def trivial(source: str, question: Question) -> Certificate:
    """Certify that the intervention states every required key."""
    return certify("trivial", _KEYS, evidence_of(source, question), {})


def copyable(source: str, question: Question) -> Certificate:
    """Certify that the observed values, overwritten by those of `do`, are a right answer."""
    return certify("copyable", _WORLDS, evidence_of(source, question), {})


def vacuous_intervention(source: str, question: Question) -> Certificate:
    """Certify that no variable outside `do` changes in any world."""
    return certify("vacuous_intervention", _WORLDS, evidence_of(source, question), {})


def answer_count(source: str, question: Question, size: int) -> Certificate:
    """Certify the number of right answers."""
    evidence = evidence_of(source, question)
    return certify("answer_count", _WORLDS, evidence, {"size": size})


def unique_answer(source: str, question: Question, answer: Assignment) -> Certificate:
    """Certify the only right answer."""
    return certify("unique_answer", _WORLDS, evidence_of(source, question), {"answer": plain(answer)})


def minimal_evidence_claim(
    source: str, question: Question, world: Assignment, observe: tuple[str, ...], against: tuple[Assignment, ...],
    candidates: tuple[str, ...],
) -> Certificate:  # fmt: skip
    """Certify that observing the values of `observe` leaves one answer, the true world's, and that no smaller set does.

    against: worlds with other answers, at least one consistent with the true values of each smaller set
    candidates: names of all that could be observed
    """
    data = {
        "world": plain(world),
        "observe": list(observe),
        "against": [plain(opposing_world) for opposing_world in against],
        "candidates": list(candidates),
    }
    return certify("minimal_evidence", _SUBSETS, evidence_of(source, question), data)


# --- verifiers -------------------------------------------------------------------------------------------------------


def _check_vacuous_edge(evidence: Evidence, certificate: Certificate) -> str:
    model = _model_of(evidence)
    parent, child = certificate.data["parent"], certificate.data["child"]
    node = model.nodes[model.position[child]]
    if parent not in node.parents:
        return f"{parent} is no parent of {child}"
    parent_index = node.parents.index(parent)
    domains = [model.system[model.position[name]].domain for name in node.parents]
    if prod(map(len, domains)) * len(node.support) > MAX_WORLDS:
        return "the table is too large to be checked"
    rows = prod(map(len, domains))
    for index, row in enumerate(product(*domains)):
        checkpoint(f"rows of {child}", index, rows)
        first = (*row[:parent_index], domains[parent_index][0], *row[parent_index + 1 :])
        for noise in node.support:
            if node.value(row, noise) != node.value(first, noise):
                return f"{child} changes with {parent}"
    return ""


def _fitting(model: Model, question: Question) -> Iterator[tuple[dict[str, str], Answer]]:
    """Yield the noise and the answer of every world that agrees with the question; ValueError beyond MAX_WORLDS."""
    total = prod(1 if node.noise in question.fixed else len(node.support) for node in model.nodes)
    if total > MAX_WORLDS:
        raise ValueError(f"{total} worlds are too many to be run")
    for index, (noise, _) in enumerate(worlds(model, question.fixed)):
        checkpoint("worlds", index, total)
        factual = run(model, noise, {})
        if all(factual[name] == value for name, value in question.observed.items()):
            yield noise, project(question, model, noise, run(model, noise, question.do))


def _local_sets(model: Model, question: Question) -> Mapping[str, tuple[str, ...]] | None:
    """Return the local set of each noise variable; None if the fitting worlds are not their product."""
    try:
        return allowed_noise(model, question)
    except ModelError:
        return None


def _check_answer_count(evidence: Evidence, certificate: Certificate) -> str:
    model = _model_of(evidence)
    question = _question_of(evidence, model)
    sets = _local_sets(model, question)
    if sets is not None and question.asks_noise:
        count = prod(map(len, sets.values()))
    else:
        count = len({assignment_text(answer) for _, answer in _fitting(model, question)})
    claimed = certificate.data["size"]
    return "" if count == claimed else f"{count} answers are right"


def _check_unique(evidence: Evidence, certificate: Certificate) -> str:
    model = _model_of(evidence)
    question = _question_of(evidence, model)
    return _not_unique(model, question, symbols(certificate.data["answer"]))


def _not_unique(model: Model, question: Question, answer: Mapping[str, str]) -> str:
    """Return why an answer is not the only one; empty if it is."""
    if set(answer) != set(question.required_keys(model)):
        return "the answer has other keys than the question asks for"
    sets = _local_sets(model, question)
    if sets is None:
        texts = {assignment_text(member_answer) for _, member_answer in _fitting(model, question)}
        return "" if texts == {assignment_text(answer)} else f"{len(texts)} answers are right"
    if not all(sets.values()):
        return "no world fits"
    if question.asks_noise:
        several = [noise for noise in question.unknown if sets[noise] != (answer[noise],)]
        if several:
            return f"{several[0]} is not settled"
    if question.form.asks_noise:
        return ""
    for node in model.nodes:  # given the values of its parents, every value of its local set gives the same
        if node.name in question.do:
            outcomes = {question.do[node.name]}
        else:
            parents = tuple(answer[parent] for parent in node.parents)
            outcomes = {node.value(parents, noise) for noise in sets[node.noise]}
        if outcomes != {answer[node.name]}:
            return f"{node.name} is not settled, or has another value"
    return ""


def _check_trivial(evidence: Evidence, certificate: Certificate) -> str:
    model = _model_of(evidence)
    question = _question_of(evidence, model)
    unset = sorted(set(question.required_keys(model)) - set(question.do))
    return f"{unset[0]} is not set" if unset else ""


def _check_copyable(evidence: Evidence, certificate: Certificate) -> str:
    model = _model_of(evidence)
    question = _question_of(evidence, model)
    answer = copy_evidence(question)
    if set(answer) != set(question.required_keys(model)):
        return "the question does not show a value for every key"
    if _local_sets(model, question) is not None and not question.with_noise:
        wrong = [name for name, reason in reasons(model, question, answer).items() if reason != "ok"]
        return f"{wrong[0]} has a wrong value" if wrong else ""
    return (
        ""
        if any(member_answer == answer for _, member_answer in _fitting(model, question))
        else "no world gives the copy"
    )


def _check_vacuous_intervention(evidence: Evidence, certificate: Certificate) -> str:
    model = _model_of(evidence)
    question = dataclasses.replace(_question_of(evidence, model), with_noise=False)
    if not question.do:
        return "there is no intervention"
    if question.has_full_evidence(model):
        return _not_unique(model, question, copy_evidence(question))
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
    world, observe = symbols(data["world"]), list(data["observe"])
    if evidence.world is not None and world != symbols(evidence.world):
        return "the world is not the one that the question was drawn from"
    candidates = _candidates(model, question)
    if data["candidates"] != candidates:
        return f"the candidates are the {len(candidates)} that the question leaves open"
    if len(set(observe)) < len(observe) or not set(observe) <= set(candidates) or not _fits(model, question, world):
        return "the true world does not fit, or something is observed twice or is no candidate"
    truth = {**world, **run(model, world, {})}
    answer = project(question, model, world, run(model, world, question.do))
    if len(data["against"]) > MAX_AGAINST:
        return f"more than {MAX_AGAINST} worlds are brought against smaller sets"
    differences = set()
    for index, opposing in enumerate(map(symbols, data["against"])):
        checkpoint("worlds brought against smaller sets", index, len(data["against"]))
        opposing_values = {**opposing, **run(model, opposing, {})} if _fits(model, question, opposing) else {}
        if not opposing_values:
            return "a world brought against smaller sets does not fit"
        if project(question, model, opposing, run(model, opposing, question.do)) == answer:
            return "a world brought against smaller sets has the same answer"
        differences.add(frozenset(name for name in candidates if opposing_values[name] != truth[name]))
    return _smaller_set(candidates, len(observe) - 1, differences) or _undecided_reason(
        model, question, truth, observe, answer
    )


def _candidates(model: Model, question: Question) -> list[str]:
    """Return the names that could be observed in addition: unknown noise, and unseen nodes if the type has evidence."""
    has_evidence = question.form.has_evidence
    nodes = [node.name for node in model.nodes if has_evidence and node.name not in question.observed]
    return sorted([*question.unknown, *nodes])


def _smaller_set(candidates: Sequence[str], size: int, differences: Collection[frozenset[str]]) -> str:
    """Return a message if a set of that size excludes every counterexample world; "" if none does.

    differences: by counterexample world, the candidates whose value differs from the true world's
    """
    if size < 0:
        return ""
    total = comb(len(candidates), size)
    if total > MAX_SUBSETS:
        return "too many smaller sets to be checked"
    for index, chosen in enumerate(map(frozenset, combinations(candidates, size))):
        checkpoint("smaller sets", index, total)
        if not any(chosen.isdisjoint(different) for different in differences):
            return f"observing {', '.join(sorted(chosen)) or 'nothing'} is not refuted"
    return ""


def _fits(model: Model, question: Question, world: Assignment) -> bool:
    if set(world) != set(model.noises) or any(world[name] != value for name, value in question.fixed.items()):
        return False
    if any(world[node.noise] not in node.support for node in model.nodes):
        return False
    factual = run(model, world, {})
    return all(factual[name] == value for name, value in question.observed.items())


def _undecided_reason(
    model: Model, question: Question, truth: Assignment, observe: list[str], answer: Mapping[str, str]
) -> str:
    """Return why the observations do not leave one answer, "" if they do.

    truth: value of every noise variable and node in the true world
    """
    fixed = {**question.fixed, **{name: truth[name] for name in observe if name in model.of_noise}}
    observed = {**question.observed, **{name: truth[name] for name in observe if name in model.position}}
    kind = "counterfactual" if observed and not question.form.has_evidence else question.type
    unknown = tuple(name for name in question.unknown if name not in fixed)
    extended = Question(kind, fixed, unknown, question.do, observed, question.with_noise)
    keys = extended.required_keys(model)
    return _not_unique(model, extended, {key: answer[key] for key in keys if key in answer})


class VacuousEdge(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An edge by its ends."""

    parent: str
    child: str


class AnswerCount(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Number of right answers."""

    size: int


class OneAnswer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The answer, by key."""

    answer: dict[str, Any]


class MinimalEvidence(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The true world, the names observed, worlds that refute smaller sets, and all names that could be observed."""

    world: dict[str, Any]
    observe: list[str]
    against: list[dict[str, Any]]
    candidates: list[str]


VERIFIERS: Final[dict[str, Verifier]] = {
    "vacuous_edge": ClaimKind(VacuousEdge, fixed_words(_TABLE), _check_vacuous_edge),
    "answer_count": ClaimKind(AnswerCount, fixed_words(_WORLDS), _check_answer_count),
    "unique_answer": ClaimKind(OneAnswer, fixed_words(_WORLDS), _check_unique),
    "trivial": ClaimKind(NoData, fixed_words(_KEYS), _check_trivial),
    "copyable": ClaimKind(NoData, fixed_words(_WORLDS), _check_copyable),
    "vacuous_intervention": ClaimKind(NoData, fixed_words(_WORLDS), _check_vacuous_intervention),
    "minimal_evidence": ClaimKind(MinimalEvidence, fixed_words(_SUBSETS), _check_minimal),
}
