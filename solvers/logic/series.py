"""Time series of genes, one gene at a time: formulas over the prior network and functions by parent set, counted."""

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

MAX_PARENT_SETS = 1_000_000  # parent sets of all genes together
MAX_FUNCTION_PARENTS = 6  # parents of a function; there are 2**64 functions of 6
MAX_LISTED_PARENTS = 4  # parents of functions if cells are unknown: then all 65,536 functions are listed
MAX_UNKNOWN_SOURCES = 16  # unknown inputs of one reading: every completion is a row
MAX_JOINT_CELLS = 12  # unknown cells whose joint completions are listed
MAX_JOINT_MASKS = 100_000  # different sets of completions that are counted at a time
MAX_STATES_GENES = 16  # genes of a network whose states are all visited: 65,536
MAX_COUNTED_VALUES = 5_000_000  # values of all formulas of all genes in all patterns of their sources: 2 s

Reading: TypeAlias = tuple[State, int]
"""State of all genes, and the value of one gene in the next state."""


@dataclass(frozen=True)
class GeneFormulas:
    """Formulas of one gene over its prior edges.

    optimum: (least errors, least size at these, number of formulas that have both); witness: one of these formulas
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

    least_errors: least errors of a model; count: number of members
    edges: edge -> number of members that use it, 0 left out
    """

    task: SeriesTask
    genes: tuple[GeneFormulas, ...]
    least_errors: int
    limit: int
    count: int
    edges: Mapping[Edge, int]
    witness: Model

    def fixed(self, state: Sequence[int]) -> int:
        """Return the number of members for which a state is a fixed point.

        state: value of each gene, in the order of the task
        """
        factors = []
        for position, table in enumerate(_tables(self.task, MAX_FORMULAS, [state])):
            row = table.row_of(state)
            factors.append(table.errors_where(row, state[position]))
        return sum(_convolve(factors, self.limit).values())

    def mean_fixed_points(self) -> Fraction | None:
        """Return the number of fixed points of a member, on average.

        None beyond MAX_STATES_GENES genes, or beyond MAX_COUNTED_VALUES values of formulas.
        """
        genes = self.task.genes
        edges_of_genes = _edges_of_genes(self.task)
        num_values = sum(
            sum(gene.errors.values()) << len({edge.source for edge in edges})
            for gene, edges in zip(self.genes, edges_of_genes, strict=True)
        )
        if len(genes) > MAX_STATES_GENES or num_values > MAX_COUNTED_VALUES or not self.count:
            return None
        extra = self.limit - self.least_errors
        states = np.arange(1 << len(genes))  # bit g is gene g
        totals = np.zeros((len(states), extra + 1), dtype=object)  # state, errors beyond the least -> models
        totals[:, 0] = 1
        for position, (gene, edges) in enumerate(zip(self.genes, edges_of_genes, strict=True)):
            sources = sorted({genes.index(edge.source) for edge in edges})
            patterns = [[number >> i & 1 for i in range(len(sources))] for number in range(1 << len(sources))]
            table, rows = _table_of_patterns(self.task, gene.gene, edges, patterns)
            pattern_of_state = sum((states >> source & 1) << i for i, source in enumerate(sources))
            counts = table.count_by_row(gene.optimum[0], extra)  # value, row, errors beyond the least
            factors = counts[states >> position & 1, np.array(rows)[pattern_of_state]]
            products = np.zeros_like(totals)
            for more in range(extra + 1):
                products[:, more:] += totals[:, : extra + 1 - more] * factors[:, more : more + 1]
            is_fixed = (products != 0).any(axis=1)
            states, totals = states[is_fixed], products[is_fixed]
        return Fraction(sum(map(int, totals.flat)), self.count)

    def joint(self) -> int | None:
        """Return the number of models without a wrong reading under a common completion of all unknown cells.

        None without unknown cells, with more than MAX_JOINT_CELLS of them, or beyond MAX_JOINT_MASKS.
        """
        cells = _unknown_cells(self.task)
        if not 0 < len(cells) <= MAX_JOINT_CELLS:
            return None
        masks = {(1 << (1 << len(cells))) - 1: 1}  # set of completions -> number of models right under just these
        for gene, edges in zip(self.task.genes, _edges_of_genes(self.task), strict=True):
            right = _completions(self.task, gene, edges, cells)
            joined: Counter[int] = Counter()
            for mask, ways in masks.items():
                for right_mask, count in right.items():
                    if mask & right_mask:
                        joined[mask & right_mask] += ways * count
            if len(joined) > MAX_JOINT_MASKS:
                return None
            masks = dict(joined)
        return sum(masks.values())


