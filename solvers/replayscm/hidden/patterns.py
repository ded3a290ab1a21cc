"""Columns of hidden variables as words over joint patterns, and what a child's parent sets see of them. Noise-free.

Every row shows a pattern of the hidden variables' parents; a column is a word with a bit for each visible pattern. A
child's parent set S with a hidden variable splits the patterns by S-pattern and by the child's value; a column fits iff
no value of (S-pattern, hidden bits) is met with both, and g = 2**(rows of the table - values met).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import product
from operator import or_

import numpy as np
import numpy.typing as npt

from calibrant.solvers.acyclic.least import Mask, members_of
from calibrant.solvers.budget import BudgetSpent
from calibrant.solvers.replayscm.noise.local_weights import VariableRows, parent_masks

U64 = npt.NDArray[np.uint64]
I64 = npt.NDArray[np.int64]
I16 = npt.NDArray[np.int16]

MAX_PATTERNS = 64  # bits of a word
MAX_COLUMNS = 1 << 20
NO_FIT = -1


@dataclass(frozen=True)
class JointColumns:
    """Combinations of columns, each hidden variable's first pattern fixed to 0.

    patterns: masked words of the joint patterns; words: [h, c] hidden values, bit j for pattern j
    numbers: [c] functions of exactly the stated parents that agree, signs of all hidden variables counted
    """

    patterns: Sequence[int]
    words: U64
    numbers: I64

    def __len__(self) -> int:
        return len(self.numbers)


def joint_columns(parents: Sequence[Mask], words: Iterable[int]) -> JointColumns:
    """Return all columns of some weight; `BudgetSpent` for more than MAX_COLUMNS or 64 joint patterns.

    parents: of each hidden variable; words: observed values of all rows
    """
    joint_mask = _union(parents)
    patterns = sorted({word & joint_mask for word in words})
    if len(patterns) > MAX_PATTERNS:
        raise BudgetSpent(f"{len(patterns)} joint patterns of hidden variables' parents; a word has {MAX_PATTERNS}")
    factors = [_columns(mask, patterns) for mask in parents]
    size = int(np.prod([len(numbers) for _, numbers in factors], dtype=np.int64))
    if size > MAX_COLUMNS:
        raise BudgetSpent(f"{size:,} columns of hidden variables; summed are up to {MAX_COLUMNS:,}")
    grids = np.meshgrid(*(np.arange(len(numbers)) for _, numbers in factors), indexing="ij")
    stacked = np.stack([column[grid.ravel()] for (column, _), grid in zip(factors, grids, strict=True)])
    numbers = np.ones(size, np.int64)
    for (_, factor), grid in zip(factors, grids, strict=True):
        numbers *= factor[grid.ravel()]
    return JointColumns(patterns, stacked, numbers)


def _columns(parents: Mask, patterns: Sequence[int]) -> tuple[U64, I64]:
    """Return the columns of one hidden variable as words over the joint patterns, and their functions."""
    met = sorted({pattern & parents for pattern in patterns})
    if len(met) > MAX_COLUMNS.bit_length():
        raise BudgetSpent(f"2**{len(met) - 1} columns of a hidden variable; summed are up to {MAX_COLUMNS:,}")
    # bit 0 stays 0: one column of each pair of negations, whose number is doubled below
    bits = np.arange(1 << max(0, len(met) - 1), dtype=np.uint64) << np.uint64(1 if met else 0)
    numbers = np.zeros(len(bits), np.int64)
    size = parents.bit_count()
    for subset in parent_masks(members_of(parents), size, parents):
        # inclusion and exclusion over subsets: a column constant on the classes of patterns alike in j parents
        # has 2**(2**j - classes) functions of it
        classes: dict[int, int] = {}
        for place, pattern in enumerate(met):
            classes[pattern & subset] = classes.get(pattern & subset, 0) | 1 << place
        constant = np.ones(len(bits), np.bool_)
        for members in classes.values():
            part = bits & np.uint64(members)
            constant &= (part == 0) | (part == np.uint64(members))
        sign = -1 if size - subset.bit_count() & 1 else 1
        numbers += np.where(constant, sign << (1 << subset.bit_count()) - len(classes), 0)
    # columns that no function of exactly these parents has: 38 of 256 for 3 parents, if all patterns are seen
    some = numbers > 0
    bits, numbers = bits[some], numbers[some] << (1 if met else 0)
    words = np.zeros(len(bits), np.uint64)
    for place, pattern in enumerate(patterns):
        words |= (bits >> np.uint64(met.index(pattern & parents)) & np.uint64(1)) << np.uint64(place)
    return words, numbers


@dataclass(frozen=True)
class ChildView:
    """One child's parent sets that contain hidden variables.

    masks: [s] the sets; exponents: [c, s] log2 of g, NO_FIT where the column does not fit
    """

    masks: Sequence[Mask]
    exponents: I16


def child_view(
    rows: VariableRows, variable: int, masks: Sequence[Mask], columns: JointColumns, hidden: Sequence[int]
) -> ChildView:
    """Return what a child's sets see of each column; sets that fit no column are dropped.

    hidden: index of each hidden variable; rows: of the child, observed words
    """
    place_of = {pattern: place for place, pattern in enumerate(columns.patterns)}
    listed, exponents = [], []
    hidden_bits = sum(1 << index for index in hidden)
    words = {*rows.noisy, *rows.clean}
    joint_mask = _union(columns.patterns)
    for mask in masks:
        used = [place for place, index in enumerate(hidden) if mask >> index & 1]
        if not used:
            continue
        sides = _sides(words, variable, mask & ~hidden_bits, joint_mask, place_of)
        # a column is a function of the joint pattern, so no column resolves a conflict within one
        if sides is None:
            continue
        column = _exponents(sides, [columns.words[place] for place in used], mask.bit_count())
        if (column != NO_FIT).any():
            listed.append(mask)
            exponents.append(column)
    shape = (len(columns), len(listed))
    return ChildView(listed, np.stack(exponents, axis=1) if exponents else np.empty(shape, np.int16))


def _union(masks: Iterable[Mask]) -> Mask:
    return reduce(or_, masks, 0)


def _sides(
    words: Iterable[int], variable: int, visible: Mask, joint: Mask, place_of: Mapping[int, int]
) -> list[tuple[int, int]] | None:
    """Return per visible pattern the joint patterns where the child is 0 and 1; None if one is met with both."""
    sides: dict[int, list[int]] = {}
    for word in words:
        sides.setdefault(word & visible, [0, 0])[word >> variable & 1] |= 1 << place_of[word & joint]
    if any(zeros & ones for zeros, ones in sides.values()):
        return None
    return [(zeros, ones) for zeros, ones in sides.values()]


def _exponents(sides: Sequence[tuple[int, int]], columns: Sequence[U64], num_parents: int) -> I16:
    """[c] log2 of g; a column is looked at only while it fits."""
    exponents = np.full(len(columns[0]), NO_FIT, np.int16)
    fitting = np.arange(len(columns[0]))
    parts = list(_hidden_values(columns))
    for zeros, ones in sides:
        # two-colouring: patterns with the same hidden bits must not lie on both sides
        if zeros and ones:
            for part in parts:
                at = part[fitting]
                fitting = fitting[((at & np.uint64(zeros)) == 0) | ((at & np.uint64(ones)) == 0)]
    if not len(fitting):
        return exponents
    met = np.zeros(len(fitting), np.int16)
    for part in parts:
        # each (visible pattern, hidden bits) that is met fixes one row of the table
        at = part[fitting]
        for zeros, ones in sides:
            met += (at & np.uint64(zeros | ones)) != 0
    exponents[fitting] = (1 << num_parents) - met
    return exponents


def _hidden_values(columns: Sequence[U64]) -> Iterator[U64]:
    """Yield, for each combination of hidden bits, the patterns that have it."""
    for signs in product((False, True), repeat=len(columns)):
        # complements set bits beyond the patterns too; the sides mask them out
        part = np.full(len(columns[0]), ~np.uint64(0), np.uint64)
        for column, is_one in zip(columns, signs, strict=True):
            part &= column if is_one else ~column
        yield part
