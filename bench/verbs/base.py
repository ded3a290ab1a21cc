"""What a benchmark answers to the verbs of the public face, and the shapes that these share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from dsl.item import Pool
from solvers.outcome import Outcome

M_co = TypeVar("M_co", covariant=True)


@dataclass(frozen=True)
class Solution(Generic[M_co]):
    """What a solver found.

    answer: the submission, an object of the item's answer schema, ready for JSON and for `score`
    model: what the answer stands for; size: what was minimised, where anything was
    provenance: the class that was searched, and what else a claim rests on
    """

    answer: dict[str, Any]
    model: M_co
    size: int | None = None
    provenance: Mapping[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"<Solution: {self.model!r}>"


class Verbs(Protocol):
    """A benchmark behind the public names; the options of a verb, those of calibrant.options that it has, are keywords.

    An item of another benchmark, or something that is no item, is a `CalibrantError`.
    """

    def load_pool(self, path: Path) -> Pool[Any]:
        """The items of a file, with whatever else it holds."""
        ...

    @property
    def score(self) -> Callable[..., Any]:
        """(item, answer): the verdict on a response text, on an answer object, or on any other value that JSON has."""
        ...

    @property
    def solve(self) -> Callable[..., Outcome[Solution[Any]]]:
        """(item): the exact solver's answer, from what a solver may see."""
        ...

    @property
    def version_space(self) -> Callable[..., Any]:
        """(item): all hypotheses of a class that fit what the item shows."""
        ...

    @property
    def audit(self) -> Callable[..., Any]:
        """(item): what the evidence leaves open. Reads what is sealed."""
        ...

    @property
    def separate(self) -> Callable[..., Any]:
        """(item, answers): what tells hypotheses apart."""
        ...

    @property
    def harden(self) -> Callable[..., Any]:
        """(item, seed): the item with evidence added until nothing is open. Reads what is sealed."""
        ...

    @property
    def generate(self) -> Callable[..., Any]:
        """(seed): an item from nothing, with its audit."""
        ...
