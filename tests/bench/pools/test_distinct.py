"""Items of a test that repeat those of training are left out, by what is asked, and named when they are generated."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from calibrant.bench.cli import main
from calibrant.bench.core.benchmark import Benchmark
from calibrant.bench.core.registry import benchmarks
from calibrant.bench.pools.bundled import bundled_files, bundled_pool
from calibrant.bench.pools.parts import write_part
from tests.support.commands import refused


def _generated(path: Path, of: str, seed: int, strata: str, number: int) -> list[dict[str, object]]:
    line = ["generate", "--benchmark", of, "--seed", seed, "--strata", strata, "--per-stratum", number, "--out", path]
    assert main(list(map(str, line))) == 0
    return _items(path)


def _items(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()[1:]]


def _rule(record: dict[str, object]) -> str:
    """Return what a detector without noise is: the seed of its noise is never drawn."""
    assert isinstance(record["sealed"], dict)
    sealed = {name: value for name, value in record["sealed"].items() if name != "noise_seed"}
    return json.dumps([{**record, "sealed": sealed, "id": "", "labels": {}}], sort_keys=True)


def test_no_rule_is_left_that_occurs_before(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    train, test, new = (tmp_path / name for name in ("train.jsonl", "test.jsonl", "new.jsonl"))
    known = {_rule(record) for record in _generated(train, "blickets", 1, "easy-3", 12)}
    records = _generated(test, "blickets", 2, "easy-3,order-2-of-4", 12)
    told = capsys.readouterr().err
    assert "items ask what an earlier one asks" in told
    assert f"calibrant pool distinct {test}" in told
    assert main(["pool", "distinct", str(test), str(new), "--apart-from", str(train), "--json"]) == 0
    expected = []
    for record in records:
        if _rule(record) not in known:
            known.add(_rule(record))
            expected.append(record)
    assert _items(new) == expected
    written = json.loads(capsys.readouterr().out)
    assert written["items"] == len(expected) == 24 - len(written["left_out"])
    assert len(expected) < 24


def test_a_pool_that_only_repeats_is_refused_and_nothing_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    train, out = tmp_path / "train.jsonl", tmp_path / "out.jsonl"
    _generated(train, "causim", 1, "chain", 2)
    assert "ask what" not in capsys.readouterr().err
    assert "each of its 2 items repeats one" in refused(capsys, "pool", "distinct", train, out, "--apart-from", train)
    assert not out.exists()


def test_the_settings_of_a_problem_are_no_repeats_but_a_pool_of_itself_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is disclosed is part of a ReplaySCM question."""
    ordered, block = bundled_pool("ordered"), bundled_pool("block")
    out = tmp_path / "out.jsonl"
    assert main(["pool", "distinct", str(block), str(out), "--apart-from", str(ordered)]) == 0
    assert "; 0 left out" in capsys.readouterr().err
    assert "repeats one" in refused(capsys, "pool", "distinct", block, tmp_path / "none.jsonl", "--apart-from", block)


def test_items_of_two_files_repeat_each_other_whatever_their_ids(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An id of one letter is one object in both files."""
    train, out = tmp_path / "train.jsonl", tmp_path / "out.jsonl"
    (record,) = _generated(train, "causim", 1, "chain", 1)
    header = train.read_text(encoding="utf-8").splitlines()[0]
    train.write_text(f"{header}\n{json.dumps({**record, 'id': 'a'})}\n", encoding="utf-8")
    capsys.readouterr()
    assert "repeats one" in refused(capsys, "pool", "distinct", train, out, "--apart-from", train)


@pytest.mark.parametrize("of", benchmarks(), ids=lambda of: of.name)
def test_part_of_a_pool_is_a_pool(of: Benchmark[Any], tmp_path: Path) -> None:
    pool = of.items.read_pool(bundled_files()[of.name][0])
    write_part(of, pool, pool.items[1:3], tmp_path / "part.jsonl")
    part = of.items.read_pool(tmp_path / "part.jsonl")
    assert list(part.items) == list(pool.items[1:3])
    assert part.name == pool.name
