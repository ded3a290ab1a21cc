"""Posterior of one variable's mechanism: its training rows, latent orders, weights of parent sets and functions.

A latent order has the roots first, in an order of their own because windows slide over them too. The window of each
later variable holds its last predecessors, which may be its parents. Orders are equally likely, so sums are over all
orders that the disclosure admits. Prefixes with the same variables and the same last window have the same completions,
so these are summed once.

Given the windows, the mechanisms of an SCM are independent under the prior, and the evidence about one mechanism is the
partial table over its parents. So a sum over orders needs, for each variable and window, only the prior mass of the
mechanisms that agree with the rows.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import accumulate, combinations, permutations
from math import comb, fsum
from random import Random
from typing import Generic, NamedTuple, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from calibrant.baselines.replayscm.posterior import prior
from calibrant.dsl.formulas.table import PartialTable, from_formula
from calibrant.dsl.replayscm.disclosure import Disclosure
from calibrant.dsl.replayscm.generation.strata import SHORTCUT_CAP
from calibrant.dsl.replayscm.item import Task
from calibrant.solvers.acyclic.least import Mask
from calibrant.solvers.formulas.synthesis import LeastSize
from calibrant.solvers.outcome import Budget, BudgetSpent
from calibrant.solvers.replayscm.roots_and_parents import ParentSearch
from calibrant.solvers.replayscm.space import local_space

# --- Sums over the latent orders in which the generator may have built an SCM -----------------------------------------
T = TypeVar("T")

WindowWeight: TypeAlias = Callable[[int, Mask], float]
"""(variable, window) -> weight of building the variable with this window."""

State: TypeAlias = tuple[Mask, tuple[int, ...]]
"""(set of placed variables, last window in order)."""


class LatentOrders:
    """All latent orders that start with one root set; the budget is charged 1 for each expanded prefix.

    window: number of predecessors in a window; weight: (variable, window) -> weight of building it there
    """

    def __init__(
        self,
        variables: Sequence[str],
        disclosure: Disclosure,
        roots: Sequence[str],
        window: int,
        weight: WindowWeight,
        budget: Budget,
    ) -> None:
        self.weight = weight
        self.window = window
        self.budget = budget
        index = {variable: i for i, variable in enumerate(variables)}
        self.full = (1 << len(variables)) - 1
        self.roots = [index[root] for root in roots]
        self.root_mask = sum(1 << root for root in self.roots)
        self.known = None if disclosure.order is None else [index[v] for v in disclosure.order]
        self.before = {i: sum(1 << index[u] for u in disclosure.earlier(v)) for v, i in index.items()}
        self._memo: dict[State, float] = {}
        self._options: dict[State, tuple[Mask, Choice[tuple[int, State]]]] = {}  # for sampling: (window, options)

    def starts(self) -> Iterator[State]:
        """Yield the state after the roots for each possible last window; all are equally likely."""
        if self.known is not None:
            yield self.root_mask, tuple([v for v in self.known if v in self.roots][-self.window :])
            return
        for last in permutations(self.roots, min(self.window, len(self.roots))):
            yield self.root_mask, last

    def mean(self) -> float:
        """Return the total weight of the orders of the other variables, averaged over the orders of the roots."""
        sums = [self.completions(start) for start in self.starts()]
        return fsum(sums) / len(sums)

    def completions(self, state: State) -> float:
        """Return the total weight of all completions of a prefix; `BudgetSpent` if there are too many."""
        if state[0] == self.full:
            return 1.0
        if state not in self._memo:
            self.budget.spend(1)
            self._memo[state] = fsum(weight * self.completions(after) for _, weight, after in self.steps(state))
        return self._memo[state]

    def heaviest(self) -> dict[int, Mask]:
        """Return the window of each endogenous variable in the order of largest weight, the first of equals."""
        best: dict[State, tuple[float, list[tuple[int, Mask]]]] = {}

        def heaviest_tail(state: State) -> tuple[float, list[tuple[int, Mask]]]:
            if state[0] == self.full:
                return 1.0, []
            if state not in best:
                self.budget.spend(1)
                heaviest: tuple[float, list[tuple[int, Mask]]] = 0.0, []
                for v, weight, after in self.steps(state):
                    tail_weight, tail = heaviest_tail(after)
                    if weight * tail_weight > heaviest[0]:
                        heaviest = weight * tail_weight, [(v, sum(1 << u for u in state[1])), *tail]
                best[state] = heaviest
            return best[state]

        return dict(max((heaviest_tail(start) for start in self.starts()), key=lambda result: result[0])[1])

    def steps(self, state: State) -> Iterator[tuple[int, float, State]]:
        """Yield (variable, weight, next state) for each variable that may come next with a positive weight."""
        placed, last = state
        window = sum(1 << v for v in last)
        if self.known is not None:
            free = [next(v for v in self.known if not placed >> v & 1)]
        else:
            free = [v for v, earlier in self.before.items() if not placed >> v & 1 and not earlier & ~placed]
        for v in free:
            weight = self.weight(v, window)
            if weight:
                yield v, weight, (placed | 1 << v, (*last, v)[-self.window :])

    def sample(self, rng: Random) -> dict[int, Mask]:
        """Return the window of each endogenous variable in an order sampled by weight."""
        state = self._start.draw(rng)
        windows: dict[int, Mask] = {}
        while state[0] != self.full:
            if state not in self._options:
                steps = [((v, after), weight * self.completions(after)) for v, weight, after in self.steps(state)]
                self._options[state] = sum(1 << v for v in state[1]), Choice(steps)
            window, options = self._options[state]
            v, state = options.draw(rng)
            windows[v] = window
        return windows

    @cached_property
    def _start(self) -> Choice[State]:
        return Choice([(start, self.completions(start)) for start in self.starts()])


class Choice(Generic[T]):
    """Options with weights, for repeated sampling."""

    def __init__(self, options: Sequence[tuple[T, float]]) -> None:
        self.options = options
        self.total = fsum(weight for _, weight in options)

    def draw(self, rng: Random) -> T:
        """Return an option with probability proportional to its weight."""
        remaining = rng.random() * self.total
        for option, weight in self.options:
            remaining -= weight
            if remaining < 0:
                return option
        return next(option for option, weight in reversed(self.options) if weight)


# --- The training rows of a task as the prior reads them: partial tables by parent set, and shortcuts that fit --------
MAX_STATES = 500_000_000  # compared functions of five parents: half a second; pools need a quarter of them
NO_FIT = 99  # stands for the size if no shortcut fits; larger than every shortcut


class MechanismEvidence:
    """The training rows of a task, as partial tables of candidate parent sets, and the shortcuts that fit them."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.index = {variable: i for i, variable in enumerate(task.variables)}
        self._search = ParentSearch(task, prior.SHORTCUT_VARIABLES)
        self._tables: dict[int, Mapping[Mask, PartialTable]] = {}
        self._fits: dict[int, list[tuple[Mask, int]]] = {}
        self._budget = Budget(MAX_STATES)
        self._least: dict[tuple[int, int], int] = {}
        self._agreeing: dict[tuple[int, int], tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint8]]] = {}

    def tables(self, variable: int) -> Mapping[Mask, PartialTable]:
        """Return parent set -> partial table of the rows, for the admissible sets that determine the variable."""
        if variable not in self._tables:
            candidates = self._candidates(variable)
            max_parents = min(prior.MAX_PARENTS, len(candidates))
            self._tables[variable] = local_space(self._search.packed, variable, candidates, max_parents).tables
        return self._tables[variable]

    def _candidates(self, variable: int) -> list[int]:
        admissible = self.task.disclosure.admissible_parents(self.task.variables[variable])
        return [self.index[parent] for parent in admissible]

    def least_fit(self, variable: int, window: Mask) -> int:
        """Return the size of the least shortcut over the window that fits the rows; NO_FIT without one."""
        if variable not in self._fits:
            parent_sets = self._search.parent_sets(variable, self._candidates(variable))
            fits = [
                (parent_set.mask, parent_set.size)
                for parent_set in parent_sets
                if parent_set.size is not None and parent_set.size <= SHORTCUT_CAP
            ]
            self._fits[variable] = fits
        return min((size for mask, size in self._fits[variable] if mask & ~window == 0), default=NO_FIT)

    def agreeing(self, table: PartialTable) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint8]]:
        """Return bits and least sizes of the catalogued functions of five parents that agree.

        `BudgetSpent` after more than MAX_STATES compared functions.
        """
        key = table.care, table.value
        if key not in self._agreeing:
            words, sizes = prior.essential(prior.MAX_PARENTS)
            self._budget.spend(len(words))
            agrees = np.flatnonzero((words & np.uint32(table.care)) == np.uint32(table.value & table.care))
            self._agreeing[key] = words[agrees], sizes[agrees]
        return self._agreeing[key]

    def least_function(self, table: PartialTable) -> int:
        """Return the bits of the least function that agrees with a table, beyond the catalogue.

        `BudgetSpent` if the search ends without one of a size that is ever drawn.
        """
        key = table.care, table.value
        if key not in self._least:
            search = LeastSize(table)
            while search.possible and search.size is None and search.lower_bound <= prior.ANY_SIZE[1]:
                search.advance(self._budget)
                if self._budget.exhausted:
                    raise BudgetSpent
            if search.size is None:
                raise BudgetSpent
            names = tuple(str(i) for i in range(table.num_vars))
            self._least[key] = from_formula(search.formula(names), names).bits
        return self._least[key]


