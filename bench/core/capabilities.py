"""Capabilities: what some benchmarks have and others lack, each under a typed key.

`Benchmark.provides` maps a key to `module:NAME` in the benchmark's folder, which is imported when it is first asked for
(`Benchmark.capability`, `Benchmark.require`). A command asks for its key; no command asks which benchmark it has.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

C = TypeVar("C")


@dataclass(frozen=True)
class Capability(Generic[C]):
    """A key to an object of type C. subject: the command or function that needs it, as refusals name it"""

    subject: str


Providers: TypeAlias = Mapping[Capability[Any], str]


class Pageable(Protocol):
    """Items that have a picture. reveal_sealed: with what is hidden from solvers"""

    def drawing(self, item: Any, *, reveal_sealed: bool) -> str:
        """Return the picture in text, empty if there is none."""
        ...

    def page(self, item: Any, *, reveal_sealed: bool) -> str:
        """Return the picture as an HTML file."""
        ...


PAGES: Capability[Pageable] = Capability("`show --html` without --run")
