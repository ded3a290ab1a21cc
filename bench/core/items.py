"""Items of a pool by their ids, for any benchmark."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher, get_close_matches
from typing import Any, Protocol, TypeVar

from calibrant.dsl.errors import CalibrantError, short_repr
from calibrant.dsl.item import Item
from calibrant.dsl.stored_items import items_by_id

I_co = TypeVar("I_co", bound=Item[Any, Any], covariant=True)


class ItemPool(Protocol[I_co]):
    """The items of one file."""

    @property
    def name(self) -> str: ...
    @property
    def items(self) -> Sequence[I_co]: ...
    def __len__(self) -> int: ...


def item_of(pool: ItemPool[I_co], instance: str | None) -> I_co:
    """Return the item of that id, or the first; `CalibrantError` names close ids, or says that the pool is empty."""
    if not len(pool):
        raise CalibrantError(f"{pool.name}: there is no instance in it")
    if instance is None:
        return pool.items[0]
    by_id = items_by_id(pool.items)
    if instance not in by_id:
        close = ", ".join(map(short_repr, close_ids(instance, list(by_id))))
        raise CalibrantError(f"{pool.name}: no instance {short_repr(instance)}; there are {close}")
    return by_id[instance]


def close_ids(instance: str, ids: Sequence[str], number: int = 3) -> list[str]:
    """Return the most similar ids, equal ones in the order of the pool; the first ones where none is similar."""
    places = {candidate: place for place, candidate in enumerate(ids)}
    alike = get_close_matches(instance, ids, len(ids) or 1)
    matcher = SequenceMatcher(b=instance)

    def distance(candidate: str) -> float:
        matcher.set_seq1(candidate)
        return -matcher.ratio()

    return sorted(alike, key=lambda candidate: (distance(candidate), places[candidate]))[:number] or list(ids[:number])
