"""Some items of a pool as a pool of their own."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from calibrant.bench.core.benchmark import Benchmark
from calibrant.dsl.item import Item, Pool


def write_part(of: Benchmark[Any], pool: Any, items: Iterable[Item[Any, Any]], target: Path) -> None:
    """Write these items of a pool that `read_pool` gave, with its name and metadata, in the native format."""
    of.items.write_pool(Pool(pool.name, of.name, tuple(items), dict(pool.metadata)), target)
