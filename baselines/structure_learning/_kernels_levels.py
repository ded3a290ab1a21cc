"""Kernels: local scores of columns with several values.

Dimension letters: v = variables, r = patterns of rows, g = groups of variables that count the same rows, t = terms,
T = sets of variables, s = sums of each set. Sets are masks, bit per variable.

A local score is a difference of sums over configurations: BDeu of a child given S is F(S + child) - F(S), where F(T)
sums lgamma(a + n) - lgamma(a) over the configurations of T that occur, with a = imaginary rows over the number of all
configurations of T. K2 and likelihoods split alike. So each set of variables refines the rows once for all children.
BDs has imaginary rows by the configurations of S that occur: F(S + child) has a term for each child.

A group does not count the few rows in which its variables were set. So for each set of variables all rows are counted
once; for each group its uncounted rows are subtracted from the counts, and added again afterwards.
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
MAX_ALONE = 64  # patterns of fewer rows that are alone in a configuration are counted by their number of rows
BY_CONFIGURATIONS, BY_CELL, BY_LIKELIHOOD, BY_OCCURRENCE, BY_OCCUPIED = range(5)  # how a term depends on a count


class Levels(NamedTuple):
    """Rows by pattern, and the terms of a score.

    codes: [v, r] values from 0; levels: [v] numbers of values; weights: [r] rows of each pattern
    set_rows: [x] patterns that a group does not count, group by group, from starts[g] on; set_weights: [x] their rows
    terms: [s] priors (of BY_OCCUPIED 0 or v + 1) of the sums, group by group, from sum_starts[g] on
    kind: BY_CONFIGURATIONS: a = priors[0] over the configurations; BY_CELL: a = priors[t]; BY_LIKELIHOOD: n log n;
        BY_OCCURRENCE: 1; BY_OCCUPIED: a = priors[0] over occupied[T, g], for t = v + 1 over occupied[T - v, g] times
        values, none where v is not in T
    order: [v] order in which variables split configurations: first those that leave most rows alone
    strides: [v] contribution of a variable to the row of `table`; a set has the sum of its members' strides
    table: [rows, counts] terms, NaN in rows that no set has needed yet; terms of larger counts are computed each time
    powers: [counts, j] coefficients of a**j in lgamma(count + a), for BY_OCCUPIED with a below MAX_SERIES
    binomials: [v + 1, size + 1]; is_dense: whether sets are numbered by their masks, else by size and colexicographic
    """

    codes: I32
    levels: I64
    weights: I64
    set_rows: I64
    set_weights: I64
    starts: I64
    terms: I64
    sum_starts: I64
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
def _prior(levels: Levels, g: int, t: int, mask: int, row: int, configurations: float) -> tuple[float, int]:
    """Return the imaginary rows of a cell, 0 for a term that the set does not have, and their row of the table."""
    if levels.kind == BY_CONFIGURATIONS:
        return levels.priors[0] / configurations, row
    if levels.kind != BY_OCCUPIED:
        return levels.priors[t], t
    cells = 0
    if t == 0:
        cells = int(levels.occupied[set_number(levels, mask), g])
    elif mask >> (t - 1) & 1:
        cells = int(levels.levels[t - 1] * levels.occupied[set_number(levels, mask ^ (1 << (t - 1))), g])
    return (levels.priors[0] / cells if cells else 0.0), cells


@kernel
def _term(kind: int, prior: float, count: int) -> float:
    """Return the term of one count. kind: as in `Levels`."""
    if kind == BY_OCCURRENCE:
        return 1.0
    if kind == BY_LIKELIHOOD:
        return count * math.log(count) if count else 0.0
    return math.lgamma(prior + count) - math.lgamma(prior)


@kernel
def _fill_line(kind: int, prior: float, line: F64) -> None:
    """Fill in a row of the table of `Levels` for all counts at once; a check of each entry would take twice a sum."""
    line[0] = 0.0
    for count in range(1, len(line)):
        line[count] = _term(kind, prior, count)


@kernel
def set_number(levels: Levels, mask: int) -> int:
    """Return the position of a set in the arrays [T]."""
    if levels.is_dense:
        return mask
    size = set_size(mask)
    rank = 0
    for smaller in range(size):
        rank += levels.binomials[levels.binomials.shape[0] - 1, smaller]
    unvisited = mask
    num_visited = 0
    while unvisited:
        num_visited += 1
        rank += levels.binomials[lowest(unvisited), num_visited]
        unvisited &= unvisited - 1
    return rank


@inline_kernel
def _copy(source: I64, target: I64) -> None:
    """Copy element by element: for `target[:] = source` numba takes 2.5 s to compile the text of an error."""
    for i in range(len(source)):
        target[i] = source[i]


@inline_kernel
def _split(
    levels: Levels, v: int, old: I32, ends: I32, num_parts: int, alone: I64, cells: I64, rows: I32, new_ends: I32
) -> int:
    """Split configurations by the values of a variable; return the number of those that are left.

    old: [i] patterns, configuration by configuration; ends: [part] end of each; rows, new_ends: the same, after it
    alone: [c] number of patterns of c rows that are alone in a configuration, increased; cells: [values + 1] scratch
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
            cells[value] = end  # index for the next pattern of the value
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
            if levels.weights[r] < MAX_ALONE:
                alone[levels.weights[r]] += 1
            else:
                rows[end] = r
                end += 1
                new_ends[num_left] = end
                num_left += 1
        start = stop
    return num_left


