"""Items as solvers and models may see them: under public ids, with the fields that their benchmark declares public."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from calibrant.bench.core.benchmark import Benchmark
from calibrant.bench.scoring.ids import PublicIds
from calibrant.dsl.errors import CalibrantError
from calibrant.dsl.item import Item

I = TypeVar("I", bound=Item[Any, Any])  # noqa: E741  # an item


class PublicPool:
    """The items of a pool file by either id, and what may be shown of them."""

    def __init__(self, benchmark: Benchmark[Any], path: Path) -> None:
        self.benchmark = benchmark
        self.items: Any = benchmark.items.read_pool(path)
        self.ids = PublicIds.of_pool(path, self.items.items)

    def item(self, name: str | None) -> Any:
        """Return the item of that id, public or the pool's own, by default the first; `CalibrantError` if none."""
        return self.benchmark.items.find(self.items, None if name is None else self.own_id(name))

    def own_id(self, name: str) -> str:
        """Return the pool's id for either id; an unknown name as it is."""
        return self.ids.item_id(name) or name

    def shown(self, item: I) -> I:
        """Return the item under its public id."""
        return with_id(item, self.ids.public(item.id))

    def check(self, names: Iterable[str]) -> frozenset[str]:
        """Return the pool's ids of these names; `CalibrantError` for one that is unknown."""
        return frozenset(self.item(name).id for name in names)


def with_id(item: I, item_id: str) -> I:
    """Return the item under another id."""
    changed: I = replace(item, id=item_id)  # type: ignore[type-var]  # items of all benchmarks are dataclasses
    return changed


def public_record(benchmark: Benchmark[Any], item: Any) -> dict[str, Any]:
    """Return what of an item's native record may be shown, in its order, ready for JSON."""
    record = benchmark.items.shown_record(item)
    undeclared = record.keys() - set(benchmark.items.public_fields)
    if undeclared:
        raise CalibrantError(f"fields that are not declared public: {', '.join(sorted(undeclared))}")
    return record
