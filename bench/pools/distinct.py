"""Items of a pool that ask something new: none repeats another of the pool, or one of other pools."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from calibrant.bench.core.registry import one_benchmark
from calibrant.bench.pools.capabilities import CHECK
from calibrant.bench.pools.parts import write_part
from calibrant.dsl.errors import CalibrantError
from calibrant.dsl.texts.plural import plural


@dataclass(frozen=True)
class DistinctPool:
    """A pool that was written; claims: of each item that was left out, which one it repeats, by id."""

    path: Path
    num_items: int
    claims: Mapping[str, str]

    def lines(self) -> Iterator[str]:
        """Yield the lines of the terminal."""
        items = plural(self.num_items, "items")
        yield f"{items} written to {self.path}; {len(self.claims)} left out that ask what another asks"
        yield from (f"{name}: {claim}" for name, claim in list(self.claims.items())[:1])

    def to_dict(self) -> dict[str, Any]:
        """Return everything, ready for JSON."""
        return {"items": self.num_items, "left_out": dict(self.claims)}


def write_distinct(source: Path, target: Path, others: Sequence[Path]) -> DistinctPool:
    """Write a pool without items that `pool check` calls duplicates of earlier ones, or of items of other pools.

    Of equal items the first stays. `CalibrantError` if none would: a pool has an item.
    """
    of = one_benchmark([*others, source])
    claims = of.require(CHECK).find_repeats([*others, source])
    pool: Any = of.items.read_pool(source)
    items = tuple(item for item in pool.items if item.id not in claims)
    if not items:
        raise CalibrantError(f"{source}: each of its {plural(len(pool.items), 'items')} repeats one of the other pools")
    write_part(of, pool, items, target)
    return DistinctPool(target, len(items), claims)
