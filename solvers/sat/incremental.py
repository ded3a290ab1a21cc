"""One incremental solver through python-sat, whose conflicts are charged to a budget."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from calibrant.solvers.budget import Budget
from calibrant.solvers.sat.cnf import Cnf

SOLVER = "cadical153"  # incremental, keeps to conflict limits (Glucose does not), logs proofs


class Charged:
    """A solver of python-sat whose conflicts are charged to a budget; all else that is asked of it is passed on."""

    def __init__(self, solver: Any, budget: Budget, states: int = 1) -> None:
        """states: of the budget, what one conflict counts as"""
        self._solver = solver
        self._budget = budget
        self._states = states
        self._counted = 0

    def solve_limited(self, assumptions: Sequence[int] = (), expect_interrupt: bool = False) -> bool:
        """Return whether there is a model; `BudgetSpent` if that was not decided.

        Python-sat's RC2 calls it by this name.
        """
        left = self._budget.states
        if left is None:
            satisfiable = self._solver.solve(assumptions=list(assumptions))
            self._budget.spend(self._conflicts() * self._states)
            return bool(satisfiable)
        limit = left // self._states
        if limit == 0:
            self._budget.spend(self._states)  # python-sat reads a limit of 0 as no limit
        self._solver.conf_budget(limit)
        satisfiable = self._solver.solve_limited(assumptions=list(assumptions))
        used = self._conflicts()  # a model found with the last conflict counts as found
        self._budget.spend(left + 1 if satisfiable is None else min(used, limit) * self._states)
        return bool(satisfiable)

    def _conflicts(self) -> int:
        """Conflicts since the last call."""
        counted, self._counted = self._counted, self._solver.accum_stats()["conflicts"]
        return self._counted - counted

    def __getattr__(self, name: str) -> Any:
        return getattr(self._solver, name)


class Conflicts:
    """An incremental solver whose conflicts are charged to a budget."""

    def __init__(self, cnf: Cnf, budget: Budget, *, solver: str = SOLVER) -> None:
        from pysat.solvers import Solver

        self.solver: Any = Charged(Solver(name=solver, bootstrap_with=cnf.clauses), budget)
        self.cnf = cnf

    def model(self) -> Sequence[int] | None:
        """A model, entry v - 1 for variable v; None if there is none; `BudgetSpent` if that was not decided."""
        if not self.solver.solve_limited():
            return None
        model: list[int] = self.solver.get_model()
        return model + [-v for v in range(len(model) + 1, self.cnf.num_variables + 1)]  # those in no clause

    def add(self, clause: Sequence[int]) -> None:
        self.solver.add_clause(clause)

    def close(self) -> None:
        self.solver.delete()
