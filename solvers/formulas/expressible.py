"""Expressibility: which Boolean functions a set of operators can express.

Of Post's closed classes (E. L. Post, The two-valued iterative systems of mathematical logic, 1941) few occur:
operators that are all monotone, or all affine, stay in a small class; any other set expresses every function that
preserves the constants that all its operators preserve. An operator preserves 0 (or 1) if it gives 0 (or 1) when all
arguments are: `and` and `or` preserve both, `xor` preserves 0, `iff` preserves 1, `not` neither.
"""

from __future__ import annotations

from collections.abc import Iterable

from calibrant.dsl.formulas.formula import OPERATORS, STANDARD_OPERATORS
from calibrant.dsl.formulas.table import PartialTable, num_rows
from calibrant.dsl.formulas.text import Grammar

MONOTONE_COUNTS = (0, 1, 4, 18, 166, 7579, 7828352)  # Dedekind numbers (OEIS A000372) without the two constants


def operator_set(operators: Iterable[str]) -> tuple[str, ...]:
    """Return the operators in table order, each once; `ValueError` if exact synthesis does not support one."""
    requested = set(operators)
    if unknown := requested - set(STANDARD_OPERATORS):
        raise ValueError(f"operators {sorted(unknown)} in exact synthesis; it supports {', '.join(STANDARD_OPERATORS)}")
    return tuple(name for name in STANDARD_OPERATORS if name in requested)


def preserves(operators: Iterable[str], value: bool) -> bool:
    """Return whether every formula of these operators is `value` where all variables are."""
    chosen = [OPERATORS[name] for name in operators]
    return all(op.truth([value] * op.min_arity) == value for op in chosen)


def num_expressible(num_vars: int, operators: tuple[str, ...]) -> int:
    """Count the functions of at most these variables that have a formula of these operators."""
    if num_vars == 0:
        return 0  # no atom, hence no formula
    match operators:
        case ():
            return num_vars
        case ("not",):
            return 2 * num_vars
        case ("and",) | ("or",):
            return (1 << num_vars) - 1
        case ("xor",):
            return 1 << num_vars
        case ("not", "xor"):
            return 2 << num_vars
        case ("and", "or"):
            return MONOTONE_COUNTS[num_vars]
        case _:
            return 1 << num_rows(num_vars) - preserves(operators, False) - preserves(operators, True)


def expresses_everything(grammar: Grammar) -> bool:
    """Return whether every function has a formula in the grammar, the constants as literals or not."""
    names = grammar.operators
    standard = operator_set(name for name in names if name in STANDARD_OPERATORS)
    # monotone and affine classes have at most 18 and 16 functions of 3 variables, any other at least a quarter of 256
    rich = "if" in names or num_expressible(3, standard) >= 1 << num_rows(3) - 2
    return rich and (grammar.allow_constants or not (preserves(names, False) or preserves(names, True)))


def may_be_expressible(partial: PartialTable, operators: tuple[str, ...]) -> bool:
    """Return False if no formula agrees with the table.

    True is final too, unless all operators are affine, or `and` or `or` stands alone; those classes are so small that
    they are searched completely.
    """
    ones, zeros = partial.value, partial.care & ~partial.value
    last = num_rows(partial.num_vars) - 1
    if preserves(operators, False) and ones & 1:
        return False
    if preserves(operators, True) and zeros >> last & 1:
        return False
    return operators != ("and", "or") or not _decreases(ones, zeros, partial.num_vars)


def _decreases(ones: int, zeros: int, num_vars: int) -> bool:
    """Return whether some row of `ones` lies below a row of `zeros`: then no monotone function has these values."""
    rows = range(num_rows(num_vars))
    below = [row for row in rows if ones >> row & 1]
    above = [row for row in rows if zeros >> row & 1]
    return any(low & ~high == 0 for low in below for high in above)
