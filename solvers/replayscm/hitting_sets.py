"""Parent sets by hitting: two rows that differ in a variable must differ in one of its parents.

Independent of the kernels that count: rows are compared pairwise, and the sets that hit every difference are listed by
branching on a difference that is not hit yet. The work grows with the sets that there are, not with all subsets.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from calibrant.dsl.formulas.partial import PartialTable
from calibrant.dsl.replayscm.world import Panel
from calibrant.solvers.acyclic.least_cost import Mask


@dataclass(frozen=True, slots=True)
class ScoredRows:
    """The distinct rows in which one variable is scored, over the candidates for its parents.

    candidates: variable indices, ascending
    patterns: the candidates' values, bit i for candidates[i]; a pattern seen with both values occurs twice
    values: what the variable was in each
    """

    candidates: tuple[int, ...]
    patterns: tuple[int, ...]
    values: tuple[bool, ...]

    def differences(self) -> list[Mask]:
        """The minimal sets, over positions of the candidates, of which every parent set contains at least one."""
        ones = [p for p, value in zip(self.patterns, self.values, strict=True) if value]
        zeros = [p for p, value in zip(self.patterns, self.values, strict=True) if not value]
        minimal: list[Mask] = []
        for mask in sorted({one ^ zero for one in ones for zero in zeros}, key=lambda m: (m.bit_count(), m)):
            if all(smaller & ~mask for smaller in minimal):
                minimal.append(mask)
        return minimal

    def table(self, positions: Sequence[int]) -> PartialTable:
        """Return what the rows say of a function of these candidates; variable i of the table is the i-th of them."""
        care = value = 0
        for pattern, bit in zip(self.patterns, self.values, strict=True):
            row = sum((pattern >> position & 1) << i for i, position in enumerate(positions))
            care |= 1 << row
            value |= bit << row
        return PartialTable(len(positions), care, value)


def scored_rows(panel: Panel, target: str, candidates: Collection[str]) -> ScoredRows:
    """The rows of a panel in which the target is not intervened on."""
    indices = [i for i, variable in enumerate(panel.variables) if variable in candidates]
    columns = [panel.columns[panel.variables[i]] for i in indices]
    rows = {
        (sum((column >> r & 1) << i for i, column in enumerate(columns)), bool(panel.columns[target] >> r & 1))
        for r in range(panel.num_rows)
        if not panel.clamped[target] >> r & 1
    }
    ordered = sorted(rows)
    return ScoredRows(tuple(indices), tuple(p for p, _ in ordered), tuple(value for _, value in ordered))


def hitting_sets(masks: Sequence[Mask], num_candidates: int, max_size: int) -> Iterator[tuple[int, ...]]:
    """Every set of at most `max_size` of the positions that meets all masks, each exactly once, members ascending."""

    def extend(chosen: Mask, barred: Mask) -> Iterator[Mask]:
        spare = max_size - chosen.bit_count()
        open_mask = next((mask for mask in masks if not mask & chosen), None)
        if open_mask is None:
            free = [i for i in range(num_candidates) if not (chosen | barred) >> i & 1]
            for size in range(min(spare, len(free)) + 1):
                yield from (chosen | sum(1 << i for i in more) for more in combinations(free, size))
            return
        left = open_mask & ~barred if spare > 0 else 0
        while left:
            bit = left & -left
            yield from extend(chosen | bit, barred)
            left, barred = left ^ bit, barred | bit  # the sets with this one are listed now

    for chosen in extend(0, 0):
        yield tuple(i for i in range(num_candidates) if chosen >> i & 1)
