"""Detectors with other names of objects, in another order."""

from __future__ import annotations

from random import Random

from calibrant.bench.lab.renamings.measure import Alike, RenamedItem, permuted_names, shuffled
from calibrant.dsl.blickets.item import BlicketItem, object_role, reorder_objects


def alike(item: BlicketItem) -> Alike:
    """Return the roles of the objects."""
    return Alike({name: repr(object_role(item, index)) for index, name in enumerate(item.task.objects)})


def rename(item: BlicketItem, random: Random) -> RenamedItem:
    """Return a detector with other names of objects, in another order."""
    order = shuffled(range(item.task.n), random)
    names = permuted_names(item.task.objects, random)
    objects = item.task.objects
    roles = {names[name]: role for name, role in alike(item).roles.items()}
    return RenamedItem(reorder_objects(item, order, [names[objects[i]] for i in order]), names, roles=roles)
