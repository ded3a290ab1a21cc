"""Networks that agree with trajectories, counted gene by gene, and the share of them that give an answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache, cached_property
from itertools import pairwise, product
from math import prod

import numpy as np
import numpy.typing as npt

from calibrant.dsl.networks.network import Network
from calibrant.dsl.networks.trajectories import (
    FunctionClass,
    TrajectoryTask,
    clamped,
    path_to_attractor,
    readings,
    rotated,
    simulate,
)
from calibrant.solvers.outcome import Found, OutOfBudget

MAX_MONOTONE_CANDIDATES = 5  # 7,581 functions (R. Dedekind, 1897)
MAX_BRANCHES = 10_000  # branches of paths to an attractor

Pattern = tuple[int, ...]
Values = Mapping[Pattern, int]


@cache
def monotone_tables(num_inputs: int) -> npt.NDArray[np.uint64]:
    """Return all functions that never fall when an input rises, as tables: bit r is the value in row r."""
    if num_inputs == 0:
        return np.array([0, 1], dtype=np.uint64)
    smaller = monotone_tables(num_inputs - 1)
    low, high = np.repeat(smaller, len(smaller)), np.tile(smaller, len(smaller))
    ordered = (low & ~high) == 0
    tables: npt.NDArray[np.uint64] = low[ordered] | high[ordered] << np.uint64(1 << (num_inputs - 1))
    return tables


@dataclass(frozen=True)
class GeneFunctions:
    """Functions of one gene over its candidates.

    signs: of the candidates; values: patterns of the candidates that were seen, and the value after; None if a pattern
    has both
    """

    function_class: FunctionClass
    signs: tuple[str, ...]
    values: Values | None

    def count(self, more: Values | None = None) -> int:
        """Return the number of functions with the values that were seen, and with more values."""
        if self.values is None:
            return 0
        values = dict(self.values)
        for pattern, value in (more or {}).items():
            if values.setdefault(pattern, value) != value:
                return 0
        if self.function_class == "free":
            return 1 << ((1 << len(self.signs)) - len(values))
        ordered = [i for i, sign in enumerate(self.signs) if sign != "both"]
        others = [i for i, sign in enumerate(self.signs) if sign == "both"]
        # one monotone function for each pattern of the candidates whose sign is open
        parts: dict[Pattern, list[int]] = {}
        for pattern, value in values.items():
            row = sum((pattern[p] if self.signs[p] == "+" else 1 - pattern[p]) << i for i, p in enumerate(ordered))
            part = parts.setdefault(tuple(pattern[p] for p in others), [0, 0])
            part[value] |= 1 << row
        tables = monotone_tables(len(ordered))
        numbers = (
            int(np.sum(((tables & np.uint64(zeros)) == 0) & ((tables & np.uint64(ones)) == np.uint64(ones))))
            for zeros, ones in parts.values()
        )
        return prod(numbers) * int(len(tables) ** ((1 << len(others)) - len(parts)))


@dataclass(frozen=True)
class FittingNetworks:
    """The networks of a class that agree with every reading of a task.

    genes: the functions of each
    """

    task: TrajectoryTask
    genes: Mapping[str, GeneFunctions] = field(repr=False)

    @cached_property
    def counts(self) -> Mapping[str, int]:
        """The number of functions that fit, of each gene."""
        return {gene: functions.count() for gene, functions in self.genes.items()}

    @property
    def count(self) -> int:
        """The number of networks that fit."""
        return prod(self.counts.values())

    def share_of_path(self, states: Sequence[str]) -> Fraction:
        """Return the share of the networks under which states follow one another, with the question's clamps."""
        visited = self._visited(states)
        return prod(
            (Fraction(self.genes[gene].count(values), self.counts[gene]) for gene, values in visited.items()),
            start=Fraction(1),
        )

    def _visited(self, states: Sequence[str]) -> dict[str, dict[Pattern, int]]:
        """Return of each gene that is not held the patterns on a path, and the values after."""
        visited: dict[str, dict[Pattern, int]] = {}
        for position, gene in enumerate(self.task.genes):
            if gene not in self.task.question.clamps:
                entry = visited[gene] = {}
                for before, after in pairwise(states):
                    entry[self._pattern(gene, before)] = int(after[position])
        return visited

    def _pattern(self, gene: str, state: str) -> Pattern:
        return tuple(int(state[self.task.genes.index(name)]) for name, _ in self.task.candidates[gene])

    def share_of_attractor(self, attractor: Sequence[str]) -> Found[Fraction] | OutOfBudget:
        """Return the share of the networks that reach an attractor from the question's start."""
        question = self.task.question
        total, branches = Fraction(0), 0
        waiting: list[tuple[tuple[str, ...], Fraction]] = [
            ((clamped(question.start, self.task.genes, question.clamps),), Fraction(1))
        ]
        while waiting:
            path, share = waiting.pop()
            if path[-1] in path[:-1]:
                branches += 1
                if branches > MAX_BRANCHES:
                    return OutOfBudget(f"over {MAX_BRANCHES:,} paths of networks that fit")
                if rotated(path[path.index(path[-1]) : -1]) == tuple(attractor):
                    total += share
                continue
            if len(waiting) > MAX_BRANCHES:
                return OutOfBudget(f"over {MAX_BRANCHES:,} paths of networks that fit")
            waiting += [((*path, state), share * part) for state, part in self._successors(path)]
        return Found(total)

    def _successors(self, path: Sequence[str]) -> Iterator[tuple[str, Fraction]]:
        """Yield the states that may follow a path, with the share of the networks of the path that go there."""
        visited = self._visited(path)
        options: list[list[tuple[str, Fraction]]] = []
        for gene in self.task.genes:
            if gene in self.task.question.clamps:
                options.append([(str(self.task.question.clamps[gene]), Fraction(1))])
                continue
            before = visited[gene]
            pattern, whole = self._pattern(gene, path[-1]), self.genes[gene].count(before)
            parts = (
                [(value, self.genes[gene].count({**before, pattern: value})) for value in (0, 1)]
                if pattern not in before
                else [(before[pattern], whole)]
            )
            options.append([(str(value), Fraction(number, whole)) for value, number in parts if number])
        if prod(map(len, options)) > MAX_BRANCHES:
            raise _BranchLimitError
        for choice in product(*options):
            yield "".join(value for value, _ in choice), prod((part for _, part in choice), start=Fraction(1))


