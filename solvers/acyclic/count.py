"""Sums over acyclic parent-set assignments: exact, between certified bounds, or by errors and size.

Weights are Python integers of any size; a polynomial in the formula size is packed into one integer, so the same
code counts, and counts by size. `total` removes sinks by inclusion and exclusion (R. W. Robinson, 1973); `Layers`
splits every DAG into layers in exactly one way, without negative terms, which is what sampling needs (T. Talvitie, A.
Vuoksenmaa and M. Koivisto, Exact sampling of directed acyclic graphs from modular distributions, 2019).

Both enumerate only the order ideals: sets of variables with which some topological order begins. If every subset is one
there are 3**m terms, feasible up to 18 variables; if parent sets fix most of the order there are few, even at 40
variables. Components with a table of all subsets, and weights that fit a word, are summed in kernels. If ideals are
many but small separators exist, `total` eliminates variables (solvers.acyclic.elimination).

In kernels a weight fits a word, and a total has as many words as it may need. Up to MAX_POSITIONS variables every
subset is enumerated; for more, enumerating order ideals only is faster.

Lower bound: the sum over assignments that are compatible with one order of the variables. Upper bound: the sum without
the acyclicity constraint, a product over variables. Both multiply over strongly connected components, and a component
within the limit of terms is summed exactly.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property, reduce
from itertools import accumulate, islice
from math import prod
from operator import add, or_
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from calibrant.solvers.acyclic._kernels_sums import acyclic_totals, count_terms, layer_sums, subset_sums
from calibrant.solvers.acyclic.elimination import MIN_TABLE_IDEALS, OrderIdeals, elimination_order, total_by_elimination
from calibrant.solvers.acyclic.least import Mask, members_of
from calibrant.solvers.outcome import Budget, BudgetSpent

# --- Sums over acyclic assignments whose weights fit a word, in kernels -----------------------------------------------
U64 = npt.NDArray[np.uint64]
I64 = npt.NDArray[np.int64]

WORD_BITS = 64
MAX_POSITIONS = 10  # variables; 3**10 terms take half a millisecond
MAX_LAYERED = 8  # variables up to which all 3**8 states of `Layers` are summed at once


class WordWeights(NamedTuple):
    """Parent sets of some variables in the kernels' layout.

    weights: [e] weights of the parent sets as given; entries: [x] index in `weights` of each parent set
    inside: [x] endogenous members of each parent set, as positions
    starts: [m + 1] where the parent sets of each variable begin
    limbs: number of 64-bit words that hold any sum over acyclic assignments
    """

    weights: U64
    entries: I64
    inside: I64
    starts: I64
    limbs: int

    @property
    def num_vars(self) -> int:
        return len(self.starts) - 1

    def totals(self, weights: U64) -> list[int]:
        """Return the sum over acyclic assignments for each row of weights, none of them larger than `self.weights`."""
        words = np.empty((len(weights), self.limbs), np.uint64)
        acyclic_totals(weights, self.entries, self.inside, self.starts, words)
        return words[:, 0].tolist() if self.limbs == 1 else [from_words(row) for row in words]

    def num_terms(self) -> int:
        """Count the terms of a sum over acyclic assignments."""
        return count_terms(self.subset_sums(), np.zeros(1 << self.num_vars, np.bool_))

    def subset_sums(self) -> U64:
        """Return the weight of each variable's parent sets within each set of variables; shape [m, 2**m]."""
        sums = np.empty((self.num_vars, 1 << self.num_vars), np.uint64)
        subset_sums(self.weights, self.entries, self.inside, self.starts, sums)
        return sums

    def completions(self) -> U64 | None:
        """Return `Layers.completions` of every state, [placed, last layer, limb]; None above MAX_LAYERED variables."""
        if self.num_vars > MAX_LAYERED:
            return None
        completions = np.zeros((1 << self.num_vars, 1 << self.num_vars, self.limbs), np.uint64)
        layer_sums(self.subset_sums(), completions)
        return completions


