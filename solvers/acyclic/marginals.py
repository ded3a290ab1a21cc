"""Parent-set marginals: total weight of the acyclic assignments with each parent set of a variable.

The total is linear in the weights of one variable, so the marginal is weight times derivative. Forward and backward
passes over the sum by sinks (solvers.acyclic.count) give the derivative by the weight within each order ideal; that of
a parent set is the sum over the ideals that contain it: one more pass over the ideals for each variable, whatever the
number of its parent sets.

"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from math import prod

import numpy as np
import numpy.typing as npt

from calibrant.solvers.acyclic.count import Weights, prefix_totals, total
from calibrant.solvers.acyclic.elimination import total_by_elimination
from calibrant.solvers.acyclic.fixed_width_sums import WordWeights
from calibrant.solvers.acyclic.least_cost import Mask, members_of
from calibrant.solvers.budget import Budget, BudgetSpent

DIGIT_BITS = 16  # sums of up to 2**37 such digits are exact in double precision
CELLS = 1 << 22  # of a matrix of parent sets by order ideals


class Marginals:
    """Parent-set marginals of one sum; the passes that variables share are computed once."""

    def __init__(self, weights: Weights) -> None:
        self._components = [_Component(component) for component in weights.components()]

    def of(self, variable: int) -> dict[Mask, int]:
        """Map each parent set to the total weight of assignments with it, zeros left out; `BudgetSpent` as `total`."""
        component = next(candidate for candidate in self._components if variable in candidate.weights.position)
        others_total = prod(part.total for part in self._components if part is not component)
        index = component.weights.position[variable]
        weights = {mask: weight for mask, weight in component.weights.options[index].items() if weight}
        inside = {mask: component.weights.inside(mask) for mask in weights}
        weight_of_others = component.weigh_others(index, sorted(set(inside.values())))
        products = {mask: weight * weight_of_others[inside[mask]] * others_total for mask, weight in weights.items()}
        return {mask: weight for mask, weight in products.items() if weight}


class _Component:
    def __init__(self, weights: Weights) -> None:
        self.weights = weights

    @cached_property
    def total(self) -> int:
        return total(self.weights)

    def weigh_others(self, index: int, sets: Sequence[Mask]) -> Mapping[Mask, int]:
        """Return the total weight of the other variables if this one has each of these sets (positions)."""
        weights = self.weights
        if weights.words is not None:
            return _weigh_by_kernel(weights.words, index, sets)
        if weights.elimination is not None:
            with suppress(BudgetSpent):
                return _weigh_by_elimination(weights, index, sets)
        return _sum_over_supersets(sets, self._derivatives(index))

    @cached_property
    def _prefixes(self) -> list[dict[Mask, int]]:
        return prefix_totals(self.weights)

    @cached_property
    def _suffixes(self) -> dict[Mask, int]:
        """Signed weight of all continuations behind each order ideal."""
        after = {self.weights.full: 1}
        budget = Budget(self.weights.max_terms)
        for level in reversed(self._prefixes[:-1]):
            for placed in level:
                after[placed] = -self._sum_over_sinks(placed, self.weights.eligible(placed), 0, after, budget)
        return after

    def _sum_over_sinks(
        self, placed: Mask, eligible: Mask, also_placed: Mask, after: Mapping[Mask, int], budget: Budget
    ) -> int:
        """Sum weight times continuation over the nonempty sets of sinks, with sign (-1)**|sinks|.

        eligible: which may be sinks; also_placed: added to the ideal before the continuation
        """
        self.weights.charge(budget, 1 << eligible.bit_count())
        weight_of = {1 << i: self.weights.within(i, placed) for i in members_of(eligible)}
        product, signed_total, sinks = {0: 1}, 0, 0
        while True:
            sinks = (sinks - eligible) & eligible  # next subset
            if not sinks:
                return signed_total
            low = sinks & -sinks
            product[sinks] = term = -product[sinks ^ low] * weight_of[low]
            signed_total += term * after.get(placed | also_placed | sinks, 0)

    def _derivatives(self, index: int) -> dict[Mask, int]:
        """Map each order ideal to the derivative by the variable's weight within it."""
        bit, derivatives = 1 << index, dict[Mask, int]()
        budget = Budget(self.weights.max_terms)
        for level in self._prefixes:
            for placed, prefix in level.items():
                eligible = self.weights.eligible(placed)
                if prefix and eligible & bit:
                    # the variable alone as a sink, and together with every set of other sinks
                    suffix = self._suffixes.get(placed | bit, 0)
                    suffix += self._sum_over_sinks(placed, eligible ^ bit, bit, self._suffixes, budget)
                    if suffix:
                        derivatives[placed] = prefix * suffix
        return derivatives


def _weigh_by_kernel(words: WordWeights, index: int, sets: Sequence[Mask]) -> dict[Mask, int]:
    first, last = int(words.starts[index]), int(words.starts[index + 1])
    rows = np.tile(words.weights, (len(sets), 1))
    # one sum for each set, which gets weight 1 and all others of the variable 0
    for row, mask in zip(rows, sets, strict=True):
        row[words.entries[first:last]] = words.inside[first:last] == mask
    return dict(zip(sets, words.totals(rows), strict=True))


def _weigh_by_elimination(weights: Weights, index: int, sets: Sequence[Mask]) -> dict[Mask, int]:
    assert weights.elimination is not None
    options, budget, totals = list(weights.by_positions), Budget(weights.max_terms), dict[Mask, int]()
    for mask in sets:
        options[index] = {mask: 1}
        totals[mask] = total_by_elimination(options, weights.elimination, budget)
    return totals


def _sum_over_supersets(sets: Sequence[Mask], numbers: Mapping[Mask, int]) -> dict[Mask, int]:
    """Sum, for each set, the numbers of its supersets, as matrix products over digits."""
    masks, supersets = np.array(sets, np.int64), np.array(list(numbers), np.int64)
    digits = _split_digits(list(numbers.values()))
    # integers of any size by BLAS: 0-1 matrix times digits in floating point, exact by DIGIT_BITS
    batch = max(1, CELLS // max(1, len(supersets)))
    sums = np.zeros((len(masks), digits.shape[1]))
    for i in range(0, len(masks), batch):
        sums[i : i + batch] = ((masks[i : i + batch, None] & ~supersets) == 0).astype(np.float64) @ digits
    return {
        mask: sum(int(digit) << DIGIT_BITS * place for place, digit in enumerate(row.tolist()))
        for mask, row in zip(sets, sums, strict=True)
    }


def _split_digits(numbers: Sequence[int]) -> npt.NDArray[np.float64]:
    """Split numbers into digits, least significant first, each with the number's sign; shape [n, d]."""
    size = max((abs(number).bit_length() // DIGIT_BITS + 1 for number in numbers), default=1)
    words = b"".join(abs(number).to_bytes(size * DIGIT_BITS // 8, "little") for number in numbers)
    signs = np.array([-1.0 if number < 0 else 1.0 for number in numbers])
    digits: npt.NDArray[np.float64] = np.frombuffer(words, "<u2").reshape(len(numbers), size) * signs[:, None]
    return digits
