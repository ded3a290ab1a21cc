"""Objectives of hardening: numbers to reduce by training worlds, and their least values over all admissible rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from calibrant.audits.replayscm.hardening.members import Members
from calibrant.audits.replayscm.local_patterns import PatternSets, Probe, unite
from calibrant.audits.replayscm.patterns import seen_patterns
from calibrant.dsl.replayscm.evaluator import fits
from calibrant.dsl.replayscm.scm import Scm
from calibrant.dsl.replayscm.world import World
from calibrant.solvers.budget import Budget


class Objective(Protocol):
    """Something to be reduced by training worlds. More worlds never leave more."""

    @property
    def name(self) -> str:
        """Return the plural noun of what is counted."""

    @property
    def breadth(self) -> int:
        """Return how many parent sets, patterns or mechanisms a count goes through."""

    def count_remaining(self, worlds: Sequence[World]) -> int:
        """Count what remains with these worlds added."""

    def count_remaining_each(self, options: Sequence[Sequence[World]]) -> list[int]:
        """Count what remains for each option."""

    def after(self, world: World) -> Objective:
        """Return the objective with the world added."""


@dataclass(frozen=True)
class ChargedObjective:
    """An objective whose breadth is charged for every option that is weighed; `BudgetSpent` when there is no more."""

    objective: Objective
    budget: Budget

    @property
    def name(self) -> str:
        return self.objective.name

    @property
    def breadth(self) -> int:
        return self.objective.breadth

    def count_remaining(self, worlds: Sequence[World]) -> int:
        return self.count_remaining_each([worlds])[0]

    def count_remaining_each(self, options: Sequence[Sequence[World]]) -> list[int]:
        self.budget.spend(len(options) * self.objective.breadth)
        return self.objective.count_remaining_each(options)

    def after(self, world: World) -> ChargedObjective:
        return replace(self, objective=self.objective.after(world))


@dataclass(frozen=True)
class OpenPatterns:
    """Local predecessor patterns that no scored training row shows."""

    probes: tuple[Probe, ...]
    patterns: PatternSets
    name = "local patterns"

    @property
    def breadth(self) -> int:
        return sum(probe.num_patterns for probe in self.probes)

    def count_remaining(self, worlds: Sequence[World]) -> int:
        bits_by_probe = self._with(worlds)
        return sum(
            probe.num_patterns - bits.bit_count() for probe, bits in zip(self.probes, bits_by_probe, strict=True)
        )

    def count_remaining_each(self, options: Sequence[Sequence[World]]) -> list[int]:
        return [self.count_remaining(worlds) for worlds in options]

    def after(self, world: World) -> OpenPatterns:
        return OpenPatterns(self.probes, self._with([world])).incomplete

    @property
    def incomplete(self) -> OpenPatterns:
        """The objective without the probes whose every pattern was shown."""
        pairs = zip(self.probes, self.patterns, strict=True)
        incomplete = [(probe, bits) for probe, bits in pairs if bits.bit_count() < probe.num_patterns]
        return OpenPatterns(tuple(probe for probe, _ in incomplete), tuple(bits for _, bits in incomplete))

    def _with(self, worlds: Sequence[World]) -> PatternSets:
        return unite([self.patterns, seen_patterns(worlds, self.probes)], len(self.probes))


@dataclass(frozen=True)
class FittingAlternatives:
    """Supplied SCMs that still replay every added world."""

    models: tuple[Scm, ...]
    name = "alternatives"

    @property
    def breadth(self) -> int:
        return sum(len(model.mechanisms) for model in self.models)

    def count_remaining(self, worlds: Sequence[World]) -> int:
        return len(self.fitting(worlds))

    def count_remaining_each(self, options: Sequence[Sequence[World]]) -> list[int]:
        return [self.count_remaining(worlds) for worlds in options]

    def fitting(self, worlds: Sequence[World]) -> tuple[Scm, ...]:
        return tuple(model for model in self.models if fits(model, worlds))

    def after(self, world: World) -> FittingAlternatives:
        return FittingAlternatives(self.fitting([world]))


@dataclass(frozen=True)
class DisagreeingMembers:
    """Members of the version space that do not replay the held-out worlds."""

    all_members: Members
    agreeing: Members
    name = "members that differ on held-out worlds"

    @property
    def breadth(self) -> int:
        return self.all_members.breadth + self.agreeing.breadth

    def count_remaining(self, worlds: Sequence[World]) -> int:
        return self.all_members.count_remaining(worlds) - self.agreeing.count_remaining(worlds)

    def count_remaining_each(self, options: Sequence[Sequence[World]]) -> list[int]:
        pairs = zip(
            self.all_members.count_remaining_each(options), self.agreeing.count_remaining_each(options), strict=True
        )
        return [num_all - num_agreeing for num_all, num_agreeing in pairs]

    def after(self, world: World) -> DisagreeingMembers:
        return DisagreeingMembers(self.all_members.after(world), self.agreeing.after(world))
