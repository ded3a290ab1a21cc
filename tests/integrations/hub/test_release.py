"""Releases as mlcroissant and pyarrow read them: no warning, every record, the canary in the file's metadata."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from calibrant.bench.suites.manifest import tree_digests
from calibrant.bench.suites.release import build_release
from tests.support.packages import needs
from tests.support.suites import SPECIFICATION, write_specification

needs("pyarrow", "mlcroissant")

import mlcroissant
from pyarrow import parquet

pytestmark = [  # of mlcroissant's own code
    pytest.mark.filterwarnings("ignore:ConjunctiveGraph is deprecated:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:The inplace keyword in DataFrame:Warning"),
]


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
