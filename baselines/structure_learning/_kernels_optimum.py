"""Kernels: dynamic programming over subsets of variables for the best, the k best, and the average DAG.

Dimension letters: v = variables, S = 2**v subsets as masks, k = networks kept, e = parent sets of one variable,
L = 3**v pairs (placed, last layer).
Scores come as a table [v, S] of local scores, minus infinity where a parent set is not admitted.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from calibrant.baselines.structure_learning._kernels_scores import copy, lowest
from calibrant.dsl._jit import inline_kernel, kernel

I64 = npt.NDArray[np.int64]
F64 = npt.NDArray[np.float64]

TIE = 1e-9  # equal scores differ by less, as sums in another order; different scores differ by more


@kernel
def best_within(table: F64, best: F64, chosen: I64) -> None:
    """Fill in the best parent set of each variable inside every subset, [v, S]: its score and the set.

    Silander and Myllymaki 2006, equation 7; of equally good sets the smaller one, then the first in the scan.
    """
    num_vars, num_sets = table.shape
    for v in range(num_vars):
        for s in range(num_sets):
            best[v, s] = table[v, s]
            chosen[v, s] = s
            unvisited = s
            while unvisited:
                smaller = s ^ (unvisited & -unvisited)
                unvisited &= unvisited - 1
                if best[v, smaller] >= best[v, s]:
                    best[v, s] = best[v, smaller]
                    chosen[v, s] = chosen[v, smaller]


@kernel
def best_networks(best: F64, roots: int, least: F64, totals: F64, sinks: I64) -> None:
    """Fill in the best total of a network on every subset, [S], and its last sink.

    roots: variables that have no parents; least: [v] score of each without parents
    """
    num_sets = best.shape[1]
    totals[0] = 0.0
    sinks[0] = -1
    for s in range(1, num_sets):
        totals[s] = -np.inf
        sinks[s] = -1
        unvisited = s
        while unvisited:
            v = lowest(unvisited)
            unvisited &= unvisited - 1
            without = s ^ (1 << v)
            total = totals[without] + (least[v] if roots >> v & 1 else best[v, without])
            if total > totals[s]:
                totals[s] = total
                sinks[s] = v


@kernel
def k_best_networks(
    orders: I64,  # [v, e] admitted parent sets by falling score, padded with -1
    scores: F64,  # [v, e] their scores
    k: int,
    counts: I64,  # [S] out: number of networks, up to k
    totals: F64,  # [S, k] out: their scores, falling
    networks: I64,  # [S, k, v] out: parents; 0 for variables outside the subset
) -> None:
    """List the k best networks of every subset (Tian, He and Ram 2010).

    A network on S is a sink with a parent set, and a network on the other variables. For each sink a heap yields these
    pairs in falling order. A network with several sinks is yielded once for each of them and kept once.
    """
    num_sets = counts.shape[0]
    num_vars = orders.shape[0]
    inside = np.empty((num_vars, k), np.int64)  # positions of the k best parent sets inside the subset
    num_inside = np.empty(num_vars, np.int64)
    network = np.empty(num_vars, np.int64)
    losses = np.empty(num_vars * (k + 1) + 2)  # a heap, which yields a network at most once for each sink
    pairs = np.empty(
        (len(losses), 3), np.int64
    )  # sink, position of its parent set, position of the network on the other variables
    counts[0] = 1
    totals[0, 0] = 0.0
    for v in range(num_vars):
        networks[0, 0, v] = 0
    for s in range(1, num_sets):
        size = 0
        count = 0
        for v in range(num_vars):
            if s >> v & 1:
                without = s ^ (1 << v)
                num_inside[v] = _inside(orders[v], without, k, inside[v])
                if num_inside[v] and counts[without]:
                    size = _push(losses, pairs, size, -scores[v, inside[v, 0]] - totals[without, 0], v, 0, 0)
        while size and count < k:
            total = -losses[0]
            v, a, b = pairs[0, 0], pairs[0, 1], pairs[0, 2]
            size = _pop(losses, pairs, size)
            without = s ^ (1 << v)
            local_score = scores[v, inside[v, a]]
            if b + 1 < counts[without]:
                size = _push(losses, pairs, size, -local_score - totals[without, b + 1], v, a, b + 1)
            if b == 0 and a + 1 < num_inside[v]:
                size = _push(losses, pairs, size, -scores[v, inside[v, a + 1]] - totals[without, 0], v, a + 1, 0)
            copy(networks[without, b], network)
            network[v] = orders[v, inside[v, a]]
            if not _is_kept(network, total, count, totals[s], networks[s]):
                totals[s, count] = total
                copy(network, networks[s, count])
                count += 1
        counts[s] = count


@kernel
def _push(keys: F64, items: I64, size: int, key: float, v: int, a: int, b: int) -> int:
    """Add an entry to a binary heap with the least key on top; return the new size."""
    at = size
    while at and keys[(at - 1) // 2] > key:
        keys[at] = keys[(at - 1) // 2]
        copy(items[(at - 1) // 2], items[at])
        at = (at - 1) // 2
    keys[at] = key
    items[at, 0] = v
    items[at, 1] = a
    items[at, 2] = b
    return size + 1


@kernel
def _pop(keys: F64, items: I64, size: int) -> int:
    """Remove the top of the heap; return the new size."""
    size -= 1
    key = keys[size]
    at = 0
    while 2 * at + 1 < size:
        child = 2 * at + 1
        if child + 1 < size and keys[child + 1] < keys[child]:
            child += 1
        if keys[child] >= key:
            break
        keys[at] = keys[child]
        copy(items[child], items[at])
        at = child
    keys[at] = key
    copy(items[size], items[at])
    return size


@kernel
def _inside(order: I64, subset: int, k: int, inside: I64) -> int:
    """Fill in the positions of the first k sets of a list that lie in a subset; return their number."""
    count = 0
    for e in range(order.shape[0]):
        if order[e] < 0 or count == k:
            break
        if order[e] & ~subset == 0:
            inside[count] = e
            count += 1
    return count


@kernel
def _is_kept(network: I64, total: float, count: int, totals: F64, networks: I64) -> bool:
    """Return whether a network is in the list already; only networks of equal score are compared."""
    for t in range(count - 1, -1, -1):
        if totals[t] - total > TIE:
            return False
        is_equal = True
        for v in range(network.shape[0]):
            if networks[t, v] != network[v]:
                is_equal = False
                break
        if is_equal:
            return True
    return False


@kernel
def networks_within(
    orders: I64,  # [v, e] as in k_best_networks
    scores: F64,  # [v, e]
    totals: F64,  # [S] best total of every subset
    gap: float,
    max_steps: int,
    networks: I64,  # [limit, v] out
) -> tuple[int, bool]:
    """List all networks at most `gap` below the best; return their number, and whether these are all.

    Depth first: sinks are removed one by one, always the one of highest index, so that each network is listed once. A
    remaining variable of higher index is no sink: it may not be removed before one of its children was.
    """
    num_vars = orders.shape[0]
    limit = networks.shape[0]
    count = 0
    sink = np.zeros(num_vars + 1, np.int64)
    set_index = np.full(num_vars + 1, -1, np.int64)
    owing = np.zeros(num_vars + 1, np.int64)
    unplaced = np.zeros(num_vars + 1, np.int64)
    total = np.zeros(num_vars + 1)
    network = np.zeros(num_vars, np.int64)
    unplaced[0] = (1 << num_vars) - 1
    threshold = totals[unplaced[0]] - gap
    depth = 0
    steps = 0
    while depth >= 0:
        steps += 1
        if steps > max_steps:
            return count, False
        if unplaced[depth] == 0:
            if count == limit:
                return count, False
            copy(network, networks[count])
            count += 1
            depth -= 1
            continue
        v = sink[depth]
        if v == num_vars:
            depth -= 1
            continue
        bit = np.int64(1) << v
        without = unplaced[depth] & ~bit
        open_to = unplaced[depth] & bit and not owing[depth] & bit
        e = set_index[depth] + 1
        if not open_to or e == orders.shape[1] or orders[v, e] < 0:
            sink[depth] = v + 1
            set_index[depth] = -1
            continue
        set_index[depth] = e
        reached = total[depth] + scores[v, e]
        if reached + totals[without] < threshold:
            sink[depth] = v + 1  # later sets have no higher scores
            set_index[depth] = -1
            continue
        if orders[v, e] & ~without:
            continue
        network[v] = orders[v, e]
        above = without & ~((bit << 1) - 1)
        owing[depth + 1] = (owing[depth] | above) & ~orders[v, e]
        unplaced[depth + 1] = without
        total[depth + 1] = reached
        depth += 1
        sink[depth] = 0
        set_index[depth] = -1
    return count, True


@inline_kernel
def log_add(a: float, b: float) -> float:
    """Return log(exp(a) + exp(b)), also for minus infinity."""
    if a < b:
        a, b = b, a
    return a if b == -np.inf else a + math.log1p(math.exp(b - a))


@inline_kernel
def sum_inside(table: F64, sums: F64) -> None:
    """Fill in, [v, S], the log of the sum over parent sets inside each subset; table: [v, S] log weights."""
    num_vars, num_sets = table.shape
    for v in range(num_vars):
        for s in range(num_sets):
            sums[v, s] = table[v, s]
        for u in range(num_vars):
            for s in range(num_sets):
                if s >> u & 1:
                    sums[v, s] = log_add(sums[v, s], sums[v, s ^ (1 << u)])


@inline_kernel
def sum_beginnings(sums: F64, earlier: I64, before: F64) -> None:
    """Fill in, [S], the log of the sum over the orders of each set as a prefix.

    sums: [v, S] from `sum_inside`; earlier: [v] masks of the variables that come before v
    """
    num_vars, num_sets = sums.shape
    before[:] = -np.inf
    before[0] = 0.0
    for s in range(1, num_sets):
        for v in range(num_vars):
            if s >> v & 1 and earlier[v] & ~s == 0:
                before[s] = log_add(before[s], before[s ^ (1 << v)] + sums[v, s ^ (1 << v)])


@kernel
def parent_set_posteriors(table: F64, earlier: I64, posteriors: F64) -> float:
    """Fill in the probability of every parent set of every variable, [v, S]; return the log of the sum.

    Koivisto and Sood 2004 and Koivisto 2006: the sum is over pairs of a network and a topological order of it that puts
    the variables of earlier [v] before v. `before[s]` sums over prefixes with the variables of s, `after[s]` over their
    completions.
    """
    num_vars, num_sets = table.shape
    sums = np.empty(table.shape)
    sum_inside(table, sums)
    before, after = np.empty(num_sets), np.full(num_sets, -np.inf)
    sum_beginnings(sums, earlier, before)
    after[num_sets - 1] = 0.0
    for s in range(num_sets - 2, -1, -1):
        for v in range(num_vars):
            if not s >> v & 1 and earlier[v] & ~s == 0:
                after[s] = log_add(after[s], after[s | (1 << v)] + sums[v, s])
    evidence = float(before[num_sets - 1])
    for v in range(num_vars):
        around = sums[v]  # from here on: over the subsets that contain a parent set
        for s in range(num_sets):
            around[s] = -np.inf
            if not s >> v & 1 and earlier[v] & ~s == 0:
                around[s] = before[s] + after[s | (1 << v)]
        for u in range(num_vars):
            for s in range(num_sets):
                if not s >> u & 1:
                    around[s] = log_add(around[s], around[s | (1 << u)])
        for s in range(num_sets):
            posteriors[v, s] = np.exp(table[v, s] + around[s] - evidence)
    return evidence


@kernel
def sample_by_orders(table: F64, earlier: I64, uniforms: F64, dags: I64) -> None:
    """Sample DAGs [n, v] weighted by their number of topological orders that put `earlier` [v] first.

    uniforms: [n, 2 v] from [0, 1). An order is sampled from its last variable on, then the parents of each variable
    (N. Friedman and D. Koller, Being Bayesian about network structure, 2003, section 4; here orders are summed exactly
    instead of a Markov chain over them).
    """
    num_vars, num_sets = table.shape
    inside = np.empty(table.shape)
    before = np.empty(num_sets)
    sum_inside(table, inside)
    sum_beginnings(inside, earlier, before)
    for n in range(dags.shape[0]):
        placed = num_sets - 1
        for step in range(num_vars):
            total = 0.0
            last = -1
            for v in range(num_vars):
                if placed >> v & 1 and earlier[v] & ~placed == 0:
                    without = placed ^ (1 << v)
                    weight = math.exp(before[without] + inside[v, without] - before[placed])
                    if weight > 0.0:
                        last = v
                    total += weight
                    if total > uniforms[n, 2 * step]:
                        break
            placed ^= 1 << last
            total = 0.0
            parents = placed
            while True:
                if table[last, parents] > -np.inf:
                    weight = math.exp(table[last, parents] - inside[last, placed])
                    if weight > 0.0:
                        dags[n, last] = parents
                    total += weight
                    if total > uniforms[n, 2 * step + 1]:
                        break
                if parents == 0:
                    break
                parents = (parents - 1) & placed


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
    forward: F64,  # [L] out: log of the sum over networks on `placed` with this last layer
    backward: F64,  # [L] out: log of the sum over their completions
) -> float:
    """Return the log of the sum over all DAGs of the product of their weights.

    A DAG is split into layers: the roots, then repeatedly the variables with a parent in the last layer and all parents
    placed.
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
    """Fill in the log weight of every set of unplaced variables as the next layer."""
    num_vars = inside.shape[0]
    fresh = (1 << num_vars) - 1 ^ placed
    without = placed ^ last
    products[0] = 0.0
    layer = -fresh & fresh  # subsets of `fresh` in ascending order
    while layer:
        v = lowest(layer)
        without_lowest = layer & (layer - 1)
        if without_lowest:
            products[layer] = products[without_lowest] + products[layer ^ without_lowest]
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
    """Sample DAGs [n, v] with probabilities proportional to their weights; uniforms: [n, (v + 1)**2] from [0, 1)."""
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
