"""A dask.distributed cluster on the loopback interface: a scheduler and workers in processes that can be killed."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from calibrant.bench.runs.cluster import connect, disconnect
from calibrant.bench.runs.executors import end_with_starting_thread
from calibrant.dsl.errors import CalibrantError, MissingExtraError

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
