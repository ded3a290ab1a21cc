"""Items of extended blickets as pool files, records and prompts, and statistics of a pool."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from calibrant.bench.core.capabilities import PromptFields
from calibrant.bench.core.items import ItemFormats, PoolStatistic, PoolStatistics, share, span, spread, tally
from calibrant.dsl.blickets.item import BlicketItem, Mechanism
from calibrant.dsl.blickets.prompt import TEMPLATE_FIELDS, instructions, template_fields
from calibrant.dsl.blickets.records import ItemRecord, item_from_record, read_pool, record_from_item, write_pool
from calibrant.dsl.item import Pool
from calibrant.dsl.records import Header, convert_object

# --- Items of extended blickets as pool files, records and prompts ----------------------------------------------------


class BlicketItems(ItemFormats[BlicketItem]):
    """Implements ItemFormats (bench.core.items)."""

    public_fields = (
        "id",
        "n",
        "objects",
        "budget",
        "condition",  # of informed items alone
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


PROMPT_FIELDS = PromptFields(
    TEMPLATE_FIELDS,
    lambda task, phase: template_fields(task),
    Path(__file__).parent / "data" / "prompt.j2",
)

ITEMS = BlicketItems()


# --- Statistics of blicket items: sizes, rules, switches, noise and labels --------------------------------------------


def _rule(mechanism: Mechanism) -> str:
    return f"{mechanism.rule.form}-{mechanism.rule.blickets.bit_count()}"


def _steps(item: BlicketItem) -> Iterable[float]:
    """Return the label `steps` as a number; empty if it is no number, as labels are free texts."""
    text = item.labels.get("steps", "")
    return (float(text),) if text.replace(".", "", 1).isdecimal() and text.isascii() else ()


COLUMNS: Mapping[str, PoolStatistic[BlicketItem]] = {
    "n": PoolStatistic(lambda item: (True,), len),  # number of items
    "objects": PoolStatistic(lambda item: (item.task.n,), span),
    "budget": PoolStatistic(lambda item: (item.task.budget,), span),
    "first_rule": PoolStatistic(lambda item: (_rule(item.sealed.mechanisms[0]),), tally),
    "later_rules": PoolStatistic(lambda item: map(_rule, item.sealed.mechanisms[1:]), tally),
    "switches": PoolStatistic(lambda item: item.sealed.switches, span),
    "ordered": PoolStatistic(lambda item: (item.sealed.mechanisms[0].order is not None,), share),
    "p": PoolStatistic(lambda item: (item.sealed.p,), tally),
    "informed": PoolStatistic(lambda item: (item.task.condition is not None,), share),
    "count": PoolStatistic(lambda item: (item.task.count,), tally),
    "steps": PoolStatistic(_steps, spread),
}
STATISTICS = PoolStatistics(COLUMNS, lambda item: item.stratum)
