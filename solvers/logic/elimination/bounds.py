"""The step of one node in the search over states, and bounds on what is to come."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from functools import cached_property
from operator import itemgetter
from typing import SupportsIndex, TypeAlias, overload

import numpy as np
import numpy.typing as npt

from calibrant.dsl.logic.item import reachable
from calibrant.solvers.logic.network import MAX_FORMULAS, ClauseList, Columns, FormulaTable, Network

# --- The step of one node: its formulas given its parents' responses, grouped and memoised ----------------------------
#
# A node's value in a state is `response << 2 | has << 1 | used`, and 0 if its formula is empty. response: its number in
# `Columns.responses`, where bit c of it is the node's value in column c; has: the formula is not empty; used: some
# formula reads the node, or data do. A formula reads `response << 1 | has` of a parent.
HAS, USED = 2, 1
# a code is one integer, since it is hashed once for each formula evaluated: outcome << 48 | size << 24 | parents used.
# 24 bits hold each of the two: no table has formulas of 24 parents
_SIZE_BITS, _CODE_BITS = 24, 48
_FIELD = (1 << 24) - 1

Key: TypeAlias = tuple[int, ...]
Step: TypeAlias = tuple[int, int, int]  # misfit, value of the node, group
Block: TypeAlias = tuple[int, list[Step]]  # mask of parents that become used, steps by ascending misfit


class LocalSteps:
    """Groups of formulas by (response after clamps, size, parents used), numbered over all nodes and keys.

    Of a leaf, whose response nothing reads, groups are by (misfit, size, parents used).
    nodes, keys: node and key of each group; costs, sizes, multiplicities: misfit, literals and number of its formulas
    evaluations: formulas evaluated so far
    """

    def __init__(self, network: Network, columns: Columns, limit: int = MAX_FORMULAS) -> None:
        self.network = network
        self.columns = columns
        self.limit = limit
        self.nodes: list[int] = []
        self.keys: list[Key] = []
        self.costs: list[int] = []
        self.sizes: list[int] = []
        self.multiplicities: list[int] = []
        self.evaluations = 0
        self.is_leaf = [not children for children in network.children]
        self._codes: list[int] = []  # of each group, what its formulas have in common
        self._memo: list[dict[Key, list[Block]]] = [{} for _ in network.nodes]
        self._lists: list[ClauseList | None] = [None] * len(network)
        self._tables: dict[tuple[int, int], FormulaTable] = {}
        self._rows: dict[tuple[int, Key], dict[int, list[int]]] = {}
        self._parent_of = [
            tuple(network.parents[v].index(source) if source >= 0 else -1 for source, _ in literals)
            for v, literals in enumerate(network.literals)
        ]

    def clauses(self, node: int) -> ClauseList:
        """Return the clauses of a node; `FormulaLimitError` if its formulas are too many for the budget."""
        cached = self._lists[node]
        if cached is None:
            cached = self._lists[node] = ClauseList(self.network, node, self.limit)
        return cached

    def table(self, node: int, key: Key) -> FormulaTable:
        """Return the formulas over stimuli and the parents that have a formula."""
        available = 0
        for i, parent in enumerate(self._parent_of[node]):
            if parent < 0 or key[parent]:
                available |= 1 << i
        cached = self._tables.get((node, available))
        if cached is None:
            cached = self._tables[node, available] = FormulaTable(self.clauses(node), available, self.limit)
        return cached

    def steps(self, node: int, key: Key) -> list[Block]:
        """Return the steps of a node by the parents that they use.

        key: value >> 1 of each parent, 0 if unavailable
        """
        memo = self._memo[node]
        blocks = memo.get(key)
        if blocks is None:
            listed = self.columns.responses.listed
            blocks = memo[key] = self._make_steps(node, tuple([listed[k >> 1] << 1 | (k & 1) for k in key]))
        return blocks

    def _make_steps(self, node: int, key: Key) -> list[Block]:
        # formulas of one code lead to equal states: the lattice stores the group and its number of formulas only
        grouped = self._group(node, key)
        # data read a readout, whether or not a formula does
        used = USED if node in self.network.readouts else 0
        leaf = self.is_leaf[node]
        blocks: dict[tuple[int, bool], list[Step]] = {}
        for code, rows in grouped.items():
            outcome, size, sources = code >> _CODE_BITS, code >> _SIZE_BITS & _FIELD, code & _FIELD
            # of a leaf the outcome is its misfit, of others their response
            has, result = outcome & 1, outcome >> 1
            cost = result if leaf else self.columns.cost(node, result)
            value = 0 if leaf or not has else result << 2 | HAS | used
            blocks.setdefault((sources, bool(has)), []).append((cost, value, len(self.nodes)))
            self.nodes.append(node)
            self.keys.append(key)
            self._codes.append(code)
            self.costs.append(cost)
            self.sizes.append(size)
            self.multiplicities.append(rows)
        # sorted by responses, not their numbers: which of equal models comes first depends on no earlier step
        return [
            (sources, [(cost, self._numbered(value), group) for cost, value, group in sorted(steps)])
            for (sources, _), steps in sorted(blocks.items())
        ]

    def _numbered(self, value: int) -> int:
        """Return a value with the number of its response."""
        return self.columns.responses.number(value >> 2) << 2 | (value & (HAS | USED))

    def _group(self, node: int, key: Key) -> dict[int, int]:
        """Return the number of formulas by code."""
        counts: dict[int, int] = {}
        for code in self._row_codes(node, key):
            if code >= 0:
                counts[code] = counts.get(code, 0) + 1
        return counts

    def _row_codes(self, node: int, key: Key) -> list[int]:
        """Return the code of each row, -1 for a formula that does not give a required answer.

        A code is `((misfit of a leaf, or response) << 1 | has) << 48 | size << 24 | parents`.
        """
        table = self.table(node, key)
        self.evaluations += len(table)
        responses = self.responses(node, key, table, self.columns)
        # columns in which an answer is required of the node, and the answers there
        mask, value = self.columns.required.get(node, (0, 0))
        cost, leaf = self.columns.cost, self.is_leaf[node]
        codes = []
        for row, (response, size, sources) in enumerate(zip(responses, table.sizes, table.sources, strict=True)):
            if response & mask != value:
                codes.append(-1)
                continue
            # nothing reads a leaf: its response counts through the misfit only, so that far fewer groups remain;
            # row 0 is the empty formula
            outcome = (cost(node, response) if leaf else response) << 1 | (row > 0)
            codes.append(outcome << _CODE_BITS | size << _SIZE_BITS | sources)
        return codes

    def responses(self, node: int, key: Key, table: FormulaTable, columns: Columns) -> list[int]:
        """Return the response of each row after clamps.

        key: `response << 1 | has` of each parent on these columns
        """
        literals = self.literal_responses(node, key, columns)
        clauses = table.clauses
        active = columns.active[node]
        by_clause: dict[int, int] = {}
        for c in table.usable:
            prefix = clauses.prefix[c]
            by_clause[c] = literals[clauses.last[c]] & (by_clause[prefix] if prefix >= 0 else active)
        # row 0 is the empty formula; every other is an earlier one and one more clause, so its response takes one OR
        responses = [0]
        append = responses.append
        rows = zip(table.prefix, table.clause, strict=True)
        next(rows)
        for prefix, c in rows:
            append(responses[prefix] | by_clause[c])
        return responses

    def literal_responses(self, node: int, key: Key, columns: Columns) -> list[int]:
        """Return the columns in which each literal of a node is true."""
        responses = []
        for i, (source, sign) in enumerate(self.network.literals[node]):
            response = columns.stimuli[~source] if source < 0 else key[self._parent_of[node][i]] >> 1
            responses.append(response if sign == 1 else columns.full & ~response)
        return responses

    def rows(self, group: int) -> list[int]:
        """Return the rows of a group's formulas in the table of its node and key."""
        where = (self.nodes[group], self.keys[group])
        by_code = self._rows.get(where)
        if by_code is None:
            # evaluated again rather than stored: rows are read for marginals and draws, counts need none
            by_code = {}
            for row, code in enumerate(self._row_codes(*where)):
                by_code.setdefault(code, []).append(row)
            self._rows[where] = by_code
        return by_code[self._codes[group]]

    def formulas(self, group: int) -> list[tuple[int, ...]]:
        """Return the formulas of a group, each as clause numbers of its node."""
        table = self.table(self.nodes[group], self.keys[group])
        return [table.clauses_of(row) for row in self.rows(group)]


