"""Rows and interventions as structure learning sees them; learned graphs, and constraints on them.

A graph is one mask per variable: bit u of mask v is set where u -> v or u - v. An undirected edge is set both ways.

Orders, blocks, known roots, blacklists and whitelists are all expressed by two masks for each variable.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

# --- Rows and interventions as structure learning sees them: one binary table, and which rows each variable was set in
MAX_VARIABLES = 62  # a set of variables is a mask in a signed 64-bit integer

U64 = npt.NDArray[np.uint64]

Mask: TypeAlias = int
"""A set of variables, bit per index into the frame's variables."""

Dag: TypeAlias = tuple[Mask, ...]
"""The parents of every variable."""


@dataclass(frozen=True, slots=True, eq=False)
class Frame:
    """A table of binary rows.

    variables: names in column order, by which greedy searches break ties
    values: [rows] bit v of a row is the value of variable v
    clamped: [rows] bit v says that variable v was set by intervention in this row
    """

    variables: tuple[str, ...]
    values: U64
    clamped: U64

    def __post_init__(self) -> None:
        if not 1 <= len(self.variables) <= MAX_VARIABLES:
            raise ValueError(f"{len(self.variables)} variables; 1 to {MAX_VARIABLES} are supported")
        if len(set(self.variables)) != len(self.variables):
            raise ValueError(f"a variable is named twice in {', '.join(self.variables)}")

    @property
    def num_rows(self) -> int:
        return len(self.values)

    @property
    def num_vars(self) -> int:
        return len(self.variables)

    def take(self, rows: npt.NDArray[np.int64]) -> Frame:
        """Return the rows at these positions, in this order, with their interventions."""
        return Frame(self.variables, self.values[rows], self.clamped[rows])

    def reorder(self, variables: Sequence[str]) -> Frame:
        """Return the rows with the columns in another order."""
        if sorted(variables) != sorted(self.variables):
            raise ValueError(f"{', '.join(variables)} is not an order of {', '.join(self.variables)}")
        order = [self.variables.index(v) for v in variables]
        return Frame(tuple(variables), _permute_bits(self.values, order), _permute_bits(self.clamped, order))

    def mask(self, names: Iterable[str]) -> Mask:
        return sum(1 << self.variables.index(name) for name in set(names))

    def dag(self, parents: Mapping[str, Iterable[str]]) -> Dag:
        """Return the parents of each variable as masks; a variable that is not a key has none."""
        unknown = set(parents) - set(self.variables)
        if unknown:
            raise ValueError(f"unknown variables {', '.join(sorted(unknown))}; known: {', '.join(self.variables)}")
        return tuple(self.mask(parents.get(v, ())) for v in self.variables)

    def names(self, mask: Mask) -> tuple[str, ...]:
        """Return the members of a set, in column order."""
        return tuple(v for i, v in enumerate(self.variables) if mask >> i & 1)


def frame_from_columns(variables: Sequence[str], values: Sequence[int], clamped: Sequence[int], num_rows: int) -> Frame:
    """Return the table of columns as integers, bit r for row r: values, and the rows in which the variable was set."""
    return Frame(tuple(variables), _row_words(values, num_rows), _row_words(clamped, num_rows))


def frame_from_rows(
    variables: Sequence[str], rows: Sequence[str], clamped: Mapping[str, Iterable[int]] | None = None
) -> Frame:
    """Return the table of rows as strings, a character 0 or 1 per variable.

    clamped: variable -> positions (from 0, in any order) of the rows in which it was set
    """
    for position, row in enumerate(rows):
        if len(row) != len(variables) or set(row) - {"0", "1"}:
            raise ValueError(f"row {position} is {row!r}; expected {len(variables)} characters 0 or 1")
    values = np.array([int(row[::-1], 2) for row in rows], np.uint64)
    set_in = np.zeros(len(rows), np.uint64)
    for variable, positions in (clamped or {}).items():
        if variable not in variables:
            raise ValueError(f"unknown variable {variable!r}; known: {', '.join(variables)}")
        for position in positions:
            if not 0 <= position < len(rows):
                raise ValueError(f"{variable} is set in row {position}; rows are 0 to {len(rows) - 1}")
            set_in[position] |= np.uint64(1 << list(variables).index(variable))
    return Frame(tuple(variables), values, set_in)


