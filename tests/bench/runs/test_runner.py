"""Runs and their records: nothing lost, nothing doubled, nothing that depends on workers or interruptions."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from calibrant.bench.protocols import make_protocol, protocols_of
from calibrant.bench.replayscm.benchmark import BENCHMARK
from calibrant.bench.replayscm.rows.exact import Exact, no_answer, warming_task
from calibrant.bench.runs.executors import Execution
from calibrant.bench.runs.records import FILE_NAME, RunFile, folder_records, read_records
from calibrant.bench.runs.runner import RunSummary, Selection, run
from calibrant.dsl.errors import CalibrantError, MissingExtraError
from calibrant.dsl.replayscm.item import TaskKind
from calibrant.dsl.replayscm.pools.files import read_pool, write_pool
from calibrant.dsl.replayscm.score import Evaluator
from tests.support.commands import CHECKOUT, program
from tests.support.shared import shared_file
from tests.support.stub_protocols import (
    MOST_ANSWERS,
    DiesWarming,
    LacksLibrary,
    NeedsLibrary,
    Stub,
    killable_script,
    small_pool,
)

MIXED = ["good", "or", "raise", "give_up", "good", "or", "good"]


@pytest.fixture
def pool(tmp_path: Path) -> Path:
    path = tmp_path / "small.jsonl"
    write_pool(small_pool(MIXED), path)
    return path


def contents(folder: Path) -> list[dict[str, Any]]:
    """Return the whole lines of the file as records, without what may differ between runs; a kill can tear the last."""
    *lines, _ = (folder / FILE_NAME).read_text(encoding="utf-8").split("\n")
    return [{key: value for key, value in json.loads(line).items() if key != "timing"} for line in lines]


def without_timing(folder: Path) -> bytes:
    """Return the bytes of the file with every timing object cut out."""
    data = (folder / FILE_NAME).read_bytes()
    parts = data.split(b'"timing":{')
    return parts[0] + b"".join(part[part.index(b"}") :] for part in parts[1:])


def test_every_instance_gets_one_record_with_its_score(pool: Path, tmp_path: Path) -> None:
    assert run(Stub(pause=0.05), [pool], tmp_path / "out") == RunSummary(skipped=0, written=7, crashed=1)
    records = list(folder_records(tmp_path / "out"))
    assert [r.instance for r in records] == [f"I{i}" for i in range(7)]
    assert [r.outcome for r in records] == ["found", "found", "crashed", "out_of_budget", "found", "found", "found"]
    assert [r.score.get("trainExact") for r in records] == [True, False, None, None, True, False, True]
    assert [r.score["valid"] for r in records] == [True, True, False, False, True, True, True]
    assert [r.size for r in records] == [3, 3, None, None, 3, 3, 3]
    assert records[2].provenance["error"] == "RuntimeError: no idea"
    first = records[0]
    assert first.answer == {"mechanisms": {"X3": "(and X1 X2)"}}
    assert (first.pool, first.pool_size, first.index, first.setting, first.stratum) == (
        "small",
        7,
        0,
        "Ordered",
        "even",
    )
    assert first.config == {"pause": 0.05, "warm_up_pause": 0.0, "wall_budget": None}
    assert all(r.timing.seconds > 0.045 for r in records)  # each takes the pause; clocks may differ a little


def test_records_keep_funnel_and_structure_but_nothing_per_variable(pool: Path, tmp_path: Path) -> None:
    run(Stub(), [pool], tmp_path / "out")
    right, wrong, crashed, *_ = (r.score for r in folder_records(tmp_path / "out"))
    assert right["structure"] == {
        "precision": 1.0,
        "recall": 1.0,
        "f1": 1.0,
        "shd": 0,
        "variable_exact": 1.0,
        "exact_map": True,
        "local_match": 1.0,
    }
    assert (wrong["structure"]["exact_map"], wrong["structure"]["local_match"]) == (True, 0.0)
    assert crashed["structure"] is None
    assert [stage for stage, passed in crashed["funnel"].items() if passed] == ["extracted", "schema"]
    assert "perVariableTrainAccuracy" not in right
    assert right["candidateStats"].keys() & {"perVariable", "parentsByVar"} == set()
    assert right["heldoutWorlds"] == 1  # the other one has no scored cell


def test_a_second_run_writes_nothing(pool: Path, tmp_path: Path) -> None:
    run(Stub(), [pool], tmp_path / "out")
    before = (tmp_path / "out" / FILE_NAME).read_bytes()
    assert run(Stub(), [pool, pool], tmp_path / "out") == RunSummary(skipped=14, written=0, crashed=1)
    assert (tmp_path / "out" / FILE_NAME).read_bytes() == before


def test_two_runs_are_byte_identical_but_for_timing(pool: Path, tmp_path: Path) -> None:
    for name in ("one", "two"):
        run(Stub(), [pool], tmp_path / name)
    assert without_timing(tmp_path / "one") == without_timing(tmp_path / "two")
    assert b'"seconds"' not in without_timing(tmp_path / "one")


def test_the_number_of_workers_changes_nothing(pool: Path, tmp_path: Path) -> None:
    run(Stub(), [pool], tmp_path / "one", execution=Execution(1))
    run(Stub(), [pool], tmp_path / "two", execution=Execution(2))
    assert without_timing(tmp_path / "one") == without_timing(tmp_path / "two")


def test_the_order_in_which_parts_are_run_changes_nothing(pool: Path, tmp_path: Path) -> None:
    other = tmp_path / "another.jsonl"
    write_pool(small_pool(["or", "good"], name="another"), other)
    run(Stub(), [pool, other], tmp_path / "at once")
    for only in (["I5", "I1"], ["I6"], ["I0"]):
        run(Stub(), [pool], tmp_path / "in parts", selection=Selection(only))
    run(Stub(), [other], tmp_path / "in parts")
    run(Stub(), [pool], tmp_path / "in parts")
    assert without_timing(tmp_path / "in parts") == without_timing(tmp_path / "at once")


def test_options_are_part_of_the_key(pool: Path, tmp_path: Path) -> None:
    run(Stub(), [pool], tmp_path / "out", selection=Selection(limit=2))
    summary = run(Stub(pause=0.001), [pool], tmp_path / "out", selection=Selection(limit=2))
    assert summary == RunSummary(skipped=0, written=2, crashed=0)
    found = sorted((r.config["pause"], r.instance) for r in folder_records(tmp_path / "out"))
    assert found == [(0.0, "I0"), (0.0, "I1"), (0.001, "I0"), (0.001, "I1")]


def test_an_unknown_instance_is_refused(pool: Path, tmp_path: Path) -> None:
    with pytest.raises(CalibrantError, match=r"no instance 'I7' in small\.jsonl"):
        run(Stub(), [pool], tmp_path / "out", selection=Selection(["I7"]))


def test_hangs_and_deaths_cost_only_their_own_instance(tmp_path: Path) -> None:
    behaviours = ["good", "hang", "die", "good", "good", "die", "or"]
    write_pool(small_pool(behaviours), tmp_path / "p.jsonl")
    summary = run(Stub(warm_up_pause=1.2), [tmp_path / "p.jsonl"], tmp_path / "out", execution=Execution(2, 1.0))
    assert summary == RunSummary(skipped=0, written=7, crashed=2)
    records = list(folder_records(tmp_path / "out"))
    expected = {"hang": "out_of_budget", "die": "crashed"}
    assert [r.outcome for r in records] == [expected.get(behaviour, "found") for behaviour in behaviours]
    assert records[1].provenance == {"stopped_by": "wall budget", "seconds": 1.0}
    assert records[2].provenance == {"error": "the worker process ended with exit code 3"}
    # warming up takes longer than the budget, and yet no instance ran out of it


@pytest.mark.parametrize("workers", [1, 2])
def test_a_library_that_turns_out_to_be_missing_ends_the_run(pool: Path, tmp_path: Path, workers: int) -> None:
    with pytest.raises(MissingExtraError, match="a library cannot be imported"):
        run(LacksLibrary(), [pool], tmp_path / "out", execution=Execution(workers))
    assert list(folder_records(tmp_path / "out")) == []


def test_workers_that_cannot_start_are_an_error_not_a_hang(pool: Path, tmp_path: Path) -> None:
    with pytest.raises(CalibrantError, match="die before they answer"):
        run(DiesWarming(), [pool], tmp_path / "out", execution=Execution(2))


def test_a_missing_extra_is_said_before_anything_is_written(pool: Path, tmp_path: Path) -> None:
    with pytest.raises(MissingExtraError):
        run(NeedsLibrary(), [pool], tmp_path / "out")
    assert not (tmp_path / "out").exists()


# --- interruptions ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def long_pool(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("long") / "long.jsonl"
    write_pool(small_pool(["good", "or", "raise", "give_up"] * 8, name="long"), path)
    return path


def _num_lines(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0


def _wait(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def _started(pool: Path, out: Path, workers: int, folder: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, str(killable_script(folder)), str(pool), str(out), str(workers), "0"]
    environment = {**os.environ, "PYTHONPATH": str(CHECKOUT), MOST_ANSWERS: str(10 // workers)}
    return subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, start_new_session=True)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_run_killed_twice_resumes_with_nothing_lost_or_doubled(long_pool: Path, tmp_path: Path, workers: int) -> None:
    run(Stub(), [long_pool], tmp_path / "whole")
    killed = tmp_path / "killed"
    kept: list[dict[str, Any]] = []
    for enough in (5, 15):
        process = _started(long_pool, killed, workers, tmp_path)
        _wait(lambda enough=enough: _num_lines(killed / FILE_NAME) >= enough)  # type: ignore[misc]
        process.send_signal(signal.SIGKILL)
        process.communicate()
        assert process.returncode == -signal.SIGKILL
        _wait(lambda group=process.pid: _is_gone(group))  # type: ignore[misc]  # orphaned workers stop by themselves
        before, kept = kept, [record for record in contents(killed) if record["instance"]]
        assert kept[: len(before)] == before  # appended to, never rewritten
        assert len(kept) < 32
    assert run(Stub(), [long_pool], killed) == RunSummary(len(kept), 32 - len(kept), 8)
    assert without_timing(killed) == without_timing(tmp_path / "whole")


def _is_gone(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return True
    return False


def test_a_line_torn_anywhere_is_repaired(pool: Path, tmp_path: Path) -> None:
    run(Stub(), [pool], tmp_path / "whole")
    whole = (tmp_path / "whole" / FILE_NAME).read_bytes()
    torn = tmp_path / "torn"
    torn.mkdir()
    for length in [*range(0, len(whole), 397), len(whole) - 1]:
        (torn / FILE_NAME).write_bytes(whole[:length])
        num_whole_lines = whole[:length].count(b"\n")
        assert len(list(folder_records(torn))) == num_whole_lines  # readers pass over the torn line
        assert run(Stub(), [pool], torn).skipped == num_whole_lines
        assert without_timing(torn) == without_timing(tmp_path / "whole")


def test_a_broken_line_that_is_not_the_last_is_refused_with_its_number(pool: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    run(Stub(), [pool], out)
    lines = (out / FILE_NAME).read_bytes().splitlines(keepends=True)
    for broken in (b"{\n", b"\n", b"[]\n", b"\xff\n", lines[2].replace(b'"outcome":"', b'"outcome":"x'), lines[2][1:]):
        (out / FILE_NAME).write_bytes(b"".join([*lines[:2], broken, *lines[3:]]))
        for attempt in (lambda: list(folder_records(out)), lambda: run(Stub(), [pool], out)):
            with pytest.raises(CalibrantError, match=r"records\.jsonl: line 3: not a record"):
                attempt()
    newer = lines[2].replace(b'"version":1', b'"version":2')
    (out / FILE_NAME).write_bytes(b"".join([*lines[:2], newer]))
    with pytest.raises(CalibrantError, match="line 3: record version 2"):
        list(read_records(out / FILE_NAME))


def test_two_writers_are_one_too_many(pool: Path, tmp_path: Path) -> None:
    with RunFile(tmp_path / "out"), pytest.raises(CalibrantError, match="another run is writing there"):
        run(Stub(), [pool], tmp_path / "out")
    assert run(Stub(), [pool], tmp_path / "out").written == 7  # and free again


def test_leftovers_of_a_run_killed_while_sorting_are_removed(pool: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / ".records.jsonl.abcdefgh").write_text("half", encoding="utf-8")
    run(Stub(), [pool], out)
    assert sorted(path.name for path in out.iterdir()) == [FILE_NAME, "records.lock"]


# --- protocols ----------------------------------------------------------------------------------------------------


def test_options_come_as_texts_or_values_and_are_checked() -> None:
    assert (
        make_protocol(protocols_of(BENCHMARK), "exact", {"max_parents": "4"})
        == make_protocol(protocols_of(BENCHMARK), "exact", {"max_parents": 4})
        == Exact(4)
    )
    assert Exact().config == {"max_parents": 5}
    with pytest.raises(CalibrantError, match=r"unknown protocol 'exat'; did you mean exact"):
        make_protocol(protocols_of(BENCHMARK), "exat", {})
    for options in ({"max_parents": 0}, {"max_parents": "7"}, {"max_parents": "five"}, {"depth": 3}):
        with pytest.raises(CalibrantError, match=r"protocol 'exact': .*its options: max_parents"):
            make_protocol(protocols_of(BENCHMARK), "exact", options)
    assert all(name == protocol.name for name, protocol in protocols_of(BENCHMARK).items())


def test_no_answer_fits_every_tasks_schema_and_is_not_valid() -> None:
    (problem,) = small_pool(["good"]).problems
    score = Evaluator(problem).score_answer(no_answer(TaskKind.SCM))
    assert score.rejection is not None
    assert score.rejection.stage == "keys"
    for name, kind in (("pool_dev_t1_hidden_roots", TaskKind.ROOTS), ("official_sample", TaskKind.ALTERNATIVE)):
        other = read_pool(shared_file(f"{name}.runtime.yaml"), keep_results=False).problems[0]
        rejection = Evaluator(other).score_answer(no_answer(kind)).rejection
        assert rejection is not None
        assert rejection.stage == "keys"


def test_warming_up_succeeds() -> None:
    """Workers pass over a warm-up that fails, so nothing else would notice."""
    Exact().warm_up()
    result = Exact().answer(warming_task())
    assert (result.outcome, result.size) == ("found", 5 + 7 + 10 + 6 + 9)


def test_after_warming_up_nothing_is_compiled_any_more() -> None:
    source = """
