"""Rows as Parquet, and back to items. Needs pyarrow, which the extra `hub` installs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any

from calibrant.bench.core.registry import benchmark
from calibrant.bench.hub.columns import Column, Row
from calibrant.dsl.errors import CalibrantError, PoolError, short_repr
from calibrant.dsl.item import Item
from calibrant.dsl.parse_limits import TooLargeError, load_json

GROUP = 1000  # rows that are held at once, and of a row group of the file


def write_table(
    path: Path, rows: Iterable[Row], columns: Sequence[Column], metadata: Mapping[str, str] | None = None
) -> None:
    """Write a file of these columns; what a row does not have is null.

    metadata: of the file, beside its columns
    """
    arrow, parquet = _pyarrow("pyarrow"), _pyarrow("pyarrow.parquet")
    kinds = {"text": arrow.string(), "number": arrow.int64()}
    schema = arrow.schema([arrow.field(column.name, kinds[column.kind]) for column in columns])
    if metadata is not None:
        schema = schema.with_metadata(dict(metadata))
    remaining = iter(rows)
    with parquet.ParquetWriter(path, schema, compression="zstd") as file:
        while group := list(islice(remaining, GROUP)):
            values = [arrow.array([row.get(field.name) for row in group], field.type) for field in schema]
            file.write_table(arrow.table(values, schema=schema))


def read_table(path: Path) -> Iterator[Row]:
    """Yield the rows of a file; `CalibrantError` if it is no Parquet file."""
    try:
        with _pyarrow("pyarrow.parquet").ParquetFile(path) as file:
            for group in file.iter_batches(batch_size=GROUP):
                yield from group.to_pylist()
    except OSError as error:
        raise CalibrantError(f"{path.name}: cannot be read: {error}") from None
    except ValueError as error:  # what pyarrow raises for other bytes
        raise CalibrantError(f"{path.name}: not a Parquet file: {error}") from None


def exported_items(path: Path) -> Iterator[Item[Any, Any]]:
    """Yield the items of a part with gold, in its order; `PoolError` names row and field of what cannot be meant."""
    for number, row in enumerate(read_table(path), 1):
        try:
            yield _item(row)
        except PoolError as error:
            raise error.with_location(file=path.name, instance=f"row {number}") from None


def _item(row: Row) -> Item[Any, Any]:
    record = row.get("record")
    if not isinstance(record, str) or not isinstance(row.get("benchmark"), str):
        raise PoolError("none; only the part with gold has it", field="record")
    try:
        value = load_json(record)
    except TooLargeError as error:
        raise PoolError(str(error), field="record") from None
    except (ValueError, RecursionError):
        raise PoolError(f"{short_repr(record)} is not JSON", field="record") from None
    if not isinstance(value, dict):
        raise PoolError(f"{short_repr(value)} is not an object", field="record")
    item: Item[Any, Any] = benchmark(row["benchmark"]).items.item_of_record(value)
    return item


def _pyarrow(name: str) -> Any:
    try:
        return import_module(name)
    except ModuleNotFoundError:
        raise CalibrantError("an export needs pyarrow; install it with pip install 'calibrant[hub]'") from None
