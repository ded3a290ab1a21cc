"""SAT and MaxSAT through python-sat: clauses with named variables, and solvers whose conflicts a budget limits.

A literal is a non-zero integer, negative for a negated variable, as in python-sat and DIMACS. Importing this module
imports no solver.

Sources: the sequential counter, C. Sinz, Towards an optimal CNF encoding of Boolean cardinality constraints, 2005; an
acyclic relation by a linear order, M. Gebser, T. Janhunen and J. Rintanen, SAT modulo graphs: acyclicity, 2014.

RC2 raises a lower bound with each unsatisfiable core that it finds (A. Ignatiev, A. Morgado and J. Marques-Silva, RC2:
an efficient MaxSAT solver, 2019), so there is a proven bound whenever the budget ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any, TypeAlias

from calibrant.solvers.outcome import Budget

# --- Conjunctive normal form with named variables: cardinality and acyclicity constraints ----------------------------
Literal: TypeAlias = int
Clause: TypeAlias = list[Literal]
Arc: TypeAlias = tuple[int, int]  # from node, to node


class Cnf:
    """A conjunction of clauses.

    clauses: in the order in which they were added
    labels: labels[i] says in words what variable i + 1 stands for; all are different
    """

    def __init__(self) -> None:
        self.clauses: list[Clause] = []
        self.labels: list[str] = []

    def variable(self, label: str) -> Literal:
        """Create a variable and return its positive literal."""
        self.labels.append(label)
        return len(self.labels)

    def add(self, *literals: Literal) -> None:
        """Add a clause: at least one of the literals holds."""
        self.clauses.append(list(literals))

    @property
    def num_variables(self) -> int:
        return len(self.labels)


# --- counting -------------------------------------------------------------------------------------------------------


def add_at_most_one(cnf: Cnf, literals: Sequence[Literal], label: str) -> None:
    """Demand that at most one literal holds: by pairs if there are few, else by variables "one of the first i"."""
    # 4 literals have 6 pairs: fewer clauses than the other encoding, and no auxiliary variables
    if len(literals) <= 4:
        for first, second in combinations(literals, 2):
            cnf.add(-first, -second)
        return
    any_before: Literal | None = None
    for index, literal in enumerate(literals):
        if any_before is not None:
            cnf.add(-any_before, -literal)
        if index < len(literals) - 1:
            any_so_far = cnf.variable(f"{label}: one of the first {index + 1}")
            cnf.add(-literal, any_so_far)
            if any_before is not None:
                cnf.add(-any_before, any_so_far)
            any_before = any_so_far


def add_exactly(cnf: Cnf, literals: Sequence[Literal], number: int, label: str) -> None:
    """Demand that exactly `number` of the literals hold, by a sequential counter: O(len(literals) * number) clauses.

    counts[j] stands for "more than j of the literals so far hold", for j up to `number`.
    """
    if number > len(literals):
        cnf.add()
        return
    counts: list[Literal] = []
    for index, literal in enumerate(literals):
        reachable = min(index + 1, number + 1)
        after = [cnf.variable(f"{label}: more than {j} of the first {index + 1}") for j in range(reachable)]
        for j, more in enumerate(after):
            at_least_j_before = counts[j - 1] if j else None  # no condition for j = 0
            more_before = counts[j] if j < len(counts) else None  # None: there are too few literals so far
            cnf.add(-literal, more, *([-at_least_j_before] if at_least_j_before else []))
            if at_least_j_before:
                cnf.add(-more, at_least_j_before)
            cnf.add(-more, literal, *([more_before] if more_before else []))
            if more_before:
                cnf.add(-more_before, more)
        counts = after
    if number:
        cnf.add(counts[number - 1])
    if number < len(counts):
        cnf.add(-counts[number])


# --- acyclicity: the arcs whose literals hold form no cycle ----------------------------------------------------------


def add_linear_order(cnf: Cnf, arcs: Mapping[Arc, Literal]) -> None:
    """Demand a linear order of the nodes in which arcs that hold go forward: n**3 / 3 clauses for n nodes."""
    nodes = sorted({node for arc in arcs for node in arc})
    before: dict[Arc, Literal] = {}
    for u, v in combinations(nodes, 2):
        before[u, v] = cnf.variable(f"{u} before {v}")
        before[v, u] = -before[u, v]
    # both cyclic orientations of every triple are excluded; a tournament without cyclic triples is a linear order
    for u, v, w in combinations(nodes, 3):
        cnf.add(-before[u, v], -before[v, w], before[u, w])
        cnf.add(before[u, v], before[v, w], -before[u, w])
    for arc, literal in arcs.items():
        cnf.add(-literal, before[arc])


# --- Incremental SAT solver through python-sat, with conflicts charged to a budget ------------------------------------
SOLVER = "cadical153"  # is incremental, writes proofs, and keeps to limits of conflicts, which Glucose does not


class Charged:
    """A python-sat solver whose conflicts are charged to a budget; its other attributes are those of the solver."""

    def __init__(self, solver: Any, budget: Budget, states: int = 1) -> None:
        """Wrap a solver; one conflict costs `states` states of the budget."""
        self._solver = solver
        self._budget = budget
        self._states = states
        self._num_counted = 0

    def solve_limited(self, assumptions: Sequence[int] = (), expect_interrupt: bool = False) -> bool:
        """Return whether there is a model under the assumptions; raise `BudgetSpent` if that was not decided.

        The name and the parameters are those by which python-sat's RC2 calls it.
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
        # a model found with the last conflict counts; conflicts by which the solver exceeds the limit are not charged
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
        """Return a model as literals, that of variable v at index v - 1; None if there is none.

        Raise `BudgetSpent` if that was not decided.
        """
        if not self.solver.solve_limited():
            return None
        model: list[int] = self.solver.get_model()
        # variables in no clause are unknown to the solver: any value will do
        return model + [-v for v in range(len(model) + 1, self.cnf.num_variables + 1)]

    def add(self, clause: Sequence[int]) -> None:
        self.solver.add_clause(clause)

    def close(self) -> None:
        self.solver.delete()


