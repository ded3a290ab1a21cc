"""Functions that depend on all of their variables, by size: the candidates for one parent set.

A least formula over a set of variables whose function ignores one of them is as small over a subset, so a search over
all subsets only needs the functions that depend on every variable. The constants are listed with one variable, because
without literals a formula for them has to mention a variable.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

from calibrant.dsl.formulas.formula import STANDARD_OPERATORS
from calibrant.dsl.formulas.table import full_mask, num_rows, projection
from calibrant.dsl.formulas.text import Grammar
from calibrant.solvers.formulas.catalogue import catalogue

COMPLETE = 255  # in `complete_to`: every expressible function of that many variables is listed


@dataclass(frozen=True, slots=True, eq=False)
class EssentialFunctions:
    """Tables of 1 to k variables that depend on all of them; by number of variables, then size, then bits.

    bits: [f] uint64 tables; sizes: [f] least sizes
    starts: [k + 2] where the functions of j variables begin
    ends: [k + 1] past the last function of j variables that depends on all of them: leaves the constants out
    complete_to: [k + 1] every such function of j variables up to this size is listed
    """

    bits: npt.NDArray[np.uint64]
    sizes: npt.NDArray[np.uint8]
    starts: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int64]
    complete_to: npt.NDArray[np.int64]


def constant_sizes(functions: EssentialFunctions, grammar: Grammar) -> dict[int, int]:
    """Return the least formula size of each constant that has one: a literal, or a formula of some variable."""
    if grammar.allow_constants:
        return {0: 1, 1: 1}
    constants = slice(functions.ends[1], functions.starts[2])
    listed = zip(functions.bits[constants].tolist(), functions.sizes[constants].tolist(), strict=True)
    return {bits & 1: size for bits, size in listed}


def synthesis_operators(grammar: Grammar) -> tuple[str, ...]:
    """Return the allowed operators that formulas are built from: the standard ones, without `if`."""
    return tuple(name for name in grammar.operators if name in STANDARD_OPERATORS)


@cache
def essential_functions(max_vars: int, operators: tuple[str, ...]) -> EssentialFunctions:
    """Return the list for up to `max_vars` variables; built once per process."""
    bits, sizes, starts, ends, complete_to = [], [], [0, 0], [0], [COMPLETE]
    for num_vars in range(1, max_vars + 1):
        functions = catalogue(num_vars, operators)
        is_essential = _depends_on_all(functions.words, num_vars)
        ends.append(starts[-1] + int(is_essential.sum()))
        order = np.flatnonzero(is_essential)
        # the constants come after; without `not` they may be smaller than the negation
        if num_vars == 1:
            order = np.concatenate([order, np.flatnonzero(~is_essential)])
        bits.append(functions.words[order])
        sizes.append(functions.sizes[order])
        starts.append(starts[-1] + len(order))
        complete_to.append(COMPLETE if functions.is_complete else functions.max_size)
    indexes = (np.array(listed, np.int64) for listed in (starts, ends, complete_to))
    return EssentialFunctions(np.concatenate(bits), np.concatenate(sizes), *indexes)


def _depends_on_all(words: npt.NDArray[np.uint64], num_vars: int) -> npt.NDArray[np.bool_]:
    is_essential = np.ones(len(words), np.bool_)
    for index in range(num_vars):
        shift = np.uint64(1 << index)
        low_rows = np.uint64(full_mask(num_vars) & ~projection(index, num_vars).bits)
        is_essential &= ((words >> shift) ^ words) & low_rows != 0
    assert num_rows(num_vars) <= 64
    return is_essential
