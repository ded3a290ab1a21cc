"""Formulas of the mechanism language, stored as their postfix program.

A formula is a flat tuple of nodes in postfix order, so nothing here recurses: size, depth, evaluation and
compilation are one pass, equality and hashing are those of tuples, and depth costs no stack.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias, TypeVar

from calibrant.dsl.formulas.operators import OPERATORS
from calibrant.dsl.names import natural_key


class Apply(NamedTuple):
    """An operator node: applies the named operator to the last `arity` values of the stack."""

    operator: str
    arity: int


Node: TypeAlias = str | bool | Apply
"""A variable name, a constant, or an operator node."""


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Formula:
    """A Boolean expression; build it with `var`, `constant`, `apply` or `dsl.formulas.text.parse`.

    nodes: the expression in postfix order; every node counts 1 towards the size, an n-ary operator once
    """

    nodes: tuple[Node, ...]

    @property
    def size(self) -> int:
        """Number of nodes (the benchmark's AST size)."""
        return len(self.nodes)

    @property
    def depth(self) -> int:
        """Longest path from the root to an atom, counted in nodes: an atom has depth 1."""
        stack: list[int] = []  # a plain loop: scoring asks every submission for it
        for node in self.nodes:
            if isinstance(node, Apply):
                depth = 1 + max(stack[-node.arity :])
                del stack[-node.arity :]
                stack.append(depth)
            else:
                stack.append(1)
        return stack[0]

    @property
    def mentioned(self) -> frozenset[str]:
        """The variables that occur. Functional dependence is `dsl.replayscm.scm.local_function`."""
        return frozenset([node for node in self.nodes if isinstance(node, str)])

    @property
    def variables(self) -> tuple[str, ...]:
        """The variables that occur, in natural order."""
        return tuple(sorted(self.mentioned, key=natural_key))

    @property
    def operator_counts(self) -> dict[str, int]:
        """Return the number of occurrences of each operator."""
        counts: dict[str, int] = {}
        for node in self.nodes:
            if isinstance(node, Apply):
                counts[node.operator] = counts.get(node.operator, 0) + 1
        return counts

    def evaluate(self, columns: Callable[[str], int], mask: int) -> int:
        """Evaluate on bit vectors: `columns(name)` gives a variable's bits, `mask` the valid ones."""
        return fold(
            self,
            lambda atom: (mask if atom else 0) if isinstance(atom, bool) else columns(atom),
            lambda node, values: OPERATORS[node.operator].bits(values, mask),
        )

    def __str__(self) -> str:
        """Return the canonical spelling: one space between items, no parentheses around atoms."""
        pieces: list[str] = []  # built from right to left: the postfix program read backwards is a prefix walk
        open_counts: list[int] = []  # arguments still to be written for each open operator
        open_names: list[str] = []
        for node in reversed(self.nodes):
            if isinstance(node, Apply):
                pieces.append(")")
                open_counts.append(node.arity)
                open_names.append(node.operator)
                continue
            pieces.append(node if isinstance(node, str) else str(int(node)))
            while open_counts:
                pieces.append(" ")
                open_counts[-1] -= 1
                if open_counts[-1]:
                    break
                open_counts.pop()
                pieces.extend((open_names.pop(), "("))
        return "".join(reversed(pieces))


def fold(formula: Formula, atom: Callable[[str | bool], T], node: Callable[[Apply, Sequence[T]], T]) -> T:
    """Combine values bottom-up: `atom` for atoms, `node` for operators and their arguments' values."""
    stack: list[T] = []
    for item in formula.nodes:
        if isinstance(item, Apply):
            arguments = stack[-item.arity :]
            del stack[-item.arity :]
            stack.append(node(item, arguments))
        else:
            stack.append(atom(item))
    (value,) = stack
    return value


def var(name: str) -> Formula:
    return Formula((name,))


def constant(value: bool) -> Formula:
    return Formula((bool(value),))


def apply(operator: str, arguments: Iterable[Formula]) -> Formula:
    """Return the operator applied to argument formulas; ValueError if it does not take that many."""
    parts = tuple(arguments)
    op = OPERATORS[operator]
    if len(parts) < op.min_arity or (op.max_arity is not None and len(parts) > op.max_arity):
        raise ValueError(f"operator '{operator}' takes {op.arity_text}, got {len(parts)}")
    nodes = tuple(node for part in parts for node in part.nodes)
    return Formula((*nodes, Apply(operator, len(parts))))


def rename(formula: Formula, names: Callable[[str], str]) -> Formula:
    """Return the formula over other variable names."""
    return Formula(tuple(names(node) if isinstance(node, str) else node for node in formula.nodes))
