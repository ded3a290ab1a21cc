"""The posterior over the members of the version space under baselines.replayscm.posterior.prior, and draws from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import fsum, prod
from random import Random

from calibrant.baselines.replayscm.posterior.evidence import MechanismEvidence
from calibrant.baselines.replayscm.posterior.latent_orders import Choice, LatentOrders, WindowWeight
from calibrant.baselines.replayscm.posterior.local import Local, LocalPosterior
from calibrant.baselines.replayscm.posterior.prior import CONFIGURATIONS, Configuration, of_shape
from calibrant.baselines.replayscm.posterior.root_evidence import root_probability
from calibrant.dsl.replayscm.item import Task
from calibrant.solvers.acyclic.least import Mask
from calibrant.solvers.budget import Budget
from calibrant.solvers.replayscm.roots import list_root_sets

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
