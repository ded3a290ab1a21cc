"""Worlds that hardening may add: simulated from gold on the instance's own units, under thresholds that it shows.

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

Admissible are interventions with at most `max_targets` targets in one mode whose signature no held-out world has. A
signature that a training world has may come again: with other values row by row, or another environment, it shows
something else. Every world sets the levels of its roots, so a unit may show a root either way unless its threshold lies
beyond all levels; the values of hard_assigned targets are free row by row. Rows do not depend on each other. So what
all admissible worlds together can ever show is a finite list of rows (`reachable`): two SCMs that agree on all of them
are told apart by no number of admissible worlds.

Worlds are made with thresholds that were drawn. What no world can show may not
rest on a draw: proofs are about `AnyThresholds`, all rows under all thresholds that agree with the evidence.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import combinations, product
from math import comb
from random import Random
from typing import NamedTuple, TypeAlias

from calibrant.audits.replayscm.bounded import latent_scm
from calibrant.dsl.replayscm.disclosure import natural
from calibrant.dsl.replayscm.generation.problems import Drawn, Population, baseline_environment, sample_world
from calibrant.dsl.replayscm.generation.strata import ENVIRONMENT_LEVELS, MAX_TARGETS
from calibrant.dsl.replayscm.item import Problem
from calibrant.dsl.replayscm.world import Column, Intervention, World

# --- The units of an instance, reconstructed: thresholds that are consistent with every root value its worlds show ----
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
    return [RootOnes(ones, (index + 1) / (len(chain) + 1)) for index, ones in enumerate(chain)]


# --- The worlds that hardening may add: simulated from gold on the instance's own units, never one that is held out
ASSIGNED = 0.75  # share of hard_assigned among random proposals: they show more

Targets: TypeAlias = tuple[str, ...]
Signature: TypeAlias = tuple[str, tuple[tuple[str, int], ...], tuple[str, ...]]


def heldout_signatures(problem: Problem) -> frozenset[Signature]:
    return frozenset(world.intervention.signature for world in problem.sealed.heldout.worlds)


class WorldFamily:
    """The admissible worlds of one instance: at most `max_targets` targets, none of the excluded signatures."""

    def __init__(
        self, population: Population, excluded: Collection[Signature], *, max_targets: int = MAX_TARGETS
    ) -> None:
        self.population = population
        self.excluded = frozenset(excluded)
        self.variables = natural(population.model.variables)
        self.max_targets = min(max_targets, len(self.variables))
        self._rows: dict[Targets, list[World]] = {}

    def admits(self, intervention: Intervention) -> bool:
        return len(intervention.targets) <= self.max_targets and intervention.signature not in self.excluded

    def interventions(self, targets: Targets) -> list[Intervention]:
        """Return the admissible interventions on exactly these targets: hard_assigned, else admissible constants."""
        if not targets:
            return [i for i in (Intervention(),) if self.admits(i)]
        assigned = Intervention(assigned=targets)
        if self.admits(assigned):
            return [assigned]
        values = product((0, 1), repeat=len(targets))
        constants = (Intervention(dict(zip(targets, bits, strict=True))) for bits in values)
        return [intervention for intervention in constants if self.admits(intervention)]

    @cached_property
    def target_sets(self) -> tuple[Targets, ...]:
        """Every set of at most `max_targets` variables, fewest first."""
        return tuple(t for number in range(self.max_targets + 1) for t in combinations(self.variables, number))

    @property
    def max_rows(self) -> int:
        """No fewer rows than `reachable` has."""
        sets = sum(comb(len(self.variables), number) << number for number in range(self.max_targets + 1))
        return sets << len(self.population.model.roots)

    def rows(self, targets: Targets) -> list[World]:
        """Return every row that an admissible world on exactly these targets can show, as worlds of made-up units."""
        if targets not in self._rows:
            self._rows[targets] = [self._all_rows(intervention) for intervention in self.interventions(targets)]
        return self._rows[targets]

    @cached_property
    def reachable(self) -> tuple[World, ...]:
        """Every row that any admissible world can show."""
        return tuple(world for targets in self.target_sets for world in self.rows(targets))

    def _all_rows(self, intervention: Intervention) -> World:
        free = [root for root in self.population.model.roots if root not in intervention.targets]
        contexts = sorted({c for unit in range(len(self.population.units)) for c in self._contexts(unit, free)})
        values = list(product((0, 1), repeat=len(intervention.assigned)))
        rows = [(context, chosen) for context in contexts for chosen in values]
        level = baseline_environment(self.population.model.roots)
        root_values = {root: [context[i] for context, _ in rows] for i, root in enumerate(free)}
        thresholds = {
            root: tuple(0.0 if bit else 1.0 for bit in root_values.get(root, [0] * len(rows)))
            for root in self.population.model.roots
        }
        units = tuple(f"r{index}" for index in range(len(rows)))
        assigned = {
            target: sum(chosen[i] << row for row, (_, chosen) in enumerate(rows))
            for i, target in enumerate(intervention.assigned)
        }
        everything = Population(self.population.model, units, thresholds)
        return everything.simulate(f"all {intervention}", intervention, level, assigned)

    def _contexts(self, unit: int, roots: Sequence[str]) -> Iterator[tuple[int, ...]]:
        """Return values that the roots, when left alone, can have in one unit."""
        return product(*([bit for bit in (0, 1) if self.can_show(unit, root, bit)] for root in roots))

    def can_show(self, unit: int, root: str, bit: int) -> bool:
        """Return whether the root, when left alone, has that value in that unit at some level."""
        return bool(self.levels(unit, root, bit))

    def allowing(self, *, excluded: Collection[Signature] | None = None, more_targets: int = 0) -> WorldFamily:
        """Return the same units with other worlds admissible."""
        signatures = self.excluded if excluded is None else excluded
        return WorldFamily(self.population, signatures, max_targets=self.max_targets + more_targets)

    def levels(self, unit: int, root: str, bit: int) -> list[float]:
        """Return the levels at which the root has that value in that unit."""
        threshold = self.population.thresholds[root][unit]
        return [level for level in ENVIRONMENT_LEVELS if int(threshold < level) == bit]

    # --- proposals ---------------------------------------------------------------------------------------------------

    def singles(self) -> list[Intervention]:
        """Return no intervention, and every single-variable one: what the paper adds (section B.2.5)."""
        listed = [Intervention()]
        for variable in self.variables:
            listed += [Intervention({variable: 0}), Intervention({variable: 1}), Intervention(assigned=(variable,))]
        return [intervention for intervention in listed if self.admits(intervention)]

    @cached_property
    def _by_number(self) -> list[list[Targets]]:
        """The target sets that have an admissible intervention, by their number of targets; no empty list."""
        usable = [targets for targets in self.target_sets if self.interventions(targets)]
        groups = ([t for t in usable if len(t) == number] for number in range(self.max_targets + 1))
        return [group for group in groups if group]

    def random_world(self, world_id: str, rng: Random) -> Drawn:
        """Draw an admissible intervention, environment and assignment; `IndexError` if nothing is admissible."""
        targets = rng.choice(rng.choice(self._by_number))
        constants = Intervention({target: rng.getrandbits(1) for target in targets})
        (intervention, *_) = options = self.interventions(targets)
        if not intervention.assigned:
            intervention = rng.choice(options)
        elif rng.random() >= ASSIGNED and self.admits(constants):
            intervention = constants
        return sample_world(world_id, self.population, intervention, rng)


class AnyThresholds(WorldFamily):
    """Everything that the units could show under some thresholds that agree with the evidence; rows, but no worlds.

    ranges: per root the half-open interval of each unit's threshold
    """

    def __init__(
        self,
        population: Population,
        ranges: Mapping[str, Sequence[Range]],
        excluded: Collection[Signature],
        *,
        max_targets: int = MAX_TARGETS,
    ) -> None:
        super().__init__(population, excluded, max_targets=max_targets)
        self._ranges = ranges

    def can_show(self, unit: int, root: str, bit: int) -> bool:
        low, high = self._ranges[root][unit]
        return low < max(ENVIRONMENT_LEVELS) if bit else high > min(ENVIRONMENT_LEVELS)

    def allowing(self, *, excluded: Collection[Signature] | None = None, more_targets: int = 0) -> WorldFamily:
        signatures = self.excluded if excluded is None else excluded
        return AnyThresholds(self.population, self._ranges, signatures, max_targets=self.max_targets + more_targets)


def under_any_thresholds(family: WorldFamily, ranges: Mapping[str, Sequence[Range]]) -> WorldFamily:
    """Return the family under every threshold in these ranges; itself where the drawn ones show as much."""
    wider = AnyThresholds(family.population, ranges, family.excluded, max_targets=family.max_targets)
    cells = product(range(len(family.population.units)), family.population.model.roots, (0, 1))
    is_as_wide = all(family.can_show(*cell) or not wider.can_show(*cell) for cell in cells)
    return family if is_as_wide else wider
