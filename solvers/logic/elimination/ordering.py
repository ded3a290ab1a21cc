"""Order of placement: strongly connected components parents first, by greedy choices and seeded restarts."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, log
from random import Random
from typing import TypeAlias

from calibrant.solvers.logic.network import Network
from calibrant.solvers.logic.tables import formula_bound

Unit: TypeAlias = tuple[int, ...]  # nodes of a strongly connected component, ascending

NUM_RESTARTS = 300
MAX_RESTART_WORK = 1_000_000
MAX_WEIGHT = 6.0  # log of the number of responses that a live node is expected to take: more formulas merge
ENOUGH_STATES = 2_000.0  # an expected number of states that no restart would repay


def strong_components(parents: Sequence[Sequence[int]]) -> list[Unit]:
    """Return the strongly connected components, parents first (Tarjan 1972, without recursion)."""
    index: dict[int, int] = {}
    low: dict[int, int] = {}
    on_stack: set[int] = set()
    stack: list[int] = []
    units: list[Unit] = []
    for root in range(len(parents)):
        if root in index:
            continue
        work = [(root, iter(parents[root]))]
        index[root] = low[root] = len(index)
        stack.append(root)
        on_stack.add(root)
        while work:
            node, rest = work[-1]
            parent = next(rest, None)
            if parent is None:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    position = stack.index(node)
                    units.append(tuple(sorted(stack[position:])))
                    on_stack.difference_update(stack[position:])
                    del stack[position:]
            elif parent not in index:
                index[parent] = low[parent] = len(index)
                stack.append(parent)
                on_stack.add(parent)
                work.append((parent, iter(parents[parent])))
            elif parent in on_stack:
                low[node] = min(low[node], index[parent])
    return units


class _Frontier:
    """Units with what a placement adds to the frontier and takes from it."""

    def __init__(self, network: Network) -> None:
        self.units = strong_components(network.parents)
        unit_of = {v: u for u, unit in enumerate(self.units) for v in unit}
        longest = [network.max_clause or len(parents) or 1 for parents in network.literals]
        self.weight = [
            min(MAX_WEIGHT, log(formula_bound(len({source for source, _ in literals}), longest[v]) + 1))
            for v, literals in enumerate(network.literals)
        ]
        self.children = [{unit_of[child] for child in network.children[v]} - {unit_of[v]} for v in range(len(network))]
        self.parents = [
            {unit_of[p] for v in unit for p in network.parents[v]} - {u} for u, unit in enumerate(self.units)
        ]
        self.following: list[set[int]] = [set() for _ in self.units]
        for u, sources in enumerate(self.parents):
            for source in sources:
                self.following[source].add(u)
        self.outer = [sorted({p for v in unit for p in network.parents[v]} - set(unit)) for unit in self.units]
        self.inner = [sum(self.weight[v] for v in unit) for unit in self.units]

    def order(self, rng: Random | None, most: float) -> tuple[float, list[int]] | None:
        """Return score and units in a greedy order, ties at random or first; None once the score exceeds `most`."""
        waiting = [len(sources) for sources in self.parents]
        remaining = [len(children) for children in self.children]
        ready = [u for u, number in enumerate(waiting) if not number]
        width, score, chosen = 0.0, 0.0, []
        while ready:
            changes = [self._change(u, remaining) for u in ready]
            best = min(changes)
            # 1e-9: sums of logarithms in another order differ in the last bits and must not break a tie
            ties = [i for i, change in enumerate(changes) if change <= best + 1e-9]
            pick = ties[0] if rng is None else ties[int(rng.random() * len(ties))]
            unit = ready.pop(pick)
            score += exp(width + self.inner[unit]) if len(self.units[unit]) > 1 else exp(max(0.0, width + best))
            # partial sums only grow: a restart worse than the best order is given up early
            if score > most:
                return None
            width += best
            chosen.append(unit)
            for parent in self.outer[unit]:
                remaining[parent] -= 1
            for follower in sorted(self.following[unit]):
                waiting[follower] -= 1
                if not waiting[follower]:
                    ready.append(follower)
        return score, chosen

    def _change(self, unit: int, remaining: Sequence[int]) -> float:
        """Return by how much the weight of the frontier grows if a unit is placed."""
        added = sum(self.weight[v] for v in self.units[unit] if self.children[v])
        return added - sum(self.weight[p] for p in self.outer[unit] if remaining[p] == 1)


def placement_order(network: Network, seed: int = 0) -> list[Unit]:
    """Return the components in the order of the least expected number of states."""
    frontier = _Frontier(network)
    best = frontier.order(None, float("inf"))
    assert best is not None
    rng = Random(seed)
    # an order takes time quadratic in the number of nodes
    for _ in range(min(NUM_RESTARTS, MAX_RESTART_WORK // (len(network) ** 2 + 1))):
        if best[0] <= ENOUGH_STATES:
            break
        best = frontier.order(rng, best[0]) or best
    return [frontier.units[u] for u in best[1]]