# --- Lower bounds on the misfit of readouts that are not placed, given the responses of a state -----------------------
# What is not placed reads the live nodes, some stimuli, and whether it is inhibited. Columns that agree on all of these
# answer alike at a readout, so that the cheaper answer for each such set of columns is the least misfit.
#
# Numbers are 64 bits wide where all of them are within `WORD_LIMIT`, else Python integers in arrays of objects.
# --- Integer matrices and segments: what many states or transitions are computed with at once -------------------------
Words: TypeAlias = npt.NDArray[np.int64]
Numbers: TypeAlias = npt.NDArray[np.int64] | npt.NDArray[np.object_]

WORD_LIMIT = 1 << 62  # a sum of two numbers within it is a 64-bit integer
_MANY_VALUES = 1 << 20  # then sorting takes less than a table, 8 MB
_MANY_NUMBERS = 1 << 40  # then numbers are counted anew: at most 2**24 rows times as many values stay 64 bits wide


class StateMatrix(Sequence[tuple[int, ...]]):
    """States as rows: a tuple is made of one when it is read, so that millions take 8 bytes a value."""

    def __init__(self, matrix: Words) -> None:
        self.matrix = matrix

    def __len__(self) -> int:
        return len(self.matrix)

    @overload
    def __getitem__(self, position: SupportsIndex) -> tuple[int, ...]: ...

    @overload
    def __getitem__(self, position: slice) -> StateMatrix: ...

    def __getitem__(self, position: SupportsIndex | slice) -> tuple[int, ...] | StateMatrix:
        if isinstance(position, slice):
            return StateMatrix(self.matrix[position])
        return tuple(self.matrix[position].tolist())


