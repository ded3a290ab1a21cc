"""Native pool files of any benchmark: read back as written, refused in one line otherwise."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from calibrant.dsl.errors import PoolError
from calibrant.dsl.memory import CacheBudget, TextCache
from calibrant.dsl.records import Header, read_records, write_records


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


# --- Stores: what is met again stays, what is not makes room, and never more is kept than was said -------------------


def recalled(budget: CacheBudget, shelf: TextCache[str], text: str) -> str | None:
    return shelf.made.get(text) or budget.again(shelf, text)


def test_what_is_met_again_stays_and_the_rest_makes_room() -> None:
    budget = CacheBudget(3, longest=10)
    one, other = budget.shelf(), budget.shelf()
    for number in range(50):
        budget.store(one if number % 2 else other, f"text {number}", str(number))
        if number:
            assert recalled(budget, one, "text 1") == "1"
        assert sum(len(shelf.made) + len(shelf.older) for shelf in (one, other)) <= 6
    assert recalled(budget, one, "text 3") is None
    assert recalled(budget, one, "text 49") == "49"


def test_long_texts_are_not_kept_and_clearing_leaves_nothing() -> None:
    budget = CacheBudget(2, longest=3)
    shelf: TextCache[str] = budget.shelf()
    budget.store(shelf, "long", "a")
    assert not shelf.made
    for text in ("a", "b", "c"):
        budget.store(shelf, text, text)
    assert shelf.older
    assert shelf.made
    budget.clear()
    assert [recalled(budget, shelf, text) for text in "abc"] == [None] * 3
