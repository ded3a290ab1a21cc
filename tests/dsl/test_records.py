"""Native pool files of any benchmark, and what error messages show of untrusted values."""

from __future__ import annotations

import copy
import gzip
import os
import pickle
import re
from itertools import islice
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import calibrant.dsl.records
from calibrant.bench.core.registry import benchmark_of, bundled_files
from calibrant.dsl.causalab.records import LabRecord
from calibrant.dsl.errors import (
    ParseError,
    PoolError,
    readable_repr,
    short_repr,
)
from calibrant.dsl.formulas.text import Grammar, parse
from calibrant.dsl.memory import CacheBudget, TextCache
from calibrant.dsl.records import (
    Header,
    StoredItems,
    convert_object,
    item_ids,
    items_by_id,
    read_records,
    write_records,
)
from tests.support.effort import examples


# --- Native pool files of any benchmark: read back as written, refused in one line otherwise --------------------------
class Thing(msgspec.Struct, forbid_unknown_fields=True):
    id: str
    size: int = 1


def read_all(path: Path) -> list[Thing]:
    with read_records(path, "things", Thing) as file:
        return [record for _, record in file.records]


HEADER = '{"format":"calibrant-pool","version":1,"benchmark":"things"}\n'


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    path = tmp_path / "pool.jsonl"
    header = Header(format="calibrant-pool", version=1, benchmark="things", name="P", metadata={"a": [1]})
    write_records(path, header, [Thing("x"), Thing("y", 3)])
    with read_records(path, "things", Thing) as file:
        assert (file.name, file.metadata) == ("P", {"a": [1]})
        assert [(line.number, record) for line, record in file.records] == [(2, Thing("x")), (3, Thing("y", 3))]


@pytest.mark.parametrize("compressed", [False, True])
def test_an_object_over_several_lines_is_one_line(tmp_path: Path, compressed: bool) -> None:
    path = tmp_path / "pool.jsonl"
    content = HEADER.replace("{", "\ufeff{\r\n ").replace(",", ",\n ").replace("}", "\n}").encode()
    path.write_bytes(gzip.compress(content) if compressed else content)
    with read_records(path, "things", Thing) as file:
        assert [*file.records] == []
    path.write_bytes(content + b"{}")  # no single object: what is wrong is that of the first line
    with pytest.raises(PoolError, match="line 1"):
        read_all(path)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "pool.jsonl: empty"),
        ("no json", "line 1"),
        (HEADER.replace("things", "stuff"), "pool.jsonl: benchmark: a pool of 'stuff'; 'things' was expected"),
        (HEADER.replace(":1,", ":2,"), "version 2; this program reads"),
        (HEADER + '{"id": "x", "id": "y"}', "line 2: key 'id' occurs twice"),
        (HEADER + '{"id": 3}', r"line 2: .*\$\.id"),
        (HEADER + '{"id": "x", "sise": 3}', "line 2: .*sise"),
        (HEADER + '{"id": "x", "size": NaN}', "line 2: NaN is not a JSON number"),
        (HEADER + '{"id": "x", "size": true}', "line 2: "),
        (HEADER + '{"id": "\\ud800"}', "line 2: "),
        (HEADER + "[" * 100_000, "line 2: "),
    ],
)
def test_what_cannot_be_meant_is_refused_with_its_place(tmp_path: Path, content: str, says: str) -> None:
    path = tmp_path / "pool.jsonl"
    path.write_text(content)
    with pytest.raises(PoolError, match=says) as refused:
        read_all(path)
    assert str(refused.value).isprintable()


def test_bytes_that_are_no_text_and_files_that_are_missing_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "pool.jsonl"
    with pytest.raises(PoolError, match="cannot be read"):
        read_all(path)
    path.write_bytes(b"\xff")
    with pytest.raises(PoolError, match="not UTF-8 at byte 0"):
        read_all(path)
    for content, remedy in (("{}".encode("utf-16"), "save it in UTF-8"), (b"\x28\xb5\x2f\xfd\x04", "zstd -d FILE")):
        path.write_bytes(content)
        with pytest.raises(PoolError, match=remedy):
            read_all(path)


# --- Stores: what is met again stays, what is not makes room, and never more is kept than was said -------------------


def recalled(budget: CacheBudget, cache: TextCache[str], text: str) -> str | None:
    return cache.newer.get(text) or budget.promote(cache, text)


def test_what_is_met_again_stays_and_the_rest_makes_room() -> None:
    budget = CacheBudget(3, max_chars=10)
    one, other = budget.new_cache(), budget.new_cache()
    for number in range(50):
        budget.store(one if number % 2 else other, f"text {number}", str(number))
        if number:
            assert recalled(budget, one, "text 1") == "1"
        assert sum(len(cache.newer) + len(cache.older) for cache in (one, other)) <= 6
    assert recalled(budget, one, "text 3") is None
    assert recalled(budget, one, "text 49") == "49"


