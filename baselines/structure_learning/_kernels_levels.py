"""Kernels: local scores of columns with several values.

Dimension letters: v = variables, r = patterns of rows, g = groups of variables that count the same rows, t = terms,
T = sets of variables. Sets are masks, bit per variable.

A local score is a difference of sums over configurations: BDeu of a child given S is F(S + child) - F(S), where F(T)
sums lgamma(a + n) - lgamma(a) over the configurations of T that occur, with a = imaginary rows over the number of all
configurations of T. K2 and likelihoods split alike. So each set of variables refines the rows once for all children.
BDs has imaginary rows by the configurations of S that occur: F(S + child) has a term for each child.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from calibrant.baselines.structure_learning._kernels_scores import lowest, set_size
from calibrant.dsl._jit import inline_kernel, kernel

I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]
F64 = npt.NDArray[np.float64]

MAX_SERIES = 1 / 16  # imaginary rows below which 12 terms of Taylor's series have an error of 3e-16
MAX_ALONE = 64  # rows of a pattern that may be counted by their number
BY_CONFIGURATIONS, BY_CELL, BY_LIKELIHOOD, BY_OCCURRENCE, BY_OCCUPIED = range(5)  # how a term depends on a count


class Levels(NamedTuple):
    """Rows by pattern, and the terms of a score.

    codes: [v, r] values from 0; levels: [v] numbers of values; weights: [g, r] rows of each pattern that count
    kind: BY_CONFIGURATIONS: a = priors[0] over the configurations; BY_CELL: a = priors[t]; BY_LIKELIHOOD: n log n;
        BY_OCCURRENCE: 1; BY_OCCUPIED: a = priors[0] over occupied[T], for t = v + 1 priors[t] over occupied[T - v]
        times values, none if priors[t] is 0
    order: [v] variables as they are split: those that leave most rows alone first
    strides: [v] of a variable's level in the row of `table`; by its sum over a set
    table: [rows, counts] terms that were computed, not a number elsewhere; counts beyond are computed each time
    powers: [j, counts] coefficients of a**j in lgamma(count + a), for BY_OCCUPIED with a below MAX_SERIES
    binomials: [v + 1, size + 1]; is_dense: whether sets are numbered by their masks, else by size and colexicographic
    """

    codes: I32
    levels: I64
    weights: I64
    kind: int
    priors: F64
    order: I64
    strides: I64
    table: F64
    binomials: I64
    is_dense: bool
    occupied: F64
    powers: F64


@inline_kernel
def _prior(levels: Levels, t: int, mask: int, row: int, configurations: float) -> tuple[float, int]:
    """Return the imaginary rows of a cell, 0 for a term that the set does not have, and their row of the table."""
    if levels.kind == BY_CONFIGURATIONS:
        return levels.priors[0] / configurations, row
    if levels.kind != BY_OCCUPIED:
        return levels.priors[t], t
    cells = 0
    if t == 0:
        cells = int(levels.occupied[set_number(levels, mask)])
    elif mask >> (t - 1) & 1:
        cells = int(levels.levels[t - 1] * levels.occupied[set_number(levels, mask ^ (1 << (t - 1)))])
    return (levels.priors[t] / cells if cells else 0.0), cells


@inline_kernel
def _term(levels: Levels, row: int, prior: float, count: int) -> float:
    """Return the term of one count, remembered if it is small."""
    if count < levels.table.shape[1] and not math.isnan(levels.table[row, count]):
        return float(levels.table[row, count])
    if levels.kind == BY_OCCURRENCE:
        term = 1.0
    elif levels.kind == BY_LIKELIHOOD:
        term = count * math.log(count) if count else 0.0
    else:
        term = math.lgamma(prior + count) - math.lgamma(prior)
    if count < levels.table.shape[1]:
        levels.table[row, count] = term
    return term


@kernel
def set_number(levels: Levels, mask: int) -> int:
    """Return the position of a set in the arrays [T]."""
    if levels.is_dense:
        return mask
    size = set_size(mask)
    number = 0
    for smaller in range(size):
        number += levels.binomials[levels.binomials.shape[0] - 1, smaller]
    unvisited = mask
    place = 0
    while unvisited:
        place += 1
        number += levels.binomials[lowest(unvisited), place]
        unvisited &= unvisited - 1
    return number


@inline_kernel
def _copy(source: I64, target: I64) -> None:
    """Copy numbers one by one: for `target[:] = source` numba compiles the text of an error, 2.5 s."""
    for i in range(len(source)):
        target[i] = source[i]


@inline_kernel
def _split(
    levels: Levels, v: int, old: I32, ends: I32, num_parts: int, alone: I64, cells: I64, rows: I32, new_ends: I32
) -> int:
    """Split configurations by the values of a variable; return the number of those that are left.

    old: [i] patterns, configuration by configuration; ends: [part] where each ends; rows, new_ends: the same, filled in
    alone: [g, c] patterns that are alone, added to; cells: [values + 1] scratch
    """
    num_values = levels.levels[v]
    start = num_left = end = 0
    for part in range(num_parts):
        stop = ends[part]
        cells[:] = 0
        for i in range(start, stop):
            cells[levels.codes[v, old[i]]] += 1
        for value in range(num_values):
            size = cells[value]
            cells[value] = end  # where the next pattern of the value goes
            if size > 1:
                end += size
                new_ends[num_left] = end
                num_left += 1
            elif size == 1:
                cells[value] = -1
        for i in range(start, stop):
            r = old[i]
            value = levels.codes[v, r]
            if cells[value] >= 0:
                rows[cells[value]] = r
                cells[value] += 1
                continue
            is_alone = True
            for g in range(len(alone)):
                is_alone &= levels.weights[g, r] < MAX_ALONE
            if is_alone:
                for g in range(len(alone)):
                    alone[g, levels.weights[g, r]] += 1
            else:
                rows[end] = r
                end += 1
                new_ends[num_left] = end
                num_left += 1
        start = stop
    return num_left


@kernel
def configuration_sums(levels: Levels, first: int, max_size: int, sums: F64) -> int:
    """Fill in sums [g, t, T] over the configurations of every set of at most `max_size` whose first variable is given.

    first: its place in the order of the levels; -1 for the empty set alone; return the patterns met

    A pattern that is alone in its configuration stays alone under any further variable: it is counted by its number of
    rows and not refined again (18 columns of 3,000 rows: two thirds of the time). Sets that no other extends are
    counted without splitting their rows.
    """
    num_vars, num_patterns = levels.codes.shape
    num_groups = levels.weights.shape[0]
    depths = min(max_size, num_vars) + 1
    rows = np.zeros((depths, num_patterns), np.int32)
    ends = np.zeros((depths, num_patterns), np.int32)
    num_parts = np.zeros(depths, np.int64)
    alone = np.zeros((depths, num_groups, MAX_ALONE), np.int64)
    masks = np.zeros(depths, np.int64)
    at = np.zeros(depths, np.int64)
    configurations = np.ones(depths)
    upcoming = np.zeros(depths, np.int64)
    cells = np.zeros(levels.levels.max(), np.int64)
    small, distinct = np.zeros((2, MAX_ALONE), np.int64)
    large = np.zeros(num_patterns + 1, np.int64)
    for r in range(num_patterns):
        rows[0, r] = r
    if num_patterns:
        ends[0, 0], num_parts[0] = num_patterns, 1
    upcoming[0] = first
    if first < 0:
        _sum_counts(
            levels, -1, rows[0], ends[0], num_parts[0], alone[0], 0, 0, 1.0, cells, small, large, distinct, sums
        )
    work = 0
    depth = 0 if first >= 0 and max_size >= 1 else -1
    while depth >= 0:
        place = upcoming[depth]
        if depth == depths - 1 or place >= num_vars or (depth == 0 and place > first):
            depth -= 1
            continue
        upcoming[depth] = place + 1
        v = levels.order[place]
        mask, row = masks[depth] | np.int64(1) << v, at[depth] + levels.strides[v]
        share = configurations[depth] * levels.levels[v]
        number = num_parts[depth]
        work += num_groups * (ends[depth, number - 1] if number else 0)
        is_last = depth == depths - 2 or place == num_vars - 1
        if not is_last:
            depth += 1
            for g in range(num_groups):
                _copy(alone[depth - 1, g], alone[depth, g])
            masks[depth], at[depth], configurations[depth], upcoming[depth] = mask, row, share, place + 1
            old, old_ends = rows[depth - 1], ends[depth - 1]
            number = _split(levels, v, old, old_ends, number, alone[depth], cells, rows[depth], ends[depth])
            num_parts[depth] = number
            v = -1
        its_rows, its_ends, its_alone = rows[depth], ends[depth], alone[depth]
        _sum_counts(
            levels, v, its_rows, its_ends, number, its_alone, mask, row, share, cells, small, large, distinct, sums
        )
    return work


@kernel
def _sum_counts(
    levels: Levels,
    v: int,
    rows: I32,
    ends: I32,
    num_parts: int,
    alone: I64,
    mask: int,
    row: int,
    configurations: float,
    cells: I64,
    small: I64,
    large: I64,
    distinct: I64,
    sums: F64,
) -> None:
    """Sum the terms of one set, whose configurations are the parts, or with v >= 0 its values in each part."""
    num_values = levels.levels[v] if v >= 0 else 1
    for g in range(levels.weights.shape[0]):
        _copy(alone[g], small)
        num_large = start = 0
        for part in range(num_parts):
            if num_values <= 2:
                ones, total = 0, 0
                for i in range(start, ends[part]):
                    total += levels.weights[g, rows[i]]
                    if num_values == 2:
                        ones += levels.weights[g, rows[i]] * levels.codes[v, rows[i]]
                num_large = _note(ones, small, large, num_large)
                num_large = _note(total - ones, small, large, num_large)
            else:
                cells[:] = 0
                for i in range(start, ends[part]):
                    cells[levels.codes[v, rows[i]]] += levels.weights[g, rows[i]]
                for value in range(num_values):
                    num_large = _note(cells[value], small, large, num_large)
            start = ends[part]
        _sum_terms(levels, g, small, large, num_large, mask, row, configurations, distinct, sums)


@inline_kernel
def _note(count: int, small: I64, large: I64, num_large: int) -> int:
    """Count one more configuration of so many rows; return the number of counts listed in `large`."""
    if count < MAX_ALONE:
        small[count] += 1
        return num_large
    large[num_large] = count
    return num_large + 1


@kernel
def _sum_terms(
    levels: Levels,
    g: int,
    small: I64,
    large: I64,
    num_large: int,
    mask: int,
    row: int,
    configurations: float,
    distinct: I64,
    sums: F64,
) -> None:
    """Sum the terms of a set's counts for every prior. small: [c] how many are c; large: the others, one by one.

    distinct: [c] scratch
    """
    number = set_number(levels, mask)
    num_small = 0
    for c in range(1, MAX_ALONE):
        if small[c]:
            distinct[num_small] = c
            num_small += 1
    for t in range(sums.shape[1]):
        prior, at = _prior(levels, t, mask, row, configurations)
        if not prior:
            continue
        total = 0.0
        for i in range(num_small):
            total += small[distinct[i]] * _term(levels, at, prior, distinct[i])
        for i in range(num_large):
            total += _term(levels, at, prior, large[i])
        sums[g, t, number] = total


@kernel
def marginal_sums(levels: Levels, first: int, sums: F64) -> None:
    """Fill in sums [g, t, T] over the configurations of every set whose lowest variable is `first`, from dense counts.

    Sets are numbered by their masks. Variables are summed out of a table of counts one by one, each set once: of two
    values 3**v additions for all sets (18 columns of 3,000 rows: a tenth of the time of refining rows).
    """
    num_vars, num_patterns = levels.codes.shape
    num_cells, num_tables = np.int64(1), 2
    for v in range(first, num_vars):
        num_cells *= levels.levels[v]
        num_tables += levels.levels[v] == 1  # summed out, it leaves as many cells
    cells = np.zeros(num_tables * num_cells, np.int32)  # of each depth, behind those of the depth before
    numbers, distinct = np.zeros((2, levels.table.shape[1]), np.int64)
    large = np.zeros(num_patterns, np.int64)
    depths = num_vars - first + 1
    starts, sizes, strides = np.zeros(depths, np.int64), np.zeros(depths, np.int64), np.ones(depths, np.int64)
    masks, rows, upcoming = np.zeros(depths, np.int64), np.zeros(depths, np.int64), np.zeros(depths, np.int64)
    for g in range(levels.weights.shape[0]):
        cells[:num_cells] = 0
        masks[0] = rows[0] = 0
        for v in range(first, num_vars):
            masks[0] |= np.int64(1) << v
            rows[0] += levels.strides[v]
        for r in range(num_patterns):
            place = np.int64(0)
            for v in range(num_vars - 1, first - 1, -1):
                place = place * levels.levels[v] + levels.codes[v, r]
            cells[place] += levels.weights[g, r]
        sizes[0], strides[0], upcoming[0] = num_cells, levels.levels[first], first + 1
        _sum_cells(levels, g, cells[:num_cells], masks[0], rows[0], numbers, distinct, large, sums)
        depth = 0
        while depth >= 0:
            v = upcoming[depth]
            if v == num_vars:
                depth -= 1
                continue
            num_values, stride, start = levels.levels[v], strides[depth], starts[depth]
            upcoming[depth] = v + 1
            strides[depth] = stride * num_values
            end = start + sizes[depth]
            starts[depth + 1], sizes[depth + 1] = end, sizes[depth] // num_values
            for block in range(sizes[depth + 1] // stride):
                old = cells[start + block * num_values * stride : start + (block + 1) * num_values * stride]
                new = cells[end + block * stride : end + (block + 1) * stride]
                for i in range(stride):
                    new[i] = old[i]
                for value in range(1, num_values):
                    for i in range(stride):
                        new[i] += old[value * stride + i]
            depth += 1
            masks[depth] = masks[depth - 1] ^ np.int64(1) << v
            rows[depth] = rows[depth - 1] - levels.strides[v]
            strides[depth], upcoming[depth] = stride, v + 1
            _sum_cells(
                levels, g, cells[end : end + sizes[depth]], masks[depth], rows[depth], numbers, distinct, large, sums
            )


@kernel
def _sum_cells(
    levels: Levels, g: int, counts: I32, mask: int, row: int, numbers: I64, distinct: I64, large: I64, sums: F64
) -> None:
    """Sum the terms of the configurations of one set for every prior; those of no row are 0.

    numbers: [counts that are remembered] zeros, and again afterwards; equal counts are multiplied, which rounds once
    distinct: [counts that are remembered], large: [patterns] scratch
    """
    largest = num_beyond = 0
    for i in range(len(counts)):
        if counts[i] >= len(numbers):
            large[num_beyond] = counts[i]
            num_beyond += 1
        elif counts[i]:
            numbers[counts[i]] += 1
            largest = max(largest, counts[i])
    num_distinct = 0
    for c in range(1, largest + 1):
        if numbers[c]:
            distinct[num_distinct] = c
            num_distinct += 1
    moments = np.zeros(levels.powers.shape[0])  # sums of the coefficients: terms of many priors lie far apart in memory
    num_occupied = 0
    for i in range(num_distinct if len(moments) else 0):
        num_occupied += numbers[distinct[i]]
        for j in range(len(moments)):
            moments[j] += numbers[distinct[i]] * levels.powers[j, distinct[i]]
    for t in range(sums.shape[1]):
        prior, at = _prior(levels, t, mask, row, len(counts))
        if not prior:
            continue
        total = 0.0
        if len(moments) and prior < MAX_SERIES:
            for j in range(len(moments) - 1, -1, -1):
                total = total * prior + moments[j]
            total -= num_occupied * math.lgamma(prior)
        else:
            for i in range(num_distinct):
                total += numbers[distinct[i]] * _term(levels, at, prior, distinct[i])
        for i in range(num_beyond):
            total += _term(levels, at, prior, large[i])
        sums[g, t, mask] = total
    numbers[: largest + 1] = 0


@kernel
def local_scores(
    levels: Levels,
    sums: F64,  # [g, t, T]
    group: I64,  # [v] whose rows count
    child_term: I64,  # [v] term of the configurations of child and parents
    parent_term: I64,  # [v] term of the configurations of the parents
    price: float,  # of a free parameter
    allowed: I64,  # [v] masks
    required: I64,  # [v] masks
    limits: I64,  # [v] largest number of parents
    max_size: int,
    masks: I64,  # [T] out: the sets
    scores: F64,  # [v, T] out: admitted sets alone, the rest stays
) -> None:
    """Fill in the local scores of all admitted parent sets of at most `max_size`."""
    num_vars = levels.codes.shape[0]
    chosen = np.zeros(max_size + 2, np.int64)
    configurations = np.ones(max_size + 2)
    upcoming = np.zeros(max_size + 2, np.int64)
    depth = 0
    is_new = True
    while depth >= 0:
        mask = chosen[depth]
        if is_new:
            number = set_number(levels, mask)
            masks[number] = mask
            for v in range(num_vars):
                is_admitted = mask & ~allowed[v] == 0 and required[v] & ~mask == 0 and depth <= limits[v]
                if is_admitted and not mask >> v & 1:
                    whole = sums[group[v], child_term[v], set_number(levels, mask | np.int64(1) << v)]
                    fine = price * configurations[depth] * (levels.levels[v] - 1)
                    scores[v, number] = whole - sums[group[v], parent_term[v], number] - fine
        u = upcoming[depth]
        if depth == max_size or u >= num_vars:
            depth -= 1
            is_new = False
            continue
        upcoming[depth] = u + 1
        chosen[depth + 1] = mask | np.int64(1) << u
        configurations[depth + 1] = configurations[depth] * levels.levels[u]
        upcoming[depth + 1] = u + 1
        depth += 1
        is_new = True


@kernel
def best_of_subsets(levels: Levels, masks: I64, scores: F64, best: F64) -> None:
    """Fill in the best score of the proper subsets of every set, [v, T]; sets come after their subsets."""
    for number in range(masks.shape[0]):
        unvisited = masks[number]
        for v in range(scores.shape[0]):
            best[v, number] = -np.inf
        while unvisited:
            smaller = set_number(levels, masks[number] ^ (unvisited & -unvisited))
            unvisited &= unvisited - 1
            for v in range(scores.shape[0]):
                best[v, number] = max(best[v, number], best[v, smaller], scores[v, smaller])
