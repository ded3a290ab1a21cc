"""Sums over acyclic parent choices: exact counting and unbiased sampling, by dynamic programming over subsets.

Weights are Python integers, however large; a polynomial in the formula size is packed into one integer, so the same
code counts, and counts by size. `total` removes sinks by inclusion and exclusion (3**m terms); `Layers` splits every
DAG into layers in exactly one way, without negative terms, which is what sampling needs (Talvitie, Vuoksenmaa and
Koivisto 2019 sample DAGs uniformly in this manner).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, reduce
from math import prod
from operator import add, or_
from typing import NamedTuple

from solvers.acyclic.least_cost import Mask
from solvers.budget import BudgetSpent

MAX_FREE_VARIABLES = 18  # 3**18 terms take minutes; above that another engine has to answer


class Weights:
    """Per endogenous variable the weight of each parent set; roots are available to everybody.

    sums[i][X]: total weight of variable i's parent sets whose endogenous parents lie in X (bits are positions in
    `endogenous`); made when first asked for
    """

    def __init__(self, options: Mapping[int, Mapping[Mask, int]], roots: Mask) -> None:
        self.endogenous = sorted(options)
        self.position = {variable: i for i, variable in enumerate(self.endogenous)}
        highest = max(self.endogenous, default=0)
        self._gaps = [v for v in range(highest - 1, -1, -1) if v not in self.position]
        self.available = roots | sum(1 << variable for variable in self.endogenous)
        self.options = [
            {mask: weight for mask, weight in options[v].items() if mask & ~self.available == 0}
            for v in self.endogenous
        ]

    @cached_property
    def sums(self) -> list[list[int]]:
        """`BudgetSpent` for more than MAX_FREE_VARIABLES variables."""
        if len(self.endogenous) > MAX_FREE_VARIABLES:
            most = f"at most {MAX_FREE_VARIABLES} are summed over"
            raise BudgetSpent(f"{len(self.endogenous)} variables that may lie on a cycle together; {most}")
        return [self._subset_sums(own) for own in self.options]

    def components(self) -> list[Weights]:
        """The variables in groups that no cycle leaves, each with the others as roots: choices multiply over them."""
        reach = [self.inside(reduce(or_, own, 0)) for own in self.options]
        for middle, beyond in enumerate(reach):
            for i, reached in enumerate(reach):
                if reached >> middle & 1:
                    reach[i] |= beyond if i != middle else 0
        groups: dict[Mask, list[int]] = {}
        for i, reached in enumerate(reach):
            circle = sum(1 << j for j, back in enumerate(reach) if reached >> j & 1 and back >> i & 1)
            groups.setdefault(circle | 1 << i, []).append(i)
        if len(groups) == 1:
            return [self]
        return [self._group(positions) for positions in groups.values()]

    def _group(self, positions: Sequence[int]) -> Weights:
        own = {self.endogenous[i]: self.options[i] for i in positions}
        return Weights(own, self.available & ~sum(1 << variable for variable in own))

    def inside(self, mask: Mask) -> Mask:
        """The endogenous part of a parent set, as positions."""
        for gap in self._gaps:  # highest first, so that the lower ones stay where they are
            mask = mask & ((1 << gap) - 1) | mask >> gap + 1 << gap
        return mask & self.full

    @property
    def full(self) -> Mask:
        return (1 << len(self.endogenous)) - 1

    def _subset_sums(self, options: Mapping[Mask, int]) -> list[int]:
        sums = [0] * (1 << len(self.endogenous))
        for mask, weight in options.items():
            sums[self.inside(mask)] += weight
        for i in range(len(self.endogenous)):
            bit = 1 << i
            if bit * bit < len(sums):  # few and long slices, for low bits with a step and for high ones without
                pairs = [(slice(low, None, 2 * bit), slice(low + bit, None, 2 * bit)) for low in range(bit)]
            else:
                starts = range(0, len(sums), 2 * bit)
                pairs = [(slice(low, low + bit), slice(low + bit, low + 2 * bit)) for low in starts]
            for without, having in pairs:
                sums[having] = map(add, sums[having], sums[without])
        return sums


def total(weights: Weights) -> int:
    """Sum over all acyclic choices of the product of weights; `BudgetSpent` if too many may lie on a cycle together."""
    return prod(_component_total(component) for component in weights.components())


def _component_total(weights: Weights) -> int:
    """By inclusion and exclusion over the set of sinks."""
    sums, full = weights.sums, weights.full
    least = [0] * (full + 1)
    least[0] = 1
    for placed in range(full + 1):
        base = least[placed]
        if not base:
            continue
        rest = full ^ placed
        product = {0: -base}  # sign (-1)**(|sinks| + 1), folded into the first factor
        sinks = 0
        while True:
            sinks = (sinks - rest) & rest  # next subset of the rest
            if not sinks:
                break
            low = sinks & -sinks
            product[sinks] = -product[sinks ^ low] * sums[low.bit_length() - 1][placed]
            least[placed | sinks] += product[sinks]
    return least[full]


class Layer(NamedTuple):
    """One layer: the variables that come next, and what their choices and the rest of the DAG weigh together."""

    layer: Mask
    weight: int


class Layers:
    """DAGs by layers: each variable of a layer has a parent in the layer before it and all parents before its own."""

    def __init__(self, weights: Weights) -> None:
        self.weights = weights
        self._memo: dict[tuple[Mask, Mask], int] = {}

    @cached_property
    def total(self) -> int:
        """The same sum as `total`, without a negative term."""
        return self.completions(0, 0)

    def completions(self, placed: Mask, last: Mask) -> int:
        """Weight of all ways to go on when `placed` is placed and `last` was the last layer."""
        if placed == self.weights.full:
            return 1
        key = placed, last
        if key not in self._memo:
            self._memo[key] = sum(step.weight for step in self.steps(placed, last))
        return self._memo[key]

    def steps(self, placed: Mask, last: Mask) -> Iterator[Layer]:
        """Every possible next layer, in a fixed order."""
        rest = self.weights.full ^ placed
        product = {0: 1}
        layer = 0
        while True:
            layer = (layer - rest) & rest
            if not layer:
                return
            low = layer & -layer
            product[layer] = product[layer ^ low] and product[layer ^ low] * self.fresh(
                low.bit_length() - 1, placed, last
            )
            if product[layer]:
                weight = product[layer] * self.completions(placed | layer, layer)
                if weight:
                    yield Layer(layer, weight)

    def fresh(self, index: int, placed: Mask, last: Mask) -> int:
        """Weight of a variable's parent sets among `placed` that touch the last layer (any set, for the first)."""
        sums = self.weights.sums[index]
        return sums[placed] - sums[placed ^ last] if last else sums[placed]

    def parent_sets(self, index: int, placed: Mask, last: Mask) -> list[tuple[Mask, int]]:
        """The parent sets behind `fresh`, with their weights, in a fixed order."""
        chosen = []
        for mask, weight in sorted(self.weights.options[index].items()):
            inside = self.weights.inside(mask)
            if inside & ~placed == 0 and (not last or inside & last):
                chosen.append((mask, weight))
        return chosen


def members_of(layer: Mask) -> Sequence[int]:
    """The positions in a layer, ascending."""
    return [i for i in range(layer.bit_length()) if layer >> i & 1]
