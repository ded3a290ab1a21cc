"""Stages of an elimination: a node is placed in each; states are the values of live nodes, merged when equal.

A strongly connected component of several nodes has as many stages. In these a state also has a slot for each node of
the component: the value of a placed node; -1 of an unplaced one, or -(2 + m), see below. So that each model is placed
in one order, it is placed in its lexicographically smallest topological order: if a node of larger index is placed
before a node, the latter must use that node or one placed later. m is the mask, over its parents, of the nodes that
fulfil this.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from math import exp, log
from random import Random
from typing import TypeAlias

from calibrant.solvers.logic.elimination.bounds import HAS, USED, LocalSteps, StateBounds, Step, readout_bounds
from calibrant.solvers.logic.network import Columns, Network, formula_bound

# --- Order of placement: strongly connected components, parents first, by greedy choices and seeded restarts ----------
Unit: TypeAlias = tuple[int, ...]  # nodes of a strongly connected component, ascending

NUM_RESTARTS = 300  # random greedy orders
MAX_RESTART_WORK = 1_000_000  # random orders times nodes squared, the time of an order
MAX_WEIGHT = 6.0  # log of the largest number of responses expected of a live node: further formulas have equal ones
ENOUGH_STATES = 2_000.0  # expected number of states up to which a restart takes longer than it can save


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
            node, remaining_parents = work[-1]
            parent = next(remaining_parents, None)
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
    """Units (components), with the weights that a placement adds to the frontier of live nodes and removes from it.

    weight: log of the expected number of responses of each node; children, parents, following: by unit or node, units
    outer: parents of each unit outside of it; inner: sum of the weights of each unit
    """

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

    def order(self, rng: Random | None, max_score: float) -> tuple[float, list[int]] | None:
        """Return (score, units in a greedy order); None once the score exceeds `max_score`.

        The score is an expected number of states; rng: breaks ties, None for the first.
        """
        waiting = [len(sources) for sources in self.parents]
        remaining = [len(children) for children in self.children]
        ready = [u for u, num_parents in enumerate(waiting) if not num_parents]
        width, score, chosen = 0.0, 0.0, []
        while ready:
            changes = [self._change(u, remaining) for u in ready]
            best = min(changes)
            # 1e-9: sums of logarithms in different orders differ in the last bits, which must not break a tie
            ties = [i for i, change in enumerate(changes) if change <= best + 1e-9]
            pick = ties[0] if rng is None else ties[int(rng.random() * len(ties))]
            unit = ready.pop(pick)
            score += exp(width + self.inner[unit]) if len(self.units[unit]) > 1 else exp(max(0.0, width + best))
            # partial sums only grow: a restart that is worse than the best order ends early
            if score > max_score:
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
        """Return the growth of the frontier's weight if a unit is placed."""
        added = sum(self.weight[v] for v in self.units[unit] if self.children[v])
        return added - sum(self.weight[p] for p in self.outer[unit] if remaining[p] == 1)


