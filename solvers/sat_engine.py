"""Members of a class through python-sat: solve, read, block, solve again, in one incremental solver.

A state of the budget is a parent set that is encoded or a conflict of the solver.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Any

from dsl.problem import Task
from solvers.budget import Budget
from solvers.cnf import Cnf, linear_order
from solvers.engine import Functions
from solvers.sat_version_space import SYMMETRY_BREAKS, Acyclicity, SymmetryBreak, encode
from solvers.version_space import ModelClass

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


class SatMembers:
    """The members of a class, one model of the CNF after another."""

    def __init__(
        self,
        task: Task,
        model_class: ModelClass,
        budget: Budget,
        *,
        symmetry_breaks: Sequence[SymmetryBreak] = SYMMETRY_BREAKS,
        acyclicity: Acyclicity = linear_order,
        solver: str = SOLVER,
    ) -> None:
        self.encoding = encode(task, model_class, symmetry_breaks=symmetry_breaks, acyclicity=acyclicity, budget=budget)
        self.search = Conflicts(self.encoding.cnf, budget, solver=solver)

    def another(self) -> Functions | None:
        model = self.search.model()
        return None if model is None else self.encoding.functions(model)

    def block(self, functions: Functions) -> None:
        clause = self.encoding.blocking(functions)
        if clause is not None:
            self.search.add(clause)

    def __enter__(self) -> SatMembers:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.search.close()
