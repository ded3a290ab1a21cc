"""Incremental SAT solver through python-sat, with conflicts charged to a budget."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from calibrant.solvers.budget import Budget
from calibrant.solvers.sat.cnf import Cnf

SOLVER = "cadical153"  # incremental, keeps to conflict limits (Glucose does not), logs proofs


class Charged:
    """A python-sat solver whose conflicts are charged to a budget; all other attributes are passed through."""

    def __init__(self, solver: Any, budget: Budget, states: int = 1) -> None:
        """Wrap a solver; one conflict costs `states` of the budget."""
        self._solver = solver
        self._budget = budget
        self._states = states
        self._num_counted = 0

    def solve_limited(self, assumptions: Sequence[int] = (), expect_interrupt: bool = False) -> bool:
        """Return whether there is a model; `BudgetSpent` if that was not decided.

        Python-sat's RC2 calls it by this name.
        """
        remaining = self._budget.states
        if remaining is None:
            satisfiable = self._solver.solve(assumptions=list(assumptions))
            self._budget.spend(self._new_conflicts() * self._states)
            return bool(satisfiable)
        limit = remaining // self._states
        if limit == 0:
            self._budget.spend(self._states)  # raises; python-sat would read a limit of 0 as no limit
        self._solver.conf_budget(limit)
        satisfiable = self._solver.solve_limited(assumptions=list(assumptions))
        # a model found with the last conflict counts; solvers may overshoot a limit by some conflicts
        used = self._new_conflicts()
        self._budget.spend(remaining + 1 if satisfiable is None else min(used, limit) * self._states)
        return bool(satisfiable)

    def _new_conflicts(self) -> int:
        """Return the conflicts since the last call."""
        before, self._num_counted = self._num_counted, self._solver.accum_stats()["conflicts"]
        return self._num_counted - before

    def __getattr__(self, name: str) -> Any:
        return getattr(self._solver, name)


class Conflicts:
    """An incremental solver whose conflicts are charged to a budget."""

    def __init__(self, cnf: Cnf, budget: Budget, *, solver: str = SOLVER) -> None:
        from pysat.solvers import Solver

        self.solver: Any = Charged(Solver(name=solver, bootstrap_with=cnf.clauses), budget)
        self.cnf = cnf

    def model(self) -> Sequence[int] | None:
        """Return a model, entry v - 1 for variable v; None if there is none; `BudgetSpent` if that was not decided."""
        if not self.solver.solve_limited():
            return None
        model: list[int] = self.solver.get_model()
        # variables in no clause are unknown to the solver: any value will do
        return model + [-v for v in range(len(model) + 1, self.cnf.num_variables + 1)]

    def add(self, clause: Sequence[int]) -> None:
        self.solver.add_clause(clause)

    def close(self) -> None:
        self.solver.delete()