# --- Incremental weighted MaxSAT: python-sat's RC2, its conflicts charged to a budget ---------------------------------


class CoreGuided:
    """Models of least cost of a CNF; a model costs the sum of the weights of preferred literals that do not hold.

    at_least: proven lower bound of the cost
    """

    def __init__(self, cnf: Cnf, budget: Budget, *, states: int = 1) -> None:
        """Load clauses; one conflict costs `states` states of the budget."""
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
        # it goes to RC2's SAT solver: cores found so far stay valid, as clauses are only added
        self._solver.add_clause(list(clause))

    def cheapest_model(self) -> set[Literal] | None:
        """Return the positive literals of a model of least cost; None without a model.

        Raise `BudgetSpent` if that was not decided.
        """
        model = self._rc2.compute()
        return None if model is None else {literal for literal in model if literal > 0}

    def settle(self) -> None:
        """Exclude all models but those of least cost; call after `cheapest_model`."""
        for literal in self.optimum_assumptions():
            self.add([literal])

    def optimum_assumptions(self) -> list[Literal]:
        """Return assumptions under which exactly the models of least cost are left; call after `cheapest_model`."""
        # RC2's current assumptions; not `active_assumps`, which python-sat before 1.9.dev16 lacks
        return [*self._rc2.sels, *self._rc2.sums]

    def model(self, assumptions: Iterable[Literal]) -> set[Literal] | None:
        """Return the positive literals of a model of any cost under the assumptions; None if there is none."""
        if not self._solver.solve_limited(assumptions=list(assumptions)):
            return None
        return {literal for literal in self._solver.get_model() if 0 < literal <= self._num_variables}

    def close(self) -> None:
        self._rc2.delete()
