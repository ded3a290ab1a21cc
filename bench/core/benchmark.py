"""A benchmark: names, and by the key of each capability where in its folder the object is that provides it.

`bench/<benchmark>/benchmark.py` holds one, and imports no more than keys, so a program that lists benchmarks loads none
of their solvers. What all benchmarks have is a property here; everything else is asked for by `require`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
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

I = TypeVar("I", bound=Item[Any, Any])  # noqa: E741  # an item


class Handout(Protocol):
    """Message to a worker about one item, which opens it before the protocol answers. It can be pickled."""

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
    """A task. What is sealed does not travel.

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
    """An item and how an episode of it is opened. What is sealed stays behind the episode's `act`."""

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

    name: as pool files and records have it; its folder in bench has it too
    provides: by key, the `module:NAME` of what not all benchmarks have, or of what is not at the key's place
    demo_protocols: those that `calibrant demo` runs
    bundled: names of the pools that come with the package, in its folder as data/sample_NAME.jsonl
    bundled_extras: names of further ones, which neither the demo nor measurements take
    """

    name: str
    provides: Providers
    demo_protocols: tuple[str, ...] = ()
    bundled: tuple[str, ...] = ()
    bundled_extras: tuple[str, ...] = ()

    def __reduce__(self) -> tuple[Callable[[str], Benchmark[Any]], tuple[str]]:
        return load_benchmark, (self.name,)  # keys are compared by identity, and providers may hold caches

    @property
    def title(self) -> str:
        """Its name as people read it."""
        return TITLES[self.name]

    def place(self, key: Capability[Any]) -> str:
        """Return where in its folder it provides a capability, as `module:NAME`; empty if it lacks it."""
        return self.provides.get(key, key.place)

    def has(self, key: Capability[Any]) -> bool:
        """Return whether it provides a capability; nothing is imported."""
        return bool(self.place(key))

    def capability(self, key: Capability[C]) -> C | None:
        """Return what provides a capability, imported when it is first asked for; None if the benchmark lacks it."""
        place = self.place(key)
        if not place:
            return None
        module, name = _load_module(self.name, place)
        provider: C = getattr(module, name)
        return provider

    def require(self, key: Capability[C]) -> C:
        """Return what provides a capability; `CalibrantError` names the benchmarks that have it."""
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
        """Its part of the public functions."""
        return self.require(FUNCTIONS)

    @property
    def training(self) -> Trainable:
        """Needs of trainers beside its verdicts."""
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
        """Return what a protocol's worker is sent."""
        if self.is_interactive(item):
            return EpisodeHandout(item, self.play.open, self.name)
        return TaskHandout(item.task, self.name)

    def attribution(
        self, item: I, answer: Mapping[str, Any], steps: Sequence[Step[Any]], score: Mapping[str, Any]
    ) -> dict[str, Any] | None:
        """Return whether the evidence decided what was asked (bench.core.attribution); None where it is not known."""
        attribute = self.capability(ATTRIBUTION)
        return None if attribute is None else attribute(item, answer, steps, score)


@cache
def _load_module(benchmark: str, place: str) -> tuple[ModuleType, str]:
    """Return module and name of a "module:NAME" of a benchmark's folder; a report asks at every answer."""
    module, _, name = place.partition(":")
    return import_module(f"calibrant.bench.{benchmark}.{module}"), name


@cache
def load_benchmark(name: str) -> Benchmark[Any]:
    """Import the benchmark of one of the names."""
    benchmark: Benchmark[Any] = import_module(f"calibrant.bench.{name}.benchmark").BENCHMARK
    return benchmark
