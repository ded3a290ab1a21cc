"""Exact sampling of acyclic assignments, and marginals of their parent sets.

Three methods, each without rejection: layer by layer (solvers.acyclic.count.Layers); backwards through an elimination
of variables, if the sum is computed by it; and, if both exceed the budget but the sum does not, variable by variable
from conditional marginals.

Marginals: the total is linear in the weights of one variable, so a marginal is weight times derivative. Forward and
backward passes over the sum by sinks (solvers.acyclic.count) give the derivative by the weight within each order ideal.
The derivative by the weight of a parent set is the sum over the ideals that contain it. So each variable takes one more
pass over the ideals, whatever the number of its parent sets.

Backward sampling: a relation over a table's scope is drawn by its weight; then the joins that led to it are reversed
step by step, each drawn by weight. So an assignment's probability is proportional to its weight (forward filtering and
backward sampling, along a tree decomposition instead of a chain).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from math import prod
from random import Random
from typing import Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from calibrant.solvers.acyclic.count import MAX_POSITIONS, MAX_TERMS, Layers, Weights, WordWeights, prefix_totals, total
from calibrant.solvers.acyclic.elimination import Elimination, Rows, drop_variable, eliminations, total_by_elimination
from calibrant.solvers.acyclic.least import Mask, members_of
from calibrant.solvers.outcome import Budget, BudgetSpent

# --- Parent-set marginals: total weight of the acyclic assignments with each parent set of a variable -----------------
DIGIT_BITS = 16  # sums of up to 2**37 such digits are exact in double precision
MAX_CELLS = 1 << 22  # cells of a matrix of parent sets by order ideals


class Marginals:
    """Parent-set marginals of one sum; the passes that variables share are computed once."""

    def __init__(self, weights: Weights) -> None:
        self._components = [_Component(component) for component in weights.components()]

    def of(self, variable: int) -> dict[Mask, int]:
        """Map each parent set to the total weight of the assignments with it; zeros are left out.

        `BudgetSpent` as in `total`.
        """
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
        """Map each of these sets (positions) to the total weight of the other variables if this variable has it."""
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
        """Signed total weight of all continuations of each order ideal."""
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

        eligible: possible sinks; also_placed: variables added to the ideal before the continuation
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
        """Map each order ideal to the derivative of the total by `Weights.within` of the variable and the ideal."""
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
    first, end = int(words.starts[index]), int(words.starts[index + 1])
    rows = np.tile(words.weights, (len(sets), 1))
    # one sum for each set, which gets weight 1 and all others of the variable 0
    for row, mask in zip(rows, sets, strict=True):
        row[words.entries[first:end]] = words.inside[first:end] == mask
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
    # integers of any size through BLAS: a 0-1 matrix times digits in floating point, exact since digits are small
    batch = max(1, MAX_CELLS // max(1, len(supersets)))
    sums = np.zeros((len(masks), digits.shape[1]))
    for i in range(0, len(masks), batch):
        sums[i : i + batch] = ((masks[i : i + batch, None] & ~supersets) == 0).astype(np.float64) @ digits
    return {
        mask: sum(int(digit) << DIGIT_BITS * index for index, digit in enumerate(row.tolist()))
        for mask, row in zip(sets, sums, strict=True)
    }


def _split_digits(numbers: Sequence[int]) -> npt.NDArray[np.float64]:
    """Split numbers into digits, least significant first, each with the number's sign; shape [n, d]."""
    size = max((abs(number).bit_length() // DIGIT_BITS + 1 for number in numbers), default=1)
    words = b"".join(abs(number).to_bytes(size * DIGIT_BITS // 8, "little") for number in numbers)
    signs = np.array([-1.0 if number < 0 else 1.0 for number in numbers])
    digits: npt.NDArray[np.float64] = np.frombuffer(words, "<u2").reshape(len(numbers), size) * signs[:, None]
    return digits


# --- Backward sampling of acyclic assignments: reverses an elimination of variables, last variable first --------------
Weighted: TypeAlias = Callable[[Iterable[tuple[Any, int]], int], Any]
"""Sampler: (options with weights, sum of the weights) -> an option, with probability weight / sum."""


class BackwardSampler:
    """Backward sampler along an elimination; it stores every joined pair of relations."""

    def __init__(self, options: Sequence[Mapping[Mask, int]], order: Sequence[int], budget: Budget) -> None:
        """Arguments as for `solvers.acyclic.elimination.total_by_elimination`."""
        solved = list(eliminations(options, order, budget))
        self.total = prod(
            elimination.message.terms.get((), 0) for elimination in solved if not elimination.message.scope
        )
        self._steps = {elimination.variable: _Step(elimination) for elimination in solved}
        self._last = [elimination.variable for elimination in solved if not elimination.message.scope]

    def draw(self, weighted: Weighted) -> dict[int, Mask]:
        """Draw an assignment: position -> parents, as positions. The total must be positive."""
        chosen: dict[int, Mask] = {}
        stack: list[tuple[int, Rows]] = [(v, ()) for v in self._last]
        while stack:
            variable, separator = stack.pop()
            step = self._steps[variable]
            rows = weighted(*step.relations[separator])
            # tables in reverse: ways[i] is grouped by the union of the first i + 1 tables, drawn one step before
            for index in reversed(range(len(step.tables))):
                rows, term = weighted(*step.ways[index][rows])
                table = step.tables[index]
                if table.eliminated:
                    stack.append((table.variable, term))
                else:
                    chosen[table.variable] = sum(1 << u for u, after in zip(table.scope, term, strict=True) if after)
        return chosen


class _Step:
    """One eliminated variable, reversed.

    relations: relation without the variable -> the joined relations that restrict to it with weights, and their sum
    ways: for each table, union -> pairs ((union before the table, the table's term), weight), and the sum of weights
    """

    def __init__(self, elimination: Elimination) -> None:
        self.tables = elimination.join.tables
        self._elimination = elimination

    @cached_property
    def relations(self) -> Mapping[Rows, tuple[list[tuple[Rows, int]], int]]:
        join, groups = self._elimination.join, dict[Rows, list[tuple[Rows, int]]]()
        for rows, weight in join.reached[-1].items():
            groups.setdefault(drop_variable(self._elimination.variable, join.scope, rows), []).append((rows, weight))
        return {separator: (pairs, sum(weight for _, weight in pairs)) for separator, pairs in groups.items()}

    @cached_property
    def ways(self) -> Sequence[Mapping[Rows, tuple[list[tuple[tuple[Rows, Rows], int]], int]]]:
        ways = []
        for index in range(len(self.tables)):
            groups: dict[Rows, list[tuple[tuple[Rows, Rows], int]]] = {}
            for union, before, term, weight in self._elimination.join.steps(index):
                groups.setdefault(union, []).append(((before, term), weight))
            ways.append({union: (pairs, sum(weight for _, weight in pairs)) for union, pairs in groups.items()})
        return ways


# --- Exact sampling of acyclic assignments with probability proportional to weight, if their sum can be computed ------
MAX_LAYER_TERMS = 4 * MAX_TERMS  # 12 variables in any order; computed once for all samples

T = TypeVar("T")
Chosen: TypeAlias = dict[int, Mask]
"""Variable -> parent set."""


def draw_weighted(rng: Random, options: Iterable[tuple[T, int]], total: int) -> T:
    """Draw an option with probability weight / total; the weights add up to `total`."""
    remaining = draw_below(rng, total)
    for option, weight in options:
        remaining -= weight
        if remaining < 0:
            return option
    raise AssertionError("the weights do not add up to the total")


def draw_below(rng: Random, bound: int) -> int:
    """Draw a number from 0 to `bound` - 1, as `Random.randrange` does but without its checks; `bound` is positive."""
    # rejection: at most two tries are expected, since bound >= 2**(bits - 1)
    bits = bound.bit_length()
    candidate = rng.getrandbits(bits)
    while candidate >= bound:
        candidate = rng.getrandbits(bits)
    return candidate


class Draws:
    """Sampler for one sum, whose tables are computed once; `BudgetSpent` for too many terms."""

    def __init__(self, weights: Weights) -> None:
        self.weights = weights

    @cached_property
    def total(self) -> int:
        """Sum over all acyclic assignments."""
        return prod(part.total for part in self._parts) if self._layers is None else self._layers.total

    def draw(self, rng: Random) -> Chosen:
        """Draw an assignment, parents before their children. The total must be positive."""
        if self._layers is not None:
            return draw_by_layers(self._layers, rng)
        chosen: Chosen = {}
        for part in self._parts:
            chosen |= part.draw(rng)
        return _in_topological_order(chosen)

    @cached_property
    def _components(self) -> list[Weights]:
        return self.weights.components()

    @cached_property
    def _layers(self) -> Layers | None:
        """Layers of all variables together; None if components are sampled separately."""
        is_wide = len(self.weights.endogenous) > MAX_POSITIONS
        if is_wide and any(part.elimination is not None for part in self._components):
            return None
        return _affordable_layers(self.weights)

    @cached_property
    def _parts(self) -> list[_ByLayers | _ByElimination | _SequentialSampler]:
        return [_component_sampler(component) for component in self._components]


def draw_by_layers(layers: Layers, rng: Random) -> Chosen:
    """Draw an assignment layer by layer, parents before their children."""
    full = layers.weights.full
    chosen: Chosen = {}
    placed = last = 0
    while placed != full:
        layer = draw_weighted(rng, layers.steps(placed, last), layers.completions(placed, last))
        for variable, options, weight_sum in layers.choices(layer, placed, last):
            chosen[variable] = draw_weighted(rng, options, weight_sum)
        placed, last = placed | layer, layer
    return chosen


def _affordable_layers(weights: Weights) -> Layers | None:
    layers = Layers(weights, terms=MAX_LAYER_TERMS if weights.terms is None else weights.terms)
    return layers if _is_within_budget(lambda: layers.total) else None


def _is_within_budget(compute: Callable[[], object]) -> bool:
    try:
        compute()
    except BudgetSpent:
        return False
    return True


def _component_sampler(weights: Weights) -> _ByLayers | _ByElimination | _SequentialSampler:
    if weights.elimination is not None:
        by_elimination = _ByElimination(weights)
        if _is_within_budget(lambda: by_elimination.total):
            return by_elimination
    layers = _affordable_layers(weights)
    return _SequentialSampler(weights) if layers is None else _ByLayers(layers)


class _ByLayers:
    def __init__(self, layers: Layers) -> None:
        self.layers = layers
        self.total = layers.total

    def draw(self, rng: Random) -> Chosen:
        return draw_by_layers(self.layers, rng)


class _ByElimination:
    """Sampler backwards through an elimination.

    sets: for each variable, endogenous members (positions) -> the parent sets with these members, and their weights
    """

    def __init__(self, weights: Weights) -> None:
        self.weights = weights
        self.sets: list[dict[Mask, list[tuple[Mask, int]]]] = [{} for _ in weights.endogenous]
        for masks, options in zip(self.sets, weights.options, strict=True):
            for mask, weight in sorted(options.items()):
                masks.setdefault(weights.inside(mask), []).append((mask, weight))

    @cached_property
    def _backward(self) -> BackwardSampler:
        assert self.weights.elimination is not None
        budget = Budget(MAX_TERMS if self.weights.terms is None else self.weights.terms)
        return BackwardSampler(self.weights.by_positions, self.weights.elimination, budget)

    @property
    def total(self) -> int:
        return self._backward.total

    def draw(self, rng: Random) -> Chosen:
        inside = self._backward.draw(lambda options, total: draw_weighted(rng, options, total))
        variables = zip(self.weights.endogenous, self.sets, self.weights.by_positions, strict=True)
        return {v: draw_weighted(rng, sets[inside[i]], sums[inside[i]]) for i, (v, sets, sums) in enumerate(variables)}


class _SequentialSampler:
    """Sequential sampler: draw each variable by its marginals, given the parent sets of those drawn before."""

    def __init__(self, weights: Weights) -> None:
        self.weights = weights
        self.options = dict(zip(weights.endogenous, weights.options, strict=True))

    @property
    def total(self) -> int:
        return sum(self._first.values())

    @cached_property
    def _first(self) -> Mapping[Mask, int]:
        return self._marginals(self.weights.endogenous[0], self.options)

    def _marginals(self, variable: int, options: Mapping[int, Mapping[Mask, int]]) -> Mapping[Mask, int]:
        available = self.weights.available & ~sum(1 << v for v in options)
        terms = MAX_TERMS if self.weights.terms is None else self.weights.terms
        return Marginals(Weights(options, available, terms=terms)).of(variable)

    def draw(self, rng: Random) -> Chosen:
        options, marginals = dict(self.options), self._first
        for index, v in enumerate(self.weights.endogenous):
            if index:
                marginals = self._marginals(v, options)
            options[v] = {draw_weighted(rng, sorted(marginals.items()), sum(marginals.values())): 1}
        return {v: mask for v, candidates in options.items() for mask in candidates}


def _in_topological_order(chosen: Chosen) -> Chosen:
    remaining = sorted(chosen)
    ordered: Chosen = {}
    while remaining:
        unplaced = sum(1 << v for v in remaining)
        ordered |= {v: chosen[v] for v in remaining if not chosen[v] & unplaced}
        remaining = [v for v in remaining if v not in ordered]
    return ordered
