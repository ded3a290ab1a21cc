"""Items of logic models: pool files, records, prompts, and statistics of a pool."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from calibrant.bench.core.capabilities import PromptFields
from calibrant.bench.core.items import ItemFormats, PoolStatistic, PoolStatistics, share, span, spread
from calibrant.dsl.errors import PoolError
from calibrant.dsl.item import Pool
from calibrant.dsl.logic.item import LogicItem, model_size
from calibrant.dsl.logic.prompt import TEMPLATE_FIELDS, prompt, template_fields
from calibrant.dsl.logic.records import ItemRecord, item_from_record, read_pool, record_from_item, write_pool
from calibrant.dsl.logic.trajectories import TrajectoryItem, TrajectoryItemRecord, is_trajectory_item, trajectory_prompt
from calibrant.dsl.records import Header, convert_object

# --- Pool files, records and prompts of logic models ------------------------------------------------------------------


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
        *("genes", "candidates", "trajectories", "question", "functions"),  # of items of trajectories
    )

    @property
    def pool_records(self) -> tuple[type[msgspec.Struct], ...]:
        return Header, ItemRecord, TrajectoryItemRecord

    def read_pool(self, path: Path) -> Pool[LogicItem]:
        return read_pool(path)

    def write_pool(self, pool: Pool[LogicItem], path: Path) -> None:
        write_pool(path, pool.name, pool.items, dict(pool.metadata))

    def record(self, item: LogicItem) -> dict[str, Any]:
        """Return the record; `sealed` holds the truth and the labels, which describe it."""
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
        return trajectory_prompt(item.task) if is_trajectory_item(item) else prompt(item.task)


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


V = TypeVar("V")


def _of_experiments(values: Callable[[LogicItem], Iterable[V]]) -> Callable[[LogicItem], Iterable[V]]:
    """Return a statistic of items of experiments, without values for items of trajectories."""
    return lambda item: () if is_trajectory_item(item) else values(item)


def _of_trajectories(value: Callable[[TrajectoryItem], int]) -> Callable[[LogicItem], Iterable[int]]:
    """Return a statistic of items of trajectories, without values for items of experiments."""
    return lambda item: (value(item),) if is_trajectory_item(item) else ()


COLUMNS: Mapping[str, PoolStatistic[LogicItem]] = {
    "n": PoolStatistic(lambda item: (True,), len),
    "edges": PoolStatistic(_of_experiments(lambda item: (len(item.task.edges),)), span),
    "stimuli": PoolStatistic(_of_experiments(lambda item: (len(item.task.setup.stimuli),)), span),
    "readouts": PoolStatistic(_of_experiments(lambda item: (len(item.task.setup.readouts),)), span),
    "experiments": PoolStatistic(_of_experiments(lambda item: (len(item.task.experiments),)), span),
    "questions": PoolStatistic(_of_experiments(lambda item: (len(item.task.questions),)), span),
    "measured": PoolStatistic(_of_experiments(_is_measured), share),
    "gold_size": PoolStatistic(_of_experiments(_true_sizes), spread),
    "genes": PoolStatistic(_of_trajectories(lambda item: len(item.task.genes)), span),
    "candidates": PoolStatistic(_of_trajectories(lambda item: sum(map(len, item.task.candidates.values()))), span),
    "trajectories": PoolStatistic(_of_trajectories(lambda item: len(item.task.evidence)), span),
}
STATISTICS = PoolStatistics(COLUMNS, lambda item: item.stratum)
