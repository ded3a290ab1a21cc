"""Findings about one item, with certificates that its record suffices to check, and its attribution."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from calibrant.audits.attribution import Attribution
from calibrant.audits.causim.answer_summary import summarize_answers
from calibrant.audits.causim.certificates import (
    VERIFIERS,
    answer_count,
    copyable,
    evidence_of,
    trivial,
    unique_answer,
    vacuous_edge,
    vacuous_intervention,
)
from calibrant.audits.causim.programs import vacuous_parts
from calibrant.audits.causim.questions import COPYABLE, LABEL, TRIVIAL, VACUOUS, question_findings
from calibrant.audits.claims import Certificate, ClaimStatus, Finding, verify
from calibrant.dsl.causim.item import CausimItem
from calibrant.dsl.causim.question import scenario_of
from calibrant.solvers.causim.exact import AnswerSet
from calibrant.solvers.causim.space import WorldSpace
from calibrant.solvers.outcome import Found

AMBIGUOUS, UNWINNABLE = "ambiguous", "unwinnable"


def item_findings(item: CausimItem) -> Iterator[Finding]:
    """Yield the defects of an item, its question and its program; and whether one answer is right, if it claims so.

    Only certificates that their checker confirms are attached; it runs a limited number of worlds.
    """
    source, question = item.task.source, item.task.question
    for finding in question_findings(item):
        certificate = None
        if finding.kind == TRIVIAL:
            certificate = trivial(source, question)
        elif finding.kind == COPYABLE:
            certificate = copyable(source, question)
        elif finding.kind == VACUOUS:
            certificate = vacuous_intervention(source, question)
        elif finding.kind == LABEL:
            certificate = answer_count(source, question, int(finding.data["size"]))
        yield _with_certificate(finding, item, certificate)
    yield from _number_of_answers(item)
    for finding in vacuous_parts(item.task.model, item.id):
        certificate = None
        if finding.data["part"] == "edge":
            parent, child = str(finding.data["name"]).split(" -> ")
            certificate = vacuous_edge(source, parent, child, question)
        yield _with_certificate(finding, item, certificate)


def _number_of_answers(item: CausimItem) -> Iterator[Finding]:
    source, question, scenario = item.task.source, item.task.question, item.task.scenario
    number = summarize_answers(item).size
    if number is None:
        return
    members = AnswerSet(item.task.model, question)
    certificate = answer_count(source, question, number)
    if number == 0:
        unwinnable = Finding(UNWINNABLE, ClaimStatus.PROVED, item.id, "no answer is right")
        yield _with_certificate(unwinnable, item, certificate)
    elif scenario == "deterministic" and number > 1:
        ambiguous = Finding(AMBIGUOUS, ClaimStatus.PROVED, item.id, f"{number} answers are right, said to be one")
        yield _with_certificate(ambiguous, item, certificate)
    elif scenario == "deterministic":
        unique = Finding(AMBIGUOUS, ClaimStatus.REFUTED, item.id, "one answer is right")
        yield _with_certificate(unique, item, unique_answer(source, question, next(iter(members.answers()))))
    if scenario != scenario_of(number) and number == item.labels.size:
        claim = f"the question is said to be {scenario}; it is {scenario_of(number)}"
        yield _with_certificate(Finding(LABEL, ClaimStatus.PROVED, item.id, claim, {"size": number}), item, certificate)


def _with_certificate(finding: Finding, item: CausimItem, certificate: Certificate | None) -> Finding:
    evidence = evidence_of(item.task.source, item.task.question)
    if certificate is None or not verify(certificate, evidence, VERIFIERS).holds:
        return finding
    return replace(finding, certificate=certificate)


def attribute_item_answer(item: CausimItem, *, fits: bool | None) -> Attribution | None:
    """Return the attribution of an answer to a question that is said to have one answer; None for other questions.

    fits: whether the answer is right, which here is whether a fitting world gives it; None if there was no answer
    """
    if item.task.scenario != "deterministic":
        return None
    space = WorldSpace(item.task.model, item.task.question)
    size = AnswerSet(item.task.model, item.task.question).size()
    if not isinstance(size, Found):
        return None
    return Attribution(size.value == 1, fits is True, fits, space.count, space.in_words)
