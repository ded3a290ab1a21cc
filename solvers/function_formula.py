"""A formula for any function: of least size for up to four variables, else a split on the highest variables."""

from __future__ import annotations

from collections.abc import Sequence

from dsl.formula import Formula, apply, var
from dsl.partial import complete
from dsl.table import TruthTable, cofactor, constant_table, select
from solvers.outcome import Found
from solvers.synthesis import least_formula

LOOKED_UP = 4  # every function of that many variables is in the catalogue


def formula_for(table: TruthTable, names: Sequence[str], operators: tuple[str, ...]) -> Formula:
    """A formula over `names`; names[i] is variable i. A table of no variables mentions names[0] to say a constant.

    Needs not, and, or among the operators for more than four variables.
    """
    if table.num_vars == 0:
        return formula_for(constant_table(bool(table.bits), 1), names, operators)
    if table.num_vars <= LOOKED_UP:
        outcome = least_formula(complete(table), names, operators=operators)
        if not isinstance(outcome, Found):
            raise ValueError(f"no formula over {', '.join(operators)} for {table.hex}")
        return outcome.value
    top = table.num_vars - 1
    rest = range(top)
    low, high = (
        formula_for(select(cofactor(table, top, value), rest), names[:top], operators) for value in (False, True)
    )
    chosen = var(names[top])
    return apply("or", [apply("and", [chosen, high]), apply("and", [apply("not", [chosen]), low])])
