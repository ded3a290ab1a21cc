"""Acyclic assignment of least total cost: reduction, dynamic programming, branchings, search over orders.

D[X] is the least cost of mechanisms for the endogenous variables X that mention only X and the roots; the last variable
of a topological order of X may mention all others: D[X] = min over v in X of D[X - v] + cheapest set of v within X - v
(T. Silander and P. Myllymaki, A simple approach for finding the globally optimal Bayesian network structure, 2006, with
sizes in place of scores). O(m 2**m) time, O(m 2**m) memory.

Reduction: a part is a strongly connected component of the possible arcs. A parent set is dominated if the variable has
a cheaper one whose members in the part are a subset of its own. Parents in another part cannot close a cycle, so each
split makes more sets dominated; both steps repeat until nothing changes. A parent that all sets of a variable share is
forced, and a variable's forced descendants cannot be its parents (reductions of score-based structure learning: C. P.
de Campos and Q. Ji, Efficient structure learning of Bayesian networks using constraints, 2011; M. Bartlett and J.
Cussens, Integer linear programming for the Bayesian network structure learning problem, 2017). The optimum, with its
ties, is unchanged.

If no set has two parents within the part, the optimum is a minimum-cost branching rooted outside the part (J. Edmonds,
Optimum branchings, 1967); O(n) contractions of O(arcs) each.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from itertools import accumulate
from typing import NamedTuple, TypeAlias

import numpy as np

from calibrant.solvers.outcome import BudgetSpent

# --- Acyclic assignment of least total cost, by dynamic programming over subsets of variables -------------------------
MAX_FREE_VARIABLES = 16  # 2**16 subsets take seconds; for more variables solvers.acyclic.optimum has other engines

Mask: TypeAlias = int
"""A set of variables, bit per index."""


def members_of(mask: Mask) -> list[int]:
    """List the indices in a set, ascending."""
    return [i for i in range(mask.bit_length()) if mask >> i & 1]


Cost: TypeAlias = int
"""Cost of a parent set; costs add up. `break_ties` makes those of a variable distinct: the optimum is unique."""

_COUNT_BITS = 16  # an assignment of all variables mentions fewer than 2**16 parents


def cost_by_size(size: int, parents: Mask) -> Cost:
    """Return a cost that ranks by formula size, then by mentions (members of the parent set)."""
    # both fields add up without carries: a sum has fewer than 2**16 mentions
    return size << _COUNT_BITS | parents.bit_count()


def total_size(cost: Cost) -> int:
    """Return the sum of sizes in a sum of `cost_by_size`."""
    return cost >> _COUNT_BITS


def total_mentions(cost: Cost) -> int:
    """Return the sum of mentions in a sum of `cost_by_size`."""
    return cost & (1 << _COUNT_BITS) - 1


def break_ties(cost: Cost, variable: int, parents: Mask, num_vars: int) -> Cost:
    """Extend a cost so that, of assignments of equal cost, the one with the smallest parent sets costs least.

    Parent sets compare as numbers, variable 0 first.
    """
    # a field of num_vars bits for each variable, the first highest: sums cannot carry, so they compare
    # lexicographically
    return cost << num_vars**2 | parents << num_vars * (num_vars - 1 - variable)


def remove_tie_break(cost: Cost, num_vars: int) -> Cost:
    """Return the sum of costs in a sum of `break_ties`."""
    return cost >> num_vars**2


def best_structure(options: Mapping[int, Mapping[Mask, Cost]], roots: Mask) -> tuple[Cost, dict[int, Mask]] | None:
    """Return the least cost of an acyclic assignment, and its parent sets; None if there is none.

    `BudgetSpent` for more than MAX_FREE_VARIABLES endogenous variables.

    options: endogenous variable -> possible parent set -> cost
    roots: variables that may be parents of all
    """
    endogenous = sorted(options)
    if len(endogenous) > MAX_FREE_VARIABLES:
        raise BudgetSpent(f"{len(endogenous)} variables of unknown order; at most {MAX_FREE_VARIABLES}")
    position = {variable: index for index, variable in enumerate(endogenous)}
    available = roots | sum(1 << variable for variable in endogenous)
    best = []
    for variable in endogenous:
        allowed = {mask: cost for mask, cost in options[variable].items() if mask & ~available == 0}
        best.append(_cheapest_within(allowed, position))
    totals = _least_totals(best)
    if totals[-1] is None:
        return None
    return totals[-1], _backtrack(endogenous, options, best, totals)


def _cheapest_within(options: Mapping[Mask, Cost], position: Mapping[int, int]) -> list[Cost | None]:
    """Return, per subset of the endogenous variables, the least cost of a parent set within it and the roots."""
    cheapest: list[Cost | None] = [None] * (1 << len(position))
    for mask, cost in options.items():
        inside = sum(1 << index for variable, index in position.items() if mask >> variable & 1)
        least_cost = cheapest[inside]
        if least_cost is None or cost < least_cost:
            cheapest[inside] = cost
    # minimum over all subsets, one dimension at a time: m 2**m comparisons instead of 3**m
    for index in range(len(position)):
        bit = 1 << index
        for subset in range(len(cheapest)):
            if subset & bit:
                smaller = cheapest[subset ^ bit]
                current = cheapest[subset]
                if smaller is not None and (current is None or smaller < current):
                    cheapest[subset] = smaller
    return cheapest


def _least_totals(best: Sequence[Sequence[Cost | None]]) -> list[Cost | None]:
    """Compute D for all subsets; the full set is last."""
    totals_by_set: list[Cost | None] = [None] * (1 << len(best))
    totals_by_set[0] = 0
    # ascending: removing a variable gives a smaller number
    for subset in range(1, len(totals_by_set)):
        totals = [
            _cost_with_last(index, subset, best, totals_by_set) for index in range(len(best)) if subset >> index & 1
        ]
        totals_by_set[subset] = min((total for total in totals if total is not None), default=None)
    return totals_by_set


def _cost_with_last(
    index: int, subset: Mask, best: Sequence[Sequence[Cost | None]], totals: Sequence[Cost | None]
) -> Cost | None:
    """Return the cost of the subset if this variable comes last in its topological order."""
    predecessors = subset ^ (1 << index)
    others_cost, mechanism_cost = totals[predecessors], best[index][predecessors]
    return None if others_cost is None or mechanism_cost is None else others_cost + mechanism_cost


def _backtrack(
    endogenous: Sequence[int],
    options: Mapping[int, Mapping[Mask, Cost]],
    best: Sequence[Sequence[Cost | None]],
    totals: Sequence[Cost | None],
) -> dict[int, Mask]:
    """Recover the parent sets of the optimum; costs are distinct, so a cost identifies the set."""
    chosen: dict[int, Mask] = {}
    subset = len(totals) - 1
    while subset:
        index = next(
            i
            for i in range(len(endogenous))
            if subset >> i & 1 and _cost_with_last(i, subset, best, totals) == totals[subset]
        )
        subset ^= 1 << index
        cost = best[index][subset]
        chosen[endogenous[index]] = next(m for m, c in options[endogenous[index]].items() if c == cost)
    return chosen


# --- Strongly connected components of a directed graph ----------------------------------------------------------------


def components(arcs: Iterable[tuple[int, int]]) -> dict[int, int]:
    """Map every node to the least node of its strongly connected component."""
    children: dict[int, list[int]] = {}
    for u, v in arcs:
        children.setdefault(u, []).append(v)
        children.setdefault(v, [])
    # one search per node, O(nodes * arcs), instead of Tarjan's algorithm: graphs here have tens of nodes
    reached = {node: _reachable(children, node) for node in children}
    return {node: min(o for o in reached[node] if node in reached[o]) for node in children}


def _reachable(children: Mapping[int, Sequence[int]], start: int) -> set[int]:
    """Return the nodes that can be reached from a node, itself included."""
    reached, stack = {start}, [start]
    while stack:
        for child in children[stack.pop()]:
            if child not in reached:
                reached.add(child)
                stack.append(child)
    return reached


# --- Reduction before optimisation: remove dominated parent sets, split variables into strongly connected parts -------
MAX_LISTED_SUBSETS = 6  # members of a set up to which its subsets may be looked up, instead of comparing all sets


class ParentSet(NamedTuple):
    """Parent set with its cost; sorts by cost, then by mask."""

    cost: Cost
    mask: Mask


Part: TypeAlias = dict[int, dict[Mask, ParentSet]]
"""Strongly connected component: variable -> parents in the component -> the cheapest parent set with these there."""


def reduce_to_parts(options: Mapping[int, Mapping[Mask, Cost]], free: Mask) -> list[Part] | None:
    """Reduce and split; parts are sorted by least variable. None if some variable has no admissible set.

    options: variable -> possible parent set -> cost
    free: variables that precede all of these; sets with further variables are dropped
    """
    available = free | sum(1 << v for v in options)
    start = {
        v: [ParentSet(cost, mask) for mask, cost in candidates.items() if not mask & ~available]
        for v, candidates in options.items()
    }
    return split_into_parts(start)


def split_into_parts(sets: Mapping[int, Collection[ParentSet]]) -> list[Part] | None:
    """Reduce parent sets and split the variables into parts; None if some variable is left without a set."""
    finished: list[Part] = []
    stack = [sets] if sets else []
    while stack:
        group = stack.pop()
        part = remove_forced_descendants({v: remove_dominated(sets, group.keys()) for v, sets in group.items()})
        if part is None:
            return None
        groups = _component_groups(part)
        if len(groups) > 1:
            stack += [{v: list(part[v].values()) for v in component} for component in groups]
        else:
            finished.append(part)
    return sorted(finished, key=min)


def remove_dominated(sets: Collection[ParentSet], group: Collection[int]) -> dict[Mask, ParentSet]:
    """Remove dominated parent sets; return the others by their parents in the group."""
    group_mask = sum(1 << v for v in group)
    undominated: dict[Mask, ParentSet] = {}
    # by ascending cost: a set that dominates another comes before it, and is kept, or a kept set dominates both
    for candidate in sorted(sets):
        parents = candidate.mask & group_mask
        if 1 << min(parents.bit_count(), MAX_LISTED_SUBSETS + 1) <= len(undominated):
            is_dominated = any(subset in undominated for subset in _subsets(parents))
        else:
            is_dominated = any(not smaller & ~parents for smaller in undominated)
        if not is_dominated:
            undominated[parents] = candidate
    return undominated


def remove_forced_descendants(part: Part) -> Part | None:
    """Remove sets that would close a cycle with forced parents; None if a variable is left without a set."""
    while all(part.values()):
        forced = {v: reduce(int.__and__, candidates) for v, candidates in part.items()}
        ancestors = _close_ancestors(forced)
        descendants = {v: sum(1 << u for u in part if ancestors[u] >> v & 1) for v in part}
        reduced = {
            v: {parents: parent_set for parents, parent_set in sets.items() if not parents & descendants[v]}
            for v, sets in part.items()
        }
        if reduced == part:
            return part
        part = reduced
    return None


def _close_ancestors(parents: Mapping[int, Mask]) -> dict[int, Mask]:
    """Return the ancestors of every variable: transitive closure by Warshall's algorithm."""
    ancestors_of = dict(parents)
    for via in ancestors_of:
        for v, ancestors in ancestors_of.items():
            if ancestors >> via & 1:
                ancestors_of[v] = ancestors | ancestors_of[via]
    return ancestors_of


