"""What the evidence leaves of the prior for one variable: weights of its parent sets and functions, by window.

Given the window (the predecessors that may be parents) the variables of an SCM are independent under the prior, and the
evidence about one mechanism is the partial table over its parents. So all that a sum over orders needs is, for each
variable and window, the prior mass of what agrees with the rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import accumulate
from math import comb
from random import Random
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from baselines.generator_prior import (
    ANY,
    F64,
    MAX_PARENTS,
    NUM_COLUMNS,
    SHORTCUT_CAP,
    SHORTCUT_VARIABLES,
    Configuration,
    column_of,
    essential,
    function_weights,
    size_weights,
    slot_mass,
)
from baselines.latent_orders import drawn
from dsl.partial import PartialTable
from dsl.problem import Task
from solvers.local_counts import local_space
from solvers.parents import ParentSearch
from solvers.structure import Mask

NO_FIT = 99  # larger than every shortcut


class Local(NamedTuple):
    """One mechanism in the version space: parent set, and the bits of its function over it."""

    parents: Mask
    bits: int


class Evidence:
    """The training rows of a task as the prior reads them."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.index = {variable: i for i, variable in enumerate(task.variables)}
        self._search = ParentSearch(task, SHORTCUT_VARIABLES)
        self._tables: dict[int, Mapping[Mask, PartialTable]] = {}
        self._fits: dict[int, list[tuple[Mask, int]]] = {}
        self._agreeing: dict[tuple[int, int], tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint8]]] = {}

    def tables(self, variable: int) -> Mapping[Mask, PartialTable]:
        """Parent set -> what the rows say, for admissible sets that determine the variable."""
        if variable not in self._tables:
            candidates = self._candidates(variable)
            most = min(MAX_PARENTS, len(candidates))
            self._tables[variable] = local_space(self._search.packed, variable, candidates, most).tables
        return self._tables[variable]

    def _candidates(self, variable: int) -> list[int]:
        admissible = self.task.disclosure.admissible_parents(self.task.variables[variable])
        return [self.index[parent] for parent in admissible]

    def least_fit(self, variable: int, window: Mask) -> int:
        """Size of the least formula over the window that fits the rows, if that is a shortcut; else NO_FIT."""
        if variable not in self._fits:
            found = self._search.parent_sets(variable, self._candidates(variable))
            fits = [(one.mask, one.size) for one in found if one.size is not None and one.size <= SHORTCUT_CAP]
            self._fits[variable] = fits
        return min((size for mask, size in self._fits[variable] if mask & ~window == 0), default=NO_FIT)

    def agreeing(self, table: PartialTable) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint8]]:
        """Bits and least sizes of the catalogued functions of all five parents that agree with a table."""
        key = table.care, table.value
        if key not in self._agreeing:
            words, sizes = essential(MAX_PARENTS)
            agrees = np.flatnonzero((words ^ np.uint32(table.value)) & np.uint32(table.care) == 0)
            self._agreeing[key] = words[agrees], sizes[agrees]
        return self._agreeing[key]


