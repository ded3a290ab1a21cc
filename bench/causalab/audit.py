"""Audits of CausaLab: proved findings about an item, and their certificates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from calibrant.audits.causalab.items import SOUNDNESS
from calibrant.bench.pools.findings_audit import FindingsAudit
from calibrant.bench.pools.soundness import ItemChecks
from calibrant.dsl.causalab.item import LabItem

if TYPE_CHECKING:
    from calibrant.audits.claims import Finding, Verifier
    from calibrant.audits.search import Examiner


class LabFindings:
    """Implements Verifiable (bench.core.capabilities)."""

    @property
    def verifiers(self) -> Mapping[str, Verifier]:
        from calibrant.audits.causalab.verify import VERIFIERS

        return VERIFIERS

    @property
    def examiners(self) -> Mapping[str, Examiner]:
        from calibrant.audits.causalab.cross_examination import EXAMINERS

        return EXAMINERS

    def findings(self, item: LabItem) -> Iterator[Finding]:
        from calibrant.audits.causalab.items import item_findings

        yield from item_findings(item)

    def evidence(self, item: LabItem) -> object:
        from calibrant.audits.causalab.verify import item_evidence

        return item_evidence(item)


FINDINGS = LabFindings()
AUDIT = FindingsAudit("causalab")
CHECK = ItemChecks("causalab", SOUNDNESS)
