"""The items of a pool file as people play them: shown under public ids, recorded under the pool's own."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from calibrant.bench.core.benchmark import Benchmark
from calibrant.bench.core.capabilities import AIDS, WORDS
from calibrant.bench.core.registry import benchmark_of
from calibrant.bench.core.words import Words
from calibrant.bench.pools.public_items import PublicPool
from calibrant.dsl.records import file_digest, item_ids


class ItemKey(NamedTuple):
    """An item of a pool. instance: the pool's own id."""

    pool_digest: str
    instance: str


class PlayPool:
    """A pool file whose items people play."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.benchmark: Benchmark[Any] = benchmark_of(path)
        self.words: Words[Any] = self.benchmark.require(WORDS)
        self.public = PublicPool(self.benchmark, path)
        self.digest = file_digest(path)

    @property
    def name(self) -> str:
        """The pool's name."""
        return str(self.public.items.name)

    @cached_property
    def indices(self) -> dict[str, int]:
        """Index of each item in the pool, by the pool's own id."""
        return {instance: index for index, instance in enumerate(item_ids(self.public.items.items))}

    def item(self, name: str | None) -> Any:
        """Return the item of either id, by default the first; `CalibrantError` if there is none."""
        return self.public.item(name)

    def check_aid(self, aid: Path) -> None:
        """Refuse an aid that these items do not have, or a file that is none."""
        self.benchmark.require(AIDS)(self.public.shown(self.item(None)), (), aid)

    def key(self, name: str | None) -> ItemKey:
        """Return the key of the item of either id."""
        return ItemKey(self.digest, self.item(name).id)
