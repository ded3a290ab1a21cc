"""Series, gene by gene: formulas over the prior network and functions by parent set, counted exactly."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, product
from math import comb
from typing import TypeAlias

import numpy as np

from calibrant.dsl.formulas.table import projection
from calibrant.dsl.logic.item import Edge, LogicError, Model, edges_by_target
from calibrant.dsl.logic.series import SeriesTask, State, count_errors, readings
from calibrant.solvers.logic.network import MAX_FORMULAS, FormulaLimitError, NodeFormula, NodeFormulas
from calibrant.solvers.outcome import Found, OutOfBudget

MAX_PARENT_SETS = 1_000_000  # of all genes together
MAX_FUNCTION_PARENTS = 6  # a function of 6 parents is one of 2**64
MAX_LISTED_PARENTS = 4  # parents of functions where cells are unknown: all 65,536 are listed
MAX_UNKNOWN_SOURCES = 16  # unknown inputs of one reading: every completion is a row
MAX_JOINT_CELLS = 12  # unknown cells whose completions are listed
MAX_JOINT_MASKS = 100_000  # different sets of completions at a time
MAX_STATES_GENES = 16  # all 65,536 states are asked

Reading: TypeAlias = tuple[State, int]


@dataclass(frozen=True)
class GeneFormulas:
    """Formulas of one gene over its prior edges.

    optimum: least errors, then least size, and how many formulas have both; witness: one of these
    errors: errors -> number of formulas; edges: edge -> errors -> number of formulas that use it
    """

    gene: str
    optimum: tuple[int, int, int]
    witness: Model
    errors: Mapping[int, int]
    edges: Mapping[Edge, Mapping[int, int]]


@dataclass(frozen=True)
class SeriesFamily:
    """Models with at most `limit` errors over all genes.

    least_errors: of all models; count: members; edges: edge -> members that use it, 0 left out
    """

    task: SeriesTask
    genes: tuple[GeneFormulas, ...]
    least_errors: int
    limit: int
    count: int
    edges: Mapping[Edge, int]
    witness: Model

    def fixed(self, state: Sequence[int]) -> int:
        """Return the number of members under which a state stays as it is.

        state: a value a gene, in their order
        """
        keeping = []
        for position, table in enumerate(_tables(self.task, MAX_FORMULAS, [state])):
            row = table.row_of(state)
            keeping.append(table.errors_where(row, state[position]))
        return sum(_convolve(keeping, self.limit).values())

    def mean_fixed_points(self) -> Fraction | None:
        """Return the number of fixed points of a member, on average; None beyond MAX_STATES_GENES genes."""
        genes = self.task.genes
        if len(genes) > MAX_STATES_GENES or not self.count:
            return None
        extra = self.limit - self.least_errors
        states = np.array([*product((0, 1), repeat=len(genes))], dtype=np.int64)
        totals = np.zeros((len(states), extra + 1), dtype=object)  # state, errors beyond the least -> models
        totals[:, 0] = 1
        for position, (gene, table) in enumerate(
            zip(self.genes, _tables(self.task, MAX_FORMULAS, states), strict=True)
        ):
            numbers = table.numbers_by_row(gene.optimum[0], extra)  # value, row, errors
            rows = np.array([table.row_of(state) for state in states.tolist()])
            factors = numbers[states[:, position], rows]
            totals = sum(  # type: ignore[assignment]  # a sum of arrays
                np.pad(totals[:, : extra + 1 - more] * factors[:, more : more + 1], ((0, 0), (more, 0)))
                for more in range(extra + 1)
            )
        return Fraction(int(totals.sum()), self.count)

    def joint(self) -> int | None:
        """Return the number of models that have no wrong reading under one completion of all unknown cells.

        None without unknown cells, with more than MAX_JOINT_CELLS of them, or where it is not counted
        """
        cells = _unknown_cells(self.task)
        if not 0 < len(cells) <= MAX_JOINT_CELLS:
            return None
        masks = {(1 << (1 << len(cells))) - 1: 1}
        for gene, edges in zip(self.task.genes, _edges_of_genes(self.task), strict=True):
            right = _completions(self.task, gene, edges, cells)
            joined: Counter[int] = Counter()
            for mask, ways in masks.items():
                for right_mask, number in right.items():
                    if mask & right_mask:
                        joined[mask & right_mask] += ways * number
            if len(joined) > MAX_JOINT_MASKS:
                return None
            masks = dict(joined)
        return sum(masks.values())


@dataclass(frozen=True, slots=True)
class GeneFunctions:
    """Functions of one gene of at most `max_parents` parents that depend on every one.

    errors: least number of wrong readings
    functions: parent set -> number of functions of exactly these parents with that many; sets without one are left out
    """

    gene: str
    errors: int
    functions: Mapping[tuple[str, ...], int]


def solve_series(task: SeriesTask, max_formulas: int = MAX_FORMULAS) -> Found[SeriesFamily] | OutOfBudget:
    """Return the family of a task; `OutOfBudget` if a gene has too many formulas."""
    genes = []
    try:
        for table in _tables(task, max_formulas):
            genes.append(table.solve())
    except FormulaLimitError as error:
        return OutOfBudget(
            f"over {error.limit:,} formulas of gene {task.genes[len(genes)]}: try a smaller --max-clause"
        )
    except _GapLimitError as error:
        return OutOfBudget(f"over {MAX_UNKNOWN_SOURCES} unknown cells in a reading of gene {error.args[0]}")
    least = sum(gene.optimum[0] for gene in genes)
    limit = least + task.extra_errors
    total = _convolve([gene.errors for gene in genes], limit)
    edges = {}
    for index, gene in enumerate(genes):
        rest = _convolve([entry.errors for i, entry in enumerate(genes) if i != index], limit)
        for edge, errors in gene.edges.items():
            count = sum(_convolve([rest, errors], limit).values())
            if count:
                edges[edge] = count
    witness = frozenset(clause for gene in genes for clause in gene.witness)
    family = SeriesFamily(task, tuple(genes), least, limit, sum(total.values()), dict(sorted(edges.items())), witness)
    return Found(family)


def _convolve(factors: Sequence[Mapping[int, int]], limit: int) -> dict[int, int]:
    """Return the numbers of combinations by total errors, up to the limit."""
    total = {0: 1}
    for factor in factors:
        following: dict[int, int] = {}
        for errors, ways in total.items():
            for more, number in factor.items():
                if errors + more <= limit:
                    following[errors + more] = following.get(errors + more, 0) + ways * number
        total = following
    return total


class _GapLimitError(Exception):
    """A reading of a gene has too many unknown cells."""


class _GeneTable:
    """The formulas of a gene on the rows that its readings have.

    A reading with all sources known has a row of its own; of another one every completion is a row, shared by readings.
    """

    def __init__(
        self, task: SeriesTask, gene: str, edges: Sequence[Edge], limit: int, states: Iterable[Sequence[int]] = ()
    ) -> None:
        self.task, self.gene, self.edges = task, gene, edges
        self._formulas = NodeFormulas(edges, task.max_clause, limit)
        self._positions = [task.genes.index(source) for source in self._formulas.sources]
        known_readings, gaps = self._sorted_readings()
        self._rows = [before for before, _ in known_readings]
        self._wanted = sum(after << t for t, (_, after) in enumerate(known_readings))
        self._known = (1 << len(known_readings)) - 1
        self._numbers: dict[tuple[int, ...], int] = {}
        self._gaps = [(sum({1 << self._add(row) for row in product(*options)}), after) for options, after in gaps]
        for state in states:
            self._add(tuple(state[p] for p in self._positions))

    def _sorted_readings(self) -> tuple[list[tuple[tuple[int, ...], int]], list[tuple[list[tuple[int, ...]], int]]]:
        """Return the readings whose sources are known, and the others with the values that each source may have."""
        known_readings: list[tuple[tuple[int, ...], int]] = []
        gaps: list[tuple[list[tuple[int, ...]], int]] = []
        for before, after in readings(self.task, self.gene):
            values = [before[p] for p in self._positions]
            if values.count(None) > MAX_UNKNOWN_SOURCES:
                raise _GapLimitError(self.gene)
            if None in values:
                gaps.append(([(0, 1) if value is None else (value,) for value in values], after))
            else:
                known_readings.append((tuple(int(value or 0) for value in values), after))
        return known_readings, gaps

    def _add(self, row: tuple[int, ...]) -> int:
        """Return the number of a row, which is added where there is none beyond those of known readings."""
        if row not in self._numbers:
            self._numbers[row] = len(self._rows)
            self._rows.append(row)
        return self._numbers[row]

    def row_of(self, state: Sequence[int]) -> int:
        """Return the number of the row of a state that was asked for."""
        return self._numbers[tuple(state[p] for p in self._positions)]

    def formulas(self) -> Iterator[NodeFormula]:
        """Yield every formula with its values on the rows, the empty one first."""
        return self._formulas.on_rows(self._rows)

    def errors(self, response: int) -> int:
        """Return the number of wrong readings of a formula."""
        wrong = ((response ^ self._wanted) & self._known).bit_count()
        for mask, after in self._gaps:
            wrong += (response & mask) == (0 if after else mask)
        return wrong

    def errors_where(self, row: int, value: int) -> dict[int, int]:
        """Return errors -> number of formulas, of those with a value in a row."""
        counts = Counter(self.errors(f.response) for f in self.formulas() if f.response >> row & 1 == value)
        return dict(sorted(counts.items()))

    def numbers_by_row(self, least: int, extra: int) -> np.ndarray:
        """Return the number of formulas by value, row, and errors beyond the least, to `extra`."""
        numbers = np.zeros((2, len(self._rows), extra + 1), dtype=object)
        by_response = Counter(formula.response for formula in self.formulas())
        for response, number in by_response.items():
            more = self.errors(response) - least
            if more <= extra:
                for row in range(len(self._rows)):
                    numbers[response >> row & 1, row, more] += number
        return numbers

    def solve(self) -> GeneFormulas:
        """Return the counts of all formulas, and a best one."""
        errors: dict[int, int] = {}
        by_edge: list[dict[int, int]] = [{} for _ in self.edges]
        least, num_least, witness = (len(self._rows) + len(self._gaps) + 1, 0), 0, 0
        for response, mask, size, number in self.formulas():
            wrong = self.errors(response)
            errors[wrong] = errors.get(wrong, 0) + 1
            for i, counts in enumerate(by_edge):
                if mask >> i & 1:
                    counts[wrong] = counts.get(wrong, 0) + 1
            point = (wrong, size)
            if point < least:
                least, num_least, witness = point, 1, number
            elif point == least:
                num_least += 1
        model = self._formulas.model(witness)
        if count_errors(model, self.task, self.gene) != least[0]:
            raise AssertionError(f"the reference counts other errors than {least[0]} of a formula of {self.gene}")
        edge_counts = {edge: dict(sorted(counts.items())) for edge, counts in zip(self.edges, by_edge, strict=True)}
        return GeneFormulas(self.gene, (*least, num_least), model, dict(sorted(errors.items())), edge_counts)


def _edges_of_genes(task: SeriesTask) -> list[list[Edge]]:
    by_target = edges_by_target(dict.fromkeys(task.prior))
    return [by_target.get(gene, []) for gene in task.genes]


def _tables(task: SeriesTask, limit: int, states: Iterable[Sequence[int]] = ()) -> Iterator[_GeneTable]:
    states = [*states]
    for gene, edges in zip(task.genes, _edges_of_genes(task), strict=True):
        yield _GeneTable(task, gene, edges, limit, states)


_Cell: TypeAlias = tuple[int, int, int]
"""Series, time and gene."""


def _unknown_cells(task: SeriesTask) -> dict[_Cell, int]:
    """Return the unknown cells with their numbers."""
    cells = [
        (k, t, g)
        for k, series in enumerate(task.series)
        for t, state in enumerate(series.states)
        for g, value in enumerate(state)
        if value is None
    ]
    return {cell: index for index, cell in enumerate(cells)}


def _completions(task: SeriesTask, gene: str, edges: Sequence[Edge], cells: Mapping[_Cell, int]) -> Counter[int]:
    """Return sets of completions of all unknown cells, as masks -> formulas that are right under just these."""
    position = task.genes.index(gene)
    sources = sorted({task.genes.index(edge.source) for edge in edges})
    everything = (1 << (1 << len(cells))) - 1
    forbidden: dict[tuple[tuple[int, ...], int], int] = {}  # pattern of the sources, value -> completions
    for k, series in enumerate(task.series):
        if gene in series.clamped:
            continue
        for t in range(len(series.states) - 1):
            places = [(k, t, source) for source in sources] + [(k, t + 1, position)]
            options = [series.states[time][g] for _, time, g in places]
            for values in product(*((0, 1) if value is None else (value,) for value in options)):
                mask = everything
                for cell, value in zip(places, values, strict=True):
                    if cell in cells:
                        ones = projection(cells[cell], len(cells)).bits
                        mask &= ones if value else everything & ~ones
                key = (values[:-1], 1 - values[-1])
                forbidden[key] = forbidden.get(key, 0) | mask
    patterns = sorted({pattern for pattern, _ in forbidden})
    states = [dict(zip(sources, pattern, strict=True)) for pattern in patterns]
    whole_states = [[state.get(g, 0) for g in range(len(task.genes))] for state in states]
    table = _GeneTable(task, gene, edges, MAX_FORMULAS, whole_states)
    rows = [table.row_of(state) for state in whole_states]
    right: Counter[int] = Counter()
    for response, number in Counter(formula.response for formula in table.formulas()).items():
        wrong = 0
        for pattern, row in zip(patterns, rows, strict=True):
            wrong |= forbidden.get((pattern, response >> row & 1), 0)
        right[everything & ~wrong] += number
    return right


def count_functions(task: SeriesTask, max_parents: int) -> Found[tuple[GeneFunctions, ...]] | OutOfBudget:
    """Return the least errors of each gene over functions of at most `max_parents` genes.

    The functions that have them are counted by parent set. Functions depend on each of their parents; patterns that are
    not seen may have any value.
    """
    if not 0 <= max_parents <= MAX_FUNCTION_PARENTS:
        raise LogicError(f"max_parents {max_parents}; 0 to {MAX_FUNCTION_PARENTS}")
    number = len(task.genes)
    if number * sum(comb(number, k) for k in range(max_parents + 1)) > MAX_PARENT_SETS:
        return OutOfBudget(f"over {MAX_PARENT_SETS:,} parent sets: try a smaller max_parents")
    if max_parents > MAX_LISTED_PARENTS and any(
        None in before for gene in task.genes for before, _ in readings(task, gene)
    ):
        return OutOfBudget(f"unknown cells: functions are listed, to {MAX_LISTED_PARENTS} parents")
    return Found(tuple(_gene_functions(task, gene, max_parents) for gene in task.genes))


def _gene_functions(task: SeriesTask, gene: str, max_parents: int) -> GeneFunctions:
    steps = Counter(readings(task, gene))
    positions = range(len(task.genes))
    least: dict[tuple[int, ...], tuple[int, int]] = {}
    for size in range(min(max_parents, len(task.genes)) + 1):
        for parents in combinations(positions, size):
            least[parents] = _least(steps, parents)
    errors = min(wrong for wrong, _ in least.values())
    functions: dict[tuple[str, ...], int] = {}
    for parents in least:
        total = 0
        for size in range(len(parents) + 1):
            # Moebius inversion over subsets: functions of exactly these parents = sum of (-1)^|S - T| functions over T;
            # a subset with more errors than the least has no function that counts
            sign = -1 if (len(parents) - size) % 2 else 1
            for subset in combinations(parents, size):
                wrong, ways = least[subset]
                total += sign * ways if wrong == errors else 0
        if total:
            functions[tuple(sorted(task.genes[p] for p in parents))] = total
    return GeneFunctions(gene, errors, dict(sorted(functions.items())))


def _least(steps: Mapping[Reading, int], parents: tuple[int, ...]) -> tuple[int, int]:
    """Return the least errors of any function of the parents, and how many functions have them."""
    seen_values: dict[tuple[int | None, ...], list[int]] = {}
    gaps: Counter[tuple[tuple[int | None, ...], int]] = Counter()
    for (before, after), number in steps.items():
        pattern = tuple(before[p] for p in parents)
        if None in pattern:
            gaps[pattern, after] += number
        else:
            seen_values.setdefault(pattern, [0, 0])[after] += number
    if gaps:
        return _least_listed(seen_values, gaps, len(parents))
    wrong = sum(min(counts) for counts in seen_values.values())
    # a pattern not seen, or seen as often with 0 as with 1, is free: 2^free functions of least errors
    free = (1 << len(parents)) - len(seen_values) + sum(zero == unit for zero, unit in seen_values.values())
    return wrong, 1 << free


def _least_listed(
    seen_values: Mapping[tuple[int | None, ...], Sequence[int]],
    gaps: Mapping[tuple[tuple[int | None, ...], int], int],
    num_parents: int,
) -> tuple[int, int]:
    """Return the least errors of any function, and how many functions have them, by listing all functions."""
    tables = np.arange(1 << (1 << num_parents), dtype=np.uint32)
    wrong = np.zeros(len(tables), dtype=np.int64)
    for pattern, counts in seen_values.items():
        row = sum((value or 0) << i for i, value in enumerate(pattern))
        value = tables >> np.uint32(row) & np.uint32(1)
        wrong += np.where(value == 1, counts[0], counts[1])
    for (pattern, after), number in gaps.items():
        completions = product(*((0, 1) if value is None else (value,) for value in pattern))
        mask = np.uint32(sum(1 << sum(bit << i for i, bit in enumerate(row)) for row in completions))
        wrong += number * ((tables & mask) == (np.uint32(0) if after else mask))
    least = int(wrong.min())
    return least, int((wrong == least).sum())
