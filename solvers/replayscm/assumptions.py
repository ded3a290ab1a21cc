"""Assumptions of a task in the search and the count of SCMs: admitted parent sets, functions and combinations.

An arc U -> V of an assumption means that the mechanism of V depends on U. Arcs, tiers and numbers of parents are
restrictions of the parent sets of one variable, `increasing` and `decreasing` of its functions. Relations are formulas
over arcs into several variables; they are counted case by case (`relation_cases`).

Monotone functions are counted without listing them all. Each assignment of the variables without a direction selects a
cube of the table; the cubes are independent, and the functions that are monotone on a cube are the elements of a free
distributive lattice (R. Dedekind, 1897): 2, 3, 6, 20, 168, 7581 for 0 to 5 variables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from itertools import product
from math import prod
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from calibrant.dsl.formulas.table import full_mask, projection
from calibrant.dsl.knowledge import Arc, ArcFormula, CheckedKnowledge
from calibrant.solvers.acyclic.least import Mask, members_of
from calibrant.solvers.formulas.catalogue import COMPLETE, EssentialFunctions
from calibrant.solvers.outcome import Budget, BudgetSpent

MAX_DIRECTED = 5  # parents of one set with a direction: 7,581 functions are monotone in all of them
MAX_CASES = 20_000  # cases of relations for one root set: seconds

U64 = npt.NDArray[np.uint64]
I64 = npt.NDArray[np.int64]


def admitted_sets(masks: I64, checked: CheckedKnowledge, variable: int) -> npt.NDArray[np.bool_]:
    """Return which parent sets of a variable the arcs and numbers of parents admit; [e].

    A parent that is assumed both increasing and decreasing is excluded: the mechanism would not depend on it.
    """
    allowed = checked.allowed[variable] & ~(checked.rising[variable] & checked.falling[variable])
    required, limit = np.int64(checked.required[variable]), checked.limits[variable]
    admitted: npt.NDArray[np.bool_] = (
        (masks & ~np.int64(allowed) == 0) & (masks & required == required) & (np.bitwise_count(masks) <= limit)
    )
    return admitted


def is_directed(checked: CheckedKnowledge, variable: int) -> bool:
    """Return whether a mechanism is assumed to be monotone in some variable."""
    return bool(checked.rising[variable] | checked.falling[variable])


def monotone_mask(bits: U64, mask: Mask, rising: Mask, falling: Mask) -> npt.NDArray[np.bool_]:
    """Return which functions over a parent set are monotone in the given directions; [f]. bits: [f] truth tables."""
    parents = members_of(mask)
    is_monotone = np.ones(len(bits), np.bool_)
    for i, parent in enumerate(parents):
        low_rows = np.uint64(full_mask(len(parents)) & ~projection(i, len(parents)).bits)
        low, high = bits & low_rows, bits >> np.uint64(1 << i) & low_rows
        if rising >> parent & 1:
            is_monotone &= low & ~high == 0
        if falling >> parent & 1:
            is_monotone &= high & ~low == 0
    return is_monotone


def count_monotone(masks: I64, cares: U64, values: U64, rising: Mask, falling: Mask) -> U64:
    """Count the functions that depend on all of a parent set, agree with its table and have the directions; [e].

    masks: [e] parent sets that determine the variable, with all their subsets that do; cares, values: [e] their tables

    `BudgetSpent` for more than MAX_DIRECTED parents with a direction.
    """
    over = {
        mask: _count_over(mask, care, value, rising, falling)
        for mask, care, value in zip(masks.tolist(), cares.tolist(), values.tolist(), strict=True)
    }
    fixed = rising & falling  # no function that depends on such a parent has both directions
    exact = [
        0
        if mask & fixed
        else sum((-1) ** (mask ^ subset).bit_count() * over.get(subset, 0) for subset in _subsets(mask))
        for mask in masks.tolist()
    ]
    return np.array(exact, np.uint64)


def _subsets(mask: Mask) -> Iterator[Mask]:
    subset = mask
    while subset:
        yield subset
        subset = subset - 1 & mask
    yield 0


def _count_over(mask: Mask, care: int, value: int, rising: Mask, falling: Mask) -> int:
    """Count the agreeing functions over a parent set with the directions, those that ignore a parent included."""
    parents = members_of(mask)
    directed = [i for i, parent in enumerate(parents) if (rising ^ falling) >> parent & 1]
    if len(directed) > MAX_DIRECTED:
        raise BudgetSpent(f"a mechanism that is monotone in {len(directed)} parents; {MAX_DIRECTED} are counted")
    flip = sum(1 << i for i in directed if falling >> parents[i] & 1)
    free = [i for i in range(len(parents)) if i not in directed]
    lattice = monotone_functions(len(directed))
    factors = []
    for bits in product((0, 1), repeat=len(free)):
        base = sum(bit << i for i, bit in zip(free, bits, strict=True))
        rows = [
            (base | sum((corner >> j & 1) << i for j, i in enumerate(directed))) ^ flip
            for corner in range(1 << len(directed))
        ]
        cube_care = np.uint64(sum((care >> row & 1) << corner for corner, row in enumerate(rows)))
        cube_value = np.uint64(sum((value >> row & 1) << corner for corner, row in enumerate(rows)))
        factors.append(int(((lattice ^ cube_value) & cube_care == 0).sum()))
    return prod(factors)


@cache
def monotone_functions(num_vars: int) -> U64:
    """Return the tables of all increasing functions of up to MAX_DIRECTED variables, constants included."""
    if num_vars == 0:
        return np.array([0, 1], np.uint64)
    smaller = monotone_functions(num_vars - 1)
    low, high = np.meshgrid(smaller, smaller)
    shift = np.uint64(1 << num_vars - 1)
    tables: U64 = (low | high << shift)[low & ~high == 0]
    return tables


class LeastFunction(NamedTuple):
    """Least function that depends on all of a parent set, agrees with its table and has the directions.

    care, value: partial table; bits: truth table of the function, None if no listed function agrees
    at_least: size of the function; if `bits` is None, a lower bound of it
    """

    mask: Mask
    care: int
    value: int
    bits: int | None
    at_least: int


def least_functions(
    masks: I64, cares: U64, values: U64, functions: EssentialFunctions, directions: tuple[Mask, Mask], budget: Budget
) -> Iterator[LeastFunction]:
    """Yield a least function of each non-empty parent set that may have one; a listed function costs one unit.

    masks, cares, values: [e] parent sets and tables; directions: masks of the parents in which functions rise, and fall

    `BudgetSpent` if the budget runs out.
    """
    for mask, care, value in zip(masks.tolist(), cares.tolist(), values.tolist(), strict=True):
        num_vars = mask.bit_count()
        if not num_vars:
            continue
        span = slice(functions.starts[num_vars], functions.ends[num_vars])
        bits, sizes = functions.bits[span], functions.sizes[span]
        budget.spend(len(bits))
        agreeing = np.flatnonzero((bits ^ np.uint64(value)) & np.uint64(care) == 0)
        agreeing = agreeing[monotone_mask(bits[agreeing], mask, *directions)]
        complete_size = int(functions.complete_to[num_vars])
        if len(agreeing):  # by size, then by table
            yield LeastFunction(mask, care, value, int(bits[agreeing[0]]), int(sizes[agreeing[0]]))
        elif complete_size != COMPLETE:
            yield LeastFunction(mask, care, value, None, complete_size + 1)


def relation_cases(
    relations: Sequence[ArcFormula], index: Mapping[str, int], options: Mapping[int, Mapping[Mask, int]]
) -> Iterator[dict[int, dict[Mask, int]]]:
    """Split the combinations of parent sets that satisfy the relations into disjoint cases; yield the sets of each.

    Within a case, every variable chooses among its sets independently of the others.

    options: variable with a mechanism -> parent set -> number of functions; other variables have no parents

    `BudgetSpent` for more than MAX_CASES cases.
    """
    arcs = frozenset[Arc]().union(*(relation.arcs for relation in relations))
    relevant = {v: sum({1 << index[parent] for parent, child in arcs if index[child] == v}) for v in options}
    # group each variable's sets by the parents that relations mention: the others do not matter
    groups = {v: _by_pattern(options[v], mask) for v, mask in relevant.items() if mask}
    if not all(groups.values()):
        return
    # the patterns of all grouped variables but the largest make a case; the last one's sets are filtered in each
    grouped = sorted(groups, key=lambda v: len(groups[v]))
    num_cases = prod(len(groups[v]) for v in grouped[:-1])
    if num_cases > MAX_CASES:
        raise BudgetSpent(f"{num_cases:,} combinations of arcs in relations of the assumption; {MAX_CASES:,} are tried")
    last = grouped[-1] if grouped else None
    for patterns in product(*(groups[v] for v in grouped[:-1])):
        parents = dict(zip(grouped[:-1], patterns, strict=True))
        case = {v: groups[v][pattern] for v, pattern in parents.items()}
        if last is not None:
            case[last] = {
                mask: count
                for pattern, sets in groups[last].items()
                if _all_hold(relations, index, parents | {last: pattern})
                for mask, count in sets.items()
            }
            if case[last]:
                yield case
        elif _all_hold(relations, index, parents):
            yield case


def _by_pattern(options: Mapping[Mask, int], relevant: Mask) -> dict[Mask, dict[Mask, int]]:
    groups: dict[Mask, dict[Mask, int]] = {}
    for mask, count in options.items():
        groups.setdefault(mask & relevant, {})[mask] = count
    return groups


def _all_hold(relations: Sequence[ArcFormula], index: Mapping[str, int], parents: Mapping[int, Mask]) -> bool:
    return all(relation.holds(arc_test(index, parents)) for relation in relations)


def arc_test(index: Mapping[str, int], parents: Mapping[int, Mask]) -> Callable[[Arc], bool]:
    """Return a test whether an arc is in a graph; parents: variable -> its parents, roots may be left out."""
    return lambda arc: bool(parents.get(index[arc[1]], 0) >> index[arc[0]] & 1)
