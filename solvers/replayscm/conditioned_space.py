"""Version space conditioned on hypothetical rows, and members that are sampled from it as truth tables.

A row of a world fixes one row of the truth table over every parent set. So the evidence is kept as arrays, one partial
table for each parent set, to which rows are added. One call weights many worlds. Counts and weights are those of
solvers.replayscm.space.

Sampling is that of solvers.replayscm.members: the same seed gives the same members.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import prod
from random import Random

import numpy as np
import numpy.typing as npt

from calibrant.dsl.formulas.table import TruthTable
from calibrant.dsl.replayscm.evaluator import TablePrograms, compile_tables
from calibrant.dsl.replayscm.scm import Scm
from calibrant.dsl.replayscm.world import NO_ROWS, Rows
from calibrant.solvers.acyclic.count import Weights, WordWeights, limbs_for, total
from calibrant.solvers.acyclic.draws import Draws, draw_below, draw_weighted
from calibrant.solvers.acyclic.least import Mask
from calibrant.solvers.formulas.catalogue import constant_sizes
from calibrant.solvers.replayscm._kernels_worlds import add_rows, count_agreeing, find_subsets, weigh_after_worlds
from calibrant.solvers.replayscm.members import sample_completion, write_mechanism
from calibrant.solvers.replayscm.space import NOT_LISTED, VersionSpace

# --- Version space conditioned on hypothetical rows, by updating tables instead of counting from the evidence again
U64 = npt.NDArray[np.uint64]
I64 = npt.NDArray[np.int64]


class ParentSets:
    """Parent sets of all variables of a version space, variable by variable, ascending.

    masks: [e] parent sets; starts: [n + 1] where those of each variable begin
    cares, values: [e] partial tables by the evidence
    below: [e, k] positions of each set without one of its members (`find_subsets`)
    by_size: [size + 1] weight of a function of each size; empty without a cap on size, where every function weighs 1
    constants: [2] size of the formula of each constant, -1 if it has none or sizes do not matter
    """

    def __init__(self, space: VersionSpace, size_penalty: int | None) -> None:
        self.space = space
        self.size_penalty = size_penalty
        local = [space.local(v) for v in space.index.values()]
        # ascending as numbers: a subset comes before its supersets, on which `add_rows` relies
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
            if penalty * cap > 40:  # 2**20 functions of one size would then exceed a word
                raise ValueError(f"weights by size of 2**-{penalty} a node are summed up to size {40 // penalty}")
            self.by_size = np.array([1 << penalty * (cap - size) for size in range(cap + 1)], np.int64)
            for bit, size in constant_sizes(space.functions, space.task.grammar).items():
                self.constants[bit] = size

    def condition(self, rows: Rows) -> ParentSets:
        """Condition on rows: update the tables and drop the sets that no longer determine their variable.

        Rows only add contradictions, so a dropped set keeps weight 0. All its subsets are dropped too, so that Moebius
        inversion of the others does not need it.
        """
        cares, values = np.empty_like(self.cares), np.empty_like(self.values)
        add_rows(
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
        consistent = values & ~cares == 0
        conditioned = ParentSets.__new__(ParentSets)
        conditioned.space, conditioned.size_penalty, conditioned.listed = self.space, self.size_penalty, self.listed
        conditioned.constants, conditioned.by_size = self.constants, self.by_size
        conditioned.masks, conditioned.cares, conditioned.values = (
            self.masks[consistent],
            cares[consistent],
            values[consistent],
        )
        conditioned.starts = np.concatenate([[0], np.cumsum(consistent)])[self.starts]
        conditioned._find_below()
        return conditioned

    def _find_below(self) -> None:
        self.below: I64 = np.empty((len(self.masks), self.space.model_class.max_parents), np.int64)
        for start, end in pairwise(self.starts.tolist()):
            # the sets ascend already: their order is the identity
            find_subsets(self.masks[start:end], np.arange(end - start), self.below[start:end])

    def weights(self, cares: U64, values: U64, rows: Rows, spans: I64) -> U64:
        """Return the weight of each parent set after the rows from spans[b] to spans[b + 1] - 1; shape [b, e]."""
        weights = np.empty((len(spans) - 1, len(self.masks)), np.uint64)
        weigh_after_worlds(
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

    def slice_of(self, variable: int) -> slice:
        """Return the slice of a variable's sets."""
        return slice(int(self.starts[variable]), int(self.starts[variable + 1]))

    @cached_property
    def set_offsets(self) -> list[dict[Mask, int]]:
        """Return the offset of each parent set, per variable."""
        masks, starts = self.masks.tolist(), self.starts.tolist()
        return [dict(zip(masks[a:b], range(a, b), strict=True)) for a, b in pairwise(starts)]

    def dag_weights(self, weights: U64, roots: Sequence[str]) -> Weights:
        """Return the weights of a sum over acyclic assignments under a root set; weights: [e]."""
        index = self.space.index
        options = {}
        for variable in (v for name, v in index.items() if name not in roots):
            section = self.slice_of(variable)
            pairs = zip(self.masks[section].tolist(), weights[section].tolist(), strict=True)
            options[variable] = {mask: weight for mask, weight in pairs if weight}
        return Weights(options, sum(1 << index[root] for root in roots))

    def group(self, variables: Sequence[int], weights: U64) -> WordWeights | None:
        """Lay out some variables for the kernels' sums; later weights may not exceed `weights` in any entry.

        None for too many variables, or if the weights of one variable add up to more than a word.
        """
        slices = [self.slice_of(v) for v in variables]
        limbs = limbs_for([sum(weights[section].tolist()) for section in slices])
        if limbs is None:
            return None
        entries = np.concatenate([np.arange(section.start, section.stop) for section in slices])
        inside = np.zeros(len(entries), np.int64)
        for i, v in enumerate(variables):
            inside |= (self.masks[entries] >> v & 1) << i
        starts = np.cumsum([0, *(section.stop - section.start for section in slices)])
        return WordWeights(weights, entries, inside, starts, limbs)


