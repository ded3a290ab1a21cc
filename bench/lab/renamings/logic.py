"""Items of logic models over other names, with experiments and columns in another order."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from calibrant.bench.lab.renamings.measure import RenamedItem, permuted_names, shuffled
from calibrant.dsl.logic.item import LogicItem, Sealed, clause, kept_names
from calibrant.solvers.logic.canonical import rename_task


def rename(item: LogicItem, random: Random) -> RenamedItem:
    """Return an item with other names of clamped and measured nodes, experiments and columns in another order.

    Nodes that compression merges keep their names: merging goes by them.
    """
    stable = sorted(kept_names(item.task.setup))
    nodes = {name for edge in item.task.prior for name in (edge.source, edge.target)}
    names = {name: name for name in nodes} | permuted_names(stable, random)
    task = rename_task(item.task, names, shuffled(range(len(item.task.experiments)), random))
    if item.sealed is None:
        return RenamedItem(replace(item, task=task), names)
    old = item.task.setup.readouts
    places = tuple(next(i for i, name in enumerate(old) if names[name] == new) for new in task.setup.readouts)
    gold = frozenset(
        clause(names[part.target], ((names[source], sign) for source, sign in part.literals))
        for part in item.sealed.gold
    )
    answers = tuple("".join(answer[place] for place in places) for answer in item.sealed.answers)
    return RenamedItem(replace(item, task=task, sealed=Sealed(gold, answers, item.sealed.optimum)), names, places)
