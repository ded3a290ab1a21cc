"""Export of pools as data sets for a hub: items, counts of audits, cards and metadata."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from hashlib import file_digest, sha256
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from calibrant.bench.core.benchmark import Benchmark, PublicIds
from calibrant.bench.core.options import OptionError
from calibrant.bench.core.registry import benchmark, benchmark_of
from calibrant.bench.hub import card as hub_card
from calibrant.bench.scoring.files import json_object, numbered_lines
from calibrant.bench.terminal import making_folder, printable, typed_json
from calibrant.dsl.errors import CalibrantError, PoolError, short_repr
from calibrant.dsl.item import Item
from calibrant.dsl.parse_limits import TooLargeError, load_json
from calibrant.dsl.records import pool_digest
from calibrant.dsl.text import plural

# --- The rows of an export, in a file while it is made: memory holds one, however many there are ----------------------


class ExportRows:
    """The rows of pools with all columns, in the order of the files; they can be iterated repeatedly.

    by_id: yields them in the order of public ids, which hides the items that are drawn together
    pool_digests: digests of the pools' files; drawn_from_seeds: whether every pool states a seed in its metadata
    """

    def __init__(self, pools: Sequence[Path], file: Path) -> None:
        """Write the rows to `file`, which they are read from later; `PoolError` for a pool that cannot be read."""
        digests: list[str] = []
        self.pool_digests: list[str] = []
        self.drawn_from_seeds = True
        offsets: list[tuple[str, int]] = []
        encode = msgspec.json.Encoder().encode
        with file.open("xb") as lines:
            for path in pools:
                bench = benchmark_of(path)
                pool: Any = bench.items.read_pool(path)
                digest = pool_digest(path)
                self.pool_digests.append(digest)
                self.drawn_from_seeds &= "seed" in pool.metadata
                for row in _rows(bench, path, pool, digest):
                    offsets.append((row["id"], lines.tell()))
                    lines.write(encode(row) + b"\n")
                    digests.append(row["digest"])
        self._file, self._offsets = file, [offset for _, offset in offsets]
        self._sorted = [offset for _, offset in sorted(offsets)]
        self._canary = hub_card.canary_of(sorted(digests))

    def __len__(self) -> int:
        return len(self._offsets)

    def __iter__(self) -> Iterator[hub_card.Row]:
        return self._rows(self._offsets)

    def by_id(self) -> Iterator[hub_card.Row]:
        return self._rows(self._sorted)

    def _rows(self, offsets: Sequence[int]) -> Iterator[hub_card.Row]:
        decode = msgspec.json.Decoder(dict[str, Any]).decode
        with self._file.open("rb") as lines:
            for offset in offsets:
                lines.seek(offset)
                yield {**decode(lines.readline()), "canary": self._canary}


def _rows(bench: Benchmark[Any], path: Path, pool: Any, digest: str) -> Iterator[hub_card.Row]:
    public = PublicIds.of_pool(path, pool.items)
    for item in pool.items:
        *system, user = bench.items.messages(item)
        system_text = "\n\n".join(message["content"] for message in system)
        record = hub_card.record_text(bench.items.record(item))
        gold = bench.training.gold(item)
        labels = bench.training.difficulty(item)
        yield {
            "id": public.public(item.id),
            "benchmark": bench.name,
            "item": item.id,
            "salt": public.salt,
            "pool": pool.name,
            "setting": item.setting,
            "stratum": item.stratum,
            "system": system_text,
            "prompt": user["content"],
            "digest": hub_card.prompt_digest(system_text, user["content"]),
            "record": record,
            "answer": "" if gold is None else json.dumps(gold, sort_keys=True),
            "record_digest": hub_card.text_digest(record),
            "pool_digest": digest,
            **{f"{hub_card.DIFFICULTY}{name}": value for name, value in labels.items()},
        }


# --- Rows as Parquet, and back to items. Needs pyarrow, which the extra `hub` installs --------------------------------
GROUP = 1000  # rows per row group of the file, and rows in memory


def write_table(
    path: Path,
    rows: Iterable[hub_card.Row],
    columns: Sequence[hub_card.Column],
    metadata: Mapping[str, str] | None = None,
) -> None:
    """Write a Parquet file of these columns; a value that a row lacks is null.

    metadata: metadata of the file
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


