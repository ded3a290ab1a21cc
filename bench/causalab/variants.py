"""Variants of laboratories: other names, orders and words, and earlier crystals as the lines of a series."""

from __future__ import annotations

import json
from random import Random
from typing import Any

from calibrant.bench.variants.contract import (
    WORDING,
    CopyMap,
    Record,
    Variable,
    Variant,
    permuted,
    rename_json,
    rephrase,
    shuffled,
)


class LabVariants(Variable):
    """Implements Variable (bench.variants.contract)."""

    kinds = ("rename", "rows", "equivalent", "words")
    fixed = frozenset({"id", "labels", "suite", "family", WORDING})

    def vary(self, record: Record, kind: str, random: Random) -> Variant | None:
        if kind == "rename":
            names = permuted(record["properties"], random)
            renamed = rename_json(record, names, self.fixed)
            return Variant(renamed | {"properties": sorted(renamed["properties"])}, names) if names else None
        if kind == "words":
            return rephrase(record)
        if kind == "equivalent":
            return _as_series(record)
        places = shuffled(range(len(record["records"])), random)
        if len(places) < 2:
            return None
        bases = record["sealed"].get("bases")
        sealed = dict(record["sealed"])
        if isinstance(bases, dict) and "records" in bases:
            sealed["bases"] = {**bases, "records": [bases["records"][k] for k in places]}
        return Variant({**record, "records": [record["records"][k] for k in places], "sealed": sealed})

    def normal_form(self, record: Record, kind: str) -> Any:
        if kind == "equivalent":
            record = (_as_series(record) or Variant(dict(record))).record
        sealed = dict(record["sealed"])
        bases = dict(sealed.get("bases") or {})
        hidden = bases.pop("records", None) or [None] * len(record["records"])
        pairs = sorted(json.dumps(pair, sort_keys=True) for pair in zip(record["records"], hidden, strict=True))
        equations = {
            name: {**equation, "terms": sorted(map(json.dumps, equation.get("terms", ())))}
            for name, equation in sealed.get("equations", {}).items()
        }
        left_out = {"id", "records", "properties", "sealed", *([WORDING] if kind == "words" else ())}
        rest = {key: value for key, value in record.items() if key not in left_out}
        hidden_part = {key: value for key, value in sealed.items() if key not in ("labels", "bases", "equations")}
        return rest | {
            "properties": sorted(record["properties"]),
            "pairs": pairs,
            "bases": bases,
            "equations": equations,
            "hidden": hidden_part,
        }

    def map_answer(self, answer: Any, stated: CopyMap) -> Any:
        coefficients = {f"{c}_{old}": f"{c}_{new}" for c in ("c", "c2") for old, new in stated.names.items()}
        return rename_json(answer, {**stated.names, **coefficients})


def _as_series(record: Record) -> Variant | None:
    """Return the item with its earlier crystals as lines of a series without settings; None where it has a series."""
    if record.get("trace") or not record["records"]:
        return None
    sealed = {**record["sealed"], "bases": {**record["sealed"]["bases"], "records": []}}
    return Variant({**record, "records": [], "trace": [{"values": v} for v in record["records"]], "sealed": sealed})


VARIANTS = LabVariants()
