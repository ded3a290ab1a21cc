"""Audits of CauSim: what can be proved about an item, and what its certificates are about."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from calibrant.audits.causim.soundness import SOUNDNESS
from calibrant.bench.pools.findings_audit import FindingsAudit
from calibrant.bench.pools.soundness import ItemChecks
from calibrant.dsl.causim.item import CausimItem

if TYPE_CHECKING:
    from calibrant.audits.claims import Verifier
    from calibrant.audits.finding import Finding


class CausimFindings:
    """Implements Verifiable (bench.core.capabilities)."""

    @property
    def verifiers(self) -> Mapping[str, Verifier]:
        from calibrant.audits.causim.certificates import VERIFIERS

        return VERIFIERS

    def findings(self, item: CausimItem) -> Iterator[Finding]:
        from calibrant.audits.causim.items import item_findings

        return item_findings(item)

    def evidence(self, item: CausimItem) -> object:
        from calibrant.audits.causim.certificates import evidence_of

        return evidence_of(item.task.source, item.task.question, item.sealed.world)


FINDINGS = CausimFindings()
AUDIT = FindingsAudit("causim")
CHECK = ItemChecks("causim", SOUNDNESS)
