"""Copies of items have checked maps: wrong ones are refused, and what is right of an item is right of its copies."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest
from msgspec.structs import replace

from calibrant.bench.core.registry import benchmark, benchmark_of, bundled_sample
from calibrant.bench.suites.board import share_consistent
from calibrant.bench.suites.rescoring import CellResult, ItemResult, PoolJudge
from calibrant.bench.variants.contract import VARIANTS, permuted
from calibrant.bench.variants.pool import VariantChecker, check_variants, read_maps, write_variants
from calibrant.dsl.errors import CalibrantError
from tests.support.commands import called

SAMPLES = {"blickets": 8, "causalab": 6, "causim": 8, "hidden_order": 12, "logic": 7}
"""Bundled pools, and the step at which items are taken."""


@pytest.fixture(scope="module", params=SAMPLES)
def pools(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Write a few items of a bundled pool, and copies of each kind."""
    folder = tmp_path_factory.mktemp(request.param)
    header, *items = bundled_sample(request.param).read_text(encoding="utf-8").splitlines(keepends=True)
    source, target = folder / "pool.jsonl", folder / "variants.jsonl"
    source.write_text("".join([header, *items[:: SAMPLES[request.param]]]), encoding="utf-8")
    kinds = benchmark_of(source).require(VARIANTS).kinds
    number, _ = write_variants(source, target, kinds, len(kinds), 3)
    assert number >= len(items[:: SAMPLES[request.param]])
    return source, target


def test_a_written_file_is_accepted_and_copies_differ_from_their_originals(pools: tuple[Path, Path]) -> None:
    source, target = pools
    assert list(check_variants(source, target)) == []
    of = benchmark_of(source)
    prompts = {item.id: of.items.prompt(item) for item in of.items.read_pool(source).items}
    maps = read_maps(target).copies
    for item in of.items.read_pool(target).items:
        if not of.is_interactive(item) or maps[item.id].kind not in (
            "rename",
            "equivalent",
        ):  # prompts show no evidence
            assert of.items.prompt(item) != prompts[maps[item.id].of], item.id


def test_the_page_states_the_kinds_of_each_benchmark() -> None:
    page = (Path(__file__).parents[3] / "docs" / "variants.md").read_text(encoding="utf-8")
    lines = [line for line in page.splitlines() if line.startswith(("| kind |", "| `"))]
    head, *rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]
    titles = {"ReplaySCM": "replayscm", "extended blickets": "blickets", "CausaLab": "causalab", "CauSim": "causim"}
    for place, title in enumerate(head[1:], 1):
        stated = [row[0].strip("`") for row in rows if row[place]]
        assert stated == list(benchmark(titles.get(title, "logic")).require(VARIANTS).kinds), title


def test_the_same_seed_gives_the_same_bytes(pools: tuple[Path, Path], tmp_path: Path) -> None:
    source, target = pools
    if benchmark_of(source).name == "replayscm":
        pytest.skip("the others take a tenth of the time")
    kinds = benchmark_of(source).require(VARIANTS).kinds
    for seed, same in ((3, True), (4, False)):
        write_variants(source, tmp_path / "again.jsonl", kinds, len(kinds), seed)
        assert (read_maps(tmp_path / "again.jsonl").copies == read_maps(target).copies) is same


