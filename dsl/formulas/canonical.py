"""Canonical forms of functions under permutation and negation of their variables.

Each comes with the transform that undoes it, so a result is checked by going back. There are 4, 14 and 222 NPN classes
of 2, 3 and 4 variables. The syntactic normal form of formulas is in dsl.formulas.normal_form.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations

from calibrant.dsl.formulas.table import TruthTable, flip, permute


@dataclass(frozen=True, slots=True)
class Transform:
    """The NPN transform of a representative: negate inputs, permute them, negate the output, in this order.

    order: variable i of the representative is variable order[i] of the function
    """

    order: tuple[int, ...]
    negated_inputs: int = 0
    negated_output: bool = False

    def forward(self, table: TruthTable) -> TruthTable:
        for i in range(table.num_vars):
            if self.negated_inputs >> i & 1:
                table = flip(table, i)
        table = permute(table, self.order)
        return ~table if self.negated_output else table

    def backward(self, table: TruthTable) -> TruthTable:
        """Undoes `forward`."""
        table = ~table if self.negated_output else table
        inverse = tuple(self.order.index(i) for i in range(table.num_vars))
        table = permute(table, inverse)
        for i in range(table.num_vars):
            if self.negated_inputs >> i & 1:
                table = flip(table, i)
        return table


def p_representative(table: TruthTable) -> tuple[TruthTable, Transform]:
    """Return the smallest table reachable by permuting variables (n! candidates), and how it was reached."""
    return _smallest(table, [Transform(order) for order in permutations(range(table.num_vars))])


def npn_representative(table: TruthTable) -> tuple[TruthTable, Transform]:
    """Return the smallest table under input negation, permutation and output negation (n! 2**(n+1) candidates)."""
    transforms = [
        Transform(order, negated, output)
        for order in permutations(range(table.num_vars))
        for negated in range(1 << table.num_vars)
        for output in (False, True)
    ]
    return _smallest(table, transforms)


def _smallest(table: TruthTable, transforms: list[Transform]) -> tuple[TruthTable, Transform]:
    images = ((transform.forward(table), transform) for transform in transforms)
    return min(images, key=lambda image: (image[0].bits, image[1].negated_output, image[1].negated_inputs))
