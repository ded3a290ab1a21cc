"""Placement of one node in a state, and lower bounds of the misfit of readouts that are not placed."""

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

# --- The steps of one node: its formulas given its parents' responses, grouped and memoised ---------------------------
#
# A node's value in a state is `response << 2 | has << 1 | used`, and 0 if its formula is empty. response: index of the
# node's response in `Columns.responses`; has: the formula is not empty; used: some formula or the data read the node. A
# formula reads `response << 1 | has` of a parent.
HAS, USED = 2, 1
# code of a formula, one integer since it is hashed for each formula evaluated: outcome << 48 | size << 24 | parents
# used. 24 bits are enough for size and parents: no table has formulas of 24 parents
_SIZE_BITS, _CODE_BITS = 24, 48
_FIELD = (1 << 24) - 1

Key: TypeAlias = tuple[int, ...]
Step: TypeAlias = tuple[int, int, int]  # misfit, value of the node, group
Block: TypeAlias = tuple[int, list[Step]]  # mask of parents that become used, steps by ascending misfit


class LocalSteps:
    """Groups of formulas with equal (response, 0 where inhibited; size; parents used), over all nodes and keys.

    The groups of a leaf, whose response no formula reads, have equal (misfit, size, parents used).

    nodes, keys: node and key of each group
    costs, sizes, multiplicities: misfit, number of literals, and number of formulas of each group
    evaluations: number of formulas evaluated so far
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
        self._codes: list[int] = []  # code of each group's formulas
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
        """Return the formulas over stimuli and those parents that have a formula."""
        available = 0
        for i, parent in enumerate(self._parent_of[node]):
            if parent < 0 or key[parent]:
                available |= 1 << i
        cached = self._tables.get((node, available))
        if cached is None:
            cached = self._tables[node, available] = FormulaTable(self.clauses(node), available, self.limit)
        return cached

    def steps(self, node: int, key: Key) -> list[Block]:
        """Return the steps of a node, in blocks by the parents used.

        key: value >> 1 of each parent, 0 if it is not available
        """
        memo = self._memo[node]
        blocks = memo.get(key)
        if blocks is None:
            listed = self.columns.responses.listed
            blocks = memo[key] = self._make_steps(node, tuple([listed[k >> 1] << 1 | (k & 1) for k in key]))
        return blocks

    def _make_steps(self, node: int, key: Key) -> list[Block]:
        """Return the steps of a node whose parents have the responses of the key, in blocks by parents used."""
        # formulas of one code lead to equal states: only the group and its number of formulas are stored
        grouped = self._group(node, key)
        # data read every readout
        used = USED if node in self.network.readouts else 0
        leaf = self.is_leaf[node]
        blocks: dict[tuple[int, bool], list[Step]] = {}
        for code, rows in grouped.items():
            outcome, size, sources = code >> _CODE_BITS, code >> _SIZE_BITS & _FIELD, code & _FIELD
            # the misfit of a leaf, the response of any other node
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
        # sorted by responses, not by their indices: the order must not depend on earlier steps
        return [
            (sources, [(cost, self._index_response(value), group) for cost, value, group in sorted(steps)])
            for (sources, _), steps in sorted(blocks.items())
        ]

    def _index_response(self, value: int) -> int:
        """Return a value with the index of its response in place of the response."""
        return self.columns.responses.number(value >> 2) << 2 | (value & (HAS | USED))

    def _group(self, node: int, key: Key) -> dict[int, int]:
        """Return the number of formulas by code."""
        counts: dict[int, int] = {}
        for code in self._row_codes(node, key):
            if code >= 0:
                counts[code] = counts.get(code, 0) + 1
        return counts

    def _row_codes(self, node: int, key: Key) -> list[int]:
        """Return the code of each row of the table, -1 for a formula without a required answer.

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
            # of a leaf's response only the misfit matters, which leaves far fewer groups; row 0 is the empty formula
            outcome = (cost(node, response) if leaf else response) << 1 | (row > 0)
            codes.append(outcome << _CODE_BITS | size << _SIZE_BITS | sources)
        return codes

    def responses(self, node: int, key: Key, table: FormulaTable, columns: Columns) -> list[int]:
        """Return the response of each row of the table, 0 in columns where the node is inhibited.

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
            # evaluated again rather than stored: only marginals and draws need rows, counts do not
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
# Nodes that are not placed depend on the live nodes, some stimuli, and their own inhibition. In columns that agree on
# all of these a readout has the same answer, so the sum of the cheaper answers of these sets of columns is a lower
# bound. --- Integer arrays by which many states or transitions are computed at once
# ------------------------------------------ Integers have 64 bits if all are within `WORD_LIMIT`; else they are Python
# integers in arrays of objects.
Words: TypeAlias = npt.NDArray[np.int64]
Numbers: TypeAlias = npt.NDArray[np.int64] | npt.NDArray[np.object_]

WORD_LIMIT = 1 << 62  # a sum of two integers within it fits 64 bits
_MANY_VALUES = 1 << 20  # beyond, sorting is used instead of a table of 8 MB
_MANY_NUMBERS = 1 << 40  # beyond, codes are replaced by ranks: 2**24 rows times 2**40 fit 64 bits


class StateMatrix(Sequence[tuple[int, ...]]):
    """States as rows of a matrix, 8 bytes a value; a tuple is made when a state is read."""

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
    """Return states as rows of a matrix."""
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
    """Copy an array of indices to numpy."""
    return np.array(values, dtype=np.int64)


def unsigned_array(values: Words) -> array[int]:
    """Pack indices below 2**32, four bytes each."""
    packed = array("I")
    packed.frombytes(values.astype(np.uint32).tobytes())
    return packed


def span_positions(starts: Words, counts: Words) -> Words:
    """Return the indices of all spans in sequence: starts[i], starts[i] + 1, ... (counts[i] of them), for each i."""
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    positions: Words = np.arange(total) + np.repeat(starts - (ends - counts), counts)
    return positions


def rank_values(column: Words) -> tuple[Words, int]:
    """Return the rank of each value among the different ones, and their number; values are not negative."""
    max_value = int(column.max()) if len(column) else 0
    if max_value > _MANY_VALUES:
        distinct, positions = np.unique(column, return_inverse=True)
        return positions, len(distinct)
    # a table of all possible values instead of sorting
    occurs = np.zeros(max_value + 1, dtype=np.int64)
    occurs[column] = 1
    return np.cumsum(occurs)[column] - 1, int(occurs.sum())


def number_rows(columns: Sequence[Words], num_rows: int) -> tuple[Words, int]:
    """Return a code of each row, equal iff the rows are, and a number above all codes; columns: values of the rows."""
    numbers, count = np.zeros(num_rows, dtype=np.int64), 1
    for column in columns:
        positions, radix = rank_values(column)
        if count * radix > _MANY_NUMBERS:
            numbers, count = rank_values(numbers)
        numbers = numbers * radix + positions
        count *= radix
    return numbers, count


def first_occurrences(numbers: Words) -> tuple[Words, Words]:
    """Return the index of the first row of each different code, ascending, and each row's index in that list."""
    positions, count = rank_values(numbers)
    first = np.empty(count, dtype=np.int64)
    first[positions[::-1]] = np.arange(len(numbers))[::-1]  # of repeated indices the last value is assigned
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return first[order], rank[positions]


