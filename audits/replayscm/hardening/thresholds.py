"""The units of an instance, reconstructed: thresholds that are consistent with every root value its worlds show.

A unit's threshold for a root is one number for all worlds and not in the file (paper, section B.2.2). In a world with
level L that leaves the root alone, 1 means threshold < L and 0 means threshold >= L. Where the file gives the levels,
these bounds leave an interval; where it does not, the sets of units that show 1 are ordered by inclusion and the levels
are taken to be equally spaced in that order, which keeps everything that was observed. Either way the threshold is
drawn uniformly from its interval.

Worlds that contradict the rule are skipped, later ones in favour of earlier ones: published disambiguation worlds
(`train_aug_*`) do not follow the thresholds. Worlds of other units say nothing; where the panel does not share units,
thresholds are uniform.

What is drawn is one possibility of many. `threshold_ranges` has all of them, for proofs: it uses nothing but levels
that the file gives, and knows nothing of a unit whose worlds contradict the rule.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random
from typing import NamedTuple, TypeAlias

from calibrant.audits.replayscm.patterns import latent_scm
from calibrant.dsl.replayscm.generation.worlds import Population
from calibrant.dsl.replayscm.item import Problem
from calibrant.dsl.replayscm.world import Column

Range: TypeAlias = tuple[float, float]
"""A half-open interval of thresholds, low <= threshold < high."""


class RootOnes(NamedTuple):
    """The units in which a root is 1 in one world that leaves it alone, and the world's level if it is known."""

    ones: Column
    level: float | None


def population(problem: Problem, rng: Random) -> Population:
    """Return gold with the instance's units; `ValueError` without gold or without a training world."""
    gold, worlds = latent_scm(problem), problem.task.training.worlds
    if not worlds:
        raise ValueError(f"problem '{problem.id}' has no training world that could name its units")
    units = worlds[0].units
    thresholds = {}
    for root in gold.roots:
        bounds = threshold_bounds(list(_observe_root(problem, root, units)), len(units))
        thresholds[root] = tuple(low + (high - low) * rng.random() for low, high in bounds)
    return Population(gold, units, thresholds)


def _observe_root(problem: Problem, root: str, units: tuple[str, ...]) -> Iterator[RootOnes]:
    if not problem.task.shares_units:
        return
    for world in problem.worlds:
        if world.units == units and root not in world.intervention.targets:
            yield RootOnes(world.column(root), problem.sealed.environments.get(world.id, {}).get(root))


def threshold_ranges(problem: Problem) -> dict[str, list[Range]]:
    """Return, per root and unit, the thresholds that agree with the levels in the file; all where none does."""
    units = problem.task.training.worlds[0].units
    return {root: _ranges(list(_observe_root(problem, root, units)), len(units)) for root in latent_scm(problem).roots}


def _ranges(observed: Sequence[RootOnes], num_units: int) -> list[Range]:
    ranges: list[Range] = []
    for unit in range(num_units):
        levels = [
            (observation.level, observation.ones >> unit & 1)
            for observation in observed
            if observation.level is not None
        ]
        low = max((level for level, bit in levels if not bit), default=0.0)
        high = min((level for level, bit in levels if bit), default=1.0)
        ranges.append((low, high) if low < high else (0.0, 1.0))
    return ranges


def threshold_bounds(observed: Sequence[RootOnes], num_units: int) -> list[Range]:
    """Return, per unit, the half-open interval in which its threshold lies."""
    levelled = [observation for observation in observed if observation.level is not None]
    bounds = [(0.0, 1.0)] * num_units
    for ones, level in levelled or _equally_spaced(observed):
        assert level is not None
        narrowed = [
            (low, min(high, level)) if ones >> unit & 1 else (max(low, level), high)
            for unit, (low, high) in enumerate(bounds)
        ]
        if all(low < high for low, high in narrowed):
            bounds = narrowed
    return bounds


def _equally_spaced(observed: Sequence[RootOnes]) -> list[RootOnes]:
    """Return the sets that form a chain, earlier ones first choice, with levels in its order."""
    chain: list[Column] = []
    for ones, _ in observed:
        if ones not in chain and all(ones & ~member == 0 or member & ~ones == 0 for member in chain):
            chain.append(ones)
    chain.sort(key=int.bit_count)
    return [RootOnes(ones, (place + 1) / (len(chain) + 1)) for place, ones in enumerate(chain)]
