"""Columns of hidden variables: their values in all rows, which the posterior sums over.

A hidden variable is a function of observed parents T, so in the rows it is a function of the seen T-patterns. A column
of p seen patterns weighs w_H(T; c), the functions of exactly T that agree with it. Negating a hidden variable, in its
function and in those of its children, changes no row: one seen pattern's bit is fixed to 0 and the weight doubled.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

from calibrant.dsl.replayscm.extensions.extension import MechanismClass
from calibrant.solvers.acyclic.least import Mask
from calibrant.solvers.budget import BudgetSpent
from calibrant.solvers.replayscm.noise.local_weights import invert, parent_masks

# stated parents stay far below: 2**15 columns for one variable of 4 parents, 2**14 for two of 3
MAX_COLUMNS = 1 << 20


@dataclass(frozen=True)
class HiddenColumn:
    """One hidden variable's values by pattern of its parents.

    index: of the variable; parents: mask; values: masked word -> bit, for seen patterns
    num_functions: functions of exactly these parents that agree, both signs together; num_parents: for the prior
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
    """Every column of some weight, one of each pair of negations, with the weight of both.

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
            number = num_agreeing(values, parents)
            if number:
                # without rows no bit is fixed, and the single column holds both signs already
                yield HiddenColumn(index, parents, values, number << (1 if patterns else 0))


def hidden_columns(scm_class: MechanismClass, words: Sequence[int]) -> Iterator[tuple[HiddenColumn, ...]]:
    """Every combination of columns, one for each hidden variable; a single empty one without hidden variables."""
    listed = [list(list_columns(scm_class, name, words)) for name in scm_class.hidden_parents]
    if prod(len(columns) for columns in listed) > MAX_COLUMNS:
        number = " x ".join(f"{len(columns):,}" for columns in listed)
        raise BudgetSpent(f"{number} columns of hidden variables; summed are up to {MAX_COLUMNS:,}")
    return product(*listed)
