"""Ids that are suggested for one that a pool does not have: the closest, equally close ones in the pool's order."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import calibrant
from calibrant.bench.cli import main
from calibrant.bench.core.items import similar_ids, unknown_item
from calibrant.bench.core.registry import NAMES, benchmark, bundled_sample
from calibrant.dsl.item import Pool
from tests.support.commands import refused
from tests.support.replayscm.pool_texts import native_file, native_record


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
