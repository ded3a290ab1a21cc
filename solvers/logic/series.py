"""Synchronous series, gene by gene: formulas over the prior network and functions by parent set, counted exactly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb

from calibrant.dsl.logic.item import Clause, Edge, LogicError, Model, edges_by_target
from calibrant.dsl.logic.series import SeriesTask, count_errors, readings
from calibrant.solvers.logic.network import MAX_FORMULAS, ClauseList, FormulaLimitError, FormulaTable
from calibrant.solvers.outcome import Found, OutOfBudget

MAX_PARENT_SETS = 1_000_000  # of all genes together
MAX_FUNCTION_PARENTS = 6  # a function of 6 parents is one of 2**64


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
    by_target = edges_by_target(dict.fromkeys(task.prior))
    genes = []
    for name in task.genes:
        try:
            genes.append(_gene_formulas(task, name, by_target.get(name, []), max_formulas))
        except FormulaLimitError as error:
            return OutOfBudget(f"over {error.limit:,} formulas of gene {name}: try a smaller --max-clause")
    least = sum(gene.optimum[0] for gene in genes)
    limit = least + task.extra_errors
    total = _convolve([gene.errors for gene in genes], limit)
    edges = {}
    for number, gene in enumerate(genes):
        rest = _convolve([entry.errors for i, entry in enumerate(genes) if i != number], limit)
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


@dataclass(frozen=True)
class _OneNode:
    """Stand-in for a network of one node, which is all that `ClauseList` needs; every literal has its own parent."""

    literals: tuple[tuple[tuple[int, int], ...]]
    parents: tuple[tuple[int, ...]]
    max_clause: int


def _gene_formulas(task: SeriesTask, gene: str, edges: Sequence[Edge], limit: int) -> GeneFormulas:
    sources = sorted({edge.source for edge in edges})
    literals = tuple((sources.index(edge.source), edge.sign) for edge in edges)
    clauses = ClauseList(_OneNode((literals,), (tuple(range(len(sources))),), task.max_clause), 0, limit)
    table = FormulaTable(clauses, (1 << len(edges)) - 1, limit)
    steps = list(readings(task, gene))
    full = (1 << len(steps)) - 1
    wanted_bits = sum(after << t for t, (_, after) in enumerate(steps))
    literal_bits = []
    for edge in edges:
        position = task.genes.index(edge.source)
        bits = sum(before[position] << t for t, (before, _) in enumerate(steps))
        literal_bits.append(bits if edge.sign == 1 else full & ~bits)
    clause_bits: list[int] = []
    # clauses are a trie: clause k is clause prefix[k] and literal last[k]
    for prefix, last in zip(clauses.prefix, clauses.last, strict=True):
        clause_bits.append(literal_bits[last] & (clause_bits[prefix] if prefix >= 0 else full))
    responses, masks = [0], [0]
    errors: dict[int, int] = {wanted_bits.bit_count(): 1}
    by_edge: list[dict[int, int]] = [{} for _ in edges]
    least, num_least, witness_row = (wanted_bits.bit_count(), 0), 1, 0
    for row in range(1, len(table)):
        prefix, clause = table.prefix[row], table.clause[row]
        responses.append(responses[prefix] | clause_bits[clause])
        masks.append(masks[prefix] | clauses.literals[clause])
        wrong = (responses[row] ^ wanted_bits).bit_count()
        errors[wrong] = errors.get(wrong, 0) + 1
        for i, counts in enumerate(by_edge):
            if masks[row] >> i & 1:
                counts[wrong] = counts.get(wrong, 0) + 1
        point = (wrong, table.sizes[row])
        if point < least:
            least, num_least, witness_row = point, 1, row
        elif point == least:
            num_least += 1
    witness = frozenset(_clause(clauses.literals[c], gene, edges) for c in table.clauses_of(witness_row))
    if count_errors(witness, task, gene) != least[0]:
        raise AssertionError(f"the reference counts other errors than {least[0]} of a formula of {gene}")
    edge_counts = {edge: dict(sorted(counts.items())) for edge, counts in zip(edges, by_edge, strict=True)}
    return GeneFormulas(gene, (*least, num_least), witness, dict(sorted(errors.items())), edge_counts)


def _clause(mask: int, gene: str, edges: Sequence[Edge]) -> Clause:
    return Clause(gene, tuple(sorted((e.source, e.sign) for i, e in enumerate(edges) if mask >> i & 1)))


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
    return Found(tuple(_gene_functions(task, gene, max_parents) for gene in task.genes))


def _gene_functions(task: SeriesTask, gene: str, max_parents: int) -> GeneFunctions:
    steps = list(readings(task, gene))
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


def _least(steps: Sequence[tuple[tuple[int, ...], int]], parents: tuple[int, ...]) -> tuple[int, int]:
    """Return the least errors of any function of the parents, and how many functions have them."""
    seen_values: dict[tuple[int, ...], list[int]] = {}
    for before, after in steps:
        seen_values.setdefault(tuple(before[p] for p in parents), [0, 0])[after] += 1
    wrong = sum(min(counts) for counts in seen_values.values())
    # a pattern not seen, or seen as often with 0 as with 1, is free: 2^free functions of least errors
    free = (1 << len(parents)) - len(seen_values) + sum(zero == unit for zero, unit in seen_values.values())
    return wrong, 1 << free
