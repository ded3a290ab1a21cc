"""Pools that a run reads once: what `all` stands for depends on their items, then every protocol runs on them."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

from calibrant.bench.core.benchmark import Benchmark
from calibrant.bench.core.items import ItemPool
from calibrant.dsl.item import Item
from calibrant.dsl.records import file_digest

MAX_POOLS = 8  # a run has few; those beyond are read again


def read_pool_once(benchmark: Benchmark[Any], path: Path) -> tuple[str, ItemPool[Item[Any, Any]]]:
    """Return the digest and the pool of a file; a pool with this digest is not read again."""
    digest = file_digest(path)
    return digest, _pool(benchmark, path, digest)


@lru_cache(maxsize=MAX_POOLS)
def _pool(benchmark: Benchmark[Any], path: Path, digest: str) -> ItemPool[Item[Any, Any]]:
    return benchmark.items.read_pool(path)  # YAML takes seconds
