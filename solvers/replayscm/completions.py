"""Counts of SCMs that fit rows with gaps.

`must`: every mechanism fits under every completion of the gaps; `joint`: all mechanisms fit under a common completion;
`local`: each mechanism fits under some completion. must <= joint <= local. `must` and `local` sum, over acyclic
parent-set assignments, the product of the numbers of functions; `joint` lists the members of `local` and tests each.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from calibrant.solvers.acyclic.count import Bounds, Weights, bounds
from calibrant.solvers.acyclic.least import Mask, members_of
from calibrant.solvers.formulas.fronts import GAP, Patterns
from calibrant.solvers.formulas.uncertain_rows import CompletionCounts, clauses_of, count_functions, list_assignments
from calibrant.solvers.outcome import Budget, BudgetSpent

MAX_LISTED = 100_000  # members of `local`
MAX_CHECKS = 200_000_000  # members times completions of a row: about a second
MAX_STEPS = 2_000_000  # steps of the searches for parent sets and functions

ParentAssignment: TypeAlias = Mapping[int, tuple[int, ...]]
"""Parents of each column that is no root, ascending."""


@dataclass(frozen=True, eq=False)
class GappedRows:
    """Rows of two-valued columns by pattern.

    codes: [patterns, columns] 0, 1 or GAP
    is_set: [patterns, columns] whether the column was intervened on
    counts: [patterns] rows that have the pattern
    """

    codes: npt.NDArray[np.int16]
    is_set: npt.NDArray[np.bool_]
    counts: npt.NDArray[np.int64]

    def patterns_of(self, column: int) -> tuple[tuple[int, ...], Patterns]:
        """Return the other columns, and their patterns in the rows in which this one is known and was not set."""
        rows = (self.codes[:, column] != GAP) & ~self.is_set[:, column]
        others = tuple(k for k in range(self.codes.shape[1]) if k != column)
        values, row_counts = self.codes[rows, column], self.counts[rows]
        zeros, ones = np.where(values == 0, row_counts, 0), np.where(values == 1, row_counts, 0)
        return others, Patterns(self.codes[rows][:, list(others)], zeros, ones)


@dataclass(frozen=True)
class ScmCounts:
    """Numbers of SCMs, or bounds; `inexact_reason`: why `joint` is not exact, None if it is."""

    must: Bounds
    joint: Bounds
    local: Bounds
    inexact_reason: str | None = None


def count_scms(rows: GappedRows, roots: Sequence[int], max_parents: int) -> ScmCounts:
    """Count the SCMs with at most `max_parents` functional parents of each column that is no root."""
    inner = [v for v in range(rows.codes.shape[1]) if v not in roots]
    root_mask = sum(1 << v for v in roots)
    by_column: dict[int, CompletionCounts] = {}
    local_lower: dict[int, dict[Mask, int]] = {}
    local_upper: dict[int, dict[Mask, int]] = {}
    must: dict[int, dict[Mask, int]] = {}
    for v in inner:
        others, patterns = rows.patterns_of(v)
        counts = by_column[v] = count_functions(patterns, max_parents)
        mask_of = {chosen: sum(1 << others[k] for k in chosen) for chosen in counts.may}
        local_lower[v] = {mask_of[chosen]: bound.lower for chosen, bound in counts.may.items()}
        local_upper[v] = {mask_of[chosen]: bound.upper for chosen, bound in counts.may.items()}
        must[v] = {mask_of[chosen]: count for chosen, count in counts.must.items()}
    must_total = bounds(Weights(must, root_mask))
    local = Bounds(bounds(Weights(local_lower, root_mask)).lower, bounds(Weights(local_upper, root_mask)).upper)
    reason = f"more than {MAX_LISTED:,} SCMs, which are not listed"
    if local.lower == local.upper <= MAX_LISTED:
        try:
            joint = _count_joint(rows, local_lower)
            return ScmCounts(must_total, Bounds(joint, joint), local)
        except BudgetSpent:
            reason = f"{local.lower:,} SCMs with too many completions to be compared"
    return ScmCounts(must_total, Bounds(must_total.lower, local.upper), local, reason)


def _count_joint(rows: GappedRows, options: Mapping[int, Mapping[Mask, int]]) -> int:
    """Count the members of `local` that replay one completion of every row."""
    steps, checks = Budget(MAX_STEPS), Budget(MAX_CHECKS)
    tables: dict[tuple[int, tuple[int, ...]], npt.NDArray[np.uint64]] = {}
    total = 0
    for assignment in _acyclic_assignments(options, steps):
        for v, parents in assignment.items():
            if (v, parents) not in tables:
                tables[v, parents] = _fitting_functions(rows, v, parents, steps)
        total += _count_agreeing(rows, assignment, [tables[v, parents] for v, parents in assignment.items()], checks)
    return total


def _fitting_functions(rows: GappedRows, v: int, parents: tuple[int, ...], steps: Budget) -> npt.NDArray[np.uint64]:
    """Return the truth tables over the parents that fit under some completion and depend on all parents."""
    others, patterns = rows.patterns_of(v)
    num_bits = 1 << len(parents)
    clauses = clauses_of(patterns, tuple(others.index(u) for u in parents))
    functions = np.fromiter(list_assignments(clauses, num_bits, steps), np.uint64)
    depends = np.ones(len(functions), np.bool_)
    for k in range(len(parents)):  # some row changes when parent k goes from 0 to 1
        low = np.uint64(sum(1 << row for row in range(num_bits) if not row >> k & 1))
        depends &= ((functions >> np.uint64(1 << k) ^ functions) & low) != 0
    return functions[depends]


def _acyclic_assignments(options: Mapping[int, Mapping[Mask, int]], steps: Budget) -> Iterator[ParentAssignment]:
    """Yield the acyclic assignments of one parent set to each column that is no root."""
    inner = sorted(options, key=lambda v: (len(options[v]), v))

    def extend(chosen: dict[int, Mask], ancestors: dict[int, Mask]) -> Iterator[ParentAssignment]:
        if len(chosen) == len(inner):
            yield {v: tuple(members_of(chosen[v])) for v in sorted(chosen)}
            return
        v = inner[len(chosen)]
        for mask in options[v]:
            steps.spend(1)
            ancestors_of_v = mask
            for u in members_of(mask):
                ancestors_of_v |= ancestors.get(u, 0)
            if ancestors_of_v >> v & 1:
                continue
            # descendants of v inherit v's ancestors
            extended = {u: old | ancestors_of_v if old >> v & 1 else old for u, old in ancestors.items()}
            yield from extend({**chosen, v: mask}, {**extended, v: ancestors_of_v})

    yield from extend({}, {})


def _count_agreeing(
    rows: GappedRows, assignment: ParentAssignment, tables: Sequence[npt.NDArray[np.uint64]], checks: Budget
) -> int:
    """Count the combinations of functions, one of each table, that all reproduce one completion of every row."""
    inner = list(assignment)
    agrees = np.ones([len(functions) for functions in tables], np.bool_)
    for codes, is_set in zip(rows.codes, rows.is_set, strict=True):
        children = [v for v in inner if not is_set[v]]
        gaps = [u for u in np.flatnonzero(codes == GAP).tolist() if any(u in assignment[v] for v in children)]
        # a known column whose parents are known is reproduced by every function of its table: skip it
        active = [v for v in children if (codes[v] != GAP or v in gaps) and (v in gaps or set(gaps) & {*assignment[v]})]
        if not active:
            continue
        checks.spend((1 << len(gaps)) * prod(len(tables[inner.index(v)]) for v in active))
        has_completion: npt.NDArray[np.bool_] | np.bool_ = np.bool_(False)
        filled = codes.copy()
        for values in product((0, 1), repeat=len(gaps)):
            filled[gaps] = values
            joint: npt.NDArray[np.bool_] | np.bool_ = np.bool_(True)
            for v in active:
                row = sum(int(filled[u]) << k for k, u in enumerate(assignment[v]))
                axis = inner.index(v)
                value = (tables[axis] >> np.uint64(row) & np.uint64(1)) == filled[v]
                joint = joint & value.reshape([-1 if i == axis else 1 for i in range(len(inner))])
            has_completion = has_completion | joint
        agrees &= has_completion
    return int(agrees.sum())