def word_weights(options: Sequence[Mapping[Mask, int]], max_vars: int = MAX_POSITIONS) -> WordWeights | None:
    """Convert the parent sets of each variable, as positions; None for too many variables or weights beyond a word."""
    limbs = limbs_for([sum(candidates.values()) for candidates in options], max_vars)
    if limbs is None:
        return None
    inside = np.array([mask for candidates in options for mask in candidates], np.int64)
    weights = np.array([weight for candidates in options for weight in candidates.values()], np.uint64)
    starts = np.array([0, *accumulate(len(candidates) for candidates in options)], np.int64)
    return WordWeights(weights, np.arange(len(inside)), inside, starts, limbs)


def limbs_for(largest: Sequence[int], max_vars: int = MAX_POSITIONS) -> int | None:
    """Return how many words hold a product of factors up to `largest`; None if one exceeds a word, or for too many."""
    if len(largest) > max_vars or any(number >> WORD_BITS for number in largest):
        return None
    # any sum over acyclic assignments is at most the product of the variables' totals, whose bits add up
    return sum(number.bit_length() for number in largest) // WORD_BITS + 1


def from_words(words: U64) -> int:
    """Decode a number of a kernel, least significant word first."""
    return int.from_bytes(words.astype("<u8").tobytes(), "little")


# --- Sums over acyclic parent-set assignments: exact counting and sampling, by dynamic programming over subsets -------
MAX_FREE_VARIABLES = 18  # 3**18 terms take minutes; above that only order ideals are enumerated
MAX_TERMS = 5_000_000  # terms for more variables than that; about ten seconds
MIN_ARRAY_SETS = 64  # parent sets of a variable from which arrays are faster than a loop
MAX_WORD_BITS = 63  # bits of a set in a signed word
MAX_SUMMED_VARIABLES = 19  # variables of a sum in a kernel: tables of up to 240 MB; twice that for 20
MAX_TABLE_VARIABLES = 12  # up to these, sums over all subsets are tabulated; for more only if nearly all are needed


