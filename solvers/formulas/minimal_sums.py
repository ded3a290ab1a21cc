"""All least sums of products of a partial truth table, proven: prime implicants by ternary tables, covers by MaxSAT.

The size is (products, literals), compared in this order, so each product of a least sum is a prime implicant of the
rows that are 1 or free: it covers no row that is 0, and with any literal less it would cover one. A prime implicant is
dropped if another with fewer literals covers all its ones. Those that are left cover the ones at least cost (weighted
partial MaxSAT); all least covers follow one by one, each excluded once it is listed.

Sources: W. V. Quine, The problem of simplifying truth functions, 1952; the cover as MaxSAT, A. Ignatiev, A. Previti and
J. Marques-Silva, SAT-based formula simplification, 2015.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import lru_cache, reduce
from itertools import product
from operator import or_
from random import Random

import numpy as np
import numpy.typing as npt

from calibrant.dsl.formulas.table import full_mask
from calibrant.solvers.formulas.least_formulas import Cube, Tree, sum_tree
from calibrant.solvers.outcome import Budget, BudgetSpent
from calibrant.solvers.sat import Cnf, CoreGuided

MAX_VARS = 10  # variables of tables that are covered: 59,049 products
MAX_CONFLICTS = 15_000  # conflicts of MaxSAT, and of the search for further covers: 2 s for 300 rows of noise
NUM_IMPROVEMENTS = 400  # products taken out of a greedy cover and replaced, where the least one is not proven
NUM_TAKEN_OUT = 3  # at a time
MAX_COVERS = 10_000  # least sums that are counted
MAX_PRIMES = 20_000  # that are left to cover
BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Implicant:
    """A product that covers no row that is 0. cube: per variable 0, 1, or 2 if it is absent; word: its truth table."""

    cube: Cube
    word: int

    @property
    def num_literals(self) -> int:
        return sum(digit != 2 for digit in self.cube)


@dataclass(frozen=True)
class LeastSums:
    """Least sums of products that agree with a table.

    size: (products, literals); at_least: proven bound of the number of products, less than size[0] if undecided
    sums: each as its products, with its truth table; is_complete: whether these are all
    """

    size: tuple[int, int]
    at_least: int
    sums: tuple[tuple[tuple[Cube, ...], int], ...]
    is_complete: bool

    @property
    def is_proven(self) -> bool:
        return self.at_least == self.size[0]

    def trees(self, *, is_dual: bool) -> list[tuple[Tree, int]]:
        """Return formulas with their truth tables; is_dual: products of sums, of the complements."""
        return [(sum_tree(cubes, dual=is_dual), word) for cubes, word in self.sums]


@lru_cache(maxsize=8)  # a form of products is asked for itself, and as a bound of formulas
def least_sums(num_vars: int, ones: int, zeros: int, max_conflicts: int = MAX_CONFLICTS) -> LeastSums:
    """Return the least sums of products that are 1 in the rows of `ones` and 0 in those of `zeros`, bit r is row r.

    `ValueError` for more variables or prime implicants than are covered.
    """
    if not 0 <= num_vars <= MAX_VARS:
        raise ValueError(f"sums of products of {num_vars} columns are not covered; at most {MAX_VARS} are")
    if ones == 0:
        return LeastSums((0, 0), 0, (((), 0),), is_complete=True)
    if zeros == 0:
        return LeastSums((1, 0), 1, ((((2,) * num_vars,), full_mask(num_vars)),), is_complete=True)
    implicants = useful_primes(num_vars, ones, zeros)
    if len(implicants) > MAX_PRIMES:
        raise ValueError(f"{len(implicants):,} prime implicants; at most {MAX_PRIMES:,} are covered")
    return _cover(implicants, ones, Budget(max_conflicts))


def greedy_size(num_vars: int, ones: int, zeros: int) -> tuple[int, int]:
    """Return the products and literals of a sum that is met at once: no least one is larger."""
    if not ones or not zeros:
        return (int(bool(ones)), 0)
    implicants = useful_primes(num_vars, ones, zeros)
    costs = [p.num_literals for p in implicants]
    chosen = _greedy_cover([p.word & ones for p in implicants], costs, ones)
    return len(chosen), sum(costs[k] for k in chosen)


# --- Prime implicants -------------------------------------------------------------------------------------------------


def useful_primes(num_vars: int, ones: int, zeros: int) -> list[Implicant]:
    """Return the prime implicants that a least sum may have: none with fewer literals covers all their ones."""
    is_allowed = ~_ternary(num_vars, zeros)
    is_prime = is_allowed & _ternary(num_vars, ones)
    for axis in range(num_vars):
        wider = np.take(is_allowed, [2], axis=axis)
        is_absent = np.arange(3).reshape([3 if k == axis else 1 for k in range(num_vars)]) == 2
        is_prime &= is_absent | ~wider
    groups: dict[int, list[Implicant]] = {}
    for digits in np.argwhere(is_prime).tolist():
        implicant = Implicant(tuple(digits), cube_word(digits))
        groups.setdefault(implicant.word & ones, []).append(implicant)
    literals = {cover: min(p.num_literals for p in group) for cover, group in groups.items()}
    order = sorted(groups, key=lambda cover: (literals[cover], cover))
    useful: list[int] = []
    for cover in order:
        if not any(cover & ~wider == 0 and literals[wider] < literals[cover] for wider in useful):
            useful.append(cover)
    return [p for cover in useful for p in groups[cover] if p.num_literals == literals[cover]]


def _ternary(num_vars: int, rows: int) -> BoolArray:
    """Return of each cube whether it has one of the rows; [3] * num_vars, axis v is variable v."""
    bits = np.unpackbits(
        np.frombuffer(rows.to_bytes(((1 << num_vars) + 7) // 8, "little"), np.uint8), bitorder="little"
    )
    table = bits[: 1 << num_vars].astype(np.bool_).reshape([2] * num_vars, order="F")
    for axis in range(num_vars):
        table = np.concatenate([table, table.any(axis=axis, keepdims=True)], axis=axis)
    return table


def cube_word(cube: Sequence[int]) -> int:
    """Return the truth table of a product."""
    word = 1
    for width, digit in enumerate(cube):
        word = {0: word, 1: word << (1 << width), 2: word | word << (1 << width)}[digit]
    return word


# --- Covers -----------------------------------------------------------------------------------------------------------


def _cover(implicants: Sequence[Implicant], ones: int, budget: Budget) -> LeastSums:
    """Return the least covers of the ones."""
    groups: dict[tuple[int, int], list[Implicant]] = {}
    for implicant in implicants:
        groups.setdefault((implicant.word & ones, implicant.num_literals), []).append(implicant)
    covers, choices = [cover for cover, _ in groups], list(groups.values())
    costs = [num_literals for _, num_literals in groups]
    cnf = Cnf()
    literals = [cnf.variable(f"product {k}") for k in range(len(covers))]
    rows = [row for row in range(ones.bit_length()) if ones >> row & 1]
    for clause in {tuple(x for x, cover in zip(literals, covers, strict=True) if cover >> row & 1) for row in rows}:
        cnf.add(*clause)
    weight = sum(costs) + 1
    with closing(CoreGuided(cnf, budget)) as search:
        for literal, cost in zip(literals, costs, strict=True):
            search.prefer(-literal, weight + cost)
        try:
            model = search.cheapest_model()
        except BudgetSpent:
            good = _improve_cover(_greedy_cover(covers, costs, ones), covers, costs, ones)
            size = (len(good), sum(costs[k] for k in good))
            at_least = min(-(-search.at_least // (weight + max(costs))), len(good) - 1)
            return LeastSums(size, at_least, (_join([choices[k][0] for k in good]),), is_complete=False)
        assert model is not None
        chosen = [k for k, literal in enumerate(literals) if literal in model]
        size = (len(chosen), sum(costs[k] for k in chosen))
        search.settle()
        sums: list[tuple[tuple[Cube, ...], int]] = []
        is_complete = True
        try:
            while chosen and len(sums) < MAX_COVERS:
                sums += map(_join, product(*(choices[k] for k in chosen)))
                search.add([-literals[k] for k in chosen])
                further = search.model(())
                chosen = [] if further is None else [k for k, literal in enumerate(literals) if literal in further]
            is_complete = not chosen
        except BudgetSpent:
            is_complete = False
    return LeastSums(size, size[0], tuple(sums), is_complete)


def _greedy_cover(covers: Sequence[int], costs: Sequence[int], ones: int) -> list[int]:
    """Return positions of covers that cover the ones, the most open rows first."""
    chosen = []
    while ones:
        best = max(range(len(covers)), key=lambda k: ((covers[k] & ones).bit_count(), -costs[k]))
        chosen.append(best)
        ones &= ~covers[best]
    return chosen


def _improve_cover(cover: list[int], covers: Sequence[int], costs: Sequence[int], ones: int) -> list[int]:
    """Return a cover that is no larger: a few products at a time are replaced greedily, superfluous ones dropped."""
    rng = Random(len(covers))

    def size(chosen: Sequence[int]) -> tuple[int, int]:
        return len(chosen), sum(costs[k] for k in chosen)

    best = cover
    for _ in range(NUM_IMPROVEMENTS):
        remaining = rng.sample(best, max(0, len(best) - NUM_TAKEN_OUT))
        covered = reduce(or_, (covers[k] for k in remaining), 0)
        changed = [*remaining, *_greedy_cover(covers, costs, ones & ~covered)]
        for k in sorted(changed, key=lambda k: -costs[k]):
            if not ones & ~reduce(or_, (covers[j] for j in changed if j != k), 0):
                changed.remove(k)
        if size(changed) <= size(best):
            best = changed
    return best


def _join(implicants: Sequence[Implicant]) -> tuple[tuple[Cube, ...], int]:
    return tuple(sorted(p.cube for p in implicants)), reduce(or_, (p.word for p in implicants), 0)
