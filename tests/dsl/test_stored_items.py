"""Items that stay in their file are those of the file, whichever way they are asked for."""

from __future__ import annotations

import copy
import gzip
import os
import pickle
from itertools import islice
from pathlib import Path

import pytest

import calibrant.dsl.records
from calibrant.bench.core.registry import benchmark_of, bundled_files
from calibrant.dsl.errors import PoolError
from calibrant.dsl.records import StoredItems, item_ids, items_by_id

FILES = [file for files in bundled_files().values() for file in files[:1]]


@pytest.fixture
def few_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibrant.dsl.records, "MAX_CACHED_ITEMS", 1)


def head(source: Path, number: int, target: Path) -> Path:
    """Return a pool of the first so many items."""
    with source.open("rb") as lines:
        target.write_bytes(b"".join(islice(lines, 1 + number)))
    return target


@pytest.mark.parametrize("source", FILES, ids=lambda path: path.stem)
def test_stored_items_are_the_items(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pool = head(source, 5, tmp_path / "pool.jsonl")
    of = benchmark_of(pool)
    kept = of.items.read_pool(pool).items
    assert isinstance(kept, tuple)
    monkeypatch.setattr(calibrant.dsl.records, "MAX_CACHED_ITEMS", 1)
    stored = of.items.read_pool(pool).items
    assert isinstance(stored, StoredItems)
    assert tuple(stored) == kept
    assert stored == kept
    assert kept == stored
    assert stored != kept[:4]
    assert stored != kept[1:] + kept[:1]
    assert [stored[-1], *stored[1:4:2]] == [kept[-1], *kept[1:4:2]]
    assert item_ids(stored) == item_ids(kept) == item_ids(stored[:3]) + item_ids(stored[3:])
    by_id = items_by_id(stored)
    assert dict(by_id) == items_by_id(kept)
    assert "no such id" not in by_id
    assert pickle.loads(pickle.dumps(stored)) == copy.deepcopy(stored) == kept
    with pytest.raises(IndexError):
        stored[5]


def written(path: Path, number: int = 4) -> Path:
    return head(bundled_files()["causim"][0], number, path)


@pytest.mark.usefixtures("few_kept")
@pytest.mark.parametrize("before", [b"", b"\xef\xbb\xbf", b"\n \n"], ids=["plain", "marked", "blank"])
@pytest.mark.parametrize("compressed", [False, True])
def test_places_are_right_whatever_stands_between_lines(tmp_path: Path, before: bytes, compressed: bool) -> None:
    plain = written(tmp_path / "plain.jsonl")
    odd = tmp_path / "odd.jsonl"
    content = before + plain.read_bytes().replace(b"\n", b"\r\n \n").rstrip()
    odd.write_bytes(gzip.compress(content) if compressed else content)
    of = benchmark_of(plain)
    assert of.items.read_pool(odd).items == of.items.read_pool(plain).items


@pytest.mark.usefixtures("few_kept")
def test_a_file_that_is_replaced_or_removed_goes_on_being_read(tmp_path: Path) -> None:
    path = written(tmp_path / "pool.jsonl")
    items = benchmark_of(path).items.read_pool(path).items
    before = tuple(items)
    os.replace(written(tmp_path / "other.jsonl", 2), path)
    assert items == before
    path.unlink()
    assert items == before


@pytest.mark.usefixtures("few_kept")
def test_a_file_whose_bytes_change_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path / "pool.jsonl")
    items = benchmark_of(path).items.read_pool(path).items
    with path.open("r+b") as file:
        file.seek(-20, os.SEEK_END)
        file.write(b"0")
    assert len(list(islice(items, 3))) == 3
    with pytest.raises(PoolError, match="changed while it was read"):
        items[3]


@pytest.mark.usefixtures("few_kept")
def test_what_is_wrong_with_a_late_line_is_said_when_the_file_is_read(tmp_path: Path) -> None:
    path = written(tmp_path / "pool.jsonl")
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines, lines[2]]))
    with pytest.raises(PoolError, match=r"pool.jsonl: line 6 \('.*'\): id: a second item of that id"):
        benchmark_of(path).items.read_pool(path)
    path.write_bytes(b"".join([*lines, b"\xff\n"]))
    with pytest.raises(PoolError, match=f"pool.jsonl: not UTF-8 at byte {sum(map(len, lines))}"):
        benchmark_of(path).items.read_pool(path)


@pytest.mark.usefixtures("few_kept")
def test_files_are_closed_when_nothing_reads_from_them(tmp_path: Path) -> None:
    path = written(tmp_path / "pool.jsonl")
    of = benchmark_of(path)
    before = len(os.listdir("/dev/fd"))
    part = of.items.read_pool(path).items[1:]
    assert len(part) == len(list(part)) == 3
    assert len(os.listdir("/dev/fd")) == before + 1
    del part
    assert len(os.listdir("/dev/fd")) == before
