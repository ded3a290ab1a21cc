"""Exports and releases as pyarrow, datasets and mlcroissant read them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from calibrant.bench.pools.generated import write_drawn
from calibrant.bench.suites.manifest import tree_digests
from calibrant.bench.suites.release import build_release
from tests.support.packages import needs
from tests.support.suites import SPECIFICATION, write_specification

needs("pyarrow", "datasets", "mlcroissant")
needs("pyarrow", "mlcroissant")

import datasets
import mlcroissant
import pyarrow.parquet
from pyarrow import parquet

from calibrant.bench.cli import main
from calibrant.bench.core.benchmark import PublicIds
from calibrant.bench.core.registry import NAMES, benchmark, benchmark_of, bundled_pools, bundled_sample
from calibrant.bench.hub.card import COLUMNS
from calibrant.bench.hub.export import exported_items
from calibrant.dsl.errors import CalibrantError
from calibrant.rewards import shaped, verdict
from tests.support.commands import refused

# --- Exports written with pyarrow, and read by what users read them with: datasets and mlcroissant --------------------
pytestmark = [  # of mlcroissant's own code
    pytest.mark.filterwarnings("ignore:ConjunctiveGraph is deprecated:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:The inplace keyword in DataFrame:Warning"),
]
PARTS = ("questions", "gold")
SEALED = {column.name for column in COLUMNS if column.sealed}


@pytest.fixture(scope="module")
def pools(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Of every benchmark, of every disclosure, and of episodes with noise and hidden variables."""
    folder = tmp_path_factory.mktemp("pools")
    for name in NAMES[1:]:
        bench = benchmark(name)
        write_drawn(bench, folder / f"{name}.jsonl", bench.suites.names, 5, 1)
    return [*bundled_pools(), bundled_sample("replayscm_episodes"), *sorted(folder.glob("*.jsonl"))]