class LocalPosterior:
    """Weights of the mechanisms of one task's variables under one configuration."""

    def __init__(self, evidence: Evidence, configuration: Configuration) -> None:
        self.evidence = evidence
        self.configuration = configuration
        self._masses: dict[tuple[int, Mask], F64] = {}
        self._windows: dict[tuple[int, Mask], float] = {}
        self._functions: dict[tuple[int, Mask, int], tuple[list[int], list[float]]] = {}

    def mass(self, variable: int, parents: Mask) -> F64:
        """[NUM_COLUMNS] probability that a slot with these parents draws a function that agrees with the rows."""
        key = variable, parents
        if key not in self._masses:
            self._masses[key] = self._mass(self.evidence.tables(variable).get(parents))
        return self._masses[key]

    def _mass(self, table: PartialTable | None) -> F64:
        mass = np.zeros(NUM_COLUMNS)
        if table is None:
            return mass
        if table.num_vars == MAX_PARENTS:
            sized = size_weights(self.configuration)
            listed = sized.weights[self.evidence.agreeing(table)[1]].sum()
            mass[ANY] = listed and listed + sized.rest * 0.5 ** table.care.bit_count()
            return mass
        functions = function_weights(table.num_vars, self.configuration)
        agrees = (functions.bits ^ np.uint32(table.value)) & np.uint32(table.care) == 0
        mass += functions.weights[:, agrees].sum(axis=1)
        return mass

    def column(self, variable: int, window: Mask) -> int | None:
        """The column of weights that serves here; None if nothing is accepted."""
        return column_of(self.evidence.least_fit(variable, window), self.configuration)

    def share(self, window: Mask, num_parents: int) -> float:
        """Probability that a slot draws one given set of that many parents, over the probability to be accepted."""
        length = window.bit_count()
        most = min(length, self.configuration.window)
        if not 2 <= num_parents <= most:
            return 0.0
        return 1 / ((most - 1) * comb(length, num_parents) * slot_mass(most, self.configuration))

    def sets(self, variable: int, window: Mask) -> Iterator[tuple[Mask, float]]:
        """Parent sets inside a window with the probability of the slot to have them and agree with the rows."""
        column = self.column(variable, window)
        if column is None:
            return
        for parents in self.evidence.tables(variable):
            if parents & ~window == 0 and (share := self.share(window, parents.bit_count())):
                mass = float(self.mass(variable, parents)[column])
                if mass:
                    yield parents, mass * share

    def window_mass(self, variable: int, window: Mask) -> float:
        """Probability that a slot with this window agrees with the rows and leaves no shortcut."""
        key = variable, window
        if key not in self._windows:
            self._windows[key] = sum(mass for _, mass in self.sets(variable, window))
        return self._windows[key]

    def functions(self, variable: int, parents: Mask, column: int) -> tuple[list[int], F64]:
        """The listed functions of exactly these parents that agree with the rows, and what they weigh."""
        table = self.evidence.tables(variable)[parents]
        if table.num_vars == MAX_PARENTS:
            words, sizes = self.evidence.agreeing(table)
            return words.tolist(), size_weights(self.configuration).weights[sizes]
        functions = function_weights(table.num_vars, self.configuration)
        agrees = (functions.bits ^ np.uint32(table.value)) & np.uint32(table.care) == 0
        agrees &= functions.weights[column] > 0
        return functions.bits[agrees].tolist(), functions.weights[column][agrees]

    def mechanism_mass(self, variable: int, window: Mask, mechanism: Local) -> float:
        """Probability that a slot with this window draws exactly this mechanism; 0 if that leaves a shortcut."""
        column = self.column(variable, window)
        if column is None or mechanism.parents & ~window:
            return 0.0
        share = self.share(window, mechanism.parents.bit_count())
        return share * self._function_mass(mechanism, column) if share else 0.0

    def _function_mass(self, mechanism: Local, column: int) -> float:
        num_parents = mechanism.parents.bit_count()
        words, sizes = essential(num_parents)
        place = np.flatnonzero(words == mechanism.bits)
        if not len(place):
            return 0.0
        if num_parents == MAX_PARENTS:
            return float(size_weights(self.configuration).weights[sizes[place[0]]]) if column == ANY else 0.0
        return float(function_weights(num_parents, self.configuration).weights[column, place[0]])

    def sample(self, rng: Random, variable: int, window: Mask) -> Local:
        """A mechanism with probability proportional to what it weighs in this window."""
        column = self.column(variable, window)
        assert column is not None
        parents = drawn(rng, list(self.sets(variable, window)))
        key = variable, parents, column
        if key not in self._functions:
            bits, weights = self.functions(*key)
            self._functions[key] = bits, list(accumulate(weights.tolist()))
        bits, sums = self._functions[key]
        return Local(parents, rng.choices(bits, cum_weights=sums)[0])
