"""SMT encoding of the version space: parents in slots, truth tables as bit vectors, positions as integers.

Written without the CNF: every endogenous variable has `max_parents` slots. A slot holds the index of a parent, or the
number of variables when it is empty; used slots ascend and come first, so a parent set has one way to be written. A
scored row of the panel is a bit vector in which an empty slot reads 0; the slots' bits address the truth table.

Through pysmt (M. Gario and A. Micheli, PySMT, 2015) with z3. A state of the budget is a unit of z3's resource limit,
which counts elementary steps and is the same on every machine.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from calibrant.dsl.formulas.table import TruthTable, num_rows, projection
from calibrant.dsl.replayscm.item import Task
from calibrant.dsl.replayscm.scm import LocalFunction
from calibrant.solvers.outcome import Budget
from calibrant.solvers.replayscm.engines.contract import Functions
from calibrant.solvers.replayscm.roots import nested_variables
from calibrant.solvers.replayscm.space import ModelClass


def _z3(environment: Any) -> Any:
    """Create the solver directly, in a context of its own.

    pysmt's factory first tries to import every other solver, and all of its z3 solvers share one context: there models
    and counted steps depend on what was asked before in the process.
    """
    import z3
    from pysmt.logics import QF_UFLIRA
    from pysmt.solvers.z3 import Z3Converter, Z3Solver

    solver = Z3Solver(environment, QF_UFLIRA)  # the factory's choice too; z3 itself gets no logic
    solver.z3 = z3.Solver(ctx=z3.Context())
    solver.options(solver)
    solver.converter = Z3Converter(environment, z3_ctx=solver.z3.ctx)
    return solver


class Slots(NamedTuple):
    """The terms of one variable: its parents' indices in slots, its truth table, its position in the order."""

    parents: list[Any]
    table: Any
    position: Any


