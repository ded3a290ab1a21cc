"""A question by positions: the two systems, the noise that is allowed, the evidence.

Fit is local: with full evidence a world fits iff each noise value gives its node's value from the seen parents, so the
fitting worlds are a product of one set per node. So they are without evidence, and with one unknown noise variable.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from math import lcm, prod

import numpy as np

from calibrant.dsl.causim.model import Model, System
from calibrant.dsl.causim.question import Question
from calibrant.dsl.causim.values import Symbol
from calibrant.solvers.budget import Budget
from calibrant.solvers.causim.elimination import Factor, equation_factor, restricted, total

Sets = tuple[tuple[int, ...], ...]  # per node the positions of noise values


class Compiled:
    """base, target: the equations as they are, and under `do`
    allowed: per node the noise that agrees with what is fixed
    evidence: position in its domain of each observed node; None if an observed value is in no domain
    work: what eliminations may cost together, in units of `elimination.total`
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
        found = {}
        for name, value in self.question.observed.items():
            i = self.model.position[name]
            position = self.base[i].index.get(value)
            if position is None:
                return None
            found[i] = position
        return found

    def _product(self) -> Sets | None:
        none: Sets = tuple(() for _ in self.allowed)
        if self.evidence is None or not all(self.allowed):
            return none
        if not self.evidence:
            return self.allowed
        if len(self.evidence) == len(self.base):
            sets = tuple(self.giving(self.base, i, self.evidence, self.allowed[i]) for i in range(len(self.base)))
            return sets if all(sets) else none
        free = [i for i, domain in enumerate(self.allowed) if len(domain) > 1]
        if len(free) > 1:
            return None
        i = free[0] if free else 0
        first = [domain[0] for domain in self.allowed]
        fitting = tuple(k for k in self.allowed[i] if self._agrees([*first[:i], k, *first[i + 1 :]]))
        return (*self.allowed[:i], fitting, *self.allowed[i + 1 :]) if fitting else none

    @staticmethod
    def giving(system: System, i: int, at: Mapping[int, int], noise: Sequence[int]) -> tuple[int, ...]:
        """The noise that gives node i its value from its parents' values, all by position."""
        row = system[i].table[tuple(at[parent] for parent in system[i].parents)]
        return tuple(k for k in noise if row[k] == at[i])

    def _agrees(self, world: Sequence[int]) -> bool:
        values = self.values(self.base, world)
        return all(values[i] == position for i, position in (self.evidence or {}).items())

    def values(self, system: System, world: Sequence[int]) -> list[int]:
        """The positions of all nodes in a world."""
        found: list[int] = []
        for i, local in enumerate(system):
            found.append(int(local.table[(*(found[parent] for parent in local.parents), world[i])]))
        return found

    # --- sums --------------------------------------------------------------------------------------------------------

    def count(self, sets: Sequence[Sequence[int]], evidence: Mapping[int, int]) -> int:
        """Worlds of the sets in which the base system agrees with the evidence."""
        factors = [
            restricted(equation_factor(local, i, [1] * len(sets[i]), sets[i]), evidence)
            for i, local in enumerate(self.base)
        ]
        return total(factors, prod(map(len, sets)), self.work)

    def weight(self, sets: Sequence[Sequence[int]], evidence: Mapping[int, int]) -> int:
        """The probability of those worlds times the product of `denominators`."""
        factors = [
            restricted(equation_factor(local, i, [self.weights[i][k] for k in sets[i]], sets[i]), evidence)
            for i, local in enumerate(self.base)
        ]
        return total(factors, prod(self.denominators), self.work)

    @cached_property
    def denominators(self) -> tuple[int, ...]:
        """Per node the least common denominator of its noise weights."""
        return tuple(lcm(*(weight.denominator for weight in node.weights)) for node in self.model.nodes)

    @cached_property
    def weights(self) -> tuple[tuple[int, ...], ...]:
        """Noise weights as whole numbers, over `denominators`."""
        return tuple(
            tuple(int(weight * common) for weight in node.weights)
            for node, common in zip(self.model.nodes, self.denominators, strict=True)
        )

    def distinct(self, sets: Sets) -> int:
        """Return how many different outputs the target system has over the worlds of a product."""
        if not all(sets):
            return 0
        factors = []
        for i, local in enumerate(self.target):
            factor = equation_factor(local, i, [1] * len(sets[i]), sets[i])
            factors.append(Factor(factor.scope, (factor.values > 0).astype(np.int64)))
        return total(factors, prod(map(len, sets)), self.work)

    def matching(self, sets: Sequence[Sequence[int]], output: Mapping[int, int]) -> tuple[tuple[int, ...], ...]:
        """Per node the noise that, under `do`, gives its output from the outputs of its parents.

        `output` is closed under parents; nodes that are not in it keep their noise.
        """
        return tuple(
            self.giving(self.target, i, output, domain) if i in output else tuple(domain)
            for i, domain in enumerate(sets)
        )

    def unchanged(self) -> int:
        """Fitting worlds in which nothing outside `do` changes."""
        if self.evidence is None or not all(self.allowed):
            return 0
        factors = []
        for i, local in enumerate(self.base):
            own = self.allowed[i]
            if self.model.nodes[i].name in self.question.do:
                factors.append(equation_factor(local, i, [1] * len(own), own))
                continue
            same = self._same_in_target(i)
            values = np.zeros((*local.table.shape[:-1], len(local.domain)), dtype=np.int64)
            domain = np.arange(len(local.domain))
            for k in own:
                values += (local.table[..., k, None] == domain) & same[..., k, None]
            factors.append(Factor((*local.parents, i), values))
        return total([restricted(factor, self.evidence) for factor in factors], prod(map(len, self.allowed)), self.work)

    def _same_in_target(self, i: int) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
        """For each row of node i's base table whether its target table gives the same where parents keep theirs."""
        base, target = self.base[i], self.target[i]
        if target is base:
            return np.ones(base.table.shape, dtype=np.bool_)
        grid, known = [], np.ones(base.table.shape[:-1], dtype=np.bool_)
        for axis, parent in enumerate(base.parents):
            local = self.target[parent]
            if self.model.nodes[parent].name in self.question.do:
                positions = np.zeros(len(self.base[parent].domain), dtype=np.int64)
            else:
                positions = np.array([local.index.get(value, -1) for value in self.base[parent].domain])
            shape = [1] * len(base.parents)
            shape[axis] = len(positions)
            grid.append(positions.reshape(shape))
            known &= positions.reshape(shape) >= 0
        moved = target.table[tuple(np.maximum(axis, 0) for axis in grid)]
        moved = np.broadcast_to(moved, base.table.shape)
        translate = np.array([base.index.get(value, -1) for value in target.domain])
        result: np.ndarray[tuple[int, ...], np.dtype[np.bool_]] = (translate[moved] == base.table) & known[..., None]
        return result

    def symbols(self, system: System, positions: Sequence[int]) -> Iterator[tuple[str, Symbol]]:
        """Names and values of all nodes at these positions."""
        return (
            (node.name, local.domain[k]) for node, local, k in zip(self.model.nodes, system, positions, strict=True)
        )
