"""Variants of ReplaySCM items: other names of variables, other orders of worlds and rows.

Prompts list columns by name, so another order of them would show nothing else.
"""

from __future__ import annotations

import json
from random import Random
from typing import Any

from calibrant.bench.variants.contract import Record, Variable, Variant, permuted, rename_json, shuffled


class ScmVariants(Variable):
    """Implements Variable (bench.variants.contract)."""

    kinds = ("rename", "rows", "worlds")
    fixed = frozenset({"id", "labels", "kind", "type", "operators", "units"})

    def vary(self, record: Record, kind: str, random: Random) -> Variant | None:
        copy = json.loads(json.dumps(record))
        if "heldout" not in copy["sealed"] or not _is_plain(copy):
            return None
        worlds = [copy["training"], copy["sealed"]["heldout"]]
        if kind == "rename":
            names = permuted(copy["variables"], random)
            return Variant(rename_json(copy, names, self.fixed), names)
        if kind == "worlds":
            copy["training"], copy["sealed"]["heldout"] = (shuffled(listed, random) for listed in worlds)
            return Variant(copy)
        places = shuffled(range(len(copy["units"])), random)
        for world in (world for listed in worlds for world in listed):
            world["rows"] = [world["rows"][k] for k in places]
        copy["units"] = [copy["units"][k] for k in places]
        return Variant(copy)

    def normal_form(self, record: Record, kind: str) -> Any:
        names = record["variables"]
        columns = sorted(range(len(names)), key=names.__getitem__)

        def normal_world(world: Record) -> str:
            rows = {
                unit: "".join(row[k] for k in columns) for unit, row in zip(record["units"], world["rows"], strict=True)
            }
            assigned = {key: sorted(value) for key, value in world.items() if isinstance(value, list) and key != "rows"}
            return json.dumps({**world, **assigned, "rows": rows, "id": ""}, sort_keys=True)

        sealed = record["sealed"]
        rest = {key: value for key, value in record.items() if key not in ("id", "variables", "units", "sealed")}
        hidden = {key: value for key, value in sealed.items() if key not in ("labels", "heldout")}
        return rest | {
            "names": sorted(names),
            "training": sorted(map(normal_world, record["training"])),
            "heldout": sorted(map(normal_world, sealed.get("heldout", ()))),
            "disclosure": json.dumps(_sorted_lists(record["disclosure"]), sort_keys=True),
            "hidden": hidden,
        }


def _is_plain(record: Record) -> bool:
    """Return whether all worlds have the item's units, a row of each."""
    worlds = [*record["training"], *record["sealed"]["heldout"]]
    return all("units" not in world and len(world["rows"]) == len(record["units"]) for world in worlds)


def _sorted_lists(disclosure: Record) -> dict[str, Any]:
    """Return a disclosure with its sets sorted; orders and sequences of blocks stay."""
    return {
        key: sorted(value) if key == "roots" else [sorted(block) for block in value] if key == "blocks" else value
        for key, value in disclosure.items()
    }


VARIANTS = ScmVariants()
