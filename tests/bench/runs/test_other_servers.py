"""`--cluster` at the address of something that is no scheduler: one line within ten seconds, no hang, no traceback."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from calibrant.dsl.replayscm.pools.files import write_pool
from tests.support.packages import needs
from tests.support.peak_memory import command_cost
from tests.support.stub_protocols import small_pool

needs("distributed")

MAX_SECONDS = 10.0  # of the processor; about 1.5, beside at most 4 of waiting
HANGING = 200.0  # seconds of the clock: 6 alone, 26 beside fifteen other processes on two cores
Answer = Callable[[socket.socket], None]


@contextmanager
def _server(answer: Answer) -> Iterator[str]:
    """Run a server that answers each connection so, and keeps it open."""
    connections: list[socket.socket] = []
    with socket.create_server(("127.0.0.1", 0), backlog=50) as listening:

        def serve() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = listening.accept()
                    connections.append(connection)
                    with suppress(OSError):
                        answer(connection)

        threading.Thread(target=serve, daemon=True).start()
        try:
            yield f"tcp://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            for connection in connections:
                connection.close()


SERVERS: dict[str, Answer] = {
    "silent": lambda connection: None,
    "closes": lambda connection: connection.close(),
    "http": lambda connection: connection.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"),
    "ssh": lambda connection: connection.sendall(b"SSH-2.0-OpenSSH_9.6\r\n"),
    "ones": lambda connection: connection.sendall(b"\xff" * 65536),
    "zeros": lambda connection: connection.sendall(bytes(65536)),
    "a terabyte": lambda connection: connection.sendall((1 << 40).to_bytes(8, "little") + bytes(100)),
}


@pytest.mark.parametrize("name", SERVERS)
def test_what_is_no_scheduler_is_one_line(tmp_path: Path, name: str) -> None:
    write_pool(small_pool(["good"]), tmp_path / "p.jsonl")
    with _server(SERVERS[name]) as address:
        line = ["run", "exact", tmp_path / "p.jsonl", "--out", tmp_path / "out", "--cluster", address]
        cost = command_cost(*line, limit=HANGING)
    assert cost.code == 2, cost
    assert cost.seconds < MAX_SECONDS, cost
    assert cost.error.count("\n") == 1, cost
    assert address in cost.error, cost
    assert "scheduler" in cost.error, cost
    assert not (tmp_path / "out" / "records.jsonl").exists() or not (tmp_path / "out" / "records.jsonl").read_bytes()
