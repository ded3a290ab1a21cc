"""Variants of ReplaySCM items: other names of variables, orders of worlds and rows, notations and words.

Prompts list columns by name, so another order of them would show nothing else. Readings of episodes are drawn by the
names of variables and in the order of worlds: they have other words alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import chain
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

_EXTENSIONS = ("hidden", "asked")  # lists in the order of roots or variables


class ScmVariants(Variable):
    """Equivalent are the same rows under the same interventions, with constants as assigned or the other way round."""

    kinds = ("rename", "rows", "worlds", "equivalent", "words")
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
        copy = json.loads(json.dumps(record))
        worlds = [copy["training"], copy["sealed"]["heldout"]]
        if kind == "rename":
            names = permuted(copy["variables"], random)
            return Variant(rename_json(copy, names, self.fixed), names) if names else None
        if kind == "equivalent":
            return _rewrite_worlds(copy, random)
        if kind == "worlds":
            copy["training"], copy["sealed"]["heldout"] = (shuffled(listed, random) for listed in worlds)
            return Variant(copy)
        return _with_rows(copy, random)

    def normal_form(self, record: Record, kind: str) -> Any:
        names = record["variables"]
        columns = sorted(range(len(names)), key=names.__getitem__)

        def normal_world(world: Record) -> str:
            rows = [[unit, "".join(row[k] for k in columns)] for unit, row in _rows(record, world)]
            rest = {key: world[key] for key in world if key not in ("units", "id")}
            normal = {**rest, "rows": sorted(rows), "assigned": sorted(world.get("assigned", ()))}
            return json.dumps(normal, sort_keys=True)

        def normal_rows(world: Record) -> list[str]:
            clamped = sorted({*world.get("assigned", ()), *world.get("constants", {})})
            environment = world.get("environment", {})
            return [
                json.dumps([clamped, unit, "".join(row[k] for k in columns), environment], sort_keys=True)
                for unit, row in _rows(record, world)
            ]

        training = record["training"]
        worlds = (
            map(normal_world, training) if kind != "equivalent" else chain.from_iterable(map(normal_rows, training))
        )
        sealed, is_extended = record["sealed"], any(record.get(key) for key in _EXTENSIONS)
        left_out = {"id", "variables", "units", "sealed", *([WORDING] if kind == "words" else ())}
        hidden = {key: value for key, value in sealed.items() if key not in ("labels", "heldout")}
        return {key: value for key, value in record.items() if key not in left_out} | {
            "names": sorted(names),
            "training": sorted(worlds),
            "heldout": sorted(map(normal_world, sealed.get("heldout", ()))),
            "disclosure": record["disclosure"] if is_extended else _sorted_lists(record["disclosure"]),
            "hidden": hidden,
        }


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


def _rows(record: Record, world: Record) -> Iterator[tuple[str, str]]:
    return zip(world.get("units") or record["units"], world["rows"], strict=True)


def _rewrite_worlds(copy: dict[str, Any], random: Random) -> Variant | None:
    """Return the item with constants of training worlds as assigned, or an assigned world split into constant ones."""
    worlds = [world for world in copy["training"] if world.get("constants")]
    if worlds:
        for world in random.sample(worlds, random.randint(1, len(worlds))):
            world["assigned"] = [*world.get("assigned", ()), *world.pop("constants")]
        return Variant(copy)
    places = [k for k, world in enumerate(copy["training"]) if world.get("assigned")]
    if not places:
        return None
    place = random.choice(places)
    copy["training"][place : place + 1] = _split(copy, copy["training"][place])
    return Variant(copy)


def _split(copy: Record, world: Record) -> list[dict[str, Any]]:
    """Return a world for each combination of values that an assigned intervention has in some row."""
    columns = [copy["variables"].index(name) for name in world["assigned"]]
    rows: dict[str, list[tuple[str, str]]] = {}
    for unit, row in _rows(copy, world):
        rows.setdefault("".join(row[k] for k in columns), []).append((unit, row))
    rest = {key: value for key, value in world.items() if key != "assigned"}
    return [
        {
            **rest,
            "id": f"{world['id']}_{number}",
            "rows": [row for _, row in listed],
            "units": [unit for unit, _ in listed],
            "constants": dict(zip(world["assigned"], map(int, values), strict=True)),
        }
        for number, (values, listed) in enumerate(sorted(rows.items()), 1)
    ]


def _sorted_lists(disclosure: Record) -> dict[str, Any]:
    """Return a disclosure with its sets sorted; orders and sequences of blocks stay."""
    return {
        key: sorted(value) if key == "roots" else [sorted(block) for block in value] if key == "blocks" else value
        for key, value in disclosure.items()
    }


VARIANTS = ScmVariants()
