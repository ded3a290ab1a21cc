"""Formulas of the mechanism language, and the only table of their operators.

A formula is a flat tuple of nodes in postfix order. So size, depth, evaluation and compilation are one pass without
recursion, which needs no stack in proportion to depth, and equality and hashing are those of tuples.

Semantics are those of the published scorer (docs/semantics.md, "Mechanism texts"): n-ary `xor` is parity, and n-ary
`iff` is "all arguments equal", so `iff` must never be flattened into a chain of binary ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_, or_, xor
from typing import NamedTuple, TypeAlias, TypeVar

from calibrant.dsl.text import natural_key

# --- The only operator table: name, arity, truth rule and cost of every operator of the mechanism language ------------
BitRule: TypeAlias = Callable[[Sequence[int], int], int]
"""Maps arguments, bit vectors of equal length, and the mask of valid bits to the bits of the result."""


@dataclass(frozen=True, slots=True)
class Operator:
    """One operator.

    name: its spelling in mechanism texts
    code: its number in compiled programs (see dsl.replayscm._kernels_evaluator)
    min_arity, max_arity: numbers of arguments; None for no upper limit
    truth: its semantics on single bits
    bits: the same rule on bit vectors; tests compare it with `truth`
    cost: size that a node of it adds to a formula
    """

    name: str
    code: int
    min_arity: int
    max_arity: int | None
    truth: Callable[[Sequence[bool]], bool]
    bits: BitRule
    cost: int = 1

    @property
    def arity_text(self) -> str:
        if self.max_arity is None:
            return f"{self.min_arity} or more arguments"
        if self.max_arity == self.min_arity:
            return f"exactly {self.min_arity} argument" + ("s" if self.min_arity > 1 else "")
        return f"{self.min_arity} to {self.max_arity} arguments"


def _not(arguments: Sequence[bool]) -> bool:
    return not arguments[0]


def _xor(arguments: Sequence[bool]) -> bool:
    return sum(arguments) % 2 == 1


def _iff(arguments: Sequence[bool]) -> bool:
    return all(arguments) or not any(arguments)


def _if(arguments: Sequence[bool]) -> bool:
    return arguments[1] if arguments[0] else arguments[2]


def _not_bits(arguments: Sequence[int], mask: int) -> int:
    return arguments[0] ^ mask


def _and_bits(arguments: Sequence[int], mask: int) -> int:
    return reduce(and_, arguments)


def _or_bits(arguments: Sequence[int], mask: int) -> int:
    return reduce(or_, arguments)


def _xor_bits(arguments: Sequence[int], mask: int) -> int:
    return reduce(xor, arguments)


def _iff_bits(arguments: Sequence[int], mask: int) -> int:
    return reduce(and_, arguments) | (reduce(or_, arguments) ^ mask)


def _if_bits(arguments: Sequence[int], mask: int) -> int:
    condition, then, otherwise = arguments
    return (condition & then) | ((condition ^ mask) & otherwise)


NOT = Operator("not", 0, 1, 1, _not, _not_bits)
AND = Operator("and", 1, 2, None, all, _and_bits)
OR = Operator("or", 2, 2, None, any, _or_bits)
XOR = Operator("xor", 3, 2, None, _xor, _xor_bits)
IFF = Operator("iff", 4, 2, None, _iff, _iff_bits)
IF = Operator("if", 5, 3, 3, _if, _if_bits)

OPERATORS: dict[str, Operator] = {op.name: op for op in (NOT, AND, OR, XOR, IFF, IF)}
BY_CODE = tuple(sorted(OPERATORS.values(), key=lambda operator: operator.code))  # a code is the index here
STANDARD_OPERATORS = ("not", "and", "or", "xor", "iff")  # what every published record allows; `if` must be listed


# --- Formulas of the mechanism language, stored as their postfix program ----------------------------------------------


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
        """Number of nodes on the longest path from the root to an atom; an atom has depth 1."""
        stack: list[int] = []  # a loop for speed, since every submission's score has the depth
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
        """The variables that occur; those that the function depends on: `dsl.replayscm.scm.local_function`."""
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
        """Return the value as a bit vector; columns: returns a variable's bits, mask: the valid bits."""
        return fold(
            self,
            lambda atom: (mask if atom else 0) if isinstance(atom, bool) else columns(atom),
            lambda node, values: OPERATORS[node.operator].bits(values, mask),
        )

    def __str__(self) -> str:
        """Return the canonical text: one space between items, no parentheses around atoms."""
        pieces: list[str] = []  # from right to left: postfix order reversed is prefix order with reversed arguments
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
    """Return an operator applied to arguments; `ValueError` for a wrong number of these."""
    parts = tuple(arguments)
    op = OPERATORS[operator]
    if len(parts) < op.min_arity or (op.max_arity is not None and len(parts) > op.max_arity):
        raise ValueError(f"operator '{operator}' takes {op.arity_text}, got {len(parts)}")
    nodes = tuple(node for part in parts for node in part.nodes)
    return Formula((*nodes, Apply(operator, len(parts))))


def rename(formula: Formula, names: Callable[[str], str]) -> Formula:
    """Return the formula with its variables renamed."""
    return Formula(tuple(names(node) if isinstance(node, str) else node for node in formula.nodes))