# --- Posterior of one variable's mechanism: weights of its parent sets and functions, by window -----------------------


class Local(NamedTuple):
    """One mechanism of the version space; bits: its truth table over `parents`."""

    parents: Mask
    bits: int


class LocalPosterior:
    """Weights of the mechanisms of one task's variables under one configuration."""

    def __init__(self, evidence: MechanismEvidence, configuration: prior.Configuration) -> None:
        self.evidence = evidence
        self.configuration = configuration
        self._masses: dict[tuple[int, Mask], prior.F64] = {}
        self._sets: dict[tuple[int, Mask], list[tuple[Mask, float]]] = {}
        self._windows: dict[tuple[int, Mask], float] = {}
        self._best: dict[tuple[int, Mask], tuple[float, Local | None]] = {}
        self._functions: dict[tuple[int, Mask, int], tuple[list[Local], list[float]]] = {}
        self._choices: dict[tuple[int, Mask], tuple[int, Choice[Mask]]] = {}

    def mass(self, variable: int, parents: Mask) -> prior.F64:
        """Return, by column, the probability that a slot with these parents draws a function that fits the rows."""
        key = variable, parents
        if key not in self._masses:
            self._masses[key] = self._mass(self.evidence.tables(variable).get(parents))
        return self._masses[key]

    def _mass(self, table: PartialTable | None) -> prior.F64:
        mass = np.zeros(prior.NUM_COLUMNS)
        if table is None:
            return mass
        if table.num_vars == prior.MAX_PARENTS:
            sized = prior.size_weights(self.configuration)
            catalogued_mass = sized.weights[self.evidence.agreeing(table)[1]].sum()
            mass[prior.ANY] = catalogued_mass + sized.remaining_mass * 0.5 ** table.care.bit_count()
            return mass
        functions = prior.function_weights(table.num_vars, self.configuration)
        agrees = (functions.bits & np.uint32(table.care)) == np.uint32(table.value & table.care)
        mass += functions.weights[:, agrees].sum(axis=1)
        return mass

    def column(self, variable: int, window: Mask) -> int | None:
        """Return the column of weights for a variable in a window; None if nothing is accepted."""
        return prior.column_of(self.evidence.least_fit(variable, window), self.configuration)

    def share(self, window: Mask, num_parents: int) -> float:
        """Return the probability that a slot draws one given set of that many parents, given acceptance."""
        length = window.bit_count()
        max_parents = min(length, self.configuration.window)
        if not 2 <= num_parents <= max_parents:
            return 0.0
        accepted = prior.slot_mass(max_parents, self.configuration)
        return 1 / ((max_parents - 1) * comb(length, num_parents) * accepted) if accepted else 0.0

    def sets(self, variable: int, window: Mask) -> list[tuple[Mask, float]]:
        """Return the parent sets inside a window, each with the probability to be drawn and agree with the rows."""
        key = variable, window
        if key not in self._sets:
            column = self.column(variable, window)
            self._sets[key] = [] if column is None else list(self._weigh_sets(variable, window, column))
        return self._sets[key]

    def _weigh_sets(self, variable: int, window: Mask, column: int) -> Iterator[tuple[Mask, float]]:
        tables = self.evidence.tables(variable)
        inside = [1 << i for i in range(window.bit_length()) if window >> i & 1]
        for num_parents in range(prior.MAX_PARENTS + 1):
            share = self.share(window, num_parents)
            for chosen in combinations(inside, num_parents) if share else ():  # in the order of the tables
                parents = sum(chosen)
                mass = float(self.mass(variable, parents)[column]) if parents in tables else 0.0
                if mass:
                    yield parents, mass * share

    def window_mass(self, variable: int, window: Mask) -> float:
        """Return the probability that a slot with this window agrees with the rows and leaves no shortcut."""
        key = variable, window
        if key not in self._windows:
            self._windows[key] = fsum(mass for _, mass in self.sets(variable, window))
        return self._windows[key]

    def functions(self, variable: int, parents: Mask, column: int) -> tuple[list[int], prior.F64]:
        """Return the catalogued functions of exactly these parents that agree with the rows, and their weights."""
        table = self.evidence.tables(variable)[parents]
        if table.num_vars == prior.MAX_PARENTS:
            words, sizes = self.evidence.agreeing(table)
            if not len(words):  # one function represents all beyond the catalogue
                return [self.evidence.least_function(table)], np.ones(1)
            return words.tolist(), prior.size_weights(self.configuration).weights[sizes]
        functions = prior.function_weights(table.num_vars, self.configuration)
        agrees = (functions.bits & np.uint32(table.care)) == np.uint32(table.value & table.care)
        agrees &= functions.weights[column] > 0
        return functions.bits[agrees].tolist(), functions.weights[column][agrees]

    def best(self, variable: int, window: Mask) -> tuple[float, Local | None]:
        """Return the weight of the most probable mechanism of a window, and the mechanism; the first on a tie."""
        key = variable, window
        if key not in self._best:
            column = self.column(variable, window)
            heaviest: tuple[float, Local | None] = 0.0, None
            for parents, _ in self.sets(variable, window):
                assert column is not None
                bits, weights = self.functions(variable, parents, column)
                index = int(weights.argmax())
                mechanism = Local(parents, bits[index])
                mass = self.mechanism_mass(variable, window, mechanism)
                if mass > heaviest[0]:
                    heaviest = mass, mechanism
            self._best[key] = heaviest
        return self._best[key]

    def mechanism_mass(self, variable: int, window: Mask, mechanism: Local) -> float:
        """Return the probability that a slot with this window draws this mechanism, which agrees with the rows.

        It is 0 if the mechanism leaves a shortcut.
        """
        column = self.column(variable, window)
        if column is None or mechanism.parents & ~window:
            return 0.0
        share = self.share(window, mechanism.parents.bit_count())
        return share * self._function_mass(variable, mechanism, column) if share else 0.0

    def _function_mass(self, variable: int, mechanism: Local, column: int) -> float:
        num_parents = mechanism.parents.bit_count()
        words, sizes = prior.essential(num_parents)
        indices = np.flatnonzero(words == mechanism.bits)
        if num_parents == prior.MAX_PARENTS and column == prior.ANY:
            sized = prior.size_weights(self.configuration)
            care = self.evidence.tables(variable)[mechanism.parents].care
            return float(
                sized.weights[sizes[indices[0]]] if len(indices) else sized.remaining_mass * 0.5 ** care.bit_count()
            )
        if not len(indices) or num_parents == prior.MAX_PARENTS:
            return 0.0
        return float(prior.function_weights(num_parents, self.configuration).weights[column, indices[0]])

    def sample(self, rng: Random, variable: int, window: Mask) -> Local:
        """Sample a mechanism with probability proportional to its weight in this window."""
        slot = variable, window
        if slot not in self._choices:
            column = self.column(variable, window)
            assert column is not None
            self._choices[slot] = column, Choice(self.sets(variable, window))
        column, sets = self._choices[slot]
        parents = sets.draw(rng)
        key = variable, parents, column
        if key not in self._functions:
            bits, weights = self.functions(*key)
            self._functions[key] = [Local(parents, table) for table in bits], list(accumulate(weights.tolist()))
        mechanisms, sums = self._functions[key]
        return mechanisms[bisect(sums, rng.random() * sums[-1], 0, len(sums) - 1)]