@kernel
def configuration_sums(levels: Levels, first: int, max_size: int, sums: F64) -> int:
    """Fill in sums [T, s] over the configurations of every set of at most `max_size` whose first variable is given.

    first: position of that variable in `Levels.order`; -1 for the empty set alone

    Return the work: numbers of patterns split and subtracted. A pattern that is alone in its configuration stays alone
    under any further variable: it is counted by its number of rows and not split again (18 columns of 3,000 rows: two
    thirds of the time). Sets that are not extended are counted without splitting their rows.
    """
    num_vars, num_patterns = levels.codes.shape
    depths = min(max_size, num_vars) + 1
    rows = np.zeros((depths, num_patterns), np.int32)
    ends = np.zeros((depths, num_patterns), np.int32)
    num_parts = np.zeros(depths, np.int64)
    alone = np.zeros((depths, MAX_ALONE), np.int64)
    masks = np.zeros(depths, np.int64)
    at = np.zeros(depths, np.int64)
    configurations = np.ones(depths)
    upcoming = np.zeros(depths, np.int64)
    cells = np.zeros(levels.levels.max(), np.int64)
    small, distinct = np.zeros((2, MAX_ALONE), np.int64)
    large = np.zeros(num_patterns + 1, np.int64)
    num_alone = num_patterns * max(2, levels.levels.max())
    counts = np.append(
        np.zeros(num_alone, np.int64), levels.weights
    )  # the last ones are those of patterns that are alone
    place_of, places = np.zeros(num_patterns, np.int64), np.zeros(len(levels.set_rows), np.int64)
    base = np.zeros(MAX_ALONE, np.int64)
    for r in range(num_patterns):
        rows[0, r] = r
    if num_patterns:
        ends[0, 0], num_parts[0] = num_patterns, 1
    upcoming[0] = first
    if first < 0:
        _sum_counts(
            levels, -1, rows[0], ends[0], num_parts[0], alone[0], 0, 0, 1.0, counts, place_of, places, small, base,
            large, distinct, sums,
        )  # fmt: skip
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
        work += len(levels.set_rows) + (ends[depth, number - 1] if number else 0)
        is_last = depth == depths - 2 or place == num_vars - 1
        if not is_last:
            depth += 1
            _copy(alone[depth - 1], alone[depth])
            masks[depth], at[depth], configurations[depth], upcoming[depth] = mask, row, share, place + 1
            old, old_ends = rows[depth - 1], ends[depth - 1]
            number = _split(levels, v, old, old_ends, number, alone[depth], cells, rows[depth], ends[depth])
            num_parts[depth] = number
            v = -1
        its_rows, its_ends, its_alone = rows[depth], ends[depth], alone[depth]
        _sum_counts(
            levels, v, its_rows, its_ends, number, its_alone, mask, row, share, counts, place_of, places, small,
            base, large, distinct, sums,
        )  # fmt: skip
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
    counts: I64,
    place_of: I64,
    places: I64,
    small: I64,
    base: I64,
    large: I64,
    distinct: I64,
    sums: F64,
) -> None:
    """Sum the terms of one set; its configurations are the parts, or with v >= 0 the values of v in each part.

    counts: scratch for the counts of parts (of two values that of 1 first), then those of patterns that are alone
    place_of: [r], places, small, base, large, distinct: scratch
    """
    num_values = levels.levels[v] if v >= 0 else 1
    num_cells = max(num_values, 2)
    num_set, num_patterns = len(places), len(place_of)
    for r in range(num_patterns if num_set else 0):
        place_of[r] = len(counts) - num_patterns + r
    _copy(alone, small)
    num_large = start = 0
    for part in range(num_parts):
        first = part * num_cells
        counts[first : first + num_cells] = 0
        for i in range(start, ends[part]):
            r = rows[i]
            value = levels.codes[v, r] if v >= 0 else 0
            place_of[r] = first + (1 - value if num_cells == 2 else value)
            counts[place_of[r]] += levels.weights[r]
        for cell in range(first, first + num_cells):
            if counts[cell] < MAX_ALONE:
                small[counts[cell]] += 1
            else:
                large[num_large] = cell
                num_large += 1
        start = ends[part]
    for x in range(num_set):
        places[x] = place_of[levels.set_rows[x]]
    none = levels.powers[:0]
    _sum_groups(
        levels, counts, places, small, base, len(small) - 1, large, num_large, mask, row, configurations, none,
        distinct, sums,
    )  # fmt: skip


