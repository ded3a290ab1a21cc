"""Weights of parent sets under noise, and the exact mass by tables over sets of placed variables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from itertools import combinations
from math import comb, lcm, prod
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from calibrant.dsl.replayscm.extensions.extension import MechanismClass, NoiseKind
from calibrant.dsl.replayscm.extensions.reference import EvidenceWorld
from calibrant.solvers.acyclic.count import Weights
from calibrant.solvers.acyclic.least import Mask, members_of
from calibrant.solvers.replayscm.noise._kernels_masses import count_patterns

# --- Evidence as words, and weights of parent sets: all functions of these parents, by the probability of their rows --
#
# For a set T and free cells (not intervened on) with n0 zeros and n1 ones under a T-pattern, the sum over all tables is
# a product over patterns, because the bits of a table are independent:
#
#     g(T) = product of e**n1 (1 - e)**n0 + e**n0 (1 - e)**n1        (2 for a pattern that was not seen)
#
# Clean rows (without noise) keep only the term that agrees. The sum over the functions that depend on all of S follows
# by Moebius inversion, w(S) = sum over T in S of (-1)**|S - T| g(T). With e = a / b, both are integers times b**-cells.


class EvidenceRow(NamedTuple):
    """One row of the evidence.

    word: values, bit i for variable i of the class; clamped: bits of the intervention's targets
    is_clean: whether the row is noise-free, so that only tables that agree have positive probability
    """

    word: int
    clamped: int
    is_clean: bool = False


@dataclass(frozen=True)
class VariableRows:
    """Rows that are evidence about one mechanism: those in which its variable is not intervened on.

    noisy: word -> number of rows; clean: words of clean rows
    """

    noisy: Mapping[int, int] = field(default_factory=dict)
    clean: frozenset[int] = frozenset()

    @property
    def num_cells(self) -> int:
        """Number of noisy cells, each of which has a factor of the rate or of its complement."""
        return sum(self.noisy.values())


def text_word(text: str) -> int:
    """Return the word of a row string: bit i is character i."""
    return int(text[::-1], 2)


def word_text(word: int, num_vars: int) -> str:
    """Return the row string of a word."""
    return "".join(str(word >> i & 1) for i in range(num_vars))


def target_mask(scm_class: MechanismClass, constants: Iterable[str]) -> int:
    """Return a word with the bits of these observed variables."""
    return sum(1 << scm_class.observed.index(variable) for variable in constants)


def evidence_rows(scm_class: MechanismClass, worlds: Iterable[EvidenceWorld]) -> tuple[EvidenceRow, ...]:
    """Return the rows of all worlds as words, in order."""
    return tuple(
        EvidenceRow(text_word(row), target_mask(scm_class, world.constants), world.is_clean)
        for world in worlds
        for row in world.rows
    )


def variable_rows(rows: Sequence[EvidenceRow], variable: int) -> VariableRows:
    """Return the evidence of one variable's mechanism."""
    bit = 1 << variable
    # equal rows are one entry: the time of a weight is proportional to sets x different rows
    noisy = Counter(row.word for row in rows if not row.clamped & bit and not row.is_clean)
    # a repetition of a clean row excludes no further table
    clean = frozenset(row.word for row in rows if not row.clamped & bit and row.is_clean)
    return VariableRows(noisy, clean)


# --- Weights of parent sets under noise: all functions of exactly these parents, each by the probability of its rows

MIN_ARRAY_CELLS = 1_200  # sets x different rows from which arrays are faster
EMPTY_BIT = 62  # bit of a word above all variables, always 0


@dataclass(frozen=True)
class Rate:
    """A rate a / b as integers: `flip` = a, `stay` = b - a."""

    flip: int
    stay: int

    @property
    def base(self) -> int:
        """Return the denominator."""
        return self.flip + self.stay


