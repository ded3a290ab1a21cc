"""Parent sets that determine a variable's observed column, with bounds on the least formula over each.

When units are shared, a unit's latent threshold for a root is the same in all worlds and the world only sets a level
(paper, section B.2.2): a root that is not intervened on is 1 in exactly the units whose threshold is below the level.
So over the worlds that do not intervene on it, the sets of units in which a root is 1 are nested.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from math import comb

import numpy as np

from calibrant.dsl.formulas.table import PartialTable
from calibrant.dsl.replayscm.item import Task
from calibrant.dsl.replayscm.world import PackedPanels, World, pack_panels
from calibrant.solvers.acyclic.least import Mask
from calibrant.solvers.formulas.catalogue import essential_functions, synthesis_operators
from calibrant.solvers.outcome import BudgetSpent
from calibrant.solvers.replayscm._kernels_parents import list_determining_sets

MAX_PARENTS = 6  # 2**6 rows of a table fill one word


@dataclass(slots=True)
class ParentSet:
    """Set of variables that a mechanism may mention, consistent with all scored rows.

    mask: the set, bit per variable index
    table: partial table of the rows; variable i of the table is the i-th smallest index of the set
    at_least: proven lower bound on the size of a formula that mentions all of the set
    size: the least size of such a formula, None as long as it is unknown
    """

    mask: Mask
    table: PartialTable
    at_least: int
    size: int | None

    @property
    def indices(self) -> tuple[int, ...]:
        return tuple(index for index in range(self.mask.bit_length()) if self.mask >> index & 1)


class ParentSearch:
    """Determining parent sets of one problem's variables, by exhaustion up to `max_parents` mentions.

    Sets that are dominated by a proper subset are left out. Formulas are over the given operators.
    """

    def __init__(self, task: Task, max_parents: int) -> None:
        if not 1 <= max_parents <= MAX_PARENTS:
            raise ValueError(f"max_parents is {max_parents}; 1 to {MAX_PARENTS} are supported")
        self.variables = task.variables
        self.max_parents = max_parents
        self.operators = synthesis_operators(task.grammar)
        self.functions = essential_functions(max_parents, self.operators)
        self.packed: PackedPanels = pack_panels([task.training])

    def parent_sets(self, target: int, candidates: Sequence[int], *, free: Mask = 0) -> list[ParentSet]:
        """Return the undominated sets of candidates for one variable, by number of members, then lexicographically.

        free: variables that precede all others, so that mentioning them can close no cycle: a set is dominated even if
            the smaller mechanism mentions free variables beside members of the set.
        """
        candidate_array = np.array(sorted(candidates), np.int64)
        # the kernel does not check the length of its outputs, so every set has room
        limit = sum(comb(len(candidate_array), j) for j in range(1, self.max_parents + 1))
        masks, sizes = np.empty(limit, np.int64), np.empty(limit, np.int64)
        cares, values = np.empty(limit, np.uint64), np.empty(limit, np.uint64)
        functions = self.functions
        count = list_determining_sets(
            self.packed.observed,
            self.packed.scored[target],
            target,
            candidate_array,
            free,
            min(self.max_parents, len(candidate_array)),
            functions.bits,
            functions.sizes,
            functions.starts,
            functions.complete_to,
            masks,
            sizes,
            cares,
            values,
        )
        options = [_parent_set(int(masks[e]), int(sizes[e]), int(cares[e]), int(values[e])) for e in range(count)]
        for option in options:
            if option.table.num_vars == 1 and option.size is not None:
                option.at_least = option.size = self._least_of_one(option.table)
        return options

    def _least_of_one(self, table: PartialTable) -> int:
        """Return the least size over a set of one variable, constants included.

        The kernel skips constants, which may be smaller than the negation.
        """
        span = slice(self.functions.starts[1], self.functions.starts[2])
        bits, sizes = self.functions.bits[span], self.functions.sizes[span]
        return int(sizes[(bits ^ np.uint64(table.value)) & np.uint64(table.care) == 0].min())


def _parent_set(mask: Mask, size: int, care: int, value: int) -> ParentSet:
    table = PartialTable(mask.bit_count(), care, value)
    return ParentSet(mask, table, abs(size), size if size > 0 else None)


# --- Root-set hypotheses for hidden roots, and the panel evidence about them ------------------------------------------
MAX_ROOT_SETS = 10_000  # root sets tried; 13 variables with 6 roots have 1,716


def possible_roots(task: Task) -> tuple[str, ...]:
    """Return the variables that may be roots by the panel evidence; all if units are not shared or roots disclosed."""
    # without shared units each world has its own thresholds, and columns need not be nested
    has_evidence = task.shares_units and task.disclosure.roots is None
    return nested_variables(task) if has_evidence else task.variables


def list_root_sets(task: Task, candidates: Collection[str] | None = None) -> list[tuple[str, ...]]:
    """List every root set that the disclosure admits among `candidates`; among all variables if None.

    `BudgetSpent` for more than MAX_ROOT_SETS.
    """
    num_root_sets = task.disclosure.num_root_sets(None if candidates is None else len(candidates))
    if num_root_sets > MAX_ROOT_SETS:
        raise BudgetSpent(f"{num_root_sets} root sets of the disclosed size; at most {MAX_ROOT_SETS} are gone through")
    return list(task.disclosure.root_sets(candidates))


def iterate_likely_first(task: Task) -> Iterator[tuple[str, ...]]:
    """Yield every root set that the disclosure admits, those consistent with the panel evidence first.

    `BudgetSpent` after MAX_ROOT_SETS.
    """
    likely = possible_roots(task)
    others = (roots for roots in task.disclosure.root_sets() if not set(likely).issuperset(roots))
    for index, roots in enumerate(chain(task.disclosure.root_sets(likely), others)):
        if index == MAX_ROOT_SETS:
            raise BudgetSpent(f"{MAX_ROOT_SETS} root sets of the disclosed size were gone through, and there are more")
        yield roots


def nested_variables(task: Task) -> tuple[str, ...]:
    """Return the variables that can be roots by the panel evidence, in the order of the task.

    Worlds whose rows repeat cyclically are left out: published disambiguation worlds are built that way and do not
    follow the thresholds. Two worlds are compared on the units that both have.
    """
    worlds = [world for world in task.training.worlds if not is_repeating(world)]
    return tuple(variable for variable in task.variables if _is_nested(variable, worlds))


def _is_nested(variable: str, worlds: Sequence[World]) -> bool:
    """Return whether the sets of units with value 1 form a chain, over the worlds that do not intervene on it."""
    # pairwise: a family of sets is a chain iff any two are nested
    free = [world for world in worlds if variable not in world.intervention.targets]
    for index, first in enumerate(free):
        for second in free[:index]:
            if first.units == second.units:
                first_ones, second_ones = first.column(variable), second.column(variable)
                common = (1 << first.num_rows) - 1
            else:
                first_ones, second_ones, common = _align_columns(variable, first, second)
            if first_ones & ~second_ones & common and second_ones & ~first_ones & common:
                return False
    return True


def _align_columns(variable: str, first: World, second: World) -> tuple[int, int, int]:
    """Return both columns over the units of the first world, and which of those the second one has."""
    position = {unit: row for row, unit in enumerate(second.units)}
    column = second.column(variable)
    second_ones = common = 0
    for row, unit in enumerate(first.units):
        if unit in position:
            common |= 1 << row
            second_ones |= (column >> position[unit] & 1) << row
    return first.column(variable), second_ones, common


def is_repeating(world: World) -> bool:
    """Return whether the rows are a shorter block repeated at least once (the last repetition may be cut)."""
    rows = world.num_rows
    # up to half of the rows: a longer block would not occur twice
    return any(
        not any((column ^ column >> period) & ((1 << rows - period) - 1) for column in world.columns)
        for period in range(1, rows // 2 + 1)
    )
