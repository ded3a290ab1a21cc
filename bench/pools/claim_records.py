"""Records of findings and of their certificates, for benchmarks without records of their own (audits.claims)."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from calibrant.audits.claims import Certificate, ClaimStatus


class ClaimFile(msgspec.Struct, forbid_unknown_fields=True):
    """A claim about an item, of any benchmark but ReplaySCM."""

    instance: Annotated[str, Meta(description="id of the item")]
    certificate: Annotated[Certificate, Meta(description="what is claimed, of which evidence")]


class FindingRecord(msgspec.Struct, forbid_unknown_fields=True):
    """What `calibrant audit --json` lists of any benchmark but ReplaySCM."""

    instance: Annotated[str, Meta(description="the item that it is about")]
    kind: Annotated[str, Meta(description="sort of flaw")]
    verdict: Annotated[ClaimStatus, Meta(description="proved, refuted, or open where the budget ended first")]
    claim: Annotated[str, Meta(description="in a line")]
    data: Annotated[dict[str, int | float | str], Meta(description="the figures behind it")]
    certificate: Annotated[
        Certificate | None, Meta(description="what a third party can check it by, null where there is none")
    ]
