"""Audits of logic models: proved findings about an item, and their certificates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from calibrant.audits.logic.items import SOUNDNESS
from calibrant.bench.pools.findings_audit import FindingsAudit
from calibrant.bench.pools.soundness import ItemChecks
from calibrant.dsl.logic.item import LogicItem
from calibrant.dsl.logic.trajectories import is_trajectory_item

if TYPE_CHECKING:
    from calibrant.audits.claims import Finding, Verifier
    from calibrant.audits.search import Examiner


class LogicFindings:
    """Implements Verifiable (bench.core.capabilities)."""

    @property
    def verifiers(self) -> Mapping[str, Verifier]:
        from calibrant.audits.logic.claims_of_trajectories import TRAJECTORY_VERIFIERS
        from calibrant.audits.logic.verify import VERIFIERS

        return {**VERIFIERS, **TRAJECTORY_VERIFIERS}

    @property
    def examiners(self) -> Mapping[str, Examiner]:
        from calibrant.audits.logic.cross_examination import EXAMINERS

        return EXAMINERS

    def findings(self, item: LogicItem) -> Iterator[Finding]:
        from calibrant.audits.logic.items import item_findings

        return item_findings(item)

    def evidence(self, item: LogicItem) -> object:
        from calibrant.audits.logic.claims_of_trajectories import trajectory_evidence
        from calibrant.audits.logic.verify import evidence_of

        return trajectory_evidence(item.task) if is_trajectory_item(item) else evidence_of(item.task)


FINDINGS = LogicFindings()
AUDIT = FindingsAudit("logic")
CHECK = ItemChecks("logic", SOUNDNESS)
