"""The mass with hidden variables, noise-free: columns grouped by what all children but one see of them.

The sum over acyclic choices is linear in the weights of each child. So columns that look alike to all children but one
are summed in one go: the last child's weights are added up, each times the functions of its column.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product
from math import lcm, prod

import numpy as np
import numpy.typing as npt

from calibrant.solvers.acyclic.count import Weights, total
from calibrant.solvers.acyclic.least_cost import Mask
from calibrant.solvers.budget import BudgetSpent
from calibrant.solvers.replayscm.hidden.columns import HiddenColumn, hidden_parent_sets
from calibrant.solvers.replayscm.hidden.patterns import ChildView, JointColumns, child_view, joint_columns
from calibrant.solvers.replayscm.noise.local_weights import invert, scaled_rate, table_sum
from calibrant.solvers.replayscm.noise.posterior import Posterior

# 2 bytes a cell: 2 GiB over all children, built child by child
MAX_CELLS = 1 << 30  # columns x parent sets
# measured: at most 1,024 sums (9 observed variables, a hidden one of 4 parents)
MAX_TERMS = 1 << 26  # sums x 3**m, m endogenous variables, hidden ones too

_SILENT = scaled_rate(Fraction(0))


@dataclass(frozen=True)
class GroupedMass:
    """A mass and its effort.

    num_columns: combinations of columns; num_signatures: different ones to all children; num_sums: over acyclic choices
    """

    mass: Fraction
    num_columns: int
    num_signatures: int
    num_sums: int


def grouped_mass(posterior: Posterior) -> GroupedMass:
    """Return the mass of a noise-free class with hidden variables; `BudgetSpent` states both numbers."""
    if not posterior.scm_class.noise.is_silent:
        raise ValueError("columns weigh differently under noise; they are summed one by one")
    parts = list(column_groups(posterior))
    mass = sum((part.mass for part in parts), start=Fraction(0))
    return GroupedMass(
        mass,
        sum(len(part.columns) for part in parts),
        sum(part.num_signatures for part in parts),
        sum(len(part.groups) for part in parts),
    )


def column_groups(posterior: Posterior) -> Iterator[ColumnGroups]:
    """Yield the columns of each choice of the hidden variables' parents, in groups."""
    scm_class = posterior.scm_class
    names = list(scm_class.hidden_parents)
    for parents in product(*(hidden_parent_sets(scm_class, name) for name in names)):
        columns = joint_columns(parents, posterior.words)
        num_sets = sum(len(masks) for masks in posterior.masks.values())
        # before the views are built, which is where the memory goes
        if len(columns) * num_sets > MAX_CELLS:
            raise BudgetSpent(f"{len(columns):,} columns x {num_sets:,} parent sets; budget {MAX_CELLS:,}")
        yield ColumnGroups(posterior, parents, columns)


def feasible_columns(posterior: Posterior) -> Iterator[tuple[HiddenColumn, ...]]:
    """Yield the columns under which some SCM of a noise-free class fits, negations apart; functions are not counted."""
    for part in column_groups(posterior):
        for key, whole in part.group_totals.items():
            rows = part.groups[key]
            for row in rows if whole else ():
                if len(rows) == 1 or part.partial_sum(key, [row]):
                    yield from map(part.hidden_columns, np.flatnonzero(part.column_places == row).tolist())


