"""Variants of laboratories: other names of the properties, another order of the records."""

from __future__ import annotations

import json
from random import Random
from typing import Any

from calibrant.bench.variants.contract import Record, Variable, Variant, permuted, rename_json, shuffled


class LabVariants(Variable):
    """Implements Variable (bench.variants.contract)."""

    kinds = ("rename", "rows")
    fixed = frozenset({"id", "labels", "suite", "family"})

    def vary(self, record: Record, kind: str, random: Random) -> Variant | None:
        if kind == "rename":
            names = permuted(record["properties"], random)
            renamed = rename_json(record, names, self.fixed)
            return Variant(renamed | {"properties": sorted(renamed["properties"])}, names) if names else None
        places = shuffled(range(len(record["records"])), random)
        if len(places) < 2:
            return None
        bases = record["sealed"].get("bases")
        sealed = dict(record["sealed"])
        if isinstance(bases, dict) and "records" in bases:
            sealed["bases"] = {**bases, "records": [bases["records"][k] for k in places]}
        return Variant({**record, "records": [record["records"][k] for k in places], "sealed": sealed})

    def normal_form(self, record: Record, kind: str) -> Any:
        sealed = dict(record["sealed"])
        bases = dict(sealed.get("bases") or {})
        hidden = bases.pop("records", None) or [None] * len(record["records"])
        pairs = sorted(json.dumps(pair, sort_keys=True) for pair in zip(record["records"], hidden, strict=True))
        equations = {
            name: {**equation, "terms": sorted(map(json.dumps, equation.get("terms", ())))}
            for name, equation in sealed.get("equations", {}).items()
        }
        rest = {key: value for key, value in record.items() if key not in ("id", "records", "properties", "sealed")}
        hidden_part = {key: value for key, value in sealed.items() if key not in ("labels", "bases", "equations")}
        return rest | {
            "properties": sorted(record["properties"]),
            "pairs": pairs,
            "bases": bases,
            "equations": equations,
            "hidden": hidden_part,
        }


VARIANTS = LabVariants()
