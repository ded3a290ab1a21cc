"""Columns of hidden variables as words over joint patterns, and weights of a child's parent sets under each column.

A *column* c is the values of a hidden variable in all rows. A hidden variable is a function of observed parents T, so
its column is a function of the T-patterns that occur, p of them. Its weight is the number of functions that depend on
all of T and agree with it. Negating a hidden variable, in its function and in those of its children, changes no row:
so the bit of one pattern is fixed to 0 and the weight doubled.

Every row has a joint pattern of all hidden variables' parents; a column is a word with a bit for each joint pattern. A
child's parent set S with a hidden variable splits the joint patterns by the values of S's observed members and by the
child's value. A column fits iff no combination of (observed values, hidden bits) occurs with both values of the child;
then g = 2**(rows of the table - combinations that occur) functions agree.

A *signature* of a child is a row of exponents (log2 g) of its parent sets (`ChildView`): columns with equal signatures
have equal weights for the child.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import accumulate, product
from math import prod
from operator import or_
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.dsl.replayscm.extensions.extension import MechanismClass
from calibrant.solvers.acyclic.count import Weights, WordWeights, limbs_for
from calibrant.solvers.acyclic.least import Mask, members_of
from calibrant.solvers.outcome import BudgetSpent
from calibrant.solvers.replayscm.noise.subset_tables import VariableRows, invert, parent_masks

# --- Columns of hidden variables: their values in all rows, which the posterior sums over -----------------------------
# columns, all combinations; stated parents need far fewer: 2**15 for one variable of 4 parents, 2**14 for two of 3
MAX_COLUMNS = 1 << 20


@dataclass(frozen=True)
class HiddenColumn:
    """One hidden variable's values by pattern of its parents.

    index: index of the variable; parents: its parents as a mask
    values: word masked by the parents -> bit, for the patterns that occur
    num_functions: functions that depend on all parents and agree, those of the negated column included
    """

    index: int
    parents: Mask
    values: Mapping[int, int]
    num_functions: int

    @property
    def num_parents(self) -> int:
        return self.parents.bit_count()

    def extend(self, word: int) -> int:
        """Return a row's word with the hidden value."""
        return word | self.values[word & self.parents] << self.index


def num_agreeing(values: Mapping[int, int], parents: Mask) -> int:
    """Return how many functions depend on all of the parents and agree with values of some patterns."""
    sums = {}
    for mask in parent_masks(range(parents.bit_length()), parents.bit_count(), parents):
        merged: dict[int, int] = {}
        is_consistent = all(merged.setdefault(word & mask, bit) == bit for word, bit in values.items())
        # each unseen pattern is a free bit of the table
        sums[mask] = 1 << (1 << mask.bit_count()) - len(merged) if is_consistent else 0
    return invert(sums)[parents]


def hidden_parent_sets(scm_class: MechanismClass, name: str) -> list[Mask]:
    """Return the parent sets that a hidden variable may have."""
    stated = scm_class.hidden_parents[name]
    index = {variable: i for i, variable in enumerate(scm_class.variables)}
    if stated is not None:
        return [sum(1 << index[v] for v in stated)]
    candidates = [index[v] for v in scm_class.admissible_parents(name)]
    return parent_masks(candidates, scm_class.max_parents)


def list_columns(scm_class: MechanismClass, name: str, words: Sequence[int]) -> Iterator[HiddenColumn]:
    """Yield every column of positive weight, one of each pair of negations, with the weight of both.

    words: observed values of all rows; `BudgetSpent` for more than MAX_COLUMNS columns of a parent set
    """
    index = scm_class.variables.index(name)
    for parents in hidden_parent_sets(scm_class, name):
        patterns = sorted({word & parents for word in words})
        # checked before listing; p patterns have 2**(p - 1) columns, so 21 patterns are just within the limit
        if len(patterns) > MAX_COLUMNS.bit_length():
            raise BudgetSpent(f"2**{len(patterns) - 1} columns of {name}; listed are up to {MAX_COLUMNS:,}")
        # the first bit stays 0: negation is an involution without fixed points, so half of the columns stand for all
        for bits in product((0, 1), repeat=max(0, len(patterns) - 1)):
            values = dict(zip(patterns, (0, *bits), strict=True)) if patterns else {}
            num_functions = num_agreeing(values, parents)
            if num_functions:
                # without rows no bit is fixed, and the single column stands for both signs already
                yield HiddenColumn(index, parents, values, num_functions << (1 if patterns else 0))


def hidden_columns(scm_class: MechanismClass, words: Sequence[int]) -> Iterator[tuple[HiddenColumn, ...]]:
    """Return all combinations of one column for each hidden variable; one empty combination without any.

    `BudgetSpent` for more than MAX_COLUMNS combinations.
    """
    listed = [list(list_columns(scm_class, name, words)) for name in scm_class.hidden_parents]
    if prod(len(columns) for columns in listed) > MAX_COLUMNS:
        sizes = " x ".join(f"{len(columns):,}" for columns in listed)
        raise BudgetSpent(f"{sizes} columns of hidden variables; summed are up to {MAX_COLUMNS:,}")
    return product(*listed)


