"""Rows as Parquet, and back to items. Needs pyarrow, which the extra `hub` installs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from bench.benchmarks.registry import benchmark
from bench.hub.columns import Column, Row
from dsl.errors import CalibrantError, PoolError, shown
from dsl.item import Item, Pool


def write_table(path: Path, rows: Sequence[Mapping[str, Any]], columns: Sequence[Column]) -> None:
    """A file of these columns; what a row does not have is null."""
    arrow, parquet = _pyarrow("pyarrow"), _pyarrow("pyarrow.parquet")
    kinds = {"text": arrow.string(), "number": arrow.int64()}
    fields = [arrow.field(column.name, kinds[column.kind]) for column in columns]
    values = [arrow.array([row.get(field.name) for row in rows], field.type) for field in fields]
    parquet.write_table(arrow.table(values, schema=arrow.schema(fields)), path, compression="zstd")


def read_table(path: Path) -> list[Row]:
    """The rows of a file; `CalibrantError` if it is no Parquet file."""
    try:
        rows: list[Row] = _pyarrow("pyarrow.parquet").read_table(path).to_pylist()
    except OSError as error:
        raise CalibrantError(f"{path.name}: cannot be read: {error}") from None
    except ValueError as error:  # what pyarrow raises for other bytes
        raise CalibrantError(f"{path.name}: not a Parquet file: {error}") from None
    return rows


def exported_pools(path: Path) -> list[Pool[Item[Any, Any]]]:
    """The pools of a part with gold, in its order; `PoolError` names row and field of what cannot be meant."""
    pools: dict[tuple[str, str, str], list[Item[Any, Any]]] = {}
    for number, row in enumerate(read_table(path), 1):
        try:
            item = _item(row)
        except PoolError as error:
            raise error.located(file=path.name, instance=f"row {number}") from None
        pools.setdefault((row["benchmark"], row.get("pool") or "", row.get("pool_digest") or ""), []).append(item)
    return [Pool(name, of, tuple(items)) for (of, name, _), items in pools.items()]


def _item(row: Row) -> Item[Any, Any]:
    record = row.get("record")
    if not isinstance(record, str) or not isinstance(row.get("benchmark"), str):
        raise PoolError("none; only the part with gold has it", field="record")
    try:
        found = json.loads(record)
    except (ValueError, RecursionError):
        raise PoolError(f"{shown(record)} is not JSON", field="record") from None
    if not isinstance(found, dict):
        raise PoolError(f"{shown(found)} is not an object", field="record")
    item: Item[Any, Any] = benchmark(row["benchmark"]).item_of_record(found)
    return item


def _pyarrow(name: str) -> Any:
    try:
        return import_module(name)
    except ModuleNotFoundError:
        raise CalibrantError("an export needs pyarrow; install it with pip install 'calibrant[hub]'") from None
