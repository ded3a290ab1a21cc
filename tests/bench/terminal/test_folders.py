"""Folders that a command makes: what a killed process leaves goes with the next run, and nothing else does."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from calibrant.bench.terminal import making_folder

MAKER = """
import sys, time
from pathlib import Path
from calibrant.bench.terminal import making_folder
with making_folder(Path(sys.argv[1])) as (made, scratch):
    made.mkdir()
    scratch.mkdir()
    (scratch / "half").write_text("done")
    print("at work", flush=True)
    time.sleep(300)
"""


@contextmanager
def maker(out: Path) -> Iterator[subprocess.Popen[str]]:
    """Give a process that is making a folder; it is killed, as by kill -9, at the latest when the block ends."""
    line = [sys.executable, "-c", MAKER, str(out)]
    with subprocess.Popen(line, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "at work\n"
            yield process
        finally:
            process.kill()


def make(out: Path) -> None:
    with making_folder(out) as (made, _):
        made.mkdir()
        (made / "file").write_text("whole")


def test_the_next_run_removes_what_a_killed_one_left(tmp_path: Path) -> None:
    out = tmp_path / "release[1]"
    for _ in range(3):
        with maker(out) as process:
            process.kill()
    assert len(list(tmp_path.iterdir())) == 1  # that of the last; each start removes the one before
    make(out)
    assert list(tmp_path.iterdir()) == [out]
    assert (out / "file").read_text() == "whole"


def test_what_is_at_work_or_of_others_stays(tmp_path: Path) -> None:
    out = tmp_path / "release"
    others = [
        tmp_path / name for name in (".release.12345678", ".release.abcdefgh", ".release2.abcdefgh", ".release.a")
    ]
    for folder in others:
        (folder / "made").mkdir(parents=True)
        (folder / "made" / "theirs").touch()
    (others[0] / "calibrant.lock").touch()
    (others[0] / "notes.txt").touch()  # no program of ours puts it there
    link = tmp_path / ".release.linklink"
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "calibrant.lock").touch()
    link.symlink_to(tmp_path / "elsewhere")
    with maker(out), maker(tmp_path / "release-2") as killed:
        killed.kill()
        killed.wait()
        at_work = {path.name for path in tmp_path.iterdir()}
        make(out)
        assert {path.name for path in tmp_path.iterdir()} == at_work | {"release"}
        assert all((folder / "made" / "theirs").is_file() for folder in others)
    with maker(tmp_path / "release-2"):
        assert len(list(tmp_path.glob(".release-2.*"))) == 1
