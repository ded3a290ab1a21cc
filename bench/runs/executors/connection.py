"""The connection of this process to a dask.distributed scheduler. Whatever happens to it is one line."""

from __future__ import annotations

import asyncio
import logging
import re
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from calibrant.bench.runs.jobs import error_line
from calibrant.dsl.errors import CalibrantError, MissingExtraError, short_repr

if TYPE_CHECKING:
    from distributed import Client

CONNECTING = 4.0  # seconds in which a scheduler has to answer; with the start of the program, less than 10
SLACK = 0.5  # seconds after which a connection that does not keep its own time limit is given up
LOOK = 1.0  # seconds between looks at who is there
PATIENCE = 5.0  # seconds without workers before a message
FORM = re.compile(r"(tcp|tls)://[^\s/]+:\d{1,5}/?")
LOGGERS = ("distributed", "tornado", "asyncio")  # silenced: their errors are printed as one line by this module
NO_CERTIFICATE = (
    "no certificate to show; DASK_DISTRIBUTED__COMM__TLS__CA_FILE, "
    "DASK_DISTRIBUTED__COMM__TLS__CLIENT__CERT and ...KEY name the files"
)
START_A_WORKER = "dask worker {address} --nthreads 1"


class Connection:
    """One client of a scheduler."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.client = _client(address)
        self._slots = 0
        self._looked = 0.0
        self._deserted = time.monotonic()

    @property
    def alive(self) -> bool:
        return bool(self.client.status == "running")

    def num_slots(self) -> int:
        """Return how many jobs the present workers can run at once. Report after a while that there are none."""
        now = time.monotonic()
        if now - self._looked >= LOOK or not self._looked:
            self._slots = sum(self.client.nthreads().values())
            self._looked = now
            if self._slots:
                self._deserted = now
            elif now - self._deserted >= PATIENCE:
                self._deserted = float("inf")
                message = (
                    f"no workers at {self.address}; waiting for one: {START_A_WORKER.format(address=self.address)}"
                )
                print(message, file=sys.stderr, flush=True)
        return self._slots

    def seconds_to_look(self) -> float:
        return max(0.0, self._looked + LOOK - time.monotonic())

    def close(self) -> None:
        """End the client and its thread, which would go on trying to reconnect to a scheduler that is lost."""
        with suppress(Exception):  # the scheduler may be gone by now
            self.client.close(timeout=CONNECTING)

    def lost(self) -> CalibrantError:
        """Close the connection and return the error that says so."""
        self.close()
        why = f"the scheduler at {self.address} is lost; start it again, then the same command goes on from here"
        return CalibrantError(why)

    @contextmanager
    def errors_in_one_line(self) -> Iterator[None]:
        """Turn the library's exceptions into one line, and drop its warnings about the same."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                yield
        except CalibrantError:
            raise
        except Exception as error:
            if not self.alive or isinstance(error, OSError | TimeoutError):
                raise self.lost() from None
            raise CalibrantError(f"the cluster at {self.address}: {error_line(error)}") from None


_connections: dict[str, Connection] = {}


def connect(address: str) -> Connection:
    """Return the connection to a scheduler, one for all executors of a command."""
    if not FORM.fullmatch(address):
        raise CalibrantError(
            f"{short_repr(address)} is no address of a cluster; give tcp://HOST:PORT or tls://HOST:PORT"
        )
    connection = _connections.get(address)
    if connection is None or not connection.alive:
        disconnect(address)
        _connections[address] = connection = Connection(address)
    return connection


def disconnect(address: str) -> None:
    """Close the connection to a scheduler, if there is one."""
    if (connection := _connections.pop(address, None)) is not None:
        connection.close()


def _client(address: str) -> Client:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from distributed import Client, Security
    except ImportError:
        message = "dask.distributed is missing; run: pip install 'calibrant[cluster]'"
        raise MissingExtraError(message) from None
    _silence()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # versions are compared by each job
            security = Security().get_connection_args("client")
            if address.startswith("tls") and security["ssl_context"] is None:
                raise CalibrantError(f"{address}: {NO_CERTIFICATE}")
            # a `Client` of something that is silent or speaks another protocol hangs, or prints a traceback later
            asyncio.run(asyncio.wait_for(_require_scheduler(address, security), CONNECTING + SLACK))
            return Client(address, timeout=CONNECTING, set_as_default=False, name="calibrant")
    except CalibrantError:
        raise
    except OSError as error:  # time limits too
        why = f"no scheduler answers at {address} in {CONNECTING:.0f} seconds: {error_line(error)}"
        raise CalibrantError(why) from None
    except Exception as error:  # whatever the library makes of bytes that are not its own
        why = f"what answers at {address} is no scheduler of dask.distributed: {error_line(error)}"
        raise CalibrantError(why) from None


async def _require_scheduler(address: str, security: dict[str, Any]) -> None:
    """Ask who is there, over a connection of its own; `CalibrantError` for anything but a scheduler."""
    from distributed.core import connect

    comm = await connect(address, timeout=CONNECTING, **security)
    try:
        await comm.write({"op": "identity", "reply": True})
        answer = await comm.read()
    finally:
        comm.abort()
    if not isinstance(answer, dict) or answer.get("type") != "Scheduler":
        raise CalibrantError(f"{address} is no scheduler of dask.distributed")


def _silence() -> None:
    for name in [*LOGGERS, *logging.root.manager.loggerDict]:
        if name.partition(".")[0] in LOGGERS:
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)
