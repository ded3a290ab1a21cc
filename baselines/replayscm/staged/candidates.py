"""Candidate mechanisms under the caps of a stage: the smallest formula over each parent set, if it is small enough.

Nothing is enumerated here. The list of functions by size (solvers.formulas.catalogue) is read as a bottom-up search
that keeps behaviours, what formulas are worth in the rows seen: a size is reached as long as the behaviours two nodes
below were all kept. Functions of five variables end at size 11 there, so a cap of 12 is one of 11 for them.

The published cap on states does not say what is counted. Counted per parent set, as here, it changes none of the
candidate lists of the development pools. Counted over all formulas of all admissible variables, rows not merged and
nothing found above a size that is too large, TrainExact there would be 0.950, 0.938, 0.875, 0.875 (80 problems each of
Ordered, Block, Hidden-order, Hidden-roots) in place of 1.000, 1.000, 0.988, 0.988.
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from calibrant.dsl.formulas.formula import Formula
from calibrant.dsl.replayscm.problem import Task
from calibrant.solvers.acyclic.least import Mask
from calibrant.solvers.formulas.catalogue import EssentialFunctions
from calibrant.solvers.formulas.synthesis import least_formula
from calibrant.solvers.outcome import Found
from calibrant.solvers.replayscm.parents import ParentSearch, ParentSet

MAX_PARENTS = 5


class Caps(NamedTuple):
    """Limits of a stage on the candidates of one variable.

    max_size: largest formula size
    slack: how much larger than the smallest one that closes no cycle a chosen candidate may be
    candidates: how many candidates are kept, smallest first
    states: behaviours of one size that are kept to build larger formulas from; counted are those of functions that
        depend on all the parents, not those of fewer, so the cap binds later than a count of all would
    """

    max_size: int
    slack: int
    candidates: int
    states: int


class CandidateMechanism(NamedTuple):
    """A mechanism that fits; orders by size, then number of parents, then parent set."""

    size: int
    num_parents: int
    mask: Mask


class Candidates:
    """The candidate mechanisms of every variable of a task, under any caps."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self._search = ParentSearch(task, MAX_PARENTS)
        self._sets: dict[str, dict[Mask, ParentSet]] = {}

    def of(self, variable: str, caps: Caps) -> list[CandidateMechanism]:
        """At most `caps.candidates` mechanisms of the variable, smallest first."""
        sized = ((self._size(parent_set, caps), parent_set.mask) for parent_set in self._parent_sets(variable).values())
        candidates = sorted(
            CandidateMechanism(size, mask.bit_count(), mask) for size, mask in sized if size is not None
        )
        return candidates[: caps.candidates]

    def formula(self, variable: str, mask: Mask) -> Formula:
        """Return the formula of a candidate."""
        parent_set = self._sets[variable][mask]
        names = [self.task.variables[i] for i in parent_set.indices]
        outcome = least_formula(parent_set.table, names, operators=self._search.operators)
        assert isinstance(outcome, Found)
        return outcome.value

    def _parent_sets(self, variable: str) -> dict[Mask, ParentSet]:
        if variable not in self._sets:
            index = {v: i for i, v in enumerate(self.task.variables)}
            admissible = [index[u] for u in self.task.disclosure.admissible_parents(variable)]
            parent_sets = self._search.parent_sets(index[variable], admissible) if admissible else []
            self._sets[variable] = {parent_set.mask: parent_set for parent_set in parent_sets}
        return self._sets[variable]

    def _size(self, parent_set: ParentSet, caps: Caps) -> int | None:
        """Return the size at which a formula is found for a parent set, None if that is beyond the caps."""
        num_vars, functions = parent_set.mask.bit_count(), self._listed.functions
        care, value = np.uint64(parent_set.table.care), np.uint64(parent_set.table.value)
        for size in range(parent_set.at_least, caps.max_size + 1):
            first, last = self._listed.range(num_vars, size)
            if size == parent_set.size or np.any((functions.bits[first:last] & care) == value):
                before = (self._listed.range(num_vars, smaller - 2) for smaller in range(parent_set.at_least, size + 1))
                is_listed = all(not _more_than(caps.states, functions.bits[slice(*part)], care) for part in before)
                return size if is_listed else None
        return None

    @cached_property
    def _listed(self) -> _BySize:
        return _BySize(self._search.functions)


def _more_than(states: int, bits: npt.NDArray[np.uint64], care: np.uint64) -> bool:
    """Return whether functions show more than so many behaviours in the rows seen.

    The first functions usually suffice.
    """
    if 1 << int(care).bit_count() <= states:
        return False
    looked_at = states
    while looked_at < len(bits):
        looked_at = min(2 * looked_at, len(bits))
        if len(np.unique(bits[:looked_at] & care)) > states:
            return True
    return False


class _BySize:
    """Index of the catalogued functions by number of variables and size."""

    def __init__(self, functions: EssentialFunctions) -> None:
        self.functions = functions
        self._ranges: dict[tuple[int, int], tuple[int, int]] = {}

    def range(self, num_vars: int, size: int) -> tuple[int, int]:
        key = num_vars, size
        if key not in self._ranges:
            start, end = int(self.functions.starts[num_vars]), int(self.functions.starts[num_vars + 1])
            first, last = np.searchsorted(self.functions.sizes[start:end], [size, size + 1])
            self._ranges[key] = start + int(first), start + int(last)
        return self._ranges[key]
