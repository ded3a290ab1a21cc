"""The network of a task in numbers: nodes, columns of experiments, formulas of a node, misfits of models.

A *response* of a node is an integer: bit c is its value in column c, the c-th distinct experiment.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from graphlib import TopologicalSorter
from math import comb
from typing import NamedTuple, Protocol

from calibrant.dsl.logic import item

# --- Tasks in numbers: nodes that a formula can matter for, columns of distinct clamps, costs of answers, bounds ------
BYTE = 8  # columns looked up at a time, in tables of 256
MAX_GAINS = 1 << 18  # entries of a cache: 40 MB


class Network:
    """Nodes of the class that a stimulus reaches and that reach a readout; the formulas of all others are empty.

    nodes: names in code point order; elsewhere nodes are indices in it; number: name -> index
    literals: edges into each node as (source, sign); a source below 0 is the stimulus ~source
    """

    def __init__(self, task: item.Task) -> None:
        stimuli = set(task.setup.stimuli)
        forward = item.reachable(stimuli, item.successors(task.edges))
        backward = item.reachable(task.setup.readouts, item.predecessors(task.edges))
        useful = (forward & backward) - stimuli
        self.stimuli = task.setup.stimuli
        self.nodes = tuple(sorted(useful))
        self.number = {name: i for i, name in enumerate(self.nodes)}
        position = {name: ~i for i, name in enumerate(self.stimuli)} | self.number
        by_target = item.edges_by_target(task.edges)
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
    """Indices of responses, by which states have them: a value then fits 64 bits, whatever the number of columns.

    listed: responses in the order of first use; index 0 is the response 0
    """

    def __init__(self) -> None:
        self.listed = [0]
        self._number = {0: 0}

    def number(self, response: int) -> int:
        """Return the index of a response; add it if it is new."""
        index = self._number.get(response)
        if index is None:
            index = self._number[response] = len(self.listed)
            self.listed.append(response)
        return index


class Columns:
    """Columns: distinct experiments, each with the costs of answering 0 or 1.

    stimuli: response of each stimulus; active: for each node the columns in which it is not inhibited
    required: readout -> (mask, value): members answer `value` in the columns of the mask
    responses: indices of the responses of nodes
    constant: misfit of readouts whose answers no formula changes
    consistent: whether those readouts have the required answers
    """

    def __init__(
        self,
        network: Network,
        clamps: Iterable[item.Experiment],
        *,
        task: item.Task | None = None,
        readings: Sequence[tuple[item.Experiment, str]] = (),
        readouts: Sequence[str] = (),
    ) -> None:
        """Lay out columns of experiments, with the costs of a task and required readings (answers of `readouts`)."""
        self.network = network
        column: dict[item.Experiment, int] = {}
        for clamp in (*clamps, *(experiment for experiment, _ in readings)):
            # equal experiments share a column, in which their costs add up
            column.setdefault(_effective(clamp, network), len(column))
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
            self._require(column[_effective(experiment, network)], experiment, answers, readouts)
        self._tables = {v: _byte_tables(costs) for v, costs in self.costs.items()}
        # misfit of answering 0 everywhere, and what answering 1 adds to it
        self._zeros = {v: sum(zero for zero, _ in costs) for v, costs in self.costs.items()}
        self._savings = {v: _byte_tables([(0, unit - zero) for zero, unit in c]) for v, c in self.costs.items()}
        self._memo: dict[tuple[int, int], int] = {}
        self._gains: dict[tuple[int, int], int] = {}

    def _add_costs(self, task: item.Task, column: Mapping[item.Experiment, int]) -> None:
        factor, number = task.options.factor, self.network.number
        for experiment, row in zip(task.experiments, task.discretised, strict=True):
            j = column[_effective(experiment, self.network)]
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

    def _require(self, j: int, experiment: item.Experiment, answers: str, readouts: Sequence[str]) -> None:
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
        """Upper bound of the misfit of all readouts together, without the constant."""
        return sum(max(pair) for costs in self.costs.values() for pair in costs)

    def index_of(self, clamp: item.Experiment) -> int:
        """Return the column of an experiment."""
        return self._column[_effective(clamp, self.network)]

    def cost(self, node: int, response: int) -> int:
        """Return the misfit of a readout with this response; 0 for other nodes."""
        tables = self._tables.get(node)
        if tables is None:
            return 0
        cached = self._memo.get((node, response))
        if cached is None:
            cached, remaining = 0, response
            for table in tables:
                cached += table[remaining & 255]
                remaining >>= BYTE
            self._memo[node, response] = cached
        return cached

    def cheapest(self, node: int, masks: Iterable[int]) -> int:
        """Return the least misfit of a readout whose answers are equal in all columns of each mask."""
        gains = self._gains
        total = self._zeros[node]
        for mask in masks:
            gain = gains.get((node, mask))
            total += self._gain(node, mask) if gain is None else gain
        return total

    def savings(self, node: int) -> list[int]:
        """Return, for each column, what answering 1 adds to the misfit of a readout; 0 where it cannot answer 1."""
        active = self.active[node]
        return [unit - zero if active >> j & 1 else 0 for j, (zero, unit) in enumerate(self.costs[node])]

    def _gain(self, node: int, mask: int) -> int:
        """Return what answering 1 in all columns of a mask adds to the misfit, 0 if that is positive."""
        gain = 0
        # in inhibited columns the answer is 0; masks are split by activity, so that one active column means all are
        if mask & self.active[node]:
            remaining = mask
            for table in self._savings[node]:
                gain += table[remaining & 255]
                remaining >>= BYTE
        # a few masks recur often, single columns most of all
        if len(self._gains) < MAX_GAINS:
            self._gains[node, mask] = min(0, gain)
        return min(0, gain)


def _effective(clamp: item.Experiment, network: Network) -> item.Experiment:
    """Return the part of an experiment that changes an answer of the class."""
    return item.Experiment(clamp.on.intersection(network.stimuli), clamp.inhibited.intersection(network.number))


def _bits(flags: Iterable[bool]) -> int:
    return sum(1 << j for j, flag in enumerate(flags) if flag)


def _byte_tables(costs: Sequence[tuple[int, int]]) -> list[list[int]]:
    """Return, for every eight columns, the misfit of each pattern of answers; the misfit of a response is their sum."""
    tables = []
    for start in range(0, len(costs), BYTE):
        table = [0]
        for zero, unit in costs[start : start + BYTE]:
            table = [cost + zero for cost in table] + [cost + unit for cost in table]
        tables.append(table)
    return tables


# --- Formulas of a node as a trie: each is an earlier formula and one more clause, so its response takes one OR -------
MAX_FORMULAS = 1_000_000  # formulas of a node


class Literals(Protocol):
    """Interface of a network for `ClauseList`.

    literals: (source, sign) into each node; parents: sources of each node that are nodes
    max_clause: most literals of a clause, 0 for no limit
    """

    @property
    def literals(self) -> Sequence[Sequence[tuple[int, int]]]: ...
    @property
    def parents(self) -> Sequence[Sequence[int]]: ...
    @property
    def max_clause(self) -> int: ...


class FormulaLimitError(Exception):
    """Error: a node (by index) has more formulas than the limit."""

    def __init__(self, node: int, limit: int) -> None:
        super().__init__(f"node {node}: over {limit} formulas")
        self.node = node
        self.limit = limit


class ClauseList:
    """The clauses of a node: each is an earlier one (or none) and one more literal.

    prefix: index of the earlier clause, -1 for none; last: index of the literal added
    literals: masks over the node's literals; sizes: numbers of literals; sources: masks over the node's parents
    """

    def __init__(self, network: Literals, node: int, limit: int = MAX_FORMULAS) -> None:
        self.node = node
        literals = network.literals[node]
        longest = network.max_clause or len(literals)
        _check_number_of_formulas(node, literals, longest, limit)
        parents = {source: 1 << i for i, source in enumerate(network.parents[node])}
        self.prefix: list[int] = []
        self.last: list[int] = []
        self.literals: list[int] = []
        self.sizes: list[int] = []
        self.sources: list[int] = []
        used_sources: list[frozenset[int]] = []
        level = [-1]
        for size in range(1, longest + 1):
            following = []
            for earlier in level:
                for i in range(self.last[earlier] + 1 if earlier >= 0 else 0, len(literals)):
                    source = literals[i][0]
                    if earlier >= 0 and source in used_sources[earlier]:
                        continue
                    following.append(len(self.prefix))
                    self.prefix.append(earlier)
                    self.last.append(i)
                    self.literals.append((self.literals[earlier] if earlier >= 0 else 0) | 1 << i)
                    self.sizes.append(size)
                    self.sources.append((self.sources[earlier] if earlier >= 0 else 0) | parents.get(source, 0))
                    used_sources.append((used_sources[earlier] if earlier >= 0 else frozenset()) | {source})
            level = following
        self._comparable: list[int] | None = None

    def __len__(self) -> int:
        return len(self.prefix)

    @property
    def comparable(self) -> list[int]:
        """Mask of the clauses that contain each clause or are contained in it, itself included."""
        if self._comparable is None:
            masks = self.literals
            self._comparable = [sum(1 << j for j, b in enumerate(masks) if a & b in (a, b)) for a in masks]
        return self._comparable


def _check_number_of_formulas(node: int, literals: Sequence[tuple[int, int]], longest: int, limit: int) -> None:
    """Raise `FormulaLimitError` if the clauses of one length, of which any set is a formula, exceed the limit."""
    # any set of clauses of one literal is a formula: 2**literals formulas, counted before clauses are listed
    if len(literals) >= limit.bit_length():
        raise FormulaLimitError(node, limit)
    sources: dict[int, int] = {}
    for source, _ in literals:
        sources[source] = sources.get(source, 0) + 1
    counts = [1]  # elementary symmetric polynomials: number of clauses by length
    for signs in sources.values():
        counts = [
            (counts[k] if k < len(counts) else 0) + (signs * counts[k - 1] if k else 0) for k in range(len(counts) + 1)
        ]
    max_count = max(counts[1 : longest + 1], default=0)
    if max_count >= limit.bit_length():  # 2**max_count > limit
        raise FormulaLimitError(node, limit)


class FormulaTable:
    """Formulas of a node over the literals whose sources are available; row 0 is the empty formula.

    prefix, clause: earlier row of each row, and the clause added; sizes: numbers of literals
    sources: masks over the node's parents; usable: clauses over available literals
    """

    def __init__(self, clauses: ClauseList, available: int, limit: int = MAX_FORMULAS) -> None:
        """List the formulas of a node; available: mask over the node's literals."""
        self.clauses = clauses
        self.usable = [c for c, mask in enumerate(clauses.literals) if not mask & ~available]
        self.prefix = [0]
        self.clause = [-1]
        self.sizes = [0]
        self.sources = [0]
        comparable = clauses.comparable
        allowed = sum(1 << c for c in self.usable)
        stack = [(0, allowed)]
        while stack:
            row, allowed = stack.pop()
            remaining = allowed
            while remaining:
                low = remaining & -remaining
                remaining ^= low
                c = low.bit_length() - 1
                new_row = len(self.prefix)
                if new_row >= limit:
                    raise FormulaLimitError(clauses.node, limit)
                self.prefix.append(row)
                self.clause.append(c)
                self.sizes.append(self.sizes[row] + clauses.sizes[c])
                self.sources.append(self.sources[row] | clauses.sources[c])
                # later clauses that neither contain c nor are contained in it: each antichain is built once, ascending
                later_clauses = remaining & ~comparable[c]
                if later_clauses:
                    stack.append((new_row, later_clauses))

    def __len__(self) -> int:
        return len(self.prefix)

    def clauses_of(self, row: int) -> tuple[int, ...]:
        """Return the clauses of a formula, as indices in the `ClauseList`."""
        chosen = []
        while row:
            chosen.append(self.clause[row])
            row = self.prefix[row]
        return tuple(reversed(chosen))


