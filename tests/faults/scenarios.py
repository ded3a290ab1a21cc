"""Faults of a cluster: a scheduler and workers on the loopback interface, of which one is killed in a run."""

from __future__ import annotations

import hashlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

import msgspec

from calibrant.bench.runs.cluster import connect, disconnect
from calibrant.bench.runs.executors import end_with_starting_thread
from calibrant.bench.runs.records import FILE_NAME
from calibrant.dsl.errors import CalibrantError, MissingExtraError
from calibrant.dsl.replayscm.pools.files import read_pool
from tests.faults.paced import mark

# --- A dask.distributed cluster on the loopback interface: a scheduler and workers in processes that can be killed ----
UNOBSERVED = {  # else all of them look at themselves all the time: 2 % of a core each, whether there is work or not
    "DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "False",
    "DASK_DISTRIBUTED__ADMIN__TICK__INTERVAL": "1s",
    "DASK_DISTRIBUTED__ADMIN__SYSTEM_MONITOR__INTERVAL": "10s",
    "DASK_DISTRIBUTED__WORKER__MEMORY__MONITOR_INTERVAL": "10s",
}
STARTING = 120.0  # seconds within which the workers have to be there, on a machine that has other things to do


class Loopback:
    """A scheduler, and nodes of one nanny and one worker each. Leaving the context kills all of it."""

    def __init__(self, folder: Path, nodes: int, environment: dict[str, str] | None = None) -> None:
        """Start a scheduler and workers.

        folder: of their logs; environment: variables of the workers
        """
        self._folder = folder
        self._environment = UNOBSERVED | (environment or {})
        self._port = _free_port()
        self.address = f"tcp://127.0.0.1:{self._port}"
        self.scheduler = self._started("scheduler", "--host", "127.0.0.1", "--port", str(self._port))
        self.nodes = [self._node(number) for number in range(nodes)]

    def __enter__(self) -> Loopback:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        disconnect(self.address)
        for process in (*self.nodes, self.scheduler):
            kill_group(process)

    def wait(self) -> None:
        """Until the scheduler answers and every node has joined."""
        deadline = time.monotonic() + STARTING
        while self._num_joined() < len(self.nodes):
            if time.monotonic() > deadline:
                raise TimeoutError(f"{len(self.nodes)} workers have not joined within {STARTING:.0f} seconds")
            time.sleep(0.1)

    def _num_joined(self) -> int:
        """-1 while there is no scheduler yet."""
        try:
            return len(connect(self.address).client.nthreads())
        except MissingExtraError:
            raise
        except CalibrantError:
            return -1

    def worker_pids(self) -> list[int]:
        """Return the processes that the nannies started."""
        return sorted(connect(self.address).client.run(os.getpid).values())

    def restart_scheduler(self) -> None:
        """Start a scheduler in the place of one that was killed, with new workers."""
        for process in (*self.nodes, self.scheduler):
            kill_group(process)
        self.scheduler = self._started("scheduler", "--host", "127.0.0.1", "--port", str(self._port))
        self.nodes = [self._node(number) for number in range(len(self.nodes))]

    def _node(self, number: int) -> subprocess.Popen[bytes]:
        scratch = str(self._folder / f"node{number}")
        return self._started("worker", self.address, "--nthreads", "1", "--local-directory", scratch)

    def _started(self, what: str, *options: str) -> subprocess.Popen[bytes]:
        with (self._folder / f"{what}.log").open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "dask", what, *options, "--no-dashboard"],
                env=os.environ | self._environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=end_with_starting_thread,  # it ends with this process, even if that is killed
            )


