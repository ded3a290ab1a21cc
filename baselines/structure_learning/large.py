"""Networks of highest score on 19 to 62 columns: exact by order, by forest or by integer program, else with a bound.

Parent sets are scored up to a size, and sets that score no more than one of their subsets are removed, which leaves the
optimum unchanged. If the best sets of all columns are acyclic together, they are the optimum. With one parent a column
and a score that does not depend on the direction of an arc the optimum is a maximum spanning forest (C. Chow and
C. Liu, 1968), and the optima are counted by the matrix-tree theorem. Anything else goes to branch and cut
(solvers.acyclic.integer_program); its costs are whole, so its bound is rounded towards the safe side.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from math import fsum, inf, prod
from time import monotonic

import numpy as np

from calibrant.baselines.structure_learning.constraints import Dag, Mask, is_acyclic
from calibrant.baselines.structure_learning.levels import F64, I64, LevelScores
from calibrant.dsl.errors import CalibrantError
from calibrant.dsl.knowledge import CheckedKnowledge
from calibrant.solvers.acyclic.integer_program.least import least_by_program
from calibrant.solvers.acyclic.integer_program.relaxation import Incumbent, Limits
from calibrant.solvers.acyclic.integer_program.tree import OrderLocalSearch
from calibrant.solvers.acyclic.least import (
    Orders,
    Part,
    cost_by_size,
    least_branching,
    members_of,
    reduce_to_parts,
    total_size,
)
from calibrant.solvers.highs import has_highs
from calibrant.solvers.outcome import Undecided

TIE = 1e-9
ROUNDING = 1e-3  # nats: smaller gaps count as 0
MAX_UNITS = 50_000_000  # sum over columns of the range of whole costs: half of what an integer program admits
MAX_UNITS_PER_NAT = 1_000_000
NUM_RESTARTS = 20  # restarts of the search over orders
RESTART_PERTURBATIONS = 100  # perturbations of each restart, per column
MAX_OPTIONAL_EDGES = 16  # edges without gain; their 2**16 subsets are enumerated to count classes
MAX_STEPS = 190_000_000  # steps of scores, searches and integer program if no time is given: about four seconds
CELLS_PER_STEP = 8  # rows and configurations that are scored in the time of a step
STEPS_PER_SET = 150  # steps in the time of reducing one parent set in Python
LONGER_SECONDS = 300  # seconds that the message of a stopped search suggests
FIRST_PROGRESS_SECONDS, PROGRESS_SECONDS = 1.0, 5.0  # after the start of the scoring, and between lines


@dataclass(frozen=True)
class LargeOptimum:
    """The best network found, with a bound.

    upper_bound: no network scores more; method: description of the search and the bound
    num_networks, num_classes: numbers of networks and classes with this score, within 1e-9; None if not counted
    rounding: largest gap, in nats, that the rounding of whole costs explains
    """

    dag: Dag
    score: float
    upper_bound: float
    method: str
    num_networks: int | None = None
    num_classes: int | None = None
    rounding: float = ROUNDING

    @property
    def gap(self) -> float:
        """Largest possible excess of a better network's score, in nats."""
        return max(0.0, self.upper_bound - self.score)

    @property
    def is_proven(self) -> bool:
        """Whether the network is the optimum, up to the rounding of whole costs."""
        return self.gap <= self.rounding


Report = Callable[[str], None]


@dataclass(frozen=True)
class Price:
    """Price of knowledge in nats: score of the optimum without it minus score of the optimum with it.

    least, greatest: bounds, in nats; value: difference of the two best scores if both are proven, else None
    """

    least: float
    greatest: float
    value: float | None

    @classmethod
    def between(cls, free: LargeOptimum, best: LargeOptimum) -> Price:
        """Compare the best network without knowledge, `free`, with the best one that satisfies it."""
        free_score = max(free.score, best.score)
        free_bound = max(free.upper_bound, free_score)
        least = max(0.0, free_score - min(best.upper_bound, free_bound))
        is_proven = free.is_proven and best.is_proven
        return cls(least, max(least, free_bound - best.score), free_score - best.score if is_proven else None)


