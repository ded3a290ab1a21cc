"""Least sums of products, proven by MaxSAT: of a partial truth table, and for every number of errors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import lru_cache, reduce
from itertools import combinations, pairwise, product
from math import prod
from operator import or_
from random import Random

import numpy as np
import numpy.typing as npt

from calibrant.dsl.formulas.table import full_mask, unpack_bits
from calibrant.solvers.formulas.least_formulas import Cube, Tree, sum_tree
from calibrant.solvers.outcome import Budget, BudgetSpent
from calibrant.solvers.sat import Cnf, CoreGuided, Literal

# --- All least sums of products of a partial truth table, proven: prime implicants by ternary tables, covers by
# MaxSAT
#
# The size is (products, literals), compared in this order, so each product of a least sum is a prime implicant of the
# rows that are 1 or free: it covers no row that is 0, and with any literal less it would cover one. A prime implicant
# is dropped if another with fewer literals covers all its ones. A least cover of the ones by the others follows by
# weighted partial MaxSAT, then all other least covers one by one, each excluded once it is listed.
#
# Sources: W. V. Quine, The problem of simplifying truth functions, 1952; the cover as MaxSAT, A. Ignatiev, A. Previti
# and J. Marques-Silva, SAT-based formula simplification, 2015.
MAX_VARS = 10  # variables of tables that are covered: 59,049 products
MAX_CONFLICTS = 15_000  # conflicts of MaxSAT, and of the search for further covers: 2 s for 300 rows of noise
NUM_IMPROVEMENTS = 400  # products taken out of a greedy cover and replaced, where the least one is not proven
NUM_TAKEN_OUT = 3  # products taken out at a time
MAX_COVERS = 10_000  # least sums listed of a table, or of a point of a front
MAX_PRIMES = 20_000  # prime implicants to cover with, those that are superfluous dropped
BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Implicant:
    """A product that covers no row that is 0. cube: see `Cube`; word: its truth table."""

    cube: Cube
    word: int

    @property
    def num_literals(self) -> int:
        return sum(digit != 2 for digit in self.cube)


@dataclass(frozen=True)
class LeastSums:
    """Least sums of products that agree with a table.

    size: (products, literals), of a least sum if `is_proven`, else of the best sum found
    at_least: proven lower bound of the number of products, less than size[0] if the size is not proven
    sums: pairs (products, truth table); is_complete: whether these are all least sums
    """

    size: tuple[int, int]
    at_least: int
    sums: tuple[tuple[tuple[Cube, ...], int], ...]
    is_complete: bool

    @property
    def is_proven(self) -> bool:
        return self.at_least == self.size[0]

    def trees(self, *, is_dual: bool) -> list[tuple[Tree, int]]:
        """Return the sums as trees with their truth tables; is_dual: trees of the complements, products of sums."""
        return [(sum_tree(cubes, dual=is_dual), word) for cubes, word in self.sums]


@lru_cache(maxsize=8)  # a table's sums are requested as a result, and again as a bound of the least formula
def least_sums(num_vars: int, ones: int, zeros: int, max_conflicts: int = MAX_CONFLICTS) -> LeastSums:
    """Return the least sums of products that are 1 in the rows of `ones` and 0 in those of `zeros`; bit r is row r.

    `ValueError` for more than `MAX_VARS` variables or `MAX_PRIMES` prime implicants.
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
    """Return (products, literals) of a greedy sum, an upper bound of the least size."""
    if not ones or not zeros:
        return (int(bool(ones)), 0)
    implicants = useful_primes(num_vars, ones, zeros)
    costs = [p.num_literals for p in implicants]
    chosen = _greedy_cover([p.word & ones for p in implicants], costs, ones)
    return len(chosen), sum(costs[k] for k in chosen)


# --- Prime implicants -------------------------------------------------------------------------------------------------


