"""Items of extended blickets as pool files, records and prompts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from calibrant.bench.core.items import ItemFormats
from calibrant.dsl.blickets.item import BlicketItem
from calibrant.dsl.blickets.prompt import instructions
from calibrant.dsl.blickets.records import ItemRecord, item_from_record, read_pool, record_from_item, write_pool
from calibrant.dsl.item import Pool
from calibrant.dsl.records import Header, convert_object


class BlicketItems(ItemFormats[BlicketItem]):
    """Implements ItemFormats (bench.core.items)."""

    public_fields = (
        "id",
        "n",
        "objects",
        "budget",
        "condition",  # of an informed item
        "count",
        "order_reading",
        "informed",
        "graded",
        "start",
        "wording",
    )

    @property
    def pool_records(self) -> tuple[type[msgspec.Struct], ...]:
        return Header, ItemRecord

    def read_pool(self, path: Path) -> Pool[BlicketItem]:
        return read_pool(path)

    def write_pool(self, pool: Pool[BlicketItem], path: Path) -> None:
        write_pool(path, pool.name, pool.items, dict(pool.metadata))

    def record(self, item: BlicketItem) -> dict[str, Any]:
        return dict(msgspec.to_builtins(record_from_item(item)))

    def item_of_record(self, record: Mapping[str, Any]) -> BlicketItem:
        return item_from_record(convert_object(record, ItemRecord))

    def shown_record(self, item: BlicketItem) -> dict[str, Any]:
        fields = super().shown_record(item)
        if item.task.condition is None:
            del fields["condition"]
        return fields

    def prompt(self, item: BlicketItem) -> str:
        return instructions(item.task)


ITEMS = BlicketItems()
