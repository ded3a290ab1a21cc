"""The step of one node in the search over states: its formulas given its parents' responses, grouped and memoised.

A node's value in a state is `response << 2 | has << 1 | used`, and 0 if its formula is empty. response: its number in
`Columns.responses`, where bit c of it is the node's value in column c; has: the formula is not empty; used: some
formula reads the node, or data do. A formula reads `response << 1 | has` of a parent.
"""

from __future__ import annotations

from typing import TypeAlias

from calibrant.solvers.logic.network import MAX_FORMULAS, ClauseList, Columns, FormulaTable, Network

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
