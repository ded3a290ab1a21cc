"""Items with other names of objects, and objects in another order: the same detector."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from calibrant.dsl.blickets.item import BlicketItem, Mechanism


def object_role(item: BlicketItem, index: int) -> tuple[int, ...]:
    """Return the role of an object in an item; objects with equal roles are interchangeable."""
    roles: list[int] = []
    for mechanism in item.sealed.mechanisms:
        order = mechanism.order or ()
        roles += [mechanism.rule.blickets >> index & 1, order.index(index) if index in order else -1]
    start = item.sealed.start_on or ()
    return *roles, start.index(index) if index in start else -1


def reorder_objects(item: BlicketItem, order: Sequence[int], names: Sequence[str]) -> BlicketItem:
    """Return an item whose object k is object `order[k]` of this one, called `names[k]`; its id stays."""
    place = {old: new for new, old in enumerate(order)}

    def moved(mechanism: Mechanism) -> Mechanism:
        blickets = sum(1 << place[i] for i in range(len(order)) if mechanism.rule.blickets >> i & 1)
        placed = None if mechanism.order is None else tuple(place[i] for i in mechanism.order)
        return Mechanism(mechanism.rule._replace(blickets=blickets), placed)

    sealed, start = item.sealed, item.sealed.start_on
    return replace(
        item,
        task=replace(item.task, objects=tuple(names)),
        sealed=replace(
            sealed,
            mechanisms=tuple(map(moved, sealed.mechanisms)),
            start_on=None if start is None else tuple(place[i] for i in start),
        ),
    )