def useful_primes(num_vars: int, ones: int, zeros: int) -> list[Implicant]:
    """Return the prime implicants that a least sum may have: those whose ones no shorter one covers."""
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
    """Return, for each cube, whether it contains one of the rows; shape [3] * num_vars, axis v is variable v."""
    table = unpack_bits(rows, 1 << num_vars).reshape([2] * num_vars, order="F")
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
    """Return the least covers of the ones, as far as the budget allows.

    Implicants with the same ones and number of literals are interchangeable: they share a MaxSAT variable.
    """
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
    weight = sum(costs) + 1  # one product costs more than all literals together
    with closing(CoreGuided(cnf, budget)) as search:
        for literal, cost in zip(literals, costs, strict=True):
            search.prefer(-literal, weight + cost)
        try:
            model = search.cheapest_model()
        except BudgetSpent:
            greedy = _improve_cover(_greedy_cover(covers, costs, ones), covers, costs, ones)
            size = (len(greedy), sum(costs[k] for k in greedy))
            at_least = min(-(-search.at_least // (weight + max(costs))), len(greedy) - 1)
            return LeastSums(size, at_least, (_join([choices[k][0] for k in greedy]),), is_complete=False)
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
    """Return positions of covers that together cover the ones, each taken for most rows that are still open."""
    chosen = []
    while ones:
        best = max(range(len(covers)), key=lambda k: ((covers[k] & ones).bit_count(), -costs[k]))
        chosen.append(best)
        ones &= ~covers[best]
    return chosen


def _improve_cover(cover: list[int], covers: Sequence[int], costs: Sequence[int], ones: int) -> list[int]:
    """Return a cover that is no larger: replace a few products at a time greedily, drop superfluous ones."""
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


# --- Errors against size of sums of products, each point proven by MaxSAT with a counter of errors --------------------
# A sum chooses products. Rows of one pattern are wrong together; beyond the errors of any function (each pattern's
# minority) a wrong pattern adds its surplus, majority minus minority. From point to point: the least size with fewer
# errors is the optimum of a weighted partial MaxSAT problem; the fewest errors at this size, and all sums that have
# both, follow under the assumption of that optimum.
# Where any number of variables may be mentioned, a product is dropped if another with fewer literals covers no fewer
# ones and no other zeros: it is in no sum on the front.
#
# Source: the errors as a counter over reachable sums, N. Een and N. Sorensson, Translating pseudo-Boolean constraints
# into SAT, 2006.
FRONT_CONFLICTS = 30_000  # conflicts of one front: 2 s on six columns of noise, 10 s on seven
MAX_COUNTS = 100_000  # variables of the error counter: reachable numbers of errors, summed over the rows
MAX_COMPARED = 2_000  # products up to which each is compared with all others


@dataclass(frozen=True)
class SumPoint:
    """A point of the front. size: (products, literals); sums: each as its products."""

    errors: int
    size: tuple[int, int]
    sums: tuple[tuple[Cube, ...], ...]


@dataclass(frozen=True)
class SumFront:
    """Proven points by rising size, and bounds of further points where the budget ended.

    open_points: greedy sums with fewer errors whose size is not proven least, one at each point
    at_least: proven bound of the size of any sum with fewer errors than the points have; None if nothing is open
    """

    points: tuple[SumPoint, ...]
    open_points: tuple[SumPoint, ...] = ()
    at_least: tuple[int, int] | None = None


def front_of_sums(
    num_vars: int,
    rows: Sequence[tuple[int, int, int]],
    max_vars: int,
    *,
    max_errors: int | None = None,
    budget: Budget | None = None,
) -> SumFront:
    """Return the front of all sums of products that mention at most `max_vars` variables.

    rows: triples (row of the truth table, number of its zeros, number of its ones), each row once

    `ValueError` for more than `MAX_VARS` variables.
    """
    if not 0 <= num_vars <= MAX_VARS:
        raise ValueError(f"sums of products of {num_vars} columns are not compared; at most {MAX_VARS} are")
    problem = _Problem(num_vars, rows, max_vars)
    least = problem.base + problem.num_surplus_ones
    points = [] if max_errors is not None and least > max_errors else [SumPoint(least, (0, 0), ((),))]
    fewer = least - 1 if max_errors is None else min(least - 1, max_errors)
    if fewer < problem.base:
        return SumFront(tuple(points))
    search = _Search(problem, fewer - problem.base, budget or Budget(FRONT_CONFLICTS))
    try:
        points.extend(search.points())
    except BudgetSpent:
        fewest = points[-1].errors if points else fewer + 1
        open_points = [p for p in problem.greedy_points() if p.errors < fewest]
        return SumFront(tuple(points), tuple(open_points), search.at_least)
    return SumFront(tuple(points))


class _Problem:
    """Products in groups of equal cover and number of literals, and the surplus of each row of the truth table.

    surplus: row -> majority minus minority, rows with a tie left out; ones: rows that are 1 more often than 0, as bits
    base: errors that every function has; groups: (rows covered, without ties; number of literals) -> cubes
    """

    def __init__(self, num_vars: int, rows: Sequence[tuple[int, int, int]], max_vars: int) -> None:
        self.num_vars, self.max_vars = num_vars, max_vars
        self.surplus = {row: abs(high - low) for row, low, high in rows if high != low}
        self.ones = sum(1 << row for row, low, high in rows if high > low)
        self.base = sum(min(low, high) for _, low, high in rows)
        groups: dict[tuple[int, int], list[Cube]] = {}
        decided = sum(1 << row for row in self.surplus)
        for cube in product((0, 1, 2), repeat=num_vars):
            num_literals = sum(digit != 2 for digit in cube)
            cover = cube_word(cube) & decided
            if num_literals <= max_vars and cover & self.ones:
                groups.setdefault((cover, num_literals), []).append(cube)
        self.groups = {key: groups[key] for key in self._useful(sorted(groups, key=lambda key: (key[1], key[0])))}

    def _useful(self, keys: list[tuple[int, int]]) -> list[tuple[int, int]]:
        """Drop each product if one of fewer literals is at least as good on every row."""
        # not with a bound of variables: the shorter product may mention one that a sum has no room for
        if len(keys) > MAX_COMPARED or self.max_vars < self.num_vars:
            return keys
        useful: list[tuple[int, int]] = []
        for cover, num_literals in keys:
            is_worse = any(
                fewer < num_literals and cover & self.ones & ~rival == 0 and rival & ~self.ones & ~cover == 0
                for rival, fewer in useful
            )
            if not is_worse:
                useful.append((cover, num_literals))
        return useful

    @property
    def num_surplus_ones(self) -> int:
        """Errors of the constant 0 beyond the base."""
        return self.count_surplus(0)

    def count_surplus(self, covered: int) -> int:
        """Return the errors beyond the base of a sum that covers those rows."""
        return sum(errors for row, errors in self.surplus.items() if (covered ^ self.ones) >> row & 1)

    def greedy_points(self) -> list[SumPoint]:
        """Return sums by rising size and falling errors: of any products, or of those that cover ones alone."""
        exact = {key: cubes for key, cubes in self.groups.items() if key[0] & ~self.ones == 0}
        points = [*self._extend_greedily(self.groups), *self._extend_greedily(exact)]
        chosen: list[SumPoint] = []
        for point in sorted(points, key=lambda point: (point.size, point.errors)):
            if not chosen or point.errors < chosen[-1].errors:
                chosen.append(point)
        return chosen

    def _extend_greedily(self, groups: Mapping[tuple[int, int], list[Cube]]) -> Iterator[SumPoint]:
        """Yield sums; each adds to the one before the product that lowers the errors most."""
        covered, errors = 0, self.num_surplus_ones
        chosen: list[Cube] = []
        columns: set[int] = set()
        while errors:
            best: tuple[int, int, int, Cube] | None = None
            for (cover, num_literals), cubes in groups.items():
                key = (self.count_surplus(covered | cover), num_literals, cover)
                if (best is None or key < best[:3]) and key[0] < errors:
                    allowed = [c for c in cubes if len(columns | _mentioned(c)) <= self.max_vars]
                    best = (*key, allowed[0]) if allowed else best
            if best is None:
                return
            errors, covered = best[0], covered | best[2]
            chosen.append(best[3])
            columns |= _mentioned(best[3])
            size = (len(chosen), sum(len(_mentioned(cube)) for cube in chosen))
            yield SumPoint(self.base + errors, size, (tuple(sorted(chosen)),))


def _mentioned(cube: Cube) -> set[int]:
    return {variable for variable, digit in enumerate(cube) if digit != 2}


class _Search:
    """MaxSAT over the products of a problem; at_least: proven lower bound of the size of the next point."""

    def __init__(self, problem: _Problem, max_surplus: int, budget: Budget) -> None:
        self._problem = problem
        self._max_surplus = max_surplus
        self._budget = budget
        self._covers = list(problem.groups)
        # a sum on the front has no more products than rows that are 1
        self._weight = problem.num_vars * problem.ones.bit_count() + 1
        self.at_least = (1, 0)  # size (0, 0) is a point already, or has too many errors

    def points(self) -> Iterator[SumPoint]:
        """Yield the points by rising size; raise `BudgetSpent` where the budget ends."""
        cnf = Cnf()
        self._chosen = [cnf.variable(f"product {k}") for k in range(len(self._covers))]
        self._add_columns(cnf)
        self._counter = self._count_errors(cnf)
        with closing(CoreGuided(cnf, self._budget)) as search:
            for literal, (_, num_literals) in zip(self._chosen, self._covers, strict=True):
                search.prefer(-literal, self._weight + num_literals)
            while True:
                try:
                    model = search.cheapest_model()
                except BudgetSpent:
                    self.at_least = max(self.at_least, divmod(search.at_least, self._weight))
                    raise
                if model is None:
                    return
                self.at_least = divmod(search.at_least, self._weight)
                surplus, sums = self._list_sums(search, model)
                yield SumPoint(self._problem.base + surplus, self.at_least, tuple(sums))
                if not surplus:
                    return
                search.add([-self._counter[surplus]])

    def _list_sums(self, search: CoreGuided, model: set[Literal] | None) -> tuple[int, list[tuple[Cube, ...]]]:
        """Return the fewest errors beyond the base of sums of the least size, and all sums that have them."""
        optimum = search.optimum_assumptions()
        surplus = self._max_surplus + 1
        while model is not None:
            surplus = self._problem.count_surplus(self._cover(model))
            fewer = self._counter.get(surplus)
            model = search.model([*optimum, -fewer]) if fewer is not None else None
        above = [literal for errors, literal in self._counter.items() if errors > surplus]
        # a clause that excludes a listed sum must lapse once fewer errors are demanded: larger sums may contain the sum
        until = [-self._counter[surplus]] if surplus else []
        sums: list[tuple[Cube, ...]] = []
        assumptions = [*optimum, *(-literal for literal in above[:1])]
        while (model := search.model(assumptions)) is not None:
            keys = [key for literal, key in zip(self._chosen, self._covers, strict=True) if literal in model]
            choices = [self._problem.groups[key] for key in keys]
            if len(sums) + prod(map(len, choices)) > MAX_COVERS:
                raise BudgetSpent
            sums += (tuple(sorted(cubes)) for cubes in product(*choices) if self._is_allowed(cubes))
            search.add([*(-literal for literal in self._chosen if literal in model), *until])
        return surplus, sums

    def _is_allowed(self, cubes: Sequence[Cube]) -> bool:
        return len(set[int]().union(*map(_mentioned, cubes))) <= self._problem.max_vars

    def _cover(self, model: set[Literal]) -> int:
        chosen = (cover for literal, (cover, _) in zip(self._chosen, self._covers, strict=True) if literal in model)
        return reduce(or_, chosen, 0)

    def _add_columns(self, cnf: Cnf) -> None:
        """Demand that at most `max_vars` variables are mentioned by some cube of each chosen group."""
        problem = self._problem
        if problem.max_vars >= problem.num_vars:
            return
        mentions = [cnf.variable(f"variable {v}") for v in range(problem.num_vars)]
        for literal, key in zip(self._chosen, self._covers, strict=True):
            cubes = problem.groups[key]
            options = [cnf.variable(f"cube {cube}") for cube in cubes] if len(cubes) > 1 else [literal]
            cnf.add(-literal, *options)
            for option, cube in zip(options, cubes, strict=True):
                for variable in _mentioned(cube):
                    cnf.add(-option, mentions[variable])
        for chosen in combinations(mentions, problem.max_vars + 1):
            cnf.add(*(-literal for literal in chosen))

    def _count_errors(self, cnf: Cnf) -> dict[int, Literal]:
        """Return k -> literal that holds if there are at least k errors beyond the base; k ascending."""
        problem, layer = self._problem, dict[int, Literal]()
        num_counts = 0
        for row in sorted(problem.surplus, key=lambda row: (-problem.surplus[row], row)):
            wrong, errors = cnf.variable(f"row {row} is wrong"), problem.surplus[row]
            covering = [x for x, (cover, _) in zip(self._chosen, self._covers, strict=True) if cover >> row & 1]
            if problem.ones >> row & 1:
                cnf.add(wrong, *covering)
            else:
                for literal in covering:
                    cnf.add(-literal, wrong)
            reachable = sorted({errors, *layer, *(before + errors for before in layer)})
            sums = {k: cnf.variable(f"{k} errors") for k in reachable if k <= self._max_surplus}
            num_counts += len(sums)
            if num_counts > MAX_COUNTS:
                raise BudgetSpent
            cnf.add(-wrong, *([sums[errors]] if errors in sums else []))
            for before, literal in layer.items():
                cnf.add(-literal, sums[before])
                after = sums.get(before + errors)
                cnf.add(-literal, -wrong, *([after] if after else []))
            for (_, low), (_, high) in pairwise(sums.items()):
                cnf.add(-high, low)
            layer = sums
        return layer
