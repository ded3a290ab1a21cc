"""Questions about programs with other nodes, noise and values, and functions in another order."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from calibrant.bench.lab.renamings.measure import Alike, RenamedItem, permuted_names
from calibrant.dsl.causim.item import CausimItem, Sealed
from calibrant.dsl.causim.model import Model, value_of
from calibrant.solvers.causim.canonical import ModelNames, rename_task, value_roles


def alike(item: CausimItem) -> Alike:
    """Return the roles of the values of nodes and noise variables."""
    return Alike({}, {key: {value_of(s): role for s, role in v.items()} for key, v in value_roles(item.task).items()})


def rename(item: CausimItem, random: Random) -> RenamedItem:
    """Return a question over permuted names of nodes and noise and permuted values, in another topological order."""
    model = item.task.model
    keys = permuted_names(model.names, random) | permuted_names(model.noises, random)
    values = {
        key: permuted_names(domain, random)
        for node, local in zip(model.nodes, model.system, strict=True)
        for key, domain in ((node.name, local.domain), (node.noise, node.support))
    }
    names = ModelNames(_random_order(model, random), keys, values)
    sealed = Sealed(names.assignment(item.sealed.world))
    plain = {key: {value_of(old): value_of(new) for old, new in listed.items()} for key, listed in values.items()}
    renamed = replace(item, task=rename_task(item.task, names), sealed=sealed)
    return RenamedItem(renamed, keys, values=plain, value_roles=alike(renamed).value_roles)


def _random_order(model: Model, random: Random) -> tuple[int, ...]:
    waiting = [len(node.parents) for node in model.nodes]
    ready = [position for position, number in enumerate(waiting) if not number]
    order = []
    while ready:
        order.append(ready.pop(random.randrange(len(ready))))
        for child in model.children[order[-1]]:
            waiting[child] -= 1
            if not waiting[child]:
                ready.append(child)
    return tuple(order)
