"""Who does jobs on this machine."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from calibrant.bench.runs.executors.worker import difference, versions
from calibrant.dsl.replayscm.pools.files import write_pool
from tests.support.commands import CHECKOUT
from tests.support.processes import all_end, blocks, children, command, ended
from tests.support.stub_protocols import killable_script, small_pool

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
