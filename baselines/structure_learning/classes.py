"""Equivalence classes of DAGs under interventions: essential graph, number of members, members, next experiment.

Two DAGs are equivalent iff for every set of targets T that occurs the DAGs without the arcs into T have the same
skeleton and the same colliders. The essential graph has the arcs that all members share, by colliders, by arcs with
exactly one end in some T, and by the four rules of Meek 1995; what stays undirected falls into chordal components,
which are oriented independently (A. Hauser and P. Buehlmann, 2012). The acyclic orientations of a chordal component
without colliders are counted by cliques in polynomial time (M. Wienoebst, M. Bannach and M. Liskiewicz, Polynomial-time
algorithms for counting and sampling Markov equivalent DAGs, 2021), not by listing. Under knowledge members are listed,
up to MAX_LISTED for each component.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import factorial, prod
from pathlib import Path
from typing import Any

import numpy as np

from calibrant.baselines.structure_learning._kernels_graphs import compelled_arcs
from calibrant.baselines.structure_learning.constraints import Dag, Mask, is_acyclic
from calibrant.dsl.errors import CalibrantError
from calibrant.dsl.knowledge import Knowledge, read_knowledge
from calibrant.dsl.pictures import MAX_PICTURE_ROWS, Picture, Pictured, PictureEdge, networkx_graph
from calibrant.dsl.text import plural
from calibrant.solvers.acyclic.least import members_of
from calibrant.solvers.outcome import BudgetSpent

MAX_LISTED = 1_000_000  # orientations of one component under knowledge
MAX_PARENT_CLIQUES = 20_000  # possible parent sets of one column; `left_after` counts the members with each

Admits = Callable[[int, Mask], bool]
"""Whether a variable may have exactly these parents."""


@dataclass(frozen=True)
class NetworkClass(Pictured):
    """A class of equivalent networks.

    directed: arcs with one direction in all members; undirected: edges with both, the earlier column first
    members: number of members that the knowledge admits; observational_members: the same without interventions
    modelstring: the network that the class was derived from, as text
    left_after: column -> expected number of members after one more intervention on it; None if not counted
    """

    variables: tuple[str, ...]
    directed: tuple[tuple[str, str], ...]
    undirected: tuple[tuple[str, str], ...]
    members: int
    observational_members: int
    modelstring: str
    left_after: Mapping[str, Fraction | None]

    def __repr__(self) -> str:
        edges = f"{len(self.directed)} directed and {len(self.undirected)} undirected edges"
        return f"<NetworkClass: {len(self.variables)} columns, {edges}, {self.members:,} members>"

    def to_networkx(self) -> Any:
        """Return a networkx `DiGraph` with the attribute `directed` of edges; an undirected edge is two arcs.

        Nodes have the attribute `left_after`, None if not counted. `MissingExtraError` without networkx.
        """
        nodes = ((name, {"left_after": self.left_after.get(name)}) for name in self.variables)
        edges = [(a, b, {"directed": True}) for a, b in self.directed]
        edges += [(*ends, {"directed": False}) for a, b in self.undirected for ends in ((a, b), (b, a))]
        return networkx_graph(nodes, edges)

    def picture(self) -> Picture:
        """Return the graph: certain arcs, and edges open in both directions; members expected after each experiment."""
        edges = [PictureEdge(a, b, "good") for a, b in self.directed]
        edges += [PictureEdge(*ends, "open") for a, b in self.undirected for ends in ((a, b), (b, a))]
        expected = [(name, "" if size is None else f"{float(size):.4g}") for name, size in self.left_after.items()]
        return Picture(
            f"Class of {plural(self.members, 'equivalent networks')}",
            (
                f"{plural(len(self.directed), 'arcs')} of all members",
                f"{plural(len(self.undirected), 'edges')} with either direction",
            ),
            nodes=dict.fromkeys(self.variables, ""),
            edges=tuple(edges),
            caption="Members expected once a column is set again",
            columns=("column", "members left"),
            rows=tuple(expected[:MAX_PICTURE_ROWS]),
            num_rows=len(expected),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the class for JSON; expected numbers are fractions as text."""
        return {
            "members": self.members,
            "observational_members": self.observational_members,
            "directed": [*map(list, self.directed)],
            "undirected": [*map(list, self.undirected)],
            "modelstring": self.modelstring,
            "left_after": {v: None if size is None else str(size) for v, size in self.left_after.items()},
        }

    def next_experiment(self) -> str | None:
        """Return the column whose intervention leaves the fewest members in expectation; None if none lowers it."""
        sizes = self.left_after.items()
        candidates = [(size, v) for v, size in sizes if size is not None and size < self.members]
        return min(candidates, key=lambda pair: pair[0])[1] if candidates else None


