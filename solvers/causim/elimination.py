"""Variable elimination over the nodes of a model.

The factor of node i is phi_i(pa_i, v_i): the number, total weight or existence of noise values u with
f_i(pa_i, u) = v_i. Noise is summed out within each factor and never enters the graph, so work is exponential only in
the width of the elimination order of the moral graph. The order is min-fill (R. Dechter, Bucket elimination, 1999);
ties are broken by degree, then by number of the node.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from math import prod
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from calibrant.dsl.causim.model import Local, System
from calibrant.solvers.outcome import Budget, BudgetSpent

# --- Variable elimination over the nodes of a model: sums of products of one factor per equation ----------------------
Table: TypeAlias = NDArray[Any]
MAX_ENTRIES = 20_000_000  # entries of the largest table
NODE_COST = 5_000  # budget units for each eliminated node, added to those for its entries; as long as 40 us
LONG_COST = 30  # budget units of a table entry of Python integers; an entry of 64 bits costs 1
_SAFE = 1 << 62  # values below are computed in 64 bits


class Factor(NamedTuple):
    """A table over nodes; axis k of `values` is node `scope[k]`."""

    scope: tuple[int, ...]
    values: Table


def equation_factor(local: Local, node: int, weights: Sequence[int], positions: Sequence[int]) -> Factor:
    """Return phi(pa, v): the total weight of those noise positions that give v from pa.

    positions, weights: noise values that count, by position, and the weight of each
    Raise `BudgetSpent` for a table of more than MAX_ENTRIES entries.
    """
    size = len(local.domain)
    if prod(local.table.shape[:-1]) * size > MAX_ENTRIES:
        raise BudgetSpent(f"a table of more than {MAX_ENTRIES} entries")
    # an entry is at most the sum of the weights; below 2**62 that fits 63 bits with one to spare
    kind = np.int64 if sum(weights) < _SAFE else object
    values = np.zeros((*local.table.shape[:-1], size), dtype=kind)
    domain = np.arange(size)
    for position, weight in zip(positions, weights, strict=True):
        values += (local.table[..., position, None] == domain) * weight
    return Factor((*local.parents, node), values)


def restrict(factor: Factor, evidence: Mapping[int, int]) -> Factor:
    """Return a factor restricted to known values of some nodes.

    evidence: node -> position of its value
    """
    if not any(node in evidence for node in factor.scope):
        return factor
    index = tuple(evidence.get(node, slice(None)) for node in factor.scope)
    return Factor(tuple(node for node in factor.scope if node not in evidence), factor.values[index])


def sum_of_products(factors: Sequence[Factor], bound: int, work: Budget | None = None) -> int:
    """Return the exact sum, over all assignments of the nodes, of the product of all factors.

    bound: an upper bound of the result and of all entries on the way, which decides whether 64 bits are enough
    work: budget that is charged NODE_COST for each node, and the entries of each product
    Raise `BudgetSpent` if a table would have more than MAX_ENTRIES entries, or the budget ends.
    """
    return _eliminate(factors, bound, lambda product: product.sum(axis=-1), work)


def max_of_products(factors: Sequence[Factor], bound: int) -> int:
    """Return the greatest product of all factors over all assignments of the nodes; see `sum_of_products`."""
    return _eliminate(factors, bound, lambda product: product.max(axis=-1))


def _eliminate(
    factors: Sequence[Factor], bound: int, reduce: Callable[[Table], Table], work: Budget | None = None
) -> int:
    # no entry on the way is greater than `bound`, so below 2**62 all are exact in 64 bits
    if bound >= _SAFE:
        factors = [Factor(factor.scope, factor.values.astype(object)) for factor in factors]
    order = elimination_order(tuple(factor.scope for factor in factors if factor.scope))
    remaining = list(factors)
    for node in order:
        joined = [factor for factor in remaining if node in factor.scope]
        remaining = [factor for factor in remaining if node not in factor.scope]
        remaining.append(_eliminate_node(joined, node, reduce, work))
    result = 1
    for factor in remaining:
        result *= int(factor.values)
    return result


def _eliminate_node(
    factors: Sequence[Factor], node: int, reduce: Callable[[Table], Table], work: Budget | None
) -> Factor:
    """Return the product of the factors, reduced over a node, which is in the scope of each."""
    scope = tuple(sorted({member for factor in factors for member in factor.scope} - {node}))
    full = (*scope, node)
    axis_of = {member: axis for axis, member in enumerate(full)}
    sizes: dict[int, int] = {}
    for factor in factors:
        sizes.update(zip(factor.scope, factor.values.shape, strict=True))
    entries = prod(sizes[member] for member in full)
    if entries > MAX_ENTRIES:
        raise BudgetSpent(f"a table of more than {MAX_ENTRIES} entries")
    if work is not None:
        is_long = any(factor.values.dtype == object for factor in factors)
        work.spend(entries * len(factors) * (LONG_COST if is_long else 1) + NODE_COST)
    product: Table | None = None
    # small factors first: intermediate products stay small
    for factor in sorted(factors, key=lambda factor: factor.values.size):
        axes = sorted(range(len(factor.scope)), key=lambda axis: axis_of[factor.scope[axis]])
        shape = [1] * len(full)
        for member in factor.scope:
            shape[axis_of[member]] = sizes[member]
        aligned = factor.values.transpose(axes).reshape(shape)
        product = aligned if product is None else product * aligned
    assert product is not None
    return Factor(scope, np.asarray(reduce(product)))


@lru_cache(maxsize=4096)
def elimination_order(scopes: tuple[tuple[int, ...], ...]) -> tuple[int, ...]:
    """Return all nodes of the scopes in min-fill order."""
    graph: dict[int, set[int]] = {}
    for scope in scopes:
        for node in scope:
            graph.setdefault(node, set()).update(scope)
    for node, neighbours in graph.items():
        neighbours.discard(node)
    order = []
    while graph:
        best = min(graph, key=lambda node: (_num_fill_edges(graph, node), len(graph[node]), node))
        neighbours = graph.pop(best)
        for node in neighbours:
            graph[node] |= neighbours
            graph[node] -= {best, node}
        order.append(best)
    return tuple(order)


def _num_fill_edges(graph: Mapping[int, set[int]], node: int) -> int:
    """Return twice the number of pairs of neighbours of a node that have no edge."""
    neighbours = graph[node]
    return sum(len(neighbours) - 1 - len(graph[neighbour] & neighbours) for neighbour in neighbours)


def treewidth(system: System) -> int:
    """Return the width of the min-fill order, an upper bound of the treewidth of the moral graph."""
    scopes = [{*local.parents, i} for i, local in enumerate(system)]
    width = 0
    for node in elimination_order(tuple(tuple(sorted(scope)) for scope in scopes)):
        touched = [scope for scope in scopes if node in scope]
        scopes = [scope for scope in scopes if node not in scope]
        merged = set().union(*touched) - {node}
        width = max(width, len(merged))
        # the factor that eliminating the node leaves behind
        scopes.append(merged)
    return width
