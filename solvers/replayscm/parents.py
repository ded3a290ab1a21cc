"""Parent sets that determine a variable's observed column, with bounds on the least formula over each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb

import numpy as np
import numpy.typing as npt

from calibrant.dsl.formulas.table import PartialTable
from calibrant.dsl.replayscm.item import Task
from calibrant.dsl.replayscm.world import PackedPanels, pack_panels
from calibrant.solvers.acyclic.least import Mask
from calibrant.solvers.formulas.catalogue import essential_functions, synthesis_operators
from calibrant.solvers.replayscm._kernels_parents import list_determining_sets

MAX_PARENTS = 6  # 2**6 rows of a table fill one word

U64 = npt.NDArray[np.uint64]


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
        """Return the undominated sets of candidates for one variable; by number, then lexicographic.

        free: variables that precede all others, so that mentioning them can close no cycle. A set is dominated too if
            a smaller mechanism mentions only free variables and members of the set.
        """
        listed = np.array(sorted(candidates), np.int64)
        # room for every set, as the kernel checks no bound; dominated ones are never written
        limit = sum(comb(len(listed), j) for j in range(1, self.max_parents + 1))
        masks, sizes = np.empty(limit, np.int64), np.empty(limit, np.int64)
        cares, values = np.empty(limit, np.uint64), np.empty(limit, np.uint64)
        functions = self.functions
        count = list_determining_sets(
            self.packed.observed,
            self.packed.scored[target],
            target,
            listed,
            free,
            min(self.max_parents, len(listed)),
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

        Functions of one variable are listed before constants, which may be smaller than the negation.
        """
        span = slice(self.functions.starts[1], self.functions.starts[2])
        bits, sizes = self.functions.bits[span], self.functions.sizes[span]
        return int(sizes[(bits ^ np.uint64(table.value)) & np.uint64(table.care) == 0].min())


def _parent_set(mask: Mask, size: int, care: int, value: int) -> ParentSet:
    table = PartialTable(mask.bit_count(), care, value)
    return ParentSet(mask, table, abs(size), size if size > 0 else None)