# --- Columns of hidden variables as words over joint patterns, and how a child's parent sets fit them. Noise-free -----
U64 = npt.NDArray[np.uint64]
I64 = npt.NDArray[np.int64]
I16 = npt.NDArray[np.int16]

MAX_PATTERNS = 64  # joint patterns: bits of a word
NO_FIT = -1  # exponent where no function fits


@dataclass(frozen=True)
class JointColumns:
    """Combinations of columns, each hidden variable's first pattern fixed to 0; h = hidden variables, c = combinations.

    patterns: joint patterns as masked words; words: [h, c] hidden values, bit j for pattern j
    num_functions: [c] functions that depend on all stated parents and agree, both signs of each hidden variable counted
    """

    patterns: Sequence[int]
    words: U64
    num_functions: I64

    def __len__(self) -> int:
        return len(self.num_functions)


def joint_columns(parents: Sequence[Mask], words: Iterable[int]) -> JointColumns:
    """Return all columns of positive weight; `BudgetSpent` for more than MAX_COLUMNS or 64 joint patterns.

    parents: the parent set of each hidden variable; words: observed values of all rows
    """
    joint_mask = _union(parents)
    patterns = sorted({word & joint_mask for word in words})
    if len(patterns) > MAX_PATTERNS:
        raise BudgetSpent(f"{len(patterns)} joint patterns of hidden variables' parents; a word has {MAX_PATTERNS}")
    factors = [_columns(mask, patterns) for mask in parents]
    size = int(np.prod([len(num_functions) for _, num_functions in factors], dtype=np.int64))
    if size > MAX_COLUMNS:
        raise BudgetSpent(f"{size:,} columns of hidden variables; summed are up to {MAX_COLUMNS:,}")
    grids = np.meshgrid(*(np.arange(len(num_functions)) for _, num_functions in factors), indexing="ij")
    stacked = np.stack([column[grid.ravel()] for (column, _), grid in zip(factors, grids, strict=True)])
    num_functions = np.ones(size, np.int64)
    for (_, factor), grid in zip(factors, grids, strict=True):
        num_functions *= factor[grid.ravel()]
    return JointColumns(patterns, stacked, num_functions)


def _columns(parents: Mask, patterns: Sequence[int]) -> tuple[U64, I64]:
    """Return a hidden variable's columns as words over the joint patterns, and their numbers of functions; [c], [c]."""
    seen_patterns = sorted({pattern & parents for pattern in patterns})
    if len(seen_patterns) > MAX_COLUMNS.bit_length():
        raise BudgetSpent(f"2**{len(seen_patterns) - 1} columns of a hidden variable; summed are up to {MAX_COLUMNS:,}")
    # bit 0 stays 0: one column of each pair of negations, whose number of functions is doubled below
    bits = np.arange(1 << max(0, len(seen_patterns) - 1), dtype=np.uint64) << np.uint64(1 if seen_patterns else 0)
    num_functions = np.zeros(len(bits), np.int64)
    size = parents.bit_count()
    for subset in parent_masks(members_of(parents), size, parents):
        # inclusion and exclusion over subsets: if a column is constant on each class of patterns that are equal in j
        # parents, 2**(2**j - number of classes) functions of these parents agree
        classes: dict[int, int] = {}
        for index, pattern in enumerate(seen_patterns):
            classes[pattern & subset] = classes.get(pattern & subset, 0) | 1 << index
        constant = np.ones(len(bits), np.bool_)
        for members in classes.values():
            ones = bits & np.uint64(members)
            constant &= (ones == 0) | (ones == np.uint64(members))
        sign = -1 if size - subset.bit_count() & 1 else 1
        num_functions += np.where(constant, sign << (1 << subset.bit_count()) - len(classes), 0)
    # some columns belong to no function that depends on all parents: 38 of 256 for 3 parents and all patterns
    is_possible = num_functions > 0
    bits, num_functions = bits[is_possible], num_functions[is_possible] << (1 if seen_patterns else 0)
    words = np.zeros(len(bits), np.uint64)
    for index, pattern in enumerate(patterns):
        words |= (bits >> np.uint64(seen_patterns.index(pattern & parents)) & np.uint64(1)) << np.uint64(index)
    return words, num_functions


@dataclass(frozen=True)
class ChildView:
    """One child's parent sets that contain hidden variables and fit some column.

    masks: [s] parent sets; exponents: [c, s] log2 of g, NO_FIT where the column does not fit
    """

    masks: Sequence[Mask]
    exponents: I16