@pytest.fixture(scope="module")
def exported(pools: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("exports") / "all"
    assert main(["export", *map(str, pools), "--out", str(out), "--license", "cc-by-4.0"]) == 0
    return out


def test_items_come_back_equal(pools: list[Path], exported: Path) -> None:
    read = exported_items(exported / "gold" / "gold.parquet")
    assert list(read) == [item for path in pools for item in benchmark_of(path).items.read_pool(path).items]


def test_the_public_part_has_no_sealed_column(exported: Path) -> None:
    columns = {part: set(pyarrow.parquet.read_schema(exported / part / f"{part}.parquet").names) for part in PARTS}
    assert columns["questions"] == {column.name for column in COLUMNS} - SEALED
    assert columns["gold"] >= SEALED


@pytest.mark.parametrize("part", PARTS)
def test_datasets_loads_a_part(part: str, exported: Path, tmp_path: Path, pools: list[Path]) -> None:
    rows = datasets.load_dataset(str(exported / part), split="test", cache_dir=str(tmp_path))
    read = [
        (PublicIds.of_pool(path, items), items)
        for path in pools
        for items in [benchmark_of(path).items.read_pool(path).items]
    ]
    ids = [public.public(item.id) for public, items in read for item in items]
    assert rows["id"] == (ids if part == "gold" else sorted(ids))
    assert ("record" in rows.column_names) is (part == "gold")


def test_the_whole_folder_loads_with_questions_and_gold_apart(exported: Path, tmp_path: Path) -> None:
    loaded = [
        datasets.load_dataset(str(exported), *name, cache_dir=str(tmp_path)) for name in ((), PARTS[:1], PARTS[1:])
    ]
    by_default, questions, gold = (splits["test"] for splits in loaded)
    assert [list(splits) for splits in loaded] == [["test"]] * 3
    assert by_default["id"] == questions["id"] == sorted(gold["id"])
    assert SEALED.isdisjoint(by_default.column_names)
    assert set(gold.column_names) >= SEALED


def test_the_gold_column_is_what_rewards_take(exported: Path, tmp_path: Path) -> None:
    rows = datasets.load_dataset(str(exported / "gold"), split="test", cache_dir=str(tmp_path))
    batch = rows.filter(lambda row: row["answer"] != "")[:]
    columns = {name: batch[name] for name in batch if name != "prompt"}
    assert set(batch["benchmark"]) == set(NAMES)
    assert set(verdict(completions=batch["answer"], **columns)) == {1.0}
    assert set(shaped(completions=[""] * len(batch["id"]), **columns)) == {0.0}


@pytest.mark.parametrize("part", PARTS)
def test_croissant_is_valid_and_loads_a_record(part: str, exported: Path) -> None:
    """Validation alone misses a wrong checksum and a wrong column; loading does not."""
    dataset = mlcroissant.Dataset(jsonld=str(exported / part / "croissant.json"))
    assert not dataset.metadata.ctx.issues.errors
    first = next(iter(dataset.records("items")))
    row = pyarrow.parquet.read_table(exported / part / f"{part}.parquet").slice(0, 1).to_pylist()[0]
    read = {name.removeprefix("items/"): value for name, value in first.items()}
    assert {name: value.decode() if isinstance(value, bytes) else value for name, value in read.items()} == row


def test_croissant_refuses_another_file(exported: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(exported / "questions", tmp_path / "copy")
    shutil.copy(exported / "gold" / "gold.parquet", copy / "questions.parquet")
    with pytest.raises(mlcroissant.GenerationError, match=r"Download\(questions\.parquet\)"):
        next(iter(mlcroissant.Dataset(jsonld=str(copy / "croissant.json")).records("items")))


def test_the_same_pools_give_the_same_bytes(pools: list[Path], exported: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()  # an empty folder is taken
    assert main(["export", *map(str, pools), "--out", str(tmp_path / "empty"), "--license", "cc-by-4.0"]) == 0
    files = [path.relative_to(exported) for path in sorted(exported.rglob("*")) if path.is_file()]
    assert len(files) == 7
    assert all((tmp_path / "empty" / file).read_bytes() == (exported / file).read_bytes() for file in files)
    assert [path.name for path in tmp_path.iterdir()] == ["empty"]


def test_what_fails_leaves_nothing_behind(
    pools: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(*_: object) -> None:
        raise CalibrantError("not the same")

    monkeypatch.setattr("calibrant.bench.hub.export._require_same", fails)
    assert refused(capsys, "export", str(pools[0]), "--out", str(tmp_path / "a" / "out")).endswith("not the same")
    assert not list(tmp_path.iterdir())


def test_files_that_are_no_gold(exported: Path, tmp_path: Path) -> None:
    with pytest.raises(
        CalibrantError, match=r"questions\.parquet: row 1: record: none; only the part with gold has it"
    ):
        next(exported_items(exported / "questions" / "questions.parquet"))
    (tmp_path / "no.parquet").write_text("no")
    with pytest.raises(CalibrantError, match=r"no\.parquet: not a Parquet file"):
        next(exported_items(tmp_path / "no.parquet"))


def test_cards_name_the_file_that_is_beside_them(exported: Path) -> None:
    for part in PARTS:
        metadata = json.loads((exported / part / "croissant.json").read_text())
        assert metadata["distribution"][0]["contentUrl"] == f"{part}.parquet"
        assert f"path: {part}.parquet" in (exported / part / "README.md").read_text()


def test_an_item_stands_in_one_row(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Also if the pool is given twice under two names, where its public ids differ."""
    pool = bundled_sample("blickets")
    copy = tmp_path / "copy.jsonl"
    copy.write_text(pool.read_text("utf-8").replace('"name":"', '"name":"copy_', 1), "utf-8")
    for second in (pool, copy):
        assert "leaves repeats out" in refused(capsys, "export", pool, second, "--out", tmp_path / "data")
    assert [path.name for path in tmp_path.iterdir()] == ["copy.jsonl"]


# --- Releases as mlcroissant and pyarrow read them: no warning, every record, the canary in the file's metadata -------
@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("release")
    text = SPECIFICATION.replace('formats = ["jsonl"]\n', "")
    build_release(write_specification(folder / "specification", text), folder / "suite")
    return folder / "suite"


def test_metadata_have_no_warning_and_records_can_be_loaded(suite: Path) -> None:
    dataset: Any = mlcroissant.Dataset(str(suite / "public" / "croissant.json"))
    assert dataset.metadata.ctx.issues.errors == set()
    assert dataset.metadata.ctx.issues.warnings == set()
    for pool in ("detectors", "questions"):
        lines = (suite / "public" / pool / "items.jsonl").read_text(encoding="utf-8").splitlines()
        loaded = [record[f"{pool}/id"].decode() for record in dataset.records(pool)]
        assert loaded == [json.loads(line)["id"] for line in lines]


def test_files_have_the_canary_and_gold_stays_apart(suite: Path) -> None:
    canary = json.loads((suite / "public" / "suite.json").read_text(encoding="utf-8"))["canary"]
    for file in suite.rglob("*.parquet"):
        assert parquet.read_schema(file).metadata[b"canary"].decode() == canary
    public = parquet.read_table(suite / "public" / "detectors" / "items.parquet")
    assert public.column_names == ["id", "benchmark", "system", "prompt", "digest", "canary"]
    assert "record" in parquet.read_schema(suite / "gold" / "detectors" / "gold.parquet").names


def test_a_second_build_has_the_same_bytes(suite: Path, tmp_path: Path) -> None:
    text = (suite / "gold" / "suite.toml").read_text(encoding="utf-8")
    build_release(write_specification(tmp_path, text), tmp_path / "again")
    assert tree_digests(tmp_path / "again") == tree_digests(suite)
