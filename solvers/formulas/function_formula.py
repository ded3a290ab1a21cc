"""A formula for any function: of least size where a catalogue lists it, else a split on the highest variable."""

from __future__ import annotations

from collections.abc import Sequence

from dsl.formulas.formula import Formula, apply, var
from dsl.formulas.table import TruthTable, cofactor, constant_table, select
from solvers.formulas.catalogue import catalogue
from solvers.formulas.small_functions import formula_of


def formula_for(table: TruthTable, names: Sequence[str], operators: tuple[str, ...]) -> Formula:
    """A formula over `names`; names[i] is variable i. A table of no variables mentions names[0] to say a constant.

    Of least size for every function of up to four variables, and for small ones of five and six. Needs `not`, `and`,
    `or` for the others; `ValueError` if there is no formula.
    """
    if table.num_vars == 0:
        return formula_for(constant_table(bool(table.bits), 1), names, operators)
    functions = catalogue(table.num_vars, operators)
    if functions.position(table.bits) is not None:
        return formula_of(table.bits, names, operators=operators)
    if functions.is_complete or not {"not", "and", "or"}.issubset(operators):
        raise ValueError(f"no formula over {', '.join(operators)} for {table.hex}")
    top = table.num_vars - 1
    rest = range(top)
    low, high = (
        formula_for(select(cofactor(table, top, value), rest), names[:top], operators) for value in (False, True)
    )
    chosen = var(names[top])
    return apply("or", [apply("and", [chosen, high]), apply("and", [apply("not", [chosen]), low])])
