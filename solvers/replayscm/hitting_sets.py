"""Parent sets as hitting sets: two rows that differ in a variable must differ in one of its parents.

Independent of the kernels that count: rows are compared pairwise, and the sets that hit every difference are listed by
branching on an unhit difference. The work grows with the number of solutions, not of subsets.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from calibrant.dsl.formulas.table import PartialTable
from calibrant.dsl.replayscm.world import Panel
from calibrant.solvers.acyclic.least import Mask


@dataclass(frozen=True, slots=True)
class ScoredRows:
    """Distinct rows in which one variable is scored, over its candidate parents.

    candidates: variable indices, ascending
    patterns: the candidates' values, bit i for candidates[i]; a pattern with both values of the variable occurs twice
    values: the variable's value in each
    """

    candidates: tuple[int, ...]
    patterns: tuple[int, ...]
    values: tuple[bool, ...]

    def differences(self) -> list[Mask]:
        """Return the minimal sets of positions of which every parent set must contain at least one member."""
        ones = [p for p, value in zip(self.patterns, self.values, strict=True) if value]
        zeros = [p for p, value in zip(self.patterns, self.values, strict=True) if not value]
        # ascending by size: a set that hits a difference hits its supersets, so only minimal ones need a branch
        minimal: list[Mask] = []
        for mask in sorted(
            {pattern ^ other_pattern for pattern in ones for other_pattern in zeros}, key=lambda m: (m.bit_count(), m)
        ):
            if all(smaller & ~mask for smaller in minimal):
                minimal.append(mask)
        return minimal

    def table(self, positions: Sequence[int]) -> PartialTable:
        """Return the partial table over these candidates; variable i of the table is the i-th of them."""
        care = value = 0
        for pattern, bit in zip(self.patterns, self.values, strict=True):
            row = sum((pattern >> position & 1) << i for i, position in enumerate(positions))
            care |= 1 << row
            value |= bit << row
        return PartialTable(len(positions), care, value)


def scored_rows(panel: Panel, target: str, candidates: Collection[str]) -> ScoredRows:
    """Return the rows of a panel in which the target is not intervened on."""
    indices = [i for i, variable in enumerate(panel.variables) if variable in candidates]
    columns = [panel.columns[panel.variables[i]] for i in indices]
    rows = {
        (sum((column >> r & 1) << i for i, column in enumerate(columns)), bool(panel.columns[target] >> r & 1))
        for r in range(panel.num_rows)
        if not panel.clamped[target] >> r & 1
    }
    ordered = sorted(rows)
    return ScoredRows(tuple(indices), tuple(p for p, _ in ordered), tuple(value for _, value in ordered))


def list_hitting_sets(masks: Sequence[Mask], num_candidates: int, max_size: int) -> Iterator[tuple[int, ...]]:
    """List every set of at most `max_size` positions that hits all masks, each exactly once, members ascending."""

    def extend(chosen: Mask, excluded: Mask) -> Iterator[Mask]:
        num_addable = max_size - chosen.bit_count()
        open_mask = next((mask for mask in masks if not mask & chosen), None)
        if open_mask is None:
            # all differences are hit: every addition is a solution, and listing them is the rest of the work
            free = [i for i in range(num_candidates) if not (chosen | excluded) >> i & 1]
            for size in range(min(num_addable, len(free)) + 1):
                yield from (chosen | sum(1 << i for i in added) for added in combinations(free, size))
            return
        branching = open_mask & ~excluded if num_addable > 0 else 0
        while branching:
            bit = branching & -branching
            yield from extend(chosen | bit, excluded)
            # sets with this element are listed; excluding it makes every set come up in one branch alone
            branching, excluded = branching ^ bit, excluded | bit

    for chosen in extend(0, 0):
        yield tuple(i for i in range(num_candidates) if chosen >> i & 1)
