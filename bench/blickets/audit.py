"""Audits of extended blickets: proved findings about an item, and their certificates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from calibrant.audits.blickets.items import SOUNDNESS
from calibrant.bench.pools.findings_audit import FindingsAudit
from calibrant.bench.pools.soundness import ItemChecks
from calibrant.dsl.blickets.item import BlicketItem

if TYPE_CHECKING:
    from calibrant.audits.claims import Finding, Verifier
    from calibrant.audits.search import Examiner


class BlicketFindings:
    """Implements Verifiable (bench.core.capabilities)."""

    @property
    def verifiers(self) -> Mapping[str, Verifier]:
        from calibrant.audits.blickets.verify import VERIFIERS

        return VERIFIERS

    @property
    def examiners(self) -> Mapping[str, Examiner]:
        from calibrant.audits.blickets.cross_examination import EXAMINERS

        return EXAMINERS

    def findings(self, item: BlicketItem) -> Iterator[Finding]:
        from calibrant.audits.blickets.items import counting_decides, gameable, item_findings

        yield from item_findings(item)
        yield from gameable(item)
        yield from counting_decides(item)

    def evidence(self, item: BlicketItem) -> object:
        from calibrant.audits.blickets.verify import evidence_of

        return evidence_of(item)


FINDINGS = BlicketFindings()
AUDIT = FindingsAudit("blickets")
CHECK = ItemChecks("blickets", SOUNDNESS)