class Weights:
    """Non-negative weights of the parent sets of each endogenous variable; roots may be parents of all.

    Positions number the endogenous variables from 0, ascending; masks of positions have no bits of roots.

    terms: limit on the terms of a sum; None means no limit up to MAX_FREE_VARIABLES variables, MAX_TERMS beyond
    """

    def __init__(self, options: Mapping[int, Mapping[Mask, int]], roots: Mask, *, terms: int | None = None) -> None:
        self.terms = terms
        self.endogenous = sorted(options)
        self.position = {variable: i for i, variable in enumerate(self.endogenous)}
        highest = max(self.endogenous, default=0)
        self._gaps = [v for v in range(highest - 1, -1, -1) if v not in self.position]
        self.available = roots | sum(1 << variable for variable in self.endogenous)
        self.options = [
            {mask: weight for mask, weight in options[v].items() if mask & ~self.available == 0}
            for v in self.endogenous
        ]

    def within(self, index: int, placed: Mask) -> int:
        """Return the total weight of a variable's parent sets whose endogenous parents are in `placed` (positions)."""
        if self._table is not None:
            return self._table[index][placed]
        key = index, placed
        if key not in self._within:
            self._within[key] = self._placement.weight(index, placed)
        return self._within[key]

    def eligible(self, placed: Mask) -> Mask:
        """Return the variables that may come next: not placed, with a parent set of positive weight in `placed`."""
        if self._table is None:
            return self._placement.eligible(placed)
        unplaced = self.full ^ placed
        return sum(1 << i for i, sums in enumerate(self._table) if unplaced >> i & 1 and sums[placed])

    @property
    def max_terms(self) -> int | None:
        return MAX_TERMS if self.terms is None and len(self.endogenous) > MAX_FREE_VARIABLES else self.terms

    def charge(self, budget: Budget, terms: int) -> None:
        """Charge terms of a sum; `BudgetSpent` with the number of variables if they are too many."""
        try:
            budget.spend(terms)
        except BudgetSpent:
            variables = f"{len(self.endogenous)} variables that may lie on a cycle together"
            max_states = budget.used + (budget.states or 0)
            raise BudgetSpent(f"{variables}, in more than {max_states:,} partial orders") from None

    @cached_property
    def elimination(self) -> Sequence[int] | None:
        """Elimination order if elimination is cheaper than sums over ideals; else None."""
        # at most 3**10 = 59,049 terms: no decomposition saves time there
        if len(self.endogenous) <= MAX_POSITIONS:
            return None
        order = elimination_order(self.by_positions)
        has_few_prefixes = order is not None and self._placement.count_ideals(MIN_TABLE_IDEALS) < MIN_TABLE_IDEALS
        return None if has_few_prefixes else order

    @property
    def method(self) -> str:
        """Method of `total`, in words."""
        return "sums over what can come first" if self.elimination is None else "elimination of variables"

    @cached_property
    def _placement(self) -> OrderIdeals:
        return OrderIdeals(self.by_positions)

    @cached_property
    def by_positions(self) -> list[dict[Mask, int]]:
        """Weights of the parent sets per position, with parents as positions, roots dropped, zeros left out."""
        weights: list[dict[Mask, int]] = [{} for _ in self.options]
        for merged, options in zip(weights, self.options, strict=True):
            inside = self._inside if len(options) >= MIN_ARRAY_SETS else self._each_inside
            for mask, weight in inside(options):
                merged[mask] = merged.get(mask, 0) + weight
        return weights

    def _each_inside(self, options: Mapping[Mask, int]) -> Iterator[tuple[Mask, int]]:
        return ((self.inside(mask), weight) for mask, weight in options.items() if weight)

    def _inside(self, options: Mapping[Mask, int]) -> Iterator[tuple[Mask, int]]:
        """Convert parent sets to positions, with their weights; by arrays where masks fit a word."""
        if self.available >> MAX_WORD_BITS:
            return self._each_inside(options)
        masks = np.array([mask for mask, weight in options.items() if weight], np.int64)
        for gap in self._gaps:
            masks = masks & ((1 << gap) - 1) | masks >> gap + 1 << gap
        return zip((masks & self.full).tolist(), filter(None, options.values()), strict=True)

    @cached_property
    def words(self) -> WordWeights | None:
        """Weights as arrays of words for kernels; None for too many variables or too large weights."""
        return word_weights(self.by_positions)

    @cached_property
    def _within(self) -> dict[tuple[int, Mask], int]:
        return {}

    @cached_property
    def _table(self) -> list[list[int]] | None:
        """Table [i][X] of `within` for all subsets X; None unless `is_tabulated`."""
        if not self.is_tabulated:
            return None
        if self.tabulated_words is not None:
            sums: list[list[int]] = self.tabulated_words.subset_sums().tolist()
            return sums
        return [self._subset_sums(candidates) for candidates in self.options]

    @cached_property
    def is_tabulated(self) -> bool:
        """Whether sums over all subsets are tabulated: they are few, or nearly all are order ideals."""
        return self._is_dense(MAX_FREE_VARIABLES)

    def _is_dense(self, max_vars: int) -> bool:
        """Return whether a table of all subsets pays, for at most `max_vars` variables."""
        num_vars = len(self.endogenous)
        if num_vars > max_vars:
            return False
        if num_vars > MAX_TABLE_VARIABLES and self.terms is not None and self.terms < num_vars << num_vars:
            return False  # the table alone has more entries than the sum may have terms
        return num_vars <= MAX_TABLE_VARIABLES or self._placement.count_ideals(MIN_TABLE_IDEALS) >= MIN_TABLE_IDEALS

    @cached_property
    def tabulated_words(self) -> WordWeights | None:
        """Weights as `words`, also of more variables where tables of all subsets pay."""
        is_dense = self._is_dense(MAX_SUMMED_VARIABLES)
        return word_weights(self.by_positions, MAX_SUMMED_VARIABLES) if is_dense else None

    def components(self) -> list[Weights]:
        """Split into strongly connected components, each with the others as roots: sums multiply over them."""
        # Warshall's closure of "is a possible parent of", rows as bit masks: O(m**2) operations on masks
        reach = [self.inside(reduce(or_, candidates, 0)) for candidates in self.options]
        for middle, from_middle in enumerate(reach):
            for i, reached in enumerate(reach):
                if reached >> middle & 1:
                    reach[i] |= from_middle if i != middle else 0
        groups: dict[Mask, list[int]] = {}
        for i, reached in enumerate(reach):
            component = sum(1 << j for j, from_j in enumerate(reach) if reached >> j & 1 and from_j >> i & 1)
            groups.setdefault(component | 1 << i, []).append(i)
        if len(groups) == 1:
            return [self]
        return [self._group(positions) for positions in groups.values()]

    def _group(self, positions: Sequence[int]) -> Weights:
        options = {self.endogenous[i]: self.options[i] for i in positions}
        return Weights(options, self.available & ~sum(1 << variable for variable in options), terms=self.terms)

    def inside(self, mask: Mask) -> Mask:
        """Return the endogenous part of a parent set, as positions."""
        for gap in self._gaps:  # highest first, so that the lower ones stay where they are
            mask = mask & ((1 << gap) - 1) | mask >> gap + 1 << gap
        return mask & self.full

    @property
    def full(self) -> Mask:
        return (1 << len(self.endogenous)) - 1

    def _subset_sums(self, options: Mapping[Mask, int]) -> list[int]:
        sums = [0] * (1 << len(self.endogenous))
        for mask, weight in options.items():
            sums[self.inside(mask)] += weight
        for i in range(len(self.endogenous)):
            bit = 1 << i
            if bit * bit < len(sums):  # few long slices: with a step for low bits, without one for high bits
                pairs = [(slice(low, None, 2 * bit), slice(low + bit, None, 2 * bit)) for low in range(bit)]
            else:
                starts = range(0, len(sums), 2 * bit)
                pairs = [(slice(low, low + bit), slice(low + bit, low + 2 * bit)) for low in starts]
            for without_bit, with_bit in pairs:
                sums[with_bit] = map(add, sums[with_bit], sums[without_bit])
        return sums