@inline_kernel
def _take_out(counts: I32 | I64, places: I32 | I64, weights: I64, numbers: I64) -> bool:
    """Subtract rows from counts and update the numbers of equal counts; return whether a new count appeared."""
    has_new = False
    for x in range(len(places)):
        place = np.uint64(places[x])
        old = np.uint64(counts[place])
        new = old - np.uint64(weights[x])
        counts[place] = new
        if old < len(numbers):
            numbers[old] -= 1
        if new < len(numbers):
            has_new |= numbers[new] == 0
            numbers[new] += 1
    return has_new


@kernel
def _sum_groups(
    levels: Levels, counts: I32 | I64, places: I32 | I64, numbers: I64, base: I64, largest: int, large: I64,
    num_large: int, mask: int, row: int, configurations: float, powers: F64, distinct: I64, sums: F64,
) -> None:  # fmt: skip
    """Sum the terms of a set's counts for every group and prior.

    places: [x] index of the count of each pattern of `set_rows`
    numbers: [c] how many counts equal c, for c up to `largest`; their terms are multiplied, which rounds once
    large: indices of the larger counts; powers: as in `Levels`, or empty; base, distinct: [c] scratch
    """
    set_index = set_number(levels, mask)
    # coefficients are summed first, because terms of many priors lie far apart in memory
    moments = np.zeros(powers.shape[1] if len(powers) else 0)
    # numba counts references to an array of a tuple at each access, which in a loop takes longer than the loop itself
    kind, table, terms, sum_starts = levels.kind, levels.table, levels.terms, levels.sum_starts
    starts, weights = levels.starts, levels.set_weights
    numbers[0] = 1
    for c in range(largest + 1):
        base[c] = numbers[c]
    num_distinct = 0
    for g in range(len(sum_starts) - 1):
        its_places, its_weights = places[starts[g] : starts[g + 1]], weights[starts[g] : starts[g + 1]]
        has_new = _take_out(counts, its_places, its_weights, numbers)
        if has_new or g == 0:
            num_distinct = 0
            for c in range(1, largest + 1):
                if base[c] | numbers[c]:
                    distinct[num_distinct] = c
                    num_distinct += 1
        num_occupied = 0
        moments[:] = 0
        for i in range(num_distinct if len(moments) else 0):
            number_of, coefficients = numbers[distinct[i]], powers[distinct[i]]
            num_occupied += number_of
            for j in range(len(moments)):
                moments[j] += number_of * coefficients[j]
        for s in range(sum_starts[g], sum_starts[g + 1]):
            prior, at = _prior(levels, g, terms[s], mask, row, configurations)
            if not prior:
                continue
            total = 0.0
            line = table[at] if len(table) else moments[:0]
            if len(moments) and prior < MAX_SERIES:
                for j in range(len(moments) - 1, -1, -1):
                    total = total * prior + moments[j]
                total -= num_occupied * math.lgamma(prior)
            elif len(line) > (distinct[num_distinct - 1] if num_distinct else 0):
                if math.isnan(line[0]):
                    _fill_line(kind, prior, line)
                for i in range(num_distinct):
                    total += numbers[distinct[i]] * line[distinct[i]]
            else:
                for i in range(num_distinct):
                    total += numbers[distinct[i]] * _term(kind, prior, distinct[i])
            for i in range(num_large):
                count = counts[large[i]]
                if count >= len(numbers):
                    total += line[count] if count < len(line) else _term(kind, prior, count)
            sums[set_index, s] = total
        for x in range(len(its_places)):
            counts[np.uint64(its_places[x])] += its_weights[x]
        for c in range(largest + 1 if starts[g] < starts[g + 1] else 0):
            numbers[c] = base[c]


