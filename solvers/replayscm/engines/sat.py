"""Members of a class through python-sat: solve, read, block, solve again, in one incremental solver.

A state of the budget is a parent set that is encoded or a conflict of the solver.
"""

from __future__ import annotations

from collections.abc import Sequence

from calibrant.dsl.replayscm.item import Task
from calibrant.solvers.budget import Budget
from calibrant.solvers.replayscm.engines.cnf_encoding import SYMMETRY_BREAKS, Acyclicity, SymmetryBreak, encode_members
from calibrant.solvers.replayscm.engines.contract import Functions
from calibrant.solvers.replayscm.version_space import ModelClass
from calibrant.solvers.sat import SOLVER, Conflicts, add_linear_order


class SatMembers:
    """The members of a class, one model of the CNF after another."""

    def __init__(
        self,
        task: Task,
        model_class: ModelClass,
        budget: Budget,
        *,
        symmetry_breaks: Sequence[SymmetryBreak] = SYMMETRY_BREAKS,
        acyclicity: Acyclicity = add_linear_order,
        solver: str = SOLVER,
    ) -> None:
        self.encoding = encode_members(
            task, model_class, symmetry_breaks=symmetry_breaks, acyclicity=acyclicity, budget=budget
        )
        self.search = Conflicts(self.encoding.cnf, budget, solver=solver)

    def next_member(self) -> Functions | None:
        model = self.search.model()
        return None if model is None else self.encoding.functions(model)

    def block(self, functions: Functions) -> None:
        # None: no model has these functions, so there is nothing to exclude
        clause = self.encoding.blocking(functions)
        if clause is not None:
            self.search.add(clause)

    def close(self) -> None:
        self.search.close()