def best_large_network(
    scores: LevelScores,
    knowledge: CheckedKnowledge | None = None,
    *,
    is_search: bool,
    seconds: float | None,
    report: Report,
    listen: Callable[[int, int], None],
) -> tuple[LargeOptimum, Price | None]:
    """Return the best network with a bound, and the price of the knowledge; None without knowledge.

    knowledge: knowledge beyond that of the scores; the price compares with the optimum of the scores' own knowledge
    is_search: whether a search over orders without proof suffices
    seconds: time limit of the integer programs; None limits steps by MAX_STEPS instead, equal on every machine
    report: called with the best score, the bound and the gap every PROGRESS_SECONDS
    """
    progress = _Progress(report)
    masks, table = scores.scored_sets(listen)
    limits = Limits(seconds, MAX_STEPS if seconds is None else None)
    limits.spend(scores.num_cells // CELLS_PER_STEP)
    if knowledge is None:
        return _best_network(scores, masks, table, is_search, limits, progress), None
    best = _best_network(scores, masks, _restrict(masks, table, knowledge), is_search, limits, progress)
    if best.is_proven:
        without = replace(progress, report=partial(_report_without, report))
        free = _best_network(scores, masks, table, is_search, limits, without, best.dag)
    else:  # out of budget: the sum of the columns' best scores bounds the optimum without knowledge
        free = replace(best, upper_bound=fsum(table.max(axis=1)))
    return best, Price.between(free, best)


def _report_without(report: Report, line: str) -> None:
    report(f"without the knowledge: {line}")


def _restrict(masks: I64, table: F64, knowledge: CheckedKnowledge) -> F64:
    """Return the scores, minus infinity where the knowledge excludes the set."""
    restricted = table.copy()
    sizes = np.array([mask.bit_count() for mask in masks.tolist()])
    bounds = zip(knowledge.allowed, knowledge.required, knowledge.limits, strict=True)
    for row, (allowed, required, limit) in zip(restricted, bounds, strict=True):
        row[(masks & ~np.int64(allowed) != 0) | (np.int64(required) & ~masks != 0) | (sizes > limit)] = -inf
    return restricted


def _best_network(
    scores: LevelScores,
    masks: I64,
    table: F64,
    is_search: bool,
    limits: Limits,
    progress: _Progress,
    start: Dag | None = None,
) -> LargeOptimum:
    """Return the best network of the sets with finite scores; start: an admitted network, from which to search."""
    options = scores.undominated(masks, table)
    for name, sets in zip(scores.frame.variables, options, strict=True):
        if not sets:
            raise CalibrantError(f"the knowledge leaves {name} no parent set")
    highest = tuple(max(sets, key=sets.__getitem__) for sets in options)
    ceiling = fsum(sets[mask] for sets, mask in zip(options, highest, strict=True))
    is_ordered = is_acyclic(tuple(_union(sets) for sets in options))
    if is_acyclic(highest):
        method = "the best parent sets of all columns close no cycle"
        ties = None
        if is_ordered and _is_acyclic_union(masks, table):
            ties = prod(int(np.count_nonzero(row >= row.max() - TIE)) for row in table)
            method = "the order of the columns is known, so each has its best parent set"
        return LargeOptimum(highest, ceiling, ceiling, method, ties, 1 if ties == 1 else None)
    if max(mask.bit_count() for mask in masks[np.isfinite(table).any(axis=0)].tolist()) <= 1:
        return _best_forest(options, masks, table)
    if is_search or not has_highs():
        advice = "" if is_search else " (pip install 'calibrant[large]' proves optima)"
        return _search(options, ceiling, limits.seconds_left(), progress, advice)
    return _by_program(options, ceiling, limits, progress, start)


def _union(sets: Iterable[Mask]) -> Mask:
    union = 0
    for mask in sets:
        union |= mask
    return union


def _is_acyclic_union(masks: I64, table: F64) -> bool:
    """Return whether the union of all admitted arcs is acyclic, so that every parent-set assignment is a network."""
    return is_acyclic(tuple(int(np.bitwise_or.reduce(masks[np.isfinite(row)], initial=0)) for row in table))


# --- One parent a column ----------------------------------------------------------------------------------------------
def _best_forest(options: Sequence[Mapping[Mask, float]], masks: I64, table: F64) -> LargeOptimum:
    num_vars = len(options)
    index_of_set = {int(mask): i for i, mask in enumerate(masks.tolist())}
    gain = np.full((num_vars, num_vars), -inf)  # [parent, child]
    is_free = bool(np.isfinite(table[:, index_of_set[0]]).all())
    if is_free:
        for u in range(num_vars):
            gain[u] = table[:, index_of_set[1 << u]] - table[:, index_of_set[0]]
    off_diagonal = ~np.eye(num_vars, dtype=np.bool_)
    pairs = gain[off_diagonal]
    np.fill_diagonal(gain, 0.0)
    if is_free and np.isfinite(pairs).all() and float(abs(gain - gain.T).max(initial=0.0)) < TIE:
        return _spanning_forest(gain, fsum(table[:, index_of_set[0]]))
    # Edmonds' branching on exact whole costs: 2**-20 nats are far below the tolerance of ties in sums of 62
    costs = [{mask: round((max(sets.values()) - value) * 2**40) for mask, value in sets.items()} for sets in options]
    chosen = least_branching(dict(enumerate(costs)))
    if chosen is None:
        raise CalibrantError("the knowledge admits no network with one parent a column")
    dag = tuple(chosen[v] for v in range(num_vars))
    score = fsum(options[v][mask] for v, mask in enumerate(dag))
    return LargeOptimum(dag, score, score, "maximum branching (Edmonds 1967)")


def _spanning_forest(gain: F64, base: float) -> LargeOptimum:
    """Return a maximum spanning forest, rooted at the first column of each tree, and the number of optima."""
    num_vars = len(gain)
    edges = sorted(((gain[u, v], u, v) for v in range(num_vars) for u in range(v)), reverse=True)
    tree = list(range(num_vars))  # label of the tree of each column
    neighbours = [0] * num_vars
    num_forests = 1
    score = base
    position = 0
    while position < len(edges) and edges[position][0] > TIE:
        group = [edge for edge in edges[position:] if edge[0] >= edges[position][0] - TIE]
        position += len(group)
        between = [(tree[u], tree[v]) for _, u, v in group if tree[u] != tree[v]]
        num_forests *= _count_spanning_forests(between)
        for weight, u, v in group:
            if tree[u] != tree[v]:
                old, new = tree[v], tree[u]
                tree = [new if label == old else label for label in tree]
                neighbours[u] |= 1 << v
                neighbours[v] |= 1 << u
                score += float(weight)
    optional = [(tree[u], tree[v]) for weight, u, v in edges[position:] if weight > -TIE and tree[u] != tree[v]]
    sizes = {label: tree.count(label) for label in tree}
    num_classes = _count_forests(optional, len(sizes))
    return LargeOptimum(
        _root(neighbours),
        score,
        score,
        "maximum spanning forest (Chow and Liu 1968)",
        num_forests * _count_rooted_forests(optional, sizes),
        None if num_classes is None else num_forests * num_classes,
    )


def _root(neighbours: Sequence[Mask]) -> Dag:
    parents = [0] * len(neighbours)
    placed = 0
    for root in range(len(neighbours)):
        stack = [] if placed >> root & 1 else [root]
        placed |= 1 << root
        while stack:
            v = stack.pop()
            for u in members_of(neighbours[v] & ~placed):
                parents[u] = 1 << v
                placed |= 1 << u
                stack.append(u)
    return tuple(parents)


def _count_spanning_forests(edges: Sequence[tuple[int, int]]) -> int:
    """Count the maximal forests of a multigraph: spanning trees of each component, by the matrix-tree theorem."""
    group = {v: v for edge in edges for v in edge}
    for u, v in edges:
        old, new = group[u], group[v]
        group = {w: new if label == old else label for w, label in group.items()}
    count = 1
    for label in set(group.values()):
        nodes = [v for v in group if group[v] == label]
        inner = [edge for edge in edges if group[edge[0]] == label]
        count *= _determinant(_laplacian(nodes[1:], inner))
    return count


def _count_rooted_forests(edges: Sequence[tuple[int, int]], sizes: Mapping[int, int]) -> int:
    """Count the rooted forests of a multigraph, node v with `sizes[v]` ways to be a root: det(sizes + Laplacian)."""
    nodes = sorted(sizes)
    matrix = _laplacian(nodes, edges)
    for i, v in enumerate(nodes):
        matrix[i][i] += sizes[v]
    return _determinant(matrix)


def _count_forests(edges: Sequence[tuple[int, int]], num_nodes: int) -> int | None:
    """Count the sets of edges without a cycle; None for more than MAX_OPTIONAL_EDGES edges."""
    if len(edges) > MAX_OPTIONAL_EDGES:
        return None
    count = 0
    for chosen in range(1 << len(edges)):
        group: dict[int, int] = {}
        is_forest = True
        for i in members_of(chosen):
            u, v = (group.get(node, node) for node in edges[i])
            if u == v:
                is_forest = False
                break
            group = {node: v if label == u else label for node, label in group.items()} | {u: v, edges[i][0]: v}
        count += is_forest
    return count


def _laplacian(nodes: Sequence[int], edges: Iterable[tuple[int, int]]) -> list[list[Fraction]]:
    position = {v: i for i, v in enumerate(nodes)}
    matrix = [[Fraction(0)] * len(nodes) for _ in nodes]
    for edge in edges:
        for a, b in (edge, edge[::-1]):
            if a in position:
                matrix[position[a]][position[a]] += 1
                if b in position:
                    matrix[position[a]][position[b]] -= 1
    return matrix


def _determinant(matrix: list[list[Fraction]]) -> int:
    """Return the determinant of a positive definite integer matrix by Gaussian elimination in fractions."""
    result = Fraction(1)
    for i in range(len(matrix)):
        pivot = matrix[i][i]
        result *= pivot
        for j in range(i + 1, len(matrix)):
            factor = matrix[j][i] / pivot
            if factor:
                matrix[j] = [b - factor * a for a, b in zip(matrix[i], matrix[j], strict=True)]
    return int(result)


# --- Integer program and search ---------------------------------------------------------------------------------------
@dataclass(frozen=True)
class _Units:
    """Whole costs of parent sets: loss relative to the best set of the column, rounded down.

    per_nat: number of units in a nat; costs: for each column parent set -> units
    """

    per_nat: float
    costs: list[dict[Mask, int]]


def _incumbent(
    options: Sequence[Mapping[Mask, float]], num_restarts: int, limits: Limits, listen: Callable[[float], None]
) -> tuple[Dag, float]:
    """Return a good network by searches over orders, each with the best admitted sets of its order.

    listen: called with the best score so far
    """
    units = _units(options, inf)
    whole = {v: {mask: cost_by_size(cost, 0) for mask, cost in sets.items()} for v, sets in enumerate(units.costs)}
    order = Orders(whole, 0).cheapest_first()
    if order is None:
        raise CalibrantError("the knowledge admits no network with these numbers of parents")
    best = -inf
    chosen: Mapping[int, Mask] = {}
    search = OrderLocalSearch(dict(enumerate(units.costs)), limits, lambda: listen(best) if chosen else None)
    for restart in range(num_restarts + 1):
        improved = search.restart(RESTART_PERTURBATIONS * len(options)) if restart else search.improve_from(order, 0)
        if improved is not None and _total(options, improved) > best:
            best, chosen = _total(options, improved), improved
        if limits.are_reached():
            break
    return tuple(chosen[v] for v in range(len(options))), best


def _best_within(options: Sequence[Mapping[Mask, float]], dag: Dag) -> tuple[Dag, float]:
    """Return the network in which each column has its best set inside its parents in `dag`, and its score."""
    best = tuple(
        max((m for m in sets if not m & ~mask), key=sets.__getitem__) for mask, sets in zip(dag, options, strict=True)
    )
    return best, _total(options, dict(enumerate(best)))


def _total(options: Sequence[Mapping[Mask, float]], chosen: Mapping[int, Mask]) -> float:
    return fsum(options[v][mask] for v, mask in chosen.items())


def _units(options: Sequence[Mapping[Mask, float]], slack: float) -> _Units:
    """Return whole costs of the sets that lose at most `slack` nats, with units as fine as MAX_UNITS allows."""
    highest = [max(sets.values()) for sets in options]
    losses = [{m: best - value for m, value in sets.items()} for best, sets in zip(highest, options, strict=True)]
    losses = [{mask: loss for mask, loss in sets.items() if loss <= slack + TIE} for sets in losses]
    span = sum(max(sets.values()) for sets in losses)
    per_nat = min(MAX_UNITS_PER_NAT, MAX_UNITS / span if span else MAX_UNITS_PER_NAT)
    return _Units(per_nat, [{mask: int(loss * per_nat) for mask, loss in sets.items()} for sets in losses])


def _least_loss(parts: Sequence[Part]) -> int:
    """Return the sum of the least units of all columns of some parts."""
    return sum(min(total_size(s.cost) for s in sets.values()) for part in parts for sets in part.values())


def _search(
    options: Sequence[Mapping[Mask, float]], ceiling: float, seconds: float | None, progress: _Progress, advice: str
) -> LargeOptimum:
    limits = Limits(seconds)
    dag, score = _incumbent(options, NUM_RESTARTS, limits, lambda best: progress.tell(best, ceiling))
    method = f"search over orders with {NUM_RESTARTS} restarts; bound: the best parent set of each column{advice}"
    return LargeOptimum(dag, score, ceiling, method)


@dataclass
class _Progress:
    """Lines of progress: the first after FIRST_PROGRESS_SECONDS, then one every PROGRESS_SECONDS on the clock."""

    report: Report
    next_time: float = field(default_factory=lambda: monotonic() + FIRST_PROGRESS_SECONDS)

    def tell(self, best: float, bound: float) -> None:
        """Report a score and a bound, if it is time."""
        if monotonic() >= self.next_time:
            self.next_time = monotonic() + PROGRESS_SECONDS
            self.report(f"best {best:.4f}, bound {bound:.4f}, gap {max(0.0, bound - best):.4f} nats")


def _by_program(
    options: Sequence[Mapping[Mask, float]],
    ceiling: float,
    limits: Limits,
    progress: _Progress,
    start: Dag | None,
) -> LargeOptimum:
    limits.spend(STEPS_PER_SET * sum(map(len, options)))
    dag, score = _incumbent(options, 2, limits, lambda best: progress.tell(best, ceiling))
    if start is not None:
        dag, score = max((dag, score), _best_within(options, start), key=lambda scored: scored[1])
    # a set that loses more than the incumbent as a whole is in no better network
    units = _units(options, ceiling - score)
    costs = {v: {mask: cost_by_size(cost, 0) for mask, cost in sets.items()} for v, sets in enumerate(units.costs)}
    parts = reduce_to_parts(costs, 0)
    if parts is None:
        raise CalibrantError("the knowledge admits no network with these numbers of parents")
    # small parts first: if one spends all steps, later parts are bounded by their best sets
    parts.sort(key=lambda part: sum(map(len, part.values())))
    chosen: dict[int, Mask] = {}
    loss = 0
    is_complete = is_solved = True
    for index, part in enumerate(parts):
        at_least_outside = loss + _least_loss(parts[index:])

        def listen(incumbent: Incumbent, at_least: int, outside: int = at_least_outside) -> None:
            # networks of several parts are compared once all of them have an assignment
            assignment = {v: incumbent.part[v][mask].mask for v, mask in incumbent.chosen.items()}
            best = max(score, _total(options, assignment)) if len(parts) == 1 else score
            progress.tell(best, ceiling - (outside + at_least) / units.per_nat)

        try:
            assignment: Mapping[int, Mask] | None = least_by_program(part, limits, listen, dict(enumerate(dag)))
            assert assignment is not None  # the sets of the incumbent are among the options
            loss += sum(total_size(part[v][mask].cost) for v, mask in assignment.items())
        except Undecided as spent:
            is_solved = False
            assignment = spent.incumbent
            loss += total_size(spent.at_least)
        if assignment is None:
            is_complete = False
        else:
            chosen |= {v: part[v][mask].mask for v, mask in assignment.items()}
    if is_complete and (total := _total(options, chosen)) > score:
        dag, score = tuple(chosen[v] for v in range(len(options))), total
    upper_bound = max(score, ceiling - loss / units.per_nat)
    method = "integer program by HiGHS, bound without rounding"
    rounding = ROUNDING
    if is_solved:
        rounding = max(ROUNDING, len(options) / units.per_nat)
    elif limits.steps is not None and upper_bound - score > ROUNDING:
        method += f", stopped after {MAX_STEPS:,} steps (--seconds {LONGER_SECONDS} goes on)"
    return LargeOptimum(dag, score, upper_bound, method, rounding=rounding)