def child_view(
    rows: VariableRows, variable: int, masks: Sequence[Mask], columns: JointColumns, hidden: Sequence[int]
) -> ChildView:
    """Return the exponents of a child's parent sets under each column; sets that fit no column are dropped.

    rows: rows of the child, with observed words; hidden: index of each hidden variable
    """
    pattern_index = {pattern: index for index, pattern in enumerate(columns.patterns)}
    fitting_masks, exponents = [], []
    hidden_bits = sum(1 << index for index in hidden)
    words = {*rows.noisy, *rows.clean}
    joint_mask = _union(columns.patterns)
    for mask in masks:
        positions = [position for position, index in enumerate(hidden) if mask >> index & 1]
        if not positions:
            continue
        sides = _sides(words, variable, mask & ~hidden_bits, joint_mask, pattern_index)
        # a column is a function of the joint pattern, so no column resolves a conflict within one
        if sides is None:
            continue
        exponents_of_set = _exponents(sides, [columns.words[position] for position in positions], mask.bit_count())
        if (exponents_of_set != NO_FIT).any():
            fitting_masks.append(mask)
            exponents.append(exponents_of_set)
    shape = (len(columns), len(fitting_masks))
    return ChildView(fitting_masks, np.stack(exponents, axis=1) if exponents else np.empty(shape, np.int16))


def _union(masks: Iterable[Mask]) -> Mask:
    return reduce(or_, masks, 0)


def _sides(
    words: Iterable[int], variable: int, visible: Mask, joint: Mask, pattern_index: Mapping[int, int]
) -> list[tuple[int, int]] | None:
    """Return, for each pattern of the visible parents, the joint patterns where the child is 0, and 1, as words.

    None if the child has both values in one joint pattern.
    """
    sides: dict[int, list[int]] = {}
    for word in words:
        sides.setdefault(word & visible, [0, 0])[word >> variable & 1] |= 1 << pattern_index[word & joint]
    if any(zeros & ones for zeros, ones in sides.values()):
        return None
    return [(zeros, ones) for zeros, ones in sides.values()]


def _exponents(sides: Sequence[tuple[int, int]], columns: Sequence[U64], num_parents: int) -> I16:
    """Return log2 of g for each column, NO_FIT where it does not fit; [c]."""
    exponents = np.full(len(columns[0]), NO_FIT, np.int16)
    fitting = np.arange(len(columns[0]))  # columns that fit the sides so far
    parts = list(_patterns_by_hidden_bits(columns))
    for zeros, ones in sides:
        # joint patterns with the same hidden bits must not lie on both sides
        if zeros and ones:
            for part in parts:
                selected = part[fitting]
                fitting = fitting[((selected & np.uint64(zeros)) == 0) | ((selected & np.uint64(ones)) == 0)]
    if not len(fitting):
        return exponents
    num_fixed = np.zeros(len(fitting), np.int16)
    for part in parts:
        # each combination of visible pattern and hidden bits that occurs fixes one row of the table
        selected = part[fitting]
        for zeros, ones in sides:
            num_fixed += (selected & np.uint64(zeros | ones)) != 0
    exponents[fitting] = (1 << num_parents) - num_fixed
    return exponents


def _patterns_by_hidden_bits(columns: Sequence[U64]) -> Iterator[U64]:
    """Yield, for each combination of hidden bits, the joint patterns that have it, as words; [c]."""
    for signs in product((False, True), repeat=len(columns)):
        # complements set bits beyond the patterns too; the sides mask them out
        part = np.full(len(columns[0]), ~np.uint64(0), np.uint64)
        for column, is_one in zip(columns, signs, strict=True):
            part &= column if is_one else ~column
        yield part


# --- Weights of parent sets by signature, as arrays; and the sums of many groups of columns at a time, in words -------
Numbers = npt.NDArray[Any]
"""Integers: int64, or Python's where they might not fit."""

MAX_BITS = 62  # bits of a weight in int64, with one to spare for differences
BATCH_WEIGHTS = 1 << 20  # weights in a batch of sums: 8 MiB


def unique_rows(rows: npt.NDArray[np.signedinteger[Any]]) -> tuple[npt.NDArray[np.signedinteger[Any]], I64]:
    """Return the different rows in lexicographic order, and each row's index among them; entries are at least -1."""
    if not rows.shape[1]:
        return rows[:1], np.zeros(len(rows), np.int64)
    # big-endian bytes compare as the entries do; `np.unique(axis=0)` compares field by field, 20 times slower
    codes = (rows.astype(np.int64) + 1).astype(">u1" if rows.max(initial=0) < 255 else ">u4")
    texts = codes.view(f"S{codes.shape[1] * codes.itemsize}").ravel()
    _, first, indices = np.unique(texts, return_index=True, return_inverse=True)
    return rows[first], indices


