"""Counting of members by a plain elimination of its own; shares nothing with the solvers.

States are dictionaries from the values of live nodes to numbers by (misfit, size). Every formula is tried for every
state. A node is placed once its formula is part of the state; a cell is the value of a readout in an experiment. A
readout that is not placed costs at least the cheaper answer of each of its cells. Cyclic components are placed by
levels: a node's level is one more than the highest level of its sources in the component, which each acyclic model has
once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from calibrant.audits.claims import checkpoint
from calibrant.audits.logic.evidence import Case
from calibrant.dsl.logic.clause import Clause
from calibrant.dsl.logic.prior import edges_by_target, predecessors, reachable, successors
from calibrant.dsl.logic.reference import clauses_into, formulas_over

Points: TypeAlias = Counter[tuple[int, int]]  # (misfit, size) -> number


class Value(NamedTuple):
    """Value of a placed node.

    response: a bit an experiment; has_formula: its formula is not empty; is_read: it occurs in a formula
    """

    response: int
    has_formula: bool
    is_read: bool


Values: TypeAlias = tuple[tuple[str, Value], ...]  # of live nodes, by name
LevelState: TypeAlias = tuple[Values, frozenset[str], frozenset[str]]  # + (names of previous level, of this one)


class Outcome(NamedTuple):
    """Outcome of a formula of a node.

    cost: misfit of a readout; sources: nodes that it uses
    """

    value: Value
    cost: int
    size: int
    sources: frozenset[str]


class Recount:
    """Counter of the models of one case."""

    def __init__(self, case: Case) -> None:
        setup, edges = case.setup, case.task.edges
        self.stimuli = set(setup.stimuli)
        useful = reachable(setup.stimuli, successors(edges)) & reachable(setup.readouts, predecessors(edges))
        self.edges = [edge for edge in edges if {edge.source, edge.target} <= useful]
        self.nodes = sorted(useful - self.stimuli)
        self.readouts = set(setup.readouts) & set(self.nodes)
        self.children = successors(self.edges)
        self.parents = {v: sorted(predecessors(self.edges).get(v, set()) - self.stimuli) for v in self.nodes}
        grouped = edges_by_target(self.edges)
        self.formulas = {
            v: [tuple(sorted(f)) for f in formulas_over(clauses_into(grouped.get(v, []), case.task.options.max_clause))]
            for v in self.nodes
        }
        experiments = case.experiments
        self.full = (1 << len(experiments)) - 1
        self.on = {s: sum(1 << j for j, x in enumerate(experiments) if s in x.on) for s in setup.stimuli}
        self.active = {v: sum(1 << j for j, x in enumerate(experiments) if v not in x.inhibited) for v in self.nodes}
        self.constant = 0
        self.cells: dict[str, list[tuple[int, int]]] = {v: [(0, 0)] * len(experiments) for v in self.readouts}
        for j, row in enumerate(case.values):
            for name, value in zip(setup.readouts, row, strict=True):
                if value is not None:
                    # values are integers in units of 1 / factor
                    costs = value**2, (case.factor - value) ** 2
                    if name in self.readouts:
                        self.cells[name][j] = costs
                    else:
                        is_clamped_on = name in experiments[j].on and name in self.stimuli
                        self.constant += costs[is_clamped_on]
        self.bound = {v: sum(map(min, cells)) for v, cells in self.cells.items()}
        # no float: misfits may exceed every one
        self.greatest = sum(sum(map(max, cells)) for cells in self.cells.values())
        self._memo: dict[tuple[str, Clause | None, tuple[tuple[str, int], ...]], Counter[Outcome]] = {}

    def points(self, limit: int | None, without: Clause | None = None) -> Points:
        """Return the numbers of models by (misfit, size), of misfit at most the limit, without a clause."""
        most = self.greatest if limit is None else limit - self.constant
        states: dict[Values, Points] = {(): Counter({(0, 0): 1})}
        order = self._order()
        placed: set[str] = set()
        rest = sum(self.bound.values())
        for number, unit in enumerate(order):
            checkpoint("members", number, len(order))
            placed.update(unit)
            rest -= sum(self.bound.get(v, 0) for v in unit)
            following: dict[Values, Points] = {}
            for values, points in states.items():
                room = most - rest - min(misfit for misfit, _ in points)
                for after, extra, ways in self._placements(unit, dict(values), without, room):
                    remaining = self._leave(after, placed)
                    if remaining is None:
                        continue
                    sums = following.setdefault(remaining, Counter())
                    for (misfit, size), paths in points.items():
                        if misfit + extra[0] + rest <= most:
                            sums[misfit + extra[0], size + extra[1]] += paths * ways
            states = {values: points for values, points in following.items() if points}
        self._memo.clear()
        total: Points = Counter()
        for points in states.values():
            for (misfit, size), paths in points.items():
                total[misfit + self.constant, size] += paths
        return total

    def _leave(self, values: Mapping[str, Value], placed: set[str]) -> Values | None:
        """Return the values of nodes with a child to come; None if one leaves that has a formula and is not used."""
        remaining = []
        for name, value in values.items():
            if self.children.get(name, set()) - self.stimuli <= placed:
                if value.has_formula and not value.is_read:
                    return None
            else:
                remaining.append((name, value))
        return tuple(sorted(remaining))

    def _order(self) -> list[tuple[str, ...]]:
        """Return the strongly connected components, parents first, each time that of the least frontier."""
        reach = {v: reachable([v], self.children) for v in self.nodes}
        units = sorted({tuple(sorted(u for u in reach[v] if u in reach and v in reach[u])) for v in self.nodes})
        order: list[tuple[str, ...]] = []
        placed: set[str] = set()
        while units:
            ready = [u for u in units if all(p in placed or p in u for v in u for p in self.parents[v])]
            best = min(ready, key=lambda u: (self._width(placed | set(u)), u))
            order.append(best)
            placed.update(best)
            units.remove(best)
        return order

    def _width(self, placed: set[str]) -> int:
        return sum(not self.children.get(v, set()) <= placed for v in placed)

    def _placements(
        self, unit: Sequence[str], values: dict[str, Value], without: Clause | None, most: int
    ) -> Iterator[tuple[dict[str, Value], tuple[int, int], int]]:
        """Yield values after the placement of a component, (misfit, size) added, and number of ways."""
        if len(unit) == 1:
            (name,) = unit
            for outcome, ways in self._outcomes(name, values, without).items():
                if outcome.cost <= most:
                    yield self._placed(name, values, outcome), (outcome.cost, outcome.size), ways
            return
        yield from self._levels(unit, values, without, most)

    def _levels(
        self, unit: Sequence[str], values: dict[str, Value], without: Clause | None, most: int
    ) -> Iterator[tuple[dict[str, Value], tuple[int, int], int]]:
        states: dict[LevelState, Points] = {
            (tuple(sorted(values.items())), frozenset(), frozenset()): Counter({(0, 0): 1})
        }
        for level in range(len(unit)):
            for name in unit:
                following: dict[LevelState, Points] = {}
                for (items, before, now), points in states.items():
                    following.setdefault((items, before, now), Counter()).update(points)
                    present = dict(items)
                    if name in present:
                        continue
                    available = {u: v for u, v in present.items() if u not in now}
                    for outcome, ways in self._outcomes(name, available, without).items():
                        if level and not outcome.sources & before:
                            continue
                        after = self._placed(name, present, outcome)
                        cost = outcome.cost
                        sums = following.setdefault((tuple(sorted(after.items())), before, now | {name}), Counter())
                        for (misfit, size), paths in points.items():
                            if misfit + cost <= most:
                                sums[misfit + cost, size + outcome.size] += paths * ways
                states = following
            ended: dict[LevelState, Points] = {}
            for (items, _, now), points in states.items():
                if set(unit) <= dict(items).keys():
                    for point, paths in points.items():
                        yield dict(items), point, paths
                elif now:
                    ended.setdefault((items, now, frozenset()), Counter()).update(points)
            states = ended

    def _placed(self, name: str, values: Mapping[str, Value], outcome: Outcome) -> dict[str, Value]:
        after = {u: v._replace(is_read=True) if u in outcome.sources else v for u, v in values.items()}
        after[name] = outcome.value
        return after

    def _outcomes(self, name: str, values: Mapping[str, Value], without: Clause | None) -> Counter[Outcome]:
        """Return the outcomes of all formulas of a node whose sources have a formula, with their numbers."""
        parents = [(u, values[u].response) for u in self.parents[name] if u in values and values[u].has_formula]
        key = (name, without, tuple(parents))
        if key not in self._memo:
            self._memo[key] = self._evaluate(name, {**self.on, **dict(parents)}, without)
        return self._memo[key]

    def _evaluate(self, name: str, responses: Mapping[str, int], without: Clause | None) -> Counter[Outcome]:
        outcomes: Counter[Outcome] = Counter()
        for formula in self.formulas[name]:
            if without in formula or any(source not in responses for clause in formula for source in clause.sources):
                continue
            response, size = 0, 0
            for clause in formula:
                true = self.active[name]
                for source, sign in clause.literals:
                    true &= responses[source] if sign == 1 else ~responses[source]
                response |= true
                size += len(clause.literals)
            sources = frozenset(source for clause in formula for source in clause.sources) - self.stimuli
            value = Value(response, bool(formula), name in self.readouts and bool(formula))
            outcomes[Outcome(value, self._cost(name, value), size, sources)] += 1
        return outcomes

    def _cost(self, name: str, value: Value) -> int:
        return sum(cell[value.response >> j & 1] for j, cell in enumerate(self.cells.get(name, ())))
