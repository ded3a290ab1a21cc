"""Networks that agree with trajectories, counted gene by gene, and the share of them that gives an answer."""

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

MAX_MONOTONE_CANDIDATES = 5  # candidates with a sign; 7,581 monotone functions of 5 inputs (R. Dedekind, 1897)
MAX_BRANCHES = 10_000  # paths that are followed at a time, and that are listed

Pattern = tuple[int, ...]
"""Values of the candidates of a gene, in their order."""
Values = Mapping[Pattern, int]
"""Pattern before a step -> value of the gene after it."""


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
    """The functions of one gene, of its candidates, that agree with what was read.

    signs: one for each candidate: +, - or both
    values: the gene's value after each pattern that was read; None if both values follow a pattern, so no function fits
    """

    function_class: networks_network.FunctionClass
    signs: tuple[str, ...]
    values: Values | None

    def count(self, more: Values | None = None) -> int:
        """Return the number of functions that have the values that were read, and the values `more`."""
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
        # a function consists of one monotone function for each pattern of the candidates with the sign "both"
        masks: dict[Pattern, list[int]] = {}  # rows of its monotone function that must be 0, and that must be 1
        for pattern, value in values.items():
            row = sum((pattern[p] if self.signs[p] == "+" else 1 - pattern[p]) << i for i, p in enumerate(ordered))
            masks.setdefault(tuple(pattern[p] for p in others), [0, 0])[value] |= 1 << row
        tables = monotone_tables(len(ordered))
        counts = (
            int(np.sum(((tables & np.uint64(zeros)) == 0) & ((tables & np.uint64(ones)) == np.uint64(ones))))
            for zeros, ones in masks.values()
        )
        return prod(counts) * int(len(tables) ** ((1 << len(others)) - len(masks)))

    def least_table(self) -> str:
        """Return the table of the function that is 1 only where the values read imply it.

        Every function that fits is 1 there too, so this one fits if any does. Raise `ValueError` if both values follow
        a pattern.
        """
        if self.values is None:
            raise ValueError("a pattern with both values after it")
        ones = [pattern for pattern, value in self.values.items() if value]
        rows = (tuple(row >> i & 1 for i in range(len(self.signs))) for row in range(1 << len(self.signs)))
        return "".join("1" if any(self._implies(pattern, row) for pattern in ones) else "0" for row in rows)

    def greatest_table(self) -> str:
        """Return the table of the function that is 0 only where the values read imply it, see `least_table`."""
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
        """Return the table of a function of the class, drawn uniformly without regard to what was read."""
        num_signs = len(self.signs)
        if self.function_class == "free":
            return format(random.getrandbits(1 << num_signs), f"0{1 << num_signs}b")
        ordered = [i for i, sign in enumerate(self.signs) if sign != "both"]
        others = [i for i, sign in enumerate(self.signs) if sign == "both"]
        tables = monotone_tables(len(ordered)).tolist()
        tables_by_pattern = {pattern: random.choice(tables) for pattern in product((0, 1), repeat=len(others))}
        table = []
        for row in range(1 << num_signs):
            monotone = tables_by_pattern[tuple(row >> p & 1 for p in others)]
            monotone_row = sum((row >> p & 1 ^ (self.signs[p] == "-")) << i for i, p in enumerate(ordered))
            table.append(str(monotone >> monotone_row & 1))
        return "".join(table)


