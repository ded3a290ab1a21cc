"""Audits of CauSim: proved findings about an item, and their certificates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from calibrant.audits.causim.items import SOUNDNESS
from calibrant.audits.causim.training import harden_item as least_values
from calibrant.bench.causim.options import CheckOptions
from calibrant.bench.core.options import OptionError
from calibrant.bench.pools.capabilities import HardenedItem
from calibrant.bench.pools.findings_audit import FindingsAudit
from calibrant.bench.pools.generated import ItemHardening
from calibrant.bench.pools.soundness import CheckReport, ItemChecks
from calibrant.dsl.causim.item import CausimItem
from calibrant.solvers.outcome import Found, Outcome

if TYPE_CHECKING:
    from calibrant.audits.claims import Finding, Verifier
    from calibrant.audits.search import Examiner


class CausimFindings:
    """Implements Verifiable (bench.core.capabilities)."""

    @property
    def verifiers(self) -> Mapping[str, Verifier]:
        from calibrant.audits.causim.verify import VERIFIERS

        return VERIFIERS

    @property
    def examiners(self) -> Mapping[str, Examiner]:
        from calibrant.audits.causim.cross_examination import EXAMINERS

        return EXAMINERS

    def findings(self, item: CausimItem) -> Iterator[Finding]:
        from calibrant.audits.causim.items import item_findings

        return item_findings(item)

    def evidence(self, item: CausimItem) -> object:
        from calibrant.audits.causim.verify import evidence_of

        return evidence_of(item.task.source, item.task.question, item.sealed.world)


class PoolChecks(ItemChecks):
    """Checks of pools; options of `pool check` that are about program files do not apply to them."""

    def check(self, pools: Sequence[Path], options: Any) -> Iterator[CheckReport]:
        if options != CheckOptions():
            reason = f"they apply to programs; {pools[0].name} is a pool"
            raise OptionError(reason, "--nodes, --topology, --reference, --map")
        return super().check(pools, options)


FINDINGS = CausimFindings()
AUDIT = FindingsAudit("causim")
CHECK = PoolChecks("causim", SOUNDNESS)


# --- Hardening of CauSim questions: the fewest further observed values that leave one answer --------------------------


def harden_item(item: CausimItem) -> Outcome[HardenedItem]:
    """Return the question with the fewest further observed values that leave one answer; reads the sealed world."""
    outcome = least_values(item)
    if not isinstance(outcome, Found):
        return outcome
    hardened, certificate = outcome.value
    return Found(HardenedItem(hardened, tuple(certificate.data["observe"]), certificate))


HARDEN = ItemHardening("causim", harden_item)
