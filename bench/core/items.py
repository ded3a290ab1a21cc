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
MAX_SHOWN_IDS = 3  # ids that the error for an unknown id suggests


class ItemPool(Protocol[I_co]):
    """The items of one file."""

    @property
    def name(self) -> str: ...
    @property
    def items(self) -> Sequence[I_co]: ...
    def __len__(self) -> int: ...


def refuse_empty(num_items: int, path: Path) -> None:
    """Raise `CalibrantError` for a file without items, most likely a mistake."""
    if not num_items:
        raise CalibrantError(f"no items in {path}")


def item_of(pool: ItemPool[I_co], instance: str | None) -> I_co:
    """Return the item of that id, by default the first; `CalibrantError` for an empty pool or an unknown id."""
    if not len(pool):
        raise CalibrantError(f"{pool.name}: there is no instance in it")
    if instance is None:
        return pool.items[0]
    by_id = items_by_id(pool.items)
    if instance not in by_id:
        raise unknown_item(pool.name, instance, list(by_id))
    return by_id[instance]


def unknown_item(file: str, instance: str, ids: Sequence[str]) -> UnknownItemError:
    """Return the error for an unknown id, which names similar ids, else the first MAX_SHOWN_IDS."""
    similar = similar_ids(instance, ids)
    suggested = similar or list(ids[:MAX_SHOWN_IDS])
    shown_ids = ", ".join(map(short_repr, suggested))
    if similar:
        hint = f"similar: {shown_ids} (of {len(ids)} in all)"
    elif len(suggested) < len(ids):
        hint = f"the first of {len(ids)}: {shown_ids}"
    else:
        hint = f"known: {shown_ids or 'none'}"
    return UnknownItemError(f"{file}: no instance {short_repr(instance)}; {hint}", instance, tuple(similar))


def similar_ids(instance: str, ids: Sequence[str], max_ids: int = MAX_SHOWN_IDS) -> list[str]:
    """Return up to `max_ids` ids similar to `instance`, most similar first, ties in the order of the pool."""
    position_by_id = {candidate: index for index, candidate in enumerate(ids)}
    similar = get_close_matches(instance, ids, len(ids) or 1) or [name for name in ids if instance and instance in name]
    matcher = SequenceMatcher(b=instance)

    def similarity(candidate: str) -> float:
        matcher.set_seq1(candidate)
        return matcher.ratio()

    return sorted(similar, key=lambda candidate: (-similarity(candidate), position_by_id[candidate]))[:max_ids]


class ItemFormats(ABC, Generic[I]):
    """Items of one benchmark as pool files, records and prompts.

    public_fields: fields that `shown_record` may hold; solvers and models see no other field of the native record
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
        """Return the pool in a file; `PoolError` names the invalid field."""

    @abstractmethod
    def write_pool(self, pool: Any, path: Path) -> None:
        """Write a pool of `read_pool` in the native format, atomically."""

    def convert(self, source: Path, target: Path, options: Any) -> int:
        """Write a pool in the native format; return the number of items.

        options: the benchmark's Struct of options of `pool convert`
        """
        pool = self.read_pool(source)
        self.write_pool(pool, target)
        return len(pool)

    def find(self, pool: ItemPool[I], instance: str | None) -> I:
        """Return the item of that id, by default the first; `CalibrantError` names close ids."""
        return item_of(pool, instance)

    @abstractmethod
    def record(self, item: I) -> dict[str, Any]:
        """Return the native record with the sealed part, ready for JSON."""

    @abstractmethod
    def item_of_record(self, record: Mapping[str, Any]) -> I:
        """Return the item of a native record, the inverse of `record`; `PoolError` names the invalid field."""

    def shown_record(self, item: I) -> dict[str, Any]:
        """Return the public fields of the native record, all that a solver may see, ready for JSON."""
        return {name: value for name, value in self.record(item).items() if name in self.public_fields}

    def revealed_record(self, item: I) -> dict[str, Any]:
        """Return the record as `show --gold --json` prints it, with the sealed part."""
        return self.record(item)

    @abstractmethod
    def prompt(self, item: I) -> str:
        """Return the first message to a language model."""

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
        """Return the item for a person: its picture, the prompt and, if `reveal_sealed`, the sealed part."""
        sealed = json.dumps({"sealed": self.record(item)["sealed"]}, indent=1) if reveal_sealed else ""
        parts = self.drawing(item, reveal_sealed=reveal_sealed), self.prompt(item), sealed
        return "\n\n".join(filter(None, parts))


# --- Statistics of a group of items, ready for JSON, computed from a few values of each item in one pass --------------
Statistic: TypeAlias = int | float | list[int] | dict[str, float] | None


@dataclass(frozen=True)
class PoolStatistic(Generic[I]):
    """A statistic of a group of items.

    values: item -> its few values; summary: values of all items of a group -> the statistic
    """

    values: Callable[[I], Iterable[Any]]
    summary: Callable[[Sequence[Any]], Statistic]


@dataclass(frozen=True)
class PoolStatistics(Generic[I]):
    """Statistics of a benchmark's pools, by name.

    columns: name -> statistic; group: item -> name of its group; statistics are computed by setting and group
    """

    columns: Mapping[str, PoolStatistic[I]]
    group: Callable[[I], str]


def span(numbers: Sequence[int]) -> list[int] | None:
    """Return [least, greatest]; None if there are no numbers."""
    return [min(numbers), max(numbers)] if numbers else None


def spread(numbers: Sequence[float]) -> dict[str, float] | None:
    """Return least, median and greatest; None if there are no numbers."""
    return {"least": min(numbers), "median": median(numbers), "greatest": max(numbers)} if numbers else None


def tally(values: Sequence[object]) -> dict[str, float] | None:
    """Return how often each value occurs, by its text; None if there are no values."""
    return dict(sorted(Counter(map(str, values)).items())) or None


def share(holds: Sequence[bool | None]) -> float | None:
    """Return the share of true values among those that are not None; None if there are none."""
    defined = [float(value) for value in holds if value is not None]
    return fsum(defined) / len(defined) if defined else None
