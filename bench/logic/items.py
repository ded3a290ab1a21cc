"""Items of logic models as pool files, records and prompts, and statistics of a pool."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from calibrant.bench.core.capabilities import PromptFields
from calibrant.bench.core.items import ItemFormats, PoolStatistic, PoolStatistics, share, span, spread
from calibrant.dsl.errors import PoolError
from calibrant.dsl.item import Pool
from calibrant.dsl.logic.item import LogicItem, model_size
from calibrant.dsl.logic.prompt import TEMPLATE_FIELDS, prompt, template_fields
from calibrant.dsl.logic.records import ItemRecord, item_from_record, read_pool, record_from_item, write_pool
from calibrant.dsl.records import Header, convert_object

# --- Items of logic models as pool files, records and prompts ---------------------------------------------------------


class LogicItems(ItemFormats[LogicItem]):
    """Implements ItemFormats (bench.core.items)."""

    public_fields = (
        "id",
        "prior",
        "stimuli",
        "inhibitors",
        "readouts",
        "experiments",
        "values",
        "factor",
        "rounding",
        "compress",
        "max_clause",
        "fit",
        "size",
        "questions",
        "wording",
    )

    @property
    def pool_records(self) -> tuple[type[msgspec.Struct], ...]:
        return Header, ItemRecord

    def read_pool(self, path: Path) -> Pool[LogicItem]:
        return read_pool(path)

    def write_pool(self, pool: Pool[LogicItem], path: Path) -> None:
        write_pool(path, pool.name, pool.items, dict(pool.metadata))

    def record(self, item: LogicItem) -> dict[str, Any]:
        """Return the native record; its labels, which describe the truth, are under `sealed` too."""
        record = dict(msgspec.to_builtins(record_from_item(item)))
        return record | {"sealed": {"truth": record.pop("sealed", None), "labels": record.pop("labels")}}

    def item_of_record(self, record: Mapping[str, Any]) -> LogicItem:
        sealed = record.get("sealed")
        if not isinstance(sealed, Mapping) or sealed.keys() != {"truth", "labels"}:
            raise PoolError("an object with truth and labels is needed", field="sealed")
        native = {key: value for key, value in record.items() if key != "sealed"} | {"labels": sealed["labels"]}
        if sealed["truth"] is not None:
            native["sealed"] = sealed["truth"]
        return item_from_record(convert_object(native, ItemRecord))

    def prompt(self, item: LogicItem) -> str:
        return prompt(item.task)


PROMPT_FIELDS = PromptFields(
    TEMPLATE_FIELDS,
    lambda task, phase: template_fields(task),
    Path(__file__).parent / "data" / "prompt.j2",
)

ITEMS = LogicItems()


# --- Statistics of items of logic models: networks, data, truths ------------------------------------------------------


def _true_sizes(item: LogicItem) -> Iterable[int]:
    return () if item.sealed is None else (model_size(item.sealed.gold),)


def _is_measured(item: LogicItem) -> Iterable[bool]:
    return (value is not None for row in item.task.values for value in row)


COLUMNS: Mapping[str, PoolStatistic[LogicItem]] = {
    "n": PoolStatistic(lambda item: (True,), len),
    "edges": PoolStatistic(lambda item: (len(item.task.edges),), span),
    "stimuli": PoolStatistic(lambda item: (len(item.task.setup.stimuli),), span),
    "readouts": PoolStatistic(lambda item: (len(item.task.setup.readouts),), span),
    "experiments": PoolStatistic(lambda item: (len(item.task.experiments),), span),
    "questions": PoolStatistic(lambda item: (len(item.task.questions),), span),
    "measured": PoolStatistic(_is_measured, share),
    "gold_size": PoolStatistic(_true_sizes, spread),
}
STATISTICS = PoolStatistics(COLUMNS, lambda item: item.stratum)
