"""What hardening reduces, each as a number of things left, and the same number when all admissible rows are shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from calibrant.audits.replayscm.hardening.members import Members
from calibrant.audits.replayscm.local_patterns import Probe, Seen, together
from calibrant.audits.replayscm.patterns import seen_patterns
from calibrant.dsl.replayscm.reference import replays_exactly
from calibrant.dsl.replayscm.scm import Scm
from calibrant.dsl.replayscm.world import World
from calibrant.solvers.budget import Budget


class Objective(Protocol):
    """Something to be reduced by training worlds. More worlds never leave more."""

    @property
    def name(self) -> str:
        """Return what is left, in the plural."""

    @property
    def breadth(self) -> int:
        """Return how many things are gone through to say what worlds would leave."""

    def left(self, worlds: Sequence[World]) -> int:
        """Return how many would be left with these worlds added."""

    def each(self, options: Sequence[Sequence[World]]) -> list[int]:
        """Return what `left` says of each."""

    def after(self, world: World) -> Objective:
        """The objective with the world added."""


@dataclass(frozen=True)
class Charged:
    """An objective whose breadth is charged for every option that is weighed; `BudgetSpent` when there is no more."""

    of: Objective
    budget: Budget

    @property
    def name(self) -> str:
        return self.of.name

    @property
    def breadth(self) -> int:
        return self.of.breadth

    def left(self, worlds: Sequence[World]) -> int:
        return self.each([worlds])[0]

    def each(self, options: Sequence[Sequence[World]]) -> list[int]:
        self.budget.spend(len(options) * self.of.breadth)
        return self.of.each(options)

    def after(self, world: World) -> Charged:
        return replace(self, of=self.of.after(world))


@dataclass(frozen=True)
class OpenPatterns:
    """Local predecessor patterns that no scored training row shows."""

    probes: tuple[Probe, ...]
    seen: Seen
    name = "local patterns"

    @property
    def breadth(self) -> int:
        return sum(probe.num_patterns for probe in self.probes)

    def left(self, worlds: Sequence[World]) -> int:
        shown = self._with(worlds)
        return sum(probe.num_patterns - bits.bit_count() for probe, bits in zip(self.probes, shown, strict=True))

    def each(self, options: Sequence[Sequence[World]]) -> list[int]:
        return [self.left(worlds) for worlds in options]

    def after(self, world: World) -> OpenPatterns:
        return OpenPatterns(self.probes, self._with([world])).open

    @property
    def open(self) -> OpenPatterns:
        """The same without the probes of which every pattern was seen."""
        both = zip(self.probes, self.seen, strict=True)
        left = [(probe, bits) for probe, bits in both if bits.bit_count() < probe.num_patterns]
        return OpenPatterns(tuple(probe for probe, _ in left), tuple(bits for _, bits in left))

    def _with(self, worlds: Sequence[World]) -> Seen:
        return together([self.seen, seen_patterns(worlds, self.probes)], len(self.probes))


@dataclass(frozen=True)
class FittingAlternatives:
    """Supplied SCMs that still replay every added world."""

    models: tuple[Scm, ...]
    name = "alternatives"

    @property
    def breadth(self) -> int:
        return sum(len(model.mechanisms) for model in self.models)

    def left(self, worlds: Sequence[World]) -> int:
        return len(self.fitting(worlds))

    def each(self, options: Sequence[Sequence[World]]) -> list[int]:
        return [self.left(worlds) for worlds in options]

    def fitting(self, worlds: Sequence[World]) -> tuple[Scm, ...]:
        return tuple(model for model in self.models if replays_exactly(model, worlds))

    def after(self, world: World) -> FittingAlternatives:
        return FittingAlternatives(self.fitting([world]))


@dataclass(frozen=True)
class DisagreeingMembers:
    """Members of the version space that do not replay the held-out worlds."""

    every: Members
    agreeing: Members
    name = "members that differ on held-out worlds"

    @property
    def breadth(self) -> int:
        return self.every.breadth + self.agreeing.breadth

    def left(self, worlds: Sequence[World]) -> int:
        return self.every.left(worlds) - self.agreeing.left(worlds)

    def each(self, options: Sequence[Sequence[World]]) -> list[int]:
        both = zip(self.every.each(options), self.agreeing.each(options), strict=True)
        return [every - agreeing for every, agreeing in both]

    def after(self, world: World) -> DisagreeingMembers:
        return DisagreeingMembers(self.every.after(world), self.agreeing.after(world))
