"""What all acyclic choices weigh in which a variable has each of its parent sets: derivatives of the sum over all.

The sum by sinks (solvers.acyclic.count) is gone through forwards and backwards once; then of every variable what comes
before and after it is known for each set that can be placed first, and its parent sets only have to be told which of
these sets hold them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from math import prod

import numpy as np
import numpy.typing as npt

from calibrant.solvers.acyclic.count import Weights, beginnings, total
from calibrant.solvers.acyclic.elimination import eliminated_total
from calibrant.solvers.acyclic.fixed_width_sums import WordWeights
from calibrant.solvers.acyclic.least_cost import Mask, members_of
from calibrant.solvers.budget import Budget, BudgetSpent

DIGIT = 16  # bits: sums of 2**37 digits are exact in floating point
CELLS = 1 << 22  # of a matrix of parent sets by beginnings


class Marginals:
    """Parent-set marginals of one sum; what variables share is computed once."""

    def __init__(self, weights: Weights) -> None:
        self._components = [_Component(one) for one in weights.components()]

    def of(self, variable: int) -> dict[Mask, int]:
        """Parent set -> what all choices with it weigh, if that is anything; `BudgetSpent` where `total` says so."""
        at = next(i for i, one in enumerate(self._components) if variable in one.weights.position)
        component, rest = self._components[at], self._components[:at] + self._components[at + 1 :]
        beside = prod(one.total for one in rest)
        index = component.weights.position[variable]
        weights = {mask: weight for mask, weight in component.weights.options[index].items() if weight}
        inside = {mask: component.weights.inside(mask) for mask in weights}
        having = component.having(index, sorted(set(inside.values())))
        found = {mask: weight * having[inside[mask]] * beside for mask, weight in weights.items()}
        return {mask: weight for mask, weight in found.items() if weight}


class _Component:
    def __init__(self, weights: Weights) -> None:
        self.weights = weights

    @cached_property
    def total(self) -> int:
        return total(self.weights)

    def having(self, index: int, sets: Sequence[Mask]) -> Mapping[Mask, int]:
        """Return what all others weigh together if a variable has each of these sets, as positions."""
        weights = self.weights
        if weights.words is not None:
            return _by_kernel(weights.words, index, sets)
        if weights.elimination is not None:
            with suppress(BudgetSpent):
                return _by_elimination(weights, index, sets)
        return _held(sets, self._beside(index))

    @cached_property
    def _before(self) -> list[dict[Mask, int]]:
        return beginnings(self.weights)

    @cached_property
    def _after(self) -> dict[Mask, int]:
        """Return what follows a set that is placed first, as the sum by sinks counts it."""
        after = {self.weights.full: 1}
        budget = Budget(self.weights.most_terms)
        for level in reversed(self._before[:-1]):
            for placed in level:
                after[placed] = -self._by_sinks(placed, self.weights.able(placed), 0, after, budget)
        return after

    def _by_sinks(self, placed: Mask, able: Mask, also: Mask, after: Mapping[Mask, int], budget: Budget) -> int:
        """Over the nonempty sets of sinks, with sign (-1)**|sinks|, of what they weigh and what follows them.

        able: which may be sinks; also: what is placed besides before it follows
        """
        self.weights.charge(budget, 1 << able.bit_count())
        weight_of = {1 << i: self.weights.within(i, placed) for i in members_of(able)}
        product, found, sinks = {0: 1}, 0, 0
        while True:
            sinks = (sinks - able) & able  # next subset
            if not sinks:
                return found
            low = sinks & -sinks
            product[sinks] = term = -product[sinks ^ low] * weight_of[low]
            found += term * after.get(placed | also | sinks, 0)

    def _beside(self, index: int) -> dict[Mask, int]:
        """By what is placed before a variable: the derivative by the weight of its sets within that."""
        bit, found = 1 << index, dict[Mask, int]()
        budget = Budget(self.weights.most_terms)
        for level in self._before:
            for placed, before in level.items():
                able = self.weights.able(placed)
                if before and able & bit:
                    follows = self._after.get(placed | bit, 0)
                    follows += self._by_sinks(placed, able ^ bit, bit, self._after, budget)
                    if follows:
                        found[placed] = before * follows
        return found


def _by_kernel(words: WordWeights, index: int, sets: Sequence[Mask]) -> dict[Mask, int]:
    first, last = int(words.starts[index]), int(words.starts[index + 1])
    rows = np.tile(words.weights, (len(sets), 1))
    for row, mask in zip(rows, sets, strict=True):
        row[words.entries[first:last]] = words.inside[first:last] == mask
    return dict(zip(sets, words.totals(rows), strict=True))


def _by_elimination(weights: Weights, index: int, sets: Sequence[Mask]) -> dict[Mask, int]:
    assert weights.elimination is not None
    options, budget, found = list(weights.by_positions), Budget(weights.most_terms), dict[Mask, int]()
    for mask in sets:
        options[index] = {mask: 1}
        found[mask] = eliminated_total(options, weights.elimination, budget)
    return found


def _held(sets: Sequence[Mask], numbers: Mapping[Mask, int]) -> dict[Mask, int]:
    """Sum, for each set, the numbers of its supersets; digit by digit, as products of matrices."""
    masks, holders = np.array(sets, np.int64), np.array(list(numbers), np.int64)
    digits = _digits(list(numbers.values()))
    few = max(1, CELLS // max(1, len(holders)))
    sums = np.zeros((len(masks), digits.shape[1]))
    for i in range(0, len(masks), few):
        sums[i : i + few] = ((masks[i : i + few, None] & ~holders) == 0).astype(np.float64) @ digits
    return {
        mask: sum(int(digit) << DIGIT * place for place, digit in enumerate(row.tolist()))
        for mask, row in zip(sets, sums, strict=True)
    }


def _digits(numbers: Sequence[int]) -> npt.NDArray[np.float64]:
    """[n, d] least significant first, with the number's sign."""
    size = max((abs(number).bit_length() // DIGIT + 1 for number in numbers), default=1)
    words = b"".join(abs(number).to_bytes(size * DIGIT // 8, "little") for number in numbers)
    signs = np.array([-1.0 if number < 0 else 1.0 for number in numbers])
    digits: npt.NDArray[np.float64] = np.frombuffer(words, "<u2").reshape(len(numbers), size) * signs[:, None]
    return digits
