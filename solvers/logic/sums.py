"""Sums over the paths of a lattice: numbers of members by (misfit, size), completions, and what follows from both."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

from calibrant.dsl.logic.item import Clause, Edge, Model
from calibrant.solvers.logic.elimination.lattice import SIZE_BASE, UNREACHABLE, Lattice

Keys: TypeAlias = dict[int, int]  # misfit * SIZE_BASE + size -> number


class PathSums:
    """Passes 3 and 4 for multiplicities of the groups.

    A key is misfit * SIZE_BASE + size of a path so far; either component can be left out.
    """

    def __init__(
        self,
        lattice: Lattice,
        multiplicities: list[int],
        size_limit: int | None,
        *,
        with_misfit: bool = True,
        with_size: bool = True,
        only: int | None = None,
    ) -> None:
        """with_misfit, with_size: components of keys; only: paths that end with this key alone."""
        self.lattice = lattice
        self.multiplicities = multiplicities
        self.size_limit = size_limit
        steps = lattice.steps
        misfit, size = SIZE_BASE if with_misfit else 0, int(with_size)
        self.deltas = [c * misfit + s * size for c, s in zip(steps.costs, steps.sizes, strict=True)]
        self._with_misfit = with_misfit and lattice.limit is not None
        self._with_size = with_size and size_limit is not None
        self._only = only

    @cached_property
    def _tops(self) -> list[list[int]]:
        """First key of each state that no completion brings within the misfit limit."""
        limit = self.lattice.limit
        if not self._with_misfit or limit is None:
            return [[UNREACHABLE] * len(layer.states) for layer in self.lattice.layers]
        return [[(limit + 1 - least // SIZE_BASE) * SIZE_BASE for least in row] for row in self.lattice.least]

    @cached_property
    def _least_sizes(self) -> list[list[int]]:
        """Least number of literals from each state to the end."""
        layers, sizes = self.lattice.layers, self.lattice.steps.sizes
        rows: list[list[int]] = [[0] * len(layers[-1].states)]
        for layer in reversed(layers[1:]):
            following, row = rows[-1], []
            for source in range(len(layer.starts) - 1):
                span = range(layer.starts[source], layer.starts[source + 1])
                row.append(min((sizes[layer.groups[at]] + following[layer.targets[at]] for at in span), default=0))
            rows.append(row)
        return rows[::-1]

    @cached_property
    def forward(self) -> list[list[Keys]]:
        """Number of paths to each state of each layer, by key."""
        layers, multiplicities, deltas = self.lattice.layers, self.multiplicities, self.deltas
        rows: list[list[Keys]] = [[{0: 1} for _ in layers[0].states]]
        limit = self.size_limit if self._with_size else None
        for number in range(1, len(layers)):
            layer, tops = layers[number], self._tops[number]
            following: list[Keys] = [{} for _ in layer.states]
            starts, targets, groups = layer.starts, layer.targets, layer.groups
            most = [limit - size for size in self._least_sizes[number]] if limit is not None else []
            for source, keys in enumerate(rows[-1]):
                if not keys:
                    continue
                items = list(keys.items())
                for at in range(starts[source], starts[source + 1]):
                    group = groups[at]
                    factor = multiplicities[group]
                    if not factor:
                        continue
                    target, delta = targets[at], deltas[group]
                    top, sums = tops[target], following[target]
                    if limit is None:
                        for key, paths in items:
                            key += delta
                            if key < top:
                                sums[key] = sums.get(key, 0) + paths * factor
                    else:
                        room = most[target]
                        for key, paths in items:
                            key += delta
                            if key < top and key % SIZE_BASE <= room:
                                sums[key] = sums.get(key, 0) + paths * factor
            rows.append(following)
        return rows

    @property
    def ends(self) -> Keys:
        """The number of members by key."""
        rows = self.forward[-1]
        ends = rows[0] if rows else {}
        return ends if self._only is None else {key: n for key, n in ends.items() if key == self._only}

    @cached_property
    def count(self) -> int:
        """The number of members."""
        return sum(self.ends.values())

    @cached_property
    def completions(self) -> list[list[Keys]]:
        """Number of completions of each state and key of `forward`; keys without any are left out."""
        layers, multiplicities, deltas = self.lattice.layers, self.multiplicities, self.deltas
        rows: list[list[Keys]] = [[dict.fromkeys(self.ends, 1)] if layers[-1].states else []]
        for number in range(len(layers) - 1, 0, -1):
            layer, following = layers[number], rows[-1]
            starts, targets, groups = layer.starts, layer.targets, layer.groups
            row: list[Keys] = []
            for source, keys in enumerate(self.forward[number - 1]):
                sums: Keys = {}
                if keys:
                    ways = [
                        (factor, deltas[groups[at]], ahead)
                        for at in range(starts[source], starts[source + 1])
                        if (factor := multiplicities[groups[at]]) and (ahead := following[targets[at]])
                    ]
                    # keys of the forward pass alone: completions of keys that no path has are never summed
                    for key in keys:
                        total = 0
                        for factor, delta, ahead in ways:
                            paths = ahead.get(key + delta)
                            if paths:
                                total += factor * paths
                        if total:
                            sums[key] = total
                row.append(sums)
            rows.append(row)
        return rows[::-1]

    def flows(self) -> Mapping[int, int]:
        """Return of each group the number of members with one certain formula of it."""
        flows: dict[int, int] = {}
        deltas = self.deltas
        for number in range(1, len(self.lattice.layers)):
            layer, following = self.lattice.layers[number], self.completions[number]
            starts, targets, groups = layer.starts, layer.targets, layer.groups
            for source, keys in enumerate(self.forward[number - 1]):
                behind = self.completions[number - 1][source]
                items = [(key, keys[key]) for key in behind]
                if not items:
                    continue
                for at in range(starts[source], starts[source + 1]):
                    ahead, group = following[targets[at]], groups[at]
                    if not ahead or not self.multiplicities[group]:
                        continue
                    delta, total = deltas[group], 0
                    for key, paths in items:
                        rest = ahead.get(key + delta)
                        if rest:
                            total += paths * rest
                    if total:
                        flows[group] = flows.get(group, 0) + total
        return flows

    def draw_groups(self, below: Callable[[int], int]) -> list[int]:
        """Return the groups of a path drawn with its share of the members.

        below: an integer from 0 to its argument
        """
        state, key, chosen = 0, 0, []
        for number in range(1, len(self.lattice.layers)):
            layer, following = self.lattice.layers[number], self.completions[number]
            point = below(self.completions[number - 1][state][key])
            for at in range(layer.starts[state], layer.starts[state + 1]):
                group, target = layer.groups[at], layer.targets[at]
                point -= self.multiplicities[group] * following[target].get(key + self.deltas[group], 0)
                if point < 0:
                    chosen.append(group)
                    state, key = target, key + self.deltas[group]
                    break
        return chosen

    def paths(self) -> Iterator[list[int]]:
        """Yield the groups of every path with members, depth first."""
        if not self.completions[0] or not self.completions[0][0]:
            return
        yield from self._paths(1, 0, 0, [])

    def _paths(self, number: int, state: int, key: int, chosen: list[int]) -> Iterator[list[int]]:
        if number == len(self.lattice.layers):
            yield chosen
            return
        layer, following = self.lattice.layers[number], self.completions[number]
        for at in range(layer.starts[state], layer.starts[state + 1]):
            group, target = layer.groups[at], layer.targets[at]
            after = key + self.deltas[group]
            if self.multiplicities[group] and after in following[target]:
                yield from self._paths(number + 1, target, after, [*chosen, group])


# --- Conditions on clauses, and the numbers of members by clause and by edge ------------------------------------------


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