from calibrant.bench.core.registry import bundled_pools
from calibrant.bench.replayscm.rows.exact import Exact
from calibrant.dsl.replayscm.pools.files import read_pool
from calibrant.solvers.formulas import _kernels_functions
from calibrant.solvers.replayscm import _kernels_parents
from calibrant.solvers.formulas import _kernels_synthesis

def compiled():
    modules = (_kernels_functions, _kernels_parents, _kernels_synthesis)
    kernels = [kernel for module in modules for kernel in vars(module).values() if hasattr(kernel, "signatures")]
    return sum(len(kernel.signatures) for kernel in kernels)

Exact().warm_up()
before = compiled()
for pool in bundled_pools():
    for problem in read_pool(pool).problems:
        Exact().answer(problem.task)
print(before > 0, compiled() - before)
"""
    assert program("-c", source).stdout == "True 0\n"


def test_the_exact_protocol_on_the_small_pool(tmp_path: Path) -> None:
    write_pool(small_pool(["good", "or"]), tmp_path / "p.jsonl")
    assert run(Exact(), [tmp_path / "p.jsonl"], tmp_path / "out") == RunSummary(0, 2, 0)
    records = list(folder_records(tmp_path / "out"))
    assert [r.answer for r in records] == [{"mechanisms": {"X3": f"({op} X1 X2)"}} for op in ("and", "or")]
    assert [(r.outcome, r.size, r.score["correct"]) for r in records] == [("found", 3, True)] * 2


def test_exact_answers_of_workers_are_those_of_this_process(tmp_path: Path) -> None:
    pool = shared_file("pool_dev_t1_hidden_roots.runtime.yaml")
    run(Exact(), [pool], tmp_path / "one", execution=Execution(1))
    run(Exact(), [pool], tmp_path / "two", execution=Execution(2))
    assert without_timing(tmp_path / "one") == without_timing(tmp_path / "two")
    records = list(folder_records(tmp_path / "one"))
    assert [r.outcome for r in records] == ["found"] * 12
    assert all(r.answer.keys() == {"roots", "mechanisms"} and r.score["mechanismTrainExact"] for r in records)