def _component_groups(part: Part) -> list[list[int]]:
    """Return the variables of each strongly connected component."""
    arcs = {(u, v) for v, candidates in part.items() for u in part if any(mask >> u & 1 for mask in candidates)}
    component_of = components(arcs)
    groups: dict[int, list[int]] = {}
    for v in part:
        groups.setdefault(component_of.get(v, v), []).append(v)
    return list(groups.values())


def _subsets(mask: Mask) -> Iterator[Mask]:
    subset = mask
    while True:
        yield subset
        if not subset:
            return
        subset = (subset - 1) & mask


# --- Acyclic assignment of least total cost if no parent set has more than one parent within the part -----------------
Entry: TypeAlias = tuple[int, Mask]
"""A variable and its parent set, of one parent or none; the empty set is an arc from a root outside the part."""

Arc: TypeAlias = tuple[Cost, Entry]
"""Reduced cost of an entry, and the entry."""

OUTSIDE = -1  # node of the root outside


def least_branching(options: Mapping[int, Mapping[Mask, Cost]]) -> dict[int, Mask] | None:
    """Return the parent set of every variable; None if every assignment has a cycle.

    options: variable -> parent set (of one variable or none) -> cost; requires that distinct branchings differ in cost
    """
    arcs = {
        v: {parents.bit_length() - 1 if parents else OUTSIDE: (cost, (v, parents)) for parents, cost in sets.items()}
        for v, sets in options.items()
    }
    branching = _edmonds(arcs, max(options) + 1)
    return None if branching is None else dict(branching)


