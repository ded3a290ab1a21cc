"""Items for training and for data sets: by seed without end, records, right answers, labels, exports, bundled pools."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from calibrant.bench.core.registry import benchmark, benchmark_of, benchmark_of_item
from calibrant.bench.training import LABELS
from calibrant.verbs import path_argument

if TYPE_CHECKING:
    from calibrant.bench.papers import PrintedTable
    from calibrant.bench.training import Drawn
    from calibrant.dsl.item import Item

__all__ = [
    "DIFFICULTY_LABELS",
    "bundled_pool",
    "curriculum",
    "difficulty",
    "exported_items",
    "item_record",
    "item_records",
    "printed_table",
    "right_answer",
    "stages",
]

DIFFICULTY_LABELS: Mapping[str, str] = LABELS
"""Label of `difficulty` -> the quantity that it counts."""


def bundled_pool(name: str) -> Path:
    """Return the file of a bundled pool: a benchmark's, a setting of ReplaySCM's, `series`, or `replayscm-episodes`."""
    from calibrant.bench.core.registry import bundled_sample
    from calibrant.dsl.errors import CalibrantError

    try:
        return bundled_sample(name.replace("-", "_"))
    except ValueError as error:
        raise CalibrantError(str(error)) from None


def printed_table(number: str) -> PrintedTable | None:
    """Return the rows that the ReplaySCM paper prints in a table, texts under its columns; None if none are stored."""
    from calibrant.bench.replayscm.paper import printed_table as stored_table

    return stored_table(number)


def stages(of: str) -> Sequence[str]:
    """Return the suites of a benchmark that make a curriculum, easy ones first."""
    return tuple(benchmark(of).training.stages)


def curriculum(of: str, suites: Sequence[str] = (), *, seed: int, per_stage: int) -> Iterator[Drawn]:
    """Yield items without end: `per_stage` of the first suite, as many of the next, and the last suite without end.

    Each has `item`, `suite`, `stage` (index of the suite) and `place` (index of the item in its suite). Item i of a
    suite and seed does not depend on how many are drawn.

    of: name of the benchmark; suites: by default `stages(of)`
    """
    from calibrant.bench.training import in_stages

    return in_stages(benchmark(of), suites, seed, per_stage)


def item_record(item: Item[Any, Any]) -> str:
    """Return the native record of an item as JSON, with its sealed part; rewards read it from their column `record`."""
    return json.dumps(benchmark_of_item(item).items.record(item))


def item_records(path: str | PathLike[str]) -> dict[str, str]:
    """Return the records of a pool's items (`item_record`), each by its id in the pool and by its id in prompts."""
    from calibrant.bench.core.benchmark import PublicPool

    file = path_argument(path, "a pool's file")
    pool = PublicPool(benchmark_of(file), file)
    records = {item.id: item_record(item) for item in pool.items.items}
    return {pool.ids.public(name): record for name, record in records.items()} | records


def right_answer(item: Item[Any, Any]) -> dict[str, Any] | None:
    """Return an answer that is right if it is submitted at once; None if the item accepts no answer at once."""
    return benchmark_of_item(item).training.gold(item)


def difficulty(item: Item[Any, Any]) -> Mapping[str, int]:
    """Return label -> count, such as the number of variables. `DIFFICULTY_LABELS` says what each label counts."""
    return benchmark_of_item(item).training.difficulty(item)


def exported_items(path: str | PathLike[str]) -> Iterator[Item[Any, Any]]:
    """Yield the items of the part of an export that has the gold (extra `hub`).

    `PoolError` names the row and the field that is invalid.
    """
    from calibrant.bench.hub.export import exported_items as read_items

    return read_items(path_argument(path, "path"))
