"""Solutions and verdicts as the public functions return them, and the functions that a benchmark has behind them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from calibrant.dsl.episode import Step
from calibrant.dsl.errors import in_one_line
from calibrant.dsl.item import Pool

if TYPE_CHECKING:
    from calibrant.solvers.outcome import Outcome  # listing benchmarks imports no solver

M_co = TypeVar("M_co", covariant=True)
D_co = TypeVar("D_co", covariant=True)


@dataclass(frozen=True)
class Solution(Generic[M_co]):
    """Answer of a solver.

    answer: the submission, an object of the item's answer schema, ready for JSON and for `score`
    model: what the answer stands for; size: what was minimised, where anything was
    provenance: the class that was searched, and what else a claim rests on
    steps: of an interactive item, what was done to find it; nothing is submitted in them
    """

    answer: dict[str, Any]
    model: M_co
    size: int | None = None
    provenance: Mapping[str, Any] = field(default_factory=dict)
    steps: Sequence[Step[Any]] = ()

    def __repr__(self) -> str:
        return f"<Solution: {self.model!r}>"


@dataclass(frozen=True, repr=False)
class ItemScore(Generic[D_co]):
    """Score of an answer, on the benchmarks whose verdict is more than one that was published.

    instance: id of the item
    valid: an answer was read, and the item accepted it
    correct: as the benchmark counts it; None where nothing is held out
    failure: why it is not valid, or what is wrong with it; None if nothing is
    details: the benchmark's own score; record: the same, flat and ready for JSON
    """

    instance: str
    valid: bool
    correct: bool | None
    failure: str | None
    details: D_co
    record: Mapping[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """Flat, under the keys that records of runs have."""
        return dict(self.record)

    def __repr__(self) -> str:
        reason = f": {in_one_line(self.failure)[:80]}" if self.failure else ""
        outcome = f"valid={self.valid}, correct={self.correct}{reason}"
        return f"<{type(self).__name__} of {in_one_line(self.instance)[:60]}: {outcome}>"


class ItemFunctions(Protocol):
    """A benchmark behind the public names; the options of a verb, those of calibrant.options that it has, are keywords.

    `separate`, `harden` and `generate` are there if the benchmark has them: `separate(item, answers)` says what tells
    hypotheses apart, `harden(item, seed)` adds evidence until nothing is open, `generate(seed)` makes an item. An item
    of another benchmark, or something that is no item, is a `CalibrantError`.
    """

    def load_pool(self, path: Path) -> Pool[Any]:
        """Return the items of a file, with whatever else it holds."""
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
        """(item): all hypotheses of a class that fit what the item shows, and what was read since."""
        ...

    @property
    def audit(self) -> Callable[..., Any]:
        """(item): what the evidence leaves open. Reads what is sealed."""
        ...
