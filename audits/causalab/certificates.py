"""Names of claims about laboratories, and the evidence that their certificates are about."""

from __future__ import annotations

from typing import Any

import msgspec

from calibrant.dsl.causalab.item import LabItem
from calibrant.dsl.causalab.mechanism import Mechanism
from calibrant.dsl.causalab.records import record_of_item

UNWINNABLE = "causalab-unwinnable"
CANNOT_MATTER = "causalab-edges-cannot-matter"
FREQUENCY_DECIDED = "causalab-frequency-decided"
GRAPH_DECIDED = "causalab-graph-decided"
AMBIGUOUS = "causalab-ambiguous"
NOT_A_MEAN = "causalab-not-a-mean"


def item_evidence(item: LabItem) -> dict[str, Any]:
    """Return the item's native record without its id and its labels, which no claim is about."""
    record: dict[str, Any] = msgspec.to_builtins(record_of_item(item))
    record["sealed"].pop("labels", None)
    return {key: value for key, value in record.items() if key != "id"}


def equations_record(mechanism: Mechanism) -> dict[str, Any]:
    """Return a mechanism as JSON: node -> base (the frequency's) and terms."""
    return {
        node: {"base": e.base, "terms": [[term.parent, term.power, term.weight] for term in sorted(e.terms)]}
        for node, e in sorted(mechanism.equations.items())
    }
