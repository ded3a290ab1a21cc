"""Conjunctive normal form with named variables: cardinality and acyclicity constraints, and DIMACS export.

A literal is a non-zero integer, negative for a negated variable, as python-sat and DIMACS write it. Nothing here
imports a solver.

Sources: at most one by a ladder and counting by a sequential counter, C. Sinz, Towards an optimal CNF encoding of
Boolean cardinality constraints, 2005; precedence as a linear order or as levels, M. Gebser, T. Janhunen and
J. Rintanen, SAT modulo graphs: acyclicity, 2014.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, pairwise
from typing import TypeAlias

Literal: TypeAlias = int
Clause: TypeAlias = list[Literal]
Arc: TypeAlias = tuple[int, int]


class Cnf:
    """A conjunction of clauses.

    clauses: in the order in which they were added
    labels: labels[i] is the meaning of variable i + 1; unique
    """

    def __init__(self) -> None:
        self.clauses: list[Clause] = []
        self.labels: list[str] = []

    def variable(self, label: str) -> Literal:
        """Create a variable."""
        self.labels.append(label)
        return len(self.labels)

    def add(self, *literals: Literal) -> None:
        """Add a clause: at least one of the literals holds."""
        self.clauses.append(list(literals))

    @property
    def num_variables(self) -> int:
        return len(self.labels)

    def dimacs(self) -> Iterator[str]:
        """Yield the lines of a DIMACS file; a comment `c NUMBER LABEL` for every variable comes first."""
        for index, label in enumerate(self.labels, start=1):
            yield f"c {index} {label}"
        yield f"p cnf {self.num_variables} {len(self.clauses)}"
        for clause in self.clauses:
            yield " ".join(map(str, [*clause, 0]))


# --- counting -------------------------------------------------------------------------------------------------------


def add_at_most_one(cnf: Cnf, literals: Sequence[Literal], label: str) -> None:
    """Demand that no two of the literals hold: by pairs where there are few, else by a ladder "one of the first i"."""
    # up to 4 literals there are at most 6 pairs, fewer clauses than a ladder needs, and no auxiliary variables
    if len(literals) <= 4:
        for first, second in combinations(literals, 2):
            cnf.add(-first, -second)
        return
    held: Literal | None = None
    for index, literal in enumerate(literals):
        if held is not None:
            cnf.add(-held, -literal)
        if index < len(literals) - 1:
            step = cnf.variable(f"{label}: one of the first {index + 1}")
            cnf.add(-literal, step)
            if held is not None:
                cnf.add(-held, step)
            held = step


def add_exactly(cnf: Cnf, literals: Sequence[Literal], number: int, label: str) -> None:
    """Demand that exactly `number` of the literals hold, by a sequential counter: O(len(literals) * number) clauses.

    counts[j] stands for "more than j of the literals so far"; j <= number.
    """
    if number > len(literals):
        cnf.add()
        return
    counts: list[Literal] = []
    for index, literal in enumerate(literals):
        reachable = min(index + 1, number + 1)
        after = [cnf.variable(f"{label}: more than {j} of the first {index + 1}") for j in range(reachable)]
        for j, more in enumerate(after):
            below = counts[j - 1] if j else None  # j held before; for j = 0 that is no condition
            not_more = counts[j] if j < len(counts) else None  # absent where it cannot be reached yet
            cnf.add(-literal, more, *([-below] if below else []))
            if below:
                cnf.add(-more, below)
            cnf.add(-more, literal, *([not_more] if not_more else []))
            if not_more:
                cnf.add(-not_more, more)
        counts = after
    if number:
        cnf.add(counts[number - 1])
    if number < len(counts):
        cnf.add(-counts[number])


# --- acyclicity: the arcs whose literals hold form no cycle ----------------------------------------------------------


def add_linear_order(cnf: Cnf, arcs: Mapping[Arc, Literal]) -> None:
    """Demand a total order of the nodes in which arcs go forward: n**3 / 3 clauses for transitivity."""
    nodes = sorted({node for arc in arcs for node in arc})
    before: dict[Arc, Literal] = {}
    for u, v in combinations(nodes, 2):
        before[u, v] = cnf.variable(f"{u} before {v}")
        before[v, u] = -before[u, v]
    # both cyclic orientations of every triple are excluded; a tournament without cyclic triples is transitive
    for u, v, w in combinations(nodes, 3):
        cnf.add(-before[u, v], -before[v, w], before[u, w])
        cnf.add(before[u, v], before[v, w], -before[u, w])
    for arc, literal in arcs.items():
        cnf.add(-literal, before[arc])


def add_levels(cnf: Cnf, arcs: Mapping[Arc, Literal]) -> dict[int, list[Literal]]:
    """Demand a level for every node such that arcs go up; at_least[v][i] means that v's level is at least i + 1."""
    nodes = sorted({node for arc in arcs for node in arc})
    top = len(nodes) - 1
    at_least = {v: [cnf.variable(f"level of {v} >= {i}") for i in range(1, top + 1)] for v in nodes}
    for literals in at_least.values():
        for lower, higher in pairwise(literals):
            cnf.add(-higher, lower)
    for (u, v), literal in arcs.items():
        cnf.add(-literal, at_least[v][0])
        for i in range(top - 1):
            cnf.add(-literal, -at_least[u][i], at_least[v][i + 1])
        cnf.add(-literal, -at_least[u][top - 1])
    return at_least


def add_topological_levels(cnf: Cnf, arcs: Mapping[Arc, Literal]) -> None:
    """Demand acyclicity by levels alone."""
    if arcs:
        add_levels(cnf, arcs)


def add_tight_levels(cnf: Cnf, arcs: Mapping[Arc, Literal]) -> None:
    """Demand acyclicity by levels that are as low as possible, so that a DAG has exactly one assignment of levels.

    A symmetry break on `add_topological_levels`. The literals of the arcs must be exact: true only where there is an
    arc.
    """
    if not arcs:
        return
    at_least = add_levels(cnf, arcs)
    for v, literals in at_least.items():
        for i, literal in enumerate(literals):
            reasons = []
            for u in (u for u, child in arcs if child == v):
                if i == 0:
                    reasons.append(arcs[u, v])
                    continue
                reason = cnf.variable(f"{u} -> {v} from level >= {i}")
                cnf.add(-reason, arcs[u, v])
                cnf.add(-reason, at_least[u][i - 1])
                reasons.append(reason)
            cnf.add(-literal, *reasons)
