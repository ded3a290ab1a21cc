"""Formulas of tables with many columns: fewest columns that determine a target, bounds of the least formula."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from calibrant.dsl.formulas.formula import NOT, STANDARD_OPERATORS, Formula, apply, var
from calibrant.dsl.formulas.table import PartialTable, TruthTable, full_mask, pack_bits
from calibrant.solvers.formulas.fronts import MAX_CATALOGUE_COLUMNS, U64, Patterns
from calibrant.solvers.formulas.least_formulas import factored_tree, tree_formula
from calibrant.solvers.formulas.minimal_sums import MAX_CONFLICTS as SUM_CONFLICTS
from calibrant.solvers.formulas.minimal_sums import MAX_VARS, least_sums
from calibrant.solvers.formulas.sat_synthesis import SatSynthesis
from calibrant.solvers.formulas.synthesis import formula_for
from calibrant.solvers.outcome import Budget, BudgetSpent

# --- Least sets of columns that determine a target: all smallest hitting sets, counted --------------------------------
# Two rows with different targets have to differ in some column of the set: so the set hits, for every such pair, the
# columns in which the two differ. The search branches on an open pair, the columns tried before excluded, so that each
# set is met once; it ends where the columns that remain cannot hit the open pairs. It holds pairs of few columns, and
# adds others where a set hits all that it holds and misses one. Sizes are refuted one after another, from a packing of
# disjoint pairs on.
MAX_PAIRS = 20_000_000  # pairs of patterns with different targets: 2 s
MAX_NODES = 100_000  # nodes of the search over sets: 3 s
MAX_HELD_PAIRS = 5_000  # pairs of fewest columns, those that contain no other
MAX_SETS = 10_000  # smallest sets that are held


@dataclass(frozen=True)
class NeededColumns:
    """Smallest sets of columns that determine the target.

    at_least: proven bound of their size; number: the size, None if the budget ended first or no set determines it
    num_sets: how many sets have that size; sets: the first of them, ascending; clash: two patterns that no set parts
    """

    at_least: int
    number: int | None
    num_sets: int = 0
    sets: tuple[tuple[int, ...], ...] = ()
    clash: tuple[int, int] | None = None

    @property
    def is_proven(self) -> bool:
        return self.number is not None or self.clash is not None


def find_needed_columns(patterns: Patterns, budget: Budget | None = None) -> NeededColumns:
    """Return the smallest sets of columns that determine the target, of rows without gaps.

    `BudgetSpent` if there are more pairs of patterns than are compared
    """
    clashes = np.flatnonzero((patterns.zeros > 0) & (patterns.ones > 0))
    if len(clashes):
        return NeededColumns(patterns.num_columns + 1, None, clash=(int(clashes[0]), int(clashes[0])))
    lows, highs = patterns.codes[patterns.zeros > 0], patterns.codes[patterns.ones > 0]
    if len(lows) * len(highs) > MAX_PAIRS:
        raise BudgetSpent
    pairs = _differences(_pack(lows), _pack(highs))
    if len(pairs) and pairs[0] == 0:
        return NeededColumns(patterns.num_columns + 1, None, clash=_clash(patterns))
    search = _HittingSets(pairs, patterns.num_columns, budget or Budget(MAX_NODES))
    number = search.packing_bound()
    while True:
        try:
            sets = list(search.sets_of(number))
        except BudgetSpent:
            return NeededColumns(number, None)
        if sets:
            return NeededColumns(number, number, len(sets), tuple(sorted(sets)[:MAX_SETS]))
        number += 1


def _pack(codes: np.ndarray) -> U64:
    words = np.zeros(len(codes), np.uint64)
    for column in range(codes.shape[1]):
        words |= codes[:, column].astype(np.uint64) << np.uint64(column)
    return np.unique(words)


def _clash(patterns: Patterns) -> tuple[int, int]:
    """Return two patterns with the same codes and different targets."""
    first: dict[bytes, int] = {}
    for index, codes in enumerate(patterns.codes):
        previous = first.setdefault(codes.tobytes(), index)
        if (patterns.zeros[previous] > 0) != (patterns.zeros[index] > 0):
            return previous, index
    raise AssertionError("no two patterns clash")


def _differences(lows: U64, highs: U64) -> U64:
    """Return the different sets of columns in which a row of each kind differ, ascending."""
    merged = np.zeros(0, np.uint64)
    step = max(1, 1_000_000 // max(1, len(highs)))
    for start in range(0, len(lows), step):
        words = (lows[start : start + step, None] ^ highs[None, :]).ravel()
        merged = np.union1d(merged, words)
    return merged


def _narrow_pairs(pairs: U64) -> list[int]:
    """Return pairs of few columns that contain no other one, fewest columns first."""
    pairs = pairs[np.lexsort((pairs, np.bitwise_count(pairs)))][:MAX_HELD_PAIRS]
    narrow = []
    while len(pairs):
        least = pairs[0]
        narrow.append(int(least))
        pairs = pairs[(pairs & least) != least]
    return narrow


class _HittingSets:
    """Sets of columns that hit all pairs. pairs: as bits of columns."""

    def __init__(self, pairs: U64, num_columns: int, budget: Budget) -> None:
        self.all_pairs = pairs
        self.budget = budget
        self.pairs = _narrow_pairs(pairs)
        # hits[c]: bit k is 1 where pair k has column c
        self.hits = [sum(1 << k for k, pair in enumerate(self.pairs) if pair >> c & 1) for c in range(num_columns)]

    def packing_bound(self) -> int:
        """Return the number of disjoint pairs that are met in order."""
        taken = number = 0
        for pair in self.pairs:
            if not pair & taken:
                taken |= pair
                number += 1
        return number

    def sets_of(self, size: int) -> Iterator[tuple[int, ...]]:
        """Yield the hitting sets of that size, if none is smaller; `BudgetSpent` if it ends first."""
        allowed = (1 << len(self.hits)) - 1
        yield from self._extend((1 << len(self.pairs)) - 1, allowed, size, ())

    def _extend(self, unhit: int, allowed: int, remaining: int, chosen: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        self.budget.spend(1)
        if not unhit:
            missed = self._find_missed(chosen)
            if missed is None:
                yield tuple(sorted(chosen))
                return
            unhit = 1 << missed
        if not remaining:
            return
        columns = [c for c in range(len(self.hits)) if allowed >> c & 1]
        numbers = {c: (self.hits[c] & unhit).bit_count() for c in columns}
        if sum(sorted(numbers.values())[-remaining:]) < unhit.bit_count():
            return
        pair = self.pairs[(unhit & -unhit).bit_length() - 1] & allowed
        for column in sorted((c for c in columns if pair >> c & 1), key=lambda c: (-numbers[c], c)):
            yield from self._extend(unhit & ~self.hits[column], allowed, remaining - 1, (*chosen, column))
            allowed &= ~(1 << column)

    def _find_missed(self, chosen: tuple[int, ...]) -> int | None:
        """Return the position of a pair that a set misses, added to those that are held; None if it hits all."""
        columns = np.uint64(sum(1 << c for c in chosen))
        missed = np.flatnonzero((self.all_pairs & columns) == 0)
        if not len(missed):
            return None
        words = self.all_pairs[missed]
        pair = int(words[np.argmin(np.bitwise_count(words))])
        for column in range(len(self.hits)):
            self.hits[column] |= (pair >> column & 1) << len(self.pairs)
        self.pairs.append(pair)
        return len(self.pairs) - 1


# --- Least formulas of more columns than catalogues have: bounds from both sides, proven where they meet --------------
# A formula mentions a set of columns that determines the target, so at least as many as the smallest such set has, m.
# With m >= 2 it has m leaves and an operator, so m + 1 nodes; just as many only if it is one operator over a smallest
# set, which is tried. Sizes from there on are refuted by SAT over all columns, as long as the budget lasts. Bounds from
# above are models of SAT, a negated parity, and least sums of products and products of sums over a smallest set.
MAX_COLUMNS = 12  # over which SAT refutes sizes
MAX_CONFLICTS = 100_000  # 1 to 10 s
FEW_SETS = 20  # smallest sets over which formulas are built
BOUND_CONFLICTS = 1_000  # of each sum that is only a bound: a tenth of a second


@dataclass(frozen=True)
class WideFormula:
    """Best formula, None without one. at_least: proven bound of the size; reason: of the bound, in words."""

    at_least: int
    reason: str
    formula: Formula | None

    @property
    def is_proven(self) -> bool:
        return self.formula is not None and self.formula.size == self.at_least


def find_wide_formula(
    patterns: Patterns,
    needed: NeededColumns,
    names: Sequence[str],
    max_parents: int,
    *,
    best: Formula | None = None,
    budget: Budget | None = None,
) -> WideFormula:
    """Return the least formula that fits all rows and mentions at most so many columns, or bounds of its size.

    names: of the columns; best: a least formula of at most `MAX_CATALOGUE_COLUMNS` columns, where there is one
    """
    number = needed.at_least if needed.number is None else needed.number
    if best is not None and best.size <= MAX_CATALOGUE_COLUMNS + 2:
        return WideFormula(best.size, f"formulas of more columns than {MAX_CATALOGUE_COLUMNS} are no smaller", best)
    if number < 2 or needed.number is None:
        return WideFormula(number + 1, f"{number} columns are needed", best)
    at_least, reason = number + 1, f"{number} columns are needed"
    single = [formula for s in needed.sets for formula in _single_operators(patterns, s, names)]
    if single:
        return WideFormula(at_least, reason, _smallest(single, best))
    if needed.num_sets <= MAX_SETS:
        at_least, reason = number + 2, f"{reason}, and no operator over {number} fits"
    if best is not None:  # the least of few columns: smaller ones mention more
        at_least = max(at_least, MAX_CATALOGUE_COLUMNS + 2)
    if patterns.num_columns <= MAX_COLUMNS:
        search = SatSynthesis(_partial_table(patterns), names)
        search.lower_bound = at_least
        try:
            spending, formula = budget or Budget(MAX_CONFLICTS), None
            while formula is None and (best is None or search.lower_bound < best.size):
                formula = search.advance(spending)
        except BudgetSpent:
            formula = None
        if search.lower_bound > at_least:
            at_least, reason = search.lower_bound, f"{reason}; size {search.lower_bound - 1} refuted by SAT"
        if formula is not None and len(formula.mentioned) <= max_parents:
            return WideFormula(formula.size, reason, formula)
    if best is None and number <= max_parents:
        best = best_known_formula(patterns, needed, names)
    return WideFormula(at_least, reason, best)


def count_wide_functions(patterns: Patterns, max_parents: int) -> int:
    """Return how many functions of at most so many columns agree with all rows, of tables of up to `MAX_COLUMNS`.

    Over a set of columns 2**(patterns that do not occur) functions agree, or none; those that depend on all of the set
    follow by Moebius inversion over its subsets
    """
    number = patterns.num_columns
    exact = [0] * (1 << number)
    for mask in range(1 << number):
        columns = [c for c in range(number) if mask >> c & 1]
        if len(columns) <= max_parents:
            exact[mask] = _num_agreeing(patterns, columns)
    for column in range(number):
        for mask in range(1 << number):
            if mask >> column & 1 and mask.bit_count() <= max_parents:
                exact[mask] -= exact[mask ^ 1 << column]
    return sum(exact)


def _num_agreeing(patterns: Patterns, columns: Sequence[int]) -> int:
    rows = patterns.codes[:, list(columns)].astype(np.int64) @ (1 << np.arange(len(columns), dtype=np.int64))
    zeros = np.bincount(rows, patterns.zeros, minlength=1 << len(columns)) > 0
    ones = np.bincount(rows, patterns.ones, minlength=1 << len(columns)) > 0
    return 0 if bool((zeros & ones).any()) else 1 << int((~(zeros | ones)).sum())


def _smallest(formulas: Sequence[Formula], best: Formula | None) -> Formula:
    return min([*formulas, *([] if best is None else [best])], key=lambda f: (f.size, str(f)))


def _single_operators(patterns: Patterns, columns: Sequence[int], names: Sequence[str]) -> Iterator[Formula]:
    """Yield the operators over a set of columns that fit."""
    for operator in STANDARD_OPERATORS:
        formula = None if operator == NOT.name else apply(operator, [var(names[c]) for c in columns])
        if formula is not None and _fits(patterns, formula, names):
            yield formula


def _fits(patterns: Patterns, formula: Formula, names: Sequence[str]) -> bool:
    """Return whether a formula gives the target of all patterns."""
    columns = {name: pack_bits(patterns.codes[:, c] == 1) for c, name in enumerate(names)}
    mask = (1 << len(patterns.codes)) - 1
    value = formula.evaluate(columns.__getitem__, mask)
    return not value & pack_bits(patterns.zeros > 0) and not ~value & pack_bits(patterns.ones > 0)


def _partial_table(patterns: Patterns, columns: Sequence[int] | None = None) -> PartialTable:
    """Return the rows of a table that are determined, over some columns or all."""
    chosen = list(range(patterns.num_columns)) if columns is None else list(columns)
    rows = patterns.codes[:, chosen].astype(np.int64) @ (1 << np.arange(len(chosen), dtype=np.int64))
    ones = sum(1 << int(row) for row in np.unique(rows[patterns.ones > 0]))
    zeros = sum(1 << int(row) for row in np.unique(rows[patterns.zeros > 0]))
    return PartialTable(len(chosen), ones | zeros, ones)


def best_known_formula(patterns: Patterns, needed: NeededColumns, names: Sequence[str]) -> Formula | None:
    """Return the smallest of the formulas that are built over the first smallest sets of columns."""
    sets = needed.sets[:FEW_SETS]
    formulas = [f for s in sets for f in build_formulas(patterns, s, names, BOUND_CONFLICTS)]
    return min(formulas, key=lambda f: (f.size, str(f)), default=None)


def build_formulas(
    patterns: Patterns, columns: Sequence[int], names: Sequence[str], max_conflicts: int = SUM_CONFLICTS
) -> Iterator[Formula]:
    """Yield formulas over a set of columns: from a least sum and a least product of sums, and a negated parity."""
    own_names = [names[c] for c in columns]
    if len(columns) <= MAX_VARS:
        table = _partial_table(patterns, columns)
        zeros, ones = table.care & ~table.value, table.value
        for is_dual, low, high in ((False, zeros, ones), (True, ones, zeros)):
            sums = least_sums(len(columns), high, low, max_conflicts)
            tree, word = sums.trees(is_dual=is_dual)[0]
            yield tree_formula(tree, own_names)
            if low and high:
                yield tree_formula(factored_tree(sums.sums[0][0], dual=is_dual), own_names)
            if len(columns) <= MAX_CATALOGUE_COLUMNS:
                bits = full_mask(len(columns)) & ~word if is_dual else word
                yield formula_for(TruthTable(len(columns), bits), own_names, STANDARD_OPERATORS)
    if len(columns) < 2:
        return
    parity = apply("not", [apply("xor", [var(name) for name in own_names])])
    if _fits(patterns, parity, names):
        yield parity
