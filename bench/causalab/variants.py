"""Variants of laboratories: other names, orders and words, and an earlier crystal that is shown twice."""

from __future__ import annotations

import json
from collections.abc import Sequence
from random import Random
from typing import Any

from calibrant.bench.variants import (
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
    """Implements Variable (bench.variants)."""

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
            return _repeat_record(record, random)
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
        if kind == "equivalent":
            pairs = sorted(set(pairs))
        equations = {
            name: {**equation, "terms": sorted(map(json.dumps, equation.get("terms", ())))}
            for name, equation in sealed.get("equations", {}).items()
        }
        hidden_part = {key: value for key, value in sealed.items() if key not in ("labels", "bases", "equations")}
        return self.other_fields(record, kind, ("id", "records", "properties", "sealed")) | {
            "properties": sorted(record["properties"]),
            "pairs": pairs,
            "bases": bases,
            "equations": equations,
            "hidden": hidden_part,
        }

    def map_answer(self, answer: Any, stated: CopyMap) -> Any:
        coefficients = {f"{c}_{old}": f"{c}_{new}" for c in ("c", "c2") for old, new in stated.names.items()}
        return rename_json(answer, {**stated.names, **coefficients})


def _repeat_record(record: Record, random: Random) -> Variant | None:
    """Return the item with one of the earlier crystals shown twice; None without any."""
    if not record["records"]:
        return None
    place, to = random.randrange(len(record["records"])), random.randint(0, len(record["records"]))
    bases = record["sealed"]["bases"]
    sealed = {**record["sealed"], "bases": {**bases, "records": _repeated(bases["records"], place, to)}}
    return Variant({**record, "records": _repeated(record["records"], place, to), "sealed": sealed})


def _repeated(listed: Sequence[Any], place: int, to: int) -> list[Any]:
    return [*listed[:to], listed[place], *listed[to:]]


VARIANTS = LabVariants()
