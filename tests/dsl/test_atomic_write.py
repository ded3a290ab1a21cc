"""Files are complete or not there."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from calibrant.bench.terminal import refuse_existing
from calibrant.dsl.atomic_write import whole_file, write_atomically

needs_proc = pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="open files have no names here")


def test_a_file_takes_its_name_when_it_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("old", encoding="utf-8")
    with whole_file(path) as file:
        file.write(b"new")
        file.flush()
        assert path.read_text(encoding="utf-8") == "old"
    assert path.read_text(encoding="utf-8") == "new"
    assert path.stat().st_mode & 0o777 == 0o644
    assert [one.name for one in tmp_path.iterdir()] == ["a.txt"]


@pytest.mark.parametrize("stopped_by", [KeyboardInterrupt, ValueError])
def test_what_is_not_finished_leaves_nothing(tmp_path: Path, stopped_by: type[BaseException]) -> None:
    def write_half() -> None:
        with whole_file(tmp_path / "a.txt") as file:
            file.write(b"half")
            raise stopped_by

    with pytest.raises(stopped_by):
        write_half()
    assert list(tmp_path.iterdir()) == []


@needs_proc
@pytest.mark.parametrize("folder", ["/dev/fd", "/proc/self/fd"])
def test_an_open_file_is_appended_to_and_not_replaced(folder: str, tmp_path: Path) -> None:
    """As `--out /dev/stdout >> all.jsonl`; replaced would be the link of the system, for a user who may."""
    path = tmp_path / "all.jsonl"
    path.write_bytes(b"before\n")
    with path.open("ab") as stream:
        name = Path(folder) / str(stream.fileno())
        write_atomically(name, "after\n")
        refuse_existing([name], "--out", name)
    assert path.read_bytes() == b"before\nafter\n"


@needs_proc
def test_a_link_like_that_of_standard_output_stays_one(tmp_path: Path) -> None:
    path, link = tmp_path / "all.jsonl", tmp_path / "stdout"
    with path.open("wb") as stream:
        link.symlink_to(f"/proc/self/fd/{stream.fileno()}")
        write_atomically(link, "text\n")
    assert path.read_bytes() == b"text\n"
    assert link.is_symlink()


def test_a_pipe_is_written_to_and_stays_one(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text(encoding="utf-8")))
    reader.start()
    write_atomically(pipe, "é\n")
    reader.join(timeout=10)
    assert read == ["é\n"]
    assert pipe.is_fifo()


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError):
        write_atomically(tmp_path, "text")


def test_missing_folders_are_made_for_texts(tmp_path: Path) -> None:
    write_atomically(tmp_path / "missing" / "a.txt", "text")
    assert (tmp_path / "missing" / "a.txt").read_bytes() == b"text"
