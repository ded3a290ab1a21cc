"""Variants of detectors: other names of the objects, another order of them, other words of the prompt.

The evidence is what a system asks for, so no item has an equivalent one.
"""

from __future__ import annotations

from random import Random
from typing import Any

from calibrant.bench.variants.contract import (
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
    """Implements Variable (bench.variants.contract)."""

    kinds = ("rename", "columns", "words")
    fixed = frozenset(
        {"id", "labels", "condition", "rule", "count", "order_reading", "start", "prompt", "format", "view", WORDING}
    )

    def vary(self, record: Record, kind: str, random: Random) -> Variant | None:
        if kind == "columns":
            return Variant({**record, "objects": shuffled(record["objects"], random)})
        if kind == "words":
            return rephrase(record)
        names = permuted(record["objects"], random)
        renamed = rename_json(record, names, self.fixed)
        return Variant(renamed | {"objects": list(record["objects"])}, names)

    def normal_form(self, record: Record, kind: str) -> Any:
        return self.other_fields(record, kind, ("id", "labels", "sealed")) | {
            "objects": sorted(record["objects"]),
            "sealed": {key: _sorted_rule(value) for key, value in record["sealed"].items()},
        }


def _sorted_rule(value: Any) -> Any:
    return (
        {**value, "blickets": sorted(value["blickets"])} if isinstance(value, dict) and "blickets" in value else value
    )


VARIANTS = BlicketVariants()
