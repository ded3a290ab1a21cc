"""Tasks in numbers: nodes that a formula can matter for, columns of distinct clamps, costs of answers, bounds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

from calibrant.dsl.logic.prior import edges_by_target, predecessors, reachable, successors
from calibrant.dsl.logic.task import Experiment, Task

BYTE = 8
MAX_GAINS = 1 << 18  # cached, 40 MB


class Network:
    """Nodes of the class that a stimulus reaches and that lead to a readout; the formulas of all others are empty.

    nodes: names in code point order; everything else numbers them in this order
    literals: edges into each node as (source, sign); a source below 0 is the stimulus ~source
    """

    def __init__(self, task: Task) -> None:
        stimuli = set(task.setup.stimuli)
        forward = reachable(stimuli, successors(task.edges))
        backward = reachable(task.setup.readouts, predecessors(task.edges))
        useful = (forward & backward) - stimuli
        self.stimuli = task.setup.stimuli
        self.nodes = tuple(sorted(useful))
        self.number = {name: i for i, name in enumerate(self.nodes)}
        position = {name: ~i for i, name in enumerate(self.stimuli)} | self.number
        by_target = edges_by_target(task.edges)
        self.literals = tuple(
            tuple((position[e.source], e.sign) for e in by_target.get(name, []) if e.source in position)
            for name in self.nodes
        )
        self.parents = tuple(
            tuple(dict.fromkeys(source for source, _ in literals if source >= 0)) for literals in self.literals
        )
        self.children: tuple[list[int], ...] = tuple([] for _ in self.nodes)
        for node, parents in enumerate(self.parents):
            for parent in parents:
                self.children[parent].append(node)
        self.readouts = frozenset(self.number[name] for name in task.setup.readouts if name in self.number)
        self.max_clause = task.options.max_clause

    def __len__(self) -> int:
        return len(self.nodes)


class Responses:
    """Numbers of responses, a bit a column: states hold these, so that a value fits 64 bits whatever the columns are.

    Numbers are given in the order of first use; 0 is the response without a true column.
    """

    def __init__(self) -> None:
        self.listed = [0]
        self._number = {0: 0}

    def number(self, response: int) -> int:
        """Return the number of a response, a new one for one that is new."""
        number = self._number.get(response)
        if number is None:
            number = self._number[response] = len(self.listed)
            self.listed.append(response)
        return number


class Columns:
    """Distinct clamps, a bit each, and the costs of answering 0 or 1 there.

    stimuli: of each stimulus the columns in which it is on
    active: of each node the columns in which it is not inhibited
    required: of a readout (mask, value): members answer so in the columns of the mask
    responses: of nodes to the clamps, numbered for states
    constant: misfit of readouts whose answers no formula changes
    consistent: whether those readouts give the required answers
    """

    def __init__(
        self,
        network: Network,
        clamps: Iterable[Experiment],
        *,
        task: Task | None = None,
        readings: Sequence[tuple[Experiment, str]] = (),
        readouts: Sequence[str] = (),
    ) -> None:
        """Columns of the given clamps, with the costs of a task and required readings (answers of `readouts`)."""
        self.network = network
        column: dict[Experiment, int] = {}
        for clamp in (*clamps, *(experiment for experiment, _ in readings)):
            # equal clamps share a column: costs add up, and a repeated experiment doubles them at no further width
            column.setdefault(_normalised(clamp, network), len(column))
        self.clamps = tuple(column)
        self._column = column
        self.full = (1 << len(column)) - 1
        self.stimuli = tuple(_bits(name in clamp.on for clamp in self.clamps) for name in network.stimuli)
        self.active = tuple(_bits(name not in clamp.inhibited for clamp in self.clamps) for name in network.nodes)
        self.costs: dict[int, list[tuple[int, int]]] = {v: [(0, 0)] * len(column) for v in network.readouts}
        self.constant = 0
        self.responses = Responses()
        self.required: dict[int, tuple[int, int]] = {}
        self.consistent = True
        if task is not None:
            self._add_costs(task, column)
        for experiment, answers in readings:
            self._require(column[_normalised(experiment, network)], experiment, answers, readouts)
        self._tables = {v: _byte_tables(costs) for v, costs in self.costs.items()}
        # misfit of answering 0 everywhere, and by how much answering 1 differs
        self._zeros = {v: sum(zero for zero, _ in costs) for v, costs in self.costs.items()}
        self._savings = {v: _byte_tables([(0, unit - zero) for zero, unit in c]) for v, c in self.costs.items()}
        self._memo: dict[tuple[int, int], int] = {}
        self._gains: dict[tuple[int, int], int] = {}

    def _add_costs(self, task: Task, column: Mapping[Experiment, int]) -> None:
        factor, number = task.options.factor, self.network.number
        for experiment, row in zip(task.experiments, task.discretised, strict=True):
            j = column[_normalised(experiment, self.network)]
            for name, value in zip(task.setup.readouts, row, strict=True):
                if value is None:
                    continue
                # integers throughout (d = rounded factor * value): sums and limits are exact
                zero, unit = value**2, (factor - value) ** 2
                if name in number:
                    costs = self.costs[number[name]]
                    costs[j] = (costs[j][0] + zero, costs[j][1] + unit)
                else:
                    self.constant += unit if name in self.network.stimuli and name in experiment.on else zero

    def _require(self, j: int, experiment: Experiment, answers: str, readouts: Sequence[str]) -> None:
        for name, answer in zip(readouts, answers, strict=True):
            if name in self.network.number:
                v = self.network.number[name]
                mask, value = self.required.get(v, (0, 0))
                bit = 1 << j
                if mask & bit and bool(value & bit) != (answer == "1"):
                    self.consistent = False
                self.required[v] = (mask | bit, value | (bit if answer == "1" else 0))
            elif (name in self.network.stimuli and name in experiment.on) != (answer == "1"):
                self.consistent = False

    @cached_property
    def greatest_misfit(self) -> int:
        """The most that all readouts can cost together, the constant excluded."""
        return sum(max(pair) for costs in self.costs.values() for pair in costs)

    def index_of(self, clamp: Experiment) -> int:
        """Return the column of an experiment."""
        return self._column[_normalised(clamp, self.network)]

    def cost(self, node: int, response: int) -> int:
        """Return the misfit of a readout that answers so, a bit a column; 0 for other nodes."""
        tables = self._tables.get(node)
        if tables is None:
            return 0
        cached = self._memo.get((node, response))
        if cached is None:
            cached, rest = 0, response
            for table in tables:
                cached += table[rest & 255]
                rest >>= BYTE
            self._memo[node, response] = cached
        return cached

    def cheapest(self, node: int, masks: Iterable[int]) -> int:
        """Return the least misfit of a readout that answers alike in the columns of each mask."""
        gains = self._gains
        total = self._zeros[node]
        for mask in masks:
            gain = gains.get((node, mask))
            total += self._gain(node, mask) if gain is None else gain
        return total

    def savings(self, node: int) -> list[int]:
        """Return by how much answering 1 costs a readout more than 0, a column each; 0 where it cannot answer 1."""
        active = self.active[node]
        return [unit - zero if active >> j & 1 else 0 for j, (zero, unit) in enumerate(self.costs[node])]

    def _gain(self, node: int, mask: int) -> int:
        """Return by how much answering 1 in the columns of a mask is better than 0, as a number of at most 0."""
        gain = 0
        # inhibited columns answer 0 whatever the formula; masks are split by activity, so one shared bit means all
        if mask & self.active[node]:
            rest = mask
            for table in self._savings[node]:
                gain += table[rest & 255]
                rest >>= BYTE
        # few masks are met again and again: single columns most of all
        if len(self._gains) < MAX_GAINS:
            self._gains[node, mask] = min(0, gain)
        return min(0, gain)


def _normalised(clamp: Experiment, network: Network) -> Experiment:
    """Return the part of the clamps that changes an answer of the class."""
    return Experiment(clamp.on.intersection(network.stimuli), clamp.inhibited.intersection(network.number))


def _bits(flags: Iterable[bool]) -> int:
    return sum(1 << j for j, flag in enumerate(flags) if flag)


def _byte_tables(costs: Sequence[tuple[int, int]]) -> list[list[int]]:
    """Return for each eight columns the misfit of every pattern of answers; the misfit of a response is a sum."""
    tables = []
    for start in range(0, len(costs), BYTE):
        table = [0]
        for zero, unit in costs[start : start + BYTE]:
            table = [cost + zero for cost in table] + [cost + unit for cost in table]
        tables.append(table)
    return tables