def read_table(path: Path) -> Iterator[hub_card.Row]:
    """Yield the rows of a Parquet file; `CalibrantError` for another file."""
    try:
        with _pyarrow("pyarrow.parquet").ParquetFile(path) as file:
            for group in file.iter_batches(batch_size=GROUP):
                yield from group.to_pylist()
    except OSError as error:
        raise CalibrantError(f"{path.name}: cannot be read: {error}") from None
    except ValueError as error:  # raised by pyarrow for other bytes
        raise CalibrantError(f"{path.name}: not a Parquet file: {error}") from None


def exported_items(path: Path) -> Iterator[Item[Any, Any]]:
    """Yield the items of a part with gold, in its order; `PoolError` names row and field of an invalid value."""
    for number, row in enumerate(read_table(path), 1):
        try:
            yield _item(row)
        except PoolError as error:
            raise error.with_location(file=path.name, instance=f"row {number}") from None


def _item(row: hub_card.Row) -> Item[Any, Any]:
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


# --- Audit results of exported pools as lines of a card: counts over items, nothing about a single one ----------------
AUDITS_FILE = "audits.jsonl"  # written by `calibrant audit --out`
VERDICTS = ("proved", "refuted", "open")


class _Claim(msgspec.Struct):
    """Kind and verdict of a finding; its other fields are not read."""

    kind: str
    verdict: str


class _ClassCount(msgspec.Struct):
    max_parents: int
    members: str  # number of models, in decimal digits


class _ClassCounts(msgspec.Struct):
    """Numbers of models that fit an item, by class; headline: `max_parents` of the class of the verdict."""

    headline: int
    classes: tuple[_ClassCount, ...]


class _AuditLine(msgspec.Struct):
    """Fields of a line of audits.jsonl that a card needs; findings: None for an item that was not audited."""

    pool: str
    pool_digest: str
    pool_size: int
    findings: _ClassCounts | tuple[_Claim, ...] | None


def audit_lines(folder: Path, digests: Collection[str]) -> list[str]:
    """Return a card's lines on the audited items of these pools; `CalibrantError` if the folder has none of them.

    digests: digests of the pools' files
    """
    path = folder / AUDITS_FILE
    if not path.is_file():
        raise CalibrantError(f"{folder}: no {AUDITS_FILE} in it; `calibrant audit POOL --out DIR` writes one")
    records = [record for record in _read_audits(path) if record.pool_digest in digests]
    if not records:
        raise CalibrantError(f"{folder}: its audits are of other pools than those that are exported")
    by_pool: dict[str, list[_AuditLine]] = {}
    for record in records:
        by_pool.setdefault(record.pool, []).append(record)
    return [line for name, listed in by_pool.items() for line in _pool_lines(name, listed)]


def _read_audits(path: Path) -> Iterator[_AuditLine]:
    """Yield the records of an audit's file; `CalibrantError` names a line that is no record of an audit."""
    for number, line in numbered_lines(path):
        try:
            yield msgspec.convert(json_object(line), _AuditLine)
        except (msgspec.ValidationError, CalibrantError) as error:
            raise CalibrantError(f"{path}: line {number}: not a record of an audit: {error}") from None


def _pool_lines(name: str, records: Sequence[_AuditLine]) -> Iterator[str]:
    audited = [record.findings for record in records if record.findings is not None]
    yield f"{name}: {len(audited)} of {plural(records[0].pool_size, 'items')} audited"
    counts = [result for result in audited if isinstance(result, _ClassCounts)]
    if counts:
        yield from _class_lines(counts)
    kinds = Counter((f.kind, f.verdict) for result in audited if not isinstance(result, _ClassCounts) for f in result)
    for kind in dict.fromkeys(kind for kind, _ in kinds):
        states = ", ".join(f"{verdict} for {kinds[kind, verdict]}" for verdict in VERDICTS if kinds[kind, verdict])
        yield f"{kind}: {states}"