def _edmonds(entering: dict[int, dict[int, Arc]], fresh: int) -> list[Entry] | None:
    """Return the entries of a minimum-cost branching that reaches every node; None if there is none.

    entering: node -> source -> arc; fresh: the next unused node, which stands for a contracted cycle
    """
    if not all(entering.values()):
        return None
    cheapest = {v: min(candidates, key=lambda u: candidates[u][0]) for v, candidates in entering.items()}
    cycle = _find_cycle(cheapest)
    if not cycle:
        return [entering[v][u][1] for v, u in cheapest.items()]
    contracted: dict[int, dict[int, Arc]] = {fresh: {}}
    entry_of: dict[Entry, int] = {}  # an arc into the cycle, and the node of the cycle that it enters
    for v, candidates in entering.items():
        for u, (cost, arc) in candidates.items():
            source, target = (fresh if u in cycle else u), (fresh if v in cycle else v)
            if source == target:
                continue
            if v in cycle:
                # the arc replaces the one that the cycle takes into v, so it costs the difference
                cost -= candidates[cheapest[v]][0]
                entry_of[arc] = v
            entering_target = contracted.setdefault(target, {})
            if source not in entering_target or cost < entering_target[source][0]:
                entering_target[source] = cost, arc
        if v not in cycle:
            contracted.setdefault(v, {})
    branching = _edmonds(contracted, fresh + 1)
    if branching is None:
        return None
    # a branching has exactly one arc into the contracted node; it breaks the cycle where it enters
    entered = next(entry_of[arc] for arc in branching if arc in entry_of)
    return [*branching, *(entering[v][cheapest[v]][1] for v in cycle if v != entered)]


