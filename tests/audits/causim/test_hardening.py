"""Decided items: one answer by running every world, and a certificate that less evidence does not do."""

from __future__ import annotations

from dataclasses import replace

import pytest

from audits.causim.certificates import VERIFIERS, evidence_of
from audits.causim.hardening import decided
from audits.claims import verify
from dsl.causim.item import CausimItem, Sealed
from dsl.causim.question import check_question
from dsl.causim.reference import work_out
from dsl.causim.topology import TOPOLOGIES
from dsl.causim.values import ModelError
from solvers.causim.items import generated_items
from solvers.outcome import Found, Impossible


@pytest.fixture(scope="module")
def items() -> list[CausimItem]:
    return [item for topology in TOPOLOGIES for item in generated_items(18, topology, 1, nodes=4, each=2)]


def test_a_decided_item_has_one_answer_and_a_certificate_that_holds(items: list[CausimItem]) -> None:
    made = impossible = 0
    for item in items:
        found = decided(item)
        if isinstance(found, Impossible):
            assert item.task.question.type == "abduction"
            impossible += 1
            continue
        assert isinstance(found, Found)
        new, certificate = found.value
        model, question = new.task.model, new.task.question
        worked = work_out(model, check_question(question, model))
        assert len(worked.answers) == new.labels.size == 1
        assert (worked.effect_all, worked.effect_some, worked.copy) == (
            new.labels.effect_all,
            new.labels.effect_some,
            new.labels.copy,
        )
        assert verify(certificate, evidence_of(item.task.source, item.task.question), VERIFIERS).holds
        told = len(question.fixed) + len(question.observed)
        before = len(item.task.question.fixed) + len(item.task.question.observed)
        assert told - before == len(certificate.data["observe"])
        assert (told == before) is (item.labels.size == 1)
        made += told > before
    assert made > 50
    assert impossible > 5


def test_an_item_without_its_world_is_refused(items: list[CausimItem]) -> None:
    with pytest.raises(ModelError, match="not known"):
        decided(replace(items[0], sealed=Sealed()))