def total(weights: Weights) -> int:
    """Sum the products of weights over all acyclic assignments; `BudgetSpent` if components are too large."""
    return prod(_component_total(component) for component in weights.components())


def _component_total(weights: Weights) -> int:
    if weights.words is not None:
        return weights.words.totals(weights.words.weights[None])[0]
    if weights.elimination is not None:
        # joins can grow beyond the estimate of the order; the sum over ideals has a budget to itself
        with suppress(BudgetSpent):
            return total_by_elimination(weights.by_positions, weights.elimination, Budget(weights.max_terms))
    return _sum_by_sinks(weights)


def _sum_by_sinks(weights: Weights) -> int:
    if weights.terms is None and (words := weights.tabulated_words) is not None:
        if weights.max_terms is not None:
            weights.charge(Budget(weights.max_terms), words.num_terms())
        return words.totals(words.weights[None])[0]
    return prefix_totals(weights)[-1].get(weights.full, 0)


def prefix_totals(weights: Weights) -> list[dict[Mask, int]]:
    """Return, by number of variables, the total weight of the acyclic assignments on each order ideal.

    By inclusion and exclusion over the set of sinks: an assignment is counted once for every nonempty set of its sinks,
    with sign (-1)**(|sinks| + 1), which adds up to 1.
    """
    budget = Budget(weights.max_terms)
    totals: list[dict[Mask, int]] = [{} for _ in range(len(weights.endogenous) + 1)]
    totals[0][0] = 1
    for index, level in enumerate(totals):
        for placed, base in level.items():
            eligible = weights.eligible(placed)
            if not base or not eligible:  # terms cancel where no acyclic assignment ends in this set
                continue
            weights.charge(budget, 1 << eligible.bit_count())
            _add_sink_sets(weights, totals, (index, placed, eligible), base)
    return totals


def _add_sink_sets(weights: Weights, totals: list[dict[Mask, int]], state: tuple[int, Mask, Mask], base: int) -> None:
    """Add the terms of all nonempty sets of sinks after one set of placed variables.

    state: number of placed variables, their mask, and the mask of possible sinks; base: total weight of the placed set
    """
    num_placed, placed, eligible = state
    masks, sizes, terms = [placed], [num_placed], [-base]  # sign (-1)**(|sinks| + 1), folded into the first factor
    for i in members_of(eligible):
        weight, bit = -weights.within(i, placed), 1 << i
        masks += [mask | bit for mask in masks]
        sizes += [size + 1 for size in sizes]
        terms += [term * weight for term in terms]
    for size, mask, term in islice(zip(sizes, masks, terms, strict=True), 1, None):
        after = totals[size]
        after[mask] = after.get(mask, 0) + term


class Layer(NamedTuple):
    """The variables of the next layer, and the total weight of all DAGs that continue with it."""

    layer: Mask
    weight: int