def _find_cycle(parent: Mapping[int, int]) -> list[int]:
    """Return the nodes of a cycle of a parent map; empty without one."""
    visited = set[int]()
    for start in parent:
        path, node = list[int](), start
        while node in parent and node not in visited:
            visited.add(node)
            path.append(node)
            node = parent[node]
        if node in path:
            return path[path.index(node) :]
    return []


# --- Heuristic: an acyclic assignment of small total cost for up to 63 variables, by hill climbing over orders --------
MAX_VARIABLES = 63  # sets are signed machine words


def find_good_choice(options: Mapping[int, Mapping[Mask, Cost]], roots: Mask) -> tuple[Cost, dict[int, Mask]] | None:
    """Search for an acyclic assignment of small total cost of up to MAX_VARIABLES variables; None if there is none.

    Hill climbing by moves of one variable, from the order in which the cheapest variable always comes next.
    """
    orders = Orders(options, roots)
    first = orders.cheapest_first()
    return None if first is None else orders.improve_order(first)


class Orders:
    """Orders of variables, and the cheapest assignment that is compatible with each.

    options: variable -> possible parent set -> cost; roots: variables that may be parents of all
    """

    def __init__(self, options: Mapping[int, Mapping[Mask, Cost]], roots: Mask) -> None:
        if max(options, default=0) >= MAX_VARIABLES:
            raise ValueError(f"a search over orders is for up to {MAX_VARIABLES} variables")
        self.options = options
        self.roots = roots
        self.variables = sorted(options)
        self.ranked = {v: sorted(costs, key=costs.__getitem__) for v, costs in options.items()}
        self.masks = {v: np.array(ranked, np.int64) for v, ranked in self.ranked.items()}

    def cheapest_first(self) -> list[int] | None:
        """Return the greedy order, in which the variable of least cost comes next; None if no order is feasible."""
        order, placed = list[int](), self.roots
        while len(order) < len(self.variables):
            ready = [
                (self.options[v][mask], v)
                for v in self.variables
                if not placed >> v & 1 and (mask := self._cheapest_within(v, placed)) is not None
            ]
            if not ready:
                return None
            order.append(min(ready)[1])
            placed |= 1 << order[-1]
        return order

    def improve_order(self, order: Sequence[int]) -> tuple[Cost, dict[int, Mask]]:
        """Improve a feasible order, moving one variable at a time to its best position; return cost and parent sets."""
        order = list(order)
        best = int(sum(self._costs(order)))
        moved = True
        while moved:
            moved = False
            for v in self.variables:
                remaining = [u for u in order if u != v]
                cost, position = self._best_position(v, remaining)
                if cost < best:
                    order, best, moved = [*remaining[:position], v, *remaining[position:]], int(cost), True
        return best, self.choice(order)

    def choice(self, order: Sequence[int]) -> dict[int, Mask]:
        """Return the cheapest assignment that is compatible with a feasible order."""
        chosen, placed = dict[int, Mask](), self.roots
        for v in order:
            mask = self._cheapest_within(v, placed)
            assert mask is not None
            chosen[v] = mask
            placed |= 1 << v
        return chosen

    def _best_position(self, variable: int, remaining: Sequence[int]) -> tuple[float, int]:
        """Return the cost with the variable in its best position, and that position (the first of equals)."""
        before = self._costs(remaining)  # costs of the others where they come before the variable
        after = self._costs(remaining, 1 << variable)  # and after it
        placed = list(
            accumulate((1 << u for u in remaining), lambda placed_so_far, bit: placed_so_far | bit, initial=self.roots)
        )
        total = sum(after)
        best = (np.inf, 0)
        for position, placed_before in enumerate(placed):
            cost = total + self._cost(variable, placed_before)
            best = min(best, (cost, position))
            if position < len(remaining):
                total = sum(before[: position + 1]) + sum(after[position + 1 :])
        return best

    def _costs(self, order: Sequence[int], also_placed: Mask = 0) -> list[float]:
        """Return the cost of each variable after its predecessors and `also_placed`."""
        placed, costs = self.roots | also_placed, list[float]()
        for v in order:
            costs.append(self._cost(v, placed))
            placed |= 1 << v
        return costs

    def _cost(self, variable: int, placed: Mask) -> float:
        mask = self._cheapest_within(variable, placed)
        return np.inf if mask is None else self.options[variable][mask]

    def _cheapest_within(self, variable: int, placed: Mask) -> Mask | None:
        """Return the cheapest set of a variable whose members are placed; None without one."""
        fits = (self.masks[variable] & ~np.int64(placed)) == 0
        return self.ranked[variable][int(fits.argmax())] if fits.any() else None
