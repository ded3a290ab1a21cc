"""A benchmark: its names, and for each capability the address (`module:NAME`) of the object that provides it.

`bench/<benchmark>/benchmark.py` holds one and imports only the keys of capabilities, so listing benchmarks loads no
solver. Capabilities that every benchmark has are properties; `require` returns any other. Solvers and models see items
of pools under public ids.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, Generic, Protocol, TypeVar

from calibrant.bench.core.capabilities import (
    ATTRIBUTION,
    FUNCTIONS,
    ITEMS,
    METRICS,
    PLAY,
    SCORING,
    SUITES,
    TRAINING,
    C,
    Capability,
    Drawable,
    ItemFunctions,
    Playable,
    Providers,
    Trainable,
)
from calibrant.bench.core.items import ItemFormats
from calibrant.bench.core.metrics import MetricSet
from calibrant.bench.core.names import TITLES
from calibrant.bench.core.scoring import Scorable
from calibrant.dsl.episode import Episode, Step
from calibrant.dsl.errors import CalibrantError
from calibrant.dsl.item import Item
from calibrant.dsl.records import item_ids, pool_digest

I = TypeVar("I", bound=Item[Any, Any])  # noqa: E741  # an item


class Handout(Protocol):
    """Message to a worker about one item, which can be pickled; the worker opens it for the protocol."""

    def open(self) -> Any:
        """Return the task, or an open episode."""
        ...

    @property
    def benchmark(self) -> str: ...

    @property
    def content(self) -> Any:
        """The task, or the item of the episode."""
        ...

    def with_content(self, content: Any) -> Handout:
        """Return a handout of another task or item."""
        ...


@dataclass(frozen=True)
class TaskHandout:
    """A task; the sealed part of its item is not sent.

    benchmark: name of the benchmark; empty if the task has no canonical form
    """

    task: Any
    benchmark: str = ""

    def open(self) -> Any:
        return self.task

    @property
    def content(self) -> Any:
        return self.task

    def with_content(self, content: Any) -> TaskHandout:
        return TaskHandout(content, self.benchmark)


@dataclass(frozen=True)
class EpisodeHandout:
    """An item, and the function that opens an episode of it; sealed fields are reached through its `act` alone."""

    item: Any
    episode: Callable[[Any], Episode[Any, Any]]
    benchmark: str = ""

    def open(self) -> Episode[Any, Any]:
        return self.episode(self.item)

    @property
    def content(self) -> Any:
        return self.item

    def with_content(self, content: Any) -> EpisodeHandout:
        return EpisodeHandout(content, self.episode, self.benchmark)


@dataclass(frozen=True, eq=False)
class Benchmark(Generic[I]):
    """One benchmark.

    name: in pool files and records, and of its folder in bench
    provides: capability -> `module:NAME` of its provider, if it is optional or not at the capability's usual place
    demo_protocols: protocols that `calibrant demo` runs
    bundled: names of the pools that come with the package, in its folder as data/sample_NAME.jsonl
    bundled_extras: names of further bundled pools, used by neither the demo nor measurements
    """

    name: str
    provides: Providers
    demo_protocols: tuple[str, ...] = ()
    bundled: tuple[str, ...] = ()
    bundled_extras: tuple[str, ...] = ()

    def __reduce__(self) -> tuple[Callable[[str], Benchmark[Any]], tuple[str]]:
        return load_benchmark, (self.name,)  # pickled by name: copies of keys would differ, as they compare by identity

    @property
    def title(self) -> str:
        """Its name as people read it."""
        return TITLES[self.name]

    def place(self, key: Capability[Any]) -> str:
        """Return the `module:NAME`, in its folder, of a capability's provider; empty if the benchmark lacks it."""
        return self.provides.get(key, key.place)

    def has(self, key: Capability[Any]) -> bool:
        """Return whether it provides a capability; nothing is imported."""
        return bool(self.place(key))

    def capability(self, key: Capability[C]) -> C | None:
        """Return the provider of a capability, imported at first use; None if the benchmark lacks it."""
        place = self.place(key)
        if not place:
            return None
        module, name = _load_module(self.name, place)
        provider: C = getattr(module, name)
        return provider

    def require(self, key: Capability[C]) -> C:
        """Return the provider of a capability; `CalibrantError` names the benchmarks that have it."""
        provider = self.capability(key)
        if provider is None:
            *titles, last = (title for name, title in TITLES.items() if load_benchmark(name).has(key))
            supported = f"{', '.join(titles)} and {last}" if titles else last
            raise CalibrantError(f"{key.subject} does not support {self.title}; it supports {supported}")
        return provider

    @property
    def items(self) -> ItemFormats[I]:
        """Its items as files, records and prompts."""
        return self.require(ITEMS)

    @property
    def scoring(self) -> Scorable[I]:
        """Reading and scoring of answers to its items."""
        return self.require(SCORING)

    @property
    def metrics(self) -> MetricSet:
        """Metrics and views of its tables."""
        return self.require(METRICS)

    @property
    def functions(self) -> ItemFunctions:
        """The functions behind the public ones, such as `calibrant.score`, for its items."""
        return self.require(FUNCTIONS)

    @property
    def training(self) -> Trainable:
        """Functions that trainers need besides verdicts."""
        return self.require(TRAINING)

    @property
    def suites(self) -> Drawable[I]:
        """The suites that its items are drawn from."""
        return self.require(SUITES)

    @property
    def play(self) -> Playable[I]:
        """Episodes of its items."""
        return self.require(PLAY)

    def is_interactive(self, item: I) -> bool:
        """Return whether an item is answered in an episode."""
        return self.has(PLAY) and self.play.is_played(item)

    def handout(self, item: I) -> Handout:
        """Return the message about an item to a protocol's worker."""
        if self.is_interactive(item):
            return EpisodeHandout(item, self.play.open, self.name)
        return TaskHandout(item.task, self.name)

    def attribution(
        self, item: I, answer: Mapping[str, Any], steps: Sequence[Step[Any]], score: Mapping[str, Any]
    ) -> dict[str, Any] | None:
        """Return whether the evidence decided the question (bench.core.attribution); None where that is not known."""
        attribute = self.capability(ATTRIBUTION)
        return None if attribute is None else attribute(item, answer, steps, score)


