"""Hardening of CauSim questions: the least further values that leave one answer."""

from __future__ import annotations

from calibrant.audits.causim.generation import harden_item as least_values
from calibrant.bench.pools.capabilities import HardenedItem
from calibrant.bench.pools.hardened_items import ItemHardening
from calibrant.dsl.causim.item import CausimItem
from calibrant.solvers.outcome import Found, Outcome


def harden_item(item: CausimItem) -> Outcome[HardenedItem]:
    """Return the question with the least more evidence that leaves one answer; reads what is sealed."""
    outcome = least_values(item)
    if not isinstance(outcome, Found):
        return outcome
    hardened, certificate = outcome.value
    return Found(HardenedItem(hardened, tuple(certificate.data["observe"]), certificate))


HARDEN = ItemHardening("causim", harden_item)