class ConditionedSpace:
    """Members with one root set, given the evidence and added rows.

    cares, values: [e] partial tables of the parent sets, by evidence and rows together
    """

    def __init__(self, sets: ParentSets, roots: tuple[str, ...]) -> None:
        self.sets = sets
        self.roots = roots
        self.cares, self.values = sets.cares, sets.values
        # the components by the evidence serve all conditioned spaces: rows only remove parent sets, hence arcs
        weights = self._weights
        all_weights = sets.dag_weights(weights, roots)
        groups = [sets.group(part.endogenous, weights) for part in all_weights.components()]
        self._groups = [group for group in groups if group]
        self._fits_words = len(self._groups) == len(groups)
        self._ungrouped = sets.group(all_weights.endogenous, weights)

    def condition(self, rows: Rows) -> ConditionedSpace:
        """Return the space of the members that also fit these rows."""
        conditioned = ConditionedSpace.__new__(ConditionedSpace)
        conditioned.sets, conditioned.roots, conditioned._ungrouped = self.sets, self.roots, self._ungrouped
        conditioned._groups, conditioned._fits_words = self._groups, self._fits_words
        # weights only fall with more rows, so the words that are enough for the evidence hold every later sum
        conditioned.cares, conditioned.values = np.empty_like(self.cares), np.empty_like(self.values)
        evidence = self.sets.masks, self.sets.starts, self.cares, self.values, self.sets.below
        add_rows(*evidence, rows.words, rows.targets, 0, len(rows.words), conditioned.cares, conditioned.values)
        return conditioned

    @cached_property
    def _weights(self) -> U64:
        """Weight of each parent set; shape [e]."""
        weights: U64 = self.sets.weights(self.cares, self.values, NO_ROWS, np.zeros(2, np.int64))[0]
        return weights

    @cached_property
    def mass(self) -> int:
        """Total weight of all members: their number unless there is a penalty on size."""
        return self.totals(self._weights[None])[0]

    def masses(self, rows: Rows, spans: I64) -> list[int]:
        """Return, for each b, the total weight of the members that fit the rows from spans[b] to spans[b + 1] - 1."""
        return self.totals(self.sets.weights(self.cares, self.values, rows, spans))

    def mass_with(self, rows: Rows) -> int:
        """Return the total weight of the members that also fit these rows."""
        return self.masses(rows, np.array([0, len(rows.words)], np.int64))[0]

    def totals(self, weights: U64) -> list[int]:
        """Return the total weight of all members, for each row of weights of the parent sets."""
        # if the weights of one variable exceed a word, all components are summed in Python integers
        if not self._fits_words:
            return [total(self.sets.dag_weights(row, self.roots)) for row in weights]
        # no cycle crosses components, so the sum is a product of sums, of 3**m terms each
        factors = [group.totals(weights) for group in self._groups]
        return [prod(parts) for parts in zip(*factors, strict=True)] if factors else [1] * len(weights)

    @cached_property
    def draws(self) -> Draws:
        """Sampler of parent sets; samples share its sums."""
        weights = self.sets.dag_weights(self._weights, self.roots)
        if self._ungrouped is not None:
            weights.words = self._ungrouped._replace(weights=self._weights)  # laid out once, for the evidence
        return Draws(weights)


# --- Members of a conditioned space, sampled as truth tables; formulas are written only on request --------------------
ALWAYS_WRITTEN = {"not", "and", "or"}  # with these every function has a formula


