"""Claims about items of trajectories, checked by exhaustion with `dsl.networks.network`, without a solver."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod
from types import MappingProxyType
from typing import Any

import msgspec

from calibrant.audits.claims import Certificate, ClaimKind, RecountLimitError, Verifier, checkpoint
from calibrant.dsl.logic.trajectories import QuestionRecord, TrajectoryRecord, parse_model
from calibrant.dsl.networks import network as networks_network

MAX_LISTED_CANDIDATES = 4  # candidate inputs of a gene: 65,536 functions are tried


class TrajectoryEvidence(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Visible task."""

    genes: list[str]
    candidates: dict[str, list[tuple[str, str]]]
    trajectories: list[TrajectoryRecord]
    question: QuestionRecord
    functions: networks_network.FunctionClass


class CountOfNetworks(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Data of a count; `genes`: gene -> number of its functions that fit; numbers as texts."""

    genes: dict[str, str]
    count: str


class TwoAnswers(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Data of an open answer: two networks as bnet."""

    first: str
    second: str


def trajectory_evidence(task: networks_network.TrajectoryTask) -> dict[str, Any]:
    """Return the evidence of a task as JSON."""
    question = task.question
    evidence = TrajectoryEvidence(
        list(task.genes),
        {gene: list(task.candidates[gene]) for gene in task.genes},
        [TrajectoryRecord(dict(entry.clamps), list(entry.states)) for entry in task.evidence],
        QuestionRecord(dict(question.clamps), question.start, question.steps),
        task.function_class,
    )
    content: dict[str, Any] = msgspec.to_builtins(evidence)
    return content


def _task(content: Any) -> networks_network.TrajectoryTask:
    evidence = msgspec.convert(content, TrajectoryEvidence, strict=True)
    return networks_network.TrajectoryTask(
        tuple(evidence.genes),
        {gene: tuple(evidence.candidates[gene]) for gene in evidence.genes},
        tuple(networks_network.Trajectory(entry.held, tuple(entry.states)) for entry in evidence.trajectories),
        networks_network.Question(evidence.question.held, evidence.question.start, evidence.question.steps),
        evidence.functions,
    )


def _words(evidence: Any, certificate: Certificate) -> str:
    return _task(evidence).in_words


def _count(evidence: Any, certificate: Certificate) -> str:
    """Check the number of functions of each gene by trying every table; return why it is wrong, "" if it is right."""
    task, data = _task(evidence), msgspec.convert(certificate.data, CountOfNetworks, strict=True)
    counts = {}
    for index, gene in enumerate(task.genes):
        checkpoint("genes", index, len(task.genes))
        if len(task.candidates[gene]) > MAX_LISTED_CANDIDATES:
            raise RecountLimitError(f"{gene} has over {MAX_LISTED_CANDIDATES} candidates")
        counts[gene] = sum(_gives_readings(table, task, gene) for table in _tables(task, gene))
    if {gene: str(count) for gene, count in counts.items()} != data.genes:
        return f"functions that fit: {counts}"
    return "" if data.count == str(prod(counts.values())) else "the count is not the product"


def _tables(task: networks_network.TrajectoryTask, gene: str) -> Iterator[int]:
    """Yield the functions of the class of a gene: bit r is the value in row r, bit i of r is candidate i."""
    signs = [sign for _, sign in task.candidates[gene]]
    rows = range(1 << len(signs))
    ordered = [  # (row, row) pairs of which the first must not have the greater value
        (row, row | 1 << i) if sign == "+" else (row | 1 << i, row)
        for i, sign in enumerate(signs)
        if sign != "both" and task.function_class == "signed"
        for row in rows
        if not row >> i & 1
    ]
    for table in range(1 << len(rows)):
        if all(table >> low & 1 <= table >> high & 1 for low, high in ordered):
            yield table


def _gives_readings(table: int, task: networks_network.TrajectoryTask, gene: str) -> bool:
    return all(
        table >> sum(value << i for i, value in enumerate(pattern)) & 1 == after
        for pattern, after in networks_network.readings(task, gene)
    )


def _open(evidence: Any, certificate: Certificate) -> str:
    task, data = _task(evidence), msgspec.convert(certificate.data, TwoAnswers, strict=True)
    networks = [parse_model(text) for text in (data.first, data.second)]
    for network in networks:
        if problem := networks_network.class_violation(network, task):
            return f"no network of the class: {problem}"
        if not networks_network.fits(network, task):
            return "a network does not give the states of the trajectories"
    answers = [networks_network.answer_question(network, task) for network in networks]
    return "both networks give the same answer" if answers[0] == answers[1] else ""


TRAJECTORY_VERIFIERS: Mapping[str, Verifier] = MappingProxyType(
    {
        "trajectory-count": ClaimKind(CountOfNetworks, _words, _count),
        "trajectory-open": ClaimKind(TwoAnswers, _words, _open),
    }
)
