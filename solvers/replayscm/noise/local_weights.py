"""Evidence as words, and weights of parent sets: all functions of these parents, by the probability of their rows.

For a set T and free cells with n0 zeros and n1 ones under a T-pattern, the sum over all tables is a product over
patterns, because a table chooses its bits independently:

    g(T) = product of e**n1 (1 - e)**n0 + e**n0 (1 - e)**n1        (2 for a pattern that was not seen)

Clean rows keep only the term that agrees. Functions that depend on all of S are found by Moebius inversion,
w(S) = sum over T in S of (-1)**|S - T| g(T). With e = a / b both are scaled by b**cells to integers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations
from math import prod
from typing import NamedTuple

import numpy as np

from calibrant.dsl.replayscm.extensions.extension import MechanismClass
from calibrant.dsl.replayscm.extensions.reference import EvidenceWorld
from calibrant.solvers.acyclic.least import Mask, members_of

# --- Evidence as words: a row is a word with a bit per variable, and a word of what was intervened on -----------------


class EvidenceRow(NamedTuple):
    """One row.

    word: values, bit i for variable i of the class; clamped: bits of the intervention's targets
    is_clean: whether it is noise-free, so that only tables that agree are admitted
    """

    word: int
    clamped: int
    is_clean: bool = False


@dataclass(frozen=True)
class VariableRows:
    """The rows that are evidence of one mechanism: those in which its variable is free.

    noisy: word -> number of rows; clean: words of clean rows
    """

    noisy: Mapping[int, int] = field(default_factory=dict)
    clean: frozenset[int] = frozenset()

    @property
    def num_cells(self) -> int:
        """Noisy cells, each of which contributes a factor of the rate or of its complement."""
        return sum(self.noisy.values())


def text_word(text: str) -> int:
    """Return the word of a row string: bit i is character i."""
    return int(text[::-1], 2)


def word_text(word: int, num_vars: int) -> str:
    """Return the row string of a word."""
    return "".join(str(word >> i & 1) for i in range(num_vars))


def target_mask(scm_class: MechanismClass, constants: Iterable[str]) -> int:
    """Return the bits of observed variables."""
    return sum(1 << scm_class.observed.index(variable) for variable in constants)


def evidence_rows(scm_class: MechanismClass, worlds: Iterable[EvidenceWorld]) -> tuple[EvidenceRow, ...]:
    """Return the rows of worlds as words, in order."""
    return tuple(
        EvidenceRow(text_word(row), target_mask(scm_class, world.constants), world.is_clean)
        for world in worlds
        for row in world.rows
    )


def variable_rows(rows: Sequence[EvidenceRow], variable: int) -> VariableRows:
    """Return the evidence of one variable's mechanism."""
    bit = 1 << variable
    # equal rows are one entry: the cost of a weight is sets x different rows
    noisy = Counter(row.word for row in rows if not row.clamped & bit and not row.is_clean)
    # a clean row that is repeated excludes nothing more
    clean = frozenset(row.word for row in rows if not row.clamped & bit and row.is_clean)
    return VariableRows(noisy, clean)


# --- Weights of parent sets under noise: all functions of exactly these parents, each by the probability of its rows

MIN_ARRAY_CELLS = 1_200  # sets x different rows from which arrays are faster
EMPTY_BIT = 62  # of a word, above all variables


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
    """Return a rate over a denominator, its own if None."""
    base = denominator or rate.denominator
    flip = rate.numerator * (base // rate.denominator)
    return Rate(flip, base - flip)


def parent_masks(candidates: Sequence[int], max_parents: int, required: Mask | None = None) -> list[Mask]:
    """Return the sets of at most so many candidates, by size, then lexicographic; every subset of a set is listed.

    required: the only set whose weight will be asked for; then its subsets alone are listed
    """
    if required is not None:
        candidates = [v for v in candidates if required >> v & 1]
        max_parents = len(candidates)
    sizes = range(min(max_parents, len(candidates)) + 1)
    return [sum(1 << v for v in chosen) for size in sizes for chosen in combinations(candidates, size)]


def pattern_counts(rows: VariableRows, variable: int, parents: Mask) -> dict[int, tuple[int, int]]:
    """Return the noisy cells by pattern."""
    counts: dict[int, tuple[int, int]] = {}
    for word, number in rows.noisy.items():
        zeros, ones = counts.get(word & parents, (0, 0))
        counts[word & parents] = (zeros, ones + number) if word >> variable & 1 else (zeros + number, ones)
    return counts


def clean_patterns(rows: VariableRows, variable: int, parents: Mask) -> dict[int, int] | None:
    """Return the value that clean rows state for each pattern; None if two contradict each other."""
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
        # rate 0: the first pattern with both values ends it
        if not product:
            return 0
    # an unseen pattern's two values sum to 1 + 1
    num_open = (1 << parents.bit_count()) - len(counts.keys() | clean.keys())
    return product << num_open


def invert(sums: dict[Mask, int]) -> dict[Mask, int]:
    """Moebius inversion over subsets, in place; every subset of a listed set is listed."""
    every = 0
    for mask in sums:
        every |= mask
    # one variable at a time: k subtractions a set; `mask ^ bit` is not changed in its own pass, so order is free
    for bit in _bits(every):
        for mask in sums:
            if mask & bit:
                sums[mask] -= sums[mask ^ bit]
    return sums


def set_weights(rows: VariableRows, variable: int, masks: Iterable[Mask], rate: Rate) -> dict[Mask, int]:
    """Return w(S) of each set, scaled by base**cells; masks as `parent_masks` lists them."""
    listed = list(masks)
    # clean rows admit one term of a pattern, which counts of cells do not show
    if rows.clean or len(listed) * len(rows.noisy) < MIN_ARRAY_CELLS:
        return invert({mask: table_sum(rows, variable, mask, rate) for mask in listed})
    return invert(dict(zip(listed, table_sums(rows, variable, listed, rate), strict=True)))


def table_sums(rows: VariableRows, variable: int, masks: Sequence[Mask], rate: Rate) -> Iterator[int]:
    """Yield g(T) of many sets; cells are counted by pattern with arrays, products are of integers."""
    words = np.array(list(rows.noisy), np.int64)
    numbers = np.array(list(rows.noisy.values()), np.float64)
    size = max(mask.bit_count() for mask in masks)
    # bit 62 reads 0 in every word, so a smaller set meets the first 2**|T| bins of its block alone
    places = np.full((len(masks), size), EMPTY_BIT, np.int64)
    for i, mask in enumerate(masks):
        members = members_of(mask)
        places[i, : len(members)] = members
    patterns = np.zeros((len(masks), len(words)), np.int64)
    for j in range(size):
        patterns |= (words >> places[:, j, None] & 1) << j
    # a block of bins for each set: one bincount counts for all of them, in doubles, exact below 2**53
    patterns += np.arange(len(masks))[:, None] << size
    is_one = (words >> variable & 1).astype(np.float64)
    shape = len(masks) << size
    every = np.broadcast_to(numbers, patterns.shape).ravel()
    totals = np.bincount(patterns.ravel(), every, shape).astype(np.int64)
    ones = np.bincount(patterns.ravel(), every * np.broadcast_to(is_one, patterns.shape).ravel(), shape).astype(
        np.int64
    )
    # a pair of counts as one number: few different pairs occur, and each big power is computed once
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
