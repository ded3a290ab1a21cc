"""Number of mechanisms of each variable: functions of exactly given parents that agree with all scored rows.

C(S), the number of agreeing functions over S, is 2 to the number of unobserved rows of the table, or 0 if S does not
determine the variable. Those that depend on all of S follow by Moebius inversion (inclusion and exclusion over
subsets), N(S) = sum over subsets T of S of (-1)**|S - T| C(T), without enumerating a function. Under a cap on formula
size they are enumerated, from the complete list of functions by size.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import comb

import numpy as np
import numpy.typing as npt

from calibrant.dsl.formulas.table import PartialTable, TruthTable
from calibrant.dsl.replayscm.world import PackedPanels
from calibrant.solvers.acyclic.least import Mask
from calibrant.solvers.formulas.catalogue import COMPLETE, EssentialFunctions
from calibrant.solvers.replayscm._kernels_parents import list_tables
from calibrant.solvers.replayscm._kernels_worlds import count_essential, fill_histograms, find_subsets
from calibrant.solvers.replayscm.function_index import function_index

U64 = npt.NDArray[np.uint64]
I64 = npt.NDArray[np.int64]


@dataclass(frozen=True)
class LocalSpace:
    """Mechanisms of one variable by functional parents: the sets that determine it, by number of parents.

    masks: [e] parent sets; cares, values: [e] partial table over each (dsl.formulas.table)
    numbers: [e] agreeing functions that depend on all of the set, within the size cap if there is one
    histograms: [e, size + 1] these by least size; None where no size cap asked for it
    """

    masks: I64
    cares: U64
    values: U64
    numbers: U64
    histograms: I64 | None = None

    @cached_property
    def tables(self) -> Mapping[Mask, PartialTable]:
        """Partial table of each parent set that determines the variable."""
        rows = zip(self.masks.tolist(), self.cares.tolist(), self.values.tolist(), strict=True)
        return {mask: PartialTable(mask.bit_count(), care, value) for mask, care, value in rows}

    def table(self, mask: Mask) -> PartialTable:
        """Return the partial table of a parent set that determines the variable."""
        place = self._places[mask]
        return PartialTable(mask.bit_count(), int(self.cares[place]), int(self.values[place]))

    @cached_property
    def _places(self) -> Mapping[Mask, int]:
        return {mask: place for place, mask in enumerate(self.masks.tolist())}

    @cached_property
    def counts(self) -> Mapping[Mask, int]:
        """Number of agreeing functions that depend on all of a parent set; only where it is not 0."""
        return {mask: number for mask, number in zip(self.masks.tolist(), self.numbers.tolist(), strict=True) if number}

    @cached_property
    def by_size(self) -> Mapping[Mask, Mapping[int, int]]:
        """Numbers of each parent set by least size; empty without a size cap."""
        if self.histograms is None:
            return {}
        nonzero = np.flatnonzero(self.numbers)
        rows = zip(self.masks[nonzero].tolist(), self.histograms[nonzero].tolist(), strict=True)
        return {mask: {size: number for size, number in enumerate(row) if number} for mask, row in rows}

    def within(self, max_parents: int) -> LocalSpace:
        """Return the part of at most `max_parents` parents."""
        end = int(np.searchsorted(np.bitwise_count(self.masks), max_parents, side="right"))
        histograms = None if self.histograms is None else self.histograms[:end]
        return LocalSpace(self.masks[:end], self.cares[:end], self.values[:end], self.numbers[:end], histograms)

    def beyond(self, start: int) -> LocalSpace:
        """Return the parent sets from position `start` on, without histograms."""
        return LocalSpace(self.masks[start:], self.cares[start:], self.values[start:], self.numbers[start:])


def local_space(packed: PackedPanels, target: int, candidates: Sequence[int], max_parents: int) -> LocalSpace:
    """Count all mechanisms of at most `max_parents` functional parents among the candidates."""
    # ascending candidates: variable i of a table is the i-th smallest parent
    masks, cares, values = _tables(packed, target, sorted(candidates), max_parents)
    below = np.empty((len(masks), max_parents), np.int64)
    find_subsets(masks, np.argsort(masks), below)
    numbers = np.empty(len(masks), np.uint64)
    count_essential(masks, cares, values, below, 0, len(masks), numbers)
    return LocalSpace(masks, cares, values, numbers)


def size_counts(
    space: LocalSpace, functions: EssentialFunctions, constants: Mapping[int, int], max_size: int | None = None
) -> I64:
    """Count the listed functions of each parent set by least size; shape [e, size + 1].

    constants: size of the formula of each constant that has one; max_size: of the functions, None for all
    """
    index = function_index(functions, max_size)
    histograms = np.zeros((len(space.masks), max(index.largest, *constants.values(), 0) + 1), np.int64)
    fill_histograms(space.masks, space.cares, space.values, index.bits, index.sizes, index.prefixes, histograms)
    # sets come by number of parents, the empty one first; its constants are in no index of functions
    if len(space.masks) and not space.masks[0]:
        no_parents = space.tables[0]
        for size, number in Counter(s for bit, s in constants.items() if no_parents.agrees(TruthTable(0, bit))).items():
            histograms[0, size] = number
    return histograms if max_size is None else histograms[:, : max_size + 1]


def limit_size(space: LocalSpace, histograms: I64, functions: EssentialFunctions, max_size: int) -> LocalSpace:
    """Return the part of a space whose formulas have at most `max_size` nodes; histograms: from `size_counts`.

    `ValueError` if not all functions of that size are listed for some number of parents.
    """
    for num_parents in np.unique(np.bitwise_count(space.masks[space.numbers > 0])).tolist():
        # a count up to a cap is exact only where all functions up to it are listed
        complete_size = functions.complete_to[num_parents]
        if num_parents and max_size > complete_size != COMPLETE:
            raise ValueError(
                f"functions of {num_parents} variables are listed up to size {complete_size}, not {max_size}"
            )
    within = histograms[:, : max_size + 1]
    return LocalSpace(space.masks, space.cares, space.values, within.sum(1).astype(np.uint64), within)


def sized_local_space(
    space: LocalSpace, functions: EssentialFunctions, constants: Mapping[int, int], max_size: int
) -> LocalSpace:
    """Count the part of a space whose formulas have at most `max_size` nodes, by least size."""
    return limit_size(space, size_counts(space, functions, constants), functions, max_size)


def _tables(packed: PackedPanels, target: int, candidates: Sequence[int], max_parents: int) -> tuple[I64, U64, U64]:
    """Return the parent sets that determine a variable, by number of parents, with care and value of their tables."""
    # the kernel checks no bound, so there is room for all sets: 163 for 8 candidates and k = 4
    limit = sum(comb(len(candidates), j) for j in range(max_parents + 1))
    masks, cares, values = np.empty(limit, np.int64), np.empty(limit, np.uint64), np.empty(limit, np.uint64)
    parts = np.empty((1 << max_parents, packed.observed.shape[1]), np.uint64)
    listed = np.array(candidates, np.int64)
    count = list_tables(
        packed.observed, packed.scored[target], target, listed, max_parents, parts, masks, cares, values
    )
    return masks[:count], cares[:count], values[:count]
