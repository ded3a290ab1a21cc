"""What a certificate file holds: of ReplaySCM (audits.replayscm.certificates), and of the others (audits.claims)."""

from __future__ import annotations

import msgspec

from calibrant.audits.claims import Certificate
from calibrant.audits.finding import ClaimStatus
from calibrant.audits.replayscm.certificates.shape import CertificateFile

__all__ = ["CertificateFile", "ClaimFile", "FindingRecord"]


class ClaimFile(msgspec.Struct, forbid_unknown_fields=True):
    """A claim about an item, of any benchmark but ReplaySCM.

    instance: id of the item; certificate: what is claimed, of which evidence
    """

    instance: str
    certificate: Certificate


class FindingRecord(msgspec.Struct, forbid_unknown_fields=True):
    """What `calibrant audit --json` lists of any benchmark but ReplaySCM.

    instance: the item that it is about; kind: sort of flaw; claim: in a line
    verdict: proved, refuted, or open where the budget ended first
    data: the figures behind it; certificate: what a third party can check it by, null where there is none
    """

    instance: str
    kind: str
    verdict: ClaimStatus
    claim: str
    data: dict[str, int | float | str]
    certificate: Certificate | None
