"""Variants of detectors: other names of the objects, another order of them, other words, a first reading of nothing.

Evidence is what a system asks for, but for the reading before the first move. An empty detector is INACTIVE by every
rule, order and switch and with any noise, so the item that shows this reading leaves the same hypotheses.
"""

from __future__ import annotations

from random import Random
from typing import Any

from calibrant.bench.variants import (
    WORDING,
    Record,
    Variable,
    Variant,
    permuted,
    rename_json,
    rephrase,
    shuffled,
)


class BlicketVariants(Variable):
    """Implements Variable (bench.variants)."""

    kinds = ("rename", "columns", "equivalent", "words")
    fixed = frozenset(
        {"id", "labels", "condition", "rule", "count", "order_reading", "start", "prompt", "format", "view", WORDING}
    )

    def vary(self, record: Record, kind: str, random: Random) -> Variant | None:
        if kind == "columns":
            return Variant({**record, "objects": shuffled(record["objects"], random)})
        if kind == "words":
            return rephrase(record)
        if kind == "equivalent":
            return _with_empty_start(record)
        names = permuted(record["objects"], random)
        renamed = rename_json(record, names, self.fixed)
        return Variant(renamed | {"objects": list(record["objects"])}, names)

    def normal_form(self, record: Record, kind: str) -> Any:
        sealed = {key: _sorted_rule(value) for key, value in record["sealed"].items()}
        form = self.other_fields(record, kind, ("id", "labels")) | {"objects": sorted(record["objects"])}
        if kind == "equivalent" and sealed.get("start_on") == []:
            del sealed["start_on"]
            form["start"] = "empty"
        return form | {"sealed": sealed}


def _with_empty_start(record: Record) -> Variant | None:
    """Return the item with a reading of the empty detector at the start, or without it; None if objects are on it."""
    sealed = dict(record["sealed"])
    if sealed.get("start_on"):
        return None
    if "start_on" in sealed:
        del sealed["start_on"]
        return Variant({**record, "start": "empty", "sealed": sealed})
    return Variant({**record, "start": "random", "sealed": {**sealed, "start_on": []}})


def _sorted_rule(value: Any) -> Any:
    return (
        {**value, "blickets": sorted(value["blickets"])} if isinstance(value, dict) and "blickets" in value else value
    )


VARIANTS = BlicketVariants()
