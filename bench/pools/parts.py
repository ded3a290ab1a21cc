"""Some items of a pool as a pool of their own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from calibrant.bench.core.benchmark import Benchmark
from calibrant.bench.core.registry import is_native_pool
from calibrant.dsl.item import Item, Pool
from calibrant.dsl.records import plain_pool, pool_lines


def write_part(of: Benchmark[Any], pool: Any, items: Iterable[Item[Any, Any]], target: Path) -> None:
    """Write these items of a pool that `read_pool` gave, with its name and metadata, in the native format."""
    of.items.write_pool(Pool(pool.name, of.name, tuple(items), dict(pool.metadata)), target)


def write_indices(benchmark: Benchmark[Any], pool: Any, source: Path, indices: Sequence[int], target: Path) -> None:
    """Write the items at these indices of the pool that `source` holds; lines of a native pool are copied."""
    if not is_native_pool(source):
        write_part(benchmark, pool, (pool.items[index] for index in indices), target)
        return
    write_part(benchmark, pool, (), target)
    with plain_pool(source) as file, target.open("ab") as part:
        places = [(line.place, line.size) for line in pool_lines(file)][1:]  # the first is the header
        for index in indices:
            start, size = places[index]
            file.seek(start)
            part.write(file.read(size).rstrip(b"\r\n") + b"\n")
