"""Functions of uncertain rows: rows with gaps, whose completion is unknown, and a target flipped at an unknown rate."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import reduce
from itertools import combinations
from math import comb
from operator import or_
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from calibrant.solvers.acyclic.count import Bounds
from calibrant.solvers.formulas.fronts import Patterns, all_supports, cube_rows, functions_of, minority_counts
from calibrant.solvers.formulas.least_formulas import NUM_VARS
from calibrant.solvers.outcome import Budget, BudgetSpent

# --- Functions of one column on rows with gaps: how many may fit, and how many must -----------------------------------
# A row with gaps is a cube of the truth table. A function may fit if in every row some completion of the gaps gives the
# target's value, and must fit if every completion does; gaps of different rows are independent, so this holds of the
# whole table too. The functions that may fit are the assignments of 2**inputs bits that satisfy one clause for each
# row. They are counted by propagation, independent components and branching. A function fits over a set of columns iff
# it fits over those that it depends on, so functions that depend on all follow by Moebius inversion over subsets.
MAX_BRANCHES = 20_000  # of all counts of a column together: half a second
EXACT_INPUTS = 4  # inputs up to which branches are not budgeted: at most 2**16 assignments


class Clauses(NamedTuple):
    """Clauses over the bits of a truth table, as masks of bits; a mask of 0 cannot be satisfied.

    ones: in each mask some bit is 1; zeros: in each mask some bit is 0
    """

    ones: frozenset[int]
    zeros: frozenset[int]


def clauses_of(patterns: Patterns, chosen: tuple[int, ...]) -> Clauses:
    """Return the clauses that a function of these columns satisfies iff it may fit the rows."""
    cubes, zeros, ones = patterns.merge(chosen)
    rows = [cube_rows(cube, len(chosen)) for cube in cubes.tolist()]
    return Clauses(
        frozenset(mask for mask, count in zip(rows, ones.tolist(), strict=True) if count),
        frozenset(mask for mask, count in zip(rows, zeros.tolist(), strict=True) if count),
    )


def count_must(clauses: Clauses, num_bits: int) -> int:
    """Return the number of functions that have the target's value on every completion."""
    ones, zeros = reduce(or_, clauses.ones, 0), reduce(or_, clauses.zeros, 0)
    return 0 if ones & zeros else 1 << num_bits - (ones | zeros).bit_count()


@dataclass
class AssignmentCounter:
    """Counter of satisfying assignments within a budget of branches; equal components are counted once."""

    budget: Budget
    _counts: dict[Clauses, Bounds] = field(default_factory=dict)

    def count(self, clauses: Clauses, bits: int) -> Bounds:
        """Count the assignments of `bits` (a mask) that satisfy the clauses; bounds where the budget is spent."""
        reduced = propagate(clauses, bits)
        if reduced is None:
            return Bounds(0, 0)
        clauses, bits, _ = reduced
        lower = upper = 1 << (bits & ~reduce(or_, clauses.ones | clauses.zeros, 0)).bit_count()
        for component in _components(clauses):
            count = self._count_component(component)
            lower, upper = lower * count.lower, upper * count.upper
        return Bounds(lower, upper)

    def _count_component(self, clauses: Clauses) -> Bounds:
        """Return `count` for clauses that are connected, over the bits that they mention; proven counts are cached."""
        if clauses in self._counts:
            return self._counts[clauses]
        masks = [*clauses.ones, *clauses.zeros]
        bits = reduce(or_, masks)
        try:
            self.budget.spend(1)
        except BudgetSpent:
            width, shortest = bits.bit_count(), min(mask.bit_count() for mask in masks)
            # lower bound: clauses of one kind have a solution; upper: the shortest clause excludes one in 2**shortest
            return Bounds(int(not clauses.ones or not clauses.zeros), (1 << width) - (1 << width - shortest))
        bit = _most_frequent_bit(masks, bits)
        if_one = self.count(_assign(clauses, bit, 0), bits & ~bit)
        if_zero = self.count(_assign(clauses, 0, bit), bits & ~bit)
        count = self._counts[clauses] = Bounds(if_one.lower + if_zero.lower, if_one.upper + if_zero.upper)
        return count


def propagate(clauses: Clauses, bits: int) -> tuple[Clauses, int, int] | None:
    """Assign the bits that unit clauses fix; return the remaining clauses, the free bits, and the bits set to 1.

    None if the clauses contradict each other. A clause that contains another one is left out.
    """
    true = 0
    while True:
        high = reduce(or_, (mask for mask in clauses.ones if mask & (mask - 1) == 0), 0)
        low = reduce(or_, (mask for mask in clauses.zeros if mask & (mask - 1) == 0), 0)
        if high & low or 0 in clauses.ones or 0 in clauses.zeros:
            return None
        if not high | low:
            return Clauses(_least_masks(clauses.ones), _least_masks(clauses.zeros)), bits, true
        clauses, bits, true = _assign(clauses, high, low), bits & ~(high | low), true | high


