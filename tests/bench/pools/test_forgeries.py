"""Forged certificates of every kind of claim: none that is false verifies, and every kind has a forger.

Each kind gets changes at drawn places, changes that know the claim, the certificate of one item carried to another,
the words of one claim under the name of another, and doubled fields.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from random import Random
from typing import Any

import msgspec
import pytest

from calibrant.audits.claims import Certificate, ClaimKind, Refused, evidence_digest, verify
from calibrant.bench.core.capabilities import FINDINGS
from calibrant.bench.core.registry import benchmark, benchmarks
from calibrant.bench.pools.findings_audit import check_certificate, parse_certificate
from tests.support.effort import effort
from tests.support.forgery import blickets, causalab, causim, logic
from tests.support.forgery.forger import Forger, Genuine
from tests.support.forgery.mutations import doubled_fields, one_place_mutants

FORGERS: Mapping[str, Mapping[str, Forger]] = {
    "blickets": blickets.FORGERS,
    "causalab": causalab.FORGERS,
    "causim": causim.FORGERS,
    "logic": logic.FORGERS,
}
OF_NO_ITEM = {"causalab-not-a-mean"}  # about a printed figure: checked as a claim, not as a file beside a pool
KINDS = [(name, claim) for name, forgers in FORGERS.items() for claim in forgers]
ENOUGH = 50


def test_every_kind_of_claim_has_a_forger() -> None:
    others = [known.name for known in benchmarks() if known.capability(FINDINGS)]
    assert {name: set(benchmark(name).require(FINDINGS).verifiers) for name in others} == {
        n: set(f) for n, f in FORGERS.items()
    }


def test_every_verifier_declares_its_data_and_derives_its_class() -> None:
    for name in FORGERS:
        for claim, verifier in benchmark(name).require(FINDINGS).verifiers.items():
            assert isinstance(verifier, ClaimKind), claim
            assert verifier.data.__struct_config__.forbid_unknown_fields, claim


def written(certificate: Certificate, instance: str) -> dict[str, Any]:
    """Return the content of a certificate file."""
    made: dict[str, Any] = json.loads(json.dumps(msgspec.to_builtins(certificate)))
    return {"instance": instance, "certificate": made}


class Bench:
    """The items and certificates of one kind, what its checker says of a file, and what is true."""

    def __init__(self, name: str, claim: str) -> None:
        self.name, self.claim = name, claim
        self.forger = FORGERS[name][claim]
        self.genuine = list(self.forger.genuine())
        lone = claim in OF_NO_ITEM
        self.items = {f"row {i}": g.item for i, g in enumerate(self.genuine)} if lone else self._by_id()
        self.ids = {id(item): key for key, item in self.items.items()}

    def _by_id(self) -> dict[str, Any]:
        return {genuine.item.id: genuine.item for forger in FORGERS[self.name].values() for genuine in self._of(forger)}

    def _of(self, forger: Forger) -> list[Genuine]:
        return [genuine for genuine in forger.genuine() if hasattr(genuine.item, "id")]

    def id_of(self, genuine: Genuine) -> str:
        return self.ids[id(genuine.item)] if self.claim in OF_NO_ITEM else str(genuine.item.id)

    def evidence(self, item: Any) -> object:
        return item if self.claim in OF_NO_ITEM else benchmark(self.name).require(FINDINGS).evidence(item)

    def is_accepted(self, text: str) -> bool:
        try:
            made = parse_certificate(text.encode())
        except Refused:
            return False
        if self.claim not in OF_NO_ITEM:
            holds, line = check_certificate(benchmark(self.name), made, self.items)
            assert line
            assert len(line) < 1_000
            return holds
        try:
            certificate = msgspec.convert(made.get("certificate"), Certificate, strict=True)
        except (msgspec.ValidationError, ValueError):
            return False
        item = self.items.get(str(made.get("instance")))
        return item is not None and verify(certificate, item, benchmark(self.name).require(FINDINGS).verifiers).holds

    def is_true(self, file: Any) -> bool:
        """Whatever cannot even be read as a claim is not."""
        try:
            made = dict(file["certificate"])
            item = self.items[file["instance"]]
            if file.keys() != {"instance", "certificate"} or type(made.get("version", 1)) is not int:
                return False
            certificate = Certificate(**made)
            envelope = (certificate.format, certificate.version) == ("calibrant-claim", 1)
            bound = certificate.evidence == evidence_digest(self.evidence(item))
            return envelope and bound and FORGERS[self.name][certificate.claim].is_true(item, certificate)
        except Exception:  # an oracle that stumbles over data has seen that they are none
            return False

    def forgeries(self, rng: Random) -> Iterator[Any]:
        """Files, not all of them false."""
        for genuine in self.genuine:
            file = written(genuine.certificate, self.id_of(genuine))
            drawn = effort(12, 200)
            yield from one_place_mutants(file, rng, drawn // 2)
            for data in one_place_mutants({"data": file["certificate"]["data"]}, rng, drawn):
                yield {**file, "certificate": {**file["certificate"], **data}}
            for data in self.forger.forged(genuine, rng):
                yield {**file, "certificate": {**file["certificate"], "data": data}}
            for words in ("", "everything", f"{genuine.certificate.in_words} "):
                yield {**file, "certificate": {**file["certificate"], "in_words": words}}
            for claim in FORGERS[self.name]:
                yield {**file, "certificate": {**file["certificate"], "claim": claim}}
            for other in rng.sample(sorted(self.items), min(len(self.items), 8)):
                yield {**file, "instance": other}
                bound = {**file["certificate"], "evidence": evidence_digest(self.evidence(self.items[other]))}
                yield {"instance": other, "certificate": bound}


@pytest.mark.soak
@pytest.mark.parametrize(("name", "claim"), KINDS)
def test_no_false_certificate_verifies(name: str, claim: str) -> None:
    """Of each genuine certificate a dozen changes at drawn places beside all that know the claim; 200 in a soak."""
    bench, rng = Bench(name, claim), Random(f"{name} {claim}")
    assert len(bench.genuine) > 1
    for genuine in bench.genuine:
        file = written(genuine.certificate, bench.id_of(genuine))
        assert bench.is_accepted(json.dumps(file)), file
        assert bench.is_true(file), file
    false = 0
    for forged in bench.forgeries(rng):
        true = bench.is_true(forged)
        false += not true
        assert true or not bench.is_accepted(json.dumps(forged)), forged
    assert false >= ENOUGH
    for genuine in bench.genuine[:3]:
        for text in doubled_fields(json.dumps(written(genuine.certificate, bench.id_of(genuine)))):
            with pytest.raises(Refused, match="twice in one object"):
                parse_certificate(text.encode())
