"""The training rows of a task as the prior reads them: partial tables by parent set, and shortcuts that fit."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from calibrant.baselines.replayscm.posterior.formula_weights import ANY_SIZE
from calibrant.baselines.replayscm.posterior.prior import MAX_PARENTS, SHORTCUT_VARIABLES, essential
from calibrant.dsl.formulas.table import PartialTable, from_formula
from calibrant.dsl.replayscm.generation.strata import SHORTCUT_CAP
from calibrant.dsl.replayscm.item import Task
from calibrant.solvers.acyclic.least import Mask
from calibrant.solvers.budget import Budget, BudgetSpent
from calibrant.solvers.formulas.synthesis import LeastSize
from calibrant.solvers.replayscm.parents import ParentSearch
from calibrant.solvers.replayscm.space import local_space

MAX_STATES = 500_000_000  # functions of five parents that are looked at: half a second; pools need a quarter
NO_FIT = 99  # larger than every shortcut


class MechanismEvidence:
    """The training rows of a task as the prior reads them."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.index = {variable: i for i, variable in enumerate(task.variables)}
        self._search = ParentSearch(task, SHORTCUT_VARIABLES)
        self._tables: dict[int, Mapping[Mask, PartialTable]] = {}
        self._fits: dict[int, list[tuple[Mask, int]]] = {}
        self._budget = Budget(MAX_STATES)
        self._least: dict[tuple[int, int], int] = {}
        self._agreeing: dict[tuple[int, int], tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint8]]] = {}

    def tables(self, variable: int) -> Mapping[Mask, PartialTable]:
        """Parent set -> what the rows say, for admissible sets that determine the variable."""
        if variable not in self._tables:
            candidates = self._candidates(variable)
            max_parents = min(MAX_PARENTS, len(candidates))
            self._tables[variable] = local_space(self._search.packed, variable, candidates, max_parents).tables
        return self._tables[variable]

    def _candidates(self, variable: int) -> list[int]:
        admissible = self.task.disclosure.admissible_parents(self.task.variables[variable])
        return [self.index[parent] for parent in admissible]

    def least_fit(self, variable: int, window: Mask) -> int:
        """Size of the least formula over the window that fits the rows, if that is a shortcut; else NO_FIT."""
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
        """Bits and least sizes of the catalogued functions of five parents that agree; `BudgetSpent` after too many."""
        key = table.care, table.value
        if key not in self._agreeing:
            words, sizes = essential(MAX_PARENTS)
            self._budget.spend(len(words))
            agrees = np.flatnonzero((words ^ np.uint32(table.value)) & np.uint32(table.care) == 0)
            self._agreeing[key] = words[agrees], sizes[agrees]
        return self._agreeing[key]

    def least_function(self, table: PartialTable) -> int:
        """Bits of the least function that agrees with a table beyond the catalogue; `BudgetSpent` if none is drawn."""
        key = table.care, table.value
        if key not in self._least:
            search = LeastSize(table)
            while search.possible and search.size is None and search.lower_bound <= ANY_SIZE[1]:
                search.advance(self._budget)
                if self._budget.exhausted:
                    raise BudgetSpent
            if search.size is None:
                raise BudgetSpent
            names = tuple(str(i) for i in range(table.num_vars))
            self._least[key] = from_formula(search.formula(names), names).bits
        return self._least[key]