def network_class(
    columns: Sequence[str],
    arcs: Iterable[tuple[str, str]],
    targets: Iterable[Iterable[str]] = ((),),
    knowledge: str | Path | Knowledge | None = None,
) -> NetworkClass:
    """Return the class of a network; it needs no data.

    columns: names; arcs: pairs (from, to)
    targets: sets of columns that were set together in some rows, the empty set for rows without intervention
    knowledge: lines such as `require A -> B` as a text, or a file (`Path`); members that violate it are not counted

    A column that is in every set of targets has no mechanism and is treated as a root.
    """
    names = tuple(columns)
    if len(set(names)) < len(names):
        raise CalibrantError(f"two columns have one name: {', '.join(names)}")
    dag = dag_of_arcs(names, arcs)
    masks = sorted({mask_of_names(names, target) for target in targets}) or [0]
    dag = without_mechanisms(dag, masks)
    stated = Knowledge() if knowledge is None else read_knowledge(knowledge, "knowledge")
    stated.refuse_scm_words("is about mechanisms of SCMs; a class of networks has no functions")
    admits = None if knowledge is None else stated.check(names).admits
    graph = essential_graph(dag, masks)
    try:
        restricted = graph.restrict(admits)
        members = restricted.num_members
        observational = essential_graph(dag, [0]).restrict(admits).num_members
    except BudgetSpent as spent:
        raise CalibrantError(str(spent)) from None
    return NetworkClass(
        names,
        arcs_of_dag(names, restricted.directed),
        restricted.undirected_names(names),
        members,
        observational,
        model_string(names, dag),
        {v: restricted.left_after(i) for i, v in enumerate(names)},
    )


def dag_of_arcs(names: Sequence[str], arcs: Iterable[tuple[str, str]]) -> Dag:
    """Return parent masks; `CalibrantError` for unknown names, loops and cycles."""
    parents = [0] * len(names)
    for arc in arcs:
        if len(tuple(arc)) != 2:
            raise CalibrantError(f"the graph has {arc!r}; an arc is a pair (from, to)")
        parent, child = arc
        unknown = [name for name in (parent, child) if name not in names]
        if unknown:
            raise CalibrantError(f"the graph names {unknown[0]!r}, which is no column; columns: {', '.join(names)}")
        if parent == child:
            raise CalibrantError(f"the graph has the arc {parent} -> {child}; a column cannot be its own parent")
        parents[names.index(child)] |= 1 << names.index(parent)
    if not is_acyclic(tuple(parents)):
        raise CalibrantError("the arcs of the graph close a cycle; a network has none")
    return tuple(parents)


def mask_of_names(names: Sequence[str], members: Iterable[str]) -> Mask:
    """Return a set of columns as a mask; `CalibrantError` for unknown names."""
    mask = 0
    for name in members:
        if name not in names:
            raise CalibrantError(f"{name!r} is no column; columns: {', '.join(names)}")
        mask |= 1 << names.index(name)
    return mask


def without_mechanisms(dag: Dag, targets: Sequence[Mask]) -> Dag:
    """Return the DAG in which columns that are set in every row are roots."""
    always = always_set(targets)
    return tuple(0 if always >> v & 1 else parents for v, parents in enumerate(dag))


def always_set(targets: Sequence[Mask]) -> Mask:
    """Return the columns that are in every set of targets."""
    common = ~0
    for target in targets:
        common &= target
    return common if targets and common > 0 else 0


