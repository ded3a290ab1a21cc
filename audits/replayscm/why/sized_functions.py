"""Functions with the size of a formula: all of up to four parents by least size, some of five and six."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from random import Random

from calibrant.audits.replayscm.ambiguity import sized_class
from calibrant.dsl.formulas.table import TruthTable, full_mask, support
from calibrant.solvers.acyclic.least import Mask
from calibrant.solvers.formulas.catalogue import synthesis_operators
from calibrant.solvers.formulas.lookup import formula_for
from calibrant.solvers.replayscm.members import sample_completion
from calibrant.solvers.replayscm.space import VersionSpace

LISTED_PARENTS = 4  # up to so many parents every function is listed by least size
MAX_WIDE_SETS = 40  # wider parent sets of a variable that are looked at, the most seen rows first
FLIPS = 6  # completions of a wide table beside all 0 and all 1


@dataclass(frozen=True)
class SizedFunction:
    """A function over a parent set, with the size of a formula for it."""

    size: int
    mask: Mask
    table: TruthTable


def sized_space(space: VersionSpace) -> VersionSpace:
    """Return the part of a space with at most four parents, by least size.

    No function of the class is too large for it.
    """
    if space.model_class.max_size is not None:
        return space
    parents = min(space.model_class.max_parents, LISTED_PARENTS)
    return space.within(parents, sized_class(space.task, parents).max_size)


class WideFunctions:
    """Some functions of five and six parents; their formulas are not proven least."""

    def __init__(self, space: VersionSpace) -> None:
        self.space = space
        self.functions = cache(self._functions)

    def masks(self, variable: int) -> Sequence[Mask]:
        """Return the wide parent sets of a variable, those of which most rows are seen first."""
        local = self.space.local(variable)
        wide = [mask for mask in local.counts if mask.bit_count() > LISTED_PARENTS]
        return sorted(wide, key=lambda mask: (local.tables[mask].num_open, mask))[:MAX_WIDE_SETS]

    def _functions(self, variable: int, mask: Mask) -> tuple[SizedFunction, ...]:
        table = self.space.local(variable).tables[mask]
        every = full_mask(table.num_vars)
        unseen = [row for row in range(every.bit_length()) if not table.care >> row & 1]
        fills = [0, every & ~table.care, *(1 << row for row in unseen[:FLIPS])]
        filled = dict.fromkeys(TruthTable(table.num_vars, table.value | fill) for fill in fills)
        functions = [entry for entry in filled if len(support(entry)) == table.num_vars]
        if not functions:
            bits = sample_completion(Random(table.num_vars), table.num_vars, table.care, table.value)
            functions = [TruthTable(table.num_vars, bits)]
        names, operators = self.space.names(mask), synthesis_operators(self.space.task.grammar)
        return tuple(SizedFunction(formula_for(entry, names, operators).size, mask, entry) for entry in functions)
