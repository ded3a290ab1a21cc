"""How many mechanisms each variable has: functions of exactly given parents that agree with all scored rows.

C(S), the number of functions over S that agree, is 2 to the number of unseen rows of the table, or 0 if S does not
determine the variable. Those that depend on all of S are found by inclusion and exclusion over subsets (Moebius
inversion), N(S) = sum over T in S of (-1)**|S - T| C(T): no function is enumerated. Under a cap on formula size they
are enumerated, from the complete list of functions by size.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import comb

import numpy as np

from dsl.formulas.partial import PartialTable
from dsl.formulas.table import TruthTable
from dsl.replayscm.batch import PackedPanels
from solvers.acyclic.least_cost import Mask
from solvers.formulas.essential import COMPLETE, EssentialFunctions
from solvers.replayscm._kernels_parents import all_tables, size_histograms


@dataclass(frozen=True, slots=True)
class LocalSpace:
    """The mechanisms of one variable, by functional parents.

    tables: parent set -> what the rows say; only sets over which the variable is a function
    counts: parent set -> number of agreeing functions that depend on all of it; only where that is not 0
    by_size: parent set -> {least size: number}; empty where no size cap asked for it
    """

    tables: Mapping[Mask, PartialTable]
    counts: Mapping[Mask, int]
    by_size: Mapping[Mask, Mapping[int, int]] = field(default_factory=dict)


def local_space(packed: PackedPanels, target: int, candidates: Sequence[int], max_parents: int) -> LocalSpace:
    """All mechanisms of at most `max_parents` functional parents among the candidates, counted."""
    tables = _tables(packed, target, sorted(candidates), max_parents)
    counts: dict[Mask, int] = {}
    for mask, table in tables.items():  # ascending number of parents, so every subset is already counted
        number = 1 << table.num_open
        smaller = sum(counts.get(subset, 0) for subset in _proper_subsets(mask))
        if number > smaller:
            counts[mask] = number - smaller
    return LocalSpace(tables, counts)


def sized_local_space(
    space: LocalSpace, functions: EssentialFunctions, constants: Mapping[int, int], max_size: int
) -> LocalSpace:
    """The part of a space whose formulas have at most `max_size` nodes, counted by least size.

    constants: size of the formula of each constant that has one
    """
    masks = [mask for mask in space.counts if mask]
    for num_parents in {mask.bit_count() for mask in masks}:
        if max_size > functions.complete_to[num_parents] != COMPLETE:
            known = functions.complete_to[num_parents]
            raise ValueError(f"functions of {num_parents} variables are listed up to size {known}, not {max_size}")
    tables = [space.tables[mask] for mask in masks]
    largest = min(max_size, int(functions.sizes.max()))
    histograms = np.zeros((len(masks), largest + 1), np.int64)
    size_histograms(
        np.array([table.num_vars for table in tables], np.int64),
        np.array([table.care for table in tables], np.uint64),
        np.array([table.value for table in tables], np.uint64),
        functions.bits,
        functions.sizes,
        functions.starts,
        functions.ends,
        largest,
        histograms,
    )
    by_size = {
        mask: {size: int(number) for size, number in enumerate(row) if number}
        for mask, row in zip(masks, histograms, strict=True)
        if row.any()
    }
    if 0 in space.counts:
        agreeing = [size for bit, size in constants.items() if space.tables[0].agrees(TruthTable(0, bit))]
        if sizes := Counter(size for size in agreeing if size <= max_size):
            by_size[0] = sizes
    counts = {mask: sum(sizes.values()) for mask, sizes in by_size.items()}
    return LocalSpace(space.tables, counts, by_size)


def _proper_subsets(mask: Mask) -> list[Mask]:
    subsets = []
    subset = mask
    while subset:
        subset = (subset - 1) & mask
        subsets.append(subset)
    return subsets


def _tables(packed: PackedPanels, target: int, candidates: Sequence[int], max_parents: int) -> dict[Mask, PartialTable]:
    limit = sum(comb(len(candidates), j) for j in range(max_parents + 1))
    masks, cares, values = np.empty(limit, np.int64), np.empty(limit, np.uint64), np.empty(limit, np.uint64)
    parts = np.empty((1 << max_parents, packed.observed.shape[1]), np.uint64)
    listed = np.array(candidates, np.int64)
    count = all_tables(packed.observed, packed.scored[target], target, listed, max_parents, parts, masks, cares, values)
    rows = zip(masks[:count].tolist(), cares[:count].tolist(), values[:count].tolist(), strict=True)
    return {mask: PartialTable(mask.bit_count(), care, value) for mask, care, value in rows}
