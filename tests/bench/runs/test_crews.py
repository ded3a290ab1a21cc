"""Who does jobs on this machine."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from bench.runs.crews.versions import difference, versions
from dsl.replayscm.pools.files import write_pool
from tests.support.commands import CHECKOUT
from tests.support.processes import all_end, children, ended
from tests.support.stub_protocols import killable_script, small_pool

TOO_LONG = "600"  # seconds that an answer takes; nothing here waits for it


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a process ends with its parent once its job lets it")
def test_processes_end_with_the_one_that_started_them_even_if_it_is_killed(tmp_path: Path) -> None:
    write_pool(small_pool(["good", "good"]), tmp_path / "p.jsonl")
    line = [sys.executable, killable_script(tmp_path), tmp_path / "p.jsonl", tmp_path / "out", "2", TOO_LONG]
    driver = subprocess.Popen(list(map(str, line)), cwd=CHECKOUT, env={"PYTHONPATH": str(CHECKOUT)})
    try:
        while len(started := children(driver.pid)) < 3:  # two workers and what tracks their resources
            assert driver.poll() is None
            time.sleep(0.05)
        assert not any(map(ended, started))
    finally:
        driver.kill()
        driver.wait()
    assert all_end(started, 60.0)


def test_versions_are_compared_by_name() -> None:
    ours = versions()
    assert difference(ours, dict(ours)) == ""
    assert ours["Python"] == f"{sys.version_info.major}.{sys.version_info.minor}"
    assert difference(ours, {**ours, "numpy": "0.1"}) == f"numpy {ours['numpy']} here, 0.1 there"
    assert difference(ours, {**ours, "new": "1"}) == "new absent here, 1 there"
    fewer = {name: version for name, version in ours.items() if name != "numba"}
    assert difference(ours, fewer) == f"numba {ours['numba']} here, absent there"
