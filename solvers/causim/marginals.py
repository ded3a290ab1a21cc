"""Probabilities of single nodes, under no intervention or one, and conditional tables."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import lcm, prod

from calibrant.dsl.causim.model import Assignment, Model, Symbol
from calibrant.solvers.causim.elimination import equation_factor, restrict, sum_of_products


def marginal(model: Model, name: str, do: Assignment) -> dict[Symbol, Fraction]:
    """Return P(name = value) for every value of the node's domain under `do`, zeros included."""
    system = model.under(do)
    i = model.position[name]
    factors, denominators = [], []
    for k, (node, local) in enumerate(zip(model.nodes, system, strict=True)):
        # whole numbers over a common denominator: sums are exact, with one Fraction at the end
        common = lcm(*(weight.denominator for weight in node.weights))
        weights = [int(weight * common) for weight in node.weights]
        factors.append(equation_factor(local, k, weights, range(len(weights))))
        denominators.append(common)
    bound = prod(denominators)
    return {
        value: Fraction(sum_of_products([restrict(factor, {i: k}) for factor in factors], bound), bound)
        for k, value in enumerate(system[i].domain)
    }


def count_worlds(model: Model, name: str) -> dict[Symbol, int]:
    """Count the worlds in which the node has each value of its domain."""
    i, system = model.position[name], model.system
    factors = [
        equation_factor(local, k, [1] * len(node.support), range(len(node.support)))
        for k, (node, local) in enumerate(zip(model.nodes, system, strict=True))
    ]
    return {
        value: sum_of_products([restrict(factor, {i: k}) for factor in factors], model.worlds)
        for k, value in enumerate(system[i].domain)
    }


def conditional(model: Model, name: str) -> dict[tuple[Symbol, ...], dict[Symbol, Fraction]]:
    """Return P(name | parents) for every combination of the parents' values, zeros left out."""
    i = model.position[name]
    node = model.nodes[i]
    table: dict[tuple[Symbol, ...], dict[Symbol, Fraction]] = {}
    for row in product(*(model.system[parent].domain for parent in model.system[i].parents)):
        distribution: dict[Symbol, Fraction] = {}
        for noise, weight in zip(node.support, node.weights, strict=True):
            value = node.value(row, noise)
            distribution[value] = distribution.get(value, Fraction(0)) + weight
        table[row] = distribution
    return table
