"""Items of CausaLab as pool files, records and prompts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from calibrant.bench.core.items import ItemFormats
from calibrant.dsl.causalab.configs import is_suite, suite_pool
from calibrant.dsl.causalab.item import LabItem
from calibrant.dsl.causalab.prompt import Phase, messages, phase_messages
from calibrant.dsl.causalab.records import LabRecord, item_of_record, read_pool, record_of_item, write_pool
from calibrant.dsl.item import Message, Pool
from calibrant.dsl.records import Header, convert_object


class LabItems(ItemFormats[LabItem]):
    """Implements ItemFormats (bench.core.items)."""

    public_fields = (
        "id",
        "family",
        "properties",
        "freq_parent",
        "noise",
        "weights",
        "settable",
        "records",
        "trace",
        "baseline",
        "reactor",
        "allowance",
        "tries",
        "reading",
        "wording",
    )

    @property
    def pool_records(self) -> tuple[type[msgspec.Struct], ...]:
        return Header, LabRecord

    def read_pool(self, path: Path) -> Pool[LabItem]:
        """Return a native pool, or a released suite: its configs with fresh crystals of seed 0."""
        return suite_pool(path, seed=0) if is_suite(path) else read_pool(path)

    def write_pool(self, pool: Pool[LabItem], path: Path) -> None:
        write_pool(pool, path)

    def record(self, item: LabItem) -> dict[str, Any]:
        return dict(msgspec.to_builtins(record_of_item(item)))

    def item_of_record(self, record: Mapping[str, Any]) -> LabItem:
        return item_of_record(convert_object(record, LabRecord))

    def prompt(self, item: LabItem) -> str:
        return "\n\n".join(message["content"] for message in self.messages(item))

    def messages(self, item: LabItem) -> list[Message]:
        return messages(item.task)

    def drawing(self, item: LabItem, *, reveal_sealed: bool) -> str:
        from calibrant.bench.causalab.pages import drawing  # reads what only pages need

        return drawing(item, reveal_sealed=reveal_sealed)


ITEMS = LabItems()


def phase_prompt(item: LabItem, phase: Phase) -> list[Message]:
    """Return the messages of one phase of the paper's protocol."""
    return phase_messages(item.task, phase)
