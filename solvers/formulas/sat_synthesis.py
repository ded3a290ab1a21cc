"""Formulas of least size through SAT, and the encoding of formulas of a given size.

The claimed size is that of `solvers.formulas.synthesis.least_formula`: the least number of nodes of a formula over the
variables, not necessarily all of them, without constants. Which of the least formulas is returned is up to the solver;
it is the same for the same table, operators, symmetry breaks and budget.

Sizes are refuted one after another. Rows are demanded when a candidate gets them wrong (counterexample-guided inductive
synthesis), and stay for the next size. A unit of the budget is a conflict of the solver.

The nodes of the formula are numbered in prefix order: the subtree of node i is i..end-1, its first argument is i + 1,
and node `end`, if any, is the next argument of i's parent. An n-ary operator is one node whatever its arity, as in
`Formula.size`. Per row, the arguments of a node are folded from the last one to the first; n-ary `iff` is "all equal",
which folds because each argument is compared with the one after it.

A symmetry break is a function that adds clauses. Each keeps some formula of every function whose least size is the
size encoded, so breaks may only be used once all smaller sizes are refuted.

Encoding of the shape, and rows added as they are needed: A. Kojevnikov, A. Kulikov and G. Yaroslavtsev, Finding
efficient circuits using SAT-solvers, 2009; W. Haaswijk, M. Soeken, A. Mishchenko and G. De Micheli, SAT-based exact
synthesis, 2020.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from itertools import pairwise
from typing import TypeAlias

from calibrant.dsl.formulas.formula import STANDARD_OPERATORS, Apply, Formula, Node
from calibrant.dsl.formulas.reference import evaluate
from calibrant.dsl.formulas.table import PartialTable, num_rows
from calibrant.solvers.formulas.catalogue import operator_set
from calibrant.solvers.outcome import Budget
from calibrant.solvers.sat import Cnf, Conflicts, Literal, add_at_most_one

# --- CNF encoding of "some formula of exactly this many nodes has these values", row by row ---------------------------


class TreeEncoding:
    """Encoding of the formulas of exactly `size` nodes; `add_row` demands a value.

    operator[i][name], leaf[i][v]: kind of node i; exactly one holds
    end[i][j]: the subtree of node i ends just before node j
    last[i]: node i is the last argument of its parent; group_end[i][j]: the arguments of its parent end just before j
    under[i][name]: the parent's operator
    """

    def __init__(self, num_vars: int, size: int, operators: Iterable[str]) -> None:
        if num_vars < 1 or size < 1:
            raise ValueError(f"formulas of {size} nodes over {num_vars} variables; both are 1 or more")
        self.cnf = Cnf()
        self.num_vars, self.size, self.operators = num_vars, size, operator_set(operators)
        new, nodes = self.cnf.variable, range(size)
        self.operator = [{o: new(f"{i} is {o}") for o in self.operators} for i in nodes]
        self.leaf = [[new(f"{i} is variable {v}") for v in range(num_vars)] for i in nodes]
        self.end = [{j: new(f"{i} ends before {j}") for j in range(i + 1, size + 1)} for i in nodes]
        self.last = [new(f"{i} is last") for i in nodes]
        self.group_end = [{j: new(f"group of {i} ends before {j}") for j in range(i + 1, size + 1)} for i in nodes]
        self.under = [{o: new(f"{i} is under {o}") for o in self.operators} for i in nodes]
        self._add_shape()

    def _add_shape(self) -> None:
        """Add the clauses by which nodes 0, 1, ... are one formula in prefix order, node 0 its root."""
        add, size = self.cnf.add, self.size
        add(self.end[0][size])
        add(self.last[0])
        for i in range(size):
            self._add_exactly_one([*self.operator[i].values(), *self.leaf[i]], f"node {i}")
            self._add_exactly_one(list(self.end[i].values()), f"end of {i}")
            self._add_exactly_one(list(self.group_end[i].values()), f"group of {i}")
            add_at_most_one(self.cnf, list(self.under[i].values()), f"parent of {i}")
            for variable in self.leaf[i]:
                add(-variable, self.end[i][i + 1])
            for literal in self.operator[i].values():
                add(-literal, -self.end[i][i + 1])
            for j, end in self.end[i].items():
                add(-end, -self.last[i], self.group_end[i][j])
                add(-end, self.last[i], -self.group_end[i][j])
                for earlier in range(i + 1, j):
                    add(-end, -self.group_end[i][earlier])
            self._add_arguments(i)

    def _add_arguments(self, i: int) -> None:
        """Pass parent operator and end of group to the first argument of node i, and on to the argument after it."""
        add, size = self.cnf.add, self.size
        for name, literal in self.operator[i].items():
            if i + 1 == size:
                add(-literal)
                continue
            add(-literal, self.under[i + 1][name])
            add(-literal, self.last[i + 1] if name == "not" else -self.last[i + 1])
            for j in range(i + 2, size + 1):
                add(-literal, -self.end[i][j], self.group_end[i + 1][j])
        for j in range(i + 1, size):
            follows = (-self.end[i][j], self.last[i])
            for k in range(j + 1, size + 1):
                add(*follows, -self.group_end[i][k], self.group_end[j][k])
            for name in self.operators:
                add(*follows, -self.under[i][name], self.under[j][name])

    def _add_exactly_one(self, literals: Sequence[Literal], label: str) -> None:
        self.cnf.add(*literals)
        add_at_most_one(self.cnf, literals, label)

    def add_row(self, row: int, value: bool) -> None:
        """Demand a value of the formula where variable v is bit v of `row`."""
        add, size = self.cnf.add, self.size
        kinds = ("value", "folded", "next value", "next folded")
        literals = [[self.cnf.variable(f"{kind} of {i} in row {row}") for i in range(size)] for kind in kinds]
        values, folded, next_value, next_folded = literals  # "next": of the argument after node i
        add(values[0] if value else -values[0])
        for i in range(size):
            for v, literal in enumerate(self.leaf[i]):
                add(-literal, values[i] if row >> v & 1 else -values[i])
            if i + 1 < size:
                for literal in self.operator[i].values():
                    self._add_equality(values[i], folded[i + 1], -literal)
            for j in range(i + 1, size):
                self._add_equality(next_folded[i], folded[j], -self.end[i][j], self.last[i])
                if "iff" in self.operators:
                    self._add_equality(next_value[i], values[j], -self.end[i][j], self.last[i])
            if i:
                self._add_fold(i, values[i], folded[i], next_value[i], next_folded[i])

    def _add_fold(self, i: int, value: Literal, folded: Literal, next_value: Literal, next_folded: Literal) -> None:
        """Define folded[i]: argument i combined with those after it, for each operator that the parent may be."""
        add, last = self.cnf.add, self.last[i]
        for name, under in self.under[i].items():
            match name:
                case "not":
                    self._add_equality(folded, -value, -under)
                case "iff":  # folded: all arguments from i on are equal
                    add(-under, -last, folded)
                    add(-under, last, -folded, next_folded)
                    self._add_equality(value, next_value, -under, last, -folded)
                    add(-under, last, folded, -next_folded, value, next_value)
                    add(-under, last, folded, -next_folded, -value, -next_value)
                case "xor":
                    self._add_equality(folded, value, -under, -last)
                    self._add_equality(folded, value, -under, last, next_folded)
                    self._add_equality(folded, -value, -under, last, -next_folded)
                case "and" | "or":  # `or` is `and` with everything negated
                    sign = 1 if name == "and" else -1
                    self._add_equality(folded, value, -under, -last)
                    add(-under, -sign * folded, sign * value)
                    add(-under, last, -sign * folded, sign * next_folded)
                    add(-under, last, sign * folded, -sign * value, -sign * next_folded)
                case _:
                    raise ValueError(f"no clauses for the operator '{name}'")

    def _add_equality(self, first: Literal, second: Literal, *unless: Literal) -> None:
        """Demand that two literals are equal, unless one of the others holds."""
        self.cnf.add(*unless, -first, second)
        self.cnf.add(*unless, first, -second)

    def formula(self, model: Sequence[int], names: Sequence[str]) -> Formula:
        """Decode the formula of a model, whose entry v - 1 is variable v; names[v] is variable v of the rows."""
        # backwards: arguments of a node have larger numbers
        programs: dict[int, tuple[Node, ...]] = {}  # node -> postfix program of its subtree
        ends = [next(j for j, literal in end.items() if model[literal - 1] > 0) for end in self.end]
        for i in reversed(range(self.size)):
            name = next((o for o, literal in self.operator[i].items() if model[literal - 1] > 0), None)
            if name is None:
                programs[i] = (names[next(v for v, leaf in enumerate(self.leaf[i]) if model[leaf - 1] > 0)],)
                continue
            child, arity, nodes = i + 1, 0, list[Node]()
            while child < ends[i]:
                nodes.extend(programs[child])
                child, arity = ends[child], arity + 1
            programs[i] = (*nodes, Apply(name, arity))
        return Formula(programs[0])


# --- symmetry breaks ------------------------------------------------------------------------------------------------

SymmetryBreak: TypeAlias = Callable[[TreeEncoding], None]


def order_arguments_by_size(tree: TreeEncoding) -> None:
    """Order the arguments of a node by size: all operators are symmetric."""
    for i in range(1, tree.size):
        for j in range(i + 1, tree.size):
            for k in range(j + 1, min(tree.size + 1, 2 * j - i)):
                tree.cnf.add(tree.last[i], -tree.end[i][j], -tree.end[j][k])


def order_variables(tree: TreeEncoding) -> None:
    """Order adjacent variables under one operator; under `and` and `or` forbid equal ones."""
    for i, j in pairwise(range(1, tree.size)):
        for v, literal in enumerate(tree.leaf[i]):
            for smaller_literal in tree.leaf[j][:v]:
                tree.cnf.add(tree.last[i], -literal, -smaller_literal)
            for name in (name for name in tree.operators if name in ("and", "or")):
                tree.cnf.add(tree.last[i], -literal, -tree.leaf[j][v], -tree.under[i][name])


def forbid_nesting(tree: TreeEncoding) -> None:
    """Forbid an operator directly under itself, except `iff`: a formula without is no larger."""
    for i in range(1, tree.size):
        for name in (name for name in tree.operators if name != "iff"):
            tree.cnf.add(-tree.under[i][name], -tree.operator[i][name])


def forbid_negated_parity(tree: TreeEncoding) -> None:
    """Forbid `not` directly under `xor`: it may stand above it."""
    if {"not", "xor"} <= set(tree.operators):
        for i in range(1, tree.size):
            tree.cnf.add(-tree.under[i]["xor"], -tree.operator[i]["not"])


SYMMETRY_BREAKS: tuple[SymmetryBreak, ...] = (
    order_arguments_by_size,
    order_variables,
    forbid_nesting,
    forbid_negated_parity,
)


# --- Formulas of least size through SAT: a check of the enumeration, and a continuation beyond its catalogues ---------


class SatSynthesis:
    """Search for the least size of a formula that agrees with a table, one size at a time.

    lower_bound: proven: no smaller formula agrees
    rows: rows demanded so far, in the order in which candidates failed on them
    """

    def __init__(
        self,
        partial: PartialTable,
        names: Sequence[str],
        *,
        operators: Iterable[str] = STANDARD_OPERATORS,
        symmetry_breaks: Sequence[SymmetryBreak] = SYMMETRY_BREAKS,
    ) -> None:
        if len(names) != partial.num_vars or len(set(names)) != len(names):
            raise ValueError(f"{len(names)} names {list(names)} for the {partial.num_vars} variables of a table")
        self.partial = partial
        self.names = tuple(names)
        self.operators = operator_set(operators)
        self.lower_bound = 1
        self.rows: list[int] = []
        self._symmetry_breaks = tuple(symmetry_breaks)

    def advance(self, budget: Budget) -> Formula | None:
        """Search for a formula of `lower_bound` nodes and return it; without one, raise the bound and return None.

        `BudgetSpent` if the budget ends first; the bound stays.
        """
        tree = TreeEncoding(self.partial.num_vars, self.lower_bound, self.operators)
        for add_clauses in self._symmetry_breaks:
            add_clauses(tree)
        # rows on which smaller candidates failed: most candidates of this size fail on them too
        for row in self.rows:
            tree.add_row(row, self._value(row))
        with closing(Conflicts(tree.cnf, budget)) as search:
            while (model := search.model()) is not None:
                formula = tree.formula(model, self.names)
                failed_row = self._first_wrong(formula)
                if failed_row is None:
                    assert formula.size == self.lower_bound, str(formula)
                    return formula
                num_clauses = len(tree.cnf.clauses)
                self.rows.append(failed_row)
                tree.add_row(failed_row, self._value(failed_row))
                for clause in tree.cnf.clauses[num_clauses:]:
                    search.add(clause)
        self.lower_bound += 1
        return None

    def _value(self, row: int) -> bool:
        return bool(self.partial.value >> row & 1)

    def _first_wrong(self, formula: Formula) -> int | None:
        """Return the first determined row on which the formula is wrong, by the reference; None without one."""
        for row in range(num_rows(self.partial.num_vars)):
            if self.partial.care >> row & 1:
                value = evaluate(formula, {name: row >> index & 1 for index, name in enumerate(self.names)})
                if value != self._value(row):
                    assert row not in self.rows, (str(formula), row)
                    return row
        return None