def _assign(clauses: Clauses, high: int, low: int) -> Clauses:
    """Return the remaining clauses once the bits of `high` are 1 and those of `low` are 0."""
    return Clauses(
        frozenset(mask & ~low for mask in clauses.ones if not mask & high),
        frozenset(mask & ~high for mask in clauses.zeros if not mask & low),
    )


def _least_masks(masks: frozenset[int]) -> frozenset[int]:
    """Return the masks that contain no other."""
    least: list[int] = []
    for mask in sorted(masks, key=int.bit_count):
        if not any(smaller & ~mask == 0 for smaller in least):
            least.append(mask)
    return frozenset(least)


def _components(clauses: Clauses) -> list[Clauses]:
    """Split the clauses into components that share no bits."""
    components: list[tuple[int, set[int], set[int]]] = []
    for is_one, masks in ((True, clauses.ones), (False, clauses.zeros)):
        for mask in masks:
            ones, zeros = ({mask}, set[int]()) if is_one else (set[int](), {mask})
            union = mask
            disjoint = []
            for bits, its_ones, its_zeros in components:
                if bits & mask:
                    union, ones, zeros = union | bits, ones | its_ones, zeros | its_zeros
                else:
                    disjoint.append((bits, its_ones, its_zeros))
            components = [*disjoint, (union, ones, zeros)]
    return [Clauses(frozenset(ones), frozenset(zeros)) for _, ones, zeros in components]


def _most_frequent_bit(masks: Iterable[int], bits: int) -> int:
    """Return the bit that most masks contain, as a mask; the lowest in a tie."""
    masks = list(masks)
    single = [1 << index for index in range(bits.bit_length()) if bits >> index & 1]
    return max(single, key=lambda bit: (sum(1 for mask in masks if mask & bit), -bit))


def list_assignments(clauses: Clauses, num_bits: int, budget: Budget) -> Iterator[int]:
    """Yield the truth tables that satisfy the clauses; a step of the search or a table costs one unit of the budget."""
    yield from _list_from(clauses, (1 << num_bits) - 1, 0, budget)


def _list_from(clauses: Clauses, bits: int, true: int, budget: Budget) -> Iterator[int]:
    """Yield the assignments of `bits` that satisfy the clauses, each with the bits `true`, which are 1 already."""
    budget.spend(1)
    reduced = propagate(clauses, bits)
    if reduced is None:
        return
    clauses, bits, fixed = reduced
    true |= fixed
    if not clauses.ones and not clauses.zeros:
        budget.spend(1 << bits.bit_count())
        chosen = 0
        while True:  # subsets of the free bits
            yield true | chosen
            chosen = (chosen - bits) & bits
            if not chosen:
                return
    bit = _most_frequent_bit([*clauses.ones, *clauses.zeros], bits)
    yield from _list_from(_assign(clauses, bit, 0), bits & ~bit, true | bit, budget)
    yield from _list_from(_assign(clauses, 0, bit), bits & ~bit, true, budget)


@dataclass(frozen=True)
class CompletionCounts:
    """Numbers of functions of at most `max_parents` columns, by the columns that they depend on.

    may, must: columns -> number of functions that may, must fit; sets for which it is surely 0 are left out
    may_total, must_total: over all sets together
    """

    max_parents: int
    may: Mapping[tuple[int, ...], Bounds]
    must: Mapping[tuple[int, ...], int]
    may_total: Bounds
    must_total: int


def count_functions(patterns: Patterns, max_parents: int) -> CompletionCounts:
    """Count the functions that may and must fit, by exact set of columns.

    Exact up to `EXACT_INPUTS` inputs, above while `MAX_BRANCHES` last.
    """
    num_columns = patterns.num_columns
    counter, free_counter = AssignmentCounter(Budget(MAX_BRANCHES)), AssignmentCounter(Budget(None))
    over: dict[tuple[int, ...], Bounds] = {}  # functions over a set, whichever of its columns they depend on
    must_over: dict[tuple[int, ...], Bounds] = {}
    for size in range(min(max_parents, num_columns) + 1):
        num_bits = 1 << size
        sets = list(combinations(range(num_columns), size))
        for chosen, num_contradictions in zip(sets, minority_counts(patterns, sets).tolist(), strict=True):
            if num_contradictions:
                over[chosen] = must_over[chosen] = Bounds(0, 0)
                continue
            clauses = clauses_of(patterns, chosen)
            chosen_counter = free_counter if size <= EXACT_INPUTS else counter
            over[chosen] = chosen_counter.count(clauses, (1 << num_bits) - 1)
            num_must = count_must(clauses, num_bits)
            must_over[chosen] = Bounds(num_must, num_must)
    may = {chosen: _count_essential(chosen, over) for chosen in over}
    must = {chosen: _count_essential(chosen, must_over).lower for chosen in must_over}
    # of the inclusion-exclusion sums of all sets, each count is bounded once, with its total factor: tighter bounds
    terms = [(_total_factor(num_columns, max_parents, len(chosen)), count) for chosen, count in over.items()]
    return CompletionCounts(
        max_parents,
        {chosen: count for chosen, count in may.items() if count.upper},
        {chosen: count for chosen, count in must.items() if count},
        _signed_sum(terms),
        sum(must.values()),
    )


