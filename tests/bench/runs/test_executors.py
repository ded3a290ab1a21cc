"""Executors, their batches, and values that stay in a file."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import calibrant.dsl.records
from calibrant.bench.runs.executors import FIRST_BATCH_JOBS, MAX_BATCH_JOBS, Batcher, difference, versions
from calibrant.bench.runs.spill_file import SpillBuffer, StoredLines
from calibrant.dsl.errors import CalibrantError
from calibrant.dsl.replayscm.pools.files import write_pool
from tests.support.commands import CHECKOUT
from tests.support.processes import all_end, blocks, children, command, ended
from tests.support.stub_protocols import killable_script, small_pool

# --- Who does jobs on this machine ------------------------------------------------------------------------------------
TOO_LONG = "600"  # seconds that an answer takes; nothing here waits for it


LINUX = pytest.mark.skipif(sys.platform != "linux", reason="processes are looked at in /proc")


@contextmanager
def busy_run(folder: Path) -> Iterator[list[int]]:
    """Yield the processes of a run once its two workers and their resource tracker are there; kill it in the end."""
    write_pool(small_pool(["good", "good"]), folder / "p.jsonl")
    line = [sys.executable, killable_script(folder), folder / "p.jsonl", folder / "out", "2", TOO_LONG]
    driver = subprocess.Popen(list(map(str, line)), cwd=CHECKOUT, env={"PYTHONPATH": str(CHECKOUT)})
    try:
        while len(started := children(driver.pid)) < 3 or not all("multiprocessing" in command(pid) for pid in started):
            assert driver.poll() is None
            time.sleep(0.01)
        yield started
    finally:
        driver.kill()
        driver.wait()


@LINUX
def test_processes_are_deaf_to_control_c_from_the_start_and_end_with_the_one_that_started_them(tmp_path: Path) -> None:
    """Whatever blocks a signal when its program is loaded has never received it.

    The process that started them may be killed, which it cannot tell them.
    """
    with busy_run(tmp_path) as started:
        workers = [pid for pid in started if "spawn_main" in command(pid)]
        assert [blocks(pid, signal.SIGINT) for pid in workers] == [True, True]
        assert not any(map(ended, started))
    assert all_end(started, 60.0)


def test_versions_are_compared_by_name() -> None:
    ours = versions()
    assert difference(ours, dict(ours)) == ""
    assert ours["Python"] == f"{sys.version_info.major}.{sys.version_info.minor}"
    assert difference(ours, {**ours, "numpy": "0.1"}) == f"numpy {ours['numpy']} here, 0.1 there"
    assert difference(ours, {**ours, "new": "1"}) == "new absent here, 1 there"
    fewer = {name: version for name, version in ours.items() if name != "numba"}
    assert difference(ours, fewer) == f"numba {ours['numba']} here, absent there"


# --- How many jobs are handed to a worker at a time -------------------------------------------------------------------


def handed_out(number: int, slots: int, fit: int) -> tuple[list[list[int]], list[int]]:
    """Every batch in turn, and the jobs in the order in which they are done: of a batch, so many fit into its time."""
    batches, taken, order = Batcher({job: str(job) for job in range(number)}), [], []
    while batches:
        (batch,) = batches.next(slots, 2 * slots - 1) or batches.next(slots, slots - 1)
        keys = list(batch)
        assert keys
        assert batch == {job: str(job) for job in keys}
        taken.append(keys)
        done = min(fit, len(keys))
        order += keys[:done]
        batches.requeue_rest(keys, done, early=len(keys) < fit)
    return taken, order


def test_every_job_is_done_once_and_in_order_whatever_fits() -> None:
    for number in (1, 2, 5, 20, 321):
        for slots in (1, 2, 7):
            for fit in (1, 3, 10, 1000):
                assert handed_out(number, slots, fit)[1] == list(range(number))


def test_long_jobs_go_one_by_one_after_the_first_shares() -> None:
    taken, _ = handed_out(20, 2, 1)
    assert [len(batch) for batch in taken] == [7] + [1] * 19  # 7: one and a half batches for each of two slots


def test_short_jobs_go_in_few_messages_and_the_last_ones_in_small_ones() -> None:
    sizes = [len(batch) for batch in handed_out(1000, 2, 1000)[0]]
    assert max(sizes) == MAX_BATCH_JOBS
    assert len(sizes) < 40
    assert sizes[-1] <= 8
    assert sizes[:3] == [FIRST_BATCH_JOBS, 2 * FIRST_BATCH_JOBS, 4 * FIRST_BATCH_JOBS]


def test_a_worker_that_is_handed_too_many_says_how_many_fit() -> None:
    assert FIRST_BATCH_JOBS > 6
    assert [len(batch) for batch in handed_out(200, 2, 6)[0]][:5] == [8, 6, 6, 6, 6]


def test_no_more_shares_than_there_is_room_for() -> None:
    batches = Batcher({job: job for job in range(20)})
    assert batches.next(0, 0) == batches.next(2, 4) == []
    assert [list(batch) for batch in batches.next(2, 0)] == [[0, 1, 2, 3, 4, 5, 6], [7, 8, 9, 10, 11]]
    assert [list(batch) for batch in batches.next(2, 3)] == [[12, 13, 14]]


def test_the_last_jobs_wait_for_a_slot_that_has_nothing_to_do() -> None:
    batches = Batcher({job: job for job in range(20)})
    while batches.next(3, 3):
        pass
    assert batches.next(3, 2) == [{17: 17}]
    assert batches.next(3, 1) == [{18: 18}, {19: 19}]
    assert not batches


def test_jobs_under_which_workers_died_are_tried_again_alone_and_last() -> None:
    batches = Batcher({job: job for job in range(9)})
    (first,), (second,) = batches.next(1, 0), batches.next(1, 1)
    assert batches.suspect_jobs(list(first)) == []
    assert batches.suspect_jobs(list(second)) == []
    assert batches.next(1, 0) == [{8: 8}]
    assert batches.suspect_jobs([8]) == []
    assert batches.next(1, 1) == []
    for job in range(9):
        assert batches
        assert batches.next(1, 0) == [{job: job}]
        if job == 5:
            assert batches.suspect_jobs([job]) == [job]
        else:
            batches.requeue_rest([job], 1, early=True)
    assert not batches


# --- Values and lines that stay in files: in order, as often as asked for, and refused where the file was cut off -----


@pytest.mark.parametrize("kept", [1, 2000])
def test_values_come_in_the_order_of_their_places(kept: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibrant.dsl.records, "MAX_CACHED_ITEMS", kept)
    with SpillBuffer[tuple[str, ...]]() as aside:
        for place in [(1, 0), (0, 10), (0, 9)]:
            aside.add(place, (str(place),))
        values = aside.values()
    expected = [("(0, 9)",), ("(0, 10)",), ("(1, 0)",)]
    assert list(values) == list(values) == expected
    assert list(values[1:]) == expected[1:]
    assert values[-1] == expected[-1]


def test_a_file_that_is_cut_off_is_refused_and_one_that_is_replaced_is_not(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_bytes(b"first\nsecond\n")
    with path.open("rb") as file:
        lines = StoredLines(file.fileno(), [(6, 6), (0, 5)])
    (tmp_path / "other").write_bytes(b"else")
    path.rename(tmp_path / "moved")
    (tmp_path / "other").rename(path)
    assert [lines.line(0), lines.line(1)] == [b"second", b"first"]
    os.truncate(tmp_path / "moved", 8)
    assert lines.line(1) == b"first"
    with pytest.raises(CalibrantError, match="cut off while it was read"):
        lines.line(0)
