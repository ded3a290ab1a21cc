"""The acyclic choice of least total cost beyond the reach of tables over all subsets, exact where it answers.

Up to MAX_FREE_VARIABLES variables it is solvers.acyclic.least_cost. Beyond, choices multiply over the groups that no
cycle leaves, and in a group there are two cases: parent sets with one variable of the group at most are a branching of
least cost (Edmonds 1967); any others are gone through by what can come first (solvers.acyclic.placement), of which
there is little where parent sets leave little freedom.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from solvers.acyclic.count import Weights
from solvers.acyclic.least_cost import MAX_FREE_VARIABLES, Cost, Mask, best_structure
from solvers.acyclic.placement import Placement
from solvers.budget import BudgetSpent

MAX_BEGINNINGS = 100_000  # sets of variables that can come first; about half a minute

Options = Mapping[int, Mapping[Mask, Cost]]


def least_choice(options: Options, roots: Mask) -> tuple[Cost, dict[int, Mask]] | None:
    """The parent set of every endogenous variable, of least total cost, without a cycle; None if there is none.

    `BudgetSpent` where more than MAX_BEGINNINGS sets of more than MAX_FREE_VARIABLES variables can come first. Costs
    are additive and distinct for distinct choices (solvers.acyclic.least_cost.distinct).
    """
    if len(options) <= MAX_FREE_VARIABLES:
        return best_structure(options, roots)
    whole = Weights({v: dict.fromkeys(own, 1) for v, own in options.items()}, roots)
    cost, chosen = 0, dict[int, Mask]()
    for group in whole.components():
        own = {v: {m: options[v][m] for m in masks} for v, masks in zip(group.endogenous, group.options, strict=True)}
        found = _of_group(own, group)
        if found is None:
            return None
        cost, chosen = cost + found[0], chosen | found[1]
    return cost, chosen


def good_choice(options: Options, roots: Mask) -> tuple[Cost, dict[int, Mask]] | None:
    """An acyclic choice of small total cost, for any number of variables; None if there is none.

    The best order that is reached by moving one variable at a time, from one in which the cheapest comes first.
    """
    endogenous = sorted(options)
    ranked = {v: sorted(own, key=own.__getitem__) for v, own in options.items()}
    masks = {v: np.array(own, np.int64) for v, own in ranked.items()}

    def within(v: int, placed: Mask) -> Mask | None:
        fits = (masks[v] & ~np.int64(placed)) == 0
        return ranked[v][int(fits.argmax())] if fits.any() else None

    def chosen(order: Sequence[int]) -> dict[int, Mask] | None:
        placed, found = roots, dict[int, Mask]()
        for v in order:
            mask = within(v, placed)
            if mask is None:
                return None
            found[v] = mask
            placed |= 1 << v
        return found

    order, placed = list[int](), roots
    while len(order) < len(endogenous):
        ready = [(options[v][m], v) for v in endogenous if v not in order and (m := within(v, placed)) is not None]
        if not ready:
            return None
        order.append(min(ready)[1])
        placed |= 1 << order[-1]
    best = chosen(order)
    assert best is not None
    cost = sum(options[v][mask] for v, mask in best.items())
    improved = True
    while improved:
        improved = False
        for v in endogenous:
            rest = [u for u in order if u != v]
            for place in range(len(order)):
                moved = [*rest[:place], v, *rest[place:]]
                found = chosen(moved)
                total = cost if found is None else sum(options[u][mask] for u, mask in found.items())
                if found is not None and total < cost:
                    order, best, cost, improved = moved, found, total, True
    return cost, best


def _of_group(options: Options, group: Weights) -> tuple[Cost, dict[int, Mask]] | None:
    if not all(options.values()):
        return None
    if len(options) <= MAX_FREE_VARIABLES:
        return best_structure(options, group.available & ~sum(1 << v for v in options))
    inside = {v: {mask: group.inside(mask) for mask in own} for v, own in options.items()}
    if all(mask.bit_count() <= 1 for own in inside.values() for mask in own.values()):
        return _branching(options, inside, group)
    return _by_beginnings(options, inside, group)


def _by_beginnings(
    options: Options, inside: Mapping[int, Mapping[Mask, Mask]], group: Weights
) -> tuple[Cost, dict[int, Mask]] | None:
    """Least totals of the sets that can come first, by their number of variables."""
    endogenous, full = group.endogenous, group.full
    placement = Placement([dict.fromkeys(inside[v].values(), 1) for v in endogenous])
    ranked = [sorted(options[v], key=options[v].__getitem__) for v in endogenous]
    within = [np.array([inside[v][m] for m in own], np.int64) for v, own in zip(endogenous, ranked, strict=True)]
    least: dict[Mask, tuple[Cost, Mask, int, Mask]] = {0: (0, 0, 0, 0)}  # total, set before, who came last, its parents
    level, known = [0], 1
    for _ in endogenous:
        after = set[Mask]()
        for placed in level:
            before, able = least[placed][0], placement.able(placed)
            while able:
                low = able & -able
                able ^= low
                i = low.bit_length() - 1
                mask = ranked[i][int(((within[i] & np.int64(full & ~placed)) == 0).argmax())]
                cost = before + options[endogenous[i]][mask]
                if placed | low not in least or cost < least[placed | low][0]:
                    least[placed | low] = cost, placed, i, mask
                after.add(placed | low)
        level = sorted(after)
        known += len(level)
        if known > MAX_BEGINNINGS:
            number = f"{len(endogenous)} variables of unknown order"
            raise BudgetSpent(f"{number}: more than {MAX_BEGINNINGS:,} sets of them can come first")
    if full not in least:
        return None
    chosen, placed = dict[int, Mask](), full
    while placed:
        _, placed, i, mask = least[placed]
        chosen[endogenous[i]] = mask
    return sum(options[v][mask] for v, mask in chosen.items()), chosen


def _branching(
    options: Options, inside: Mapping[int, Mapping[Mask, Mask]], group: Weights
) -> tuple[Cost, dict[int, Mask]] | None:
    """The branching of least cost; node -1 stands for everything outside of the group."""
    arcs: dict[tuple[int, int], tuple[Cost, tuple[int, Mask]]] = {}
    for v, own in options.items():
        for mask, cost in own.items():
            within = inside[v][mask]
            source = group.endogenous[within.bit_length() - 1] if within else -1
            if (source, v) not in arcs or cost < arcs[source, v][0]:
                arcs[source, v] = cost, (v, mask)
    found = _edmonds({v: {u: arcs[u, w] for u, w in arcs if w == v} for v in options}, max(options) + 1)
    if found is None:
        return None
    chosen = dict(found)
    return sum(options[v][mask] for v, mask in chosen.items()), chosen


def _edmonds(
    entering: dict[int, dict[int, tuple[Cost, tuple[int, Mask]]]], fresh: int
) -> list[tuple[int, Mask]] | None:
    """Node -> source -> cost and what the arc stands for; the arcs of a least branching that reaches every node.

    fresh: a number that is no node's, nor any larger one
    """
    if not all(entering.values()):
        return None
    cheapest = {v: min(own, key=lambda u: own[u][0]) for v, own in entering.items()}
    cycle = _cycle(cheapest)
    if not cycle:
        return [entering[v][u][1] for v, u in cheapest.items()]
    contracted: dict[int, dict[int, tuple[Cost, tuple[int, Mask]]]] = {fresh: {}}
    broken: dict[tuple[int, Mask], int] = {}  # an arc into the cycle, and the node of the cycle that it enters
    for v, own in entering.items():
        for u, (cost, arc) in own.items():
            source, target = (fresh if u in cycle else u), (fresh if v in cycle else v)
            if source == target:
                continue
            if v in cycle:
                cost -= own[cheapest[v]][0]
                broken[arc] = v
            into = contracted.setdefault(target, {})
            if source not in into or cost < into[source][0]:
                into[source] = cost, arc
        if v not in cycle:
            contracted.setdefault(v, {})
    rest = _edmonds(contracted, fresh + 1)
    if rest is None:
        return None
    entered = next(broken[arc] for arc in rest if arc in broken)
    return [*rest, *(entering[v][cheapest[v]][1] for v in cycle if v != entered)]


def _cycle(parent: Mapping[int, int]) -> list[int]:
    """The nodes of a cycle of a parent map; empty without one."""
    done = set[int]()
    for start in parent:
        path, node = list[int](), start
        while node in parent and node not in done:
            done.add(node)
            path.append(node)
            node = parent[node]
        if node in path:
            return path[path.index(node) :]
    return []
