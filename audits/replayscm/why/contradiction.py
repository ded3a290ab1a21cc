"""Two rows that no SCM of any class explains: equal in everything that may be a parent, different in the variable."""

from __future__ import annotations

from calibrant.audits.replayscm.why.parts import Contradiction
from calibrant.dsl.replayscm.disclosure import natural
from calibrant.dsl.replayscm.item import Task


def smallest_contradiction(task: Task) -> Contradiction | None:
    """Return the first pair of rows, by variable and then by place; None if every variable is a function of the others.

    Only of variables that are told not to be roots.
    """
    roots = task.disclosure.roots
    for variable in (v for v in task.variables if roots is not None and v not in roots):
        parents = natural(task.disclosure.admissible_parents(variable))
        met: dict[tuple[int, ...], tuple[int, str]] = {}
        for world in task.training.worlds:
            if variable in world.intervention.targets:
                continue
            for unit, row in zip(world.units, world.rows(), strict=True):
                key, place = tuple(row[u] for u in parents), f"{world.id} {unit}"
                value, first = met.setdefault(key, (row[variable], place))
                if value != row[variable]:
                    return Contradiction(variable, first, place)
    return None
