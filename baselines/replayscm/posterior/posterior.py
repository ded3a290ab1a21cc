"""The posterior over the members of the version space under the generator's prior, and draws from it.

Every unit has one threshold, uniform on [0, 1), and every world a level of the root, uniform on five values and 0.5 in
a world without intervention; the root is 1 where the threshold lies below the level. Over the worlds that leave it
alone the sets of ones are a chain, and the probability of a chain is a sum over levels that never cross.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import fsum, prod
from random import Random

from calibrant.baselines.replayscm.posterior.local import (
    Choice,
    LatentOrders,
    Local,
    LocalPosterior,
    MechanismEvidence,
    WindowWeight,
)
from calibrant.baselines.replayscm.posterior.prior import CONFIGURATIONS, Configuration, of_shape
from calibrant.dsl.replayscm.generation.strata import BASELINE_LEVEL, ENVIRONMENT_LEVELS
from calibrant.dsl.replayscm.item import Task
from calibrant.solvers.acyclic.least import Mask
from calibrant.solvers.outcome import Budget
from calibrant.solvers.replayscm.parents import is_repeating, list_root_sets

# --- Probability of a variable's values as a root: thresholds of units against levels of worlds (paper, B.2.2) --------
LEVELS = ENVIRONMENT_LEVELS
BASELINE = LEVELS.index(BASELINE_LEVEL)


def root_probability(task: Task, variable: str) -> float:
    """Probability of the variable's unclamped training values if it is a root; 0 where they are no chain.

    With units that are not shared every row is a draw of its own against its world's level. Worlds whose rows repeat
    are left out: published disambiguation worlds are built that way and do not follow the thresholds.
    """
    worlds = [world for world in task.training.worlds if not is_repeating(world)]
    free = [world for world in worlds if variable not in world.intervention.targets]
    if not task.shares_units or len({world.units for world in free}) > 1:
        modes = [world.intervention.mode == "none" for world in free]
        ones = [world.column(variable).bit_count() for world in free]
        return _independent_probability(
            [(n, world.num_rows, mode) for n, world, mode in zip(ones, free, modes, strict=True)]
        )
    counts: Counter[tuple[int, bool]] = Counter(
        (world.column(variable), world.intervention.mode == "none") for world in free
    )
    chain = sorted({column for column, _ in counts}, key=lambda column: (column.bit_count(), column))
    if any(small & ~large for small, large in pairwise(chain)):
        return 0.0
    return _chain_probability([(c, counts[c, True], counts[c, False]) for c in chain], free[0].num_rows if free else 0)


def _chain_probability(chain: list[tuple[int, int, int]], num_rows: int) -> float:
    """chain: ascending sets of ones, with the number of worlds at the baseline and at drawn levels that show each.

    A group's levels lie between its lowest and its highest; units that enter the chain between two groups have
    thresholds between the highest of the one and the lowest of the next.
    """
    reached = {-1: 1.0}  # highest level so far -> probability; -1: none, thresholds from 0
    present = 0
    for column, baseline, num_others in chain:
        entering = column.bit_count() - present
        present = column.bit_count()
        after: dict[int, float] = {}
        for before, probability in reached.items():
            start = 0.0 if before < 0 else LEVELS[before]
            for low in range(before if entering == 0 and before >= 0 else before + 1, len(LEVELS)):
                for high in range(low, len(LEVELS)):
                    ways = _assignments(low, high, baseline, num_others)
                    if ways:
                        gained = probability * (LEVELS[low] - start) ** entering * ways
                        after[high] = after.get(high, 0.0) + gained
        reached = after
    return fsum(p * (1.0 - (LEVELS[top] if top >= 0 else 0.0)) ** (num_rows - present) for top, p in reached.items())


def _assignments(low: int, high: int, baseline: int, others: int) -> float:
    """Probability that a group's levels have exactly that lowest and that highest one."""

    def inside(a: int, b: int) -> float:
        if a > b or (baseline and not a <= BASELINE <= b):
            return 0.0
        return float(((b - a + 1) / len(LEVELS)) ** others)

    if low == high:
        return inside(low, high)
    return inside(low, high) - inside(low + 1, high) - inside(low, high - 1) + inside(low + 1, high - 1)


def _independent_probability(columns: Sequence[tuple[int, int, bool]]) -> float:
    """columns: ones and rows of each world, and whether it is a baseline world."""
    probability = 1.0
    for ones, rows, baseline in columns:
        levels = (LEVELS[BASELINE],) if baseline else LEVELS
        probability *= fsum(p**ones * (1 - p) ** (rows - ones) for p in levels) / len(levels)
    return probability


# --- The posterior over the members of the version space under baselines.replayscm.posterior.prior, and draws from it
MAX_STATES = 100_000  # prefixes of orders, all configurations and root sets together