def _count_essential(chosen: tuple[int, ...], over: Mapping[tuple[int, ...], Bounds]) -> Bounds:
    """Return the number of functions that depend on all of a set of columns."""
    size = len(chosen)
    return _signed_sum(
        [((-1) ** (size - k), over[subset]) for k in range(size + 1) for subset in combinations(chosen, k)]
    )


def _total_factor(num_columns: int, max_parents: int, size: int) -> int:
    """Return the factor of a set's functions, over `size` columns, in the sum of `_count_essential` over all sets."""
    widest = min(max_parents, num_columns)
    return sum((-1) ** k * comb(num_columns - size, k) for k in range(widest - size + 1))


def _signed_sum(terms: Iterable[tuple[int, Bounds]]) -> Bounds:
    """Return the bounds of a sum of counts with integer factors; the sum is known to be at least 0."""
    lower = upper = 0
    for factor, count in terms:
        lower += factor * (count.lower if factor > 0 else count.upper)
        upper += factor * (count.upper if factor > 0 else count.lower)
    return Bounds(max(lower, 0), max(upper, 0))


# --- A target that is a function of some columns, flipped with an unknown rate: exact posteriors over functions and
# rates
#
# For a set S of columns, the probability of the rows summed over all functions of S is a product over patterns: a
# pattern with a rows of 0 and b rows of 1 contributes r**b (1-r)**a (the function is 0 there) plus r**a (1-r)**b.
# Functions that depend on exactly S follow by Moebius inversion over the subsets. Functions are enumerated only to find
# the most probable ones.
Prior: TypeAlias = Literal["uniform", "by_parents"]
Columns: TypeAlias = tuple[int, ...]
MAX_PREDICTED = 6  # columns up to which every pattern is predicted: 64 patterns


def num_functions(num_columns: int) -> int:
    """Return how many functions depend on all of `num_columns` columns: 2, 2, 10, 218, 64594, ..."""
    return sum((-1) ** (num_columns - k) * comb(num_columns, k) * 2 ** (2**k) for k in range(num_columns + 1))


@dataclass(frozen=True)
class RatePosterior:
    """Posterior probabilities, as exact fractions.

    num_functions: size of the class; evidence: probability of the rows
    rates: rate -> posterior; parents: set of columns -> posterior that the function depends on exactly these
    arcs: posterior that the function depends on each column
    best: the most probable functions (columns, truth table over these), those of up to four columns
    best_posterior: posterior of each of them
    predictions: pattern -> probability of target 1, flips included; empty for more than `MAX_PREDICTED` columns
    """

    num_functions: int
    evidence: Fraction
    rates: Mapping[Fraction, Fraction]
    parents: Mapping[Columns, Fraction]
    arcs: tuple[Fraction, ...]
    best: tuple[tuple[Columns, int], ...]
    best_posterior: Fraction
    predictions: Mapping[tuple[int, ...], Fraction]


def posterior_of_rates(
    patterns: Patterns, max_parents: int, rates: Sequence[tuple[Fraction, Fraction]], prior: Prior
) -> RatePosterior:
    """Return the posteriors; rates: pairs (rate, prior).

    `ValueError` if the rows are impossible under every rate and function.
    """
    num_columns = patterns.num_columns
    sets = [s for k in range(min(max_parents, num_columns) + 1) for s in combinations(range(num_columns), k)]
    sizes = {s: num_functions(len(s)) for s in sets}
    total = sum(sizes.values())
    weights = {s: Fraction(1, total if prior == "uniform" else comb(num_columns, len(s)) * sizes[s]) for s in sets}
    scale = sum((weights[s] * sizes[s] for s in sets), Fraction(0))
    weights = {s: weight / scale for s, weight in weights.items()}
    mass = {(s, rate): p * _sum_of_functions(patterns, s, rate, None) for s in sets for rate, p in rates}
    exact = _exact_sums(mass, sets, [rate for rate, _ in rates])
    joint = {(s, rate): weights[s] * exact[s, rate] for s in sets for rate, _ in rates}
    evidence = sum(joint.values(), Fraction(0))
    if not evidence:
        raise ValueError("the rows are impossible under every rate and function of the class")
    of_rate = {rate: sum(joint[s, rate] for s in sets) / evidence for rate, _ in rates}
    of_parents = {s: sum((joint[s, rate] for rate, _ in rates), Fraction(0)) / evidence for s in sets}
    arcs = tuple(sum((p for s, p in of_parents.items() if v in s), Fraction(0)) for v in range(num_columns))
    best, best_weight = _most_probable(patterns, sets, weights, rates)
    predictions = {}
    if num_columns <= MAX_PREDICTED:
        for row in range(1 << num_columns):
            pattern = tuple(row >> k & 1 for k in range(num_columns))
            predictions[pattern] = _predict(patterns, sets, weights, rates, pattern, joint) / evidence
    return RatePosterior(total, evidence, of_rate, of_parents, arcs, best, best_weight / evidence, predictions)


