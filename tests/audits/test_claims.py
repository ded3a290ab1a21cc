"""Certificates: held against the evidence, their format and a verifier of their claim."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from calibrant.audits.claims import Certificate, ClaimCheck, certify, evidence_digest, verify

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