_SUMS = 1 << 21  # sums of savings computed at a time: 16 MB


class StateBounds:
    """Bounds after one placement, memoised by the responses of the live nodes on which a readout can depend."""

    def __init__(self, network: Network, columns: Columns, live: Sequence[int], placed: frozenset[int]) -> None:
        """Prepare bounds; live: node at each position of a state; placed: all placed nodes."""
        self._network = network
        self._columns = columns
        self._live = live
        self._placed = placed

    @cached_property
    def parts(self) -> list[_Part]:
        """Part of the bound of each readout that is not placed; computed only if the placement is reached."""
        network, columns, placed = self._network, self._columns, self._placed
        parts = []
        unplaced = [v for v in range(len(network)) if v not in placed]
        # the search for ancestors ends at placed nodes: their responses are in the state and split the columns
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
        """Return a lower bound of the misfit of the readouts that are not placed."""
        total, parts = self._fixed_and_varying
        for values, memo, part in parts:
            # values with their flags: the tuple is made in C, and most recur
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
            codes, _ = number_rows([states[:, p] >> 2 for p in part.positions], len(states))
            first, index_of = first_occurrences(codes)
            totals += part.bounds(states[first][:, part.positions] >> 2)[index_of]
        return totals

    @cached_property
    def _fixed_and_varying(
        self,
    ) -> tuple[int, list[tuple[Callable[[Sequence[int]], object], dict[object, int], _Part]]]:
        """Sum of the bounds that no state changes; for each other part a getter of its values, and its memo."""
        varying = [part for part in self.parts if part.positions]
        fixed = sum([part.bound(()) for part in self.parts if not part.positions])
        return fixed, [(itemgetter(*part.positions), {}, part) for part in varying]


