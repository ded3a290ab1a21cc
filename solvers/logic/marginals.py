"""Conditions on clauses, and the numbers of members by clause and by edge."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from calibrant.dsl.logic.clause import Clause, Model
from calibrant.dsl.logic.prior import Edge
from calibrant.solvers.logic.elimination.lattice import Lattice
from calibrant.solvers.logic.sums import PathSums


@dataclass(frozen=True, slots=True)
class Marginals:
    """Numbers of members that have a clause or an edge, sorted; those of no member are left out."""

    clauses: Mapping[Clause, int]
    edges: Mapping[Edge, int]


@dataclass(frozen=True, slots=True)
class Restriction:
    """Clauses that a member has (`present`) or lacks (`absent`)."""

    present: frozenset[Clause] = frozenset()
    absent: frozenset[Clause] = frozenset()

    def adding(self, clause: Clause, *, present: bool) -> Restriction:
        """Return the restriction with one more condition."""
        if present:
            return Restriction(self.present | {clause}, self.absent)
        return Restriction(self.present, self.absent | {clause})

    def words(self) -> list[str]:
        """Return the conditions in words, sorted."""
        return [f"with {clause}" for clause in sorted(self.present)] + [
            f"without {clause}" for clause in sorted(self.absent)
        ]

    def admits(self, model: Model) -> bool:
        """Return whether a model meets the conditions."""
        return self.present <= model and not self.absent & model

    def multiplicities(self, lattice: Lattice) -> list[int]:
        """Return of each group the number of formulas that meet the conditions."""
        numbers = list(lattice.steps.multiplicities)
        nodes = self._nodes(lattice)
        if None in nodes:
            return [0] * len(numbers)
        for group in _groups(lattice):
            if lattice.steps.nodes[group] in nodes:
                numbers[group] = len(self.formulas(lattice, group))
        return numbers

    def _nodes(self, lattice: Lattice) -> set[int | None]:
        """Return the nodes with conditions; None among them if one of no use would need a formula."""
        number = lattice.network.number
        nodes: set[int | None] = {number.get(clause.target) for clause in self.present}
        return nodes | {number[clause.target] for clause in self.absent if clause.target in number}

    def formulas(self, lattice: Lattice, group: int) -> list[tuple[int, ...]]:
        """Return the formulas of a group that meet the conditions, as clause numbers."""
        formulas = lattice.steps.formulas(group)
        node = lattice.network.nodes[lattice.steps.nodes[group]]
        present = {clause for clause in self.present if clause.target == node}
        absent = {clause for clause in self.absent if clause.target == node}
        if not present and not absent:
            return formulas
        chosen = []
        for formula in formulas:
            clauses = set(lattice.formula(group, formula))
            if present <= clauses and not absent & clauses:
                chosen.append(formula)
        return chosen

    def marginals(self, lattice: Lattice, sums: PathSums) -> Marginals:
        """Return the numbers of members by clause and edge."""
        by_clause: dict[tuple[int, int], int] = {}
        by_edge: dict[tuple[int, int], int] = {}
        for group, flow in sums.flows().items():
            node = lattice.steps.nodes[group]
            masks = lattice.steps.clauses(node).literals
            for formula in self.formulas(lattice, group):
                literals = 0
                for number in formula:
                    by_clause[node, number] = by_clause.get((node, number), 0) + flow
                    literals |= masks[number]
                while literals:
                    low = literals & -literals
                    literals ^= low
                    edge = (node, low.bit_length() - 1)
                    by_edge[edge] = by_edge.get(edge, 0) + flow
        clauses = {lattice.clause(node, number): count for (node, number), count in by_clause.items()}
        edges = {_edge(lattice, node, literal): count for (node, literal), count in by_edge.items()}
        return Marginals(dict(sorted(clauses.items())), dict(sorted(edges.items())))


NO_RESTRICTION = Restriction()


def _groups(lattice: Lattice) -> Iterable[int]:
    return sorted({group for layer in lattice.layers for group in layer.groups})


def _edge(lattice: Lattice, node: int, literal: int) -> Edge:
    network = lattice.network
    source, sign = network.literals[node][literal]
    return Edge(network.stimuli[~source] if source < 0 else network.nodes[source], sign, network.nodes[node])
