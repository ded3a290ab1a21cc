"""Stages of an elimination: a node is placed in each; states are the values of live nodes, merged when equal.

A component of several nodes has as many stages. In these a state has a slot for each node of the component, too. A
placed node has its value, an unplaced one -1, or -(2 + m) where m is the mask (over its parents) of `since`. A model is
placed in its lexicographically smallest topological order, of which it has one: a node of smaller number than one
placed before it must use a node placed since then.
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

# --- Order of placement: strongly connected components parents first, by greedy choices and seeded restarts -----------
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


State: TypeAlias = tuple[int, ...]
# Target states of a block: head, value, tail; without a tail the value is dropped, and must be used or empty.
Placement: TypeAlias = tuple[State, State | None, int, list[Step]]

EVALUATIONS_PER_BOUND = 30  # a bound of a readout takes about 3 microseconds, a formula 0.1
UNPLACED = -1
STUCK = -2  # an unplaced node that must use a node placed since, of which no parent is there yet


@dataclass
class Layer:
    """States after a stage, and the transitions of the stage before it.

    best: least misfit so far of each state
    starts, targets, groups: transitions by source state (of the layer before): target state and group of formulas
    """

    states: Sequence[State]
    best: list[int]
    starts: array[int] = field(default_factory=lambda: array("q", [0]))
    targets: array[int] = field(default_factory=lambda: array("I"))
    groups: array[int] = field(default_factory=lambda: array("I"))


@dataclass(frozen=True)
class Stage:
    """One placement.

    slots: nodes by position, after `extend` more slots were added; project: positions that remain
    unit: the component; rest: lower bound on the misfit of readouts after it; bounds: of readouts of the component
    after: bounds of the states after the stage; None inside a component
    stay: nodes with a child after the component
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
        """The work of a bound, in formulas evaluated."""
        return EVALUATIONS_PER_BOUND * (1 if self.after is None else 1 + len(self.after.parts))

    def bound(self, state: State) -> int:
        """Return a lower bound on the misfit of readouts that are not placed in a state after the stage."""
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
    """Placements of the node of a component of one."""

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
        """Yield the target states of a state, block by block."""
        parents, leaving, remaining = self.parents, self.leaving, self.remaining
        for sources, block in self.steps.steps(self.node, tuple([state[p] >> 1 for p in parents])):
            marked: Sequence[int] = _mark(state, parents, sources) if sources else state
            if not any(marked[p] & (HAS | USED) == HAS for p in leaving):
                yield tuple([marked[p] for p in remaining]), self.tail, self.rest, block


class ComponentPlacer:
    """Placements of every node that may come next in a component of several nodes."""

    def __init__(self, stage: Stage, steps: LocalSteps) -> None:
        network = steps.network
        self.unit, self.steps, self.stage = stage.unit, steps, stage
        self.first = len(stage.slots) - len(stage.unit)
        position = {v: i for i, v in enumerate(stage.slots)}
        number = {v: i for i, v in enumerate(stage.unit)}
        self.parents = [tuple(position[p] for p in network.parents[v]) for v in stage.unit]
        # bit of a node of the component among the parents of another one, by (child, node)
        self.bits = [
            [1 << network.parents[v].index(u) if u in network.parents[v] else 0 for u in stage.unit] for v in stage.unit
        ]
        self.inside = [sum(1 << number[p] for p in network.parents[v] if p in number) for v in stage.unit]
        self.children = [sum(1 << number[c] for c in network.children[v] if c in number) for v in stage.slots]
        self.later = [v in stage.stay for v in stage.slots]

    def placements(self, state: State) -> Iterator[Placement]:
        """Yield the target states of a state, node by node and block by block."""
        extended = state + (UNPLACED,) * self.stage.extend
        first, size = self.first, len(self.unit)
        placed = sum(1 << i for i in range(size) if extended[first + i] >= 0)
        for i in range(size):
            since = extended[first + i]
            # placed already, or bound to use a node placed since, of which none is a parent yet
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
            # lexicographically smallest order: j < i came not first, so it must use i or a later node
            if j < i:
                since = STUCK - bit
            elif since <= STUCK:
                since = STUCK - ((STUCK - since) | bit)
            if since == STUCK and not self.inside[j] & ~after:
                return  # no parent is left that could come first
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


Charge: TypeAlias = Callable[[int, int], None]  # numbers of states and transitions of the layer so far
Placer: TypeAlias = SinglePlacer | ComponentPlacer


def make_placer(stage: Stage, steps: LocalSteps) -> Placer:
    """Return the placer of a stage."""
    return SinglePlacer(stage, steps) if len(stage.unit) == 1 else ComponentPlacer(stage, steps)


def expand(placer: Placer, layer: Layer, limit: int, charge: Charge) -> Layer:
    """Return the states after a stage whose misfit so far and bound stay within the limit."""
    states: list[State] = []
    following = Layer(states, [])
    index: dict[State, int] = {}
    bounds: list[int] = []  # of each state on the misfit of what is not placed
    rejected: dict[State, int] = {}
    bound_of = placer.stage.bound
    steps, effort = placer.steps, placer.stage.bound_effort
    best = following.best
    targets, groups, starts = following.targets, following.groups, following.starts
    for state, base in zip(layer.states, layer.best, strict=True):
        for head, tail, rest, block in placer.placements(state):
            most = limit - base - rest
            for cost, value, group in block:
                # blocks are in ascending misfit: the rest of the block costs no less
                if cost > most:
                    break
                if tail is None:
                    if value & (HAS | USED) == HAS:
                        continue
                    target = head
                else:
                    target = (*head, value, *tail)
                number = index.get(target)
                if number is None:
                    # the bound belongs to the state, not to the path: a later path may cost less
                    bound = rejected.get(target)
                    if bound is None:
                        bound = bound_of(target)
                        steps.evaluations += effort
                    if base + cost + bound > limit:
                        rejected[target] = bound
                        continue
                    number = index[target] = len(states)
                    states.append(target)
                    bounds.append(bound)
                    best.append(base + cost)
                elif base + cost + bounds[number] > limit:
                    continue
                elif base + cost < best[number]:
                    best[number] = base + cost
                targets.append(number)
                groups.append(group)
        starts.append(len(targets))
        # after every source state: the overshoot is one state's placements, not a layer
        charge(len(states), len(targets))
    return following