@dataclass(frozen=True, slots=True)
class GeneFunctions:
    """Functions of one gene that depend on each of at most `max_parents` parents.

    errors: least number of wrong readings
    functions: parent set -> number of functions with so many that depend on all of it; sets without one are left out
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
        others = _convolve([entry.errors for i, entry in enumerate(genes) if i != index], limit)
        for edge, errors in gene.edges.items():
            count = sum(_convolve([others, errors], limit).values())
            if count:
                edges[edge] = count
    witness = frozenset(clause for gene in genes for clause in gene.witness)
    family = SeriesFamily(task, tuple(genes), least, limit, sum(total.values()), dict(sorted(edges.items())), witness)
    return Found(family)


def _convolve(factors: Sequence[Mapping[int, int]], limit: int) -> dict[int, int]:
    """Return total errors -> number of combinations, up to the limit; factors: errors -> number, for each gene."""
    total = {0: 1}
    for factor in factors:
        product_counts: dict[int, int] = {}
        for errors, ways in total.items():
            for more, count in factor.items():
                if errors + more <= limit:
                    product_counts[errors + more] = product_counts.get(errors + more, 0) + ways * count
        total = product_counts
    return total


class _GapLimitError(Exception):
    """A reading of a gene has too many unknown cells."""


class _GeneTable:
    """Formulas of a gene on the rows (values of its sources) of its readings.

    A reading with all sources known has a row of its own; the completions of other readings are shared rows.
    """

    def __init__(
        self, task: SeriesTask, gene: str, edges: Sequence[Edge], limit: int, states: Iterable[Sequence[int]] = ()
    ) -> None:
        self.task, self.gene, self.edges = task, gene, edges
        self._formulas = NodeFormulas(edges, task.max_clause, limit)
        self._positions = [task.genes.index(source) for source in self._formulas.sources]
        known_readings, gaps = self._split_readings()
        self._rows = [before for before, _ in known_readings]
        self._expected = sum(after << t for t, (_, after) in enumerate(known_readings))
        self._known = (1 << len(known_readings)) - 1
        self._row_index: dict[tuple[int, ...], int] = {}
        self._gaps = [(sum({1 << self._add(row) for row in product(*options)}), after) for options, after in gaps]
        for state in states:
            self._add(tuple(state[p] for p in self._positions))

    def _split_readings(self) -> tuple[list[tuple[tuple[int, ...], int]], list[tuple[list[tuple[int, ...]], int]]]:
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
        """Return the index of a shared row; add it if it is new."""
        if row not in self._row_index:
            self._row_index[row] = len(self._rows)
            self._rows.append(row)
        return self._row_index[row]

    def row_of(self, state: Sequence[int]) -> int:
        """Return the index of the row of a state that was given as one of `states`."""
        return self._row_index[tuple(state[p] for p in self._positions)]

    def formulas(self) -> Iterator[NodeFormula]:
        """Yield every formula with its values on the rows, the empty one first."""
        return self._formulas.on_rows(self._rows)

    def errors(self, response: int) -> int:
        """Return the number of wrong readings of a formula."""
        wrong = ((response ^ self._expected) & self._known).bit_count()
        for mask, after in self._gaps:
            wrong += (response & mask) == (0 if after else mask)
        return wrong

    def errors_where(self, row: int, value: int) -> dict[int, int]:
        """Return errors -> number of formulas, for formulas with this value in a row."""
        counts = Counter(self.errors(f.response) for f in self.formulas() if f.response >> row & 1 == value)
        return dict(sorted(counts.items()))

    def count_by_row(self, least: int, extra: int) -> np.ndarray:
        """Return the number of formulas by value, row and errors beyond `least`; shape [2, rows, extra + 1]."""
        counts = np.zeros((2, len(self._rows), extra + 1), dtype=object)
        by_response = Counter(formula.response for formula in self.formulas())
        for response, count in by_response.items():
            more = self.errors(response) - least
            if more <= extra:
                for row in range(len(self._rows)):
                    counts[response >> row & 1, row, more] += count
        return counts

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
"""(series, time, gene)."""


def _unknown_cells(task: SeriesTask) -> dict[_Cell, int]:
    """Return the unknown cells, each with its index."""
    cells = [
        (k, t, g)
        for k, series in enumerate(task.series)
        for t, state in enumerate(series.states)
        for g, value in enumerate(state)
        if value is None
    ]
    return {cell: index for index, cell in enumerate(cells)}


def _table_of_patterns(
    task: SeriesTask, gene: str, edges: Sequence[Edge], patterns: Iterable[Sequence[int]]
) -> tuple[_GeneTable, list[int]]:
    """Return the formulas of a gene, and the row of each pattern: values of its sources, in the order of genes."""
    sources = sorted({task.genes.index(edge.source) for edge in edges})
    value_of_source = [dict(zip(sources, pattern, strict=True)) for pattern in patterns]
    states = [[value.get(g, 0) for g in range(len(task.genes))] for value in value_of_source]
    table = _GeneTable(task, gene, edges, MAX_FORMULAS, states)
    return table, [table.row_of(state) for state in states]


def _completions(task: SeriesTask, gene: str, edges: Sequence[Edge], cells: Mapping[_Cell, int]) -> Counter[int]:
    """Return set of completions of all unknown cells (mask) -> number of formulas that are right under just these."""
    position = task.genes.index(gene)
    sources = sorted({task.genes.index(edge.source) for edge in edges})
    everything = (1 << (1 << len(cells))) - 1
    forbidden: dict[tuple[tuple[int, ...], int], int] = {}  # pattern of the sources, value -> completions
    for k, series in enumerate(task.series):
        if gene in series.clamped:
            continue
        for t in range(len(series.states) - 1):
            involved = [(k, t, source) for source in sources] + [(k, t + 1, position)]
            options = [series.states[time][g] for _, time, g in involved]
            for values in product(*((0, 1) if value is None else (value,) for value in options)):
                mask = everything
                for cell, value in zip(involved, values, strict=True):
                    if cell in cells:
                        ones = projection(cells[cell], len(cells)).bits
                        mask &= ones if value else everything & ~ones
                key = (values[:-1], 1 - values[-1])
                forbidden[key] = forbidden.get(key, 0) | mask
    patterns = sorted({pattern for pattern, _ in forbidden})
    table, rows = _table_of_patterns(task, gene, edges, patterns)
    right: Counter[int] = Counter()
    for response, count in Counter(formula.response for formula in table.formulas()).items():
        wrong = 0
        for pattern, row in zip(patterns, rows, strict=True):
            wrong |= forbidden.get((pattern, response >> row & 1), 0)
        right[everything & ~wrong] += count
    return right


def count_functions(task: SeriesTask, max_parents: int) -> Found[tuple[GeneFunctions, ...]] | OutOfBudget:
    """Count, for each gene, the functions of at most `max_parents` parents with the least errors, by parent set.

    Functions depend on each of their parents; at patterns that do not occur they may have any value.
    """
    if not 0 <= max_parents <= MAX_FUNCTION_PARENTS:
        raise LogicError(f"max_parents {max_parents}; 0 to {MAX_FUNCTION_PARENTS}")
    num_genes = len(task.genes)
    if num_genes * sum(comb(num_genes, k) for k in range(max_parents + 1)) > MAX_PARENT_SETS:
        return OutOfBudget(f"over {MAX_PARENT_SETS:,} parent sets: try a smaller max_parents")
    if max_parents > MAX_LISTED_PARENTS and any(
        None in before for gene in task.genes for before, _ in readings(task, gene)
    ):
        return OutOfBudget(f"unknown cells: functions are listed, to {MAX_LISTED_PARENTS} parents")
    return Found(tuple(_gene_functions(task, gene, max_parents) for gene in task.genes))


def _gene_functions(task: SeriesTask, gene: str, max_parents: int) -> GeneFunctions:
    """Return the least number of errors of a gene and, for each set of parents, the number of functions with it."""
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
            # Moebius inversion: the functions that depend on all of S are the sum of (-1)^|S - T| functions over T; a
            # subset T whose least errors are more has no function of the least errors
            sign = -1 if (len(parents) - size) % 2 else 1
            for subset in combinations(parents, size):
                wrong, count = least[subset]
                total += sign * count if wrong == errors else 0
        if total:
            functions[tuple(sorted(task.genes[p] for p in parents))] = total
    return GeneFunctions(gene, errors, dict(sorted(functions.items())))


def _least(steps: Mapping[Reading, int], parents: tuple[int, ...]) -> tuple[int, int]:
    """Return the least errors of any function of the parents, and the number of functions that have them."""
    seen_values: dict[tuple[int | None, ...], list[int]] = {}
    gaps: Counter[tuple[tuple[int | None, ...], int]] = Counter()
    for (before, after), count in steps.items():
        pattern = tuple(before[p] for p in parents)
        if None in pattern:
            gaps[pattern, after] += count
        else:
            seen_values.setdefault(pattern, [0, 0])[after] += count
    if gaps:
        return _least_listed(seen_values, gaps, len(parents))
    wrong = sum(min(counts) for counts in seen_values.values())
    # a pattern is free if it does not occur, or as often with 0 as with 1: 2^free functions have the least errors
    free = (1 << len(parents)) - len(seen_values) + sum(zero == unit for zero, unit in seen_values.values())
    return wrong, 1 << free


def _least_listed(
    seen_values: Mapping[tuple[int | None, ...], Sequence[int]],
    gaps: Mapping[tuple[tuple[int | None, ...], int], int],
    num_parents: int,
) -> tuple[int, int]:
    """Return the least errors of any function, and the number of functions that have them, by listing all functions."""
    tables = np.arange(1 << (1 << num_parents), dtype=np.uint32)
    wrong = np.zeros(len(tables), dtype=np.int64)
    for pattern, counts in seen_values.items():
        row = sum((value or 0) << i for i, value in enumerate(pattern))
        value = tables >> np.uint32(row) & np.uint32(1)
        wrong += np.where(value == 1, counts[0], counts[1])
    for (pattern, after), count in gaps.items():
        completions = product(*((0, 1) if value is None else (value,) for value in pattern))
        mask = np.uint32(sum(1 << sum(bit << i for i, bit in enumerate(row)) for row in completions))
        wrong += count * ((tables & mask) == (np.uint32(0) if after else mask))
    least = int(wrong.min())
    return least, int((wrong == least).sum())
