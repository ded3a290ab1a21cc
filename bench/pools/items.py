"""Items of a pool by their ids, for any benchmark."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any

from bench.benchmarks.base import ItemPool
from dsl.errors import CalibrantError, shown
from dsl.item import Item
from dsl.stored_items import items_by_id


def item_of(pool: ItemPool[Item[Any, Any]], instance: str | None) -> Item[Any, Any]:
    """The item of that id, or the first; `CalibrantError` names close ids, or says that the pool is empty."""
    if not len(pool):
        raise CalibrantError(f"{pool.name}: there is no instance in it")
    if instance is None:
        return pool.items[0]
    found = items_by_id(pool.items)
    if instance not in found:
        close = get_close_matches(instance, found, 3) or list(found)[:3]
        raise CalibrantError(f"{pool.name}: no instance {shown(instance)}; there are {', '.join(map(shown, close))}")
    return found[instance]
