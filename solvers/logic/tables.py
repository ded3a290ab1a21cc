"""Formulas of a node as a trie: each is an earlier formula and one more clause, so its response takes one OR."""

from __future__ import annotations

from collections.abc import Sequence
from math import comb
from typing import Protocol

MAX_FORMULAS = 1_000_000


class Literals(Protocol):
    """Literals (source, sign) into each node, its parents, and most literals of a clause (0: any number)."""

    @property
    def literals(self) -> Sequence[Sequence[tuple[int, int]]]: ...
    @property
    def parents(self) -> Sequence[Sequence[int]]: ...
    @property
    def max_clause(self) -> int: ...


class FormulaLimitError(Exception):
    """A node has more formulas than the budget allows; `node` is its number."""

    def __init__(self, node: int, limit: int) -> None:
        super().__init__(f"node {node}: over {limit} formulas")
        self.node = node
        self.limit = limit


class ClauseList:
    """The clauses of a node: each is an earlier one (or none) and one more literal.

    prefix: number of the earlier clause, -1 for none; last: number of the literal added
    literals: mask over the node's literals; sizes: number of literals; sources: mask over the node's parents
    """

    def __init__(self, network: Literals, node: int, limit: int = MAX_FORMULAS) -> None:
        self.node = node
        literals = network.literals[node]
        longest = network.max_clause or len(literals)
        _refuse_if_hopeless(node, literals, longest, limit)
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


def _refuse_if_hopeless(node: int, literals: Sequence[tuple[int, int]], longest: int, limit: int) -> None:
    """Raise `FormulaLimitError` if clauses of one length alone, of which any set is a formula, exceed the limit."""
    # clauses of one literal are pairwise incomparable: any set of them is a formula, 2^literals in all, before any list
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
    most = max(counts[1 : longest + 1], default=0)
    if most >= limit.bit_length():  # 2**most > limit
        raise FormulaLimitError(node, limit)


class FormulaTable:
    """Formulas of a node over the literals whose sources are available; row 0 is the empty formula.

    prefix, clause: the earlier row and the clause added, of the rows from 1; codes: size << shift | mask of parents
    """

    def __init__(self, clauses: ClauseList, available: int, limit: int = MAX_FORMULAS) -> None:
        """Prepare the tables of a node.

        available: mask over the node's literals
        """
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
            rest = allowed
            while rest:
                low = rest & -rest
                rest ^= low
                c = low.bit_length() - 1
                number = len(self.prefix)
                if number >= limit:
                    raise FormulaLimitError(clauses.node, limit)
                self.prefix.append(row)
                self.clause.append(c)
                self.sizes.append(self.sizes[row] + clauses.sizes[c])
                self.sources.append(self.sources[row] | clauses.sources[c])
                # later clauses that neither contain c nor are contained: each antichain is built once, ascending
                following = rest & ~comparable[c]
                if following:
                    stack.append((number, following))

    def __len__(self) -> int:
        return len(self.prefix)

    def clauses_of(self, row: int) -> tuple[int, ...]:
        """Return the clauses of a formula, as numbers in the node's list."""
        chosen = []
        while row:
            chosen.append(self.clause[row])
            row = self.prefix[row]
        return tuple(reversed(chosen))


def formula_bound(num_sources: int, longest: int) -> int:
    """Return a lower bound on the number of formulas over sources of one sign each, for orders of placement."""
    dedekind = (1, 2, 5, 19, 167, 7_580, 7_828_353)  # Dedekind numbers less one
    if num_sources < len(dedekind) and longest >= num_sources:
        return dedekind[num_sources]
    return 1 << max(comb(num_sources, k) for k in range(1, max(2, longest + 1)))
