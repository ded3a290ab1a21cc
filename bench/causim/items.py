"""Items of CauSim as pool files, records and prompts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from calibrant.bench.core.items import ItemFormats
from calibrant.dsl.causim.item import CausimItem
from calibrant.dsl.causim.model import ModelError
from calibrant.dsl.causim.records import ItemRecord, item_from_record, read_pool, record_of_item, write_pool
from calibrant.dsl.errors import PoolError
from calibrant.dsl.item import Pool
from calibrant.dsl.records import Header, convert_object


class CausimItems(ItemFormats[CausimItem]):
    """Implements ItemFormats (bench.core.items)."""

    public_fields = (
        "id",
        "type",
        "scenario",
        "view",
        "program",  # where it is shown, not sentences
        "fixed_exogenous",
        "unknown_exogenous",
        "do",
        "observed_endogenous",
        "with_noise",
    )

    @property
    def pool_records(self) -> tuple[type[msgspec.Struct], ...]:
        return Header, ItemRecord

    def read_pool(self, path: Path) -> Pool[CausimItem]:
        return read_pool(path)

    def write_pool(self, pool: Pool[CausimItem], path: Path) -> None:
        write_pool(path, pool.items, name=pool.name, metadata=dict(pool.metadata))

    def record(self, item: CausimItem) -> dict[str, Any]:
        """With the world and the labels, which are not in the prompt, under `sealed`."""
        record = dict(msgspec.to_builtins(record_of_item(item)))
        sealed = {"world": record.pop("world", {}), "labels": record.pop("labels")}
        return record | {"sealed": sealed}

    def item_of_record(self, record: Mapping[str, Any]) -> CausimItem:
        sealed = record.get("sealed")
        if not isinstance(sealed, Mapping) or not sealed.keys() <= {"world", "labels"}:
            raise PoolError("an object with world and labels is needed", field="sealed")
        native = {key: value for key, value in record.items() if key != "sealed"} | dict(sealed)
        try:
            return item_from_record(convert_object(native, ItemRecord))
        except ModelError as error:
            raise PoolError(str(error)) from None

    def shown_record(self, item: CausimItem) -> dict[str, Any]:
        fields = super().shown_record(item)
        if item.task.view != "code":
            del fields["program"]
        return fields

    def prompt(self, item: CausimItem) -> str:
        return item.task.prompt

    def drawing(self, item: CausimItem, *, reveal_sealed: bool) -> str:
        from calibrant.bench.causim.plots.picture import drawing  # reads what only pages need

        return drawing(item, reveal_sealed=reveal_sealed)


ITEMS = CausimItems()
