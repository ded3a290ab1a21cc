"""Question compiled to positions in domains: factual and target system, allowed noise, evidence.

Fit is local: with full evidence a world fits iff each noise value gives its node's value from the observed parents, so
the fitting worlds are a product of one set per node. So they are without evidence, and with one unknown noise variable.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from math import lcm, prod

import numpy as np

from calibrant.dsl.causim.model import Model, Symbol, System
from calibrant.dsl.causim.question import Question
from calibrant.solvers.budget import Budget
from calibrant.solvers.causim.elimination import Factor, equation_factor, restrict, sum_of_products

Sets = tuple[tuple[int, ...], ...]  # per node the positions of noise values


class Compiled:
    """A question with its tables.

    base, target: the equations without and with `do`
    allowed: per node the noise that agrees with the fixed values
    evidence: position in its domain of each observed node; None if an observed value is in no domain
    work: budget of all eliminations together, in units of `elimination.sum_of_products`
    product: per node the noise of the fitting worlds where these form a product, else None; all empty if none fits
    """

    def __init__(self, model: Model, question: Question, work: Budget | None = None) -> None:
        self.work = work
        self.model = model
        self.question = question
        self.base: System = model.system
        self.target: System = model.under(question.do)
        self.allowed: Sets = tuple(
            tuple(range(len(node.support)))
            if node.noise not in question.fixed
            else tuple(k for k, value in enumerate(node.support) if value == question.fixed[node.noise])
            for node in model.nodes
        )
        self.evidence = self._evidence()
        self.product = self._product()

    def _evidence(self) -> dict[int, int] | None:
        positions = {}
        for name, value in self.question.observed.items():
            i = self.model.position[name]
            position = self.base[i].index.get(value)
            if position is None:
                return None
            positions[i] = position
        return positions

    def _product(self) -> Sets | None:
        empty: Sets = tuple(() for _ in self.allowed)
        if self.evidence is None or not all(self.allowed):
            return empty
        if not self.evidence:
            return self.allowed
        if len(self.evidence) == len(self.base):
            sets = tuple(self.noise_giving(self.base, i, self.evidence, self.allowed[i]) for i in range(len(self.base)))
            return sets if all(sets) else empty
        free = [i for i, domain in enumerate(self.allowed) if len(domain) > 1]
        # two open noise variables may compensate each other: what one may be then depends on the other
        if len(free) > 1:
            return None
        i = free[0] if free else 0
        first = [domain[0] for domain in self.allowed]
        # one open noise variable: each of its values is run, O(values * nodes)
        fitting = tuple(k for k in self.allowed[i] if self._agrees([*first[:i], k, *first[i + 1 :]]))
        return (*self.allowed[:i], fitting, *self.allowed[i + 1 :]) if fitting else empty

    @staticmethod
    def noise_giving(system: System, i: int, at: Mapping[int, int], noise: Sequence[int]) -> tuple[int, ...]:
        """Return the noise that gives node i its value from its parents' values, all by position."""
        row = system[i].table[tuple(at[parent] for parent in system[i].parents)]
        return tuple(k for k in noise if row[k] == at[i])

    def _agrees(self, world: Sequence[int]) -> bool:
        values = self.values(self.base, world)
        return all(values[i] == position for i, position in (self.evidence or {}).items())

    def values(self, system: System, world: Sequence[int]) -> list[int]:
        """Return the positions of all nodes in a world."""
        positions: list[int] = []
        for i, local in enumerate(system):
            positions.append(int(local.table[(*(positions[parent] for parent in local.parents), world[i])]))
        return positions

    # --- sums --------------------------------------------------------------------------------------------------------

    def count(self, sets: Sequence[Sequence[int]], evidence: Mapping[int, int]) -> int:
        """Count the worlds of the sets in which the base system agrees with the evidence."""
        factors = [
            restrict(equation_factor(local, i, [1] * len(sets[i]), sets[i]), evidence)
            for i, local in enumerate(self.base)
        ]
        return sum_of_products(factors, prod(map(len, sets)), self.work)

    def weight(self, sets: Sequence[Sequence[int]], evidence: Mapping[int, int]) -> int:
        """Return the probability of those worlds times the product of `denominators`, an integer."""
        factors = [
            restrict(equation_factor(local, i, [self.weights[i][k] for k in sets[i]], sets[i]), evidence)
            for i, local in enumerate(self.base)
        ]
        return sum_of_products(factors, prod(self.denominators), self.work)

    @cached_property
    def denominators(self) -> tuple[int, ...]:
        """Least common denominator of the noise weights, per node."""
        return tuple(lcm(*(weight.denominator for weight in node.weights)) for node in self.model.nodes)

    @cached_property
    def weights(self) -> tuple[tuple[int, ...], ...]:
        """Noise weights as whole numbers, over `denominators`."""
        return tuple(
            tuple(int(weight * common) for weight in node.weights)
            for node, common in zip(self.model.nodes, self.denominators, strict=True)
        )

    def count_outputs(self, sets: Sets) -> int:
        """Count the different outputs of the target system over the worlds of a product."""
        if not all(sets):
            return 0
        # existence instead of numbers of noise values: each output of the product counts once
        factors = []
        for i, local in enumerate(self.target):
            factor = equation_factor(local, i, [1] * len(sets[i]), sets[i])
            factors.append(Factor(factor.scope, (factor.values > 0).astype(np.int64)))
        return sum_of_products(factors, prod(map(len, sets)), self.work)

    def restrict_to_output(
        self, sets: Sequence[Sequence[int]], output: Mapping[int, int]
    ) -> tuple[tuple[int, ...], ...]:
        """Return, per node, the noise that gives its output from the outputs of its parents under `do`.

        `output` is closed under parents; nodes that are not in it keep their noise.
        """
        return tuple(
            self.noise_giving(self.target, i, output, domain) if i in output else tuple(domain)
            for i, domain in enumerate(sets)
        )

    def count_unchanged(self) -> int:
        """Count the fitting worlds in which nothing outside `do` changes."""
        if self.evidence is None or not all(self.allowed):
            return 0
        factors = []
        for i, local in enumerate(self.base):
            allowed = self.allowed[i]
            if self.model.nodes[i].name in self.question.do:
                factors.append(equation_factor(local, i, [1] * len(allowed), allowed))
                continue
            agrees = self._same_in_target(i)
            values = np.zeros((*local.table.shape[:-1], len(local.domain)), dtype=np.int64)
            domain = np.arange(len(local.domain))
            for k in allowed:
                # a noise value counts only where the node has the same value with and without `do`
                values += (local.table[..., k, None] == domain) & agrees[..., k, None]
            factors.append(Factor((*local.parents, i), values))
        return sum_of_products(
            [restrict(factor, self.evidence) for factor in factors], prod(map(len, self.allowed)), self.work
        )

    def _same_in_target(self, i: int) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
        """Return for each row of node i's base table whether its target table gives the same for unchanged parents."""
        base, target = self.base[i], self.target[i]
        if target is base:
            return np.ones(base.table.shape, dtype=np.bool_)
        grid, in_domain = [], np.ones(base.table.shape[:-1], dtype=np.bool_)
        for axis, parent in enumerate(base.parents):
            local = self.target[parent]
            if self.model.nodes[parent].name in self.question.do:
                positions = np.zeros(len(self.base[parent].domain), dtype=np.int64)
            else:
                positions = np.array([local.index.get(value, -1) for value in self.base[parent].domain])
            shape = [1] * len(base.parents)
            shape[axis] = len(positions)
            grid.append(positions.reshape(shape))
            in_domain &= positions.reshape(shape) >= 0
        target_positions = target.table[tuple(np.maximum(axis, 0) for axis in grid)]
        target_positions = np.broadcast_to(target_positions, base.table.shape)
        translate = np.array([base.index.get(value, -1) for value in target.domain])
        result: np.ndarray[tuple[int, ...], np.dtype[np.bool_]] = (
            translate[target_positions] == base.table
        ) & in_domain[..., None]
        return result

    def symbols(self, system: System, positions: Sequence[int]) -> Iterator[tuple[str, Symbol]]:
        """Yield names and values of all nodes at these positions."""
        return (
            (node.name, local.domain[k]) for node, local, k in zip(self.model.nodes, system, positions, strict=True)
        )
