"""What hardening reduces, each as a number of things left, and the same number when all admissible rows are shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from audits.replayscm.local_patterns import Probe, Seen, together
from audits.replayscm.patterns import seen_patterns
from dsl.replayscm.reference import replays_exactly
from dsl.replayscm.scm import Scm
from dsl.replayscm.world import World
from solvers.replayscm.version_space import VersionSpace


class Objective(Protocol):
    """Something to be reduced by training worlds. More worlds never leave more."""

    @property
    def name(self) -> str:
        """What is left, in the plural."""

    def left(self, worlds: Sequence[World]) -> int:
        """How many would be left with these worlds added."""

    def after(self, world: World) -> Objective:
        """The objective with the world added."""


@dataclass(frozen=True)
class OpenPatterns:
    """Local predecessor patterns that no scored training row shows."""

    probes: tuple[Probe, ...]
    seen: Seen

    name = "local patterns"

    def left(self, worlds: Sequence[World]) -> int:
        shown = self._with(worlds)
        return sum(probe.num_patterns - bits.bit_count() for probe, bits in zip(self.probes, shown, strict=True))

    def after(self, world: World) -> OpenPatterns:
        return replace(self, seen=self._with([world]))

    def _with(self, worlds: Sequence[World]) -> Seen:
        return together([self.seen, seen_patterns(worlds, self.probes)], len(self.probes))


@dataclass(frozen=True)
class FittingAlternatives:
    """Supplied SCMs that still replay every added world."""

    models: tuple[Scm, ...]

    name = "alternatives"

    def left(self, worlds: Sequence[World]) -> int:
        return len(self.fitting(worlds))

    def fitting(self, worlds: Sequence[World]) -> tuple[Scm, ...]:
        return tuple(model for model in self.models if replays_exactly(model, worlds))

    def after(self, world: World) -> FittingAlternatives:
        return FittingAlternatives(self.fitting([world]))


@dataclass(frozen=True)
class Members:
    """Members of the version space; gold is one of them."""

    space: VersionSpace

    name = "members"

    def left(self, worlds: Sequence[World]) -> int:
        return self.space.with_worlds(worlds).count if worlds else self.space.count

    def after(self, world: World) -> Members:
        return Members(self.space.with_worlds([world]))


@dataclass(frozen=True)
class DisagreeingMembers:
    """Members of the version space that do not replay the held-out worlds."""

    space: VersionSpace
    heldout: tuple[World, ...]

    name = "members that differ on held-out worlds"

    def left(self, worlds: Sequence[World]) -> int:
        space = self.space.with_worlds(worlds)
        return space.count - space.with_worlds(self.heldout).count

    def after(self, world: World) -> DisagreeingMembers:
        return replace(self, space=self.space.with_worlds([world]))