class SmtMembers:
    """The members of a class, one model of the constraints after another."""

    def __init__(self, task: Task, model_class: ModelClass, budget: Budget) -> None:
        from pysmt.environment import Environment

        if model_class.max_size is not None:
            raise ValueError("the SMT engine is for classes without a cap on formula size")
        self.task = task
        self.budget = budget
        self.names = task.variables
        self.num_slots = min(model_class.max_parents, len(self.names) - 1)
        self.width = len(self.names).bit_length()
        environment = Environment()
        self.terms = environment.formula_manager
        self.solver = _z3(environment)
        self.slots: dict[str, Slots] = {}
        self.roots: dict[str, Any] = {}
        self._charged = 0
        self._constrain(model_class)

    # --- constraints ------------------------------------------------------------------------------------------------

    def _constrain(self, model_class: ModelClass) -> None:
        terms, disclosure = self.terms, self.task.disclosure
        self.slots = {v: self._new_slots(v) for v in disclosure.endogenous}
        if disclosure.roots is None:
            self.roots = {v: terms.Symbol(f"root {v}") for v in self.names}
            ones = [terms.Ite(root, terms.Int(1), terms.Int(0)) for root in self.roots.values()]
            self.solver.add_assertion(terms.Equals(terms.Plus(ones), terms.Int(disclosure.num_roots)))
            able = nested_variables(self.task) if model_class.nested_roots else self.names
            for variable in self.names:
                if variable not in able:
                    self.solver.add_assertion(terms.Not(self.roots[variable]))
        for variable, slots in self.slots.items():
            parts = [*self._parent_constraints(variable, slots), *self._dependence_constraints(slots)]
            fits = [self._fits_row(slots, pattern, value) for pattern, value in self._scored_rows(variable)]
            if variable in self.roots:
                unused = [terms.Equals(slot, self._empty) for slot in slots.parents]
                empty = terms.And(*unused, terms.Equals(slots.table, terms.BV(0, self.num_rows)))
                fits = [terms.Ite(self.roots[variable], empty, terms.And(fits))]
            for part in (*parts, *fits):
                self.solver.add_assertion(part)

    @property
    def num_rows(self) -> int:
        return num_rows(self.num_slots)

    @property
    def _empty(self) -> Any:
        return self.terms.BV(len(self.names), self.width)

    def _new_slots(self, variable: str) -> Slots:
        from pysmt.typing import INT, BVType

        index = BVType(self.width)
        parents = [self.terms.Symbol(f"{variable} slot {i}", index) for i in range(self.num_slots)]
        table = self.terms.Symbol(f"{variable} table", BVType(self.num_rows))
        return Slots(parents, table, self.terms.Symbol(f"{variable} position", INT))

    def _parent_constraints(self, variable: str, slots: Slots) -> Iterator[Any]:
        """Yield: slots hold earlier admissible parents, in ascending order, or are empty; empty slots last."""
        terms = self.terms
        admissible = self.task.disclosure.admissible_parents(variable)
        for slot in slots.parents:
            alternatives = [terms.Equals(slot, self._empty)]
            for u in (u for u in self.names if u in admissible):
                is_parent = terms.Equals(slot, terms.BV(self.names.index(u), self.width))
                before = [terms.LT(self.slots[u].position, slots.position)] if u in self.slots else []
                exempt = [self.roots[u]] if u in self.roots else []
                alternatives.append(terms.And(is_parent, terms.Or(*exempt, *before)) if before else is_parent)
            yield terms.Or(alternatives)
        for slot, following in zip(slots.parents, slots.parents[1:], strict=False):
            yield terms.Or(terms.BVULT(slot, following), terms.Equals(following, self._empty))

    def _dependence_constraints(self, slots: Slots) -> Iterator[Any]:
        """Yield: the table depends on every used slot, and is 0 where an empty slot would be 1."""
        terms, width = self.terms, self.num_rows
        for i, slot in enumerate(slots.parents):
            high = terms.BVAnd(slots.table, terms.BV(projection(i, self.num_slots).bits, width))
            low = terms.BVAnd(slots.table, terms.BV(projection(i, self.num_slots).bits >> (1 << i), width))
            halves_agree = terms.Equals(high, terms.BVLShl(low, terms.BV(1 << i, width)))
            is_zero = terms.Equals(high, terms.BV(0, width))
            yield terms.Ite(terms.Equals(slot, self._empty), is_zero, terms.Not(halves_agree))

    def _scored_rows(self, variable: str) -> set[tuple[int, bool]]:
        """Return the distinct scored rows of the variable: all other values as one number, and its own."""
        task, rows = self.task, set()
        for world in task.training.worlds:
            if variable not in world.intervention.targets:
                for row in world.rows():
                    pattern = sum(row[u] << i for i, u in enumerate(self.names) if u != variable)
                    rows.add((pattern, row[variable] == 1))
        return rows

    def _fits_row(self, slots: Slots, pattern: int, value: bool) -> Any:
        """Return: the table holds the observed value at the address that the slots read from the row."""
        terms = self.terms
        address = terms.BV(0, self.num_rows)
        for i, slot in enumerate(slots.parents):
            ones = [terms.Equals(slot, terms.BV(j, self.width)) for j in range(len(self.names)) if pattern >> j & 1]
            step, nothing = terms.BV(1 << i, self.num_rows), terms.BV(0, self.num_rows)
            address = terms.BVOr(address, terms.Ite(terms.Or(ones), step, nothing))
        bit = terms.BVExtract(terms.BVLShr(slots.table, address), 0, 0)
        return terms.Equals(bit, terms.BV(int(value), 1))

    # --- members ----------------------------------------------------------------------------------------------------

    def next_member(self) -> Functions | None:
        """Find a member that is not blocked, read from z3's model."""
        if not self._solve():
            return None
        functions = {}
        for variable, slots in self.slots.items():
            if variable in self.roots and self.solver.get_py_value(self.roots[variable]):
                continue
            slot_values = [self.solver.get_py_value(slot) for slot in slots.parents]
            parents = tuple(self.names[index] for index in slot_values if index < len(self.names))
            table = TruthTable(len(parents), self.solver.get_py_value(slots.table))
            functions[variable] = LocalFunction(parents, table)
        return functions

    def _solve(self) -> bool:
        """Return whether there is a model; `BudgetSpent` if z3's limit came first."""
        from pysmt.exceptions import SolverReturnedUnknownResultError

        limit = self.budget.states
        if limit == 0:
            self.budget.spend(1)  # z3 reads a limit of 0 as no limit
        self.solver.z3.set("rlimit", limit or 0)
        try:
            is_satisfiable: bool = self.solver.solve()
        except SolverReturnedUnknownResultError:
            if limit is None:
                raise
            self.budget.spend(limit + 1)
            raise AssertionError("a budget that was spent is not spent") from None
        total = self._count()
        used, self._charged = total - self._charged, total
        self.budget.spend(used if limit is None else min(used, limit))
        return is_satisfiable

    def _count(self) -> int:
        count: int = self.solver.z3.statistics().get_key_value("rlimit count")
        return count

    def block(self, functions: Functions) -> None:
        """Exclude exactly these parents and tables; no constraint if no assignment of the slots encodes them."""
        terms, equalities = self.terms, [root for v, root in self.roots.items() if v not in functions]
        if any(v not in self.slots or len(local.parents) > self.num_slots for v, local in functions.items()):
            return
        for variable, local in functions.items():
            slots, indices = self.slots[variable], sorted(self.names.index(u) for u in local.parents)
            indices += [len(self.names)] * (self.num_slots - len(indices))
            equalities += [
                terms.Equals(s, terms.BV(i, self.width)) for s, i in zip(slots.parents, indices, strict=True)
            ]
            equalities.append(terms.Equals(slots.table, terms.BV(local.table.bits, self.num_rows)))
        self.solver.add_assertion(terms.Not(terms.And(equalities)))

    def close(self) -> None:
        from pysmt.environment import get_env

        self.solver.exit()
        # Some terms are typed in the global environment, which keeps them all. Terms of different environments share
        # their hashes, so that what it keeps would slow down every search to come.
        get_env().stc.memoization.clear()
