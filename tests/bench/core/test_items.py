"""Items of every benchmark, and their records."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import calibrant
from calibrant.bench.cli import main
from calibrant.bench.core.items import similar_ids, unknown_item
from calibrant.bench.core.registry import NAMES, benchmark, bundled_pools, bundled_sample
from calibrant.bench.pools.generated import write_drawn
from calibrant.dsl.errors import PoolError
from calibrant.dsl.item import Pool
from calibrant.dsl.records import convert_object
from calibrant.dsl.replayscm.pools.records import ProblemRecord
from tests.support.commands import refused
from tests.support.replayscm.records import native_file, native_record

# --- Ids that are suggested for one that a pool does not have: the closest, equally close ones in the pool's order ----


def test_equally_similar_ids_come_in_the_order_of_the_pool() -> None:
    ids = [f"easy-3-7-{place}" for place in range(4)]
    assert similar_ids("easy-3-7-9", ids) == ids[:3]
    assert similar_ids("easy-3-7-30", ids)[0] == "easy-3-7-0"
    assert similar_ids("easy-3-7-", ["other", *ids], 4) == ids
    assert similar_ids("zzz", ids) == []
    assert similar_ids("anything", []) == []


@pytest.mark.parametrize(
    ("instance", "num_ids", "hint"),
    [
        ("item-9", 1, "similar: 'item-0' (of 1 in all)"),
        ("item-9", 4, "similar: 'item-0', 'item-1', 'item-2' (of 4 in all)"),
        ("zzz", 0, "known: none"),
        ("zzz", 1, "known: 'item-0'"),
        ("zzz", 3, "known: 'item-0', 'item-1', 'item-2'"),
        ("zzz", 4, "the first of 4: 'item-0', 'item-1', 'item-2'"),
    ],
)
def test_an_unknown_id_is_told_apart_from_similar_ones(instance: str, num_ids: int, hint: str) -> None:
    error = unknown_item("pool", instance, [f"item-{place}" for place in range(num_ids)])
    assert str(error) == f"pool: no instance '{instance}'; {hint}"


@pytest.mark.parametrize("of", NAMES)
def test_show_suggests_the_first_of_equally_similar_ids(
    of: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if of == "replayscm":
        pool = native_file([native_record(f"item-{place}") for place in range(4)], tmp_path)
    else:
        pool = tmp_path / "pool.jsonl"
        item = calibrant.generate(4, of=of)  # type: ignore[call-overload]
        items = tuple(replace(item, id=f"item-{place}") for place in range(4))
        benchmark(of).items.write_pool(Pool("made", of, items, {}), pool)
    said = refused(capsys, "show", pool, "item-9")
    assert [said.find(f"item-{place}") >= 0 for place in range(4)] == [True, True, True, False]


def _duplicates(report: dict[str, Any]) -> list[dict[str, str]]:
    return [note for note in report["notes"] if note["kind"] == "duplicate"]


def test_pool_check_names_duplicates_in_a_file_and_in_earlier_ones(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    header, *lines = bundled_sample("hidden_order").read_text(encoding="utf-8").splitlines()
    pool, twin = tmp_path / "pool.jsonl", tmp_path / "twin.jsonl"
    again = json.dumps({**json.loads(lines[0]), "id": "again"})
    pool.write_text("\n".join([header, *lines[:2], again]) + "\n", encoding="utf-8")
    twin.write_bytes(pool.read_bytes())
    ids = [json.loads(line)["id"] for line in lines[:2]]
    assert main(["pool", "check", str(pool), str(twin), "--json"]) == 0
    first, second = json.loads(capsys.readouterr().out)
    assert _duplicates(first) == [{"kind": "duplicate", "instance": "again", "claim": f"the same as {ids[0]}"}]
    assert _duplicates(second) == [
        {"kind": "duplicate", "instance": name, "claim": f"the same as {of} of {pool}"}
        for name, of in ((ids[0], ids[0]), (ids[1], ids[1]), ("again", ids[0]))
    ]
    assert main(["pool", "check", str(pool), str(twin)]) == 0
    assert "note    duplicate: 3 of 3" in capsys.readouterr().out


def test_instances_that_ask_different_things_are_no_duplicates(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["pool", "check", str(bundled_sample("hidden_order")), "--json"]) == 0
    (report,) = json.loads(capsys.readouterr().out)
    assert report["notes"]  # it is ambiguous, which is another kind
    assert not _duplicates(report)


# --- Records of items of every benchmark: through JSON and back they are the item; other records are refused in a line


def _items(name: str, folder: Path) -> Sequence[Any]:
    """Two items of every suite, or of every bundled pool."""
    of = benchmark(name)
    if name == "replayscm":
        return [item for path in bundled_pools() for item in of.items.read_pool(path).items[:2]]
    path = folder / "pool.jsonl"
    write_drawn(of, path, list(of.suites.names), 5, 2)
    return of.items.read_pool(path).items


@pytest.fixture(scope="module", params=NAMES)
def given(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Sequence[Any]]:
    return request.param, _items(request.param, tmp_path_factory.mktemp("pool"))


def test_an_item_comes_back_from_its_record(given: tuple[str, Sequence[Any]]) -> None:
    name, items = given
    assert len(items) >= 8
    for item in items:
        assert benchmark(name).items.item_of_record(json.loads(json.dumps(benchmark(name).items.record(item)))) == item


def test_what_is_sealed_is_under_one_key_of_the_record(given: tuple[str, Sequence[Any]]) -> None:
    name, items = given
    assert {"id", "sealed"} <= benchmark(name).items.record(items[0]).keys()


def test_a_record_that_cannot_be_meant_is_one_line(given: tuple[str, Sequence[Any]]) -> None:
    name, items = given
    of, record = benchmark(name), benchmark(name).items.record(items[0])
    for wrong in (
        {},
        {**record, "sealed": 3},
        {**record, "id": 3},
        {**record, "no such field": 0},
        {**record, "sealed": {**record["sealed"], "no such field": 0}},
        {**record, "id": {1, 2}},
    ):
        with pytest.raises(PoolError) as refused:
            of.items.item_of_record(wrong)
        assert "\n" not in str(refused.value)


def test_messages_are_the_prompt(given: tuple[str, Sequence[Any]]) -> None:
    name, items = given
    for item in items:
        messages = benchmark(name).items.messages(item)
        assert "\n\n".join(message["content"] for message in messages) == benchmark(name).items.prompt(item)
        assert [message["role"] for message in messages] in (["user"], ["system", "user"])


def test_an_object_becomes_a_record_as_strictly_as_a_line() -> None:
    deep: dict[str, Any] = {}
    for _ in range(2_000):
        deep = {"id": deep}
    for wrong in (deep, {"id": "a", "results": [float("nan")]}, {"id": "\ud800"}):
        with pytest.raises(PoolError):
            convert_object(wrong, ProblemRecord)
