"""A version space in which further rows are imagined: what was counted of the evidence is brought up to date by them.

What a row tells of a mechanism is one row of its table, over every parent set. So what the evidence says is kept as
arrays, a table a parent set, and rows are added to these; the evidence is not read again. Many worlds are weighed in
one call. Counts and weights are those of solvers.replayscm.version_space.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise
from math import prod
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from calibrant.solvers.acyclic.count import Weights, total
from calibrant.solvers.acyclic.draws import Draws
from calibrant.solvers.acyclic.fixed_width_sums import WordWeights, limbs_for
from calibrant.solvers.acyclic.least_cost import Mask
from calibrant.solvers.formulas.essential import constant_sizes
from calibrant.solvers.replayscm._kernels_worlds import after_rows, subsets_below, weights_after
from calibrant.solvers.replayscm.function_index import NOT_LISTED
from calibrant.solvers.replayscm.version_space import VersionSpace

U64 = npt.NDArray[np.uint64]
I64 = npt.NDArray[np.int64]
NO_WORD = np.empty(0, np.uint64)


class Rows(NamedTuple):
    """Rows of worlds: [r] values and [r] targets, a bit per variable of the task."""

    words: U64
    targets: U64

    def at(self, chosen: slice | I64) -> Rows:
        """Some of them."""
        return Rows(self.words[chosen], self.targets[chosen])


NO_ROWS = Rows(NO_WORD, NO_WORD)


class ParentSets:
    """The parent sets of all variables of a version space, one variable after another, ascending.

    masks: [e]; starts: [n + 1] where those of each variable begin; cares, values: [e] what the evidence says
    below: [e, k] where each set is without one of its members, as the kernels want it
    by_size: [size + 1] weight of a function of each size; empty for a class without a cap, where every one weighs 1
    """

    def __init__(self, space: VersionSpace, size_penalty: int | None) -> None:
        self.space = space
        self.size_penalty = size_penalty
        local = [space.local(v) for v in space.index.values()]
        orders = [np.argsort(counts.masks) for counts in local]
        self.starts: I64 = np.cumsum([0, *(len(order) for order in orders)])
        self.masks: I64 = np.concatenate([counts.masks[order] for counts, order in zip(local, orders, strict=True)])
        self.cares: U64 = np.concatenate([counts.cares[order] for counts, order in zip(local, orders, strict=True)])
        self.values: U64 = np.concatenate([counts.values[order] for counts, order in zip(local, orders, strict=True)])
        self._find_below()
        cap = space.model_class.max_size
        if cap is None and size_penalty is not None:
            raise ValueError("weights by size need a class with a size cap")
        penalty = size_penalty or 0
        self.listed = NOT_LISTED if cap is None else space.listed
        self.constants: I64 = np.full(2, -1, np.int64)
        self.by_size: I64 = np.empty(0, np.int64)
        if cap is not None:
            if penalty * cap > 40:  # 2**20 functions of one size would not fit a word
                raise ValueError(f"weights by size of 2**-{penalty} a node are summed up to size {40 // penalty}")
            self.by_size = np.array([1 << penalty * (cap - size) for size in range(cap + 1)], np.int64)
            for bit, size in constant_sizes(space.functions, space.task.grammar).items():
                self.constants[bit] = size

    def given(self, rows: Rows) -> ParentSets:
        """The parent sets that are left once these rows are seen, and what is then known of them; the rest is dropped.

        What a dropped set weighs stays 0, and so do the smaller sets that it would be needed for.
        """
        cares, values = np.empty_like(self.cares), np.empty_like(self.values)
        after_rows(
            self.masks,
            self.starts,
            self.cares,
            self.values,
            self.below,
            rows.words,
            rows.targets,
            0,
            len(rows.words),
            cares,
            values,
        )
        left = values & ~cares == 0
        other = ParentSets.__new__(ParentSets)
        other.space, other.size_penalty, other.listed = self.space, self.size_penalty, self.listed
        other.constants, other.by_size = self.constants, self.by_size
        other.masks, other.cares, other.values = self.masks[left], cares[left], values[left]
        other.starts = np.concatenate([[0], np.cumsum(left)])[self.starts]
        other._find_below()
        return other

    def _find_below(self) -> None:
        self.below: I64 = np.empty((len(self.masks), self.space.model_class.max_parents), np.int64)
        for start, end in pairwise(self.starts.tolist()):
            subsets_below(self.masks[start:end], np.arange(end - start), self.below[start:end])

    def weights(self, cares: U64, values: U64, rows: Rows, spans: I64) -> U64:
        """[b, e] the weight of each parent set if the rows from spans[b] to spans[b + 1] - 1 are seen as well."""
        weights = np.empty((len(spans) - 1, len(self.masks)), np.uint64)
        weights_after(
            self.masks,
            self.starts,
            cares,
            values,
            self.below,
            rows.words,
            rows.targets,
            spans,
            self.listed.bits,
            self.listed.sizes,
            self.listed.prefixes,
            self.by_size,
            self.constants,
            weights,
        )
        return weights

    def own(self, variable: int) -> slice:
        """Return where the sets of a variable are."""
        return slice(int(self.starts[variable]), int(self.starts[variable + 1]))

    @cached_property
    def set_offsets(self) -> list[dict[Mask, int]]:
        """Return the offset of each parent set, per variable."""
        masks, starts = self.masks.tolist(), self.starts.tolist()
        return [dict(zip(masks[a:b], range(a, b), strict=True)) for a, b in pairwise(starts)]

    def dag_weights(self, weights: U64, roots: Sequence[str]) -> Weights:
        """One row of weights as the sum over acyclic choices under a root set."""
        index = self.space.index
        options = {}
        for variable in (v for name, v in index.items() if name not in roots):
            part = self.own(variable)
            listed = zip(self.masks[part].tolist(), weights[part].tolist(), strict=True)
            options[variable] = {mask: weight for mask, weight in listed if weight}
        return Weights(options, sum(1 << index[root] for root in roots))

    def group(self, variables: Sequence[int], weights: U64) -> WordWeights | None:
        """Return what the kernels need to sum over some variables; no entry of a row may exceed that of `weights`.

        None if the weights of one variable do not fit a word together.
        """
        slices = [self.own(v) for v in variables]
        limbs = limbs_for([sum(weights[part].tolist()) for part in slices])
        if limbs is None:
            return None
        entries = np.concatenate([np.arange(part.start, part.stop) for part in slices])
        inside = np.zeros(len(entries), np.int64)
        for i, v in enumerate(variables):
            inside |= (self.masks[entries] >> v & 1) << i
        starts = np.cumsum([0, *(part.stop - part.start for part in slices)])
        return WordWeights(weights, entries, inside, starts, limbs)


class ConditionedSpace:
    """The members with one root set, given the evidence and the rows that were added.

    sets: the parent sets; roots: the root set; cares, values: [e] what evidence and rows say together
    """

    def __init__(self, sets: ParentSets, roots: tuple[str, ...]) -> None:
        self.sets = sets
        self.roots = roots
        self.cares, self.values = sets.cares, sets.values
        weights = self._weights
        together = sets.dag_weights(weights, roots)
        groups = [sets.group(part.endogenous, weights) for part in together.components()]
        self._groups = [group for group in groups if group]
        self._in_words = len(self._groups) == len(groups)
        self._together = sets.group(together.endogenous, weights)

    def given(self, rows: Rows) -> ConditionedSpace:
        """The members that show these rows as well."""
        other = ConditionedSpace.__new__(ConditionedSpace)
        other.sets, other.roots, other._together = self.sets, self.roots, self._together
        other._groups, other._in_words = self._groups, self._in_words
        other.cares, other.values = np.empty_like(self.cares), np.empty_like(self.values)
        before = self.sets.masks, self.sets.starts, self.cares, self.values, self.sets.below
        after_rows(*before, rows.words, rows.targets, 0, len(rows.words), other.cares, other.values)
        return other

    @cached_property
    def _weights(self) -> U64:
        """[e] the weight of each parent set."""
        weights: U64 = self.sets.weights(self.cares, self.values, NO_ROWS, np.zeros(2, np.int64))[0]
        return weights

    @cached_property
    def mass(self) -> int:
        """The weights of all members together: their number unless there is a penalty on size."""
        return self.totals(self._weights[None])[0]

    def masses(self, rows: Rows, spans: I64) -> list[int]:
        """The weights of the members that show the rows from spans[b] to spans[b + 1] - 1, for each b."""
        return self.totals(self.sets.weights(self.cares, self.values, rows, spans))

    def mass_with(self, rows: Rows) -> int:
        """The weight of the members that show these rows as well."""
        return self.masses(rows, np.array([0, len(rows.words)], np.int64))[0]

    def totals(self, weights: U64) -> list[int]:
        """The weights of all members together, for each row of weights of the parent sets."""
        if not self._in_words:
            return [total(self.sets.dag_weights(row, self.roots)) for row in weights]
        factors = [group.totals(weights) for group in self._groups]
        return [prod(parts) for parts in zip(*factors, strict=True)] if factors else [1] * len(weights)

    @cached_property
    def draws(self) -> Draws:
        """Return what draws of parent sets share."""
        weights = self.sets.dag_weights(self._weights, self.roots)
        if self._together is not None:
            weights.words = self._together._replace(weights=self._weights)  # the same sets as in every such space
        return Draws(weights)
