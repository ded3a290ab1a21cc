"""Two SCMs that fit and differ in one variable, of least total size; or in roots, where no two share them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import combinations
from typing import NamedTuple

from calibrant.audits.replayscm.why.choices import Choices
from calibrant.audits.replayscm.why.sized_functions import LISTED_PARENTS, SizedFunction, WideFunctions, sized_space
from calibrant.dsl.replayscm.scm import LocalFunction, Scm
from calibrant.solvers.acyclic.least import Cost, Mask, ParentSet, cost_by_size, remove_dominated
from calibrant.solvers.acyclic.optimum import optimal_choice
from calibrant.solvers.budget import Budget, BudgetSpent
from calibrant.solvers.replayscm.certified import write_model
from calibrant.solvers.replayscm.members import agreeing_functions
from calibrant.solvers.replayscm.space import VersionSpace

MAX_FUNCTIONS = 48  # smallest functions of a variable that pairs are made of
MAX_ROOT_SETS = 40  # root sets of one SCM each that are compared


@dataclass(frozen=True)
class FittingPair:
    """Two checked SCMs; differing: variables whose function or role differs; least: whether proven least in size."""

    first: Scm
    second: Scm
    differing: tuple[str, ...]
    least: bool

    @property
    def size(self) -> int:
        return self.first.size + self.second.size


class _Rank(NamedTuple):
    """The order of pairs: total size, number of parents, what the worlds show of these; names only at the end."""

    size: int
    num_parents: int
    columns: tuple[tuple[int, int], ...]
    union: Mask
    first: int
    second: int


class PairSearch:
    """Least pairs of one version space, in its class with a size cap that leaves out no function of four parents."""

    def __init__(self, space: VersionSpace, choices: Choices, budget: Budget | None = None) -> None:
        """Prepare the search; the budget is charged with the parent sets that each choice of all others compares."""
        self.budget = budget or Budget()
        self.space = space
        self.choices = choices
        self.sized = sized_space(space)
        self.wide = WideFunctions(space) if space.model_class.max_parents > LISTED_PARENTS else None
        self._undominated: dict[int, Mapping[Mask, Cost]] = {}
        self._smallest: dict[tuple[int, Mask], SizedFunction] = {}
        self._others: dict[tuple[tuple[str, ...], int, Mask], Mapping[int, Mask] | None] = {}

    def differing_in(self, variable: str) -> FittingPair | None:
        """Return the least pair that differs in this variable alone; None if no root set leaves it two functions.

        Where the budget ends, or there are more root sets than are compared, it is the least found, and so marked.
        """
        pairs, num_compared = list[FittingPair | None](), 0
        with suppress(BudgetSpent):
            for roots in self.choices.root_sets[:MAX_ROOT_SETS]:
                pairs.append(self._under(roots, self.space.index[variable]))
                num_compared += 1
        best = min(filter(None, pairs), key=lambda pair: pair.size, default=None)
        is_least = best is not None and best.least and num_compared == len(self.choices.root_sets)
        return None if best is None else replace(best, least=is_least)

    def differing_in_roots(self) -> FittingPair | None:
        """Return two SCMs that are alone under their roots and differ in as few variables as possible, then in size."""
        models = [model for roots in self.choices.root_sets[:MAX_ROOT_SETS] if (model := self._sole(roots))]
        best: tuple[int, int, Scm, Scm, tuple[str, ...]] | None = None
        for first, second in combinations(models, 2):
            differing = tuple(v for v in self.space.task.variables if _role(first, v) != _role(second, v))
            if best is None or (len(differing), first.size + second.size) < best[:2]:
                best = len(differing), first.size + second.size, first, second, differing
        everything = len(models) == len(self.choices.root_sets)
        return None if best is None else FittingPair(best[2], best[3], best[4], everything)

    def _under(self, roots: tuple[str, ...], variable: int) -> FittingPair | None:
        if self.space.task.variables[variable] in roots:
            return None
        functions = self._functions(roots, variable)
        if len(functions) < 2:
            return None
        alone = self._cost(roots, variable, 0)
        if alone is None:
            return None
        best: tuple[_Rank, SizedFunction, SizedFunction] | None = None
        ordered = sorted(combinations(functions, 2), key=lambda pair: pair[0].size + pair[1].size)
        for first, second in ordered:
            if best is not None and first.size + second.size + 2 * alone > best[0].size:
                break
            rest = self._cost(roots, variable, first.mask | second.mask)
            if rest is not None:
                key = self._rank(variable, first, second, first.size + second.size + 2 * rest)
                if best is None or key < best[0]:
                    best = key, first, second
        if best is None:
            return None
        key, first, second = best
        complete = self.wide is None and (
            len(functions) < MAX_FUNCTIONS or functions[-1].size + functions[0].size + 2 * alone >= key.size
        )
        models = [self._model(roots, variable, function, first.mask | second.mask) for function in (first, second)]
        return FittingPair(models[0], models[1], (self.space.task.variables[variable],), complete)

    def _rank(self, variable: int, first: SizedFunction, second: SizedFunction, size: int) -> _Rank:
        training, union = self.space.task.training, first.mask | second.mask
        columns = tuple(sorted((training.columns[name], training.clamped[name]) for name in self.space.names(union)))
        return _Rank(size, union.bit_count(), columns, union, first.table.bits, second.table.bits)

    def _functions(self, roots: tuple[str, ...], variable: int) -> list[SizedFunction]:
        """Return the smallest functions that the variable may have, ascending by size."""
        options = self.choices.options(roots, variable)
        local = self.sized.local(variable)
        blocks = sorted(
            (size, mask.bit_count(), mask) for mask, sizes in local.by_size.items() if mask in options for size in sizes
        )
        functions: list[SizedFunction] = []
        for size, _, mask in blocks:
            if len(functions) >= MAX_FUNCTIONS:
                break
            functions += [
                SizedFunction(size, mask, table) for table in agreeing_functions(self.sized, local.tables[mask], size)
            ]
        if self.wide is not None and len(functions) < 2:
            wide = [
                entry
                for mask in self.wide.masks(variable)
                if mask in options
                for entry in self.wide.functions(variable, mask)
            ]
            functions += sorted(wide, key=lambda entry: (entry.size, entry.mask, entry.table.bits))
        return functions[:MAX_FUNCTIONS]

    def _cost(self, roots: tuple[str, ...], variable: int, parents: Mask) -> int | None:
        """Return the least total size of all other mechanisms if the variable comes after these parents."""
        chosen = self._rest(roots, variable, parents)
        if chosen is None:
            return None
        return sum(self._least(v, mask).size for v, mask in chosen.items() if v != variable)

    def _least(self, variable: int, mask: Mask) -> SizedFunction:
        """Return the smallest function over a parent set, of several the one with the smallest table."""
        key = variable, mask
        if key not in self._smallest:
            self._smallest[key] = self._find_least(variable, mask)
        return self._smallest[key]

    def _find_least(self, variable: int, mask: Mask) -> SizedFunction:
        local = self.sized.local(variable)
        if mask in local.by_size:
            size = min(local.by_size[mask])
            return SizedFunction(size, mask, agreeing_functions(self.sized, local.tables[mask], size)[0])
        assert self.wide is not None
        return min(self.wide.functions(variable, mask), key=lambda entry: (entry.size, entry.table.bits))

    def _sizes(self, variable: int) -> dict[Mask, int]:
        """Parent set -> least size; of sets too wide to be listed only where no other set is left, a size that does."""
        sizes = {mask: min(by_size) for mask, by_size in self.sized.local(variable).by_size.items()}
        if sizes or self.wide is None:
            return sizes
        return {mask: self._least(variable, mask).size for mask in self.wide.masks(variable)}

    def _costs(self, variable: int) -> Mapping[Mask, Cost]:
        """Return the parent sets of a variable, dominated ones left out: no least assignment has one of these."""
        if variable not in self._undominated:
            sets = [ParentSet(cost_by_size(size, mask), mask) for mask, size in self._sizes(variable).items()]
            self.budget.spend(len(sets))
            undominated = remove_dominated(sets, self.space.index.values())
            self._undominated[variable] = {mask: parent_set.cost for mask, parent_set in undominated.items()}
        return self._undominated[variable]

    def _rest(self, roots: tuple[str, ...], variable: int, parents: Mask) -> Mapping[int, Mask] | None:
        key = roots, variable, parents
        if key not in self._others:
            costs = {v: self._costs(v) for u, v in self.space.index.items() if u not in roots and v != variable}
            self.budget.spend(sum(1 + len(sets) for sets in costs.values()))
            if variable >= 0:
                costs[variable] = {parents: 0}
            choice = (
                optimal_choice(costs, self.choices.mask_of(roots), len(self.space.index))
                if all(costs.values())
                else None
            )
            self._others[key] = None if choice is None else choice.chosen
        return self._others[key]

    def _model(self, roots: tuple[str, ...], variable: int, function: SizedFunction, union: Mask) -> Scm:
        chosen = self._rest(roots, variable, union)
        assert chosen is not None
        functions = dict(self._least_functions(chosen, variable))
        name = self.space.task.variables[variable]
        functions[name] = LocalFunction(self.space.names(function.mask), function.table)
        return write_model(self.space.task, self.space.model_class.max_parents, functions)

    def _sole(self, roots: tuple[str, ...]) -> Scm | None:
        chosen = self._rest(roots, -1, 0)
        if chosen is None:
            return None
        return write_model(self.space.task, self.space.model_class.max_parents, dict(self._least_functions(chosen, -1)))

    def _least_functions(self, chosen: Mapping[int, Mask], left_out: int) -> Iterator[tuple[str, LocalFunction]]:
        for v, mask in chosen.items():
            if v != left_out:
                yield self.space.task.variables[v], LocalFunction(self.space.names(mask), self._least(v, mask).table)


def _role(model: Scm, variable: str) -> LocalFunction | None:
    return model.local_functions.get(variable)
