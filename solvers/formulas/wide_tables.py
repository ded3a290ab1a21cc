"""Formulas of tables with many columns: fewest columns that determine a target, bounds of the least size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from calibrant.dsl.formulas.formula import NOT, STANDARD_OPERATORS, Formula, apply, var
from calibrant.dsl.formulas.table import PartialTable, TruthTable, full_mask, pack_bits
from calibrant.solvers.formulas.catalogue import distinct
from calibrant.solvers.formulas.fronts import MAX_CATALOGUE_COLUMNS, U64, Patterns
from calibrant.solvers.formulas.least_formulas import factored_tree, tree_formula
from calibrant.solvers.formulas.minimal_sums import MAX_CONFLICTS as SUM_CONFLICTS
from calibrant.solvers.formulas.minimal_sums import MAX_VARS, least_sums
from calibrant.solvers.formulas.sat_synthesis import SatSynthesis
from calibrant.solvers.formulas.synthesis import formula_for
from calibrant.solvers.outcome import Budget, BudgetSpent

# --- Least sets of columns that determine a target: all smallest hitting sets, counted --------------------------------
# Two rows with different targets have to differ in some column of the set. So the set hits every *pair*: the columns in
# which two such rows differ. The search branches on the columns of a pair not yet hit, and excludes columns tried
# before, so that each set is met once; it prunes where the remaining columns cannot hit all pairs. It holds the pairs
# of few columns, and adds another where a set hits all pairs held but misses that one. Sizes are refuted in ascending
# order, from the number of disjoint pairs on.
MAX_PAIRS = 20_000_000  # pairs of patterns with different targets: 2 s
MAX_NODES = 100_000  # nodes of the search over sets: 3 s
MAX_HELD_PAIRS = 5_000  # pairs that the search holds at first, those of fewest columns
MAX_SETS = 10_000  # smallest sets that are listed


@dataclass(frozen=True)
class NeededColumns:
    """Smallest sets of columns that determine the target.

    at_least: proven lower bound of their size
    number: their size; None if the budget ended first, or no set of columns determines the target
    num_sets: number of sets of that size; sets: the first of them, ascending
    clash: indices of two patterns with the same codes and different targets (or one with both), None without
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
    """Return the smallest sets of columns that determine the target; the rows have no gaps.

    `BudgetSpent` for more than `MAX_PAIRS` pairs of patterns with different targets.
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
    size = search.packing_bound()
    while True:
        try:
            sets = list(search.sets_of(size))
        except BudgetSpent:
            return NeededColumns(size, None)
        if sets:
            return NeededColumns(size, size, len(sets), tuple(sorted(sets)[:MAX_SETS]))
        size += 1


def _pack(codes: np.ndarray) -> U64:
    """Return the different rows as words, bit i is column i."""
    words = np.zeros(len(codes), np.uint64)
    for column in range(codes.shape[1]):
        words |= codes[:, column].astype(np.uint64) << np.uint64(column)
    return distinct(np.sort(words))


def _clash(patterns: Patterns) -> tuple[int, int]:
    """Return two patterns with the same codes and different targets."""
    first: dict[bytes, int] = {}
    for index, codes in enumerate(patterns.codes):
        previous = first.setdefault(codes.tobytes(), index)
        if (patterns.zeros[previous] > 0) != (patterns.zeros[index] > 0):
            return previous, index
    raise AssertionError("no two patterns clash")


def _differences(lows: U64, highs: U64) -> U64:
    """Return the sets of columns in which a row of `lows` and a row of `highs` differ, as words, ascending."""
    merged = np.zeros(0, np.uint64)
    step = max(1, 1_000_000 // max(1, len(highs)))  # 8 MB at a time
    for start in range(0, len(lows), step):
        words = (lows[start : start + step, None] ^ highs[None, :]).ravel()
        merged = distinct(np.sort(np.concatenate((merged, words))))
    return merged


def _narrow_pairs(pairs: U64) -> list[int]:
    """Return the pairs that contain no other one, of the `MAX_HELD_PAIRS` with fewest columns, fewest first."""
    pairs = pairs[np.lexsort((pairs, np.bitwise_count(pairs)))][:MAX_HELD_PAIRS]
    narrow = []
    while len(pairs):
        least = pairs[0]
        narrow.append(int(least))
        pairs = pairs[(pairs & least) != least]
    return narrow


class _HittingSets:
    """Search for sets of columns that hit all pairs.

    pairs: words, bit c is set if the two rows differ in column c
    """

    def __init__(self, pairs: U64, num_columns: int, budget: Budget) -> None:
        self.all_pairs = pairs
        self.budget = budget
        self.pairs = _narrow_pairs(pairs)
        # hits[c]: bit k is 1 where pair k has column c
        self.hits = [sum(1 << k for k, pair in enumerate(self.pairs) if pair >> c & 1) for c in range(num_columns)]

    def packing_bound(self) -> int:
        """Return the size of a greedy packing of disjoint pairs: every hitting set has a column of each."""
        taken = num_disjoint = 0
        for pair in self.pairs:
            if not pair & taken:
                taken |= pair
                num_disjoint += 1
        return num_disjoint

    def sets_of(self, size: int) -> Iterator[tuple[int, ...]]:
        """Yield the hitting sets of that size; requires that none is smaller. `BudgetSpent` if the budget ends."""
        allowed = (1 << len(self.hits)) - 1
        yield from self._extend((1 << len(self.pairs)) - 1, allowed, size, ())

    def _extend(self, unhit: int, allowed: int, remaining: int, chosen: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        """Yield the hitting sets of the chosen columns and up to `remaining` allowed ones, by depth-first search.

        unhit: pairs still to be hit, as bits; allowed: columns that may be added, as bits
        """
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
        num_hits = {c: (self.hits[c] & unhit).bit_count() for c in columns}
        if sum(sorted(num_hits.values())[-remaining:]) < unhit.bit_count():
            return
        pair = self.pairs[(unhit & -unhit).bit_length() - 1] & allowed
        for column in sorted((c for c in columns if pair >> c & 1), key=lambda c: (-num_hits[c], c)):
            yield from self._extend(unhit & ~self.hits[column], allowed, remaining - 1, (*chosen, column))
            allowed &= ~(1 << column)

    def _find_missed(self, chosen: tuple[int, ...]) -> int | None:
        """Add a pair that the set misses to `pairs`, and return its position; None if the set hits all."""
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
# The columns that a formula mentions determine the target; let m be the size of a smallest set that does. For m >= 2 a
# formula has m leaves and an operator, so m + 1 nodes or more; exactly m + 1 only if it is one operator over a smallest
# set, and all these are tried. Larger sizes are refuted by SAT over all columns, as long as the budget lasts.
# Upper bounds are models of SAT, a negated parity, and least sums of products and products of sums over a smallest set.
MAX_COLUMNS = 12  # columns up to which SAT refutes sizes
MAX_CONFLICTS = 100_000  # conflicts of SAT: 1 to 10 s
MAX_BUILT_SETS = 20  # smallest sets over which formulas are built
BOUND_CONFLICTS = 1_000  # of each sum that is only a bound: a tenth of a second


@dataclass(frozen=True)
class WideFormula:
    """Best formula and a proven lower bound.

    at_least: proven lower bound of the least size; reason: proof of the bound, in words
    formula: None if none was built
    """

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
    """Return the least formula that fits all rows and mentions at most `max_parents` columns, or bounds of its size.

    names: column names; best: a least formula over at most `MAX_CATALOGUE_COLUMNS` columns, if there is one
    """
    num_needed = needed.at_least if needed.number is None else needed.number
    # a formula over more columns has more than MAX_CATALOGUE_COLUMNS leaves and an operator
    if best is not None and best.size <= MAX_CATALOGUE_COLUMNS + 2:
        return WideFormula(best.size, f"formulas of more columns than {MAX_CATALOGUE_COLUMNS} are no smaller", best)
    if num_needed < 2 or needed.number is None:
        return WideFormula(num_needed + 1, f"{num_needed} columns are needed", best)
    at_least, reason = num_needed + 1, f"{num_needed} columns are needed"
    single = [formula for s in needed.sets for formula in _single_operators(patterns, s, names)]
    if single:
        return WideFormula(at_least, reason, _smallest(single, best))
    if needed.num_sets <= MAX_SETS:
        at_least, reason = num_needed + 2, f"{reason}, and no operator over {num_needed} fits"
    if best is not None:  # a smaller formula has more columns than `best` may have
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
    if best is None and num_needed <= max_parents:
        best = best_known_formula(patterns, needed, names)
    return WideFormula(at_least, reason, best)


def count_wide_functions(patterns: Patterns, max_parents: int) -> int:
    """Count the functions of at most `max_parents` columns that agree with all rows.

    Over a set of columns 2**(patterns that do not occur) functions agree, or none. Those that depend on all of the set
    follow by Moebius inversion over its subsets. Time and memory grow as 2**num_columns.
    """
    num_columns = patterns.num_columns
    exact = [0] * (1 << num_columns)
    for mask in range(1 << num_columns):
        columns = [c for c in range(num_columns) if mask >> c & 1]
        if len(columns) <= max_parents:
            exact[mask] = _num_agreeing(patterns, columns)
    for column in range(num_columns):
        for mask in range(1 << num_columns):
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
    """Yield the formulas of one operator over all columns of a set that fit all rows."""
    for operator in STANDARD_OPERATORS:
        formula = None if operator == NOT.name else apply(operator, [var(names[c]) for c in columns])
        if formula is not None and _fits(patterns, formula, names):
            yield formula


def _fits(patterns: Patterns, formula: Formula, names: Sequence[str]) -> bool:
    """Return whether a formula has the target's value on all patterns."""
    columns = {name: pack_bits(patterns.codes[:, c] == 1) for c, name in enumerate(names)}
    mask = (1 << len(patterns.codes)) - 1
    value = formula.evaluate(columns.__getitem__, mask)
    return not value & pack_bits(patterns.zeros > 0) and not ~value & pack_bits(patterns.ones > 0)