@dataclass(frozen=True)
class Member:
    """A member of the version space: roots and, per endogenous variable, its mechanism."""

    roots: tuple[str, ...]
    mechanisms: Mapping[int, Local]

    @cached_property
    def key(self) -> tuple[tuple[str, ...], tuple[tuple[int, Local], ...]]:
        return self.roots, tuple(sorted(self.mechanisms.items()))

    def __hash__(self) -> int:
        return hash(self.key)

    def order(self) -> list[int]:
        """Return the endogenous variables, parents first; shorter than their number iff there is a cycle."""
        unplaced, order = dict(self.mechanisms), list[int]()
        waiting = sum(1 << variable for variable in unplaced)
        while ready := [variable for variable in unplaced if not unplaced[variable].parents & waiting]:
            for variable in ready:
                del unplaced[variable]
                waiting ^= 1 << variable
            order += ready
        return order


class Component:
    """One configuration with one root set: the part of the mixture inside which only the order is summed over."""

    def __init__(self, local: LocalPosterior, roots: tuple[str, ...], prior: float, budget: Budget) -> None:
        self.local = local
        self.roots = roots
        self.prior = prior
        self.budget = budget
        self.orders = self._orders(local.window_mass)
        # latent orders are equally likely: their total weight, averaged over the orders of the roots
        self.mass = prior * self.orders.mean()

    def _orders(self, weight: WindowWeight) -> LatentOrders:
        task = self.local.evidence.task
        window = self.local.configuration.window
        return LatentOrders(task.variables, task.disclosure, self.roots, window, weight, self.budget)

    def member_mass(self, member: Member) -> float:
        """Return the joint probability of member and evidence in this part, up to one factor for all members."""
        if member.roots != self.roots:
            return 0.0

        def weight(variable: int, window: Mask) -> float:
            return self.local.mechanism_mass(variable, window, member.mechanisms[variable])

        return self.prior * self._orders(weight).mean()

    def heaviest(self) -> Member:
        """Return the mechanisms of the heaviest order: the most probable member if there is but one order."""
        orders = self._orders(lambda variable, window: self.local.best(variable, window)[0])
        # None where no mechanism of a window fits, which an order of positive weight has nowhere
        chosen = {v: self.local.best(v, window)[1] for v, window in sorted(orders.heaviest().items())}
        return Member(self.roots, {v: mechanism for v, mechanism in chosen.items() if mechanism is not None})

    def sample(self, rng: Random) -> Member:
        mechanisms = {}
        for variable, window in sorted(self.orders.sample(rng).items()):
            mechanisms[variable] = self.local.sample(rng, variable, window)
        return Member(self.roots, mechanisms)


class Posterior:
    """All parts of the mixture. `BudgetSpent` where there are too many orders to sum over."""

    def __init__(
        self, task: Task, *, configurations: Sequence[Configuration] = (), states: int | None = MAX_STATES
    ) -> None:
        """Prepare the posterior of a problem.

        configurations: equally likely ones; by default those of the task's shape, or all if none of these explains it
        """
        self.task = task
        self.evidence = MechanismEvidence(task)
        budget = Budget(states)
        num_units = task.training.worlds[0].num_rows if task.training.worlds else 0
        candidates = configurations or of_shape(len(task.variables), num_units)
        # a problem of another origin may have the shape of a configuration that could not have generated it
        self.components = self._components(candidates, budget) or self._components(CONFIGURATIONS, budget)
        self.mass = fsum(component.mass for component in self.components)

    def _components(self, configurations: Sequence[Configuration], budget: Budget) -> list[Component]:
        """Return the parts that explain the evidence."""
        roots = self._root_sets()
        locals_ = [LocalPosterior(self.evidence, configuration) for configuration in configurations]
        components = [
            Component(local, chosen, likelihood / len(configurations), budget)
            for local in locals_
            for chosen, likelihood in roots.items()
        ]
        return [component for component in components if component.mass > 0]

    def _root_sets(self) -> dict[tuple[str, ...], float]:
        """Return the root sets with the probability of the roots' values; 1 for disclosed roots."""
        disclosure = self.task.disclosure
        if disclosure.roots is not None:
            return dict.fromkeys(disclosure.root_sets(), 1.0)
        chances = {v: root_probability(self.task, v) for v in self.task.variables}
        able = [v for v, chance in chances.items() if chance > 0]
        return {roots: prod(chances[v] for v in roots) for roots in list_root_sets(self.task, able)}

    def sample(self, rng: Random) -> Member:
        return self._parts.draw(rng).sample(rng)

    @cached_property
    def _parts(self) -> Choice[Component]:
        return Choice([(component, component.mass) for component in self.components])

    def probability(self, member: Member) -> float:
        """Return the posterior probability of a member."""
        return fsum(component.member_mass(member) for component in self.components) / self.mass

    def configurations(self) -> dict[str, float]:
        """Return the posterior probability of each configuration that explains the evidence, by name."""
        shares: dict[str, float] = {}
        for component in self.components:
            name = component.local.configuration.name
            shares[name] = shares.get(name, 0.0) + component.mass / self.mass
        return shares
