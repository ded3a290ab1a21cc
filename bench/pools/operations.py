"""Base of the public names: operations on items that are alike for every benchmark, through its adapter."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from calibrant.bench.core.benchmark import Benchmark
from calibrant.bench.core.capabilities import FINDINGS
from calibrant.dsl.errors import CalibrantError, short_repr
from calibrant.dsl.item import Item, Pool

if TYPE_CHECKING:
    from calibrant.audits.claims import Finding

I = TypeVar("I", bound=Item[Any, Any])  # noqa: E741  # an item


class ItemApi(Generic[I]):
    """Pools, findings and new items; scores and solvers are of each benchmark.

    kind: what its items are
    """

    def __init__(self, benchmark: Benchmark[I], kind: type[I]) -> None:
        self.benchmark = benchmark
        self.kind = kind

    def load_pool(self, path: Path) -> Pool[I]:
        pool = self.benchmark.items.read_pool(path)
        assert isinstance(pool, Pool)
        return replace(pool, file=path)

    def audit(self, item: I) -> tuple[Finding, ...]:
        return tuple(self.benchmark.require(FINDINGS).findings(self.check_item(item)))

    def generate(self, seed: int, *, suite: str | None = None) -> I:
        """Return a generated item.

        suite: one of the benchmark's suites, by default the first
        """
        (item,) = self.benchmark.suites.draw((self.benchmark.suites.check_name(suite),), seed, 1)
        return item

    def check_item(self, item: object) -> I:
        """Return the item, if it is one of the benchmark's."""
        if not isinstance(item, self.kind):
            raise CalibrantError(f"{short_repr(type(item).__name__)} is no item of {self.benchmark.title}")
        return item