def _sum_of_functions(patterns: Patterns, s: Columns, rate: Fraction, one_at: int | None) -> Fraction:
    """Return the probability of the rows, summed over all functions of s, or over those that are 1 in row `one_at`."""
    cubes, zeros, ones = patterns.merge(s)
    result = Fraction(1)
    positions = {_row_of(cube, len(s)): index for index, cube in enumerate(cubes.tolist())}
    for row, index in positions.items():
        num_zeros, num_ones = int(zeros[index]), int(ones[index])
        if_one = rate**num_zeros * (1 - rate) ** num_ones
        result *= if_one + (0 if row == one_at else rate**num_ones * (1 - rate) ** num_zeros)
    unseen = (1 << len(s)) - len(positions) - (one_at is not None and one_at not in positions)
    return result * Fraction(2) ** int(unseen)


def _row_of(cube: int, num_columns: int) -> int:
    """Return the row of a cube without gaps, base 3 to base 2."""
    row = 0
    for column in range(num_columns):
        cube, digit = divmod(cube, 3)
        row |= digit << column
    return row


def _exact_sums(
    mass: Mapping[tuple[Columns, Fraction], Fraction], sets: Sequence[Columns], rates: Sequence[Fraction]
) -> dict[tuple[Columns, Fraction], Fraction]:
    """Return, for each set and rate, the sum over the functions that depend on all columns of the set."""
    exact: dict[tuple[Columns, Fraction], Fraction] = {}
    for s in sets:
        for rate in rates:
            smaller = (t for k in range(len(s)) for t in combinations(s, k))
            exact[s, rate] = mass[s, rate] - sum((exact[t, rate] for t in smaller), Fraction(0))
    return exact


def _predict(
    patterns: Patterns,
    sets: Sequence[Columns],
    weights: Mapping[Columns, Fraction],
    rates: Sequence[tuple[Fraction, Fraction]],
    pattern: tuple[int, ...],
    joint: Mapping[tuple[Columns, Fraction], Fraction],
) -> Fraction:
    """Return the joint probability of the rows and of target 1 in a further row of this pattern."""
    ones = {}
    for s in sets:
        row = sum(pattern[column] << index for index, column in enumerate(s))
        for rate, p in rates:
            ones[s, rate] = p * _sum_of_functions(patterns, s, rate, row)
    exact = _exact_sums(ones, sets, [rate for rate, _ in rates])
    total = Fraction(0)
    for s in sets:
        for rate, _ in rates:
            mass_of_one = weights[s] * exact[s, rate]
            total += mass_of_one * (1 - rate) + (joint[s, rate] - mass_of_one) * rate
    return total


def _most_probable(
    patterns: Patterns, sets: Sequence[Columns], weights: Mapping[Columns, Fraction],
    rates: Sequence[tuple[Fraction, Fraction]],
) -> tuple[tuple[tuple[Columns, int], ...], Fraction]:  # fmt: skip
    """Return the functions of up to four columns of highest joint probability, and this probability."""
    num_rows = int(patterns.zeros.sum() + patterns.ones.sum())
    likelihood = [
        sum((p * rate**e * (1 - rate) ** (num_rows - e) for rate, p in rates), Fraction(0)) for e in range(num_rows + 1)
    ]
    best: list[tuple[Columns, int]] = []
    highest = Fraction(-1)
    for s in sets:
        if len(s) > NUM_VARS:
            continue
        functions = functions_of("all", len(s))
        full = all_supports(len(s))[functions.words.astype(np.int64)] == (1 << len(s)) - 1
        errors = functions.count_errors(patterns.merge(s))[full]
        words = functions.words[full]
        for e in np.unique(errors).tolist():
            joint = weights[s] * likelihood[e]
            if joint > highest:
                best, highest = [], joint
            if joint == highest:
                best += [(s, int(word)) for word in words[errors == e]]
    return tuple(best), highest