def readout_bounds(network: Network, columns: Columns) -> dict[int, int]:
    """Return the lower bound of each readout's misfit before anything is placed."""
    bounds = StateBounds(network, columns, (), frozenset())
    return {part.readout: part.bound(()) for part in bounds.parts}


class _Part:
    """Bound of one readout.

    positions: positions in a state of the nodes on which it depends; masks: sets of columns with equal answers before
    these nodes are considered
    """

    def __init__(self, readout: int, positions: tuple[int, ...], masks: list[int], columns: Columns) -> None:
        self.readout = readout
        self.positions = positions
        self.masks = masks
        self.columns = columns
        self._memo: dict[tuple[int, ...], int] = {}

    def bound(self, state: Sequence[int]) -> int:
        # the flags (the two low bits) change no answer, so that states share an entry
        return self._bound_of(tuple([state[p] >> 2 for p in self.positions]))

    def _bound_of(self, key: tuple[int, ...]) -> int:
        """Return the bound for the responses, by index, of the nodes in `positions`."""
        cached = self._memo.get(key)
        if cached is None:
            masks, listed = self.masks, self.columns.responses.listed
            for response_index in key:
                if response_index:
                    masks = _split(masks, listed[response_index])
            cached = self._memo[key] = self.columns.cheapest(self.readout, masks)
        return cached

    def bounds(self, keys: Words) -> Words:
        """Return the bound for each row of `keys`: responses, by index, of the nodes in `positions`."""
        num_codes = len(self.masks) << len(self.positions)
        if num_codes > _SUMS:
            return np.array([self._bound_of(tuple(key)) for key in keys.tolist()], dtype=np.int64)
        distinct, ranks = np.unique(keys, return_inverse=True)
        listed = self.columns.responses.listed
        answers = np.array([self._by_column(listed[index]) for index in distinct.tolist()], dtype=np.int64)
        ranks = ranks.reshape(keys.shape)
        # code of a column: its mask, and the values of the nodes there; columns of one code have the same answer
        codes = np.zeros(len(self.columns.clamps), dtype=np.int64)
        for mask_index, mask in enumerate(self.masks):
            codes += self._by_column(mask) * (mask_index << len(self.positions))
        bounds = np.full(len(keys), self.columns.cheapest(self.readout, ()), dtype=np.int64)
        for start in range(0, len(keys), rows := _SUMS // num_codes):
            batch = ranks[start : start + rows]
            code = np.broadcast_to(codes, (len(batch), len(codes))).copy()
            for i in range(len(self.positions)):
                code += answers[batch[:, i]] << i
            gains = np.zeros((len(batch), num_codes), dtype=np.int64)
            row = np.arange(len(batch))
            for column, saving in enumerate(self.columns.savings(self.readout)):
                gains[row, code[:, column]] += saving
            bounds[start : start + rows] += np.minimum(gains, 0).sum(axis=1)
        return bounds

    def _by_column(self, response: int) -> Words:
        """Return the bits of a response, one for each column."""
        return np.array([response >> column & 1 for column in range(len(self.columns.clamps))], dtype=np.int64)


def _split(masks: list[int], response: int) -> list[int]:
    """Return the sets of columns split by a response, empty ones left out."""
    return [subset for mask in masks for subset in (mask & response, mask & ~response) if subset]