class Layers:
    """DAGs by layers: a variable has a parent in the layer just before its own, and none in its own or a later one.

    So a layer holds the variables with the same length of a longest path that ends in them: each DAG has one layering.
    """

    def __init__(self, weights: Weights, *, terms: int | None = None) -> None:
        """Prepare sums; `terms` replaces the limit of `weights`."""
        self.weights = weights
        self._memo: dict[tuple[Mask, Mask], int] = {}
        self._steps: dict[tuple[Mask, Mask], list[Layer]] = {}
        self._parent_sets: dict[tuple[int, Mask, Mask], list[tuple[Mask, int]]] = {}
        self._inside: dict[int, list[tuple[Mask, Mask, int]]] = {}
        self._choices: dict[tuple[Mask, Mask, Mask], list[tuple[int, list[tuple[Mask, int]], int]]] = {}
        self._budget = Budget(weights.max_terms if terms is None else terms)

    @cached_property
    def total(self) -> int:
        """Sum over layers, without negative terms; `BudgetSpent` for too many terms."""
        total = self.completions(0, 0)
        self._budget = Budget()  # no further charge: sampling visits the same states
        return total

    def completions(self, placed: Mask, last: Mask) -> int:
        """Return the total weight of all completions, given the placed variables and the last layer among them."""
        if placed == self.weights.full:
            return 1
        key = placed, last
        if key not in self._memo:
            if self._completions is None:
                self._memo[key] = sum(step.weight for step in self._next_layers(placed, last))
            else:
                self._memo[key] = from_words(self._completions[placed, last])
        return self._memo[key]

    @cached_property
    def _completions(self) -> U64 | None:
        """Completions of all states from a kernel; None for too many states."""
        words = self.weights.words
        return None if words is None else words.completions()

    def steps(self, placed: Mask, last: Mask) -> Sequence[Layer]:
        """List every possible next layer, in a fixed order."""
        key = placed, last
        if key not in self._steps:
            self._steps[key] = list(self._next_layers(placed, last))
        return self._steps[key]

    def _next_layers(self, placed: Mask, last: Mask) -> Iterator[Layer]:
        weight_of = {1 << i: self.weigh_parent_sets(i, placed, last) for i in members_of(self.weights.eligible(placed))}
        eligible = sum(bit for bit, weight in weight_of.items() if weight)
        self.weights.charge(self._budget, 1 << eligible.bit_count())
        product = {0: 1}
        layer = 0
        while True:
            layer = (layer - eligible) & eligible
            if not layer:
                return
            low = layer & -layer
            product[layer] = product[layer ^ low] * weight_of[low]
            weight = product[layer] * self.completions(placed | layer, layer)
            if weight:
                yield Layer(layer, weight)

    def weigh_parent_sets(self, index: int, placed: Mask, last: Mask) -> int:
        """Return the weight of a variable's parent sets in `placed` with a member of `last`, if that is not empty."""
        within_placed = self.weights.within(index, placed)
        return within_placed - self.weights.within(index, placed ^ last) if last else within_placed

    def choices(self, layer: Mask, placed: Mask, last: Mask) -> Sequence[tuple[int, list[tuple[Mask, int]], int]]:
        """List (variable, its parent sets with weights, sum of these weights) for each variable of a layer."""
        key = layer, placed, last
        if key not in self._choices:
            self._choices[key] = [
                (self.weights.endogenous[i], self.parent_sets(i, placed, last), self.weigh_parent_sets(i, placed, last))
                for i in members_of(layer)
            ]
        return self._choices[key]

    def parent_sets(self, index: int, placed: Mask, last: Mask) -> list[tuple[Mask, int]]:
        """List the parent sets that `weigh_parent_sets` sums, with their weights, in a fixed order."""
        key = index, placed, last
        if key in self._parent_sets:
            return self._parent_sets[key]
        if index not in self._inside:
            options = sorted(self.weights.options[index].items())
            self._inside[index] = [(mask, self.weights.inside(mask), weight) for mask, weight in options]
        self._parent_sets[key] = [
            (mask, weight)
            for mask, inside, weight in self._inside[index]
            if inside & ~placed == 0 and (not last or inside & last)
        ]
        return self._parent_sets[key]


# --- Certified bounds of a sum over acyclic assignments with too many terms -------------------------------------------


