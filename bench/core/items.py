"""Items of a benchmark: in pools by their ids, as files, records and prompts; statistics of a group of them."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher, get_close_matches
from math import fsum
from pathlib import Path
from statistics import median
from typing import Any, ClassVar, Generic, Protocol, TypeAlias, TypeVar

import msgspec

from calibrant.dsl.errors import CalibrantError, UnknownItemError, short_repr
from calibrant.dsl.item import Item, Message
from calibrant.dsl.records import items_by_id

# --- Items of a benchmark: in pools by their ids, and as files, records and prompts -----------------------------------
I = TypeVar("I", bound=Item[Any, Any])  # noqa: E741  # an item
I_co = TypeVar("I_co", bound=Item[Any, Any], covariant=True)
MAX_SHOWN_IDS = 3  # ids in the error for an unknown one


class ItemPool(Protocol[I_co]):
    """The items of one file."""

    @property
    def name(self) -> str: ...
    @property
    def items(self) -> Sequence[I_co]: ...
    def __len__(self) -> int: ...


def refuse_empty(num_items: int, path: Path) -> None:
    """Raise `CalibrantError` for a file without items, which is most likely a mistake."""
    if not num_items:
        raise CalibrantError(f"no items in {path}")


def item_of(pool: ItemPool[I_co], instance: str | None) -> I_co:
    """Return the item of that id, or the first; `CalibrantError` names close ids, or says that the pool is empty."""
    if not len(pool):
        raise CalibrantError(f"{pool.name}: there is no instance in it")
    if instance is None:
        return pool.items[0]
    by_id = items_by_id(pool.items)
    if instance not in by_id:
        raise unknown_item(pool.name, instance, list(by_id))
    return by_id[instance]


def unknown_item(file: str, instance: str, ids: Sequence[str]) -> UnknownItemError:
    """Return the error for an id that a pool does not have; it names similar ids, else the first ones."""
    similar = similar_ids(instance, ids)
    suggested = similar or list(ids[:MAX_SHOWN_IDS])
    listed = ", ".join(map(short_repr, suggested))
    if similar:
        hint = f"similar: {listed} (of {len(ids)} in all)"
    elif len(suggested) < len(ids):
        hint = f"the first of {len(ids)}: {listed}"
    else:
        hint = f"known: {listed or 'none'}"
    return UnknownItemError(f"{file}: no instance {short_repr(instance)}; {hint}", instance, tuple(similar))


def similar_ids(instance: str, ids: Sequence[str], number: int = MAX_SHOWN_IDS) -> list[str]:
    """Return the most similar ids, equally similar ones in the order of the pool; none if none is similar."""
    places = {candidate: index for index, candidate in enumerate(ids)}
    alike = get_close_matches(instance, ids, len(ids) or 1) or [name for name in ids if instance and instance in name]
    matcher = SequenceMatcher(b=instance)

    def distance(candidate: str) -> float:
        matcher.set_seq1(candidate)
        return -matcher.ratio()

    return sorted(alike, key=lambda candidate: (distance(candidate), places[candidate]))[:number]


class ItemFormats(ABC, Generic[I]):
    """Items of one benchmark as pool files, records and prompts.

    public_fields: all that `shown_record` may hold; what else the native record has is hidden from solvers and models
    """

    public_fields: ClassVar[tuple[str, ...]]

    @property
    @abstractmethod
    def pool_records(self) -> tuple[type[msgspec.Struct], ...]:
        """The Structs of lines of native pool files: the header, then an item."""

    @property
    def pool_schema(self) -> dict[str, Any] | None:
        """The JSON Schema that `pool schema` prints; None for that of `pool_records`."""
        return None

    @abstractmethod
    def read_pool(self, path: Path) -> ItemPool[I]:
        """Return the pool in a file, without what only tables need; `PoolError` names what is invalid."""

    @abstractmethod
    def write_pool(self, pool: Any, path: Path) -> None:
        """Write a pool that `read_pool` gave in the native format; the file appears complete or not at all."""

    def convert(self, source: Path, target: Path, options: Any) -> int:
        """Write a pool in the native format; return the number of items.

        options: of `pool convert`
        """
        pool = self.read_pool(source)
        self.write_pool(pool, target)
        return len(pool)

    def find(self, pool: ItemPool[I], instance: str | None) -> I:
        """Return the item of that id, by default the first; `CalibrantError` names close ids."""
        return item_of(pool, instance)

    @abstractmethod
    def record(self, item: I) -> dict[str, Any]:
        """Return the native record, the sealed part too, ready for JSON."""

    @abstractmethod
    def item_of_record(self, record: Mapping[str, Any]) -> I:
        """Return the item that `record` was made of; `PoolError` names the field of what is invalid."""

    def shown_record(self, item: I) -> dict[str, Any]:
        """Return the native record as far as a solver may see it: the public fields, ready for JSON."""
        return {name: value for name, value in self.record(item).items() if name in self.public_fields}

    def revealed_record(self, item: I) -> dict[str, Any]:
        """Return the record as `show --gold --json` prints it, with the sealed part."""
        return self.record(item)

    @abstractmethod
    def prompt(self, item: I) -> str:
        """Return what a language model is shown before anything else."""

    def system_and_prompt(self, item: I) -> tuple[str, str]:
        """Return the system text, empty if there is none, and the prompt, as `calibrant prompts` writes them."""
        return "", self.prompt(item)

    def messages(self, item: I) -> list[Message]:
        """Return the prompt as messages of a chat."""
        return [{"role": "user", "content": self.prompt(item)}]

    def drawing(self, item: I, *, reveal_sealed: bool) -> str:
        """Return the item's picture in text, empty if it has none."""
        return ""

    def text(self, item: I, *, reveal_sealed: bool) -> str:
        """Return the item as a person reads it: its picture, the prompt, and what is sealed if asked."""
        sealed = json.dumps({"sealed": self.record(item)["sealed"]}, indent=1) if reveal_sealed else ""
        parts = self.drawing(item, reveal_sealed=reveal_sealed), self.prompt(item), sealed
        return "\n\n".join(filter(None, parts))


# --- Statistics of a group of items, as JSON has them: each from what every item adds to it, so items are read once
Statistic: TypeAlias = int | float | list[int] | dict[str, float] | None


@dataclass(frozen=True)
class PoolStatistic(Generic[I]):
    """A statistic of a group of items.

    values: what an item adds, small and few; summary: the statistic of what all items of a group add
    """

    values: Callable[[I], Iterable[Any]]
    summary: Callable[[Sequence[Any]], Statistic]


@dataclass(frozen=True)
class PoolStatistics(Generic[I]):
    """Statistics of a benchmark's pools, by name.

    group: of an item, in which it is counted beside its setting
    """

    columns: Mapping[str, PoolStatistic[I]]
    group: Callable[[I], str]


def span(numbers: Sequence[int]) -> list[int] | None:
    """Return the least and the greatest; None of none."""
    return [min(numbers), max(numbers)] if numbers else None


def spread(numbers: Sequence[float]) -> dict[str, float] | None:
    """Least, median, greatest; None of none."""
    return {"least": min(numbers), "median": median(numbers), "greatest": max(numbers)} if numbers else None


def tally(values: Sequence[object]) -> dict[str, float] | None:
    """Return how often each value occurs, by its text."""
    return dict(sorted(Counter(map(str, values)).items())) or None


def share(holds: Sequence[bool | None]) -> float | None:
    """Return the share of true values among those that are not None; None if there are none."""
    listed = [float(value) for value in holds if value is not None]
    return fsum(listed) / len(listed) if listed else None