def _row_words(columns: Sequence[int], num_rows: int) -> U64:
    """Transpose bit columns into one word per row."""
    num_bytes = -(-num_rows // 8)
    packed = np.zeros(num_rows, np.uint64)
    for index, column in enumerate(columns):
        octets = np.frombuffer(column.to_bytes(num_bytes, "little"), np.uint8)
        bits = np.unpackbits(octets, count=num_rows, bitorder="little")
        packed |= bits.astype(np.uint64) << np.uint64(index)
    return packed


def _permute_bits(words: U64, order: Sequence[int]) -> U64:
    """Return words whose bit i is bit order[i] of the given ones."""
    moved = np.zeros_like(words)
    for index, source in enumerate(order):
        moved |= (words >> np.uint64(source) & np.uint64(1)) << np.uint64(index)
    return moved


# --- Constraints on a learned structure: per variable the parents it may and must have, and the maximum number --------
Arc: TypeAlias = tuple[str, str]
"""From parent to child."""


@dataclass(frozen=True, slots=True)
class Constraints:
    """Admissible parents of each variable of a frame.

    allowed: per variable the mask of variables that may be its parents
    required: per variable the mask of those that must; a subset of `allowed`, without a cycle
    max_parents: no parent is added beyond this number; required ones may exceed it
    earlier: per variable the mask of those that are known to come before it, parents or not; it only restricts the
        orders in averages over orders
    """

    allowed: tuple[Mask, ...]
    required: tuple[Mask, ...]
    max_parents: int
    earlier: tuple[Mask, ...]

    def __post_init__(self) -> None:
        if self.max_parents < 0:
            raise ValueError(f"max_parents is {self.max_parents}")
        if not len(self.allowed) == len(self.required) == len(self.earlier):
            lengths = len(self.allowed), len(self.required), len(self.earlier)
            raise ValueError(f"masks for {', '.join(map(str, lengths))} variables")
        for child, (may, must) in enumerate(zip(self.allowed, self.required, strict=True)):
            if may >> child & 1 or must & ~may:
                raise ValueError(f"variable {child} may have the parents {may:#b} and must have {must:#b}")
        if not is_acyclic(self.required):
            raise ValueError("the required arcs close a cycle")
        if not is_acyclic(self.earlier):
            raise ValueError("a variable is known to come before itself")

    @property
    def num_vars(self) -> int:
        return len(self.allowed)

    def arrays(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return `allowed` and `required` for the kernels."""
        return np.array(self.allowed, np.int64), np.array(self.required, np.int64)

    def admits(self, dag: Dag) -> bool:
        """Return whether a structure is acyclic and obeys every mask and the maximum."""
        fits = all(
            parents & ~may == 0
            and must & ~parents == 0
            and (parents.bit_count() <= self.max_parents or parents == must)
            for parents, may, must in zip(dag, self.allowed, self.required, strict=True)
        )
        return fits and is_acyclic(dag)

    def with_roots(self, roots: Mask) -> Constraints:
        """Return the constraints with these variables as roots, which come first as far as the known order permits."""
        allowed = tuple(0 if roots >> v & 1 else may for v, may in enumerate(self.allowed))
        earlier = list(self.earlier)
        for v in range(self.num_vars):
            if not roots >> v & 1:
                earlier[v] |= sum(
                    1 << r for r in range(self.num_vars) if roots >> r & 1 and not self.earlier[r] >> v & 1
                )
        return replace(self, allowed=allowed, earlier=tuple(earlier))


def free_constraints(num_vars: int, *, max_parents: int | None = None) -> Constraints:
    """Return constraints that admit every DAG, with at most `max_parents` parents a variable if given."""
    full = (1 << num_vars) - 1
    allowed = tuple(full ^ (1 << v) for v in range(num_vars))
    nothing = (0,) * num_vars
    return Constraints(allowed, nothing, num_vars - 1 if max_parents is None else max_parents, nothing)


def arc_constraints(
    variables: Sequence[str],
    *,
    blacklist: Iterable[Arc] = (),
    whitelist: Iterable[Arc] = (),
    max_parents: int | None = None,
) -> Constraints:
    """Return constraints of forbidden and required arcs, with bnlearn's precedence.

    A whitelisted arc is required even if it is blacklisted too, and its reverse is forbidden.
    """
    free = free_constraints(len(variables), max_parents=max_parents)
    allowed, required = list(free.allowed), [0] * len(variables)
    index = {v: i for i, v in enumerate(variables)}
    for parent, child in blacklist:
        allowed[index[child]] &= ~(1 << index[parent])
    demanded = set(whitelist)
    for parent, child in sorted(demanded):
        if parent == child or (child, parent) in demanded:
            raise ValueError(f"the whitelist has {parent} -> {child} and its reverse")
        required[index[child]] |= 1 << index[parent]
        allowed[index[child]] |= 1 << index[parent]
        allowed[index[parent]] &= ~(1 << index[child])
    return replace(free, allowed=tuple(allowed), required=tuple(required))


def order_constraints(variables: Sequence[str], order: Sequence[str], *, max_parents: int | None = None) -> Constraints:
    """Return the constraints that parents come earlier in a full order."""
    return block_constraints(variables, [(v,) for v in order], max_parents=max_parents)


def block_constraints(
    variables: Sequence[str], blocks: Sequence[Sequence[str]], *, max_parents: int | None = None
) -> Constraints:
    """Return the constraints that parents are in the same or an earlier block of a partition of the variables."""
    if sorted(v for block in blocks for v in block) != sorted(variables):
        raise ValueError(f"the blocks {blocks} are not a partition of {', '.join(variables)}")
    block_of = {v: i for i, block in enumerate(blocks) for v in block}
    earlier = tuple(sum(1 << i for i, u in enumerate(variables) if block_of[u] < block_of[v]) for v in variables)
    free = free_constraints(len(variables), max_parents=max_parents)
    later = [sum(1 << i for i, before in enumerate(earlier) if before >> v & 1) for v in range(len(variables))]
    allowed = tuple(may & ~after for may, after in zip(free.allowed, later, strict=True))
    return replace(free, allowed=allowed, earlier=earlier)


def root_constraints(variables: Sequence[str], roots: Iterable[str], *, max_parents: int | None = None) -> Constraints:
    """Return the constraints that the roots have no parents."""
    index = {v: i for i, v in enumerate(variables)}
    return free_constraints(len(variables), max_parents=max_parents).with_roots(sum(1 << index[v] for v in set(roots)))


def is_acyclic(dag: Dag) -> bool:
    """Return whether the parent sets admit a topological order."""
    placed, waiting = 0, list(range(len(dag)))
    while waiting:
        ready = [v for v in waiting if dag[v] & ~placed == 0]
        if not ready:
            return False
        placed |= sum(1 << v for v in ready)
        waiting = [v for v in waiting if not placed >> v & 1]
    return True


# --- Learned graphs with arcs and undirected edges, and the DAG in each of them that agrees with a disclosure ---------
Graph: TypeAlias = tuple[Mask, ...]


class Placement(NamedTuple):
    """A DAG, and a topological order of it as indices of the variables."""

    dag: Dag
    order: tuple[int, ...]


def graph_from_matrix(may_cause: Any) -> Graph:
    """Return the graph of an adjacency matrix, whose entry [u][v] is not 0 if u -> v or u - v."""
    size = len(may_cause)
    return tuple(sum(1 << u for u in range(size) if may_cause[u][v]) for v in range(size))


def adjacent(graph: Graph, variable: int) -> Mask:
    """Return the variables with an edge to a variable, of any direction."""
    return graph[variable] | children(graph, variable)


def children(graph: Graph, variable: int) -> Mask:
    """Return the variables that the variable may be a parent of."""
    return sum(1 << v for v, parents in enumerate(graph) if parents >> variable & 1)


def disclosed_graph(graph: Graph, constraints: Constraints) -> Graph:
    """Return the graph with its edges made to agree with the constraints.

    An undirected edge that is allowed in one direction only is directed; an arc that is allowed only in reverse is
    reversed; an edge that is allowed in neither direction is dropped. No edge is added.
    """
    edges = list(graph)
    for v in range(len(graph)):
        for u in range(v):
            ways = graph[v] >> u & 1, graph[u] >> v & 1
            allowed = constraints.allowed[v] >> u & 1, constraints.allowed[u] >> v & 1
            forward, backward = ways[0] & allowed[0], ways[1] & allowed[1]
            if not forward and not backward and any(ways):
                forward, backward = allowed
            edges[v] = edges[v] & ~(1 << u) | forward << u
            edges[u] = edges[u] & ~(1 << v) | backward << v
    return tuple(edges)


def orient(graph: Graph, constraints: Constraints) -> Placement:
    """Return a DAG with the edges of a graph from `disclosed_graph`, in an order that extends the known one.

    Variables are placed from the last to the first (Dor and Tarsi 1992). Preferred is one without outgoing arcs whose
    undirected neighbours are adjacent to all its neighbours, which creates no new collider; then one without outgoing
    arcs; then, if the arcs have a cycle, the one with the fewest outgoing arcs, which are reversed. Ties go to the last
    column.
    """
    waiting = (1 << len(graph)) - 1
    dag, order = [0] * len(graph), []
    while waiting:
        last = min(_final(constraints, waiting), key=lambda v: (*_unfitness(graph, v, waiting), -v))
        waiting &= ~(1 << last)
        dag[last] = adjacent(graph, last) & waiting & constraints.allowed[last]
        order.append(last)
    return Placement(tuple(dag), tuple(reversed(order)))


def _final(constraints: Constraints, waiting: Mask) -> list[int]:
    """Return the waiting variables that are not known to precede another one."""
    members = [v for v in range(len(constraints.allowed)) if waiting >> v & 1]
    before = 0
    for v in members:
        before |= constraints.earlier[v]
    return [v for v in members if not before >> v & 1]


def _unfitness(graph: Graph, variable: int, waiting: Mask) -> tuple[int, bool]:
    """Return the number of arcs to waiting variables, and whether placing the variable last creates a new collider."""
    parents, may_be_children = graph[variable] & waiting, children(graph, variable) & waiting
    outgoing = may_be_children & ~parents
    around = parents | may_be_children
    neighbours = [u for u in range(len(graph)) if may_be_children & parents & 1 << u]
    collides = any(around & ~(1 << u) & ~adjacent(graph, u) for u in neighbours)
    return outgoing.bit_count(), collides