def test_wrong_maps_and_wrong_copies_are_refused(pools: tuple[Path, Path]) -> None:
    """Other permutations, maps of other copies, names left out; a map that is right of symmetric items stays one."""
    source, target = pools
    of = benchmark_of(source)
    variable, checker = of.require(VARIANTS), VariantChecker(of)
    originals = {item.id: item for item in of.items.read_pool(source).items}
    copies: Any = {item.id: item for item in of.items.read_pool(target).items}
    refused = 0
    for name, stated in read_maps(target).copies.items():
        original, copy = originals[stated.of], copies[name]
        maps = [permuted(sorted(stated.names), Random(seed)) for seed in range(4)] if stated.names else []
        maps += [dict(list(stated.names.items())[1:]), {**stated.names, "new": "name"}, {"a": "b", "b": "b"}]
        wrong = [replace(stated, names=names) for names in maps if names != stated.names]
        others = [other for other in originals.values() if other.id != stated.of]
        problems = [checker.problem(original, copy, other) for other in wrong]
        problems += [checker.problem(other, copy, stated) for other in others]
        refused += sum(map(bool, problems))
        for other, problem in zip(wrong, problems, strict=False):
            if not problem:
                image = variable.normal_form(of.items.record(copy), stated.kind)
                mapped = variable.map_record(of.items.record(original), other)
                assert variable.normal_form(mapped, stated.kind) == image
    assert refused >= 13  # four pools: 50 and more


def test_exact_rows_of_questions_are_consistent(tmp_path: Path) -> None:
    source, target = tmp_path / "pool.jsonl", tmp_path / "variants.jsonl"
    header, *items = bundled_sample("causim").read_text(encoding="utf-8").splitlines(keepends=True)
    source.write_text("".join([header, *items[::6]]), encoding="utf-8")
    assert called("variants", source, "--copies", 4, "--out", target).returncode == 0
    for row in ("exact", "copy"):
        assert called("run", row, source, target, "--out", tmp_path / "runs", "--workers", 1).returncode == 0
    done = called("table", tmp_path / "runs", "--consistency", target, "--json")
    rows = {row["system"]: row for row in json.loads(done.stdout)}
    assert rows["exact"]["mean"] == rows["exact"]["all_equal"] == rows["exact"]["worst_copy"] == 1
    assert rows["copy"]["all_equal"] == 1
    assert rows["copy"]["mean"] < 1
    flips = {kind: (flip["lost"], flip["gained"]) for kind, flip in rows["copy"]["flips"].items()}
    assert flips == dict.fromkeys(("rename", "columns", "values", "equivalent"), (0, 0))
    assert "All equal" in called("table", tmp_path / "runs", "--consistency", target).stdout
    refusal = called("table", tmp_path / "runs", "--consistency", target, "--columns", "all").stderr
    assert "it has no effect on --consistency" in refusal


def test_boards_have_the_share_of_originals_whose_copies_score_alike(tmp_path: Path) -> None:
    source, target = bundled_sample("blickets"), tmp_path / "variants.jsonl"
    write_variants(source, target, ["rename"], 2, 1)
    judge = PoolJudge(target)
    rights = {name: float(name.startswith("easy") or name.endswith("~rename-2")) for name in judge.ids}
    items = tuple(ItemResult(public, "", rights[name], True, 1, (None,)) for name, public in judge.ids.items())
    number = sum(name.startswith("easy") for name in judge.ids) // 2
    assert share_consistent(target, CellResult(items)) == number / 24
    assert share_consistent(source, CellResult(items)) is None


def test_a_changed_file_is_refused(tmp_path: Path) -> None:
    source, target = bundled_sample("blickets"), tmp_path / "variants.jsonl"
    assert called("variants", source, "--kinds", "rename", "--copies", 1, "--out", target).returncode == 0
    header, *lines = target.read_text(encoding="utf-8").splitlines()
    stated = json.loads(header)
    names = next(iter(stated["metadata"]["variants"]["copies"].values()))["names"]
    values = list(names.values())
    names |= dict(zip(names, [*values[1:], values[0]], strict=True))
    target.write_text("\n".join([json.dumps(stated), *lines]) + "\n", encoding="utf-8")
    done = called("variants", source, "--check", target)
    assert (done.returncode, done.stdout.count("refused")) == (1, 1)
    with pytest.raises(CalibrantError, match="not a pool of variants"):
        read_maps(source)
    assert called("variants", source, "--kinds", "values", "--out", tmp_path / "x").returncode == 2
    assert called("variants", source).returncode == 2
