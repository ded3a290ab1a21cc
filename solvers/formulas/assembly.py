"""From functions back to formulas, by a fixed rule.

Of the formulas of least size for a function, the one is built whose root is the first possible operator in table order
(not, and, or, xor, iff) and whose split into two parts (for a longer `iff`: into arguments) comes first: smallest first
part by list cost, size and table bits, then smallest second part. Its arguments are formulas by the same rule and
stand in the order of size, then table bits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache

from calibrant.dsl.formulas.formula import Formula, apply, rename, var
from calibrant.dsl.formulas.table import full_mask, projection
from calibrant.solvers.formulas.catalogue import ROOTS, Catalogue
from calibrant.solvers.formulas.decomposition import Decomposition
from calibrant.solvers.formulas.goal import Decomposed, Listed, Part, exactly


def formula_of_part(functions: Catalogue, part: Part, names: Sequence[str]) -> Formula:
    """The formula over the names given; names[i] is variable i."""
    placed = {str(index): name for index, name in enumerate(names)}
    return rename(_formula(functions, part), placed.__getitem__)


def _formula(functions: Catalogue, part: Part) -> Formula:
    """The formula with the variables' numbers for names."""
    if isinstance(part, Listed):
        return _listed_formula(functions, part)
    arguments = [argument for inner in part.parts for argument in _arguments(functions, inner, part.operator)]
    arguments.sort(key=lambda argument: (argument.size, argument.bits))
    return apply(part.operator, [_formula(functions, argument) for argument in arguments])


def _arguments(functions: Catalogue, part: Part, operator: str) -> Iterator[Part]:
    """The arguments that a part contributes to a node of that operator: its own if it has the same root."""
    if operator in ROOTS and isinstance(part, Listed) and functions.rooted[part.position] & ROOTS[operator]:
        part = _split(functions, part, operator) or part
    if operator in ROOTS and isinstance(part, Decomposed) and part.operator == operator:
        for inner in part.parts:
            yield from _arguments(functions, inner, operator)
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
    found = next(split for operator in possible if (split := _split(functions, part, operator)))
    return _formula(functions, found)


def _split(functions: Catalogue, part: Listed, operator: str) -> Decomposed | None:
    goal = exactly(part.bits, full_mask(functions.num_vars))
    return Decomposition(functions).rooted(goal, part.size, operator)
