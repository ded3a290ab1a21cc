"""Exact synthesis: a least formula that agrees with a partial truth table of up to 6 variables, proven least.

Up to 4 variables by one look-up in a complete catalogue of functions. Over 5 and 6 variables a catalogue holds all
functions of up to 11 and 9 nodes; beyond that every size is refuted by exhaustion (solvers.formulas.decomposition)
before the next is tried.

Tie rule for any number of variables and any method: of the functions of least size that agree with the table the one
with the smallest table bits; of its formulas the one that solvers.formulas.assembly describes.
A state of the budget is a listed function that is compared with the table, or a pair of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from calibrant.dsl.formulas.formula import STANDARD_OPERATORS, Formula
from calibrant.dsl.formulas.reference import evaluate
from calibrant.dsl.formulas.table import PartialTable, full_mask, num_rows
from calibrant.solvers.budget import Budget, BudgetSpent
from calibrant.solvers.formulas._kernels_synthesis import find_first_match
from calibrant.solvers.formulas.assembly import formula_of_part
from calibrant.solvers.formulas.catalogue import catalogue
from calibrant.solvers.formulas.decomposition import Decomposition
from calibrant.solvers.formulas.expressible import may_be_expressible
from calibrant.solvers.formulas.goal import Goal, Listed, Part, exact_goal
from calibrant.solvers.outcome import Found, Impossible, Outcome, OutOfBudget


class LeastSize:
    """Search for the least size of a formula that agrees with a table, one size at a time.

    lower_bound: proven; no smaller formula agrees. It is the least size once `size` is known
    possible: False once it is proven that no formula of any size agrees
    """

    def __init__(self, partial: PartialTable, operators: Iterable[str] = STANDARD_OPERATORS) -> None:
        self.partial = partial
        self.lower_bound = 1
        self._functions = catalogue(partial.num_vars, operators)
        self.possible = partial.num_vars > 0 and may_be_expressible(partial, self._functions.operators)
        self._search = Decomposition(self._functions)
        self._part: Part | None = None

    @property
    def size(self) -> int | None:
        """Least size, None as long as it is unknown."""
        return None if self._part is None else self._part.size

    @property
    def decided(self) -> bool:
        """Whether the least size, or that there is none, is known."""
        return self._part is not None or not self.possible

    @property
    def in_reach(self) -> bool:
        """Whether the next size can be searched: up to 24 for 5 variables, 20 for 6."""
        return self.lower_bound <= self._search.max_size

    def advance(self, budget: Budget | None = None) -> None:
        """Test the next size, or all listed sizes at once; if the budget runs out before, only the budget changes."""
        if self.decided or not self.in_reach:
            return
        self._search.budget = budget or Budget()
        try:
            # words are in the order of size: the first match of one scan settles all listed sizes
            if self.lower_bound == 1:
                self._look_up()
            else:
                self._search_size(self.lower_bound)
        except BudgetSpent:
            return
        finally:
            self._search.budget = Budget()

    def _look_up(self) -> None:
        functions, goal = self._functions, self._goal
        self._search.budget.spend(len(functions.words))
        care, value = np.uint64(goal.care), np.uint64(goal.value)
        position = find_first_match(functions.words, care, value, len(functions.words))
        if position >= 0:
            self._part = self._search.listed_function(position)
            self.lower_bound = self._part.size
        else:
            self.lower_bound = functions.max_size + 1
            # a complete catalogue holds every function that has a formula: no match is a proof
            self.possible = not functions.is_complete

    def _search_size(self, size: int) -> None:
        self._part = self._search.find_smallest(self._goal, size)
        self.lower_bound += self._part is None

    @property
    def _goal(self) -> Goal:
        return Goal(self.partial.care, self.partial.value, full_mask(self.partial.num_vars), 0)

    def formula(self, names: Sequence[str]) -> Formula:
        """Build the formula, once the size is known; names[i] is variable i of the table."""
        part = self._part
        if part is None:
            raise ValueError("the least size is not known yet")
        # the split that was found depends on the open rows; the formula must depend on the function alone
        if not isinstance(part, Listed):
            part = self._search.find_smallest(exact_goal(part.bits, full_mask(self.partial.num_vars)), part.size)
            assert part is not None
        formula = formula_of_part(self._functions, part, names)
        self._certify(formula, names)
        return formula

    def _certify(self, formula: Formula, names: Sequence[str]) -> None:
        """Assert, by the reference, every row that is determined."""
        for row in range(num_rows(self.partial.num_vars)):
            if self.partial.care >> row & 1:
                value = evaluate(formula, {name: row >> index & 1 for index, name in enumerate(names)})
                assert value == self.partial.value >> row & 1, (str(formula), self.partial)
        assert formula.size == self.size, (str(formula), self.size)


def least_formula(
    partial: PartialTable,
    names: Sequence[str],
    *,
    operators: Iterable[str] = STANDARD_OPERATORS,
    at_most: int | None = None,
    budget: Budget | None = None,
) -> Outcome[Formula]:
    """Find the formula of least size; Impossible if there is none (of at most `at_most` nodes), or OutOfBudget.

    names: names[i] is variable i of the table
    """
    if len(names) != partial.num_vars or len(set(names)) != len(names):
        raise ValueError(f"{len(names)} names {list(names)} for the {partial.num_vars} variables of a table")
    search = LeastSize(partial, operators)
    remaining_budget = budget or Budget()
    while not search.decided and search.in_reach and (at_most is None or search.lower_bound <= at_most):
        search.advance(remaining_budget)
        if remaining_budget.exhausted:
            break
    return _outcome(search, names, at_most)


def _outcome(search: LeastSize, names: Sequence[str], at_most: int | None) -> Outcome[Formula]:
    over = f"over {', '.join(names) or 'no variables'}"
    bound = search.lower_bound
    if not search.possible:
        return Impossible(f"no formula of any size {over} agrees with the table")
    if at_most is not None and bound > at_most:
        return Impossible(f"no formula of size <= {at_most} {over} agrees with the table")
    if search.size is None:
        return OutOfBudget(f"no formula of size < {bound} {over} agrees with the table", bound)
    return Found(search.formula(names))
