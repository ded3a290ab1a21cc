"""Certificates: held against the evidence, their format and a verifier of their claim."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from calibrant.audits.attribution import FourCounts, Kind, attribute_answer, four_counts
from calibrant.audits.claims import Certificate, ClaimCheck, certify, evidence_digest, verify
from tests.support.counter_game import Numbers

EVIDENCE = {"readings": [1, 2], "task": "sum"}


def _sum_is(evidence: Any, certificate: Certificate) -> str:
    if certificate.in_words != "all lists of integers":
        return "another class"
    total = sum(evidence["readings"])
    return "" if certificate.data["sum"] == total else f"the sum is {total}"


VERIFIERS = {"sum_is": _sum_is}
TRUE = certify("sum_is", "all lists of integers", EVIDENCE, {"sum": 3})


def test_a_true_claim_holds_after_a_round_trip_through_json() -> None:
    again = msgspec.json.decode(msgspec.json.encode(TRUE), type=Certificate)
    assert again == TRUE
    assert verify(again, EVIDENCE, VERIFIERS) == ClaimCheck(True)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"data": {"sum": 4}}, "the sum is 3"),
        ({"data": {}}, "data that do not fit the claim"),
        ({"in_words": "all"}, "another class"),
        ({"evidence": "0" * 64}, "made for other evidence"),
        ({"claim": "max_is"}, "no verifier for the claim 'max_is'"),
        ({"version": 7}, "not a 'calibrant-claim' of version 1"),
    ],
)
def test_a_changed_certificate_does_not_hold(change: dict[str, Any], reason: str) -> None:
    verdict = verify(msgspec.structs.replace(TRUE, **change), EVIDENCE, VERIFIERS)
    assert not verdict.holds
    assert reason in verdict.reason


@pytest.mark.parametrize("name", ["format", "version"])
def test_format_and_version_are_required(name: str) -> None:
    file = msgspec.to_builtins(TRUE)
    assert file.pop(name) in ("calibrant-claim", 1)
    with pytest.raises(msgspec.ValidationError, match=f"missing required field `{name}`"):
        msgspec.convert(file, Certificate, strict=True)


def test_a_certificate_is_about_its_own_evidence_only() -> None:
    assert verify(TRUE, {"readings": [2, 1], "task": "sum"}, VERIFIERS).reason == "made for other evidence"
    assert evidence_digest({"b": 1, "a": 2}) == evidence_digest({"a": 2, "b": 1})


# --- The four kinds of an answer --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("space", "answer", "correct", "kind", "fits"),
    [
        (Numbers(3, 3), 3, True, Kind.EARNED, True),
        (Numbers(3, 3), 4, False, Kind.MISSED, False),
        (Numbers(3, 5), 4, True, Kind.LUCKY, True),
        (Numbers(3, 5), 5, False, Kind.SHORT, True),
        (Numbers(3, 5), None, False, Kind.SHORT, None),
        (Numbers(3, 2), 5, False, Kind.SHORT, False),  # nothing of the class fits: nothing is decided
    ],
)
def test_an_answer_is_of_one_of_four_kinds(
    space: Numbers, answer: int | None, correct: bool, kind: Kind, fits: bool | None
) -> None:
    found = attribute_answer(space, answer, correct=correct)
    assert (found.kind, found.fits, found.members, found.in_words) == (kind, fits, space.count, "the numbers")


def test_counts_and_the_ceiling_that_evidence_gives() -> None:
    counts = four_counts([Kind.EARNED, Kind.EARNED, Kind.MISSED, Kind.LUCKY])
    assert counts == FourCounts(2, 1, 1, 0)
    assert (counts.total, counts.ceiling) == (4, 0.75)
    assert four_counts([]).ceiling == 0
