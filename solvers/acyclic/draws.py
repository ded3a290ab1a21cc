"""Exact sampling of acyclic assignments with probability proportional to weight, wherever their sum can be computed.

Three methods, each without rejection: layer by layer (solvers.acyclic.count.Layers); backwards through an elimination
of variables, where the sum is computed by it; and where both exceed the budget but the sum does not, variable by
variable from conditional marginals.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from math import prod
from random import Random
from typing import TypeAlias, TypeVar

from calibrant.solvers.acyclic.backward_sampling import BackwardSampler
from calibrant.solvers.acyclic.count import MAX_TERMS, Layers, Weights
from calibrant.solvers.acyclic.fixed_width_sums import MAX_POSITIONS
from calibrant.solvers.acyclic.least_cost import Mask
from calibrant.solvers.acyclic.marginals import Marginals
from calibrant.solvers.budget import Budget, BudgetSpent

MAX_LAYER_TERMS = 4 * MAX_TERMS  # 12 variables in any order; computed once for all samples

T = TypeVar("T")
Chosen: TypeAlias = dict[int, Mask]
"""Variable -> parent set."""


def draw_weighted(rng: Random, options: Iterable[tuple[T, int]], total: int) -> T:
    """Draw an option with probability weight / total; the weights add up to `total`."""
    mark = draw_below(rng, total)
    for option, weight in options:
        mark -= weight
        if mark < 0:
            return option
    raise AssertionError("the weights do not add up to the total")


def draw_below(rng: Random, bound: int) -> int:
    """Draw a number from 0 to `bound` - 1, as `Random.randrange` does but without its checks; `bound` is positive."""
    # rejection: at most two tries are expected, since bound >= 2**(bits - 1)
    bits = bound.bit_length()
    number = rng.getrandbits(bits)
    while number >= bound:
        number = rng.getrandbits(bits)
    return number


class Draws:
    """Sampler for one sum; what samples share is computed once. `BudgetSpent` where there are too many terms."""

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
        """Layers of all variables together; None where components are sampled separately."""
        wide = len(self.weights.endogenous) > MAX_POSITIONS
        if wide and any(part.elimination is not None for part in self._components):
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
        for variable, options, total in layers.choices(layer, placed, last):
            chosen[variable] = draw_weighted(rng, options, total)
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

    sets: per variable and endogenous part (positions), the parent sets with that part and their weights
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
        return {
            v: draw_weighted(rng, sets[inside[i]], total[inside[i]]) for i, (v, sets, total) in enumerate(variables)
        }


class _SequentialSampler:
    """Sequential sampler by conditional marginals: one sum over acyclic assignments for every variable drawn."""

    def __init__(self, weights: Weights) -> None:
        self.weights = weights
        self.options = dict(zip(weights.endogenous, weights.options, strict=True))

    @property
    def total(self) -> int:
        return sum(self._first.values())

    @cached_property
    def _first(self) -> Mapping[Mask, int]:
        return self._shares(self.weights.endogenous[0], self.options)

    def _shares(self, variable: int, options: Mapping[int, Mapping[Mask, int]]) -> Mapping[Mask, int]:
        available = self.weights.available & ~sum(1 << v for v in options)
        terms = MAX_TERMS if self.weights.terms is None else self.weights.terms
        return Marginals(Weights(options, available, terms=terms)).of(variable)

    def draw(self, rng: Random) -> Chosen:
        options, shares = dict(self.options), self._first
        for index, v in enumerate(self.weights.endogenous):
            if index:
                shares = self._shares(v, options)
            options[v] = {draw_weighted(rng, sorted(shares.items()), sum(shares.values())): 1}
        return {v: mask for v, candidates in options.items() for mask in candidates}


def _in_topological_order(chosen: Chosen) -> Chosen:
    remaining = sorted(chosen)
    ordered: Chosen = {}
    while remaining:
        unplaced = sum(1 << v for v in remaining)
        ordered |= {v: chosen[v] for v in remaining if not chosen[v] & unplaced}
        remaining = [v for v in remaining if v not in ordered]
    return ordered
