"""Pools as data sets: a folder with what may be published, and one with gold, each complete in itself."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from hashlib import file_digest, sha256
from pathlib import Path

from calibrant.bench.core.options import OptionError
from calibrant.bench.core.registry import benchmark
from calibrant.bench.hub.audit_results import audit_lines
from calibrant.bench.hub.card import card
from calibrant.bench.hub.columns import columns_of, record_text
from calibrant.bench.hub.croissant import croissant
from calibrant.bench.hub.describe import SPLIT, Described
from calibrant.bench.hub.rows import ExportRows
from calibrant.bench.hub.table import exported_items, write_table
from calibrant.bench.terminal import printable
from calibrant.bench.terminal.folders import making_folder
from calibrant.dsl.errors import CalibrantError, short_repr

QUESTIONS, GOLD = "questions", "gold"


def export(
    pools: Sequence[Path],
    out: Path,
    *,
    name: str = "",
    license_: str = "",
    split: str = SPLIT,
    audits: Path | None = None,
) -> int:
    """Write the folders `questions` and `gold` into `out`, which must not be there, or empty; how many items.

    split: its name in the data set; audits: folder of `calibrant audit --out`, whose counts the cards state

    All of it appears, or nothing. Items are read back before that, and are the same.
    """
    _require_free(out)
    if not re.fullmatch(r"[a-z]\w{0,29}", split, re.ASCII):
        raise OptionError(f"{short_repr(split)} is no name of a split: small letters, as train or test", "--split")
    with making_folder(out) as (folder, scratch):
        folder.mkdir()
        scratch.mkdir()
        rows_file = scratch / "rows.jsonl"
        rows = ExportRows(pools, rows_file)
        if not rows:
            raise CalibrantError("the pools have no items")
        _require_distinct(rows)
        results = [] if audits is None else audit_lines(audits, rows.pool_digests)
        for part, column in ((QUESTIONS, "benchmark"), (GOLD, "pool")):  # a pool's name may say what is in it
            title = name or " and ".join(dict.fromkeys(row[column] for row in rows))
            described = _write_rows(folder / part, part, rows, title, results)
            _write_cards(folder / part, replace(described, license=license_, split=split))
        _require_same(folder / GOLD / f"{GOLD}.parquet", rows)
    return len(rows)


def _require_free(out: Path) -> None:
    if out.is_symlink() or (out.exists() and (not out.is_dir() or any(out.iterdir()))):
        raise CalibrantError(f"{out}: there already; an export is a folder of its own")


def _require_distinct(rows: ExportRows) -> None:
    """Raise `CalibrantError` if an item stands in two rows, whatever public ids they have."""
    first: dict[bytes, str] = {}
    for row in rows:
        record = sha256(row["record"].encode()).digest()
        if record in first:
            item = f"item {short_repr(row['item'])} of {row['pool']}"
            raise CalibrantError(f"{item} is in {first[record]} already; `calibrant pool distinct` leaves repeats out")
        first[record] = row["pool"]


def _write_rows(folder: Path, part: str, rows: ExportRows, title: str, audits: Sequence[str]) -> Described:
    """Write the rows; return what describes them."""
    folder.mkdir()
    file = folder / f"{part}.parquet"
    columns = columns_of(rows, with_gold=part == GOLD)
    write_table(file, rows if part == GOLD else rows.by_id(), columns)
    with file.open("rb") as content:
        digest = file_digest(content, "sha256").hexdigest()
    return Described(
        name=f"{title} ({part})",
        file=file.name,
        sha256=digest,
        size=file.stat().st_size,
        rows=rows,
        columns=columns,
        drawn_from_seeds=rows.drawn_from_seeds,
        audits=audits if part == GOLD else (),  # names of pools and bounds of classes tell of what is sealed
    )


def _write_cards(folder: Path, described: Described) -> None:
    (folder / "README.md").write_text(printable(card(described)), encoding="utf-8")
    (folder / "croissant.json").write_text(json.dumps(croissant(described), indent=1) + "\n", encoding="utf-8")


def _require_same(file: Path, rows: ExportRows) -> None:
    for row, item in zip(rows, exported_items(file), strict=True):
        if record_text(benchmark(row["benchmark"]).items.record(item)) != row["record"]:
            raise CalibrantError(f"{row['id']} is not the same after an export; nothing was written")
