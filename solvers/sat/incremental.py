"""One incremental solver through python-sat, whose conflicts are charged to a budget."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from solvers.budget import Budget
from solvers.sat.cnf import Cnf

SOLVER = "cadical153"  # incremental, keeps to conflict limits (Glucose does not), logs proofs


class Conflicts:
    """An incremental solver whose conflicts are charged to a budget."""

    def __init__(self, cnf: Cnf, budget: Budget, *, solver: str = SOLVER) -> None:
        from pysat.solvers import Solver

        self.solver: Any = Solver(name=solver, bootstrap_with=cnf.clauses)
        self.cnf = cnf
        self.budget = budget
        self._charged = 0

    def model(self) -> Sequence[int] | None:
        """A model, entry v - 1 for variable v; None if there is none; `BudgetSpent` if that was not decided."""
        limit = self.budget.states
        if limit == 0:
            self.budget.spend(1)  # python-sat reads a limit of 0 as no limit
        if limit is not None:
            self.solver.conf_budget(limit)
        satisfiable = self.solver.solve_limited() if limit is not None else self.solver.solve()
        total = self.solver.accum_stats()["conflicts"]
        used, self._charged = total - self._charged, total
        if limit is None:
            self.budget.spend(used)
        else:  # a model found with the last conflict counts as found
            self.budget.spend(limit + 1 if satisfiable is None else min(used, limit))
        if not satisfiable:
            return None
        model: list[int] = self.solver.get_model()
        return model + [-v for v in range(len(model) + 1, self.cnf.num_variables + 1)]  # those in no clause

    def add(self, clause: Sequence[int]) -> None:
        self.solver.add_clause(clause)

    def close(self) -> None:
        self.solver.delete()
