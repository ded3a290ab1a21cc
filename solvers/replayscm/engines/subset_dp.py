"""Engine without search: dynamic programming over subsets of variables, component by component.

Only endogenous variables that can lie on a cycle together compete for an order, so subsets are taken within each
strongly connected component of the graph of possible parents. Budget units: (subset, variable) pairs, n 2**n for a
component of n variables; when counting (subset, sinks) pairs, 3**n.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations
from math import prod

from calibrant.dsl.formulas.table import PartialTable, TruthTable, depends_on, num_rows
from calibrant.dsl.replayscm.item import Task
from calibrant.dsl.replayscm.scm import LocalFunction, Scm
from calibrant.solvers.acyclic import count as dag_count
from calibrant.solvers.acyclic import least as structure
from calibrant.solvers.acyclic.count import Weights, total
from calibrant.solvers.acyclic.least import Mask, best_structure, components
from calibrant.solvers.outcome import Budget, BudgetSpent, Outcome, OutOfBudget
from calibrant.solvers.replayscm.engines.contract import Counted, Functions, outcome_of
from calibrant.solvers.replayscm.space import ModelClass, VersionSpace


class SubsetDp:
    """Engine `subset_dp`."""

    name = "subset_dp"

    def first(self, task: Task, model_class: ModelClass, *, budget: Budget | None = None) -> Outcome[Scm]:
        """Find a member under the first root set that has one, with the least sum of ranks of parent sets.

        The parent sets of a variable are ranked by size and then by mask, so the sum prefers small ones; the member
        need not have the fewest parents in total.
        """
        try:
            functions = _Space(task, model_class, budget).first()
        except BudgetSpent as spent:
            return _out_of_budget(spent)
        return outcome_of(task, model_class, functions, "no member")

    def second(
        self, task: Task, model_class: ModelClass, excluded: Scm, *, budget: Budget | None = None
    ) -> Outcome[Scm]:
        try:
            functions = _Space(task, model_class, budget).find_different(excluded.local_functions)
        except BudgetSpent as spent:
            return _out_of_budget(spent)
        return outcome_of(task, model_class, functions, "no other member")

    def count_up_to(
        self, task: Task, model_class: ModelClass, limit: int, *, budget: Budget | None = None
    ) -> Counted | OutOfBudget:
        """Count all members and cut off; the work does not depend on the limit."""
        try:
            count = _Space(task, model_class, budget).count()
        except BudgetSpent as spent:
            return _out_of_budget(spent)
        return Counted(min(count, limit), more=count > limit)


def largest_component(task: Task, model_class: ModelClass) -> int:
    """Return the largest number of variables that may lie on a cycle together, under any root set of the class."""
    space = _Space(task, model_class, None)
    return max(len(component) for roots in space.space.root_sets for component in (*space.components(roots), ()))


def _out_of_budget(spent: BudgetSpent) -> OutOfBudget:
    return OutOfBudget(str(spent) or "the subsets of the variables are more than the budget has states")


class _Space:
    """Version space with its components, and the budget that each step is charged to."""

    def __init__(self, task: Task, model_class: ModelClass, budget: Budget | None) -> None:
        if model_class.max_size is not None:
            raise ValueError("the engines are for classes without a cap on formula size")
        self.space = VersionSpace(task, model_class)
        self.budget = budget or Budget()

    def count(self) -> int:
        # no cycle leaves a component, so counts multiply: 3**n for the largest instead of all
        return sum(
            prod(self._component_count(component) for component in self.components(roots))
            for roots in self.space.root_sets
        )

    def first(self) -> Functions | None:
        parents = (self._assign_parents(roots, self._options(roots)) for roots in self.space.root_sets)
        chosen = next((mask for mask in parents if mask is not None), None)
        return None if chosen is None else {v: self._function(v, mask) for v, mask in chosen.items()}

    def find_different(self, excluded: Functions) -> Functions | None:
        """Find a member with other functions, parents or roots than these; None if there is none."""
        if not self._is_member(excluded):
            return self.first()
        masks = {v: self._mask(local) for v, local in excluded.items()}
        for variable, mask in masks.items():
            # another function over the same parents keeps the DAG, so that no search is needed
            if self._counts(variable)[mask] > 1:
                return {**excluded, variable: self._function(variable, mask, excluded[variable])}
        for roots in self.space.root_sets:
            options = self._options(roots)
            # other roots: every member differs. The same roots: a different member avoids the parent set of some
            # variable, so forbidding one at a time is complete
            if options.keys() != masks.keys():
                chosen = self._assign_parents(roots, options)
            else:
                chosen = next(
                    (assignment for v in options if (assignment := self._assign_without(roots, options, v, masks[v]))),
                    None,
                )
            if chosen is not None:
                return {v: self._function(v, mask) for v, mask in chosen.items()}
        return None

    def _assign_without(
        self, roots: tuple[str, ...], options: Mapping[str, Mapping[Mask, int]], variable: str, mask: Mask
    ) -> dict[str, Mask] | None:
        remaining = {parents: cost for parents, cost in options[variable].items() if parents != mask}
        return self._assign_parents(roots, {**options, variable: remaining})

    def _is_member(self, functions: Functions) -> bool:
        roots = tuple(v for v in self.space.task.variables if v not in functions)
        return roots in {
            tuple(sorted(root_set, key=self.space.index.__getitem__)) for root_set in self.space.root_sets
        } and all(
            self._mask(local) in self._counts(v) and self._table(v, self._mask(local)).agrees(local.table)
            for v, local in functions.items()
        )

    # --- structure --------------------------------------------------------------------------------------------------

    def _options(self, roots: tuple[str, ...]) -> dict[str, dict[Mask, int]]:
        """Rank the parent sets of each endogenous variable by number of parents; the rank is the cost."""
        return {
            v: {mask: rank for rank, mask in enumerate(sorted(self._counts(v), key=lambda m: (m.bit_count(), m)))}
            for v in self.space.task.variables
            if v not in roots
        }

    def _assign_parents(
        self, roots: tuple[str, ...], options: Mapping[str, Mapping[Mask, int]]
    ) -> dict[str, Mask] | None:
        """Choose a parent set for every variable, without a cycle; None if there is none."""
        chosen: dict[str, Mask] = {}
        for component in self.components(roots):
            self._charge(len(component) << len(component), len(component), structure.MAX_FREE_VARIABLES)
            names = {self.space.index[v]: v for v in component}
            best = best_structure({i: options[v] for i, v in names.items()}, self._others_mask(component))
            if best is None:
                return None
            chosen |= {names[i]: mask for i, mask in best[1].items()}
        return chosen

    def _component_count(self, component: tuple[str, ...]) -> int:
        self._charge(int(3 ** len(component)), len(component), dag_count.MAX_FREE_VARIABLES)
        return total(Weights({self.space.index[v]: self._counts(v) for v in component}, self._others_mask(component)))

    def components(self, roots: tuple[str, ...]) -> list[tuple[str, ...]]:
        """Group the endogenous variables: possible cycles stay within a group."""
        index = {self.space.index[v]: v for v in self.space.task.variables if v not in roots}
        arcs = [(i, j) for j, v in index.items() for i in index for mask in self._counts(v) if mask >> i & 1]
        component_of = components(arcs)
        groups: dict[int, list[str]] = {}
        for i, v in index.items():
            groups.setdefault(component_of.get(i, i), []).append(v)
        return [tuple(group) for group in groups.values()]

    def _others_mask(self, component: tuple[str, ...]) -> Mask:
        return sum(1 << i for v, i in self.space.index.items() if v not in component)

    def _charge(self, states: int, num_variables: int, limit: int) -> None:
        if num_variables > limit:
            raise BudgetSpent(f"{num_variables} variables may lie on a cycle together; {limit} are supported")
        self.budget.spend(states)

    # --- functions --------------------------------------------------------------------------------------------------

    def _counts(self, variable: str) -> Mapping[Mask, int]:
        return self.space.local(self.space.index[variable]).counts

    def _table(self, variable: str, mask: Mask) -> PartialTable:
        return self.space.local(self.space.index[variable]).tables[mask]

    def _mask(self, local: LocalFunction) -> Mask:
        return sum(1 << self.space.index[parent] for parent in local.parents)

    def _function(self, variable: str, mask: Mask, excluded: LocalFunction | None = None) -> LocalFunction:
        """Return the first function of exactly these parents that agrees with the rows and is not `excluded`."""
        functions = (LocalFunction(self.space.names(mask), t) for t in _completions(self._table(variable, mask)))
        return next(local for local in functions if local != excluded)


def _completions(table: PartialTable) -> Iterator[TruthTable]:
    """Yield the functions that agree with a table and depend on all of its variables, fewest ones first."""
    still_open = [row for row in range(num_rows(table.num_vars)) if not table.care >> row & 1]
    for number in range(len(still_open) + 1):
        for ones in combinations(still_open, number):
            function = TruthTable(table.num_vars, table.value | sum(1 << row for row in ones))
            if all(depends_on(function, i) for i in range(table.num_vars)):
                yield function
