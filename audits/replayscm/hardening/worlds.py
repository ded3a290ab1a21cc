"""Worlds that hardening may add: simulated from gold on the instance's own units, with thresholds that fit its worlds.

A unit's threshold for a root is one number for all worlds and not in the file (paper, section B.2.2). In a world with
level L that does not target the root, 1 means threshold < L and 0 means threshold >= L. If the file has the levels,
these bounds give an interval. If not, the sets of units that show 1 are ordered by inclusion, and the levels are taken
to be equally spaced in that order, which agrees with all observations. The threshold is drawn uniformly from its
interval.

Worlds that contradict these bounds are skipped, later ones in favour of earlier ones: published disambiguation worlds
(`train_aug_*`) do not follow the thresholds. Worlds of other units give no bounds; if the panel does not share units,
thresholds are uniform.

Proofs must not rest on drawn thresholds. `threshold_ranges` returns all that agree with the evidence: it uses only
levels of the file, and leaves a unit unbounded whose worlds contradict each other. `AnyThresholds` has all rows under
all of these thresholds.

Admissible are interventions with at most `max_targets` targets in one mode whose signature no held-out world has. A
signature of a training world may be used again, with other values row by row or another environment. Every world sets
the levels of its roots, so a unit may show both values of a root unless its threshold is beyond all levels; the values
of hard_assigned targets are free row by row. Rows do not depend on each other. So all admissible worlds together can
show a finite list of rows (`reachable`): no number of them separates two SCMs that agree on all of these rows.
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
    """The units in which a root is 1 in one world that does not target it, as bits; the world's level, if known."""

    ones: Column
    level: float | None


def population(problem: Problem, rng: Random) -> Population:
    """Return gold with the instance's units and drawn thresholds; `ValueError` without gold or training worlds."""
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
    """Return, by root and unit, the thresholds that agree with the levels in the file; (0, 1) if none does."""
    units = problem.task.training.worlds[0].units
    return {root: _ranges(list(_observe_root(problem, root, units)), len(units)) for root in latent_scm(problem).roots}


def _ranges(observed: Sequence[RootOnes], num_units: int) -> list[Range]:
    """Return the range of each unit's threshold by worlds with a known level."""
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
    """Return the interval of each unit's threshold by known levels, or equally spaced ones if none is known."""
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
    """Return the sets of units that form a chain by inclusion, with equally spaced levels; earlier worlds first."""
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
        return tuple(t for size in range(self.max_targets + 1) for t in combinations(self.variables, size))

    @property
    def max_rows(self) -> int:
        """Upper bound of the number of rows of `reachable`."""
        num_assignments = sum(comb(len(self.variables), size) << size for size in range(self.max_targets + 1))
        return num_assignments << len(self.population.model.roots)

    def rows(self, targets: Targets) -> list[World]:
        """Return every row that an admissible world on exactly these targets can show, as worlds, one unit per row."""
        if targets not in self._rows:
            self._rows[targets] = [self._all_rows(intervention) for intervention in self.interventions(targets)]
        return self._rows[targets]

    @cached_property
    def reachable(self) -> tuple[World, ...]:
        """Every row that any admissible world can show."""
        return tuple(world for targets in self.target_sets for world in self.rows(targets))

    def _all_rows(self, intervention: Intervention) -> World:
        """Simulate every context of the free roots with every value of the assigned targets, one unit per row."""
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
        """Return the values that roots which are no targets can have in one unit."""
        return product(*([bit for bit in (0, 1) if self.can_show(unit, root, bit)] for root in roots))

    def can_show(self, unit: int, root: str, bit: int) -> bool:
        """Return whether the root, if it is no target, has that value in that unit at some level."""
        return bool(self.levels(unit, root, bit))

    def allowing(self, *, excluded: Collection[Signature] | None = None, more_targets: int = 0) -> WorldFamily:
        """Return the family of the same units with other excluded signatures (None: the same) or more targets."""
        signatures = self.excluded if excluded is None else excluded
        return WorldFamily(self.population, signatures, max_targets=self.max_targets + more_targets)

    def levels(self, unit: int, root: str, bit: int) -> list[float]:
        """Return the levels at which the root has that value in that unit."""
        threshold = self.population.thresholds[root][unit]
        return [level for level in ENVIRONMENT_LEVELS if int(threshold < level) == bit]

    # --- proposals ---------------------------------------------------------------------------------------------------

    def singles(self) -> list[Intervention]:
        """Return no intervention and all single-variable ones, if admissible, as in the paper (section B.2.5)."""
        interventions = [Intervention()]
        for variable in self.variables:
            constants = Intervention({variable: 0}), Intervention({variable: 1})
            interventions += [*constants, Intervention(assigned=(variable,))]
        return [intervention for intervention in interventions if self.admits(intervention)]

    @cached_property
    def _target_sets_by_size(self) -> list[list[Targets]]:
        """The target sets that have an admissible intervention, grouped by size; no empty group."""
        usable = [targets for targets in self.target_sets if self.interventions(targets)]
        groups = ([t for t in usable if len(t) == size] for size in range(self.max_targets + 1))
        return [group for group in groups if group]

    def random_world(self, world_id: str, rng: Random) -> Drawn:
        """Sample an admissible world; `IndexError` if nothing is admissible."""
        targets = rng.choice(rng.choice(self._target_sets_by_size))
        constants = Intervention({target: rng.getrandbits(1) for target in targets})
        (intervention, *_) = options = self.interventions(targets)
        if not intervention.assigned:
            intervention = rng.choice(options)
        elif rng.random() >= ASSIGNED and self.admits(constants):
            intervention = constants
        return sample_world(world_id, self.population, intervention, rng)


class AnyThresholds(WorldFamily):
    """All rows that the units can show under some thresholds that agree with the evidence; proposes no worlds.

    ranges: root -> range of each unit's threshold
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
    """Return the family under every threshold in these ranges; the same family if it can show as much already."""
    wider = AnyThresholds(family.population, ranges, family.excluded, max_targets=family.max_targets)
    cells = product(range(len(family.population.units)), family.population.model.roots, (0, 1))
    is_as_wide = all(family.can_show(*cell) or not wider.can_show(*cell) for cell in cells)
    return family if is_as_wide else wider