def signature_weights(
    masks: Sequence[Mask],
    visible: Mapping[Mask, int],
    fitting_sets: Sequence[Mask],
    exponents: I16,
    prior: Sequence[int],
) -> Numbers:
    """Return the weight of each parent set under each signature, its prior included; [s, m].

    visible: numbers of agreeing functions of the sets without a hidden variable
    fitting_sets: sets with a hidden variable that fit some column; exponents: [s, x] log2 of their numbers
    prior: integer weight by number of parents
    """
    column_of = {mask: i for i, mask in enumerate(masks)}
    size = max(mask.bit_count() for mask in masks)
    # an inversion adds up to 2**k sums, each of at most 2**2**k functions
    bits = (1 << size) + size + max(prior).bit_length()
    sums = np.zeros((len(exponents), len(masks)), np.int64 if bits <= MAX_BITS else object)
    for mask, table_sum in visible.items():
        sums[:, column_of[mask]] = table_sum
    for column, mask in enumerate(fitting_sets):
        fitting = exponents[:, column] >= 0
        powers = exponents[fitting, column].astype(sums.dtype)
        sums[fitting, column_of[mask]] = np.ones(len(powers), sums.dtype) << powers
    # Moebius inversion over subsets, one variable at a time: all signatures in one operation
    for variable in members_of(reduce(or_, masks)):
        with_variable = [i for i, mask in enumerate(masks) if mask >> variable & 1]
        sums[:, with_variable] -= sums[:, [column_of[masks[i] ^ 1 << variable] for i in with_variable]]
    weights: Numbers = sums * np.array([prior[mask.bit_count()] for mask in masks], sums.dtype)
    return weights


@dataclass(frozen=True)
class GroupSums:
    """Sums over acyclic assignments, for many groups of columns at a time.

    words: parent sets of all variables in order, hidden ones too, in the kernels' layout
    parts: slice of each child's sets in the layout; weights: child -> [s, m] weights by signature
    last: child whose weights are added up over the columns of a group
    """

    words: WordWeights
    parts: Mapping[int, slice]
    weights: Mapping[int, Numbers]
    last: int

    def totals(self, chosen: Mapping[int, Sequence[int]], added: Sequence[Sequence[tuple[int, int]]]) -> list[int]:
        """Return the sum of each group.

        chosen: child but the last -> its signature in each group
        added: for each group, the last child's signatures with their factors
        """
        size = max(1, BATCH_WEIGHTS // len(self.words.weights))
        totals = []
        for start in range(0, len(added), size):
            batch = added[start : start + size]
            # hidden variables have one parent set, of weight 1
            weights = np.ones((len(batch), len(self.words.weights)), np.uint64)
            for v, signatures in chosen.items():
                weights[:, self.parts[v]] = self.weights[v][signatures[start : start + size]]
            last = self.weights[self.last]
            for row, terms in zip(weights[:, self.parts[self.last]], batch, strict=True):
                signatures, factors = zip(*terms, strict=True)
                row[:] = np.array(factors, np.int64) @ last[list(signatures)]
            totals += self.words.totals(weights)
        return totals


def group_sums(
    masks: Mapping[int, Sequence[Mask]],
    weights: Mapping[int, Numbers],
    hidden: Mapping[int, Mask],
    roots: Mask,
    last: int,
    num_functions: int,
) -> GroupSums | None:
    """Return the sums of groups in words; None for too many variables, or weights that might not fit.

    masks, weights: child -> parent sets, and [s, m] their weights by signature; hidden: hidden variable -> parents
    last: child whose weights are added up; num_functions: functions of all columns together
    """
    if any(rows.dtype == object for rows in weights.values()):
        return None
    # no signature has a larger weight; the last child's weights are added up over columns
    largest = {
        v: [weight * (num_functions if v == last else 1) for weight in rows.max(axis=0).tolist()]
        for v, rows in weights.items()
    }
    listed = {v: masks[v] if v in masks else [hidden[v]] for v in sorted([*masks, *hidden])}
    sizes = {v: sum(largest[v]) if v in largest else 1 for v in listed}
    limbs = limbs_for(list(sizes.values()))
    if limbs is None or max(sizes.values()).bit_length() > MAX_BITS:
        return None
    positions = Weights({v: dict.fromkeys(sets, 1) for v, sets in listed.items()}, roots)
    inside = np.array([positions.inside(mask) for sets in listed.values() for mask in sets], np.int64)
    starts = np.array([0, *accumulate(map(len, listed.values()))], np.int64)
    bounds = np.array([weight for v in listed for weight in largest.get(v, [1])], np.uint64)
    words = WordWeights(bounds, np.arange(len(inside)), inside, starts, limbs)
    parts = {v: slice(start, end) for v, start, end in zip(listed, starts.tolist(), starts[1:].tolist(), strict=False)}
    return GroupSums(words, parts, weights, last)
