"""Variants of ReplaySCM items: other names of variables, orders of worlds and rows, notations and words.

Prompts list columns by name, so another order of them would show nothing else. Readings of episodes are drawn by the
names of variables and in the order of worlds: their items have no variants.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
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

_EXTENSIONS = ("hidden", "asked")  # lists in the order of roots or variables


class ScmVariants(Variable):
    """Equivalent is a training world whose constants are written as assigned: the rows show the same values.

    Names is an item of a published network, g1, g2, ... replaced by the names that the network has.
    """

    kinds = ("rename", "rows", "worlds", "equivalent", "words", "names")
    fixed = frozenset({"id", "labels", "kind", "type", "operators", "units", WORDING})

    def absence(self, record: Record) -> str:
        if record.get("allowance"):
            return "items of episodes have no variants: their readings are drawn by the names of variables"
        return "" if "heldout" in record["sealed"] else "an item without held-out worlds has no variants"

    def vary(self, record: Record, kind: str, random: Random) -> Variant | None:
        if self.absence(record):
            return None
        if kind == "words":
            return rephrase(record)
        if kind == "names":
            names = network_names(record["sealed"].get("labels", {}))
            is_neutral = bool(names) and names.keys() == set(record["variables"])
            return Variant(rename_json(record, names, self.fixed), names) if is_neutral else None
        copy = json.loads(json.dumps(record))
        worlds = [copy["training"], copy["sealed"]["heldout"]]
        if kind == "rename":
            names = permuted(copy["variables"], random)
            return Variant(rename_json(copy, names, self.fixed), names) if names else None
        if kind == "equivalent":
            return _as_assigned(copy, random)
        if kind == "worlds":
            copy["training"], copy["sealed"]["heldout"] = (shuffled(listed, random) for listed in worlds)
            return Variant(copy)
        return _with_rows(copy, random)

    def normal_form(self, record: Record, kind: str) -> Any:
        names = record["variables"]
        columns = sorted(range(len(names)), key=names.__getitem__)

        def normal_world(world: Record) -> str:
            units = world.get("units") or record["units"]
            rows = [[unit, "".join(row[k] for k in columns)] for unit, row in zip(units, world["rows"], strict=True)]
            assigned, constants = sorted(world.get("assigned", ())), world.get("constants", {})
            if kind == "equivalent":
                assigned, constants = sorted({*assigned, *constants}), {}
            rest = {key: world[key] for key in world if key not in ("units", "id")}
            normal = {**rest, "rows": sorted(rows), "assigned": assigned, "constants": constants}
            return json.dumps(normal, sort_keys=True)

        sealed, is_extended = record["sealed"], any(record.get(key) for key in _EXTENSIONS)
        hidden = {key: value for key, value in sealed.items() if key not in ("labels", "heldout")}
        return self.other_fields(record, kind, ("id", "variables", "units", "sealed")) | {
            "names": sorted(names),
            "training": sorted(map(normal_world, record["training"])),
            "heldout": sorted(map(normal_world, sealed.get("heldout", ()))),
            "disclosure": record["disclosure"] if is_extended else _sorted_lists(record["disclosure"]),
            "hidden": hidden,
        }


def network_names(labels: Mapping[str, str]) -> dict[str, str]:
    """Return the published name of each neutral one of an item of a network; none of other items."""
    return {f"g{number}": name for number, name in enumerate(labels.get("names", "").split(), start=1)}


def _with_rows(copy: dict[str, Any], random: Random) -> Variant:
    """Return the item with the rows of all worlds in one other order, of worlds with units of their own in another."""
    places = shuffled(range(len(copy["units"])), random)
    for world in (*copy["training"], *copy["sealed"]["heldout"]):
        order = shuffled(range(len(world["rows"])), random) if world.get("units") else places
        world["rows"] = [world["rows"][k] for k in order]
        if world.get("units"):
            world["units"] = [world["units"][k] for k in order]
    copy["units"] = [copy["units"][k] for k in places]
    return Variant(copy)


def _as_assigned(copy: dict[str, Any], random: Random) -> Variant | None:
    """Return the item with constants of at least one training world as assigned; None where no world has some."""
    worlds = [world for world in copy["training"] if world.get("constants")]
    for world in random.sample(worlds, random.randint(1, len(worlds))) if worlds else ():
        world["assigned"] = [*world.get("assigned", ()), *world.pop("constants")]
    return Variant(copy) if worlds else None


def _sorted_lists(disclosure: Record) -> dict[str, Any]:
    """Return a disclosure with its sets sorted; orders and sequences of blocks stay."""
    return {
        key: sorted(value) if key == "roots" else [sorted(block) for block in value] if key == "blocks" else value
        for key, value in disclosure.items()
    }


VARIANTS = ScmVariants()
