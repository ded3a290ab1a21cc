"""Weighted MaxSAT that clauses can be added to: python-sat's RC2, its conflicts charged to a budget.

RC2 raises a lower bound core by core (A. Ignatiev, A. Morgado and J. Marques-Silva, RC2: an efficient MaxSAT solver,
2019), so whenever the budget ends there is a bound that is proven.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from calibrant.solvers.budget import Budget
from calibrant.solvers.sat.cnf import Cnf, Literal
from calibrant.solvers.sat.incremental import SOLVER, Charged


class CoreGuided:
    """Models of a CNF by what the literals that do not hold in them cost.

    at_least: proven; no model costs less
    """

    def __init__(self, cnf: Cnf, budget: Budget, *, states: int = 1) -> None:
        """states: of the budget, what one conflict counts as"""
        from pysat.examples.rc2 import RC2
        from pysat.formula import WCNF

        formula = WCNF()
        formula.extend(cnf.clauses)
        formula.nv = cnf.num_variables
        self._num_variables = cnf.num_variables
        self._rc2: Any = RC2(formula, solver=SOLVER)
        self._solver = Charged(self._rc2.oracle, budget, states)
        self._rc2.oracle = self._solver

    @property
    def at_least(self) -> int:
        return int(self._rc2.cost)

    def prefer(self, literal: Literal, weight: int) -> None:
        """From now on models in which the literal does not hold cost so much more."""
        self._rc2.add_clause([literal], weight=weight)

    def add(self, clause: Sequence[Literal]) -> None:
        """From now on at least one of the literals holds."""
        self._solver.add_clause(list(clause))

    def least(self) -> set[Literal] | None:
        """The literals that hold in a model of least cost; None without any model; `BudgetSpent` if undecided."""
        model = self._rc2.compute()
        return None if model is None else {literal for literal in model if literal > 0}

    def settle(self) -> None:
        """After `least`: from now on only the models of least cost."""
        for literal in [*self._rc2.sels, *self._rc2.sums]:  # RC2 assumes them; `active_assumps` is new in 1.9.dev16
            self.add([literal])

    def model(self, assumptions: Iterable[Literal]) -> set[Literal] | None:
        """The literals that hold in a model of any cost under assumptions; None if there is none."""
        if not self._solver.solve_limited(assumptions=list(assumptions)):
            return None
        return {literal for literal in self._solver.get_model() if 0 < literal <= self._num_variables}

    def close(self) -> None:
        self._rc2.delete()