@dataclass(frozen=True)
class _OneNode:
    """Stand-in for a network of one node, which is all that `ClauseList` needs; every literal has its own parent."""

    literals: tuple[tuple[tuple[int, int], ...]]
    parents: tuple[tuple[int, ...]]
    max_clause: int


class NodeFormula(NamedTuple):
    """Formula of a node.

    response: bit t is its value in row t; edges: mask of the edges that it uses; size: number of literals
    number: index in the table of formulas
    """

    response: int
    edges: int
    size: int
    number: int


class NodeFormulas:
    """All formulas of one node over edges into it.

    edges: edges into the node; sources: names of their sources, sorted
    """

    def __init__(self, edges: Sequence[item.Edge], max_clause: int, limit: int = MAX_FORMULAS) -> None:
        """Prepare the formulas; `FormulaLimitError` if there are more than the limit."""
        self.edges = edges
        self.sources = sorted({edge.source for edge in edges})
        literals = tuple((self.sources.index(edge.source), edge.sign) for edge in edges)
        node = _OneNode((literals,), (tuple(range(len(self.sources))),), max_clause)
        self._clauses = ClauseList(node, 0, limit)
        self._table = FormulaTable(self._clauses, (1 << len(edges)) - 1, limit)

    def on_rows(self, rows: Sequence[Sequence[int]]) -> Iterator[NodeFormula]:
        """Yield every formula with its values, the empty one first.

        rows: values of the sources in each row
        """
        clauses, table = self._clauses, self._table
        full = (1 << len(rows)) - 1
        literal_bits = []
        for edge in self.edges:
            position = self.sources.index(edge.source)
            bits = sum(row[position] << t for t, row in enumerate(rows))
            literal_bits.append(bits if edge.sign == 1 else full & ~bits)
        clause_bits: list[int] = []
        # clauses are a trie: clause k is clause prefix[k] and literal last[k]
        for prefix, last in zip(clauses.prefix, clauses.last, strict=True):
            clause_bits.append(literal_bits[last] & (clause_bits[prefix] if prefix >= 0 else full))
        responses, masks = [0], [0]
        yield NodeFormula(0, 0, 0, 0)
        for number in range(1, len(table)):
            prefix, clause = table.prefix[number], table.clause[number]
            responses.append(responses[prefix] | clause_bits[clause])
            masks.append(masks[prefix] | clauses.literals[clause])
            yield NodeFormula(responses[number], masks[number], table.sizes[number], number)

    def model(self, number: int) -> item.Model:
        """Return the clauses of the formula with this number."""
        masks = (self._clauses.literals[clause] for clause in self._table.clauses_of(number))
        return frozenset(
            item.Clause(
                self.edges[0].target, tuple(sorted((e.source, e.sign) for i, e in enumerate(self.edges) if m >> i & 1))
            )
            for m in masks
        )


