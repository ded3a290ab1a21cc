"""Systems without what POSIX alone has: tests/bench/windows.py takes away names and modules that Windows lacks."""

from __future__ import annotations

import ast
import json
import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from calibrant.bench.runs.records import folder_records
from calibrant.dsl.atomic_write import open_appending, open_no_follow, read_at
from calibrant.dsl.replayscm.pools.files import read_pool
from tests.support.commands import CHECKOUT

SMALL_SUITE = """
name = "one-pool"
version = "1.0"
title = "One pool"
summary = "Items for tests."
license = "MIT"
url = "https://example.org/one-pool"
creators = ["A. Author"]
date = 2026-01-02
master = "master.key"
formats = ["jsonl"]

[[pool]]
name = "questions"
benchmark = "causim"
seed = 6
strata = "chain"
per_stratum = 2
rows = ["exact"]

[statements]
judge = "None: answers are executed."
"""


def test_commands_need_no_name_that_posix_alone_has(tmp_path: Path) -> None:
    (tmp_path / "suite.toml").write_text(SMALL_SUITE, encoding="utf-8")
    (tmp_path / "master.key").write_text("ab" * 32, encoding="ascii")
    pool, answers = (CHECKOUT / "docs" / "examples" / name for name in ("switches.jsonl", "answers.jsonl"))
    stated = ["--system", "s", "--system-version", "1", "--submitter", "me", "--date", "2026-01-02"]
    lines = [
        ["pool", "check", pool],
        ["run", "exact", pool, "--out", "runs", "--workers", "2", "--budget", "200"],
        ["run", "copy-parent", pool, "--out", "runs", "--workers", "1"],  # sorts a file that it has open
        ["score", pool, answers, "--out", "scores.jsonl", "--workers", "1"],
        ["table", "runs", "scores.jsonl"],
        ["report", "runs", "scores.jsonl", "--out", "report.html"],
        ["release", "suite.toml", "--out", "suite", "--workers", "1"],
        ["submission", "suite", "suite/gold/rows/exact/questions.jsonl", *stated, "--out", "submissions/s"],
        ["board", "suite", "submissions", "--out", "site", "--workers", "1"],
    ]
    words = json.dumps(lines, default=str)
    command = [sys.executable, str(CHECKOUT / "tests" / "bench" / "windows.py"), words]
    done = subprocess.run(command, cwd=tmp_path, env=dict(os.environ), capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    records = folder_records(tmp_path / "runs")
    assert [record.protocol for record in records] == ["copy-parent", "exact"]
    assert "exact" in (tmp_path / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("module", "names"),
    [
        ("os", {"fork", "pread", "geteuid", "O_NOFOLLOW"}),
        ("signal", {"SIGKILL"}),
        ("multiprocessing.reduction", {"DupFd"}),
    ],
)
def test_the_missing_names_are_those_of_the_stubs(module: str, names: set[str]) -> None:
    script = f"import runpy; print(sorted(runpy.run_path('tests/bench/windows.py')['missing_names']({module!r})))"
    printed = subprocess.run(
        [sys.executable, "-c", script], cwd=CHECKOUT, capture_output=True, text=True, timeout=60, check=True
    )
    missing = set(ast.literal_eval(printed.stdout))
    assert names <= missing
    assert missing.isdisjoint({"open", "replace", "SIGTERM", "path", "kill", "getpid", "DupHandle"})


def test_bytes_are_read_at_a_place_without_moving_the_position(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As `os.pread` does, which one of the two systems lacks."""
    (tmp_path / "file").write_bytes(b"0123456789")
    for is_missing in (False, True):
        if is_missing:
            monkeypatch.delattr(os, "pread")
        descriptor = open_appending(tmp_path / "file")
        os.lseek(descriptor, 2, os.SEEK_SET)
        assert read_at(descriptor, 3, 5) == b"567"
        assert read_at(descriptor, 30, 8) == b"89"
        assert os.read(descriptor, 2) == b"23"
        os.close(descriptor)


def test_items_of_a_large_pool_are_sent_as_a_copy_where_no_descriptor_can_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    header, line = (CHECKOUT / "docs" / "examples" / "switches.jsonl").read_text(encoding="utf-8").splitlines()
    path = tmp_path / "pool.jsonl"
    lines = [header, *(json.dumps(json.loads(line) | {"id": f"a{number}"}) for number in range(3))]
    path.write_text("\n".join(lines), encoding="utf-8")
    monkeypatch.setattr("calibrant.dsl.records.MAX_CACHED_ITEMS", 1)
    monkeypatch.delattr("multiprocessing.reduction.DupFd")
    problems = read_pool(path).problems
    again = pickle.loads(pickle.dumps(problems))
    assert [problem.id for problem in again] == [problem.id for problem in problems] == ["a0", "a1", "a2"]
    assert again[2].task == problems[2].task


def test_a_submitted_file_is_never_read_through_a_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("a", encoding="utf-8")
    (tmp_path / "link").symlink_to("file")
    for has_flag in (True, False):
        if not has_flag:
            monkeypatch.delattr(os, "O_NOFOLLOW")
        with open_no_follow(tmp_path / "file") as file:
            assert file.read() == b"a"
        with pytest.raises(OSError, match="symbolic links"):
            open_no_follow(tmp_path / "link")
