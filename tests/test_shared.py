"""Shared vectors that are empty fail the tests that read them."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from tests.support import shared
from tests.support.emptied import EMPTY, vector_tests, write_emptied
from tests.support.shared import digest_of, matching, shared_file, shared_records


@pytest.fixture
def emptied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a shared folder with a file of each kind, and its empty copy, which tests are pointed to."""
    full = tmp_path / "full" / "replayscm"
    (full / "data").mkdir(parents=True)
    for suffix in (*EMPTY, ".md"):
        content = b'{"kind": "a"}\n'
        (full / f"x{suffix}").write_bytes(gzip.compress(content) if suffix == ".gz" else content)
    (full / "data" / "y.jsonl").write_text("{}\n{}\n", encoding="utf-8")
    write_emptied(tmp_path / "full", tmp_path / "empty")
    monkeypatch.setenv("CALIBRANT_SHARED", str(tmp_path / "empty"))
    return tmp_path


@pytest.mark.parametrize("name", [*(f"x{suffix}" for suffix in EMPTY), "x.md", "data"])
def test_an_empty_file_fails_its_reader(name: str, emptied: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(pytest.fail.Exception, match="is empty: nothing would be compared"):
        shared_file(name)
    monkeypatch.setenv("CALIBRANT_SHARED", str(emptied / "full"))
    assert shared_file(name).exists()


def test_a_kind_without_records_fails_its_reader(emptied: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CALIBRANT_SHARED", str(emptied / "full"))
    assert list(shared_records("x.gz", kind="a")) == [{"kind": "a"}]
    with pytest.raises(pytest.fail.Exception, match=r"no shared record with .*kind.*b"):
        list(shared_records("x.jsonl", kind="b"))
    with pytest.raises(pytest.fail.Exception, match="nothing would be compared"):
        list(matching([]))


def test_a_file_that_is_cut_fails_its_reader_and_another_of_its_kind_passes(
    emptied: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = b"".join(b'{"kind": %d}\n' % number for number in range(40))
    digests = emptied / "shared_files.json"
    digests.write_text(json.dumps({f"replayscm/x{suffix}": digest_of(text) for suffix in (".jsonl", ".gz")}), "utf-8")
    monkeypatch.setattr(shared, "DIGESTS", digests)
    monkeypatch.setenv("CALIBRANT_SHARED", str(emptied / "full"))
    for suffix in (".jsonl", ".gz"):
        file = emptied / "full" / "replayscm" / f"x{suffix}"
        assert shared_file(file.name) == file  # of another beginning
        for records in (40, 20, 39):
            content = b"".join(text.splitlines(keepends=True)[:records])
            file.write_bytes(gzip.compress(content) if suffix == ".gz" else content)
            if records == 40:
                assert shared_file(file.name) == file
            else:
                with pytest.raises(pytest.fail.Exception, match=f"is cut or changed: {records} of 40 records"):
                    shared_file(file.name)
        longer = text + b'{"kind": 40}\n'
        file.write_bytes(gzip.compress(longer) if suffix == ".gz" else longer)
        assert shared_file(file.name) == file  # has more of its kind


def test_tests_are_found_by_the_readers_that_they_reach(tmp_path: Path) -> None:
    file = tmp_path / "test_x.py"
    file.write_text(
        "from tests.support.benchmarks.logic import model_of, vectors_of\n"
        "CASES = vectors_of('a')\n"
        "def helper(): return CASES\n"
        "def rows(): return helper()\n"
        "def test_by_fixture(rows): ...\n"
        "def test_none(): model_of([])\n"
        "class TestGroup:\n    def test_method(self): helper()\n",
        encoding="utf-8",
    )
    assert vector_tests(file) == ["TestGroup::test_method", "test_by_fixture"]
