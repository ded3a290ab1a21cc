"""Items of a release as data sets: public columns in `public`, all columns in `gold`, as JSON lines and Parquet."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from calibrant.bench.hub.card import Column, Row, columns_of
from calibrant.bench.hub.export import ExportRows, write_table
from calibrant.bench.suites.release.pools import BuiltPool
from calibrant.bench.suites.specification import SuiteSpec

ITEMS = "items"


def write_items(spec: SuiteSpec, pool: BuiltPool, public: Path, scratch: Path) -> list[tuple[str, str]]:
    """Write the items of a pool; return public id and canonical gold of each, for commitments."""
    rows = ExportRows([pool.file], scratch / f"{pool.spec.name}.rows.jsonl")
    folder = public / pool.spec.name
    folder.mkdir()
    public_names = columns_of(rows, with_gold=False)
    for kind in spec.formats:
        _write(folder / f"{ITEMS}.{kind}", _with_canary(rows.by_id(), spec, pool), public_names, spec.canary_text)
    if "parquet" in spec.formats:
        complete = columns_of(rows, with_gold=True)
        _write(pool.folder / "gold.parquet", _with_canary(rows, spec, pool), complete, spec.canary_text)
    return [(row["id"], row["record"]) for row in rows]


def public_columns(spec: SuiteSpec) -> Sequence[Column]:
    """Return the columns of the public items."""
    return columns_of([], with_gold=False)


def _with_canary(rows: Iterable[Row], spec: SuiteSpec, pool: BuiltPool) -> Iterator[Row]:
    return ({**row, "canary": spec.canary_text, "pool": pool.spec.name} for row in rows)


def _write(path: Path, rows: Iterable[Row], columns: Sequence[Column], canary: str) -> None:
    if path.suffix == ".parquet":
        write_table(path, rows, columns, {"canary": canary})
        return
    names = [column.name for column in columns]
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(json.dumps({name: row.get(name) for name in names}) + "\n" for row in rows)
