"""Items of the pools at hand, for what a report reads off them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from calibrant.bench.core.samples import Item
from calibrant.dsl.pool_text import file_digest
from calibrant.dsl.stored_items import items_by_id


def items_of_pools(name: str, pools: Sequence[Path]) -> dict[Item, Any]:
    """Return the items of one benchmark's pools, by digest of the pool and id."""
    from calibrant.bench.core.registry import benchmark_of

    items: dict[Item, Any] = {}
    for path in pools:
        of = benchmark_of(path)
        if of.name == name:
            digest = file_digest(path)
            items |= {
                (digest, instance): item for instance, item in items_by_id(of.items.read_pool(path).items).items()
            }
    return items
