"""Ids that are suggested for one that a pool does not have: the closest, equally close ones in the pool's order."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

import calibrant
from calibrant.bench.cli import main
from calibrant.bench.core.items import close_ids
from calibrant.bench.core.registry import NAMES, benchmark
from calibrant.bench.pools.bundled import bundled_sample
from calibrant.dsl.item import Pool
from tests.support.commands import refused
from tests.support.replayscm.pool_texts import native_file, native_record


def test_equally_close_ids_come_in_the_order_of_the_pool() -> None:
    ids = [f"easy-3-7-{place}" for place in range(4)]
    assert close_ids("easy-3-7-9", ids) == ids[:3]
    assert close_ids("easy-3-7-30", ids)[0] == "easy-3-7-0"
    assert close_ids("easy-3-7-", ["other", *ids], 4) == ids
    assert close_ids("zzz", ids) == ids[:3]
    assert close_ids("anything", []) == []


@pytest.mark.parametrize("of", NAMES)
def test_show_suggests_the_first_of_equally_close_ids(
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
    assert first["notes"] == [{"kind": "duplicate", "instance": "again", "claim": f"the same as {ids[0]}"}]
    assert second["notes"] == [
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
    assert "notes" not in report