def arcs_of_dag(names: Sequence[str], dag: Dag) -> tuple[tuple[str, str], ...]:
    """Return the arcs by name, by the columns of the parent and then of the child."""
    pairs = sorted((parent, child) for child, parents in enumerate(dag) for parent in members_of(parents))
    return tuple((names[parent], names[child]) for parent, child in pairs)


def topological_order(dag: Dag) -> list[int]:
    """Return the smallest topological order: always the first column whose parents are all placed."""
    order: list[int] = []
    placed = 0
    while len(order) < len(dag):
        v = next(v for v, parents in enumerate(dag) if not placed >> v & 1 and not parents & ~placed)
        placed |= 1 << v
        order.append(v)
    return order


def model_string(names: Sequence[str], dag: Dag) -> str:
    """Return text such as `[A][C][B|A:C]`: nodes in the smallest topological order, parents in the order of columns."""
    parts = []
    for v in topological_order(dag):
        parents = ":".join(names[u] for u in members_of(dag[v]))
        parts.append(f"[{names[v]}|{parents}]" if parents else f"[{names[v]}]")
    return "".join(parts)


def separated_pairs(num_vars: int, targets: Sequence[Mask]) -> list[Mask]:
    """Return, for each column v, the columns u that some target separates from v; their arc is compelled."""
    full = (1 << num_vars) - 1
    masks = [0] * num_vars
    for target in targets:
        for v in range(num_vars):
            masks[v] |= (full & ~target) if target >> v & 1 else target & full
    return masks


def essential_graph(dag: Dag, targets: Sequence[Mask]) -> EssentialGraph:
    """Return the essential graph of a DAG under the sets of targets that occur."""
    compelled = np.empty(len(dag), np.int64)
    protected = np.array(separated_pairs(len(dag), targets), np.int64)
    compelled_arcs(np.array(dag, np.int64), protected, compelled)
    directed = tuple(compelled.tolist())
    undirected = [0] * len(dag)
    for v, parents in enumerate(dag):
        for u in members_of(parents & ~directed[v]):
            undirected[v] |= 1 << u
            undirected[u] |= 1 << v
    return EssentialGraph(directed, tuple(undirected))


@dataclass(frozen=True)
class EssentialGraph:
    """Arcs of all members, and undirected edges, whose components are chordal.

    directed: per variable the mask of its parents in all members
    undirected: per variable the mask of its neighbours whose direction differs between members
    """

    directed: Dag
    undirected: Dag

    def undirected_names(self, names: Sequence[str]) -> tuple[tuple[str, str], ...]:
        """Return the undirected edges, the earlier column first."""
        pairs = [(v, u) for v, mask in enumerate(self.undirected) for u in members_of(mask) if v < u]
        return tuple((names[v], names[u]) for v, u in pairs)

    @property
    def components(self) -> list[Mask]:
        """The connected components of the undirected edges, as masks of at least two variables."""
        return [part for part in connected_parts((1 << len(self.directed)) - 1, self.undirected) if part & (part - 1)]

    @property
    def num_members(self) -> int:
        """Number of DAGs of the class."""
        return prod(count_orientations(part, self.undirected) for part in self.components)

    def restrict(self, admits: Admits | None) -> EssentialGraph:
        """Return the graph of the members that knowledge admits; itself without knowledge."""
        return self if admits is None else RestrictedGraph.of_graph(self, admits)

    def orientations(self, part: Mask) -> Iterator[Dag]:
        """Yield the parents within one component for every orientation of it, in no particular order."""
        yield from _orient_edges(tuple(mask & part if part >> v & 1 else 0 for v, mask in enumerate(self.undirected)))

    def members(self) -> Iterator[Dag]:
        """Yield the DAGs of the class."""
        yield from self._complete(self.directed, self.components)

    def _complete(self, dag: Dag, parts: Sequence[Mask]) -> Iterator[Dag]:
        if not parts:
            yield dag
            return
        for oriented in self.orientations(parts[0]):
            yield from self._complete(tuple(a | b for a, b in zip(dag, oriented, strict=True)), parts[1:])

    def members_by_parents(self, v: int) -> Iterator[tuple[Dag, int]]:
        """Yield, for every parent set of a variable in the class, one member and the number of members with that set.

        The undirected neighbours among the parents form a clique; each clique occurs once. Too many cliques raise
        `BudgetSpent`.
        """
        part = next((part for part in self.components if part >> v & 1), 0)
        other_count = prod(
            count_orientations(component, self.undirected) for component in self.components if component != part
        )
        neighbours = tuple(mask & part if part >> u & 1 else 0 for u, mask in enumerate(self.undirected))
        base = list(self.directed)
        for component in self.components:
            if component != part:
                base = [a | b for a, b in zip(base, next(iter(self.orientations(component))), strict=True)]
        for clique in _cliques(neighbours[v], self.undirected):
            state = _Orientation(neighbours)
            for u in members_of(neighbours[v]):
                is_parent = clique >> u & 1
                state.orient(*((u, v) if is_parent else (v, u)))
            state.close()
            open_edges = tuple(state.open)
            count = prod(
                count_orientations(component, open_edges)
                for component in connected_parts(part, open_edges)
                if component & (component - 1)
            )
            oriented = tuple(a | b for a, b in zip(base, state.parents, strict=True))
            rest_graph = EssentialGraph(oriented, open_edges)
            yield next(rest_graph.members()), count * other_count

    def left_after(self, v: int) -> Fraction | None:
        """Return the expected number of members after one more intervention on a variable; None if not counted."""
        if not self.undirected[v]:
            return Fraction(self.num_members)
        try:
            sizes = [count for _, count in self.members_by_parents(v)]
        except BudgetSpent:
            return None
        return Fraction(sum(size * size for size in sizes), sum(sizes))