# --- Items that stay in their file are those of the file, whichever way they are asked for ----------------------------
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
    bench = benchmark_of(pool)
    kept = bench.items.read_pool(pool).items
    assert isinstance(kept, tuple)
    monkeypatch.setattr(calibrant.dsl.records, "MAX_CACHED_ITEMS", 1)
    stored = bench.items.read_pool(pool).items
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
    bench = benchmark_of(plain)
    assert bench.items.read_pool(odd).items == bench.items.read_pool(plain).items


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
def test_files_are_closed_when_nothing_reads_from_them(tmp_path: Path) -> None:
    path = written(tmp_path / "pool.jsonl")
    bench = benchmark_of(path)
    before = len(os.listdir("/dev/fd"))
    part = bench.items.read_pool(path).items[1:]
    assert len(part) == len(list(part)) == 3
    assert len(os.listdir("/dev/fd")) == before + 1
    del part
    assert len(os.listdir("/dev/fd")) == before


# --- What error messages show of untrusted values, and where they say a problem is ------------------------------------
LONGEST = 60


@given(st.text(st.characters(), max_size=100))
@settings(deadline=None, max_examples=examples(100))
def test_a_shown_value_is_one_short_printable_line(text: str) -> None:
    rendering = short_repr(text)
    assert rendering.isascii()
    assert rendering.isprintable()
    assert len(rendering) <= LONGEST
    if len(ascii(text)) <= LONGEST:
        assert rendering == ascii(text)  # nothing is cut that fits
    else:
        assert rendering == ascii(text)[: LONGEST - 3] + "..."


@given(st.text(st.characters(), max_size=100) | st.text("äß日本é", min_size=1, max_size=70))
@settings(deadline=None, max_examples=examples(100))
def test_a_name_is_one_short_printable_line_with_its_letters(text: str) -> None:
    rendering = readable_repr(text)
    assert rendering.isprintable()
    assert len(rendering) <= LONGEST
    if text.isalnum():
        assert rendering.removesuffix("...").strip("'") == text[: len(rendering.removesuffix("...").strip("'"))]
        assert len(text) > LONGEST - 2 or rendering == f"'{text}'"


@pytest.mark.parametrize(
    ("text", "allowed"),
    [
        ("(or X1 X2)", "allowed operators: and, not"),
        ("(nand X1 X2)", "allowed operators: and, not"),
        ("X3", "allowed variables: X1, X2"),
        ("(and X1)", "it takes 2 or more arguments"),
        ("(not X1 X2)", "it takes exactly 1 argument"),
        ("(and X1", "the '(' at character 0 is open"),
        ("(and X1 (not X2 ", "the '(' at character 8 is open"),
    ],
)
def test_a_parse_error_says_what_was_allowed(text: str, allowed: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse(text, Grammar(("and", "not")), {"X2", "X1"})
    assert caught.value.allowed == allowed
    assert str(caught.value) == f"{caught.value.message} at character {caught.value.position}; {allowed}"


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (PoolError("no rows"), "no rows"),
        (PoolError("no rows", file="a.yaml"), "a.yaml: no rows"),
        (PoolError("no rows", field="worlds[0]"), "worlds[0]: no rows"),
        (PoolError("no rows", file="a.yaml", instance="i7", field="worlds[0]"), "a.yaml: i7: worlds[0]: no rows"),
        (PoolError("no rows", field="rows").with_location(file="a.yaml", instance="i7"), "a.yaml: i7: rows: no rows"),
        (PoolError("no rows", file="a", instance="i").with_location(file="b", instance="j"), "a: i: no rows"),
        (PoolError("no rows", instance="i").with_location(file="b", instance="j"), "b: i: no rows"),
    ],
)
def test_a_pool_error_tells_where(error: PoolError, message: str) -> None:
    assert str(error) == message
    assert error.problem == "no rows"


def test_a_value_of_no_enumeration_names_those_that_are() -> None:
    """In a field of the record, of a part of it, and of an optional one; other faults keep their message."""
    pool = benchmark_of(bundled_files()["causalab"][0]).items
    record = pool.record(pool.read_pool(bundled_files()["causalab"][0]).items[0])
    wrong = [
        ({"family": "cubic"}, "allowed: linear, quadratic"),
        ({"weights": "large"}, "allowed: small, hundredths"),
        ({"line": "one"}, "Expected `int`, got `str`"),
    ]
    for change, expected in wrong:
        with pytest.raises(PoolError, match=re.escape(expected)):
            convert_object(record | change, LabRecord)
