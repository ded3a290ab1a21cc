"""Incremental weighted MaxSAT: python-sat's RC2, its conflicts charged to a budget.

RC2 raises a lower bound core by core (A. Ignatiev, A. Morgado and J. Marques-Silva, RC2: an efficient MaxSAT solver,
2019), so there is a proven bound whenever the budget ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from calibrant.solvers.budget import Budget
from calibrant.solvers.sat.cnf import Cnf, Literal
from calibrant.solvers.sat.incremental import SOLVER, Charged


class CoreGuided:
    """Minimum-cost models of a CNF; a model costs the weights of the preferred literals that do not hold.

    at_least: proven lower bound of the cost
    """

    def __init__(self, cnf: Cnf, budget: Budget, *, states: int = 1) -> None:
        """Load clauses; one conflict costs `states` of the budget."""
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
        """Add a soft clause: models in which the literal does not hold cost `weight` more."""
        self._rc2.add_clause([literal], weight=weight)

    def add(self, clause: Sequence[Literal]) -> None:
        """Add a hard clause."""
        # to the SAT solver under RC2, so that cores found so far stay valid: constraints are only added
        self._solver.add_clause(list(clause))

    def cheapest_model(self) -> set[Literal] | None:
        """Return the literals that hold in a model of least cost; None without a model; `BudgetSpent` if undecided."""
        model = self._rc2.compute()
        return None if model is None else {literal for literal in model if literal > 0}

    def settle(self) -> None:
        """Restrict to the models of least cost; call after `cheapest_model`."""
        # RC2's current assumptions describe exactly these models; `active_assumps` is new in 1.9.dev16
        for literal in [*self._rc2.sels, *self._rc2.sums]:
            self.add([literal])

    def model(self, assumptions: Iterable[Literal]) -> set[Literal] | None:
        """Return the literals that hold in a model of any cost under assumptions; None if there is none."""
        if not self._solver.solve_limited(assumptions=list(assumptions)):
            return None
        return {literal for literal in self._solver.get_model() if 0 < literal <= self._num_variables}

    def close(self) -> None:
        self._rc2.delete()