def kill_group(process: subprocess.Popen[bytes]) -> None:
    """Kill a process and all that it started, as the loss of a machine does."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


# --- One run of a command on a cluster of which something is killed when a third of the work is done ------------------
ROW = f"{Path(__file__).with_name('paced.py')}:Paced"
NODES = 2


class Fault(NamedTuple):
    """A fault.

    what: killed; kill: with the command at hand; dies: the first instance kills the process that answers it
    """

    what: str
    kill: Callable[[Loopback, subprocess.Popen[bytes]], None] | None
    dies: bool = False


def _worker(cluster: Loopback, command: subprocess.Popen[bytes]) -> None:
    os.kill(cluster.worker_pids()[0], signal.SIGKILL)


def _node(cluster: Loopback, command: subprocess.Popen[bytes]) -> None:
    kill_group(cluster.nodes[0])


def _scheduler(cluster: Loopback, command: subprocess.Popen[bytes]) -> None:
    cluster.scheduler.kill()


def _driver(cluster: Loopback, command: subprocess.Popen[bytes]) -> None:
    command.kill()


FAULTS = {
    "nothing": Fault("nothing", None),
    "worker": Fault("a worker, kill -9", _worker),
    "node": Fault("a node: nanny, worker, their processes", _node),
    "scheduler": Fault("the scheduler, kill -9", _scheduler),
    "driver": Fault("the command itself, kill -9", _driver),
    "job": Fault("its own process, by a job", None, dies=True),
}


@dataclass(frozen=True)
class Outcome:
    """What one fault cost.

    commands: how many times the command was given; said: its last line on standard error, where it ended with an error
    lost: instances without a record, or with another one than a local run gives but for timing; digest: of all of them
    crashed: instances whose record says so; seconds: of all commands
    """

    what: str
    commands: int
    said: str
    instances: int
    lost: int
    crashed: int
    digest: str
    same: bool
    seconds: float


def outcome(fault: Fault, pools: Sequence[Path], folder: Path, pause: float) -> Outcome:
    """Run locally, then on a cluster with the fault, and compare."""
    options = ["--option", f"pause={pause}"]
    if fault.dies:
        options += ["--option", f"dies={mark(read_pool(pools[0]).problems[0].task)}"]
    line = [sys.executable, "-m", "calibrant.bench.cli", "run", ROW, *map(str, pools), *options]
    local = folder / "local"
    subprocess.run([*line, "--out", local, "--workers", str(NODES)], capture_output=True, check=False)
    made = folder / "cluster"
    with Loopback(folder, NODES) as cluster:
        cluster.wait()
        started = time.perf_counter()
        commands, said = _until_done([*line, "--out", str(made), "--cluster", cluster.address], cluster, fault, made)
        seconds = time.perf_counter() - started
    left = compared(local, made)
    return Outcome(fault.what, commands, said, *left, round(seconds, 1))


class Compared(NamedTuple):
    """The part of an `Outcome` that two folders of records show."""

    instances: int
    lost: int
    crashed: int
    digest: str
    same: bool


def compared(local: Path, made: Path) -> Compared:
    """Return the records of a run on a cluster, with those of a local run."""
    wanted, found = _records(local), _records(made)
    lost = sum(found.get(key) != record for key, record in wanted.items())
    crashed = sum(msgspec.json.decode(record)["outcome"] == "crashed" for record in found.values())
    digest = _digest(found)
    return Compared(len(wanted), lost, crashed, digest, digest == _digest(wanted))


def _until_done(line: list[str], cluster: Loopback, fault: Fault, folder: Path) -> tuple[int, str]:
    """Give the command until it is through; how often, and its last line if the fault ended it."""
    said = ""
    for number in (1, 2, 3):
        with (folder.parent / f"command{number}.log").open("w+b") as log:
            command = subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=log)
            if number == 1 and fault.kill:
                _wait_for_third(folder, command)
                fault.kill(cluster, command)
            code = command.wait()
            log.seek(0)
            told = log.read().decode().splitlines()
        if code in (0, 1):
            return number, said
        said = said or (told[-1] if code == 2 and told else f"exit code {code}")
        if cluster.scheduler.poll() is not None:
            cluster.restart_scheduler()
            cluster.wait()
    return 3, said


def _wait_for_third(folder: Path, command: subprocess.Popen[bytes]) -> None:
    """Until a third of what will be there is there; the local run says how much that is."""
    third = len(_lines(folder.parent / "local")) // 3
    while len(_lines(folder)) < third and command.poll() is None:
        time.sleep(0.02)


def _lines(folder: Path) -> list[bytes]:
    path = folder / FILE_NAME
    return path.read_bytes().splitlines() if path.exists() else []


def _records(folder: Path) -> dict[tuple[str, str], bytes]:
    """By pool and instance, without their timing."""
    found = {}
    for line in _lines(folder):
        record = msgspec.json.decode(line)
        record.pop("timing")
        found[record["pool"], record["instance"]] = msgspec.json.encode(record)
    return found


def _digest(records: Mapping[tuple[str, str], bytes]) -> str:
    return hashlib.sha256(b"\n".join(records.values())).hexdigest()[:16]
