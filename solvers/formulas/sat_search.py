"""Formulas of least size through SAT: a check of the enumeration, and a continuation beyond its catalogues.

The claimed size is that of `solvers.formulas.least.least_formula`: the least number of nodes of a formula over the
variables, not necessarily all of them, without constants. Which of the least formulas is returned is up to the solver;
it is the same for the same table, operators, symmetry breaks and budget.

Sizes are refuted one after another. Rows are demanded when a candidate gets them wrong (counterexample-guided inductive
synthesis), and stay for the next size. A state of the budget is a conflict of the solver.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import closing

from calibrant.dsl.formulas.formula import STANDARD_OPERATORS, Formula
from calibrant.dsl.formulas.reference import evaluate
from calibrant.dsl.formulas.table import PartialTable, num_rows
from calibrant.solvers.budget import Budget, BudgetSpent
from calibrant.solvers.formulas.cnf_trees import SYMMETRY_BREAKS, SymmetryBreak, TreeEncoding
from calibrant.solvers.formulas.expressible import may_be_expressible, operator_set
from calibrant.solvers.outcome import Found, Impossible, Outcome, OutOfBudget
from calibrant.solvers.sat.incremental import Conflicts


class SatSynthesis:
    """Search for the least size of a formula that agrees with a table, one size at a time.

    lower_bound: proven; no smaller formula agrees
    rows: those demanded so far, in the order in which candidates failed
    """

    def __init__(
        self,
        partial: PartialTable,
        names: Sequence[str],
        *,
        operators: Iterable[str] = STANDARD_OPERATORS,
        symmetry_breaks: Sequence[SymmetryBreak] = SYMMETRY_BREAKS,
    ) -> None:
        if len(names) != partial.num_vars or len(set(names)) != len(names):
            raise ValueError(f"{len(names)} names {list(names)} for the {partial.num_vars} variables of a table")
        self.partial = partial
        self.names = tuple(names)
        self.operators = operator_set(operators)
        self.lower_bound = 1
        self.rows: list[int] = []
        self._symmetry_breaks = tuple(symmetry_breaks)

    def advance(self, budget: Budget) -> Formula | None:
        """Find a formula of `lower_bound` nodes; None if there is none, and the bound grows; or `BudgetSpent`."""
        tree = TreeEncoding(self.partial.num_vars, self.lower_bound, self.operators)
        for add_clauses in self._symmetry_breaks:
            add_clauses(tree)
        # rows on which smaller candidates failed: most candidates of this size fail on them too
        for row in self.rows:
            tree.add_row(row, self._value(row))
        with closing(Conflicts(tree.cnf, budget)) as search:
            while (model := search.model()) is not None:
                formula = tree.formula(model, self.names)
                failed_row = self._first_wrong(formula)
                if failed_row is None:
                    assert formula.size == self.lower_bound, str(formula)
                    return formula
                num_clauses = len(tree.cnf.clauses)
                self.rows.append(failed_row)
                tree.add_row(failed_row, self._value(failed_row))
                for clause in tree.cnf.clauses[num_clauses:]:
                    search.add(clause)
        self.lower_bound += 1
        return None

    def _value(self, row: int) -> bool:
        return bool(self.partial.value >> row & 1)

    def _first_wrong(self, formula: Formula) -> int | None:
        """Return the first determined row on which the formula is wrong, by the reference."""
        for row in range(num_rows(self.partial.num_vars)):
            if self.partial.care >> row & 1:
                value = evaluate(formula, {name: row >> index & 1 for index, name in enumerate(self.names)})
                if value != self._value(row):
                    assert row not in self.rows, (str(formula), row)
                    return row
        return None


def least_formula_by_sat(
    partial: PartialTable,
    names: Sequence[str],
    *,
    operators: Iterable[str] = STANDARD_OPERATORS,
    at_most: int | None = None,
    budget: Budget | None = None,
    symmetry_breaks: Sequence[SymmetryBreak] = SYMMETRY_BREAKS,
) -> Outcome[Formula]:
    """Find a formula of least size; Impossible if there is none (of at most `at_most` nodes), or OutOfBudget.

    names: names[i] is variable i of the table
    """
    search = SatSynthesis(partial, names, operators=operators, symmetry_breaks=symmetry_breaks)
    over = f"over {', '.join(names) or 'no variables'}"
    nothing = Impossible(f"no formula of any size {over} agrees with the table")
    if partial.num_vars == 0 or not may_be_expressible(partial, search.operators):
        return nothing
    largest = largest_least_size(partial.num_vars, search.operators)
    spending = budget or Budget()
    while at_most is None or search.lower_bound <= at_most:
        if largest is not None and search.lower_bound > largest:
            return nothing
        try:
            formula = search.advance(spending)
        except BudgetSpent:
            bound = search.lower_bound
            return OutOfBudget(f"no formula of size < {bound} {over} agrees with the table", bound)
        if formula is not None:
            return Found(formula)
    return Impossible(f"no formula of size <= {at_most} {over} agrees with the table")


def largest_least_size(num_vars: int, operators: tuple[str, ...]) -> int | None:
    """Return a bound on least sizes for the classes where `may_be_expressible` is not final; None for all others."""
    match operators:
        case () | ("not",):
            return 1 + len(operators)
        case ("and",) | ("or",):
            return num_vars + 1
        case ("xor",) | ("not", "xor"):  # all variables under one operator, or (xor a a) for a constant
            return max(num_vars + 1, 3) + ("not" in operators)
        case _:
            return None
