"""Options of each variable in some SCM that fits: a root, or a function of a parent set; exact, without counting SCMs.

A parent set of a variable is part of some SCM that fits iff it lies within what can be placed before the variable:
placing variables greedily, each behind one of its parent sets, reaches the largest such set, and whatever remains can
be placed after. So two functions of one variable always fit together with the same other mechanisms.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from calibrant.solvers.acyclic.elimination import is_orderable, minimal_sets
from calibrant.solvers.acyclic.least import Mask
from calibrant.solvers.replayscm.space import VersionSpace

MAX_ROOT_SETS = 2_000  # root sets whose options are gone through


@dataclass(frozen=True)
class VariableChoices:
    """Options of a variable: functions over all root sets, its parent sets, whether it may be a root."""

    functions: int
    parent_sets: frozenset[Mask]
    may_be_root: bool

    @property
    def is_open(self) -> bool:
        return self.functions + self.may_be_root > 1


class Choices:
    """The options of each variable under every root set that some SCM has."""

    def __init__(self, space: VersionSpace) -> None:
        self.space = space
        self._least = {v: minimal_sets(np.array(list(space.local(v).counts), np.int64)) for v in space.index.values()}

    @cached_property
    def root_sets(self) -> tuple[tuple[str, ...], ...]:
        """The root sets that some SCM that fits has."""
        return tuple(roots for roots in self.space.root_sets if is_orderable(self._least, self.mask_of(roots)))

    @property
    def num_parent_sets(self) -> int:
        """Number of parent sets that fit, of all variables."""
        return sum(len(self.space.local(v).counts) for v in self.space.index.values())

    def mask_of(self, names: tuple[str, ...]) -> Mask:
        return sum(1 << self.space.index[name] for name in names)

    def options(self, roots: tuple[str, ...], variable: int) -> Mapping[Mask, int]:
        """Parent set -> number of functions, of a variable that is no root, in SCMs with these roots."""
        before = self._before(self.mask_of(roots), variable)
        return {mask: number for mask, number in self.space.local(variable).counts.items() if not mask & ~before}

    def _before(self, roots: Mask, variable: int) -> Mask:
        """Return the variables that can all be placed before this one."""
        waiting = [v for v in self._least if v != variable and not roots >> v & 1]
        placed, before = roots, -1
        while placed != before:
            before = placed
            ready = [v for v in waiting if _fits(self._least[v], placed)]
            placed |= sum(1 << v for v in ready)
            waiting = [v for v in waiting if not placed >> v & 1]
        return placed

    @cached_property
    def by_variable(self) -> dict[str, VariableChoices]:
        """Every variable; `ValueError` beyond MAX_ROOT_SETS root sets."""
        if len(self.root_sets) > MAX_ROOT_SETS:
            raise ValueError(
                f"{len(self.root_sets)} root sets; the options of at most {MAX_ROOT_SETS} are gone through"
            )
        choices = {}
        for name, variable in self.space.index.items():
            functions: dict[Mask, int] = {}
            for roots in self.root_sets:
                if name not in roots:
                    functions |= self.options(roots, variable)
            may_be_root = any(name in roots for roots in self.root_sets)
            choices[name] = VariableChoices(sum(functions.values()), frozenset(functions), may_be_root)
        return choices


def _fits(masks: npt.NDArray[np.int64], placed: Mask) -> bool:
    return bool(((masks & ~np.int64(placed)) == 0).any())
