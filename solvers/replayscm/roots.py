"""Root-set hypotheses where the roots are hidden, and the panel evidence about them.

When units are shared, a unit's latent threshold for a root is the same in all worlds and the world only sets the
level (paper, section B.2.2): a root that is not intervened on is 1 in exactly the units whose threshold lies below the
level. So over the worlds that do not intervene on it, the sets of units in which a root is 1 are nested.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import chain

from calibrant.dsl.replayscm.problem import Task
from calibrant.dsl.replayscm.world import World
from calibrant.solvers.budget import BudgetSpent

MAX_ROOT_SETS = 10_000  # 13 variables with 6 roots have 1,716


def possible_roots(task: Task) -> tuple[str, ...]:
    """The variables that may be roots by the panel evidence; every one where units are not shared or roots are told."""
    counts = task.shares_units and task.disclosure.roots is None
    return nested_variables(task) if counts else task.variables


def root_sets(task: Task, able: Collection[str] | None = None) -> list[tuple[str, ...]]:
    """Every root set that the disclosure admits, of variables that are able to be roots; all if that is None.

    `BudgetSpent` for more than MAX_ROOT_SETS.
    """
    number = task.disclosure.num_root_sets(None if able is None else len(able))
    if number > MAX_ROOT_SETS:
        raise BudgetSpent(f"{number} root sets of the disclosed size; at most {MAX_ROOT_SETS} are gone through")
    return list(task.disclosure.root_sets(able))


def likely_first(task: Task) -> Iterator[tuple[str, ...]]:
    """Every root set that the disclosure admits, those that the panel evidence leaves first.

    `BudgetSpent` after MAX_ROOT_SETS.
    """
    able = possible_roots(task)
    others = (roots for roots in task.disclosure.root_sets() if not set(able).issuperset(roots))
    for number, roots in enumerate(chain(task.disclosure.root_sets(able), others)):
        if number == MAX_ROOT_SETS:
            raise BudgetSpent(f"{MAX_ROOT_SETS} root sets of the disclosed size were gone through, and there are more")
        yield roots


def nested_variables(task: Task) -> tuple[str, ...]:
    """The variables that can be roots by the panel evidence, natural order.

    Worlds whose rows repeat cyclically are left out: published disambiguation worlds are built that way and do not
    follow the thresholds. Worlds are compared on the units they share.
    """
    worlds = [world for world in task.training.worlds if not repeats(world)]
    return tuple(variable for variable in task.variables if _is_nested(variable, worlds))


def _is_nested(variable: str, worlds: Sequence[World]) -> bool:
    """Return whether the sets of units in which the variable is 1, over the worlds that leave it alone, form a
    chain.
    """
    free = [world for world in worlds if variable not in world.intervention.targets]
    for index, one in enumerate(free):
        for other in free[:index]:
            if one.units == other.units:
                ones, others = one.column(variable), other.column(variable)
                common = (1 << one.num_rows) - 1
            else:
                ones, others, common = _aligned(variable, one, other)
            if ones & ~others & common and others & ~ones & common:
                return False
    return True


def _aligned(variable: str, one: World, other: World) -> tuple[int, int, int]:
    """Both columns over the units of `one`, and which of those the other world has."""
    position = {unit: row for row, unit in enumerate(other.units)}
    column = other.column(variable)
    others = common = 0
    for row, unit in enumerate(one.units):
        if unit in position:
            common |= 1 << row
            others |= (column >> position[unit] & 1) << row
    return one.column(variable), others, common


def repeats(world: World) -> bool:
    """Return whether the rows are a shorter block repeated at least once (the last repetition may be cut)."""
    rows = world.num_rows
    return any(
        not any((column ^ column >> period) & ((1 << rows - period) - 1) for column in world.columns)
        for period in range(1, rows // 2 + 1)
    )
