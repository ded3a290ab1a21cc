"""Networks that agree with trajectories, counted gene by gene, and the share of them that give an answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache, cached_property
from heapq import heappop, heappush
from itertools import pairwise, product
from math import prod
from random import Random

import numpy as np
import numpy.typing as npt

from calibrant.dsl.networks import network as networks_network
from calibrant.dsl.networks.formulas import from_table
from calibrant.dsl.networks.text_formats import bnet_text
from calibrant.solvers.outcome import Found, OutOfBudget
from calibrant.solvers.space import space_repr

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

    function_class: networks_network.FunctionClass
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

    def least_table(self) -> str:
        """Return the function that is 1 only where a reading makes it so; ValueError if no function fits.

        Every function that fits is 1 there too, so this one fits if any does.
        """
        if self.values is None:
            raise ValueError("a pattern with both values after it")
        ones = [pattern for pattern, value in self.values.items() if value]
        rows = (tuple(row >> i & 1 for i in range(len(self.signs))) for row in range(1 << len(self.signs)))
        return "".join("1" if any(self._implies(pattern, row) for pattern in ones) else "0" for row in rows)

    def greatest_table(self) -> str:
        """Return the function that is 0 only where a reading makes it so; ValueError if no function fits."""
        if self.values is None:
            raise ValueError("a pattern with both values after it")
        zeros = [pattern for pattern, value in self.values.items() if not value]
        rows = (tuple(row >> i & 1 for i in range(len(self.signs))) for row in range(1 << len(self.signs)))
        return "".join("0" if any(self._implies(row, pattern) for pattern in zeros) else "1" for row in rows)

    def _implies(self, pattern: Pattern, row: Pattern) -> bool:
        """Return whether a 1 at a pattern makes a function of the class 1 in a row."""
        if self.function_class == "free":
            return pattern == row
        steps = zip(self.signs, pattern, row, strict=True)
        return all(a == b or (sign == "+" and a < b) or (sign == "-" and a > b) for sign, a, b in steps)

    def draw_table(self, random: Random) -> str:
        """Return a function of the class, drawn uniformly whatever the readings."""
        num_signs = len(self.signs)
        if self.function_class == "free":
            return format(random.getrandbits(1 << num_signs), f"0{1 << num_signs}b")
        ordered = [i for i, sign in enumerate(self.signs) if sign != "both"]
        others = [i for i, sign in enumerate(self.signs) if sign == "both"]
        tables = monotone_tables(len(ordered)).tolist()
        parts = {pattern: random.choice(tables) for pattern in product((0, 1), repeat=len(others))}
        table = []
        for row in range(1 << num_signs):
            part = parts[tuple(row >> p & 1 for p in others)]
            place = sum((row >> p & 1 ^ (self.signs[p] == "-")) << i for i, p in enumerate(ordered))
            table.append(str(part >> place & 1))
        return "".join(table)


@dataclass(frozen=True)
class FittingNetworks:
    """The networks of a class that agree with every reading of a task.

    genes: the functions of each; max_branches: paths that are listed at most
    """

    task: networks_network.TrajectoryTask
    genes: Mapping[str, GeneFunctions] = field(repr=False)
    max_branches: int = MAX_BRANCHES
    _numbers: dict[tuple[str, tuple[tuple[Pattern, int], ...]], int] = field(default_factory=dict, repr=False)

    @cached_property
    def counts(self) -> Mapping[str, int]:
        """The number of functions that fit, of each gene."""
        return {gene: functions.count() for gene, functions in self.genes.items()}

    @property
    def count(self) -> int:
        """The number of networks that fit."""
        return prod(self.counts.values())

    @property
    def in_words(self) -> str:
        return self.task.in_words

    def __repr__(self) -> str:
        return space_repr(self)

    def share_of_path(self, states: Sequence[str]) -> Fraction:
        """Return the share of the networks under which states follow one another, with the question's clamps."""
        visited = self._visited(states)
        return prod(
            (Fraction(self._count(gene, values), self.counts[gene]) for gene, values in visited.items()),
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

    @cached_property
    def _places(self) -> Mapping[str, tuple[int, ...]]:
        """The positions of the candidates of each gene in states."""
        places = {gene: index for index, gene in enumerate(self.task.genes)}
        return {gene: tuple(places[name] for name, _ in self.task.candidates[gene]) for gene in self.task.genes}

    def _pattern(self, gene: str, state: str) -> Pattern:
        return tuple(int(state[place]) for place in self._places[gene])

    def _count(self, gene: str, values: Values) -> int:
        """Return the number of functions of a gene that fit and have these values; each is counted once."""
        key = gene, tuple(sorted(values.items()))
        if key not in self._numbers:
            self._numbers[key] = self.genes[gene].count(values)
        return self._numbers[key]

    @property
    def _first_path(self) -> tuple[str, ...]:
        question = self.task.question
        return (networks_network.clamp_state(question.start, self.task.genes, question.clamps),)

    def share_of_attractor(self, attractor: Sequence[str]) -> Found[Fraction] | OutOfBudget:
        """Return the share of the networks that reach an attractor from the question's start."""
        shares = self.shares_of_attractors()
        return Found(shares.value.get(tuple(attractor), Fraction(0))) if isinstance(shares, Found) else shares

    def shares_of_attractors(self) -> Found[Mapping[tuple[str, ...], Fraction]] | OutOfBudget:
        """Return the attractors that some networks reach from the question's start, and the share of each."""
        shares: dict[tuple[str, ...], Fraction] = {}
        waiting, num_paths = [(self._first_path, Fraction(1))], 0
        try:
            while waiting:
                path, share = waiting.pop()
                if path[-1] not in path[:-1]:
                    waiting += [((*path, state), share * part) for state, part in self._successors(path)]
                    if len(waiting) > self.max_branches:
                        raise _BranchLimitError
                    continue
                num_paths += 1
                if num_paths > self.max_branches:
                    raise _BranchLimitError
                attractor = networks_network.rotate_cycle(path[path.index(path[-1]) : -1])
                shares[attractor] = shares.get(attractor, Fraction(0)) + share
        except _BranchLimitError:
            return OutOfBudget(f"over {self.max_branches:,} paths of networks that fit")
        return Found(shares)

    def likeliest_path(self, steps: int) -> Found[tuple[tuple[str, ...], Fraction]] | OutOfBudget:
        """Return the states of so many steps that most of the networks give, first in text order of equals."""
        waiting, num_paths = [(Fraction(-1), self._first_path)], 0
        while True:  # the path of the greatest share first: a longer one has no greater share
            share, path = heappop(waiting)
            if len(path) == steps + 1:
                return Found((path, -share))
            num_paths += 1
            try:
                following = [(share * part, (*path, state)) for state, part in self._successors(path)]
            except _BranchLimitError:
                following = []
            if not following or num_paths > self.max_branches or len(waiting) + len(following) > 10 * self.max_branches:
                return OutOfBudget(f"over {self.max_branches:,} paths of networks that fit")
            for entry in following:
                heappush(waiting, entry)

    def likeliest_answer(self) -> Found[tuple[tuple[str, ...], Fraction]] | OutOfBudget:
        """Return the answer that most networks give, and their share; see dsl.networks.network.answer_question."""
        steps = self.task.question.steps
        if steps is not None:
            path = self.likeliest_path(steps)
            return Found((path.value[0][1:], path.value[1])) if isinstance(path, Found) else path
        shares = self.shares_of_attractors()
        if not isinstance(shares, Found):
            return shares
        return Found(min(shares.value.items(), key=lambda entry: (-entry[1], entry[0])))

    def share_of_answer(self, answer: Sequence[str]) -> Found[Fraction] | OutOfBudget:
        """Return the share of the networks that give an answer."""
        if self.task.question.steps is None:
            return self.share_of_attractor(answer)
        return Found(self.share_of_path((*self._first_path, *answer)))

    def majority_answer(self) -> tuple[str, ...]:
        """Return the answer under the value that most functions of each gene give at each pattern, 0 of equals."""
        path, steps = list(self._first_path), self.task.question.steps
        while (path[-1] not in path[:-1]) if steps is None else len(path) <= steps:
            path.append("".join(self._majority(gene, path[-1]) for gene in self.task.genes))
        return networks_network.rotate_cycle(path[path.index(path[-1]) : -1]) if steps is None else tuple(path[1:])

    def _majority(self, gene: str, state: str) -> str:
        clamps = self.task.question.clamps
        if gene in clamps:
            return str(clamps[gene])
        return str(int(2 * self._count(gene, {self._pattern(gene, state): 1}) > self.counts[gene]))

    def num_undecided(self, answer: Sequence[str]) -> dict[str, int]:
        """Return of each gene how many patterns on the path to an answer the networks that fit disagree about."""
        undecided = dict.fromkeys(self.task.genes, 0)
        for gene, values in self._visited((*self._first_path, *answer)).items():
            undecided[gene] = sum(0 < self._count(gene, {p: v}) < self.counts[gene] for p, v in values.items())
        return undecided

    def witness(self) -> str:
        """Return one of the networks as bnet; ValueError if there is none. See `GeneFunctions.least_table`."""
        return self._as_bnet({gene: functions.least_table() for gene, functions in self.genes.items()})

    def extreme_networks(self) -> Iterator[str]:
        """Yield the networks that fit with the least, and with the greatest function of every gene."""
        yield self.witness()
        yield self._as_bnet({gene: functions.greatest_table() for gene, functions in self.genes.items()})

    def draw(self, random: Random) -> str:
        """Return a network of the class as bnet, drawn uniformly whatever the readings."""
        return self._as_bnet({gene: functions.draw_table(random) for gene, functions in self.genes.items()})

    def _as_bnet(self, tables: Mapping[str, str]) -> str:
        names = {gene: [name for name, _ in self.task.candidates[gene]] for gene in tables}
        functions = {}
        for gene, table in tables.items():
            order = sorted(range(len(names[gene])), key=names[gene].__getitem__)
            rows = (sum((row >> i & 1) << place for i, place in enumerate(order)) for row in range(len(table)))
            functions[gene] = from_table(sorted(names[gene]), "".join(table[row] for row in rows))
        return bnet_text(functions)

    def num_unseen(self, path: Sequence[str]) -> int:
        """Return how many patterns on a path no reading has, over genes that are not held."""
        visited = self._visited(path)
        return sum(len(visited[gene].keys() - (self.genes[gene].values or {}).keys()) for gene in visited)

    def _successors(self, path: Sequence[str]) -> Iterator[tuple[str, Fraction]]:
        """Yield the states that may follow a path, with the share of the networks of the path that go there."""
        visited = self._visited(path)
        options: list[list[tuple[str, Fraction]]] = []
        for gene in self.task.genes:
            if gene in self.task.question.clamps:
                options.append([(str(self.task.question.clamps[gene]), Fraction(1))])
                continue
            before = visited[gene]
            pattern, whole = self._pattern(gene, path[-1]), self._count(gene, before)
            parts = (
                [(value, self._count(gene, {**before, pattern: value})) for value in (0, 1)]
                if pattern not in before
                else [(before[pattern], whole)]
            )
            options.append([(str(value), Fraction(number, whole)) for value, number in parts if number])
        if prod(map(len, options)) > self.max_branches:
            raise _BranchLimitError
        for choice in product(*options):
            yield "".join(value for value, _ in choice), prod((part for _, part in choice), start=Fraction(1))


class _BranchLimitError(Exception):
    """A state has too many successors."""


def fit_networks(task: networks_network.TrajectoryTask) -> Found[FittingNetworks] | OutOfBudget:
    """Return the networks that agree with every reading; `OutOfBudget` beyond 5 candidates of a sign of one gene."""
    genes, function_class = {}, task.function_class
    for gene in task.genes:
        signs = tuple(sign for _, sign in task.candidates[gene])
        if function_class == "signed" and sum(sign != "both" for sign in signs) > MAX_MONOTONE_CANDIDATES:
            return OutOfBudget(f"gene {gene} has over {MAX_MONOTONE_CANDIDATES} candidates with a sign")
        values: dict[Pattern, int] | None = {}
        for pattern, value in networks_network.readings(task, gene):
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


def answer_of(network: networks_network.Network, fitting: FittingNetworks) -> TrueAnswer:
    """Return the network's answer to the question of a task, with the share of fitting networks that give it."""
    question = fitting.task.question
    genes = fitting.task.genes
    transient, attractor = networks_network.path_to_attractor(network, genes, question.start, question.clamps)
    steps = question.steps if question.steps is not None else transient + len(attractor)
    states = networks_network.simulate(network, genes, question.start, question.clamps, steps)
    share = fitting.share_of_answer(attractor if question.steps is None else states[1:])
    return TrueAnswer(states, attractor, transient, share.value if isinstance(share, Found) else None)
