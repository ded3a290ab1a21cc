"""Participants who are programs, at once, with reloads: their records are those of the protocol that they follow.

`python -m tests.people` has 40 of them, kills the server twice and opens 1,000 connections; here nothing is killed.
"""

from __future__ import annotations

import json
import threading
from pathlib import Path
from random import Random

from calibrant.bench.play.game import PlayPool, Terms
from calibrant.bench.runs.records import folder_records
from tests.people.__main__ import check_sealed, content
from tests.support.commands import called
from tests.support.play.right_lines import POOLS
from tests.support.play.served import participant_url, served
from tests.support.play.simulated import SimulatedParticipant


def test_people_who_follow_a_protocol_have_its_records(tmp_path: Path) -> None:
    pool = POOLS["blickets"]
    called("run", "static", pool, "--limit", 2, "--out", tmp_path / "run", "--workers", 1)
    expected = {record.instance: record for record in folder_records(tmp_path / "run")}
    public = PlayPool(pool).public.ids.public
    moves = {
        public(name): [step.action for step in record.steps]
        for name, record in expected.items()
        if isinstance(record.steps, list)
    }
    with served(tmp_path / "out", [pool], Terms("pilot", reveal=False), num_items=2) as service:
        port = service.address.port
        paths = [participant_url(service, f"s{k}").partition(str(port))[2] for k in range(4)]
        people = [
            SimulatedParticipant(lambda: port, path, lambda item: iter(moves[item]), Random(k), reload_rate=0.3)
            for k, path in enumerate(paths)
        ]
        threads = [threading.Thread(target=person.play) for person in people]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    records = list(folder_records(tmp_path / "out"))
    assert len({record.key for record in records}) == len(records) == 4 * 2
    assert all(content(record) == content(expected[record.instance]) for record in records)
    check_sealed([body for person in people for body in person.bodies], pool, list(expected))
    rows = [json.loads(called("table", tmp_path / name, "--json").stdout)["rows"] for name in ("out", "run")]
    accuracies = [{row["accuracy"] for row in side} for side in rows]
    assert accuracies[0] == accuracies[1]