@dataclass(frozen=True)
class Members:
    """Sampled members with one root set, as programs over the task's variables."""

    space: ConditionedSpace
    programs: TablePrograms

    def __len__(self) -> int:
        return len(self.programs)

    def outcomes(self, rows: Rows) -> U64:
        """Replay each member in each row: targets and roots as given, all else computed; shape [members, rows]."""
        return self.programs.replay(rows)

    def scm(self, member: int) -> Scm:
        """Return a member with formulas, of least size wherever the catalogues list them."""
        space, roots = self.space.sets.space, self.space.roots
        arrays = self.programs.order, self.programs.masks, self.programs.tables
        parts = zip(*(array[member].tolist() for array in arrays), strict=True)
        return Scm(
            roots,
            {
                space.task.variables[v]: write_mechanism(space, roots, v, mask, TruthTable(mask.bit_count(), table))
                for v, mask, table in sorted(parts)
            },
        )


def draw(space: ConditionedSpace, rng: Random, num_members: int) -> Members:
    """Sample independent members; `ValueError` from an empty space, or if a member cannot be written as formulas."""
    draws = _Draws(space, rng)
    members = [draws.member() for _ in range(num_members)]
    members_drawn = Members(space, compile_tables(members, len(space.draws.weights.endogenous)))
    # with fewer operators some functions have no formula: write all now, so that the error comes before any use
    if not ALWAYS_WRITTEN.issubset(space.sets.space.task.grammar.operators):
        for member in range(num_members):
            members_drawn.scm(member)
    return members_drawn


class _Draws:
    """Sampler of one space; counts are cached from member to member."""

    def __init__(self, space: ConditionedSpace, rng: Random) -> None:
        self.sets = space.sets
        self.space = space
        self.rng = rng
        self._sizes: dict[int, tuple[list[tuple[tuple[int, int], int]], int]] = {}
        self._functions: dict[tuple[int, int, int], int] = {}
        self._constants_written: set[int] = set()

    def member(self) -> list[tuple[int, Mask, int]]:
        """Sample a member: triples (variable, parent set, table bits), parents first."""
        draws = self.space.draws
        if not draws.total:
            raise ValueError("the version space is empty")
        # consume the random number by which `sample_member` chooses among root sets: equal seeds, equal members
        draw_below(self.rng, draws.total)
        chosen = draws.draw(self.rng)
        # ascending variables: random numbers are consumed in the order of `sample_member`
        tables = {v: self._function(v, mask) for v, mask in sorted(chosen.items())}
        return [(v, mask, tables[v]) for v, mask in chosen.items()]

    def _function(self, variable: int, mask: Mask) -> int:
        index = self.sets.set_offsets[variable][mask]
        bits = self._bits(index, mask)
        if not mask and variable not in self._constants_written:
            # raises if no formula can express the constant
            write_mechanism(self.sets.space, self.space.roots, variable, mask, TruthTable(0, bits))
            self._constants_written.add(variable)
        return bits

    def _bits(self, index: int, mask: Mask) -> int:
        care, value = self.space.cares[index], self.space.values[index]
        # without a cap on size, by rejection: the 2**64 functions of 6 variables cannot be listed
        if not len(self.sets.by_size):
            return sample_completion(self.rng, mask.bit_count(), int(care), int(value))
        if index not in self._sizes:
            self._sizes[index] = self._by_size(index, mask)
        # draw a size, then a rank among the functions of that size: uniform without listing them
        options, total = self._sizes[index]
        size, count = draw_weighted(self.rng, options, total)
        key = index, size, draw_below(self.rng, count)
        if key not in self._functions:
            selected = self._agreeing(index, mask, size, key[2])[0] if mask else self._constants(index, size)[key[2]]
            self._functions[key] = int(selected)
        return self._functions[key]

    def _by_size(self, index: int, mask: Mask) -> tuple[list[tuple[tuple[int, int], int]], int]:
        """Return pairs ((size, number of agreeing functions of this size), their weight), and the total weight."""
        if mask:
            counts = self._agreeing(index, mask, -1, 0)[1].tolist()
        else:
            counts = [len(self._constants(index, size)) for size in range(len(self.sets.by_size))]
        by_size = zip(counts, self.sets.by_size.tolist(), strict=True)
        options = [((size, count), count * weight) for size, (count, weight) in enumerate(by_size) if count]
        return options, sum(weight for _, weight in options)

    def _constants(self, index: int, size: int) -> list[int]:
        """Return the constants that agree with the table of an empty parent set and have formulas of this size."""
        care, value = int(self.space.cares[index]), int(self.space.values[index])
        return [bit for bit in (0, 1) if self.sets.constants[bit] == size and (bit ^ value) & care == 0]

    def _agreeing(self, index: int, mask: Mask, size: int, rank: int) -> tuple[np.uint64, I64]:
        """Return the agreeing function of this size and rank, and the numbers of agreeing functions by size."""
        listed, histogram = self.sets.listed, np.empty(len(self.sets.by_size), np.int64)
        care, value = self.space.cares[index], self.space.values[index]
        selected = count_agreeing(
            mask.bit_count(), care, value, listed.bits, listed.sizes, listed.prefixes, size, rank, histogram
        )
        return selected, histogram
