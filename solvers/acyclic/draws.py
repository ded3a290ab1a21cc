"""Acyclic choices drawn with probability proportional to their weight: wherever their sum is found, exactly.

Three ways, each without rejection: down the layers of a DAG (solvers.acyclic.count.Layers); where the sum is found by
elimination of variables, back through it; and where neither can be afforded but the sum can, variable by variable, each
by what all choices with its parent set and those drawn before weigh.
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

MAX_LAYER_TERMS = 4 * MAX_TERMS  # 12 variables in any order; gone through once for all draws

T = TypeVar("T")
Chosen: TypeAlias = dict[int, Mask]
"""Variable -> parent set."""


def weighted(rng: Random, options: Iterable[tuple[T, int]], whole: int) -> T:
    """One option with probability weight / whole; the weights add up to `whole`."""
    mark = below(rng, whole)
    for option, weight in options:
        mark -= weight
        if mark < 0:
            return option
    raise AssertionError("the weights do not add up to the whole")


def below(rng: Random, whole: int) -> int:
    """A number from 0 to `whole` - 1: what `Random.randrange` draws, without its checks. `whole` is positive."""
    bits = whole.bit_length()
    number = rng.getrandbits(bits)
    while number >= whole:
        number = rng.getrandbits(bits)
    return number


class Draws:
    """Sampler for one sum; what samples share is computed once. `BudgetSpent` where there are too many terms."""

    def __init__(self, weights: Weights) -> None:
        self.weights = weights

    @cached_property
    def total(self) -> int:
        """The sum over all acyclic choices."""
        return prod(part.total for part in self._parts) if self._layers is None else self._layers.total

    def draw(self, rng: Random) -> Chosen:
        """Parents before their children. The total must be positive."""
        if self._layers is not None:
            return down_layers(self._layers, rng)
        chosen: Chosen = {}
        for part in self._parts:
            chosen |= part.draw(rng)
        return _parents_first(chosen)

    @cached_property
    def _components(self) -> list[Weights]:
        return self.weights.components()

    @cached_property
    def _layers(self) -> Layers | None:
        """Return the layers of all variables together; None where components are sampled separately."""
        wide = len(self.weights.endogenous) > MAX_POSITIONS
        if wide and any(part.elimination is not None for part in self._components):
            return None
        return _affordable(self.weights)

    @cached_property
    def _parts(self) -> list[_ByLayers | _ByElimination | _SequentialSampler]:
        return [_part(component) for component in self._components]


def down_layers(layers: Layers, rng: Random) -> Chosen:
    """Parents before their children."""
    full = layers.weights.full
    chosen: Chosen = {}
    placed = last = 0
    while placed != full:
        layer = weighted(rng, layers.steps(placed, last), layers.completions(placed, last))
        for variable, options, whole in layers.choices(layer, placed, last):
            chosen[variable] = weighted(rng, options, whole)
        placed, last = placed | layer, layer
    return chosen


def _affordable(weights: Weights) -> Layers | None:
    layers = Layers(weights, terms=MAX_LAYER_TERMS if weights.terms is None else weights.terms)
    return layers if _found(lambda: layers.total) else None


def _found(ask: Callable[[], object]) -> bool:
    try:
        ask()
    except BudgetSpent:
        return False
    return True


def _part(weights: Weights) -> _ByLayers | _ByElimination | _SequentialSampler:
    if weights.elimination is not None:
        by_elimination = _ByElimination(weights)
        if _found(lambda: by_elimination.total):
            return by_elimination
    layers = _affordable(weights)
    return _SequentialSampler(weights) if layers is None else _ByLayers(layers)


class _ByLayers:
    def __init__(self, layers: Layers) -> None:
        self.layers = layers
        self.total = layers.total

    def draw(self, rng: Random) -> Chosen:
        return down_layers(self.layers, rng)


class _ByElimination:
    """sets: of each variable its parent sets and their weights by what they have within"""

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
        inside = self._backward.draw(lambda options, whole: weighted(rng, options, whole))
        variables = zip(self.weights.endogenous, self.sets, self.weights.by_positions, strict=True)
        return {v: weighted(rng, sets[inside[i]], whole[inside[i]]) for i, (v, sets, whole) in enumerate(variables)}


class _SequentialSampler:
    """One variable after another, by the shares that its parent sets have given those drawn before."""

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
        known = self.weights.available & ~sum(1 << v for v in options)
        terms = MAX_TERMS if self.weights.terms is None else self.weights.terms
        return Marginals(Weights(options, known, terms=terms)).of(variable)

    def draw(self, rng: Random) -> Chosen:
        options, shares = dict(self.options), self._first
        for place, v in enumerate(self.weights.endogenous):
            if place:
                shares = self._shares(v, options)
            options[v] = {weighted(rng, sorted(shares.items()), sum(shares.values())): 1}
        return {v: mask for v, candidates in options.items() for mask in candidates}


def _parents_first(chosen: Chosen) -> Chosen:
    waiting = sorted(chosen)
    ordered: Chosen = {}
    while waiting:
        left = sum(1 << v for v in waiting)
        ordered |= {v: chosen[v] for v in waiting if not chosen[v] & left}
        waiting = [v for v in waiting if v not in ordered]
    return ordered
