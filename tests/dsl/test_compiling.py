"""Kernels are compiled by one process, and it says so."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from filelock import FileLock

from calibrant.bench.cli import EVERY, CompilingLines
from calibrant.dsl.kernel_cache import CompileLock
from tests.support.commands import CHECKOUT

ONE_KERNEL = """
import numpy as np
from calibrant.bench.cli import tell_compiling
from calibrant.solvers.replayscm._kernels_parents import next_combination
tell_compiling()
chosen = np.array([0, 1])
print(bool(next_combination(chosen, 2, 3)), chosen.tolist(), len(next_combination.signatures))
"""


def test_two_processes_compile_a_kernel_once(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    both = [
        subprocess.Popen(
            [sys.executable, "-c", ONE_KERNEL],
            cwd=CHECKOUT,
            env=os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    done = [process.communicate(timeout=200) for process in both]
    assert [printed for printed, _ in done] == ["True [0, 2] 1\n"] * 2
    assert sorted(said.count("compiling kernels: once") for _, said in done) == [0, 1]


def test_who_has_to_compile_waits_for_who_does(tmp_path: Path) -> None:
    other = FileLock(tmp_path / "compiling.lock")
    turn, waited = CompileLock(tmp_path), threading.Event()

    def compile_something() -> None:
        with turn, turn:
            turn.wait()
            waited.set()

    with other:
        thread = threading.Thread(target=compile_something, daemon=True)
        thread.start()
        assert not waited.wait(0.2)
    thread.join(20)
    assert waited.is_set()
    with FileLock(tmp_path / "compiling.lock", timeout=0):  # given back
        pass


def test_where_nothing_can_be_locked_nobody_waits(tmp_path: Path) -> None:
    with CompileLock(tmp_path / "missing" / "file") as turn:
        turn.wait()


def test_a_line_at_once_and_then_now_and_then(capsys: pytest.CaptureFixture[str]) -> None:
    times = iter([10.0, 11.0, 10.0 + EVERY, 11.0 + EVERY])
    lines = CompilingLines(lambda: next(times))
    for kernel in ("a", "b", "c", "d"):
        lines.say(kernel)
    printed = capsys.readouterr()
    assert printed.out == ""
    first, second = printed.err.splitlines()
    assert first.startswith("compiling kernels: once for each version")
    assert second == f"compiling kernels: c is number 3, after {EVERY:.0f} s"
