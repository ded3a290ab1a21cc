"""Plain counting for checking certificates: DAGs, and functions of a few variables by least formula size.

Shares nothing with the counts and the catalogues of the solvers. Lists of arguments of an operator are identified if
their total size is the same, and their conjunction, disjunction or parity; for `iff` conjunction and disjunction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from itertools import chain, combinations
from math import comb
from types import MappingProxyType
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from calibrant.dsl.errors import CalibrantError
from calibrant.dsl.formulas.table import full_mask, projection

# --- DAGs counted plainly, for checking certificates: a product over groups, and a recurrence over sinks within each
Names: TypeAlias = frozenset[str]
MAX_GROUP: Final = 18  # variables of a group: 3 ** 18 steps take a quarter of an hour, tables of all sets 200 MB


def count_functions(
    rows: Iterable[tuple[tuple[int, ...], int]],
    allowed: Sequence[str],
    max_parents: int,
    report_progress: Callable[[int, int], None] = lambda done, total: None,
) -> dict[Names, int]:
    """Count, by parent set, the functions of exactly these parents that agree with every row.

    rows: values of the allowed parents, and of the variable; report_progress: called with (sets done, all sets)
    """
    distinct_rows = list(dict.fromkeys(rows))
    over: dict[Names, int] = {}  # functions of a set or of a part of it
    total = sum(comb(len(allowed), size) for size in range(max_parents + 1))
    for size in range(min(max_parents, len(allowed)) + 1):
        for chosen in combinations(allowed, size):
            report_progress(len(over), total)
            observed, fits = observe(distinct_rows, [allowed.index(u) for u in chosen])
            over[frozenset(chosen)] = 2 ** (2**size - len(observed)) if fits else 0
    counts = {
        parents: sum((-1) ** (len(parents) - len(subset)) * over[subset] for subset in _subsets(parents))
        for parents in over
    }
    return {parents: count for parents, count in counts.items() if count}


def observe(
    rows: Sequence[tuple[tuple[int, ...], int]], positions: Sequence[int]
) -> tuple[dict[tuple[int, ...], int], bool]:
    """Return the value observed with each combination at these positions, and whether they determine it."""
    observed: dict[tuple[int, ...], int] = {}
    for row, value in rows:
        if observed.setdefault(tuple([row[position] for position in positions]), value) != value:
            return observed, False
    return observed, True


def _subsets(parents: Names) -> Iterable[Names]:
    names = sorted(parents)
    return map(frozenset, chain.from_iterable(combinations(names, size) for size in range(len(names) + 1)))


class LargeGroupError(CalibrantError):
    """A group of more than MAX_GROUP variables: it is not counted."""


def count_dags(
    functions: Mapping[str, Mapping[Names, int]],
    roots: Sequence[str],
    variables: Sequence[str],
    report_progress: Callable[[int, int], None] = lambda done, total: None,
) -> int:
    """Sum over acyclic parent-set assignments of the product of function counts.

    A cycle lies within a strongly connected component (a group), so the sum is a product over groups; parents outside
    of a group do not matter for its cycles. `LargeGroupError` for a group of more than MAX_GROUP variables.

    functions: variable -> parent set -> number of functions; report_progress: called with (sets done, all sets)
    """
    endogenous = [v for v in variables if v not in roots]
    product = 1
    for group in _groups(functions, endogenous):
        outside = frozenset(variables).difference(group)
        product *= _group_dags(functions, group, outside, report_progress)
        if not product:
            break
    return product


def _groups(functions: Mapping[str, Mapping[Names, int]], endogenous: Sequence[str]) -> list[Names]:
    """Return the strongly connected components of the possible edges between these variables."""
    parents = {v: {u for parent_set in functions[v] for u in parent_set if u in endogenous} for v in endogenous}
    reached = {v: _ancestors(v, parents) | {v} for v in endogenous}
    return list(dict.fromkeys(frozenset(u for u in reached[v] if v in reached[u]) for v in endogenous))


def _ancestors(variable: str, parents: Mapping[str, set[str]]) -> set[str]:
    ancestors: set[str] = set()
    waiting = [variable]
    while waiting:
        new = parents[waiting.pop()] - ancestors
        ancestors |= new
        waiting += new
    return ancestors


def _group_dags(
    functions: Mapping[str, Mapping[Names, int]],
    group: Names,
    outside: Names,
    report_progress: Callable[[int, int], None],
) -> int:
    """Count by the recurrence of Robinson (1973) over sinks, weighted, on sets as integers.

    An acyclic assignment is a set of sinks, with parents outside the group or in the remainder, and an acyclic
    assignment of the remainder. One with several sinks arises in several ways; inclusion and exclusion counts it once.
    """
    names = sorted(group)
    if len(names) > MAX_GROUP:
        raise LargeGroupError(f"{len(names)} variables can reach each other; up to {MAX_GROUP} are counted")
    subsets = 1 << len(names)
    options = [_count_options(functions[name], names, outside) for name in names]
    ways = [1] + [0] * (subsets - 1)  # weighted acyclic assignments on each set
    for remainder in range(subsets - 1):
        report_progress(remainder, subsets)
        sets, weights = [remainder], [-ways[remainder]]  # the remainder with sinks added; each sink turns the sign
        for index, option in enumerate(options):
            if not remainder >> index & 1 and option[remainder]:
                sets += [subset | 1 << index for subset in sets]
                weights += [-weight * option[remainder] for weight in weights]
        for subset, weight in zip(sets[1:], weights[1:], strict=True):
            ways[subset] += weight
    return ways[-1]


def _count_options(counts: Mapping[Names, int], names: Sequence[str], outside: Names) -> list[int]:
    """Count, for each subset of the names, the functions with parents there or outside: a zeta transform."""
    sums = [0] * (1 << len(names))
    for parents, count in counts.items():
        if parents <= outside.union(names):
            sums[sum(1 << index for index, name in enumerate(names) if name in parents)] += count
    for index in range(len(names)):
        bit = 1 << index
        for start in range(0, len(sums), 2 * bit):
            low, high = sums[start : start + bit], sums[start + bit : start + 2 * bit]
            sums[start + bit : start + 2 * bit] = [a + b for a, b in zip(low, high, strict=True)]
    return sums


# --- Functions of a few variables by least formula size, for checking certificates: lists of arguments, layer by layer
MAX_CAP = {1: 15, 2: 15, 3: 15, 4: 12, 5: 9}  # num. of variables -> largest formula size that takes seconds to list
OPERATORS = frozenset({"not", "and", "or", "xor", "iff"})

Values = npt.NDArray[np.uint64]
_FOLDS = {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}
_HALF = np.uint64(32)  # tables of five variables have 32 rows, so conjunction and disjunction of `iff` fit one word


def least_sizes(num_vars: int, max_size: int, operators: Iterable[str]) -> Mapping[int, int]:
    """Return the least formula size of every function with a formula of at most `max_size` nodes, keyed by its bits."""
    if num_vars not in MAX_CAP or max_size > MAX_CAP[num_vars]:
        raise ValueError(f"formulas of {max_size} nodes over {num_vars} variables are not recounted")
    return _least_sizes(num_vars, max_size, frozenset(operators) & OPERATORS)


@cache
def _least_sizes(num_vars: int, max_size: int, operators: frozenset[str]) -> Mapping[int, int]:
    full = np.uint64(full_mask(num_vars))
    sizes: dict[int, int] = {}
    levels: list[Values] = [np.zeros(0, np.uint64)]
    lists: dict[str, list[Values]] = {name: [np.zeros(0, np.uint64)] for name in operators - {"not"}}
    for size in range(1, max_size + 1):
        batches = [_atoms(num_vars)] if size == 1 else []
        batches += [levels[size - 1] ^ full] if "not" in operators else []
        folds = {name: _longer(name, lists[name], levels, size - 1) for name in lists} if size > 1 else {}
        batches += [_value(name, operand_lists, full) for name, operand_lists in folds.items()]
        values = np.unique(np.concatenate(batches)) if batches else np.zeros(0, np.uint64)
        new = values[[int(bits) not in sizes for bits in values]] if len(values) else values
        sizes.update(dict.fromkeys(map(int, new), size))
        levels.append(new)
        for name, operand_lists in lists.items():  # of this total size: two or more arguments, and single ones
            longer = _longer(name, operand_lists, levels, size)
            operand_lists.append(np.unique(np.concatenate([longer, _single(name, new)])))
    return MappingProxyType(sizes)


def _atoms(num_vars: int) -> Values:
    return np.array([projection(i, num_vars).bits for i in range(num_vars)], np.uint64)


def _single(name: str, values: Values) -> Values:
    return values << _HALF | values if name == "iff" else values


def _longer(name: str, lists: list[Values], levels: list[Values], total: int) -> Values:
    """Return lists of two or more arguments whose sizes add up to `total`."""
    parts = [np.zeros(0, np.uint64)]
    for last in range(1, total):
        if total - last < len(lists) and last < len(levels):
            prefixes, arguments = np.meshgrid(lists[total - last], _single(name, levels[last]), indexing="ij")
            if name == "iff":
                conjunction = (prefixes & arguments) & ~(np.uint64(2**32 - 1))
                parts.append(np.unique(conjunction | (prefixes | arguments) & np.uint64(2**32 - 1)))
            else:
                parts.append(np.unique(_FOLDS[name](prefixes, arguments)))
    return np.unique(np.concatenate(parts))


def _value(name: str, lists: Values, full: np.uint64) -> Values:
    """Return the values of an operator over argument lists: `iff` is 1 where all arguments are 1 or all are 0."""
    return ((lists >> _HALF) | ~lists & np.uint64(2**32 - 1)) & full if name == "iff" else lists


@cache
def essential_functions(num_vars: int, max_size: int, operators: frozenset[str]) -> Values:
    """Return the bits of functions that depend on all variables and have a formula of at most `max_size` nodes."""
    tables = np.array(sorted(least_sizes(num_vars, max_size, operators)), np.uint64)
    for i in range(num_vars):
        low = np.uint64(full_mask(num_vars) & ~projection(i, num_vars).bits)
        tables = tables[((tables >> np.uint64(1 << i)) ^ tables) & low != 0]
    return tables
