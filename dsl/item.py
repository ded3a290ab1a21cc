"""What items of every benchmark have in common: a part that a solver may read, and a sealed one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

T_co = TypeVar("T_co", covariant=True)
S_co = TypeVar("S_co", covariant=True)


class Item(Protocol[T_co, S_co]):
    """One item of a pool.

    id: unique in its pool
    benchmark: name of the benchmark that it belongs to
    setting: the row group of tables that it counts in (a disclosure, a condition)
    stratum: the finer group of its generator; empty if there is none
    task: all that a solver may read
    sealed: what only the evaluator, the audits and an episode may read
    """

    @property
    def id(self) -> str: ...
    @property
    def benchmark(self) -> str: ...
    @property
    def setting(self) -> str: ...
    @property
    def stratum(self) -> str: ...
    @property
    def task(self) -> T_co: ...
    @property
    def sealed(self) -> S_co: ...


I_co = TypeVar("I_co", bound=Item[Any, Any], covariant=True)


@dataclass(frozen=True)
class Pool(Generic[I_co]):
    """The items of one file, all of one benchmark, with the file's metadata."""

    name: str
    benchmark: str
    items: tuple[I_co, ...]
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.items)
