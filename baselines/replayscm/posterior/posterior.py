"""The posterior over SCMs under the generator's prior: exact sums over latent orders, or order MCMC."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import islice, pairwise, permutations
from math import fsum, inf, log, prod, sqrt
from random import Random
from statistics import fmean, variance
from typing import Any

import numpy as np

from calibrant.baselines.replayscm.posterior.latent_orders import (
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
from calibrant.solvers.acyclic.elimination import minimal_sets
from calibrant.solvers.acyclic.least import Mask
from calibrant.solvers.outcome import Budget, BudgetSpent
from calibrant.solvers.replayscm.roots_and_parents import is_repeating, list_root_sets

# --- Order MCMC with the weights of the exact sum, for orders too many to sum over (Friedman and Koller 2003) ---------
# A state is a configuration and an order of all variables, the roots first; its weight is that of its term in the exact
# sum. A step proposes one or several moves: move one variable to another position, exchange two neighbours or two
# roots, exchange a root with another variable if the roots are hidden, or take another configuration. Proposals are
# symmetric. Chains start at heavy orders from a beam search. Draws are dependent; how far the chains have mixed is
# known only by `report`.
CHAINS = 4
BURN_IN = 4_000  # steps of each chain before its first draw
BETWEEN = 100  # steps between two draws of a chain
LAST_MOVE_PROBABILITY = 0.5  # that a move is the last of a proposal; several moves leave modes that one cannot
BEAM = 300  # prefixes that the beam search keeps
START_ROOTS = 60  # root sets that it tries, by falling evidence
START_ORDERS = 120  # orders of each root set: all of five roots
MIXED_BELOW = 1.1  # R-hat of log weights (Gelman et al., Bayesian Data Analysis, section 11.4)


def r_hat(histories: Sequence[Sequence[float]]) -> float | None:
    """Return the potential scale reduction of chains (Gelman and Rubin 1992), over their common length; 1: they agree.

    None if undefined: fewer than two chains or values, or constant chains with different values.
    """
    length = min(map(len, histories), default=0)
    if len(histories) < 2 or length < 2:
        return None
    chains = [history[:length] for history in histories]
    within_variance = fmean(variance(chain) for chain in chains)
    between_variance = variance([fmean(chain) for chain in chains])
    if within_variance == 0:
        return 1.0 if between_variance == 0 else None
    return sqrt((length - 1) / length + between_variance / within_variance)


@dataclass
class _Chain:
    """State of a chain over orders.

    order: indices of all variables, the roots first; weight: log weight; history: log weights at the draws
    accepted, steps: numbers of accepted and of all steps
    """

    configuration: int
    order: list[int]
    weight: float
    accepted: int
    steps: int
    history: list[float]


class SampledPosterior:
    """Sampler of the posterior of a task by order MCMC; `BudgetSpent` if no order explains the evidence.

    configurations: as for `Posterior`; chains: number of chains; burn_in, between: steps before and between draws
    """

    def __init__(
        self,
        task: Task,
        *,
        configurations: Sequence[Configuration] = (),
        chains: int = CHAINS,
        burn_in: int = BURN_IN,
        between: int = BETWEEN,
    ) -> None:
        self.task = task
        self.num_roots = task.disclosure.num_roots
        self.burn_in, self.between = burn_in, between
        evidence = MechanismEvidence(task)
        units = task.training.worlds[0].num_rows if task.training.worlds else 0
        index = {variable: i for i, variable in enumerate(task.variables)}
        self._before = [sum(1 << index[u] for u in task.disclosure.earlier(v)) for v in task.variables]
        self._least = [minimal_sets(np.array(list(evidence.tables(v)), np.int64)) for v in range(len(task.variables))]
        order = task.disclosure.order
        self._known = None if order is None else [index[v] for v in order]
        self._hidden = task.disclosure.roots is None
        disclosed_roots = task.disclosure.roots or ()
        chances = [root_probability(task, v) if self._hidden else float(v in disclosed_roots) for v in task.variables]
        self._root_weight = [log(chance) if chance > 0 else -inf for chance in chances]
        starts = list[_Chain]()
        for candidates in (configurations or of_shape(len(task.variables), units), CONFIGURATIONS):
            self.locals = [LocalPosterior(evidence, configuration) for configuration in candidates]
            starts = [start for c in range(len(self.locals)) if (start := self._start(c)) is not None]
            if starts:
                break
        if not starts:
            raise BudgetSpent(f"no latent order that explains the rows among the {BEAM} heaviest beginnings")
        self._chains = [_copy_chain(starts[i % len(starts)]) for i in range(chains)]
        self._next = 0

    def sample(self, rng: Random) -> Member:
        """Sample a member, from the chains in turn."""
        chain = self._chains[self._next % len(self._chains)]
        self._next += 1
        for _ in range(self.between if chain.steps else self.burn_in):
            self._step(chain, rng)
        chain.history.append(chain.weight)
        local = self.locals[chain.configuration]
        windows = {chain.order[k]: self._window(chain, chain.order, k) for k in self._positions}
        mechanisms = {v: local.sample(rng, v, window) for v, window in sorted(windows.items())}
        roots = set(chain.order[: self.num_roots])
        return Member(tuple(v for i, v in enumerate(self.task.variables) if i in roots), mechanisms)

    @property
    def report(self) -> dict[str, Any]:
        """Return the statistics of the chains: number, steps, acceptance rate, mean log weights, and R-hat.

        mixed: whether the log weights of the chains agree; if not, draws depend on where the chains started
        """
        steps = sum(chain.steps for chain in self._chains)
        between = r_hat([chain.history for chain in self._chains])
        return {
            "method": "order MCMC",
            "chains": len(self._chains),
            "burn_in": self.burn_in,
            "between_draws": self.between,
            "steps": steps,
            "accepted": sum(chain.accepted for chain in self._chains) / max(1, steps),
            "mean_log_weight": [fmean(chain.history) for chain in self._chains if chain.history],
            "r_hat": between,
            "mixed": "as far as R-hat tells" if between is not None and between <= MIXED_BELOW else "not mixed",
        }

    @property
    def _positions(self) -> range:
        return range(self.num_roots, len(self.task.variables))

    # --- a step -----------------------------------------------------------------------------------------------------

    def _step(self, chain: _Chain, rng: Random) -> None:
        chain.steps += 1
        order, configuration = list(chain.order), chain.configuration
        while True:
            configuration = self._propose(order, configuration, rng)
            if rng.random() < LAST_MOVE_PROBABILITY:
                break
        log_uniform = log(1.0 - rng.random())
        if (configuration, order) == (chain.configuration, chain.order):
            chain.accepted += 1
            return
        weight = self._weight(configuration, order)
        if weight - chain.weight >= log_uniform:
            chain.configuration, chain.order, chain.weight = configuration, order, weight
            chain.accepted += 1

    def _propose(self, order: list[int], configuration: int, rng: Random) -> int:
        """Make one move in the order, in place, or choose another configuration; return the configuration."""
        kind, size, movable = rng.random(), len(order), self._positions
        if kind < 0.1:
            return rng.randrange(len(self.locals))
        if kind < 0.2 and self.num_roots:
            first, second = rng.randrange(self.num_roots), rng.randrange(size if self._hidden else self.num_roots)
            order[first], order[second] = order[second], order[first]
        elif kind < 0.5 and len(movable) > 1:
            index = rng.randrange(self.num_roots, size - 1)
            order[index], order[index + 1] = order[index + 1], order[index]
        elif movable:
            order.insert(rng.choice(movable), order.pop(rng.choice(movable)))
        return configuration

    def _weight(self, configuration: int, order: list[int]) -> float:
        """Return the log weight of a state, up to a constant; -inf if the disclosure does not admit the order."""
        if self._known is not None and order != self._known:
            return -inf
        weight = fsum(self._root_weight[v] for v in order[: self.num_roots])
        placed = sum(1 << v for v in order[: self.num_roots])
        length = self.locals[configuration].configuration.window
        for index in self._positions:
            v = order[index]
            if weight == -inf or self._before[v] & ~placed:
                return -inf
            window = sum(1 << u for u in order[max(0, index - length) : index])
            mass = self.locals[configuration].window_mass(v, window)
            weight += log(mass) if mass > 0 else -inf
            placed |= 1 << v
        return weight

    def _window(self, chain: _Chain, order: Sequence[int], index: int) -> Mask:
        length = self.locals[chain.configuration].configuration.window
        return sum(1 << u for u in order[max(0, index - length) : index])

    # --- starts -----------------------------------------------------------------------------------------------------

    def _start(self, configuration: int) -> _Chain | None:
        """Return a chain at the heaviest order of a beam search; None if no order explains the rows.

        Of prefixes with equal variables and equal last window only the heaviest is kept.
        """
        beam = self._root_orders()
        local = self.locals[configuration]
        length = local.configuration.window
        for _ in self._positions:
            longer = dict[tuple[Mask, tuple[int, ...]], tuple[float, tuple[int, ...]]]()
            can_finish = cache(self._can_finish)  # most prefixes share their set of variables with others
            for weight, order in beam:
                placed = sum(1 << v for v in order)
                window = sum(1 << v for v in order[-length:])
                tail = order[max(0, len(order) - length + 1) :]  # what stays of the window beside the next variable
                tail_mask = sum(1 << v for v in tail)
                for v in range(len(self.task.variables)):
                    if placed >> v & 1 or self._before[v] & ~placed:
                        continue
                    if not can_finish(placed | 1 << v, tail_mask | 1 << v):
                        continue
                    state = placed | 1 << v, (*tail, v)
                    mass = local.window_mass(v, window)
                    if mass > 0 and (state not in longer or weight + log(mass) > longer[state][0]):
                        longer[state] = weight + log(mass), (*order, v)
            beam = sorted(longer.values(), key=lambda entry: (-entry[0], entry[1]))[:BEAM]
        if not beam:
            return None
        best_order = list(beam[0][1])
        return _Chain(configuration, best_order, self._weight(configuration, best_order), 0, 0, [])

    def _can_finish(self, placed: Mask, last: Mask) -> bool:
        """Return whether each unplaced variable may still have a parent set in its window.

        placed: the placed variables; last: the last window, which with unplaced variables forms all later windows
        """
        behind = np.int64(placed & ~last)
        waiting = (v for v in range(len(self._least)) if not placed >> v & 1)
        return all(((self._least[v] & behind) == 0).any() for v in waiting)

    def _root_orders(self) -> list[tuple[float, tuple[int, ...]]]:
        """Return (log weight, order) of the likeliest root sets, each in at most START_ORDERS orders."""
        if self._known is not None:
            return [(0.0, tuple(self._known[: self.num_roots]))]
        able = [v for v in range(len(self.task.variables)) if self._root_weight[v] > -inf]
        names = [self.task.variables[v] for v in able]
        index = {variable: i for i, variable in enumerate(self.task.variables)}
        sets = [
            tuple(index[v] for v in roots)
            for roots, _ in zip(self.task.disclosure.root_sets(names), range(10_000), strict=False)
        ]
        weighed = sorted((-fsum(self._root_weight[v] for v in roots), roots) for roots in sets)
        return [
            (-weight, order)
            for weight, roots in weighed[:START_ROOTS]
            for order in islice(permutations(roots), START_ORDERS)
        ]


def _copy_chain(chain: _Chain) -> _Chain:
    return _Chain(chain.configuration, list(chain.order), chain.weight, 0, 0, [])


# --- The posterior over the members of the version space under the generator's prior, and draws from it ---------------
# Every unit has one threshold for a root, uniform on [0, 1). Every world has a level of the root: uniform on five
# values, or 0.5 without intervention. The root is 1 in the units whose threshold is below the level. So over the worlds
# that do not target the root its sets of ones form a chain, whose probability is a sum over ascending levels.
# --- Probability of a variable's values as a root: thresholds of units against levels of worlds (paper, B.2.2) --------
LEVELS = ENVIRONMENT_LEVELS
BASELINE = LEVELS.index(BASELINE_LEVEL)


def root_probability(task: Task, variable: str) -> float:
    """Return the probability of a variable's unclamped training values if it is a root; 0 if they are no chain.

    If units are not shared, every row has a threshold of its own. Worlds whose rows repeat are left out: published
    disambiguation worlds are built that way and do not follow the thresholds.
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
    """Return the probability of a chain of sets of ones.

    chain: (set as bits, number of worlds with it at the baseline level, number at sampled levels), ascending

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


def _assignments(low: int, high: int, baseline: int, num_free: int) -> float:
    """Return the probability that the levels of a group have exactly this lowest and this highest one."""

    def inside(a: int, b: int) -> float:
        if a > b or (baseline and not a <= BASELINE <= b):
            return 0.0
        return float(((b - a + 1) / len(LEVELS)) ** num_free)

    if low == high:
        return inside(low, high)
    return inside(low, high) - inside(low + 1, high) - inside(low, high - 1) + inside(low + 1, high - 1)


def _independent_probability(columns: Sequence[tuple[int, int, bool]]) -> float:
    """Return the probability of the columns if every row has its own threshold.

    columns: number of ones, number of rows and whether it is a baseline world, for each world
    """
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
    """Component of the mixture: one configuration with one root set, summed over latent orders."""

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
        """Return the joint probability of a member and the evidence in this component, up to a common factor."""
        if member.roots != self.roots:
            return 0.0

        def weight(variable: int, window: Mask) -> float:
            return self.local.mechanism_mass(variable, window, member.mechanisms[variable])

        return self.prior * self._orders(weight).mean()

    def heaviest(self) -> Member:
        """Return the most probable mechanisms of the heaviest order; with a single order, the most probable member."""
        orders = self._orders(lambda variable, window: self.local.best(variable, window)[0])
        # `best` returns None for a window without a fitting mechanism, which an order of positive weight never has
        chosen = {v: self.local.best(v, window)[1] for v, window in sorted(orders.heaviest().items())}
        return Member(self.roots, {v: mechanism for v, mechanism in chosen.items() if mechanism is not None})

    def sample(self, rng: Random) -> Member:
        mechanisms = {}
        for variable, window in sorted(self.orders.sample(rng).items()):
            mechanisms[variable] = self.local.sample(rng, variable, window)
        return Member(self.roots, mechanisms)


class Posterior:
    """Exact posterior: the mixture of all components; `BudgetSpent` if there are too many orders to sum over."""

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
        # a problem from another source may have the shape of a configuration that could not have generated it
        self.components = self._components(candidates, budget) or self._components(CONFIGURATIONS, budget)
        self.mass = fsum(component.mass for component in self.components)

    def _components(self, configurations: Sequence[Configuration], budget: Budget) -> list[Component]:
        """Return the components that explain the evidence."""
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