class _BranchLimitError(Exception):
    """A state has too many successors."""


def fit_networks(
    task: TrajectoryTask, function_class: FunctionClass = "signed"
) -> Found[FittingNetworks] | OutOfBudget:
    """Return the networks that agree with every reading; `OutOfBudget` beyond 5 candidates of a sign of one gene."""
    genes = {}
    for gene in task.genes:
        signs = tuple(sign for _, sign in task.candidates[gene])
        if function_class == "signed" and sum(sign != "both" for sign in signs) > MAX_MONOTONE_CANDIDATES:
            return OutOfBudget(f"gene {gene} has over {MAX_MONOTONE_CANDIDATES} candidates with a sign")
        values: dict[Pattern, int] | None = {}
        for pattern, value in readings(task, gene):
            if values is not None and values.setdefault(pattern, value) != value:
                values = None
        genes[gene] = GeneFunctions(function_class, signs, values)
    return Found(FittingNetworks(task, genes))


@dataclass(frozen=True)
class TrueAnswer:
    """The answer of the network behind a task, and the share of fitting networks that give it.

    states: from the start on; attractor: the one that the start reaches, after so many transient steps
    agree: None where the paths are too many to list
    """

    states: tuple[str, ...]
    attractor: tuple[str, ...]
    transient: int
    agree: Fraction | None

    @property
    def is_decided(self) -> bool:
        """Whether all networks that fit give the answer."""
        return self.agree == 1


def answer_of(network: Network, fitting: FittingNetworks) -> TrueAnswer:
    """Return the network's answer to the question of a task, with the share of fitting networks that give it."""
    question = fitting.task.question
    transient, attractor = path_to_attractor(network, question.start, question.clamps)
    steps = question.steps if question.steps is not None else transient + len(attractor)
    states = simulate(network, question.start, question.clamps, steps)
    agree: Fraction | None
    if question.steps is None:
        try:
            share = fitting.share_of_attractor(attractor)
            agree = share.value if isinstance(share, Found) else None
        except _BranchLimitError:
            agree = None
    else:
        agree = fitting.share_of_path(states)
    return TrueAnswer(states, attractor, transient, agree)
