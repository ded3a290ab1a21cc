"""Consistency of a system on a pool of variants: share of originals whose copies are all right or all wrong."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from calibrant.bench.core.registry import benchmark_of
from calibrant.bench.scoring.ids import PublicIds
from calibrant.bench.suites.rescoring import CellResult
from calibrant.bench.variants.pool import KEY, read_maps


def share_consistent(pool: Path, result: CellResult) -> float | None:
    """Return the share of originals whose copies in a pool score alike; None for a pool that holds no variants."""
    originals = original_by_id(pool)
    if originals is None:
        return None
    rights: dict[str, set[float]] = {}
    for item in result.items:
        rights.setdefault(originals[item.id], set()).add(item.right)
    return sum(len(values) == 1 for values in rights.values()) / len(rights)


@lru_cache(maxsize=16)
def original_by_id(pool: Path) -> Mapping[str, str] | None:
    """Return the original of each copy by its public id."""
    content: Any = benchmark_of(pool).items.read_pool(pool)
    if KEY not in content.metadata:
        return None
    public = PublicIds.of_pool(pool, content.items)
    return {public.public(name): stated.of for name, stated in read_maps(pool).copies.items()}
