"""The only operator table: name, arity, truth rule and cost of every operator of the mechanism language.

Meanings are those of the published scorer (docs/semantics.md, "Mechanism texts"): n-ary `xor` is parity and n-ary `iff`
is "all arguments equal", so `iff` must never be flattened into a chain of binary ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_, or_, xor
from typing import TypeAlias

BitRule: TypeAlias = Callable[[Sequence[int], int], int]
"""Arguments as equally long bit vectors, and the mask of valid bits; gives the result's bits."""


@dataclass(frozen=True, slots=True)
class Operator:
    """One operator.

    name: its spelling in mechanism texts
    code: its number in compiled programs (see dsl.replayscm._kernels_evaluator)
    min_arity, max_arity: how many arguments it takes; None means no upper limit
    truth: its meaning on single bits
    bits: the same rule on whole bit vectors at once; tests compare it with `truth`
    cost: what a node of it adds to the size of a formula
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
BY_CODE = tuple(sorted(OPERATORS.values(), key=lambda operator: operator.code))  # a code is the place here
STANDARD_OPERATORS = ("not", "and", "or", "xor", "iff")  # what every published record allows; `if` must be listed