@dataclass(frozen=True)
class RestrictedGraph(EssentialGraph):
    """The members of a class that knowledge admits, listed by component.

    listed: for each component its admitted orientations
    """

    listed: tuple[tuple[Dag, ...], ...] = ()

    @classmethod
    def of_graph(cls, graph: EssentialGraph, admits: Admits) -> RestrictedGraph:
        """List the admitted orientations of each component. `BudgetSpent` beyond MAX_LISTED of one."""
        choices: list[tuple[Dag, ...]] = []
        in_components = 0
        for part in graph.components:
            in_components |= part
            admitted: list[Dag] = []
            for count, oriented in enumerate(graph.orientations(part)):
                if count == MAX_LISTED:
                    raise BudgetSpent(f"more than {MAX_LISTED:,} members to compare with the knowledge")
                if all(admits(v, oriented[v] | graph.directed[v]) for v in members_of(part)):
                    admitted.append(oriented)
            choices.append(tuple(admitted))
        if not all(admits(v, parents) for v, parents in enumerate(graph.directed) if not in_components >> v & 1):
            choices.append(())  # no member: a fixed parent set violates the knowledge
        directed, undirected = list(graph.directed), [0] * len(graph.directed)
        for orientations in choices:
            for v in range(len(directed)):
                common, union = ~0, 0
                for oriented in orientations:
                    common &= oriented[v]
                    union |= oriented[v]
                if orientations:
                    directed[v] |= common
                    for u in members_of(union & ~common):
                        undirected[v] |= 1 << u
                        undirected[u] |= 1 << v
        return cls(tuple(directed), tuple(undirected), tuple(choices))

    @property
    def num_members(self) -> int:
        """Number of admitted DAGs of the class."""
        return prod(map(len, self.listed))

    def members(self) -> Iterator[Dag]:
        """Yield the admitted DAGs of the class."""
        yield from self._combine(self.directed, self.listed)

    def _combine(self, dag: Dag, choices: Sequence[Sequence[Dag]]) -> Iterator[Dag]:
        if not choices:
            yield dag
            return
        for oriented in choices[0]:
            yield from self._combine(tuple(a | b for a, b in zip(dag, oriented, strict=True)), choices[1:])

    def members_by_parents(self, v: int) -> Iterator[tuple[Dag, int]]:
        """Yield, for every parent set of a variable in the class, one member with it and the number of such members."""
        for orientations in self.listed:
            groups: dict[Mask, list[Dag]] = {}
            for oriented in orientations:
                groups.setdefault(oriented[v], []).append(oriented)
            if len(groups) > 1:  # this component contains v; in the others all orientations leave its parents equal
                for group in groups.values():
                    lists = [[group[0]] if part is orientations else part for part in self.listed]
                    yield next(self._combine(self.directed, lists)), self.num_members // len(orientations) * len(group)
                return
        yield next(self.members()), self.num_members

    def left_after(self, v: int) -> Fraction | None:
        """Return the expected number of members after one more intervention on a variable; None without members."""
        if not self.num_members:
            return None
        sizes = [count for _, count in self.members_by_parents(v)]
        return Fraction(sum(size * size for size in sizes), sum(sizes))


