"""`python -m tests.faults`: output and exit code. The faults themselves take half a minute each."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from calibrant.bench.runs.executors import Execution
from calibrant.bench.runs.records import FILE_NAME
from calibrant.bench.runs.runner import run
from calibrant.dsl.replayscm.pools.files import write_pool
from tests.faults import __main__ as command
from tests.faults.paced import mark
from tests.faults.scenarios import FAULTS, Outcome, compared
from tests.support.stub_protocols import Stub, small_pool

KEPT = Outcome("nothing", 1, "", 4, 0, 1, "abc", True, 1.5)
LOST = Outcome("a worker", 2, "calibrant: gone", 4, 1, 0, "abd", False, 2.5)


@pytest.mark.parametrize(("made", "code"), [((KEPT,), 0), ((KEPT, LOST), 1)])
def test_anything_lost_is_a_failure(
    made: tuple[Outcome, ...], code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    left = iter(made)
    monkeypatch.setattr(command, "outcome", lambda *arguments: next(left))
    assert command.main([*list(FAULTS)[: len(made)], "--json"]) == code
    assert [one["lost"] for one in json.loads(capsys.readouterr().out)] == [one.lost for one in made]


def test_an_unknown_fault_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        command.main(["meteor"])
    assert caught.value.code == 2
    assert "unknown fault 'meteor'; known: nothing, worker, node" in capsys.readouterr().err


def test_a_record_that_is_missing_or_another_one_is_lost(tmp_path: Path) -> None:
    pool = small_pool(["good", "or", "good", "raise"])
    write_pool(pool, tmp_path / "p.jsonl")
    for name in ("local", "same", "less", "other"):
        run(Stub(), [tmp_path / "p.jsonl"], tmp_path / name, execution=Execution())
    records = [msgspec.json.decode(line) for line in (tmp_path / "less" / FILE_NAME).read_bytes().splitlines()]
    _write(tmp_path / "less" / FILE_NAME, records[:3])
    _write(tmp_path / "other" / FILE_NAME, [*records[:2], {**records[2], "size": 99}, records[3]])
    found = {name: compared(tmp_path / "local", tmp_path / name) for name in ("same", "less", "other")}
    assert {name: (one.instances, one.lost, one.crashed, one.same) for name, one in found.items()} == {
        "same": (4, 0, 1, True),
        "less": (4, 1, 0, False),
        "other": (4, 1, 1, False),
    }
    assert len({mark(problem.task) for problem in pool.problems}) == 4


def _write(path: Path, records: list[dict[str, object]]) -> None:
    path.write_bytes(b"".join(msgspec.json.encode(record) + b"\n" for record in records))