class Bounds(NamedTuple):
    """Certified lower and upper bound of a number, equal if it is exact."""

    lower: int
    upper: int

    def __str__(self) -> str:
        return str(self.lower) if self.lower == self.upper else f"{self.lower} to {self.upper}"


def bounds(weights: Weights) -> Bounds:
    """Bound `total` from below and above; both equal the sum if it is within its budget."""
    parts = [_component_bounds(component) for component in weights.components()]
    return Bounds(prod(part.lower for part in parts), prod(part.upper for part in parts))


def _component_bounds(weights: Weights) -> Bounds:
    try:
        exact = total(weights)
    except BudgetSpent:
        upper = prod(weights.within(i, weights.full) for i in range(len(weights.endogenous)))
        return Bounds(_total_in_order(weights, good_order(weights)), upper)
    return Bounds(exact, exact)


def _total_in_order(weights: Weights, order: Sequence[int]) -> int:
    """Return the total weight of the assignments in which parents come earlier in this order (positions)."""
    product, placed = 1, 0
    for i in order:
        product *= weights.within(i, placed)
        placed |= 1 << i
    return product


def good_order(weights: Weights) -> list[int]:
    """Order the variables greedily: next is the one that loses the smallest share of its weight, the least in a tie.

    Variables that can never be placed come last, ascending.
    """
    full, order, placed = weights.full, list[int](), 0
    while eligible := weights.eligible(placed):
        # rounding may choose another order, but any order gives a valid bound
        shares = {i: weights.within(i, placed) / weights.within(i, full) for i in members_of(eligible)}
        best = max(shares, key=lambda i: (shares[i], -i))
        order.append(best)
        placed |= 1 << best
    return order if placed == full else [*order, *(i for i in members_of(full & ~placed))]


# --- Sums over acyclic parent-set assignments of counts by (errors, size) ---------------------------------------------

Point: TypeAlias = tuple[int, int]
"""(errors, size)."""
Counts: TypeAlias = dict[Point, int]
"""(errors, size) -> number of mechanisms, or of assignments."""

MAX_VARIABLES = 10  # 3**10 products of counts: seconds


def multiply(first: Mapping[Point, int], second: Mapping[Point, int]) -> Counts:
    """Return the counts of pairs, one of each kind: errors and sizes add up, counts multiply."""
    result: Counts = {}
    for (errors, size), count in first.items():
        for (more_errors, more_size), factor in second.items():
            key = errors + more_errors, size + more_size
            result[key] = result.get(key, 0) + count * factor
    return result


def sum_over_dags(choices: Sequence[Mapping[int, Mapping[Point, int]]]) -> Counts:
    """Count the acyclic assignments by errors and size.

    choices: by variable, parents (mask of these variables) -> counts of its mechanisms with exactly these parents
    """
    num_vars = len(choices)
    inside = [_sum_inside(options, num_vars) for options in choices]
    totals: list[Counts] = [{(0, 0): 1}]
    for variables in range(1, 1 << num_vars):
        total: Counts = {}
        sinks = variables
        while sinks:
            others = variables & ~sinks
            term: Mapping[Point, int] = totals[others]
            for v in range(num_vars):
                if sinks >> v & 1 and term:
                    term = multiply(term, inside[v][others])
            sign = 1 if sinks.bit_count() % 2 else -1
            for key, value in term.items():
                total[key] = total.get(key, 0) + sign * value
            sinks = (sinks - 1) & variables
        totals.append({key: value for key, value in total.items() if value})
    return totals[-1]


def _sum_inside(options: Mapping[int, Mapping[Point, int]], num_vars: int) -> list[Counts]:
    """Return, for each set of variables, the counts of the mechanisms whose parents are in it."""
    sums: list[Counts] = [{} for _ in range(1 << num_vars)]
    for mask, counts in options.items():
        for variables in range(1 << num_vars):
            if not mask & ~variables:
                for key, value in counts.items():
                    sums[variables][key] = sums[variables].get(key, 0) + value
    return sums


def pareto_points(counts: Mapping[Point, int]) -> list[tuple[int, int, int]]:
    """Return (errors, size, count) of the Pareto-optimal points, by rising size."""
    points: list[tuple[int, int, int]] = []
    for errors, size in sorted(counts, key=lambda key: (key[1], key[0])):
        if not points or errors < points[-1][0]:
            points.append((errors, size, counts[errors, size]))
    return points