@kernel
def marginal_sums(levels: Levels, first: int, sums: F64) -> None:
    """Fill in sums [T, s] over the configurations of every set whose lowest variable is `first`, from dense counts.

    Sets are numbered by their masks. Variables are summed out of a table of counts one by one, each set once. With two
    values a column that takes 3**v additions (18 columns of 3,000 rows: a tenth of the time of splitting rows).
    """
    num_vars, num_patterns = levels.codes.shape
    num_cells, num_tables = np.int64(1), 2
    for v in range(first, num_vars):
        num_cells *= levels.levels[v]
        num_tables += levels.levels[v] == 1  # summing it out leaves as many cells
    cells = np.zeros(num_tables * num_cells, np.int32)  # of each depth, after those of the depth before
    numbers, base, distinct = np.zeros((3, levels.table.shape[1]), np.int64)
    large = np.zeros(num_patterns, np.int64)
    depths = num_vars - first + 1
    starts, sizes, strides = np.zeros(depths, np.int64), np.zeros(depths, np.int64), np.ones(depths, np.int64)
    masks, rows, upcoming = np.zeros(depths, np.int64), np.zeros(depths, np.int64), np.zeros(depths, np.int64)
    num_set = len(levels.set_rows)
    lower, upper = np.zeros((depths, num_set), np.int32), np.zeros((num_vars + 1, num_set), np.int32)
    places = np.zeros(num_set, np.int32)
    for v in range(num_vars - 1, first - 1, -1):  # cell of a pattern in a table of the variables from v on
        for k in range(num_set):
            upper[v, k] = upper[v + 1, k] * levels.levels[v] + levels.codes[v, levels.set_rows[k]]
    for v in range(first, num_vars):
        masks[0] |= np.int64(1) << v
        rows[0] += levels.strides[v]
    for r in range(num_patterns):
        cell = np.int64(0)
        for v in range(num_vars - 1, first - 1, -1):
            cell = cell * levels.levels[v] + levels.codes[v, r]
        cells[cell] += levels.weights[r]
    sizes[0], strides[0], upcoming[0] = num_cells, levels.levels[first], first + 1
    for k in range(num_set):
        places[k], lower[0, k] = upper[first, k], levels.codes[first, levels.set_rows[k]]
    _sum_cells(levels, cells[:num_cells], places, masks[0], rows[0], numbers, base, distinct, large, sums)
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
        for k in range(num_set):  # the variables below v, then those above it
            lower[depth + 1, k] = lower[depth, k]
            places[k] = lower[depth, k] + stride * upper[v + 1, k]
            lower[depth, k] += stride * levels.codes[v, levels.set_rows[k]]
        depth += 1
        masks[depth] = masks[depth - 1] ^ np.int64(1) << v
        rows[depth] = rows[depth - 1] - levels.strides[v]
        strides[depth], upcoming[depth] = stride, v + 1
        counts = cells[end : end + sizes[depth]]
        _sum_cells(levels, counts, places, masks[depth], rows[depth], numbers, base, distinct, large, sums)


@kernel
def _sum_cells(
    levels: Levels,
    counts: I32,
    places: I32,
    mask: int,
    row: int,
    numbers: I64,
    base: I64,
    distinct: I64,
    large: I64,
    sums: F64,
) -> None:
    """Sum the terms of the configurations of one set for every group and prior; configurations without rows add 0.

    numbers: [tabulated counts] zeros before and after
    base, distinct: [tabulated counts], large: [patterns] scratch
    """
    largest = num_large = 0
    for i in range(len(counts)):
        if counts[i] >= len(numbers):
            large[num_large] = i
            num_large += 1
        elif counts[i]:
            numbers[counts[i]] += 1
            largest = max(largest, counts[i])
    if num_large and len(levels.set_rows):
        largest = len(numbers) - 1  # a large count may become any smaller one
    _sum_groups(
        levels,
        counts,
        places,
        numbers,
        base,
        largest,
        large,
        num_large,
        mask,
        row,
        len(counts),
        levels.powers,
        distinct,
        sums,
    )
    numbers[: largest + 1] = 0


@kernel
def local_scores(
    levels: Levels,
    sums: F64,  # [T, s]
    child_sum: I64,  # [v] sum over the configurations of child and parents
    parent_sum: I64,  # [v] sum over the configurations of the parents
    price: float,  # subtracted for each free parameter
    allowed: I64,  # [v] masks
    required: I64,  # [v] masks
    limits: I64,  # [v] largest number of parents
    max_size: int,
    masks: I64,  # [T] out: the sets
    scores: F64,  # [v, T] out, for admitted sets; other entries stay
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
            set_index = set_number(levels, mask)
            masks[set_index] = mask
            for v in range(num_vars):
                is_admitted = mask & ~allowed[v] == 0 and required[v] & ~mask == 0 and depth <= limits[v]
                if is_admitted and not mask >> v & 1:
                    whole = sums[set_number(levels, mask | np.int64(1) << v), child_sum[v]]
                    fine = price * configurations[depth] * (levels.levels[v] - 1)
                    scores[v, set_index] = whole - sums[set_index, parent_sum[v]] - fine
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
    for set_index in range(masks.shape[0]):
        unvisited = masks[set_index]
        for v in range(scores.shape[0]):
            best[v, set_index] = -np.inf
        while unvisited:
            smaller = set_number(levels, masks[set_index] ^ (unvisited & -unvisited))
            unvisited &= unvisited - 1
            for v in range(scores.shape[0]):
                best[v, set_index] = max(best[v, set_index], best[v, smaller], scores[v, smaller])
