"""Participants who are programs play through a server that is killed: nothing lost, nothing doubled, nothing sealed.

    python -m tests.people --participants 40 --items 6 --kills 2

Their episodes are those that a protocol of `run` plays; the records of both have to be equal but for names and times.
"""

from __future__ import annotations

import argparse
import json
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

import msgspec

from calibrant.bench.core.registry import benchmark_of
from calibrant.bench.play.game import PlayPool
from calibrant.bench.play.service.server import Address, read_address
from calibrant.bench.runs.records import Record, folder_records
from tests.support.commands import called
from tests.support.play.right_lines import POOLS
from tests.support.play.served import SimulatedParticipant

PROTOCOL = {"blickets": "static", "causalab": "exact", "causim": "exact"}


class KilledServer:
    """A served study in a process of its own that is killed and started again on the same address."""

    def __init__(self, study: Path, out: Path) -> None:
        self._line = [sys.executable, "-m", "calibrant", "play", "--study", str(study), "--serve"]
        self._out = out
        self.start()
        address = read_address(out)
        assert address is not None
        self.address: Address = address

    def start(self) -> None:
        """Start a process, and wait until it listens."""
        self._process = subprocess.Popen(self._line, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self._process.stdout.readline()

    def end(self) -> None:
        """Kill the process at once."""
        self._process.kill()
        self._close()

    def kill(self) -> None:
        """Kill the process at once, and start another one."""
        self.end()
        self.start()

    def stop(self) -> None:
        """End the process as a service manager does."""
        self._process.send_signal(signal.SIGTERM)
        self._close()

    def _close(self) -> None:
        self._process.wait(60)
        assert self._process.stdout is not None
        self._process.stdout.close()


def write_study(folder: Path, pool: Path, ids: list[str], num_participants: int) -> Path:
    """Write a study of some items for so many participants."""
    path = folder / "study.toml"
    text = f"""[study]
title = "simulated"
out = "served"
participants = "s{1:04d}-s{num_participants:04d}"
order = "shuffled"
[[block]]
pool = "{pool}"
ids = {json.dumps(ids)}
"""
    path.write_text(text, encoding="utf-8")
    return path


def content(record: Record) -> dict[str, Any]:
    """Return what has to be equal in a record of a participant and one of a protocol."""
    fields = msgspec.to_builtins(record)
    return {
        key: value for key, value in fields.items() if key not in ("timing", "protocol", "config", "provenance", "size")
    }


def simulate(folder: Path, name: str, num_participants: int, num_items: int, num_kills: int) -> dict[str, float]:
    """Play, kill and compare; the figures of what happened. AssertionError where something is lost or doubled."""
    pool = POOLS[name]
    source = PlayPool(pool)
    ids = list(source.indices)[:num_items]
    only = [part for instance in ids for part in ("--only", instance)]
    done = called("run", PROTOCOL[name], pool, *only, "--out", folder / "run", "--workers", 1)
    assert done.returncode == 0, done.stderr
    expected = {record.instance: record for record in folder_records(folder / "run")}
    by_public = {source.public.ids.public(instance): expected[instance] for instance in ids}

    def actions(public_id: str) -> Iterator[Any]:
        record = by_public[public_id]
        if not isinstance(record.steps, list):
            yield {"submit": record.answer}
            return
        opening = len(source.benchmark.play.open(source.item(record.instance)).steps)
        yield from (step.action for step in record.steps[opening:])

    server = KilledServer(write_study(folder, pool, ids, num_participants), folder / "served")
    people = [
        SimulatedParticipant(
            lambda: server.address.port, f"/{server.address.participant_token(f's{k:04d}')}/", actions, Random(k)
        )
        for k in range(1, num_participants + 1)
    ]
    start = time.monotonic()
    failures = play_through_kills(server, people, [1.5 + kill for kill in range(num_kills)])
    seconds = time.monotonic() - start
    idle = [socket.create_connection(("127.0.0.1", server.address.port), timeout=30) for _ in range(1_000)]
    people[0]._state()  # the service goes on
    for connection in idle:
        connection.close()
    server.stop()
    assert not failures, failures[:3]
    records = list(folder_records(folder / "served"))
    assert len(records) == num_participants * num_items, (len(records), num_participants, num_items)
    assert len({record.key for record in records}) == len(records)
    for record in records:
        assert content(record) == content(expected[record.instance]), record
    bodies = [body for person in people for body in person.bodies]
    check_sealed(bodies, pool, ids)
    sent = sum(person.num_sent for person in people)
    return {"records": len(records), "moves sent": sent, "bodies": len(bodies), "seconds": round(seconds, 1)}


def play_through_kills(
    server: KilledServer, players: Sequence[SimulatedParticipant], pauses: Sequence[float]
) -> list[BaseException]:
    """Let all play at once, and kill the server after each pause in seconds; return what failed in their threads."""
    failures: list[BaseException] = []

    def play(player: SimulatedParticipant) -> None:
        try:
            player.play()
        except BaseException as error:  # of a thread, which the script has to know
            failures.append(error)

    threads = [threading.Thread(target=play, args=(player,)) for player in players]
    for thread in threads:
        thread.start()
    for pause in pauses:
        time.sleep(pause)
        server.kill()
    for thread in threads:
        thread.join()
    return failures


def check_sealed(bodies: list[str], pool: Path, ids: list[str]) -> None:
    """Refuse bodies that name an item as the pool does, or give a verdict where none is revealed."""
    bench = benchmark_of(pool)
    hidden = {f'"{instance}"' for instance in ids} | {
        '"verdict"',
        '"sealed"',
        '"mechanisms": [',
        '"target"',
        '"world":',
    }
    hidden |= {
        json.dumps(bench.items.record(bench.items.find(bench.items.read_pool(pool), i))["sealed"])[1:-1] for i in ids
    }
    for body in bodies:
        found = [word for word in hidden if word and word in body]
        assert not found, (found, body[:300])


def main() -> None:
    """Run one simulation in a folder of its own and print its figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--benchmark", choices=PROTOCOL, default="blickets")
    parser.add_argument("--participants", type=int, default=40)
    parser.add_argument("--items", type=int, default=6)
    parser.add_argument("--kills", type=int, default=2)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        figures = simulate(Path(folder), chosen.benchmark, chosen.participants, chosen.items, chosen.kills)
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