def _class_lines(results: Sequence[_ClassCounts]) -> Iterator[str]:
    """Yield the numbers of items with one, several and no model in the class of their verdict."""
    tally: Counter[tuple[int, str]] = Counter()
    for result in results:
        members = next((c.members for c in result.classes if c.max_parents == result.headline), None)
        word = "an uncounted number of models" if members is None else _number_word(int(members))
        tally[result.headline, word] += 1
    for (bound, word), number in sorted(tally.items()):
        yield f"{word} of at most {bound} functional parents fits: {number}"


def _number_word(members: int) -> str:
    return "no model" if members == 0 else "exactly one model" if members == 1 else "more than one model"


# --- Pools as data sets: a publishable folder and one with gold, each complete in itself ------------------------------
QUESTIONS, GOLD = "questions", "gold"


def export(
    pools: Sequence[Path],
    out: Path,
    *,
    name: str = "",
    license_: str = "",
    split: str = hub_card.SPLIT,
    audits: Path | None = None,
) -> int:
    """Write the folders `questions` and `gold` into `out`, which must be missing or empty; return the number of items.

    name: name of the data set; license_: identifier of its license; split: name of its split
    audits: folder of `calibrant audit --out` with the counts for the cards

    Either everything appears or nothing. Before that, items are read back and compared with the pools.
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
        for part, column in ((QUESTIONS, "benchmark"), (GOLD, "pool")):  # a pool's name may reveal its content
            title = name or " and ".join(dict.fromkeys(row[column] for row in rows))
            described = _write_rows(folder / part, part, rows, title, results)
            _write_cards(folder / part, replace(described, license=license_, split=split))
        files = {part: f"{part}/{part}.parquet" for part in (QUESTIONS, GOLD)}
        title = name or " and ".join(dict.fromkeys(row["benchmark"] for row in rows))
        (folder / "README.md").write_text(printable(hub_card.folder_card(title, files, split)), encoding="utf-8")
        _require_same(folder / GOLD / f"{GOLD}.parquet", rows)
    return len(rows)


def _require_free(out: Path) -> None:
    if out.is_symlink() or (out.exists() and (not out.is_dir() or any(out.iterdir()))):
        raise CalibrantError(f"{out}: there already; an export is a folder of its own")


def _require_distinct(rows: ExportRows) -> None:
    """Raise `CalibrantError` if two rows hold the same item, also under different public ids."""
    first: dict[bytes, str] = {}
    for row in rows:
        record = sha256(row["record"].encode()).digest()
        if record in first:
            item = f"item {short_repr(row['item'])} of {row['pool']}"
            raise CalibrantError(f"{item} is in {first[record]} already; `calibrant pool distinct` leaves repeats out")
        first[record] = row["pool"]


def _write_rows(folder: Path, part: str, rows: ExportRows, title: str, audits: Sequence[str]) -> hub_card.Described:
    """Write the file of a part; return the part's description."""
    folder.mkdir()
    file = folder / f"{part}.parquet"
    columns = hub_card.columns_of(rows, with_gold=part == GOLD)
    write_table(file, rows if part == GOLD else rows.by_id(), columns)
    with file.open("rb") as content:
        digest = file_digest(content, "sha256").hexdigest()
    return hub_card.Described(
        name=f"{title} ({part})",
        file=file.name,
        sha256=digest,
        size=file.stat().st_size,
        rows=rows,
        columns=columns,
        drawn_from_seeds=rows.drawn_from_seeds,
        audits=audits if part == GOLD else (),  # names of pools and bounds of classes reveal sealed content
    )


def _write_cards(folder: Path, described: hub_card.Described) -> None:
    (folder / "README.md").write_text(printable(hub_card.card(described)), encoding="utf-8")
    (folder / "croissant.json").write_text(typed_json(hub_card.croissant(described), indent=1) + "\n", encoding="utf-8")


def _require_same(file: Path, rows: ExportRows) -> None:
    for row, item in zip(rows, exported_items(file), strict=True):
        if hub_card.record_text(benchmark(row["benchmark"]).items.record(item)) != row["record"]:
            raise CalibrantError(f"{row['id']} is not the same after an export; nothing was written")
