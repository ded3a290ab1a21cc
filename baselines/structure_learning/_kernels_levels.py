"""Kernels: local scores of columns with several values, and sums over all DAGs by layers.

Dimension letters: v = variables, r = patterns of rows, g = groups of variables that count the same rows, t = terms,
T = sets of variables, S = subsets as masks, L = 3**v pairs (placed, last layer). Sets are masks, bit per variable.

A local score is a difference of sums over configurations: BDeu of a child given S is F(S + child) - F(S), where F(T)
sums lgamma(a + n) - lgamma(a) over the configurations of T that occur, with a = imaginary rows over the number of all
configurations of T. K2 and likelihoods split alike. So each set of variables refines the rows once for all children.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from calibrant.baselines.structure_learning._kernels_optimum import log_add, sum_inside
from calibrant.baselines.structure_learning._kernels_scores import lowest, set_size
from calibrant.dsl._jit import inline_kernel, kernel

I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]
U64 = npt.NDArray[np.uint64]
F64 = npt.NDArray[np.float64]

DIRECT_SHARE = 2  # rows per configuration above which configurations are numbered without looking which occur
MAX_ALONE = 64  # rows of a pattern that may be counted by their number
BY_CONFIGURATIONS, BY_CELL, BY_LIKELIHOOD = 0, 1, 2  # how a term depends on a count


class Levels(NamedTuple):
    """Rows by pattern, and the terms of a score.

    codes: [v, r] values from 0; levels: [v] numbers of values; weights: [g, r] rows of each pattern that count
    kind: BY_CONFIGURATIONS: a = priors[0] over the configurations; BY_CELL: a = priors[t]; BY_LIKELIHOOD: n log n
    strides: [v] of a variable's level in the row of `table`; by its sum over a set
    table: [rows, counts] terms that were computed, not a number elsewhere; counts beyond are computed each time
    binomials: [v + 1, size + 1]; is_dense: whether sets are numbered by their masks, else by size and colexicographic
    """

    codes: I32
    levels: I64
    weights: I64
    kind: int
    priors: F64
    strides: I64
    table: F64
    binomials: I64
    is_dense: bool


@inline_kernel
def _term(levels: Levels, row: int, prior: float, count: int) -> float:
    """Return the term of one count, remembered if it is small."""
    if count < levels.table.shape[1] and not math.isnan(levels.table[row, count]):
        return float(levels.table[row, count])
    if levels.kind == BY_LIKELIHOOD:
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
def _refine(
    levels: Levels,
    v: int,
    patterns: I32,
    parts: I32,
    scratch: tuple[I32, I32, I32],
    alone: I64,
    active: I32,
    refined: I32,
) -> tuple[int, int]:
    """Split configurations by the values of a variable; return the numbers of patterns and of parts that are left.

    patterns, parts: [i] a pattern and its configuration; active, refined: the same, filled in
    scratch: [key], [part], [part]; alone: [g, c] patterns that are alone, added to
    """
    renamed, sizes, fresh = scratch
    num_values = levels.levels[v]
    renamed[:] = -1
    count = 0
    for i in range(len(patterns)):
        key = parts[i] * num_values + levels.codes[v, patterns[i]]
        if renamed[key] < 0:
            renamed[key] = count
            sizes[count] = 0
            fresh[count] = -1
            count += 1
        sizes[renamed[key]] += 1
        refined[i] = renamed[key]
    num_active = num_parts = 0
    for i in range(len(patterns)):
        r, part = patterns[i], refined[i]
        is_alone = sizes[part] == 1
        if is_alone:
            for g in range(len(alone)):
                if levels.weights[g, r] >= MAX_ALONE:
                    is_alone = False
        if is_alone:
            for g in range(len(alone)):
                alone[g, levels.weights[g, r]] += 1
            continue
        if fresh[part] < 0:
            fresh[part] = num_parts
            num_parts += 1
        active[num_active] = r
        refined[num_active] = fresh[part]
        num_active += 1
    return num_active, num_parts


@kernel
def configuration_sums(levels: Levels, first: int, max_size: int, sums: F64) -> int:
    """Fill in sums [g, t, T] over the configurations of every set of at most `max_size` whose lowest variable is given.

    first: the lowest variable; -1 for the empty set alone; return the patterns and configurations met

    A pattern that is alone in its configuration stays alone under any further variable: it is counted by its number of
    rows and not refined again (18 columns of 3,000 rows: two thirds of the time).
    """
    num_vars, num_patterns = levels.codes.shape
    num_groups = levels.weights.shape[0]
    depths = min(max_size, num_vars) + 1
    active = np.zeros((depths, num_patterns), np.int32)
    parts = np.zeros((depths, num_patterns), np.int32)
    num_active = np.zeros(depths, np.int64)
    num_parts = np.ones(depths, np.int64)
    alone = np.zeros((depths, num_groups, MAX_ALONE), np.int64)
    source = np.zeros(depths, np.int64)  # the depth whose `active` holds: it is copied where patterns go alone
    masks = np.zeros(depths, np.int64)
    rows = np.zeros(depths, np.int64)
    configurations = np.ones(depths)
    upcoming = np.zeros(depths, np.int64)
    renamed = np.empty(num_patterns * levels.levels.max(), np.int32)
    sizes, fresh = np.zeros((2, num_patterns + 1), np.int32)
    counts = np.zeros(num_patterns + 1, np.int64)
    active[0] = np.arange(num_patterns)
    num_active[0] = num_patterns
    upcoming[0] = first
    if first < 0:
        _sum_counts(levels, active[0], parts[0], num_patterns, 1, alone[0], 0, 0, 1.0, counts, sums)
    work = 0
    depth = 0 if first >= 0 and max_size >= 1 else -1
    while depth >= 0:
        v = upcoming[depth]
        if depth == depths - 1 or v >= num_vars or (depth == 0 and v > first):
            depth -= 1
            continue
        upcoming[depth] = v + 1
        num_values = levels.levels[v]
        old = active[source[depth]]
        alone[depth + 1] = alone[depth]
        source[depth + 1] = source[depth]
        num_active[depth + 1] = num_active[depth]
        num_parts[depth + 1] = num_parts[depth] * num_values
        if num_parts[depth + 1] * DIRECT_SHARE <= num_active[depth]:
            for i in range(num_active[depth]):
                parts[depth + 1, i] = parts[depth, i] * num_values + levels.codes[v, old[i]]
        else:
            source[depth + 1] = depth + 1
            patterns, old_parts = old[: num_active[depth]], parts[depth]
            scratch = (renamed[: num_parts[depth] * num_values], sizes, fresh)
            num_active[depth + 1], num_parts[depth + 1] = _refine(
                levels, v, patterns, old_parts, scratch, alone[depth + 1], active[depth + 1], parts[depth + 1]
            )
        masks[depth + 1] = masks[depth] | np.int64(1) << v
        rows[depth + 1] = rows[depth] + levels.strides[v]
        configurations[depth + 1] = configurations[depth] * num_values
        depth += 1
        upcoming[depth] = v + 1
        patterns, its_parts, its_alone = active[source[depth]], parts[depth], alone[depth]
        number, cells, mask = num_active[depth], num_parts[depth], masks[depth]
        work += int(num_groups * (number + cells))
        share = configurations[depth]
        _sum_counts(levels, patterns, its_parts, number, cells, its_alone, mask, rows[depth], share, counts, sums)
    return work


@inline_kernel
def _sum_counts(
    levels: Levels,
    active: I32,
    parts: I32,
    num_active: int,
    num_parts: int,
    alone: I64,
    mask: int,
    row: int,
    configurations: float,
    counts: I64,
    sums: F64,
) -> None:
    """Sum the terms of one set for every group and every prior."""
    number = set_number(levels, mask)
    by_configurations = levels.kind == BY_CONFIGURATIONS
    for g in range(levels.weights.shape[0]):
        for p in range(num_parts):
            counts[p] = 0
        for i in range(num_active):
            counts[parts[i]] += levels.weights[g, active[i]]
        for t in range(sums.shape[1]):
            prior = levels.priors[t] / configurations if by_configurations else levels.priors[t]
            at = row if by_configurations else t
            total = 0.0
            for c in range(1, MAX_ALONE):
                if alone[g, c]:
                    total += alone[g, c] * _term(levels, at, prior, c)
            for p in range(num_parts):
                if counts[p]:
                    total += _term(levels, at, prior, counts[p])
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
    numbers = np.zeros(levels.table.shape[1], np.int64)
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
        _sum_cells(levels, g, cells[:num_cells], masks[0], rows[0], numbers, sums)
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
            _sum_cells(levels, g, cells[end : end + sizes[depth]], masks[depth], rows[depth], numbers, sums)


@inline_kernel
def _sum_cells(levels: Levels, g: int, counts: I32, mask: int, row: int, numbers: I64, sums: F64) -> None:
    """Sum the terms of the configurations of one set for every prior; those of no row are 0.

    numbers: [counts that are remembered] zeros, and again afterwards; equal counts are multiplied, which rounds once
    """
    largest = num_beyond = 0
    for i in range(len(counts)):
        if counts[i] >= len(numbers):
            num_beyond += 1
        elif counts[i]:
            numbers[counts[i]] += 1
            largest = max(largest, counts[i])
    for t in range(sums.shape[1]):
        by_configurations = levels.kind == BY_CONFIGURATIONS
        prior = levels.priors[t] / len(counts) if by_configurations else levels.priors[t]
        at = row if by_configurations else t
        total = 0.0
        for c in range(1, largest + 1):
            if numbers[c]:
                total += numbers[c] * _term(levels, at, prior, c)
        for i in range(len(counts) if num_beyond else 0):
            if counts[i] >= len(numbers):
                total += _term(levels, at, prior, counts[i])
        sums[g, t, mask] = total
    numbers[: largest + 1] = 0


@kernel
def local_scores(
    levels: Levels,
    sums: F64,  # [g, t, T]
    group: I64,  # [v] whose rows count
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
                    whole = sums[group[v], 0, set_number(levels, mask | np.int64(1) << v)]
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


# --- Sums over all DAGs, layer by layer: no term is negative (Talvitie, Vuoksenmaa and Koivisto 2019) -----------------
@inline_kernel
def _log_subtract(a: float, b: float) -> float:
    """Return log(exp(a) - exp(b)) for a >= b; minus infinity if they are equal."""
    if b == -np.inf:
        return a
    return -np.inf if a <= b else a + math.log(-math.expm1(b - a))


@kernel
def layered_sums(
    table: F64,  # [v, S] log weights of parent sets, minus infinity where not admitted
    ternary: I64,  # [S] sum of 3**i over the members: pair (placed, last) is at ternary[placed] + ternary[last]
    inside: F64,  # [v, S] out: log of the sum over the parent sets inside each subset
    forward: F64,  # [L] out: log of the sum over the ways to begin
    backward: F64,  # [L] out: log of the sum over the ways to go on
) -> float:
    """Return the log of the sum over all DAGs of the product of their weights.

    A DAG is split into layers: the roots, then whatever has a parent in the last layer and none outside the placed.
    """
    num_vars, num_sets = table.shape
    full = num_sets - 1
    sum_inside(table, inside)
    forward[:] = -np.inf
    backward[:] = -np.inf
    products = np.empty(num_sets)
    for last in range(1, num_sets):
        total = 0.0
        for v in range(num_vars):
            if last >> v & 1:
                total += table[v, 0]
        forward[2 * ternary[last]] = total
    for placed in range(1, num_sets):
        last = placed
        while last:
            reached = forward[ternary[placed] + ternary[last]]
            if reached > -np.inf and placed != full:
                _layer_products(inside, placed, last, products)
                fresh = full ^ placed
                layer = fresh
                while layer:
                    if products[layer] > -np.inf:
                        at = ternary[placed | layer] + ternary[layer]
                        forward[at] = log_add(forward[at], reached + products[layer])
                    layer = (layer - 1) & fresh
            last = (last - 1) & placed
    evidence = -np.inf
    last = full
    while last:
        at = ternary[full] + ternary[last]
        backward[at] = 0.0
        evidence = log_add(evidence, forward[at])
        last = (last - 1) & full
    for placed in range(num_sets - 2, 0, -1):
        last = placed
        while last:
            _layer_products(inside, placed, last, products)
            fresh = full ^ placed
            layer = fresh
            total = -np.inf
            while layer:
                if products[layer] > -np.inf:
                    onward = backward[ternary[placed | layer] + ternary[layer]]
                    total = log_add(total, products[layer] + onward)
                layer = (layer - 1) & fresh
            backward[ternary[placed] + ternary[last]] = total
            last = (last - 1) & placed
    return evidence


@inline_kernel
def _layer_products(inside: F64, placed: int, last: int, products: F64) -> None:
    """Fill in, for every set of variables not placed, the log weight of it as the next layer."""
    num_vars = inside.shape[0]
    fresh = (1 << num_vars) - 1 ^ placed
    without = placed ^ last
    products[0] = 0.0
    layer = -fresh & fresh  # subsets of `fresh` in ascending order
    while layer:
        v = lowest(layer)
        rest = layer & (layer - 1)
        if rest:
            products[layer] = products[rest] + products[layer ^ rest]
        else:
            products[layer] = _log_subtract(inside[v, placed], inside[v, without])
        layer = (layer - fresh) & fresh


@kernel
def arc_probabilities(
    table: F64, ternary: I64, inside: F64, forward: F64, backward: F64, evidence: float, arcs: F64
) -> None:
    """Fill in the probability of every arc, [from, to], from `layered_sums`."""
    num_vars, num_sets = table.shape
    full = num_sets - 1
    shares = np.zeros((num_vars, forward.shape[0]))  # probability that a variable comes right after (placed, last)
    products = np.empty(num_sets)
    for placed in range(1, num_sets - 1):
        last = placed
        while last:
            at = ternary[placed] + ternary[last]
            if forward[at] > -np.inf:
                _layer_products(inside, placed, last, products)
                fresh = full ^ placed
                layer = fresh
                while layer:
                    if products[layer] > -np.inf:
                        onward = backward[ternary[placed | layer] + ternary[layer]]
                        probability = math.exp(forward[at] + products[layer] + onward - evidence)
                        unvisited = layer
                        while unvisited:
                            shares[lowest(unvisited), at] += probability
                            unvisited &= unvisited - 1
                    layer = (layer - 1) & fresh
            last = (last - 1) & placed
    having = np.empty(num_sets)
    for v in range(num_vars):
        for u in range(num_vars):
            arcs[u, v] = 0.0
            if u == v:
                continue
            for s in range(num_sets):
                having[s] = table[v, s] if s >> u & 1 else -np.inf
            for w in range(num_vars):
                for s in range(num_sets):
                    if s >> w & 1:
                        having[s] = log_add(having[s], having[s ^ (1 << w)])
            for placed in range(1, num_sets - 1):
                if not placed >> u & 1 or placed >> v & 1:
                    continue
                last = placed
                while last:
                    share = shares[v, ternary[placed] + ternary[last]]
                    if share > 0.0:
                        part = _log_subtract(having[placed], having[placed ^ last])
                        if part > -np.inf:
                            whole = _log_subtract(inside[v, placed], inside[v, placed ^ last])
                            arcs[u, v] += share * min(1.0, math.exp(part - whole))
                    last = (last - 1) & placed


@kernel
def sample_dags(table: F64, ternary: I64, inside: F64, forward: F64, backward: F64, uniforms: F64, dags: I64) -> None:
    """Draw DAGs [n, v] with probabilities proportional to their weights; uniforms: [n, (v + 1)**2] from [0, 1)."""
    num_vars, num_sets = table.shape
    full = num_sets - 1
    products = np.empty(num_sets)
    for n in range(dags.shape[0]):
        draw = 0
        highest = -np.inf
        for last in range(1, num_sets):
            highest = max(highest, forward[2 * ternary[last]] + backward[2 * ternary[last]])
        total = 0.0
        for last in range(1, num_sets):
            total += math.exp(forward[2 * ternary[last]] + backward[2 * ternary[last]] - highest)
        threshold = uniforms[n, draw] * total
        draw += 1
        placed = 0
        total = 0.0
        for last in range(1, num_sets):
            weight = math.exp(forward[2 * ternary[last]] + backward[2 * ternary[last]] - highest)
            if weight > 0.0:
                placed = last
            total += weight
            if total > threshold and weight > 0.0:
                break
        layer = placed
        for v in range(num_vars):
            dags[n, v] = 0
        while placed != full:
            _layer_products(inside, placed, layer, products)
            fresh = full ^ placed
            reached = backward[ternary[placed] + ternary[layer]]
            threshold = uniforms[n, draw]
            draw += 1
            chosen = 0
            total = 0.0
            upcoming = fresh
            while upcoming:
                if products[upcoming] > -np.inf:
                    onward = backward[ternary[placed | upcoming] + ternary[upcoming]]
                    weight = math.exp(products[upcoming] + onward - reached)
                    if weight > 0.0:
                        chosen = upcoming
                    total += weight
                    if total > threshold:
                        break
                upcoming = (upcoming - 1) & fresh
            unvisited = chosen
            while unvisited:
                v = lowest(unvisited)
                unvisited &= unvisited - 1
                whole = _log_subtract(inside[v, placed], inside[v, placed ^ layer])
                threshold = uniforms[n, draw + v]
                total = 0.0
                parents = placed
                while True:
                    if parents & layer and table[v, parents] > -np.inf:
                        weight = math.exp(table[v, parents] - whole)
                        if weight > 0.0:
                            dags[n, v] = parents
                        total += weight
                        if total > threshold:
                            break
                    if parents == 0:
                        break
                    parents = (parents - 1) & placed
            draw += num_vars
            placed |= chosen
            layer = chosen