# --- Orientations of chordal graphs without colliders -----------------------------------------------------------------
def connected_parts(nodes: Mask, neighbours: Sequence[Mask]) -> list[Mask]:
    """Return the connected components of the graph on these nodes."""
    parts = []
    while nodes:
        part = frontier = nodes & -nodes
        while frontier:
            reached = 0
            for v in members_of(frontier):
                reached |= neighbours[v]
            frontier = reached & nodes & ~part
            part |= frontier
        parts.append(part)
        nodes &= ~part
    return parts


def count_orientations(part: Mask, neighbours: Sequence[Mask], memo: dict[Mask, int] | None = None) -> int:
    """Count the acyclic orientations without colliders of a connected chordal graph, by its cliques.

    By Wienoebst et al. 2021, Theorem 3, sum over the maximal cliques K: the number of orders of K that begin with no
    separator on the path from the root of the clique tree, times the number of orientations of the edges that stay
    undirected once K comes first.
    """
    memo = {} if memo is None else memo
    if not part & (part - 1):
        return 1
    if part in memo:
        return memo[part]
    size = part.bit_count()
    num_edges = sum((neighbours[v] & part).bit_count() for v in members_of(part)) // 2
    if num_edges == size - 1:
        return size  # a tree: each node may be its root
    if 2 * num_edges == size * (size - 1):
        memo[part] = factorial(size)
        return memo[part]
    total = 0
    for clique, separators in _clique_tree(part, neighbours):
        sizes = sorted({separator.bit_count() for separator in separators if not separator & ~clique})
        orders = _orders_without_prefix(clique.bit_count(), sizes)
        if orders:
            total += orders * prod(
                count_orientations(component, neighbours, memo)
                for component in _left_undirected(part, clique, neighbours)
            )
    memo[part] = total
    return total


def _orders_without_prefix(size: int, prefixes: Sequence[int]) -> int:
    """Count the orders of `size` elements that have none of some nested subsets, of these sizes, as a prefix."""
    first = list[int]()  # for each subset the number of its orders in which no smaller one is a prefix
    for length in (*prefixes, size):
        earlier = zip(prefixes, first, strict=False)  # the shorter prefixes, for which `first` has an entry
        first.append(factorial(length) - sum(orders * factorial(length - shorter) for shorter, orders in earlier))
    return first[-1]


def _clique_tree(part: Mask, neighbours: Sequence[Mask]) -> list[tuple[Mask, tuple[Mask, ...]]]:
    """Return the maximal cliques of a connected chordal graph, each with the separators from the root to it."""
    # maximum cardinality search: a clique ends where the number of visited neighbours does not grow
    # (J. Blair and B. Peyton, An introduction to chordal graphs and clique trees, 1993, figure 4.2)
    cliques: list[Mask] = []
    paths: list[tuple[Mask, ...]] = []
    clique_of: dict[int, int] = {}
    position: dict[int, int] = {}
    visited = 0
    last = 0
    unvisited = set(members_of(part))
    while unvisited:
        v = max(unvisited, key=lambda u: ((neighbours[u] & visited).bit_count(), -u))
        before = neighbours[v] & visited
        if not cliques:
            cliques.append(0)
            paths.append(())
        elif before.bit_count() <= last:
            latest = max(members_of(before), key=position.__getitem__)
            paths.append((*paths[clique_of[latest]], before))
            cliques.append(before)
        cliques[-1] |= 1 << v
        clique_of[v] = len(cliques) - 1
        position[v] = len(position)
        last = before.bit_count()
        visited |= 1 << v
        unvisited.remove(v)
    return list(zip(cliques, paths, strict=True))


