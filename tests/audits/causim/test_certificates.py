"""Certificates hold for what is true, and fail for changed claims, changed evidence and damaged data."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import pytest

from calibrant.audits.causim.verify import (
    VERIFIERS,
    answer_count,
    evidence_of,
    minimal_evidence_claim,
    unique_answer,
    vacuous_edge,
)
from calibrant.audits.claims import Certificate, verify
from calibrant.dsl.causim.bundle import bundle_of, module_text
from calibrant.dsl.causim.item import CausimItem
from calibrant.dsl.causim.networks import network
from calibrant.dsl.causim.reference import work_out
from calibrant.dsl.causim.topology import TOPOLOGIES
from calibrant.solvers.causim.exact import AnswerSet
from calibrant.solvers.causim.experiments import minimal_evidence, observable
from calibrant.solvers.causim.generation import generated_items
from calibrant.solvers.outcome import Found
from tests.oracles.causim import vacuous_network_edges
from tests.support.causim.models import bundles, vectors


@pytest.fixture(scope="module")
def items() -> list[CausimItem]:
    return [item for topology in TOPOLOGIES for item in generated_items(3, topology, 1, nodes=4, num_questions=2)]


def holds(certificate: Certificate, item: CausimItem) -> bool:
    return verify(certificate, evidence_of(item.task.source, item.task.question), VERIFIERS).holds


def with_data(certificate: Certificate, **changes: object) -> Certificate:
    return msgspec.structs.replace(certificate, data={**certificate.data, **changes})


def test_vacuous_edges_of_the_vectors_are_certified_and_the_other_edges_are_not() -> None:
    certified = refused = 0
    for record in vectors("program")[:40]:
        source = module_text(bundles()[record["id"]], comments=False)
        vacuous = {tuple(edge) for edge in record["expect"]["vacuous_edges"]}
        for child, node in record["expect"]["nodes"].items():
            for parent in node["parents"]:
                verdict = verify(vacuous_edge(source, parent, child), evidence_of(source), VERIFIERS)
                assert verdict.holds is ((parent, child) in vacuous)
                certified += verdict.holds
                refused += not verdict.holds
    assert certified > 5
    assert refused > 20


@pytest.mark.parametrize(("name", "edges"), [("asia", 1), ("cancer", 2), ("survey", 0)])
def test_vacuous_edges_of_the_grid_are_certified(name: str, edges: int) -> None:
    finding, certificates = vacuous_network_edges(name)
    source = module_text(bundle_of(network(name, "grid")), comments=False)
    assert (finding.data["grid"], finding.data["cells"]) == (edges, 0)
    assert len(certificates) == edges
    assert all(verify(certificate, evidence_of(source), VERIFIERS).holds for certificate in certificates)


def test_counts_and_unique_answers(items: list[CausimItem]) -> None:
    unique = 0
    for item in items:
        source, question = item.task.source, item.task.question
        worked = work_out(item.task.model, question)
        certificate = answer_count(source, question, len(worked.answers))
        assert holds(certificate, item)
        assert not holds(with_data(certificate, size=len(worked.answers) + 1), item)
        assert not holds(with_data(certificate, size=True), item)
        for answer in list(worked.answers.values())[:2]:
            assert holds(unique_answer(source, question, answer), item) is (len(worked.answers) == 1)
            changed = dict.fromkeys(answer, '"nowhere"')
            assert not holds(unique_answer(source, question, changed), item)
        unique += len(worked.answers) == 1
    assert unique > 30


def _minimal(items: list[CausimItem]) -> Iterator[tuple[CausimItem, Certificate]]:
    for item in items:
        question, model = item.task.question, item.task.model
        found = minimal_evidence(model, question, item.sealed.world)
        assert isinstance(found, Found)
        yield (
            item,
            minimal_evidence_claim(
                item.task.source,
                question,
                item.sealed.world,
                found.value.observe,
                found.value.against,
                observable(model, question),
            ),
        )


def test_minimal_evidence_is_checked_without_the_engine_that_found_it(items: list[CausimItem]) -> None:
    several = 0
    for item, certificate in _minimal(items):
        assert holds(certificate, item)
        observe = certificate.data["observe"]
        if observe:
            assert not holds(with_data(certificate, observe=observe[1:]), item)
            assert not holds(with_data(certificate, against=[]), item)
            assert not holds(with_data(certificate, against=[item.sealed.world]), item)
        spare = [name for name in certificate.data["candidates"] if name not in observe]
        if spare:
            assert not holds(with_data(certificate, observe=[*observe, spare[0]]), item)
        several += len(observe) > 1
    assert several > 10


def test_other_evidence_and_damaged_data_do_not_pass(items: list[CausimItem]) -> None:
    one, other = items[0], items[1]
    certificate = answer_count(one.task.source, one.task.question, one.labels.size)
    assert not holds(certificate, other)
    assert not holds(msgspec.structs.replace(certificate, data={}), one)
    assert not holds(msgspec.structs.replace(certificate, claim="something"), one)
    members = AnswerSet(one.task.model, one.task.question)
    picked = members.pick()
    assert isinstance(picked, Found)
    assert not holds(with_data(unique_answer(one.task.source, one.task.question, picked.value), answer=3), one)