def _partial_table(patterns: Patterns, columns: Sequence[int] | None = None) -> PartialTable:
    """Return the patterns as a partial truth table over some columns, or all."""
    chosen = list(range(patterns.num_columns)) if columns is None else list(columns)
    rows = patterns.codes[:, chosen].astype(np.int64) @ (1 << np.arange(len(chosen), dtype=np.int64))
    ones = sum(1 << int(row) for row in np.unique(rows[patterns.ones > 0]))
    zeros = sum(1 << int(row) for row in np.unique(rows[patterns.zeros > 0]))
    return PartialTable(len(chosen), ones | zeros, ones)


def best_known_formula(patterns: Patterns, needed: NeededColumns, names: Sequence[str]) -> Formula | None:
    """Return the smallest formula that `build_formulas` has over the first smallest sets of columns; None without."""
    sets = needed.sets[:MAX_BUILT_SETS]
    formulas = [f for s in sets for f in build_formulas(patterns, s, names, BOUND_CONFLICTS)]
    return min(formulas, key=lambda f: (f.size, str(f)), default=None)


def build_formulas(
    patterns: Patterns, columns: Sequence[int], names: Sequence[str], max_conflicts: int = SUM_CONFLICTS
) -> Iterator[Formula]:
    """Yield formulas over a set of columns that fit all rows.

    From a least sum of products and a least product of sums: as it is, factored, and the least formula of its function;
    and a negated parity.
    """
    chosen_names = [names[c] for c in columns]
    if len(columns) <= MAX_VARS:
        table = _partial_table(patterns, columns)
        zeros, ones = table.care & ~table.value, table.value
        for is_dual, off_rows, on_rows in ((False, zeros, ones), (True, ones, zeros)):
            sums = least_sums(len(columns), on_rows, off_rows, max_conflicts)
            tree, word = sums.trees(is_dual=is_dual)[0]
            yield tree_formula(tree, chosen_names)
            if off_rows and on_rows:
                yield tree_formula(factored_tree(sums.sums[0][0], dual=is_dual), chosen_names)
            if len(columns) <= MAX_CATALOGUE_COLUMNS:
                bits = full_mask(len(columns)) & ~word if is_dual else word
                yield formula_for(TruthTable(len(columns), bits), chosen_names, STANDARD_OPERATORS)
    if len(columns) < 2:
        return
    parity = apply("not", [apply("xor", [var(name) for name in chosen_names])])
    if _fits(patterns, parity, names):
        yield parity
