"""Checkers of claims about items agree with running every world, on items of every type and topology."""

from __future__ import annotations

from collections import Counter
from itertools import islice

import pytest

from calibrant.audits.causim.items import item_findings
from calibrant.audits.causim.verify import VERIFIERS, copyable, evidence_of, trivial, vacuous_intervention
from calibrant.audits.claims import verify
from calibrant.dsl.causim.item import CausimItem
from calibrant.dsl.causim.reference import work_out
from calibrant.dsl.causim.topology import TOPOLOGIES
from calibrant.solvers.causim.generation import generated_items, sampled_items


@pytest.fixture(scope="module")
def items() -> list[CausimItem]:
    drawn = [item for topology in TOPOLOGIES for item in islice(sampled_items(3, topology), 8)]
    few = [item for topology in TOPOLOGIES for item in generated_items(4, topology, 1, nodes=3, num_questions=5)]
    return drawn + few


def test_a_claim_holds_exactly_where_running_every_world_says_so(items: list[CausimItem]) -> None:
    counts = Counter[tuple[str, bool]]()
    for item in items:
        source, question = item.task.source, item.task.question
        worked = work_out(item.task.model, question)
        truths = {
            trivial: worked.trivial,
            copyable: worked.copy,
            vacuous_intervention: None if worked.effect_some is None else not worked.effect_some,
        }
        for claim, truth in truths.items():
            if truth is not None:
                certificate = claim(source, question)
                assert verify(certificate, evidence_of(source, question), VERIFIERS).holds is truth
                counts[certificate.claim, truth] += 1
    assert len(counts) == 6
    assert min(counts.values()) > 3


def test_every_finding_about_a_small_item_has_a_certificate(items: list[CausimItem]) -> None:
    found = [finding for item in items for finding in item_findings(item)]
    assert len(found) > 100
    assert [one for one in found if one.certificate is None] == []