class ColumnGroups:
    """The columns of chosen parents, in groups that all children but the last see alike.

    last: the child with most signatures; groups: signatures of the other children -> rows of `alike`
    """

    def __init__(self, posterior: Posterior, parents: Sequence[Mask], columns: JointColumns) -> None:
        scm_class = posterior.scm_class
        self.posterior = posterior
        self.parents = tuple(parents)
        self.columns = columns
        self.hidden = [scm_class.variables.index(name) for name in scm_class.hidden_parents]
        self._hidden_options = {h: {mask: 1} for h, mask in zip(self.hidden, parents, strict=True)}
        self._roots = posterior.root_mask
        scale = lcm(*(weight.denominator for weight in scm_class.parent_weights))
        self._prior = [int(weight * scale) for weight in scm_class.parent_weights]
        names = scm_class.hidden_parents
        weights = (scm_class.mechanism_weight(n, m.bit_count()) for n, m in zip(names, parents, strict=True))
        self.factor: Fraction = prod(weights, start=Fraction(1)) / scale ** len(posterior.local_rows)
        hidden_bits = sum(1 << h for h in self.hidden)
        # sets without a hidden variable weigh alike under all columns: summed once
        self._visible = {
            v: {mask: table_sum(rows, v, mask, _SILENT) for mask in posterior.masks[v] if not mask & hidden_bits}
            for v, rows in posterior.local_rows.items()
        }
        self._group_columns()

    def _group_columns(self) -> None:
        local, masks = self.posterior.local_rows, self.posterior.masks
        signatures, self.options = {}, {}
        for v, rows in local.items():
            view = child_view(rows, v, masks[v], self.columns, self.hidden)
            # the exponents are all that a child's weights depend on: equal rows are interchangeable
            different, places = np.unique(view.exponents, axis=0, return_inverse=True)
            signatures[v] = places.ravel()
            self.options[v] = [self._options(v, view, row) for row in different]
        # the sum is linear in any one child; leaving out the one with most signatures merges most groups
        self.last = max(self.options, key=lambda v: len(self.options[v]))
        self.others = [v for v in self.options if v != self.last]
        keys = np.stack([signatures[v] for v in (*self.others, self.last)], axis=1)
        alike, places = np.unique(keys, axis=0, return_inverse=True)
        self.column_places: npt.NDArray[np.int64] = places.ravel()
        numbers = np.zeros(len(alike), np.int64)
        # unbuffered: several columns add to one place, of which `numbers[places] += ...` would count one
        np.add.at(numbers, self.column_places, self.columns.numbers)
        self.num_signatures = len(alike)
        self.numbers: list[int] = numbers.tolist()
        self.last_signatures: list[int] = alike[:, -1].tolist()
        self.groups: dict[tuple[int, ...], list[int]] = {}
        for row, key in enumerate(alike.tolist()):
            self.groups.setdefault(tuple(key[:-1]), []).append(row)
        # hidden variables are in the sums too, each with its one parent set
        num_vars = len(self.options) + len(self.hidden)
        if len(self.groups) * 3**num_vars > MAX_TERMS:
            raise BudgetSpent(f"{len(self.groups):,} sums of 3**{num_vars} terms; budget {MAX_TERMS:,}")

    def hidden_columns(self, column: int) -> tuple[HiddenColumn, ...]:
        """Return a joint column as one column of each hidden variable; their functions are not counted."""
        listed = []
        for place, (index, parents) in enumerate(zip(self.hidden, self.parents, strict=True)):
            word = int(self.columns.words[place, column])
            values = {pattern & parents: word >> j & 1 for j, pattern in enumerate(self.columns.patterns)}
            listed.append(HiddenColumn(index, parents, values, 1))
        return tuple(listed)

    @cached_property
    def group_totals(self) -> dict[tuple[int, ...], int]:
        """Return the sum of each group, to be multiplied by `factor`."""
        return {key: self.partial_sum(key, rows) for key, rows in self.groups.items()}

    @property
    def mass(self) -> Fraction:
        whole = sum(self.group_totals.values())
        return Fraction(whole) * self.factor

    def partial_sum(self, key: tuple[int, ...], rows: Sequence[int]) -> int:
        """Return the sum over the columns of some rows of a group: the last child's weights are added up."""
        # measured: 1,587 signatures in 85 sums (6 observed variables, a hidden one of 4 parents)
        added: dict[Mask, int] = {}
        for row in rows:
            for mask, weight in self.options[self.last][self.last_signatures[row]].items():
                added[mask] = added.get(mask, 0) + self.numbers[row] * weight
        chosen = {v: self.options[v][place] for v, place in zip(self.others, key, strict=True)}
        return total(Weights(chosen | {self.last: added} | self._hidden_options, self._roots))

    def _options(self, variable: int, view: ChildView, exponents: npt.NDArray[np.int16]) -> dict[Mask, int]:
        """Return the weights of a child's parent sets under one signature."""
        sums = dict(self._visible[variable])
        for mask in self.posterior.masks[variable]:
            # sets that fit no column are listed with 0: the inversion reads every subset
            sums.setdefault(mask, 0)
        for mask, exponent in zip(view.masks, exponents.tolist(), strict=True):
            if exponent >= 0:
                sums[mask] = 1 << exponent
        weights = invert({mask: sums[mask] for mask in self.posterior.masks[variable]})
        return {mask: weight * self._prior[mask.bit_count()] for mask, weight in weights.items() if weight}