def scaled_rate(rate: Fraction, denominator: int | None = None) -> Rate:
    """Return a rate over `denominator`, a multiple of its own; over its own if None."""
    base = denominator or rate.denominator
    flip = rate.numerator * (base // rate.denominator)
    return Rate(flip, base - flip)


def parent_masks(candidates: Sequence[int], max_parents: int, required: Mask | None = None) -> list[Mask]:
    """Return the sets of at most `max_parents` candidates, by size, then in lexicographic order.

    required: if only the weight of this set is needed: then list its subsets alone, of any size
    """
    if required is not None:
        candidates = [v for v in candidates if required >> v & 1]
        max_parents = len(candidates)
    sizes = range(min(max_parents, len(candidates)) + 1)
    return [sum(1 << v for v in chosen) for size in sizes for chosen in combinations(candidates, size)]


def pattern_counts(rows: VariableRows, variable: int, parents: Mask) -> dict[int, tuple[int, int]]:
    """Return the numbers of noisy cells of value 0 and 1, by pattern of the parents."""
    counts: dict[int, tuple[int, int]] = {}
    for word, count in rows.noisy.items():
        zeros, ones = counts.get(word & parents, (0, 0))
        counts[word & parents] = (zeros, ones + count) if word >> variable & 1 else (zeros + count, ones)
    return counts


def clean_patterns(rows: VariableRows, variable: int, parents: Mask) -> dict[int, int] | None:
    """Return pattern of the parents -> value in clean rows; None if two clean rows contradict each other."""
    values: dict[int, int] = {}
    for word in rows.clean:
        if values.setdefault(word & parents, word >> variable & 1) != word >> variable & 1:
            return None
    return values


def table_sum(rows: VariableRows, variable: int, parents: Mask, rate: Rate) -> int:
    """Return g(T), scaled by base**cells: the sum over all functions of the parents."""
    clean = clean_patterns(rows, variable, parents)
    if clean is None:
        return 0
    product = 1
    counts = pattern_counts(rows, variable, parents)
    for pattern, (zeros, ones) in counts.items():
        value = clean.get(pattern)
        as_zero = 0 if value == 1 else rate.flip**ones * rate.stay**zeros
        as_one = 0 if value == 0 else rate.flip**zeros * rate.stay**ones
        product *= as_zero + as_one
        # at rate 0 the first pattern with both values makes the product 0
        if not product:
            return 0
    # an unseen pattern's two values sum to 1 + 1
    num_open = (1 << parents.bit_count()) - len(counts.keys() | clean.keys())
    return product << num_open


def invert(sums: dict[Mask, int]) -> dict[Mask, int]:
    """Invert sums over subsets (Moebius), in place; every subset of a listed set has to be listed."""
    all_members = 0
    for mask in sums:
        all_members |= mask
    # one variable at a time: k subtractions a set; `mask ^ bit` is not changed in its own pass, so order is free
    for bit in _bits(all_members):
        for mask in sums:
            if mask & bit:
                sums[mask] -= sums[mask ^ bit]
    return sums


def set_weights(rows: VariableRows, variable: int, masks: Iterable[Mask], rate: Rate) -> dict[Mask, int]:
    """Return w(S) of each set, scaled by base**cells; masks: every subset of a set is among them."""
    sets = list(masks)
    # `table_sums` does not know clean rows
    if rows.clean or len(sets) * len(rows.noisy) < MIN_ARRAY_CELLS:
        return invert({mask: table_sum(rows, variable, mask, rate) for mask in sets})
    return invert(dict(zip(sets, table_sums(rows, variable, sets, rate), strict=True)))


def table_sums(rows: VariableRows, variable: int, masks: Sequence[Mask], rate: Rate) -> Iterator[int]:
    """Yield g(T) of many sets without clean rows: cells are counted in arrays, factors multiplied as integers."""
    words = np.array(list(rows.noisy), np.int64)
    row_counts = np.array(list(rows.noisy.values()), np.float64)
    size = max(mask.bit_count() for mask in masks)
    # bit 62 is 0 in every word, so that a smaller set T uses only the first 2**|T| bins of its block
    member_bits = np.full((len(masks), size), EMPTY_BIT, np.int64)
    for i, mask in enumerate(masks):
        members = members_of(mask)
        member_bits[i, : len(members)] = members
    patterns = np.zeros((len(masks), len(words)), np.int64)
    for j in range(size):
        patterns |= (words >> member_bits[:, j, None] & 1) << j
    # a block of bins for each set: one bincount counts for all of them, in doubles, exact below 2**53
    patterns += np.arange(len(masks))[:, None] << size
    is_one = (words >> variable & 1).astype(np.float64)
    shape = len(masks) << size
    tiled = np.broadcast_to(row_counts, patterns.shape).ravel()
    totals = np.bincount(patterns.ravel(), tiled, shape).astype(np.int64)
    tiled_ones = np.broadcast_to(row_counts * is_one, patterns.shape).ravel()
    ones = np.bincount(patterns.ravel(), tiled_ones, shape).astype(np.int64)
    # a pair of counts is one code: few different pairs occur, and each big power is computed once
    base = rows.num_cells + 1
    codes = ((totals - ones) * base + ones).reshape(len(masks), -1)
    factors = {}
    for code in np.unique(codes).tolist():
        zero_cells, one_cells = divmod(code, base)
        factors[code] = rate.flip**one_cells * rate.stay**zero_cells + rate.flip**zero_cells * rate.stay**one_cells
    for mask, row in zip(masks, codes.tolist(), strict=True):
        seen_codes = [factors[code] for code in row if code]
        yield prod(seen_codes) << (1 << mask.bit_count()) - len(seen_codes)


def _bits(mask: Mask) -> Iterator[Mask]:
    while mask:
        low = mask & -mask
        yield low
        mask ^= low


# --- The exact mass under noise without hidden variables, by tables over sets of placed variables ---------------------
# With g(T) as above, the weight of a variable's parent sets within a set P of placed variables is a sum over T with
# closed coefficients: Moebius inversion and summation over subsets cancel except for the bound k on the number of
# parents and the prior by that number:
#
#     W(P) = sum over S in P, |S| <= k, of prior(|S|) w(S) = sum over T in P of c(|T|, |P|) g(T)
#     c(t, n) = sum over j <= min(k, n) - t of (-1)**j binomial(n - t, j) prior(t + j)
#
# So g is summed by size and by endogenous members, then over subsets (zeta transform), and no w(S) is formed. Sums over
# acyclic assignments then remove sinks (R. W. Robinson, 1973), component by component. What does not depend on the rows
# is laid out once for each class. Integers are Python's, in NumPy arrays of objects, whose loops are faster.
I64 = npt.NDArray[np.int64]
Objects = npt.NDArray[np.object_]
Candidates: TypeAlias = tuple[tuple[int, tuple[int, ...]], ...]
"""Each endogenous variable with the variables that may be its parents."""

MAX_COMPONENT = 9  # variables that may lie on a cycle together: 3**9 terms take 10 ms
MAX_BINS = 400_000  # patterns of all parent sets, 8 bytes each
MAX_LOOKUP = 1 << 20  # codes up to which a look-up table is used: enough for 500 rows


@dataclass(frozen=True)
class Component:
    """Variables that may lie on a cycle together, as positions among the endogenous ones; m of them.

    starts: [g] first parent set of each group; a group has one variable, size and set of endogenous members
    targets: [g] flat index of the group in a table [m, k + 1, 2**(m - 1)], by sets of the other variables
    first, last: its parent sets are those from first to last - 1 of the layout
    coefficients: [m, k + 1, 2**(m - 1)] c(t, n) of each variable, size and set of placed other variables
    """

    num_vars: int
    starts: I64
    targets: I64
    first: int
    last: int
    coefficients: Objects


@dataclass(frozen=True)
class Layout:
    """Parent sets of a class in the order of components, variables, sizes, endogenous members.

    masks, owners: [x] parent set and its variable; starts: [x] its first bin
    bins: [b] index of each pattern in an array [x, 2**k]; a smaller set uses the first 2**|T| of its block
    variables: [m] endogenous variables of the class; scale: denominator of the prior weights
    """

    masks: I64
    owners: I64
    bins: I64
    starts: I64
    variables: tuple[int, ...]
    components: tuple[Component, ...]
    scale: int


def exact_mass_by_tables(scm_class: MechanismClass, rows: Sequence[EvidenceRow]) -> Fraction | None:
    """Return the mass; None for hidden variables, without noise, and if components or patterns are too many."""
    noise = scm_class.noise
    # weights without noise fit words, which kernels sum faster
    if scm_class.hidden_parents or noise.is_noiseless:
        return None
    roots = sum(1 << scm_class.observed.index(root) for root in scm_class.roots)
    layout = class_layout(scm_class.candidate_indices, roots, scm_class.max_parents, scm_class.parent_weights)
    if layout is None:
        return None
    codes, base, cells = _count_codes(layout, scm_class.max_parents, rows)
    factor = Fraction(1, layout.scale ** len(layout.variables))
    if noise.kind is NoiseKind.EACH:
        denominator = lcm(*(rate.denominator for rate, _ in noise.grid))
        prior_scale = lcm(*(prior.denominator for _, prior in noise.grid))
        # independent rates: each variable's sums are a mixture, so one sum over DAGs instead of |grid|**m
        sums = sum(
            int(prior * prior_scale) * _table_sums(layout, codes, base, scaled_rate(rate, denominator))
            for rate, prior in noise.grid
        )
        num_cells = sum(cells)
        return factor * Fraction(_total(layout, sums), prior_scale ** len(cells) * denominator**num_cells)
    masses = (
        prior
        * Fraction(_total(layout, _table_sums(layout, codes, base, scaled_rate(rate))), rate.denominator ** sum(cells))
        for rate, prior in noise.grid
    )
    return factor * sum(masses, start=Fraction(0))


@lru_cache(maxsize=64)
def class_layout(
    candidates: Candidates, roots: Mask, max_parents: int, parent_weights: tuple[Fraction, ...]
) -> Layout | None:
    """Return the layout of a class without hidden variables; None where it is too large.

    parent_weights: prior weight of a mechanism by its number of parents
    """
    candidates_of = dict(candidates)
    sets = {v: parent_masks(parents, max_parents) for v, parents in candidates}
    scale = lcm(*(weight.denominator for weight in parent_weights))
    prior = [int(weight * scale) for weight in parent_weights]
    groups = Weights({v: dict.fromkeys(masks, 1) for v, masks in sets.items()}, roots).components()
    num_bins = sum(1 << mask.bit_count() for masks in sets.values() for mask in masks)
    if num_bins > MAX_BINS or any(len(group.endogenous) > MAX_COMPONENT for group in groups):
        return None
    listed: list[tuple[Mask, int]] = []
    components = []
    for group in groups:
        first = len(listed)
        starts, targets = list[int](), list[int]()
        num_vars, num_sizes = len(group.endogenous), max_parents + 1
        for index, v in enumerate(group.endogenous):
            keyed = sorted((mask.bit_count(), group.inside(mask), mask) for mask in sets[v])
            for size, inside, mask in keyed:
                target = (index * num_sizes + size << num_vars - 1) + _without_bit(inside, index)
                if not targets or targets[-1] != target:
                    starts.append(len(listed) - first)
                    targets.append(target)
                listed.append((mask, v))
        coefficients = np.array(
            [
                [
                    [_coefficient(size, n, prior) for n in _num_placed(candidates_of[v], group, index)]
                    for size in range(num_sizes)
                ]
                for index, v in enumerate(group.endogenous)
            ],
            np.object_,
        )
        components.append(Component(num_vars, np.array(starts), np.array(targets), first, len(listed), coefficients))
    masks = np.array([mask for mask, _ in listed], np.int64)
    sizes = 1 << np.bitwise_count(masks).astype(np.int64)
    starts_of_sets = np.cumsum(sizes) - sizes
    blocks = np.arange(len(masks)) << max_parents
    bins = np.arange(int(sizes.sum())) + np.repeat(blocks - starts_of_sets, sizes)
    owners = np.array([v for _, v in listed], np.int64)
    return Layout(masks, owners, bins, starts_of_sets, tuple(candidates_of), tuple(components), scale)


def _without_bit(placed: int, position: int) -> int:
    """Return a set of positions with one position taken out and those above it moved down."""
    return placed & (1 << position) - 1 | placed >> position + 1 << position


def _num_placed(candidates: Sequence[int], group: Weights, position: int) -> list[int]:
    """Return how many candidates of a position are placed, for each set of the other positions of the component.

    Candidates outside of the component are always placed.
    """
    outside = sum(u not in group.position for u in candidates)
    positions = [_without_bit(1 << group.position[u], position) for u in candidates if u in group.position]
    inside = sum(positions)
    return [outside + (placed & inside).bit_count() for placed in range(1 << len(group.endogenous) - 1)]


def _coefficient(size: int, num_placed: int, prior: Sequence[int]) -> int:
    """Return c(t, n) times the scale of the prior; 0 for sets that are larger than the number of placed variables."""
    num_others = num_placed - size
    return sum(
        (-1) ** j * comb(num_others, j) * prior[size + j] for j in range(min(len(prior) - 1, num_placed) - size + 1)
    )


def _count_codes(layout: Layout, max_parents: int, rows: Sequence[EvidenceRow]) -> tuple[I64, int, list[int]]:
    """Return the code of each bin, the base of its digits, and each variable's number of noisy cells.

    A code is (flags * base + zeros) * base + ones: numbers of noisy cells; flags: 1 if a clean row has value 0, plus 2
    if one has value 1.
    """
    noisy = [row for row in rows if not row.is_clean]
    base = len(noisy) + 1
    counts = _pattern_counts(layout, max_parents, noisy)
    codes = counts[:, 0] * base + counts[:, 1]
    if len(noisy) < len(rows):
        has_cells = _pattern_counts(layout, max_parents, [row for row in rows if row.is_clean]) > 0
        codes += (has_cells[:, 0] + 2 * has_cells[:, 1]) * base**2
    cells = [sum(not row.clamped >> v & 1 for row in noisy) for v in layout.variables]
    return codes.ravel()[layout.bins], base, cells


def _pattern_counts(layout: Layout, max_parents: int, rows: Sequence[EvidenceRow]) -> I64:
    words = np.array([row.word for row in rows], np.uint64)
    targets = np.array([row.clamped for row in rows], np.uint64)
    counts = np.empty((len(layout.masks), 2, 1 << max_parents), np.int32)
    count_patterns(layout.masks, layout.owners, words, targets, counts)
    return counts.astype(np.int64)


def _table_sums(layout: Layout, codes: I64, base: int, rate: Rate) -> Any:
    """Return g(T) of every parent set, times the base of the rate to the power of its variable's cells; [x]."""
    # few different counts occur: each pair of big powers is computed once
    different, indices = _distinct(codes, 4 * base * base)
    factors = np.empty(len(different), np.object_)
    for i, code in enumerate(different.tolist()):
        flags, cells = divmod(code, base * base)
        zeros, ones = divmod(cells, base)
        as_zero = 0 if flags & 2 else rate.flip**ones * rate.stay**zeros
        as_one = 0 if flags & 1 else rate.flip**zeros * rate.stay**ones
        factors[i] = as_zero + as_one
    return np.multiply.reduceat(factors[indices], layout.starts)


def _distinct(codes: I64, limit: int) -> tuple[I64, I64]:
    """Return the different codes below a limit, and the index of each among them."""
    if limit > MAX_LOOKUP:
        return np.unique(codes, return_inverse=True)
    # marking takes a third of the time of sorting at 20,000 codes
    present = np.zeros(limit, np.bool_)
    present[codes] = True
    different = np.flatnonzero(present)
    index = np.empty(limit, np.int64)
    index[different] = np.arange(len(different))
    return different, index[codes]


def _total(layout: Layout, sums: Objects) -> int:
    """Return the sum over acyclic assignments, times the scale of the prior for each variable."""
    return prod(_component_total(component, sums[component.first : component.last]) for component in layout.components)


def _component_total(component: Component, sums: Objects) -> int:
    flat = np.zeros(component.coefficients.size, np.object_)
    flat[component.targets] = np.add.reduceat(sums, component.starts)
    tables = flat.reshape(component.coefficients.shape)
    for i in range(component.num_vars - 1):
        halves = tables.reshape(*tables.shape[:2], -1, 2, 1 << i)
        halves[:, :, :, 1] += halves[:, :, :, 0]
    return sum_by_sinks((tables * component.coefficients).sum(axis=1).tolist())


def sum_by_sinks(weights: Sequence[Sequence[int]]) -> int:
    """Sum the products of weights over all acyclic assignments, by inclusion and exclusion over the sets of sinks.

    weights: [m][2**(m - 1)] weight of each variable's parent sets within a set of placed other variables
    """
    num_vars = len(weights)
    full = (1 << num_vars) - 1
    totals = [0] * (full + 1)
    totals[0] = 1
    for placed in range(full):
        if not totals[placed]:
            continue
        # the sign (-1)**(|sinks| + 1) is that of the first factor and one for each sink
        products, sets = [-totals[placed]], [placed]
        for i in range(num_vars):
            if placed >> i & 1:
                continue
            weight = -weights[i][_without_bit(placed, i)]
            if weight:
                products += [product * weight for product in products]
                sets += [chosen | 1 << i for chosen in sets]
        for chosen, product in zip(sets[1:], products[1:], strict=True):
            totals[chosen] += product
    return totals[full]
