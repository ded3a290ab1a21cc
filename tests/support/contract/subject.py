"""What a benchmark lends to the contract that all of them are held to."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from hypothesis import strategies as st

from calibrant.bench.core.benchmark import Benchmark
from calibrant.bench.core.registry import benchmark
from calibrant.bench.protocols import protocols_of
from calibrant.dsl.episode import Action

Evidence = Sequence[tuple[Any, Any]]  # experiments with what they read, oldest first


class Settled(NamedTuple):
    """What the exact row did where one answer was left.

    left: that answer; submitted: the row's, in the same form; best: whether it got what the item allows
    """

    instance: str
    left: Any
    submitted: Any
    best: bool


class Subject(ABC):
    """One benchmark under the contract.

    interactive: whether its items are episodes
    settles: fewest items of `settled` that count as a test
    """

    name: str
    interactive: bool
    settles: int

    @property
    def benchmark(self) -> Benchmark[Any]:
        return benchmark(self.name)

    @abstractmethod
    def items(self) -> Sequence[Any]:
        """Items of every kind whose class holds their truth."""

    @abstractmethod
    def every(self) -> Sequence[Any]:
        """Items of every suite."""

    @abstractmethod
    def small(self) -> Sequence[Any]:
        """Items whose class can be listed."""

    @abstractmethod
    def evidence(self, item: Any, choices: Sequence[int]) -> Evidence:
        """Return the readings of legal experiments; each number chooses one."""

    @abstractmethod
    def space(self, item: Any) -> Any:
        """Return the class that knows the item's kind, from the visible part of the item."""

    def spaces(self, item: Any, evidence: Evidence) -> list[Any]:
        """Return the space at first and after each piece of evidence."""
        found = [self.space(item)]
        for experiment, reading in evidence:
            found.append(self.after(found[-1], experiment, reading))
        return found

    def after(self, space: Any, experiment: Any, reading: Any) -> Any:
        return space.after(experiment, reading)

    def size(self, space: Any) -> int:
        """Return a number that evidence never increases."""
        return int(space.count)

    @abstractmethod
    def truth_fits(self, item: Any, space: Any) -> bool:
        """Whether what is sealed is a member."""

    def experiments(self, item: Any, evidence: Evidence) -> Sequence[Any]:
        """Return experiments that may be done next and whose outcomes are listed."""
        return ()

    def overlaps(self, item: Any) -> bool:
        """Whether one member may give several readings, so that outcomes do not partition the space."""
        return False

    @abstractmethod
    def listed(self, item: Any, evidence: Evidence) -> int:
        """How many members a small item's class has after this evidence, by listing all of it."""

    @abstractmethod
    def settled(self) -> Iterator[Settled]:
        """Yield items with the exact row's answer, where one answer remains."""

    def protocols(self) -> Mapping[str, Any]:
        """Rows that are asked again without what is sealed."""
        return protocols_of(self.benchmark)

    def actions(self, item: Any) -> st.SearchStrategy[list[Action]]:
        """Actions of an episode: legal, illegal and meaningless ones."""
        raise NotImplementedError

    def untrue(self, reading: Any) -> Any:
        """Another reading than this one."""
        raise NotImplementedError

    @abstractmethod
    def right(self, item: Any, text: str) -> bool:
        """Return the verdict on a response of any text."""
