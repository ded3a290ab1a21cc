"""Findings about one item with certificates that its pool's record alone can be checked by, and its attribution."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from calibrant.audits.attribution import Attribution
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
from calibrant.audits.causim.examined import examined
from calibrant.audits.causim.programs import vacuous_parts
from calibrant.audits.causim.questions import COPYABLE, LABEL, TRIVIAL, VACUOUS, question_findings
from calibrant.audits.claims import Certificate, verify
from calibrant.audits.finding import Finding, Standing
from calibrant.dsl.causim.item import CausimItem
from calibrant.dsl.causim.question import scenario_of
from calibrant.solvers.causim.answers import AnswerSet
from calibrant.solvers.causim.space import WorldSpace
from calibrant.solvers.outcome import Found

AMBIGUOUS, UNWINNABLE = "ambiguous", "unwinnable"


def item_findings(item: CausimItem) -> Iterator[Finding]:
    """Return what is wrong with an item, its question and its program; and whether one answer is right, if it is said
    to be.

    A certificate is there where its checker confirms it; claims about more worlds than that runs have none.
    """
    source, question = item.task.source, item.task.question
    for found in question_findings(item):
        made = None
        if found.kind == TRIVIAL:
            made = trivial(source, question)
        elif found.kind == COPYABLE:
            made = copyable(source, question)
        elif found.kind == VACUOUS:
            made = vacuous_intervention(source, question)
        elif found.kind == LABEL:
            made = answer_count(source, question, int(found.data["size"]))
        yield _with_certificate(found, item, made)
    yield from _number_of_answers(item)
    for found in vacuous_parts(item.task.model, item.id):
        made = None
        if found.data["part"] == "edge":
            parent, child = str(found.data["name"]).split(" -> ")
            made = vacuous_edge(source, parent, child, question)
        yield _with_certificate(found, item, made)


def _number_of_answers(item: CausimItem) -> Iterator[Finding]:
    source, question, scenario = item.task.source, item.task.question, item.task.scenario
    number = examined(item).size
    if number is None:
        return
    members = AnswerSet(item.task.model, question)
    counted = answer_count(source, question, number)
    if number == 0:
        nothing = Finding(UNWINNABLE, Standing.PROVED, item.id, "no answer is right")
        yield _with_certificate(nothing, item, counted)
    elif scenario == "deterministic" and number > 1:
        several = Finding(AMBIGUOUS, Standing.PROVED, item.id, f"{number} answers are right, said to be one")
        yield _with_certificate(several, item, counted)
    elif scenario == "deterministic":
        one = Finding(AMBIGUOUS, Standing.REFUTED, item.id, "one answer is right")
        yield _with_certificate(one, item, unique_answer(source, question, next(iter(members.answers()))))
    if scenario != scenario_of(number) and number == item.labels.size:
        claim = f"the question is said to be {scenario}; it is {scenario_of(number)}"
        yield _with_certificate(Finding(LABEL, Standing.PROVED, item.id, claim, {"size": number}), item, counted)


def _with_certificate(found: Finding, item: CausimItem, made: Certificate | None) -> Finding:
    evidence = evidence_of(item.task.source, item.task.question)
    if made is None or not verify(made, evidence, VERIFIERS).holds:
        return found
    return replace(found, certificate=made)


def attributed_answer(item: CausimItem, *, fits: bool | None) -> Attribution | None:
    """The attribution of an answer to a question that is said to have one answer; None for other questions.

    fits: whether the answer is right, which here is whether a fitting world gives it; None if there was no answer
    """
    if item.task.scenario != "deterministic":
        return None
    space = WorldSpace(item.task.model, item.task.question)
    size = AnswerSet(item.task.model, item.task.question).size()
    if not isinstance(size, Found):
        return None
    return Attribution(size.value == 1, fits is True, fits, space.count, space.in_words)
