"""Posterior of one variable's mechanism: weights of its parent sets and functions, by window.

Given the window (the predecessors that may be parents) the variables of an SCM are independent under the prior, and the
evidence about one mechanism is the partial table over its parents. So all that a sum over orders needs is, for each
variable and window, the prior mass of what agrees with the rows.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterator
from itertools import accumulate, combinations
from math import comb, fsum
from random import Random
from typing import NamedTuple

import numpy as np

from calibrant.baselines.replayscm.posterior.evidence import MechanismEvidence
from calibrant.baselines.replayscm.posterior.latent_orders import Choice
from calibrant.baselines.replayscm.posterior.prior import (
    ANY,
    F64,
    MAX_PARENTS,
    NUM_COLUMNS,
    Configuration,
    column_of,
    essential,
    function_weights,
    size_weights,
    slot_mass,
)
from calibrant.dsl.formulas.table import PartialTable
from calibrant.solvers.acyclic.least import Mask


class Local(NamedTuple):
    """One mechanism in the version space: parent set, and the bits of its function over it."""

    parents: Mask
    bits: int


class LocalPosterior:
    """Weights of the mechanisms of one task's variables under one configuration."""

    def __init__(self, evidence: MechanismEvidence, configuration: Configuration) -> None:
        self.evidence = evidence
        self.configuration = configuration
        self._masses: dict[tuple[int, Mask], F64] = {}
        self._sets: dict[tuple[int, Mask], list[tuple[Mask, float]]] = {}
        self._windows: dict[tuple[int, Mask], float] = {}
        self._best: dict[tuple[int, Mask], tuple[float, Local | None]] = {}
        self._functions: dict[tuple[int, Mask, int], tuple[list[Local], list[float]]] = {}
        self._choices: dict[tuple[int, Mask], tuple[int, Choice[Mask]]] = {}

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
            mass[ANY] = listed + sized.remaining_mass * 0.5 ** table.care.bit_count()
            return mass
        functions = function_weights(table.num_vars, self.configuration)
        agrees = (functions.bits ^ np.uint32(table.value)) & np.uint32(table.care) == 0
        mass += functions.weights[:, agrees].sum(axis=1)
        return mass

    def column(self, variable: int, window: Mask) -> int | None:
        """Return the column of weights that serves here; None if nothing is accepted."""
        return column_of(self.evidence.least_fit(variable, window), self.configuration)

    def share(self, window: Mask, num_parents: int) -> float:
        """Probability that a slot draws one given set of that many parents, over the probability to be accepted."""
        length = window.bit_count()
        max_parents = min(length, self.configuration.window)
        if not 2 <= num_parents <= max_parents:
            return 0.0
        accepted = slot_mass(max_parents, self.configuration)
        return 1 / ((max_parents - 1) * comb(length, num_parents) * accepted) if accepted else 0.0

    def sets(self, variable: int, window: Mask) -> list[tuple[Mask, float]]:
        """Parent sets inside a window with the probability of the slot to have them and agree with the rows."""
        key = variable, window
        if key not in self._sets:
            column = self.column(variable, window)
            self._sets[key] = [] if column is None else list(self._weigh_sets(variable, window, column))
        return self._sets[key]

    def _weigh_sets(self, variable: int, window: Mask, column: int) -> Iterator[tuple[Mask, float]]:
        tables = self.evidence.tables(variable)
        inside = [1 << i for i in range(window.bit_length()) if window >> i & 1]
        for num_parents in range(MAX_PARENTS + 1):
            share = self.share(window, num_parents)
            for chosen in combinations(inside, num_parents) if share else ():  # in the order of the tables
                parents = sum(chosen)
                mass = float(self.mass(variable, parents)[column]) if parents in tables else 0.0
                if mass:
                    yield parents, mass * share

    def window_mass(self, variable: int, window: Mask) -> float:
        """Probability that a slot with this window agrees with the rows and leaves no shortcut."""
        key = variable, window
        if key not in self._windows:
            self._windows[key] = fsum(mass for _, mass in self.sets(variable, window))
        return self._windows[key]

    def functions(self, variable: int, parents: Mask, column: int) -> tuple[list[int], F64]:
        """Return the listed functions of exactly these parents that agree with the rows, and what they weigh."""
        table = self.evidence.tables(variable)[parents]
        if table.num_vars == MAX_PARENTS:
            words, sizes = self.evidence.agreeing(table)
            if not len(words):  # one of them stands for all that the catalogue does not reach
                return [self.evidence.least_function(table)], np.ones(1)
            return words.tolist(), size_weights(self.configuration).weights[sizes]
        functions = function_weights(table.num_vars, self.configuration)
        agrees = (functions.bits ^ np.uint32(table.value)) & np.uint32(table.care) == 0
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
                place = int(weights.argmax())
                mechanism = Local(parents, bits[place])
                mass = self.mechanism_mass(variable, window, mechanism)
                if mass > heaviest[0]:
                    heaviest = mass, mechanism
            self._best[key] = heaviest
        return self._best[key]

    def mechanism_mass(self, variable: int, window: Mask, mechanism: Local) -> float:
        """Probability that a slot with this window draws exactly this mechanism, which agrees with the rows.

        0 if that leaves a shortcut.
        """
        column = self.column(variable, window)
        if column is None or mechanism.parents & ~window:
            return 0.0
        share = self.share(window, mechanism.parents.bit_count())
        return share * self._function_mass(variable, mechanism, column) if share else 0.0

    def _function_mass(self, variable: int, mechanism: Local, column: int) -> float:
        num_parents = mechanism.parents.bit_count()
        words, sizes = essential(num_parents)
        place = np.flatnonzero(words == mechanism.bits)
        if num_parents == MAX_PARENTS and column == ANY:
            sized = size_weights(self.configuration)
            care = self.evidence.tables(variable)[mechanism.parents].care
            return float(
                sized.weights[sizes[place[0]]] if len(place) else sized.remaining_mass * 0.5 ** care.bit_count()
            )
        if not len(place) or num_parents == MAX_PARENTS:
            return 0.0
        return float(function_weights(num_parents, self.configuration).weights[column, place[0]])

    def sample(self, rng: Random, variable: int, window: Mask) -> Local:
        """Sample a mechanism with probability proportional to what it weighs in this window."""
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
