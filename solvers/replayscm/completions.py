"""SCMs on rows with gaps: those whose mechanisms must fit, fit together under one completion, or may fit one by one.

must <= joint <= local. `must` and `local` are sums over acyclic parent sets of numbers of functions; `joint` lists the
members of `local`: one completion of each row has to be what all mechanisms return.
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
MAX_CHECKS = 200_000_000  # members times completions of a row, a second
MAX_STEPS = 2_000_000  # steps of the searches for parent sets and functions

Choice: TypeAlias = Mapping[int, tuple[int, ...]]
"""Parents of each column that is no root, ascending."""


@dataclass(frozen=True, eq=False)
class GappedRows:
    """Rows of two-valued columns by pattern.

    codes: [patterns, columns] 0, 1 or GAP; is_set: [patterns, columns]; counts: [patterns] rows of each
    """

    codes: npt.NDArray[np.int16]
    is_set: npt.NDArray[np.bool_]
    counts: npt.NDArray[np.int64]

    def patterns_of(self, column: int) -> tuple[tuple[int, ...], Patterns]:
        """Return the other columns, and the rows in which this one is known and was not set."""
        rows = (self.codes[:, column] != GAP) & ~self.is_set[:, column]
        others = tuple(k for k in range(self.codes.shape[1]) if k != column)
        values, numbers = self.codes[rows, column], self.counts[rows]
        zeros, ones = np.where(values == 0, numbers, 0), np.where(values == 1, numbers, 0)
        return others, Patterns(self.codes[rows][:, list(others)], zeros, ones)


@dataclass(frozen=True)
class ScmCounts:
    """Numbers of SCMs, or bounds. reached: the budget that `joint` ran out of, None where it is exact."""

    must: Bounds
    joint: Bounds
    local: Bounds
    reached: str | None = None


def count_scms(rows: GappedRows, roots: Sequence[int], max_parents: int) -> ScmCounts:
    """Count the SCMs of at most so many functional parents under these roots."""
    inner = [v for v in range(rows.codes.shape[1]) if v not in roots]
    root_mask = sum(1 << v for v in roots)
    by_column: dict[int, CompletionCounts] = {}
    may: list[dict[int, dict[Mask, int]]] = [{}, {}]
    must: dict[int, dict[Mask, int]] = {}
    for v in inner:
        others, patterns = rows.patterns_of(v)
        counts = by_column[v] = count_functions(patterns, max_parents)
        mask_of = {chosen: sum(1 << others[k] for k in chosen) for chosen in counts.may}
        may[0][v] = {mask_of[chosen]: number.lower for chosen, number in counts.may.items()}
        may[1][v] = {mask_of[chosen]: number.upper for chosen, number in counts.may.items()}
        must[v] = {mask_of[chosen]: number for chosen, number in counts.must.items()}
    must_total, most = bounds(Weights(must, root_mask)), bounds(Weights(may[1], root_mask))
    local = Bounds(bounds(Weights(may[0], root_mask)).lower, most.upper)
    reached = f"more than {MAX_LISTED:,} SCMs, which are not listed"
    if local.lower == local.upper <= MAX_LISTED:
        try:
            number = _count_joint(rows, may[0])
            return ScmCounts(must_total, Bounds(number, number), local)
        except BudgetSpent:
            reached = f"{local.lower:,} SCMs with too many completions to be compared"
    return ScmCounts(must_total, Bounds(must_total.lower, local.upper), local, reached)


def _count_joint(rows: GappedRows, options: Mapping[int, Mapping[Mask, int]]) -> int:
    """Return how many members of `local` replay one completion of every row."""
    steps, checks = Budget(MAX_STEPS), Budget(MAX_CHECKS)
    tables: dict[tuple[int, tuple[int, ...]], npt.NDArray[np.uint64]] = {}
    total = 0
    for choice in _acyclic_choices(options, steps):
        for v, parents in choice.items():
            if (v, parents) not in tables:
                tables[v, parents] = _functions(rows, v, parents, steps)
        total += _count_agreeing(rows, choice, [tables[v, parents] for v, parents in choice.items()], checks)
    return total


def _functions(rows: GappedRows, v: int, parents: tuple[int, ...], steps: Budget) -> npt.NDArray[np.uint64]:
    """Return the truth tables over the parents that may fit and depend on all of them."""
    others, patterns = rows.patterns_of(v)
    num_bits = 1 << len(parents)
    clauses = clauses_of(patterns, tuple(others.index(u) for u in parents))
    listed = np.fromiter(list_assignments(clauses, num_bits, steps), np.uint64)
    depends = np.ones(len(listed), np.bool_)
    for k in range(len(parents)):
        low = np.uint64(sum(1 << row for row in range(num_bits) if not row >> k & 1))
        depends &= ((listed >> np.uint64(1 << k) ^ listed) & low) != 0
    return listed[depends]


def _acyclic_choices(options: Mapping[int, Mapping[Mask, int]], steps: Budget) -> Iterator[Choice]:
    """Yield the acyclic choices of a parent set for each column."""
    inner = sorted(options, key=lambda v: (len(options[v]), v))

    def extend(chosen: dict[int, Mask], ancestors: dict[int, Mask]) -> Iterator[Choice]:
        if len(chosen) == len(inner):
            yield {v: tuple(members_of(chosen[v])) for v in sorted(chosen)}
            return
        v = inner[len(chosen)]
        for mask in options[v]:
            steps.spend(1)
            above = mask
            for u in members_of(mask):
                above |= ancestors.get(u, 0)
            if above >> v & 1:
                continue
            # whatever has v above it has what is above v, too
            extended = {u: reached | above if reached >> v & 1 else reached for u, reached in ancestors.items()}
            yield from extend({**chosen, v: mask}, {**extended, v: above})

    yield from extend({}, {})


def _count_agreeing(rows: GappedRows, choice: Choice, tables: Sequence[npt.NDArray[np.uint64]], checks: Budget) -> int:
    """Return the combinations of functions that have, in every row, a completion that all of them return."""
    inner = list(choice)
    agrees = np.ones([len(listed) for listed in tables], np.bool_)
    for codes, is_set in zip(rows.codes, rows.is_set, strict=True):
        children = [v for v in inner if not is_set[v]]
        gaps = [u for u in np.flatnonzero(codes == GAP).tolist() if any(u in choice[v] for v in children)]
        # without gaps among its parents a known column is right: its functions may fit
        active = [v for v in children if (codes[v] != GAP or v in gaps) and (v in gaps or set(gaps) & {*choice[v]})]
        if not active:
            continue
        checks.spend((1 << len(gaps)) * prod(len(tables[inner.index(v)]) for v in active))
        possible: npt.NDArray[np.bool_] | np.bool_ = np.bool_(False)
        filled = codes.copy()
        for values in product((0, 1), repeat=len(gaps)):
            filled[gaps] = values
            joint: npt.NDArray[np.bool_] | np.bool_ = np.bool_(True)
            for v in active:
                row = sum(int(filled[u]) << k for k, u in enumerate(choice[v]))
                place = inner.index(v)
                value = (tables[place] >> np.uint64(row) & np.uint64(1)) == filled[v]
                joint = joint & value.reshape([-1 if i == place else 1 for i in range(len(inner))])
            possible = possible | joint
        agrees &= possible
    return int(agrees.sum())