@dataclass(frozen=True)
class FittingNetworks:
    """The networks of a class that agree with every reading of a task.

    genes: gene -> its functions that fit
    max_branches: largest number of paths that are listed, and of those that are followed at a time
    """

    task: networks_network.TrajectoryTask
    genes: Mapping[str, GeneFunctions] = field(repr=False)
    max_branches: int = MAX_BRANCHES
    _counts: dict[tuple[str, tuple[tuple[Pattern, int], ...]], int] = field(default_factory=dict, repr=False)

    @cached_property
    def counts(self) -> Mapping[str, int]:
        """Gene -> the number of its functions that fit."""
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
        """Return the share of networks under which each state follows the one before, given the question's clamps."""
        visited = self._visited(states)
        return prod(
            (Fraction(self._count(gene, values), self.counts[gene]) for gene, values in visited.items()),
            start=Fraction(1),
        )

    def _visited(self, states: Sequence[str]) -> dict[str, dict[Pattern, int]]:
        """Return, for each gene that is not clamped, its value after each pattern on a path."""
        visited: dict[str, dict[Pattern, int]] = {}
        for position, gene in enumerate(self.task.genes):
            if gene not in self.task.question.clamps:
                values = visited[gene] = {}
                for before, after in pairwise(states):
                    values[self._pattern(gene, before)] = int(after[position])
        return visited

    @cached_property
    def _candidate_positions(self) -> Mapping[str, tuple[int, ...]]:
        """Gene -> the positions of its candidates in a state."""
        positions = {gene: index for index, gene in enumerate(self.task.genes)}
        return {gene: tuple(positions[name] for name, _ in self.task.candidates[gene]) for gene in self.task.genes}

    def _pattern(self, gene: str, state: str) -> Pattern:
        return tuple(int(state[position]) for position in self._candidate_positions[gene])

    def _count(self, gene: str, values: Values) -> int:
        """Return the number of functions of a gene that fit and have these values; the number is cached."""
        key = gene, tuple(sorted(values.items()))
        if key not in self._counts:
            self._counts[key] = self.genes[gene].count(values)
        return self._counts[key]

    @property
    def _first_path(self) -> tuple[str, ...]:
        """The path that has only the start of the question, with its clamps."""
        question = self.task.question
        return (networks_network.clamp_state(question.start, self.task.genes, question.clamps),)

    def share_of_attractor(self, attractor: Sequence[str]) -> Found[Fraction] | OutOfBudget:
        """Return the share of the networks that reach an attractor from the question's start.

        attractor: its states in order, from the one that `rotate_cycle` puts first
        """
        shares = self.shares_of_attractors()
        return Found(shares.value.get(tuple(attractor), Fraction(0))) if isinstance(shares, Found) else shares

    def shares_of_attractors(self) -> Found[Mapping[tuple[str, ...], Fraction]] | OutOfBudget:
        """Return attractor -> share of the networks that reach it from the question's start.

        `OutOfBudget` if more than `max_branches` paths lead to attractors
        """
        shares: dict[tuple[str, ...], Fraction] = {}
        waiting, num_paths = [(self._first_path, Fraction(1))], 0
        try:
            while waiting:
                path, share = waiting.pop()
                if path[-1] not in path[:-1]:
                    waiting += [((*path, state), share * fraction) for state, fraction in self._successors(path)]
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
        """Return the start and the `steps` states after it under the largest share of the networks, and that share.

        Of paths with equal shares, the first in text order; `OutOfBudget` if too many paths must be followed
        """
        waiting, num_paths = [(Fraction(-1), self._first_path)], 0
        while True:  # the path of the greatest share is extended first: no extension has a greater share than its path
            share, path = heappop(waiting)
            if len(path) == steps + 1:
                return Found((path, -share))
            num_paths += 1
            try:
                longer = [(share * fraction, (*path, state)) for state, fraction in self._successors(path)]
            except _BranchLimitError:
                longer = []
            if not longer or num_paths > self.max_branches or len(waiting) + len(longer) > 10 * self.max_branches:
                return OutOfBudget(f"over {self.max_branches:,} paths of networks that fit")
            for entry in longer:
                heappush(waiting, entry)

    def likeliest_answer(self) -> Found[tuple[tuple[str, ...], Fraction]] | OutOfBudget:
        """Return the answer that the largest share of the networks gives, and that share.

        For the form of answers see dsl.networks.network.answer_question.
        """
        steps = self.task.question.steps
        if steps is not None:
            path = self.likeliest_path(steps)
            return Found((path.value[0][1:], path.value[1])) if isinstance(path, Found) else path
        shares = self.shares_of_attractors()
        if not isinstance(shares, Found):
            return shares
        return Found(min(shares.value.items(), key=lambda entry: (-entry[1], entry[0])))

    def share_of_answer(self, answer: Sequence[str]) -> Found[Fraction] | OutOfBudget:
        """Return the share of the networks that gives an answer."""
        if self.task.question.steps is None:
            return self.share_of_attractor(answer)
        return Found(self.share_of_path((*self._first_path, *answer)))

    def majority_answer(self) -> tuple[str, ...]:
        """Return the answer of the network whose genes follow, at each pattern, most of their functions that fit.

        A gene is 0 where as many functions give 1 as give 0.
        """
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
        """Return gene -> number of patterns on the path to an answer after which functions that fit differ."""
        undecided = dict.fromkeys(self.task.genes, 0)
        for gene, values in self._visited((*self._first_path, *answer)).items():
            undecided[gene] = sum(0 < self._count(gene, {p: v}) < self.counts[gene] for p, v in values.items())
        return undecided

    def witness(self) -> str:
        """Return one of the networks as bnet: every gene has its `GeneFunctions.least_table`.

        Raise `ValueError` if both values follow a pattern of some gene.
        """
        return self._as_bnet({gene: functions.least_table() for gene, functions in self.genes.items()})

    def extreme_networks(self) -> Iterator[str]:
        """Yield two networks: of the least function of every gene, and of the greatest."""
        yield self.witness()
        yield self._as_bnet({gene: functions.greatest_table() for gene, functions in self.genes.items()})

    def draw(self, random: Random) -> str:
        """Return a network of the class as bnet, drawn uniformly without regard to the readings."""
        return self._as_bnet({gene: functions.draw_table(random) for gene, functions in self.genes.items()})

    def _as_bnet(self, tables: Mapping[str, str]) -> str:
        """Return the network of these tables over the candidates of each gene; bnet has inputs in order of names."""
        names = {gene: [name for name, _ in self.task.candidates[gene]] for gene in tables}
        functions = {}
        for gene, table in tables.items():
            order = sorted(range(len(names[gene])), key=names[gene].__getitem__)
            rows = (sum((row >> i & 1) << position for i, position in enumerate(order)) for row in range(len(table)))
            functions[gene] = from_table(sorted(names[gene]), "".join(table[row] for row in rows))
        return bnet_text(functions)

    def num_unseen(self, path: Sequence[str]) -> int:
        """Return the number of patterns on a path that no reading has, summed over the genes that are not clamped."""
        visited = self._visited(path)
        return sum(len(visited[gene].keys() - (self.genes[gene].values or {}).keys()) for gene in visited)

    def _successors(self, path: Sequence[str]) -> Iterator[tuple[str, Fraction]]:
        """Yield each state that may follow a path, with its share of the networks that give the path.

        Raise `_BranchLimitError` for more than `max_branches` states.
        """
        visited = self._visited(path)
        options: list[list[tuple[str, Fraction]]] = []
        for gene in self.task.genes:
            if gene in self.task.question.clamps:
                options.append([(str(self.task.question.clamps[gene]), Fraction(1))])
                continue
            before = visited[gene]
            pattern, total = self._pattern(gene, path[-1]), self._count(gene, before)
            counts = (
                [(value, self._count(gene, {**before, pattern: value})) for value in (0, 1)]
                if pattern not in before
                else [(before[pattern], total)]
            )
            options.append([(str(value), Fraction(count, total)) for value, count in counts if count])
        if prod(map(len, options)) > self.max_branches:
            raise _BranchLimitError
        for choice in product(*options):
            yield "".join(value for value, _ in choice), prod((share for _, share in choice), start=Fraction(1))


class _BranchLimitError(Exception):
    """There are more successors or paths than `FittingNetworks.max_branches`."""


def fit_networks(task: networks_network.TrajectoryTask) -> Found[FittingNetworks] | OutOfBudget:
    """Return the networks that agree with every reading.

    `OutOfBudget` if a gene of a signed class has more than MAX_MONOTONE_CANDIDATES candidates with a sign
    """
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
    """The answer of the network behind a task, and the share of fitting networks that gives it.

    states: from the start on; attractor: the one that the start reaches; transient: number of steps until then
    agree: the share; None if there are too many paths to list
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
    """Return the network's answer to the question of a task, with the share of fitting networks that gives it."""
    question = fitting.task.question
    genes = fitting.task.genes
    transient, attractor = networks_network.path_to_attractor(network, genes, question.start, question.clamps)
    steps = question.steps if question.steps is not None else transient + len(attractor)
    states = networks_network.simulate(network, genes, question.start, question.clamps, steps)
    share = fitting.share_of_answer(attractor if question.steps is None else states[1:])
    return TrueAnswer(states, attractor, transient, share.value if isinstance(share, Found) else None)
