"""Functions of a few variables by least formula size, for checking certificates: lists of arguments, layer by layer.

Shares nothing with the catalogues of the solvers. A list of arguments is known by the sum of its sizes and by what
matters of its values: their conjunction, disjunction or parity, or for `iff` conjunction and disjunction together.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from calibrant.dsl.formulas.table import full_mask, projection

MAX_CAP = {1: 15, 2: 15, 3: 15, 4: 12, 5: 9}  # by number of variables: seconds; beyond that layers are too large
OPERATORS = frozenset({"not", "and", "or", "xor", "iff"})

Values = npt.NDArray[np.uint64]
_FOLDS = {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}
_HALF = np.uint64(32)  # tables of five variables have 32 rows, so a conjunction and a disjunction fit one word


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
        for (
            name,
            operand_lists,
        ) in lists.items():  # lists of this total: longer ones made of this total, and single arguments
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
    listed = np.array(sorted(least_sizes(num_vars, max_size, operators)), np.uint64)
    for i in range(num_vars):
        low = np.uint64(full_mask(num_vars) & ~projection(i, num_vars).bits)
        listed = listed[((listed >> np.uint64(1 << i)) ^ listed) & low != 0]
    return listed