def _left_undirected(part: Mask, clique: Mask, neighbours: Sequence[Mask]) -> list[Mask]:
    """Return the components of a chordal graph that stay undirected once a clique comes first.

    Algorithm 1 of Wienoebst et al. 2021: lexicographic breadth-first search from the clique.
    """
    sets = [clique, part & ~clique]
    done = clique
    components: list[Mask] = []
    while sets:
        first = sets[0]
        v = (first & -first).bit_length() - 1
        if not done >> v & 1:
            done |= first
            components += connected_parts(first, neighbours)
        sets[0] &= ~(1 << v)
        sets = [piece for mask in sets for piece in (mask & neighbours[v], mask & ~neighbours[v]) if piece]
    return components


def _cliques(nodes: Mask, neighbours: Sequence[Mask]) -> Iterator[Mask]:
    """Yield all cliques among some nodes, the empty one first. `BudgetSpent` beyond MAX_PARENT_CLIQUES."""
    count = 0
    stack = [(0, nodes)]
    while stack:
        clique, candidates = stack.pop()
        count += 1
        if count > MAX_PARENT_CLIQUES:
            raise BudgetSpent(f"more than {MAX_PARENT_CLIQUES:,} possible parent sets")
        yield clique
        for v in members_of(candidates):
            # only later nodes: each clique is reached in ascending order
            stack.append((clique | 1 << v, candidates & neighbours[v] & ~((2 << v) - 1)))


class _Orientation:
    """A partly oriented chordal graph.

    parents: for each variable the mask of oriented arcs into it; open: mask of the neighbours without a direction
    """

    def __init__(self, neighbours: Sequence[Mask], parents: Sequence[Mask] | None = None) -> None:
        self.neighbours = neighbours
        self.open = list(neighbours)
        self.parents = [0] * len(neighbours) if parents is None else list(parents)

    def copy(self) -> _Orientation:
        """Return an independent copy."""
        twin = _Orientation(self.neighbours, self.parents)
        twin.open = list(self.open)
        return twin

    def orient(self, u: int, v: int) -> None:
        """Add the arc u -> v."""
        self.open[u] &= ~(1 << v)
        self.open[v] &= ~(1 << u)
        self.parents[v] |= 1 << u

    def close(self) -> None:
        """Apply the rules of Meek 1995 until nothing changes."""
        waiting = {v for v, mask in enumerate(self.open) if mask}
        changed = True
        while changed:
            changed = False
            for v in sorted(waiting):
                for u in members_of(self.open[v]):
                    if self._follows(u, v):
                        self.orient(u, v)
                        changed = True
                    elif self._follows(v, u):
                        self.orient(v, u)
                        changed = True
            waiting = {v for v in waiting if self.open[v]}

    def _follows(self, u: int, v: int) -> bool:
        """Return whether one of the rules forces u -> v."""
        apart = ~self.neighbours[v] & ~(1 << v)
        if self.parents[u] & apart:  # 1: a -> u, a and v apart
            return True
        into = self.parents[v]
        around = into & self.neighbours[u]
        for a in members_of(around):
            if self.parents[a] >> u & 1:  # 2: u -> a -> v
                return True
            if self.open[u] >> a & 1 and into & self.open[u] & ~self.neighbours[a] & ~(1 << a):
                # 3: u - a -> v and u - b -> v, a and b apart
                return True
            if self.parents[a] & self.neighbours[u] & apart:  # 4: u - b -> a -> v, b and v apart
                return True
        return False


def _orient_edges(neighbours: Sequence[Mask]) -> Iterator[Dag]:
    """Yield every acyclic orientation without colliders of a chordal graph: by background arcs and Meek's rules.

    With the four rules every arc that is still open has both directions (Meek 1995, theorem 4), so no branch is empty.
    """
    stack = [_Orientation(neighbours)]
    while stack:
        state = stack.pop()
        v = next((v for v, mask in enumerate(state.open) if mask), None)
        if v is None:
            yield tuple(state.parents)
            continue
        u = members_of(state.open[v])[0]
        for arc in ((u, v), (v, u)):
            branch = state.copy()
            branch.orient(*arc)
            branch.close()
            stack.append(branch)