def state_matrix(states: Sequence[tuple[int, ...]]) -> Words:
    """Return states as rows."""
    if isinstance(states, StateMatrix):
        return states.matrix
    return np.array(states, dtype=np.int64).reshape(len(states), -1)


def take_states(states: Sequence[tuple[int, ...]], positions: Words) -> Sequence[tuple[int, ...]]:
    """Return the states at some positions."""
    if isinstance(states, StateMatrix):
        return StateMatrix(states.matrix[positions])
    return [states[position] for position in positions]


def numbers_of(values: Sequence[int], *, words: bool) -> Numbers:
    """Return an array of integers; words: all of them are within `WORD_LIMIT`."""
    return np.array(values, dtype=np.int64 if words else object)


def indices_of(values: array[int]) -> Words:
    """Return an array of positions, copied."""
    return np.array(values, dtype=np.int64)


def unsigned_array(values: Words) -> array[int]:
    """Return positions below 2**32 in four bytes each."""
    packed = array("I")
    packed.frombytes(values.astype(np.uint32).tobytes())
    return packed


def span_positions(starts: Words, counts: Words) -> Words:
    """Return the positions of spans one after the other: starts[i], starts[i] + 1, ... for each i."""
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    positions: Words = np.arange(total) + np.repeat(starts - (ends - counts), counts)
    return positions


def rank_values(column: Words) -> tuple[Words, int]:
    """Return the position of each value, none of them negative, among the distinct ones, and how many these are."""
    most = int(column.max()) if len(column) else 0
    if most > _MANY_VALUES:
        distinct, positions = np.unique(column, return_inverse=True)
        return positions, len(distinct)
    # a table of all possible values takes no sorting
    occurs = np.zeros(most + 1, dtype=np.int64)
    occurs[column] = 1
    return np.cumsum(occurs)[column] - 1, int(occurs.sum())


def number_rows(columns: Sequence[Words], num_rows: int) -> tuple[Words, int]:
    """Return for each row a number such that equal rows alone have equal numbers, and what all numbers are below."""
    numbers, count = np.zeros(num_rows, dtype=np.int64), 1
    for column in columns:
        positions, radix = rank_values(column)
        if count * radix > _MANY_NUMBERS:
            numbers, count = rank_values(numbers)
        numbers = numbers * radix + positions
        count *= radix
    return numbers, count


def first_occurrences(numbers: Words) -> tuple[Words, Words]:
    """Return the position of the first row of each number in ascending order, and for each row its place there."""
    positions, count = rank_values(numbers)
    first = np.empty(count, dtype=np.int64)
    first[positions[::-1]] = np.arange(len(numbers))[::-1]  # of repeated indices the last value is assigned
    order = np.argsort(first)
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    return first[order], place[positions]


_SUMS = 1 << 21  # of savings at once, 16 MB


