"""Formulas by look-up: of least size where a catalogue lists the function, of any function by Shannon expansion.

For the standard operators the catalogues are shipped (`data`); `python -m calibrant.solvers.formulas.lookup`
writes those files again from the enumeration, and a test compares the two. Catalogues of other operators are enumerated
on first use, in 0.1 s for the usual ones and 2 s at most.

The order of a catalogue's `words` is the tie rule: `first_match(words, care, value, len(words))` of
solvers.formulas._kernels_synthesis is the position of the least-size function that agrees, of several the one with the
smallest table bits.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from calibrant.dsl.errors import TableError
from calibrant.dsl.formulas.formula import STANDARD_OPERATORS, Formula, apply, var
from calibrant.dsl.formulas.table import TruthTable, cofactor, constant_table, num_rows, select
from calibrant.solvers.formulas.catalogue import MAX_SIZES, SHIPPED, Catalogue, build_catalogue, catalogue, pack_orbits
from calibrant.solvers.formulas.synthesis import Listed, formula_of_part

MAX_SIZE_OF_FOUR = 15  # every function of up to four variables has a formula of the standard operators of that size
NOT_EXPRESSIBLE = 255  # larger than any least size: 47 is the largest, for `not` and `and`


def least_sizes(operators: Iterable[str] = STANDARD_OPERATORS) -> npt.NDArray[np.uint8]:
    """Return least sizes of all functions of 4 variables by table bits, NOT_EXPRESSIBLE without formula; [65536]."""
    functions = catalogue(4, operators)
    sizes = np.full(1 << num_rows(4), NOT_EXPRESSIBLE, np.uint8)
    sizes[functions.words] = functions.sizes
    return sizes


def formula_of(bits: int, names: Sequence[str], *, operators: Iterable[str] = STANDARD_OPERATORS) -> Formula:
    """Return a formula of least size for the function with that table, by the rule of solvers.formulas.synthesis.

    names: one to six; names[i] is variable i. `TableError` if the function has no formula, or, over five and six
    names, only formulas larger than what the catalogue lists; solvers.formulas.synthesis finds those too.
    """
    functions = catalogue(len(names), operators)
    position = functions.position(bits)
    if position is None:
        over = f"{', '.join(functions.operators) or 'no operators'} of size <= {functions.max_size}"
        raise TableError(f"{bits:#x} over {len(names)} variables has no formula over {over}")
    return _listed_formula(functions, bits, position, names)


def _listed_formula(functions: Catalogue, bits: int, position: int, names: Sequence[str]) -> Formula:
    return formula_of_part(functions, Listed(bits, int(functions.sizes[position]), position), names)


def formula_for(table: TruthTable, names: Sequence[str], operators: tuple[str, ...]) -> Formula:
    """Return a formula over `names`; names[i] is variable i. A constant without variables mentions names[0].

    Of least size for every function of up to four variables, and for small ones of five and six. Needs `not`, `and`,
    `or` for the others; `ValueError` if there is no formula.
    """
    if table.num_vars == 0:
        return formula_for(constant_table(bool(table.bits), 1), names, operators)
    functions = catalogue(table.num_vars, operators)
    position = functions.position(table.bits)
    if position is not None:
        return _listed_formula(functions, table.bits, position, names)
    if functions.is_complete or not {"not", "and", "or"}.issubset(operators):
        raise ValueError(f"no formula over {', '.join(operators)} for {table.hex}")
    # Shannon expansion on the last variable: x f1 + not x f0, with the cofactors over one variable less
    top = table.num_vars - 1
    other_variables = range(top)
    low, high = (
        formula_for(select(cofactor(table, top, value), other_variables), names[:top], operators)
        for value in (False, True)
    )
    chosen = var(names[top])
    return apply("or", [apply("and", [chosen, high]), apply("and", [apply("not", [chosen]), low])])


def _write_shipped() -> None:
    for num_vars, name in SHIPPED.items():
        functions = build_catalogue(num_vars, STANDARD_OPERATORS, max_size=MAX_SIZES.get(num_vars))
        (Path(__file__).parent / name).write_bytes(pack_orbits(functions.layers(), num_vars))


if __name__ == "__main__":
    _write_shipped()
