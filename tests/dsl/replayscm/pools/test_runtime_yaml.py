"""The official runtime YAML as we write it: read back it is the same, and it says what official files say."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrant.bench.cli import main
from calibrant.bench.core.registry import bundled_pools
from calibrant.dsl.errors import PoolError
from calibrant.dsl.replayscm.item import ModelResult, Pool, Problem
from calibrant.dsl.replayscm.pools.files import read_pool, write_pool
from calibrant.dsl.replayscm.pools.runtime_yaml import write_official
from tests.support.commands import refused
from tests.support.effort import examples
from tests.support.replayscm.records import POOLS, official_records, read_records
from tests.support.replayscm.strategies import problems
from tests.support.shared import shared_file

T1 = [f"pool_dev_t1_{name}.runtime.yaml" for name in ("ordered", "block", "hidden_order", "hidden_roots")]


@given(st.lists(problems(), min_size=1, max_size=3), st.dictionaries(st.text("ab\n\u00e9"), st.text("7x: '\n")))
@settings(deadline=None, max_examples=examples(60))
def test_what_is_written_is_read(
    tmp_path_factory: pytest.TempPathFactory, drawn: list[Problem], labels: dict[str, str]
) -> None:
    named = [
        Problem(f"I{i}", p.task, replace(p.sealed, labels={**p.sealed.labels, **labels})) for i, p in enumerate(drawn)
    ]
    path = tmp_path_factory.mktemp("pool") / "pool.yaml"
    write_official(Pool("drawn", tuple(named)), path)
    assert read_pool(path).problems == tuple(named)


@pytest.mark.parametrize("name", [*T1, POOLS["Alt-Ordered"]])
def test_official_pools_come_back_equal_through_both_formats(name: str, tmp_path: Path) -> None:
    official = shared_file(name)
    native, again = tmp_path / "native.jsonl", tmp_path / "again.yml"
    assert main(["pool", "convert", str(official), str(native)]) == 0
    assert main(["pool", "convert", str(native), str(again)]) == 0
    before, after = read_pool(official), read_pool(again)
    assert after.problems == before.problems
    assert [p.results() for p in after.problems] == [p.results() for p in before.problems]
    assert after.metadata == before.metadata


@pytest.mark.parametrize("setting", ["Ordered", "Block", "Hidden-order", "Hidden-roots"])
def test_records_of_the_development_pools_come_back_equal(setting: str, tmp_path: Path) -> None:
    before = read_records(official_records(setting, 3), tmp_path)
    write_official(before, tmp_path / "again.yaml")
    assert read_pool(tmp_path / "again.yaml").problems == before.problems


def shared_fields(ours: Any, official: Any, where: str = "") -> Iterator[str]:
    """Fields of ours that official records have too and fill otherwise; worlds by their names."""
    if isinstance(ours, dict) and isinstance(official, dict):
        for key in sorted(ours.keys() & official.keys()):
            yield from shared_fields(ours[key], official[key], f"{where}.{key}")
    elif where.endswith(".worlds"):
        named = [{world["worldId"]: world for world in listed} for listed in (ours, official)]
        assert named[0].keys() == named[1].keys()
        yield from shared_fields(named[0], named[1], where)
    elif where.endswith(".topologicalLayers"):
        yield from shared_fields([sorted(layer) for layer in ours], [sorted(layer) for layer in official])
    elif ours != official:
        yield f"{where}: {ours!r} for {official!r}"


NOT_COMPARED = (  # drawn by chance; said in one of two places; without the worlds that were added afterwards
    ".promptVariableOrder:",
    ".pairedSourceInstanceId:",
    ".difficulty:",
    ".worldSplits.train:",
)


@pytest.mark.parametrize("setting", POOLS)
def test_every_field_that_official_records_have_too_says_the_same(setting: str, tmp_path: Path) -> None:
    records = official_records(setting, 2)
    write_official(read_records(records, tmp_path), tmp_path / "again.yaml")
    written = yaml.load((tmp_path / "again.yaml").read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)["problems"]
    told = [line for ours, official in zip(written, records, strict=True) for line in shared_fields(ours, official)]
    assert [line for line in told if not any(name in line for name in NOT_COMPARED)] == []


def test_hardened_generated_and_bundled_pools_go_back_to_the_official_form(tmp_path: Path) -> None:
    source, hard, official = bundled_pools()[2], tmp_path / "hard.jsonl", tmp_path / "hard.yaml"
    lines = source.read_text(encoding="utf-8").splitlines(keepends=True)
    (tmp_path / "few.jsonl").write_text("".join(lines[:3]), encoding="utf-8")
    assert main(["harden", str(tmp_path / "few.jsonl"), "--out", str(hard), "--seed", "1", "--workers", "1"]) in (0, 1)
    assert main(["pool", "convert", str(hard), str(official)]) == 0
    assert read_pool(official).problems == read_pool(hard).problems
    assert main(["pool", "check", str(official)]) == 0
    for pool in bundled_pools():
        converted = tmp_path / f"{pool.stem}.yaml"
        assert main(["pool", "convert", str(pool), str(converted)]) == 0
        assert read_pool(converted).problems == read_pool(pool).problems


def test_the_same_pool_gives_the_same_bytes_and_an_input_is_not_overwritten(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pool = bundled_pools()[0]
    for name in ("a.yaml", "b.yaml"):
        assert main(["pool", "convert", str(pool), str(tmp_path / name)]) == 0
    assert (tmp_path / "a.yaml").read_bytes() == (tmp_path / "b.yaml").read_bytes()
    capsys.readouterr()
    assert "is the input" in refused(capsys, "pool", "convert", tmp_path / "a.yaml", tmp_path / "a.yaml")


def test_several_results_of_one_model_have_no_place(tmp_path: Path) -> None:
    problem = read_pool(bundled_pools()[0]).problems[0]
    twice = Problem(problem.id, problem.task, problem.sealed, lambda: (ModelResult("m", "", None, {}),) * 2)
    with pytest.raises(PoolError, match="several results of one model"):
        write_official(Pool("p", (twice,)), tmp_path / "p.yaml")
    assert list(tmp_path.iterdir()) == []


def test_results_keep_texts_that_yaml_could_take_for_something_else(tmp_path: Path) -> None:
    problem = read_pool(bundled_pools()[0]).problems[0]
    texts = ["0110", "null", "a\n- b: *c\n\nmodelResults:\n", "\u2028\x85\x07", "  x", "{", "é😀", ""]
    said = {"valid": False}
    results = tuple(ModelResult(f"m{i}", text, {"t": text}, {"valid": 1}, said) for i, text in enumerate(texts))
    path = tmp_path / "p.yaml"
    write_official(Pool("p", (Problem(problem.id, problem.task, problem.sealed, lambda: results),)), path)
    (again,) = read_pool(path).problems
    assert again.results() == results
    write_pool(read_pool(path), tmp_path / "p.jsonl")
    assert read_pool(tmp_path / "p.jsonl").problems[0].results() == results