def placement_order(network: Network, seed: int = 0) -> list[Unit]:
    """Return the components in the best order found, by expected number of states."""
    frontier = _Frontier(network)
    best = frontier.order(None, float("inf"))
    assert best is not None
    rng = Random(seed)
    for _ in range(min(NUM_RESTARTS, MAX_RESTART_WORK // (len(network) ** 2 + 1))):
        if best[0] <= ENOUGH_STATES:
            break
        best = frontier.order(rng, best[0]) or best
    return [frontier.units[u] for u in best[1]]


State: TypeAlias = tuple[int, ...]
# Block of transitions: (head, tail, lower bound of later misfit, steps). The target state of a step is head, value of
# the placed node, tail. Without a tail (None) it is the head alone, and the value must be used or empty.
Placement: TypeAlias = tuple[State, State | None, int, list[Step]]

EVALUATIONS_PER_BOUND = 30  # a bound of a readout takes about 3 microseconds, a formula 0.1
UNPLACED = -1
STUCK = -2  # an unplaced node that must use a node placed later, none of which is its parent so far


@dataclass
class Layer:
    """States after a stage, and the transitions of the stage.

    best: least misfit so far of each state
    starts: first transition of each source state, a state of the layer before
    targets, groups: target state and group of formulas of each transition
    """

    states: Sequence[State]
    best: list[int]
    starts: array[int] = field(default_factory=lambda: array("q", [0]))
    targets: array[int] = field(default_factory=lambda: array("I"))
    groups: array[int] = field(default_factory=lambda: array("I"))


@dataclass(frozen=True)
class Stage:
    """Stage of one placement.

    unit: component of the node; slots: node at each position of a state, once `extend` slots are added for the unit
    project: positions that remain after the stage, None inside a component
    rest: lower bound of the misfit of readouts in later components; bounds: lower bound of each node of the component
    stay: nodes with a child in a later component; after: bounds of the states after the stage, None inside a component
    """

    unit: Unit
    slots: tuple[int, ...]
    extend: int
    project: tuple[int, ...] | None
    rest: int
    bounds: tuple[int, ...]
    stay: frozenset[int]
    after: StateBounds | None

    @property
    def bound_effort(self) -> int:
        """Work of computing a bound, in formulas evaluated."""
        return EVALUATIONS_PER_BOUND * (1 if self.after is None else 1 + len(self.after.parts))

    def bound(self, state: State) -> int:
        """Return a lower bound of the misfit of readouts that are not placed; state: a state after the stage."""
        if self.after is not None:
            return self.after.bound(state)
        first = len(self.slots) - len(self.unit)
        return self.rest + sum(bound for bound, value in zip(self.bounds, state[first:], strict=True) if value < 0)


def make_stages(network: Network, columns: Columns, units: Sequence[Unit]) -> list[Stage]:
    """Return the stages of an order of components."""
    stages = []
    placed: set[int] = set()
    live: tuple[int, ...] = ()
    bounds = readout_bounds(network, columns)
    rest = sum(bounds.values())
    for unit in units:
        placed.update(unit)
        slots = live + unit
        rest -= sum(bounds.get(v, 0) for v in unit)
        project = tuple(i for i, v in enumerate(slots) if not placed.issuperset(network.children[v]))
        live = tuple(slots[i] for i in project)
        own_bounds = tuple(bounds.get(v, 0) for v in unit)
        after = StateBounds(network, columns, live, frozenset(placed))
        for number in range(len(unit)):
            extend, last = len(unit) if number == 0 else 0, number == len(unit) - 1
            ends = (project, after) if last else (None, None)
            stages.append(Stage(unit, slots, extend, ends[0], rest, own_bounds, frozenset(live), ends[1]))
    return stages


class SinglePlacer:
    """Placer of the node of a component of one node."""

    def __init__(self, stage: Stage, steps: LocalSteps) -> None:
        network = steps.network
        self.stage = stage
        (self.node,) = stage.unit
        self.steps = steps
        slot = len(stage.slots) - 1
        position = {v: i for i, v in enumerate(stage.slots)}
        assert stage.project is not None
        self.parents = tuple(position[p] for p in network.parents[self.node])
        self.remaining = tuple(i for i in stage.project if i != slot)
        self.leaving = tuple(i for i in range(slot) if i not in stage.project)
        self.tail: State | None = () if slot in stage.project else None
        self.rest = stage.rest

    def placements(self, state: State) -> Iterator[Placement]:
        """Yield the blocks of transitions from a state."""
        parents, leaving, remaining = self.parents, self.leaving, self.remaining
        for sources, block in self.steps.steps(self.node, tuple([state[p] >> 1 for p in parents])):
            marked: Sequence[int] = _mark(state, parents, sources) if sources else state
            if not any(marked[p] & (HAS | USED) == HAS for p in leaving):
                yield tuple([marked[p] for p in remaining]), self.tail, self.rest, block


class ComponentPlacer:
    """Placer of every node that may come next in a component of several nodes."""

    def __init__(self, stage: Stage, steps: LocalSteps) -> None:
        network = steps.network
        self.unit, self.steps, self.stage = stage.unit, steps, stage
        self.first = len(stage.slots) - len(stage.unit)
        position = {v: i for i, v in enumerate(stage.slots)}
        number = {v: i for i, v in enumerate(stage.unit)}
        self.parents = [tuple(position[p] for p in network.parents[v]) for v in stage.unit]
        # bits[j][i]: bit of node i of the component among the parents of node j, 0 if it is none
        self.bits = [
            [1 << network.parents[v].index(u) if u in network.parents[v] else 0 for u in stage.unit] for v in stage.unit
        ]
        self.inside = [sum(1 << number[p] for p in network.parents[v] if p in number) for v in stage.unit]
        self.children = [sum(1 << number[c] for c in network.children[v] if c in number) for v in stage.slots]
        self.later = [v in stage.stay for v in stage.slots]

    def placements(self, state: State) -> Iterator[Placement]:
        """Yield the blocks of transitions from a state, node by node."""
        extended = state + (UNPLACED,) * self.stage.extend
        first, size = self.first, len(self.unit)
        placed = sum(1 << i for i in range(size) if extended[first + i] >= 0)
        for i in range(size):
            since = extended[first + i]
            # placed already, or bound to use a node placed later, none of which is a parent so far
            if since >= 0 or since == STUCK:
                continue
            key = tuple([extended[p] >> 1 if extended[p] > 0 else 0 for p in self.parents[i]])
            after = placed | 1 << i
            rest = self.stage.rest + sum(b for j, b in enumerate(self.stage.bounds) if not after >> j & 1)
            for sources, block in self.steps.steps(self.unit[i], key):
                if since < STUCK and not sources & (STUCK - since):
                    continue
                yield from self._place(extended, i, after, sources, block, rest)

    def _place(
        self, extended: State, i: int, after: int, sources: int, block: list[Step], rest: int
    ) -> Iterator[Placement]:
        has = bool(block[0][1])
        marked = _mark(extended, self.parents[i], sources)
        first, slot = self.first, self.first + i
        for j in range(len(self.unit)):
            if after >> j & 1:
                continue
            since, bit = marked[first + j], self.bits[j][i] if has else 0
            # smallest order: since j < i was not placed before i, it must use i or a node placed later
            if j < i:
                since = STUCK - bit
            elif since <= STUCK:
                since = STUCK - ((STUCK - since) | bit)
            if since == STUCK and not self.inside[j] & ~after:
                return  # no unplaced parent could fulfil this
            marked[first + j] = since
        for p, value in enumerate(marked):
            if p != slot and value > 0 and not self.later[p] and not self.children[p] & ~after:
                if value & (HAS | USED) == HAS:
                    return
                marked[p] = 0
        alive = self.later[slot] or bool(self.children[slot] & ~after)
        marked[slot] = 0
        project = self.stage.project
        if project is None:
            yield (
                tuple(marked[:slot]) if alive else tuple(marked),
                tuple(marked[slot + 1 :]) if alive else None,
                rest,
                block,
            )
        else:
            head = tuple([marked[p] for p in project if p < slot])
            tail = tuple([marked[p] for p in project if p > slot])
            yield head if alive else head + tail, tail if alive else None, rest, block


def _mark(state: State, parents: Sequence[int], sources: int) -> list[int]:
    """Return the values of a state in which some parents are used."""
    marked = list(state)
    while sources:
        low = sources & -sources
        marked[parents[low.bit_length() - 1]] |= USED
        sources ^= low
    return marked


Charge: TypeAlias = Callable[[int, int], None]  # called with the numbers of states and transitions of the layer so far
Placer: TypeAlias = SinglePlacer | ComponentPlacer


def make_placer(stage: Stage, steps: LocalSteps) -> Placer:
    """Return the placer of a stage."""
    return SinglePlacer(stage, steps) if len(stage.unit) == 1 else ComponentPlacer(stage, steps)


def expand(placer: Placer, layer: Layer, limit: int, charge: Charge) -> Layer:
    """Return the states after a stage whose misfit so far plus bound is at most the limit."""
    states: list[State] = []
    next_layer = Layer(states, [])
    index: dict[State, int] = {}
    bounds: list[int] = []  # bound of each state
    rejected: dict[State, int] = {}  # states beyond the limit so far, with their bounds
    bound_of = placer.stage.bound
    steps, effort = placer.steps, placer.stage.bound_effort
    best = next_layer.best
    targets, groups, starts = next_layer.targets, next_layer.groups, next_layer.starts
    for state, base in zip(layer.states, layer.best, strict=True):
        for head, tail, rest, block in placer.placements(state):
            max_cost = limit - base - rest
            for cost, value, group in block:
                # the steps of a block ascend by misfit
                if cost > max_cost:
                    break
                if tail is None:
                    if value & (HAS | USED) == HAS:
                        continue
                    target = head
                else:
                    target = (*head, value, *tail)
                target_index = index.get(target)
                if target_index is None:
                    # the bound is that of the state: another path to it may cost less
                    bound = rejected.get(target)
                    if bound is None:
                        bound = bound_of(target)
                        steps.evaluations += effort
                    if base + cost + bound > limit:
                        rejected[target] = bound
                        continue
                    target_index = index[target] = len(states)
                    states.append(target)
                    bounds.append(bound)
                    best.append(base + cost)
                elif base + cost + bounds[target_index] > limit:
                    continue
                elif base + cost < best[target_index]:
                    best[target_index] = base + cost
                targets.append(target_index)
                groups.append(group)
        starts.append(len(targets))
        # after every source state, so that the budget is exceeded by the transitions of one state at most
        charge(len(states), len(targets))
    return next_layer