class StateBounds:
    """The bounds after one placement, memoised by the responses of the live nodes that a readout can depend on."""

    def __init__(self, network: Network, columns: Columns, live: Sequence[int], placed: frozenset[int]) -> None:
        """Compute the bounds of a state.

        live: nodes by their position in a state
        """
        self._network = network
        self._columns = columns
        self._live = live
        self._placed = placed

    @cached_property
    def parts(self) -> list[_Part]:
        """One part for each readout that is not placed; made when the placement is reached, which not all are."""
        network, columns, placed = self._network, self._columns, self._placed
        parts = []
        unplaced = [v for v in range(len(network)) if v not in placed]
        # placed parents end the walk: their responses are in the state and split the columns exactly
        parents = {v: [p for p in network.parents[v] if p not in placed] for v in unplaced}
        position = {v: i for i, v in enumerate(self._live)}
        for readout in sorted(network.readouts - placed):
            ancestors = reachable([readout], parents)
            sources = {source for v in ancestors for source, _ in network.literals[v]}
            positions = tuple(sorted(position[s] for s in sources if s >= 0 and s in placed))
            masks = [columns.full]
            for source in sorted(s for s in sources if s < 0):
                masks = _split(masks, columns.stimuli[~source])
            for v in sorted(ancestors):
                masks = _split(masks, columns.active[v])
            parts.append(_Part(readout, positions, masks, columns))
        return parts

    def bound(self, state: Sequence[int]) -> int:
        """Return a lower bound on the misfit of the readouts that are not placed."""
        total, parts = self._fixed_and_varying
        for values, memo, part in parts:
            # values as they are, flags included: their tuple is made in C, and most are met again
            key = values(state)
            bound = memo.get(key)
            if bound is None:
                bound = memo[key] = part.bound(state)
            total += bound
        return total

    def bounds(self, states: Words) -> Words:
        """Return the bound of each row, a state; misfits must fit 64 bits."""
        fixed, parts = self._fixed_and_varying
        totals = np.full(len(states), fixed, dtype=np.int64)
        for _, _, part in parts:
            numbers, _ = number_rows([states[:, p] >> 2 for p in part.positions], len(states))
            first, place = first_occurrences(numbers)
            totals += part.bounds(states[first][:, part.positions] >> 2)[place]
        return totals

    @cached_property
    def _fixed_and_varying(
        self,
    ) -> tuple[int, list[tuple[Callable[[Sequence[int]], object], dict[object, int], _Part]]]:
        """The sum of bounds that no state changes; of each other part how its values are read, and its bounds."""
        varying = [part for part in self.parts if part.positions]
        fixed = sum([part.bound(()) for part in self.parts if not part.positions])
        return fixed, [(itemgetter(*part.positions), {}, part) for part in varying]


def readout_bounds(network: Network, columns: Columns) -> dict[int, int]:
    """Return the lower bound of each readout's misfit before anything is placed."""
    bounds = StateBounds(network, columns, (), frozenset())
    return {part.readout: part.bound(()) for part in bounds.parts}


class _Part:
    """The bound of one readout."""

    def __init__(self, readout: int, positions: tuple[int, ...], masks: list[int], columns: Columns) -> None:
        self.readout = readout
        self.positions = positions
        self.masks = masks
        self.columns = columns
        self._memo: dict[tuple[int, ...], int] = {}

    def bound(self, state: Sequence[int]) -> int:
        # response alone: the flags has and used (the two low bits) change no answer, so states share the entry
        return self._bound_of(tuple([state[p] >> 2 for p in self.positions]))

    def _bound_of(self, key: tuple[int, ...]) -> int:
        """Return the bound for numbers of responses, of the nodes in `positions`."""
        cached = self._memo.get(key)
        if cached is None:
            masks, listed = self.masks, self.columns.responses.listed
            for number in key:
                if number:
                    masks = _split(masks, listed[number])
            cached = self._memo[key] = self.columns.cheapest(self.readout, masks)
        return cached

    def bounds(self, keys: Words) -> Words:
        """Return the bound for each row of numbers of responses, of the nodes in `positions`."""
        num_codes = len(self.masks) << len(self.positions)
        if num_codes > _SUMS:
            return np.array([self._bound_of(tuple(key)) for key in keys.tolist()], dtype=np.int64)
        distinct, places = np.unique(keys, return_inverse=True)
        listed = self.columns.responses.listed
        answers = np.array([self._by_column(listed[number]) for number in distinct.tolist()], dtype=np.int64)
        places = places.reshape(keys.shape)
        # columns of one code answer alike: those of one mask in which the nodes have the same values
        codes = np.zeros(len(self.columns.clamps), dtype=np.int64)
        for number, mask in enumerate(self.masks):
            codes += self._by_column(mask) * (number << len(self.positions))
        bounds = np.full(len(keys), self.columns.cheapest(self.readout, ()), dtype=np.int64)
        for start in range(0, len(keys), rows := _SUMS // num_codes):
            piece = places[start : start + rows]
            code = np.broadcast_to(codes, (len(piece), len(codes))).copy()
            for i in range(len(self.positions)):
                code += answers[piece[:, i]] << i
            gains = np.zeros((len(piece), num_codes), dtype=np.int64)
            row = np.arange(len(piece))
            for column, saving in enumerate(self.columns.savings(self.readout)):
                gains[row, code[:, column]] += saving
            bounds[start : start + rows] += np.minimum(gains, 0).sum(axis=1)
        return bounds

    def _by_column(self, response: int) -> Words:
        return np.array([response >> column & 1 for column in range(len(self.columns.clamps))], dtype=np.int64)


def _split(masks: list[int], response: int) -> list[int]:
    """Return the sets of columns split by a response, empty ones left out."""
    return [part for mask in masks for part in (mask & response, mask & ~response) if part]
