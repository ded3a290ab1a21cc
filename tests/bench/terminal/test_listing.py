"""`calibrant list`: items, and answers by class and system; large pools by their ids."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from calibrant.bench.core.registry import bundled_sample
from tests.bench.commands.lines import Files
from tests.support.commands import called, refused


def rows(*arguments: object) -> list[dict[str, object]]:
    done = called("list", *arguments, "--json")
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    return Files.made("causalab", tmp_path_factory.mktemp("listing"))


def test_classes_divide_the_answers_of_a_system(files: Files) -> None:
    everything = rows(files.pool, "--scores", files.run, "--system", "greedy")
    classes = [
        rows(files.pool, "--scores", files.run, "--class", kind) for kind in ("earned", "lucky", "short", "missed")
    ]
    assert [row["id"] for row in everything] == list(files.ids)
    assert sorted(str(row["id"]) for listed in classes for row in listed) == sorted(files.ids)
    for kind, listed in zip(("earned", "lucky", "short", "missed"), classes, strict=True):
        assert all(row["class"] == kind and row["right"] is (kind in ("earned", "lucky")) for row in listed)
    assert "system" not in everything[0]


def test_an_unknown_system_is_refused_with_those_there_are(files: Files, capsys: pytest.CaptureFixture[str]) -> None:
    line = ("list", files.pool, "--scores", files.run, "--system", "nobody")
    assert refused(capsys, *line) == "no answer of 'nobody'; there are greedy"


def large_pool(path: Path, number: int) -> Path:
    header, *items = bundled_sample("blickets").read_text("utf-8").splitlines()
    with path.open("w", encoding="utf-8") as file:
        file.write(f"{header}\n")
        for place in range(number):
            item = json.loads(items[place % len(items)])
            file.write(json.dumps({**item, "id": f"item-{place}"}) + "\n")
    return path


def test_a_hundred_thousand_ids_take_two_seconds(tmp_path: Path) -> None:
    """Of processor time: their items are not made. The first items have all that is listed of small pools."""
    pool = large_pool(tmp_path / "large.jsonl", 100_000)
    before = time.process_time()
    listed = called("list", pool, "--limit", 0, "--json").stdout
    assert time.process_time() - before < 2
    assert [json.loads(line)["id"] for line in listed.splitlines()] == [f"item-{place}" for place in range(100_000)]
    assert called("list", pool, "--limit", 0).stdout.splitlines()[1:] == [f"item-{k}" for k in range(100_000)]
    first = called("list", pool, "--limit", 3)
    assert first.stderr == "3 of 100,000 items; --limit 0 for all, --json for scripts\n"
    small = large_pool(tmp_path / "small.jsonl", 3)
    assert first.stdout == called("list", small).stdout


def test_a_broken_line_of_a_large_pool_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pool = large_pool(tmp_path / "large.jsonl", 2_500)
    with pool.open("a", encoding="utf-8") as file:
        file.write("{}\n")
    assert refused(capsys, "list", pool).startswith("large.jsonl: line 2502: ")
