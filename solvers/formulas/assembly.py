"""Reconstruction of formulas from functions, by a fixed rule, so that equal questions have equal answers.

Of the formulas of least size for a function the one is built that comes first by
1. the operator at its root, in table order (not, and, or, xor, iff);
2. its split into two parts (for `iff` of more than two: into arguments): smallest first part, then smallest second
   part, by list cost (solvers.formulas._kernels_functions), size and table bits.
Nested nodes of one n-ary operator are flattened. Arguments are formulas by the same rule, sorted by size, then bits.
A part is `Listed` (a function of the catalogue) or `Decomposed` (an operator over parts).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache

from calibrant.dsl.formulas.formula import Formula, apply, rename, var
from calibrant.dsl.formulas.table import full_mask, projection
from calibrant.solvers.formulas.catalogue import ROOTS, Catalogue
from calibrant.solvers.formulas.decomposition import Decomposition
from calibrant.solvers.formulas.goal import Decomposed, Listed, Part, exact_goal


def formula_of_part(functions: Catalogue, part: Part, names: Sequence[str]) -> Formula:
    """Build the formula of a part; names[i] is variable i."""
    placed = {str(index): name for index, name in enumerate(names)}
    return rename(_formula(functions, part), placed.__getitem__)


def _formula(functions: Catalogue, part: Part) -> Formula:
    """Build the formula of a part, with the variables' numbers for names."""
    if isinstance(part, Listed):
        return _listed_formula(functions, part)
    arguments = [argument for inner in part.parts for argument in _flatten_arguments(functions, inner, part.operator)]
    arguments.sort(key=lambda argument: (argument.size, argument.bits))
    return apply(part.operator, [_formula(functions, argument) for argument in arguments])


def _flatten_arguments(functions: Catalogue, part: Part, operator: str) -> Iterator[Part]:
    """Yield the arguments that a part contributes to a node of that operator: and(and(a, b), c) is and(a, b, c)."""
    if operator in ROOTS and isinstance(part, Listed) and functions.rooted[part.position] & ROOTS[operator]:
        part = _split(functions, part, operator) or part
    if operator in ROOTS and isinstance(part, Decomposed) and part.operator == operator:
        for inner in part.parts:
            yield from _flatten_arguments(functions, inner, operator)
    else:
        yield part


@cache
def _listed_formula(functions: Catalogue, part: Listed) -> Formula:
    if part.size == 1:
        tables = [projection(index, functions.num_vars).bits for index in range(functions.num_vars)]
        return var(str(tables.index(part.bits)))
    possible = (
        name for name in functions.operators if name not in ROOTS or functions.rooted[part.position] & ROOTS[name]
    )
    # `rooted` spares searches for and, or, xor that must fail; `not` and `iff` have no bit and are tried
    chosen = next(split for operator in possible if (split := _split(functions, part, operator)))
    return _formula(functions, chosen)


def _split(functions: Catalogue, part: Listed, operator: str) -> Decomposed | None:
    goal = exact_goal(part.bits, full_mask(functions.num_vars))
    return Decomposition(functions).split_with_root(goal, part.size, operator)