@cache
def _load_module(benchmark: str, place: str) -> tuple[ModuleType, str]:
    """Import the module of a `module:NAME` in a benchmark's folder; return (module, name).

    Cached, because a report calls it for every answer.
    """
    module, _, name = place.partition(":")
    return import_module(f"calibrant.bench.{benchmark}.{module}"), name


@cache
def load_benchmark(name: str) -> Benchmark[Any]:
    """Return the benchmark of a name in TITLES, imported at first use."""
    benchmark: Benchmark[Any] = import_module(f"calibrant.bench.{name}.benchmark").BENCHMARK
    return benchmark


# --- Public ids of items: a pool's id such as `order-3-7` reveals hidden facts, so solvers see keyed digests of ids ---
# The key (the salt) is the digest of SALT_PREFIX and the pool file with its sealed part. The same file gives the same
# ids, whoever has it can map them back, and the published digest of the pool, made without the prefix, reveals no key.
SALT_PREFIX = b"calibrant public ids\n"
NUM_DIGITS = 16  # 64 bits: among 100,000 items two share an id with probability 1 in four billion


class PublicIds:
    """The public ids of the items of a pool.

    salt: 64 hexadecimal digits, or the pool file whose digest it is; as secret as the true SCMs
    ids: the pool's own ids, which `item_id` returns for public ones; empty if it is not called
    """

    def __init__(self, salt: str | Path, ids: Sequence[str] = ()) -> None:
        self._salt = salt
        self._ids = ids

    @classmethod
    def of_pool(cls, path: Path, items: Sequence[Item[Any, Any]]) -> PublicIds:
        """Return the ids of the items of a pool file, which is read for the salt at first use."""
        return cls(path, item_ids(items))

    @classmethod
    def of_seed(cls, benchmark: str, seed: int) -> PublicIds:
        """Return the ids of generated items that are in no file."""
        return cls(sha256(SALT_PREFIX + f"{benchmark} {seed}".encode()).hexdigest())

    @cached_property
    def salt(self) -> str:
        return pool_digest(self._salt, prefix=SALT_PREFIX) if isinstance(self._salt, Path) else self._salt

    def public(self, item_id: str) -> str:
        """Return the public id of an item; it begins with letters, so that no reader takes it for a number."""
        digest = hmac.digest(self._key, item_id.encode("utf-8", "surrogatepass"), "sha256")
        return f"item-{digest.hex()[:NUM_DIGITS]}"

    def item_id(self, public: str) -> str | None:
        """Return the pool's id behind a public one, None if there is none."""
        return self._by_public.get(public)

    @cached_property
    def _key(self) -> bytes:
        return bytes.fromhex(self.salt)

    @cached_property
    def _by_public(self) -> Mapping[str, str]:
        return {self.public(item_id): item_id for item_id in self._ids}


# --- Items as solvers and models may see them: under public ids, with the fields that their benchmark declares public


class PublicPool:
    """The items of a pool file, found by their public ids or the pool's own."""

    def __init__(self, benchmark: Benchmark[Any], path: Path) -> None:
        self.benchmark = benchmark
        self.items: Any = benchmark.items.read_pool(path)
        self.ids = PublicIds.of_pool(path, self.items.items)

    def item(self, name: str | None) -> Any:
        """Return the item of that id, public or the pool's own, by default the first; `CalibrantError` if none."""
        return self.benchmark.items.find(self.items, None if name is None else self.own_id(name))

    def own_id(self, name: str) -> str:
        """Return the pool's own id for a public one; any other name unchanged."""
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
    """Return the public fields of an item's native record, in its order, ready for JSON."""
    record = benchmark.items.shown_record(item)
    undeclared = record.keys() - set(benchmark.items.public_fields)
    if undeclared:
        raise CalibrantError(f"fields that are not declared public: {', '.join(sorted(undeclared))}")
    return record