def formula_bound(num_sources: int, longest: int) -> int:
    """Return a lower bound of the number of formulas over sources of one sign each, to estimate numbers of states."""
    dedekind = (1, 2, 5, 19, 167, 7_580, 7_828_353)  # Dedekind numbers less one
    if num_sources < len(dedekind) and longest >= num_sources:
        return dedekind[num_sources]
    return 1 << max(comb(num_sources, k) for k in range(1, max(2, longest + 1)))


# --- Misfit of models on all experiments at once, one bit for each ----------------------------------------------------


class ModelCosts:
    """Misfits of acyclic models of one task."""

    def __init__(self, task: item.Task) -> None:
        self.network = Network(task)
        self.columns = Columns(self.network, task.experiments, task=task)
        self._stimuli = dict(zip(self.network.stimuli, self.columns.stimuli, strict=True))
        self._active = dict(zip(self.network.nodes, self.columns.active, strict=True))

    def misfit(self, model: Iterable[item.Clause]) -> int:
        """Return the misfit of an acyclic model of the class."""
        responses = self.responses(model)
        nodes = self.network.nodes
        return self.columns.constant + sum(
            self.columns.cost(v, responses.get(nodes[v], 0)) for v in self.network.readouts
        )

    def responses(self, model: Iterable[item.Clause]) -> Mapping[str, int]:
        """Return the columns in which each node of a model is 1."""
        formulas: dict[str, list[item.Clause]] = {}
        for clause in model:
            formulas.setdefault(clause.target, []).append(clause)
        # the values of an acyclic model do not depend on the topological order
        order = TopologicalSorter({v: {s for c in formula for s in c.sources} for v, formula in formulas.items()})
        responses = dict(self._stimuli)
        full = self.columns.full
        for name in order.static_order():
            if name in responses:
                continue
            response = 0
            for clause in formulas.get(name, ()):
                true = self._active.get(name, full)
                for source, sign in clause.literals:
                    true &= responses[source] if sign == 1 else full & ~responses[source]
                response |= true
            responses[name] = response
        return responses
