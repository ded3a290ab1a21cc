"""Copies of items by the kinds of `calibrant variants`, as the measurement of renamings takes them."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from random import Random
from typing import Any, TypeAlias

import msgspec

from calibrant.bench.core.benchmark import Benchmark
from calibrant.bench.lab.renamings.renamed import Alike, RenamedItem
from calibrant.bench.variants.contract import VARIANTS, CopyMap

Change: TypeAlias = Callable[[Any, Random], RenamedItem | None]


def changer(of: Benchmark[Any], kind: str) -> Change:
    """Return the function that changes an item by a kind; it returns None where the item has no such copy."""
    variable = of.require(VARIANTS)
    alike = getattr(import_module(f"calibrant.bench.lab.renamings.{of.name}"), "alike", lambda _: Alike())

    def change(item: Any, random: Random) -> RenamedItem | None:
        variant = variable.vary(msgspec.to_builtins(of.items.record(item)), kind, random)
        if variant is None:
            return None
        values = {key: dict(moved) for key, moved in variant.values.items()}
        stated = CopyMap(item.id, kind, dict(variant.names), values)
        copy = of.items.item_of_record(variant.record | {"id": item.id})
        roles, value_roles = alike(copy)
        return RenamedItem(
            copy,
            {},
            roles=roles,
            value_roles=value_roles,
            map_answer=lambda answer: variable.map_answer(answer, stated),
        )

    return change
