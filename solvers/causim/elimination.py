"""Variable elimination over the nodes of a model: sums of products of one factor per equation.

The factor of node i is phi_i(pa_i, v_i), a count, a weight or the existence of the noise values u with f_i(pa_i, u) =
v_i. Noise never enters the graph, so work is exponential in the treewidth alone. Order: min-fill (R. Dechter, Bucket
elimination, 1999), the first of equals.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from math import prod
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from calibrant.dsl.causim.model import Local, System
from calibrant.solvers.budget import Budget, BudgetSpent

Table: TypeAlias = NDArray[Any]
MAX_ENTRIES = 20_000_000  # of the largest factor
NODE_COST = 5_000  # of a node that is eliminated, however small its tables: 40 us
LONG_COST = 30  # of an entry that is beyond 64 bits
_SAFE = 1 << 62


class Factor(NamedTuple):
    """A table over nodes; axis k of `values` is node `scope[k]`."""

    scope: tuple[int, ...]
    values: Table


def equation_factor(local: Local, node: int, weights: Sequence[int], positions: Sequence[int]) -> Factor:
    """phi(pa, v): the total weight of the listed noise positions that give v from pa."""
    size = len(local.domain)
    if prod(local.table.shape[:-1]) * size > MAX_ENTRIES:
        raise BudgetSpent(f"a table of more than {MAX_ENTRIES} entries")
    kind = np.int64 if sum(weights) < _SAFE else object
    values = np.zeros((*local.table.shape[:-1], size), dtype=kind)
    domain = np.arange(size)
    for position, weight in zip(positions, weights, strict=True):
        values += (local.table[..., position, None] == domain) * weight
    return Factor((*local.parents, node), values)


def restricted(factor: Factor, evidence: Mapping[int, int]) -> Factor:
    """The factor with some nodes at known positions."""
    if not any(node in evidence for node in factor.scope):
        return factor
    index = tuple(evidence.get(node, slice(None)) for node in factor.scope)
    return Factor(tuple(node for node in factor.scope if node not in evidence), factor.values[index])


def total(factors: Sequence[Factor], bound: int, work: Budget | None = None) -> int:
    """The sum of the product of all factors over all nodes; exact for values up to `bound`.

    work: charged with the entries of each product, and NODE_COST more
    `BudgetSpent` where a table would have more than MAX_ENTRIES entries, and without work left.
    """
    return _eliminated(factors, bound, lambda product: product.sum(axis=-1), work)


def maximum(factors: Sequence[Factor], bound: int) -> int:
    """The greatest product of all factors over all assignments of the nodes; otherwise as `total`."""
    return _eliminated(factors, bound, lambda product: product.max(axis=-1))


def _eliminated(
    factors: Sequence[Factor], bound: int, reduce: Callable[[Table], Table], work: Budget | None = None
) -> int:
    if bound >= _SAFE:
        factors = [Factor(factor.scope, factor.values.astype(object)) for factor in factors]
    order = elimination_order(tuple(factor.scope for factor in factors if factor.scope))
    left = list(factors)
    for node in order:
        touched = [factor for factor in left if node in factor.scope]
        left = [factor for factor in left if node not in factor.scope]
        left.append(_without(touched, node, reduce, work))
    result = 1
    for factor in left:
        result *= int(factor.values)
    return result


def _without(factors: Sequence[Factor], node: int, reduce: Callable[[Table], Table], work: Budget | None) -> Factor:
    scope = tuple(sorted({other for factor in factors for other in factor.scope} - {node}))
    full = (*scope, node)
    place = {other: axis for axis, other in enumerate(full)}
    sizes: dict[int, int] = {}
    for factor in factors:
        sizes.update(zip(factor.scope, factor.values.shape, strict=True))
    entries = prod(sizes[other] for other in full)
    if entries > MAX_ENTRIES:
        raise BudgetSpent(f"a table of more than {MAX_ENTRIES} entries")
    if work is not None:
        is_long = any(factor.values.dtype == object for factor in factors)
        work.spend(entries * len(factors) * (LONG_COST if is_long else 1) + NODE_COST)
    product: Table | None = None
    for factor in sorted(factors, key=lambda factor: factor.values.size):
        axes = sorted(range(len(factor.scope)), key=lambda axis: place[factor.scope[axis]])
        shape = [1] * len(full)
        for other in factor.scope:
            shape[place[other]] = sizes[other]
        aligned = factor.values.transpose(axes).reshape(shape)
        product = aligned if product is None else product * aligned
    assert product is not None
    return Factor(scope, np.asarray(reduce(product)))


@lru_cache(maxsize=4096)
def elimination_order(scopes: tuple[tuple[int, ...], ...]) -> tuple[int, ...]:
    """All nodes of the scopes in min-fill order."""
    near: dict[int, set[int]] = {}
    for scope in scopes:
        for node in scope:
            near.setdefault(node, set()).update(scope)
    for node, neighbours in near.items():
        neighbours.discard(node)
    order = []
    while near:
        best = min(near, key=lambda node: (_fill(near, node), len(near[node]), node))
        around = near.pop(best)
        for node in around:
            near[node] |= around
            near[node] -= {best, node}
        order.append(best)
    return tuple(order)


def _fill(near: Mapping[int, set[int]], node: int) -> int:
    around = near[node]
    return sum(len(around) - 1 - len(near[other] & around) for other in around)


def treewidth(system: System) -> int:
    """The width of the min-fill order, an upper bound of the treewidth of the moral graph."""
    scopes = [{*local.parents, i} for i, local in enumerate(system)]
    width = 0
    for node in elimination_order(tuple(tuple(sorted(scope)) for scope in scopes)):
        touched = [scope for scope in scopes if node in scope]
        scopes = [scope for scope in scopes if node not in scope]
        merged = set().union(*touched) - {node}
        width = max(width, len(merged))
        scopes.append(merged)
    return width
