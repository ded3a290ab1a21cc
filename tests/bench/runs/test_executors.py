"""Executors, their batches, values that stay in a file, and crashes of methods."""

from __future__ import annotations

import json
import multiprocessing
import os
import resource
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

import calibrant.dsl.records
from calibrant.bench.commands.options import execution
from calibrant.bench.commands.run import run_and_report
from calibrant.bench.core.registry import NAMES, benchmark, bundled_files
from calibrant.bench.protocols import make_protocol, protocols_of
from calibrant.bench.runs.cluster import FIRST_BATCH_JOBS, MAX_BATCH_JOBS, Batcher
from calibrant.bench.runs.executors import (
    Execution,
    Failure,
    difference,
    digest_sources,
    prepare_nothing,
    versions,
)
from calibrant.bench.runs.records import FILE_NAME, folder_records
from calibrant.bench.runs.runner import RunSummary, Selection, run
from calibrant.bench.runs.spill_file import SpillBuffer, StoredLines
from calibrant.bench.runs.workers import as_completed, open_executor, timed_answer
from calibrant.datasets import bundled_pool
from calibrant.dsl.errors import CalibrantError, MissingExtraError, UnknownItemError
from calibrant.dsl.replayscm.pools.files import write_pool
from tests.support.commands import CHECKOUT, called
from tests.support.processes import all_end, blocks, children, command, ended
from tests.support.replayscm.extensions import small_problem
from tests.support.stub_protocols import (
    DiesWarming,
    LacksLibrary,
    NeedsLibrary,
    Raises,
    Stub,
    killable_script,
    small_pool,
)

# --- Who does jobs on this machine ------------------------------------------------------------------------------------
TOO_LONG = "600"  # seconds that an answer takes; nothing here waits for it


LINUX = pytest.mark.skipif(sys.platform != "linux", reason="processes are looked at in /proc")


@contextmanager
def busy_run(folder: Path) -> Iterator[list[int]]:
    """Yield the processes of a run once its two workers and their resource tracker are there; kill it in the end."""
    write_pool(small_pool(["good", "good"]), folder / "p.jsonl")
    line = [sys.executable, killable_script(folder), folder / "p.jsonl", folder / "out", "2", TOO_LONG]
    driver = subprocess.Popen(list(map(str, line)), cwd=CHECKOUT, env={"PYTHONPATH": str(CHECKOUT)})
    try:
        while len(started := children(driver.pid)) < 3 or not all("multiprocessing" in command(pid) for pid in started):
            assert driver.poll() is None
            time.sleep(0.01)
        yield started
    finally:
        driver.kill()
        driver.wait()


@LINUX
def test_processes_are_deaf_to_control_c_from_the_start_and_end_with_the_one_that_started_them(tmp_path: Path) -> None:
    """Whatever blocks a signal when its program is loaded has never received it.

    The process that started them may be killed, which it cannot tell them.
    """
    with busy_run(tmp_path) as started:
        workers = [pid for pid in started if "spawn_main" in command(pid)]
        assert [blocks(pid, signal.SIGINT) for pid in workers] == [True, True]
        assert not any(map(ended, started))
    assert all_end(started, 60.0)


def test_a_digest_of_sources_is_of_all_files_of_this_code(tmp_path: Path) -> None:
    copies = [tmp_path / name for name in ("none", "one", "other", "bench_alone")]
    for copy, files in zip(
        copies, ((), ("dsl/a.py", "bench/b.py"), ("dsl/a.py", "bench/c.py"), ("bench/b.py",)), strict=True
    ):
        for file in files:
            (copy / file).parent.mkdir(parents=True, exist_ok=True)
            (copy / file).write_text("1\n")
    assert len({digest_sources(), *map(digest_sources, copies)}) == 5
    assert digest_sources(CHECKOUT) == digest_sources()
    assert digest_sources() in versions()["calibrant"]


def test_versions_are_compared_by_name() -> None:
    ours = versions()
    assert difference(ours, dict(ours)) == ""
    assert ours["Python"] == f"{sys.version_info.major}.{sys.version_info.minor}"
    assert difference(ours, {**ours, "numpy": "0.1"}) == f"numpy {ours['numpy']} here, 0.1 there"
    assert difference(ours, {**ours, "new": "1"}) == "new absent here, 1 there"
    fewer = {name: version for name, version in ours.items() if name != "numba"}
    assert difference(ours, fewer) == f"numba {ours['numba']} here, absent there"


# --- How many jobs are handed to a worker at a time -------------------------------------------------------------------


def handed_out(number: int, slots: int, fit: int) -> tuple[list[list[int]], list[int]]:
    """Every batch in turn, and the jobs in the order in which they are done: of a batch, so many fit into its time."""
    batches, taken, order = Batcher({job: str(job) for job in range(number)}), [], []
    while batches:
        (batch,) = batches.next(slots, 2 * slots - 1) or batches.next(slots, slots - 1)
        keys = list(batch)
        assert keys
        assert batch == {job: str(job) for job in keys}
        taken.append(keys)
        done = min(fit, len(keys))
        order += keys[:done]
        batches.requeue_rest(keys, done, early=len(keys) < fit)
    return taken, order


def test_every_job_is_done_once_and_in_order_whatever_fits() -> None:
    for number in (1, 2, 5, 20, 321):
        for slots in (1, 2, 7):
            for fit in (1, 3, 10, 1000):
                assert handed_out(number, slots, fit)[1] == list(range(number))


def test_long_jobs_go_one_by_one_after_the_first_shares() -> None:
    taken, _ = handed_out(20, 2, 1)
    assert [len(batch) for batch in taken] == [7] + [1] * 19  # 7: one and a half batches for each of two slots


def test_short_jobs_go_in_few_messages_and_the_last_ones_in_small_ones() -> None:
    sizes = [len(batch) for batch in handed_out(1000, 2, 1000)[0]]
    assert max(sizes) == MAX_BATCH_JOBS
    assert len(sizes) < 40
    assert sizes[-1] <= 8
    assert sizes[:3] == [FIRST_BATCH_JOBS, 2 * FIRST_BATCH_JOBS, 4 * FIRST_BATCH_JOBS]


def test_a_worker_that_is_handed_too_many_says_how_many_fit() -> None:
    assert FIRST_BATCH_JOBS > 6
    assert [len(batch) for batch in handed_out(200, 2, 6)[0]][:5] == [8, 6, 6, 6, 6]


def test_no_more_shares_than_there_is_room_for() -> None:
    batches = Batcher({job: job for job in range(20)})
    assert batches.next(0, 0) == batches.next(2, 4) == []
    assert [list(batch) for batch in batches.next(2, 0)] == [[0, 1, 2, 3, 4, 5, 6], [7, 8, 9, 10, 11]]
    assert [list(batch) for batch in batches.next(2, 3)] == [[12, 13, 14]]


def test_the_last_jobs_wait_for_a_slot_that_has_nothing_to_do() -> None:
    batches = Batcher({job: job for job in range(20)})
    while batches.next(3, 3):
        pass
    assert batches.next(3, 2) == [{17: 17}]
    assert batches.next(3, 1) == [{18: 18}, {19: 19}]
    assert not batches


def test_jobs_under_which_workers_died_are_tried_again_alone_and_last() -> None:
    batches = Batcher({job: job for job in range(9)})
    (first,), (second,) = batches.next(1, 0), batches.next(1, 1)
    assert batches.suspect_jobs(list(first)) == []
    assert batches.suspect_jobs(list(second)) == []
    assert batches.next(1, 0) == [{8: 8}]
    assert batches.suspect_jobs([8]) == []
    assert batches.next(1, 1) == []
    for job in range(9):
        assert batches
        assert batches.next(1, 0) == [{job: job}]
        if job == 5:
            assert batches.suspect_jobs([job]) == [job]
        else:
            batches.requeue_rest([job], 1, early=True)
    assert not batches


# --- Values and lines that stay in files: in order, as often as asked for, and refused where the file was cut off -----


@pytest.mark.parametrize("kept", [1, 2000])
def test_values_come_in_the_order_of_their_places(kept: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibrant.dsl.records, "MAX_CACHED_ITEMS", kept)
    with SpillBuffer[tuple[str, ...]]() as aside:
        for place in [(1, 0), (0, 10), (0, 9)]:
            aside.add(place, (str(place),))
        values = aside.values()
    expected = [("(0, 9)",), ("(0, 10)",), ("(1, 0)",)]
    assert list(values) == list(values) == expected
    assert list(values[1:]) == expected[1:]
    assert values[-1] == expected[-1]


def test_a_file_that_is_cut_off_is_refused_and_one_that_is_replaced_is_not(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_bytes(b"first\nsecond\n")
    with path.open("rb") as file:
        lines = StoredLines(file.fileno(), [(6, 6), (0, 5)])
    (tmp_path / "other").write_bytes(b"else")
    path.rename(tmp_path / "moved")
    (tmp_path / "other").rename(path)
    assert [lines.line(0), lines.line(1)] == [b"second", b"first"]
    os.truncate(tmp_path / "moved", 8)
    assert lines.line(1) == b"first"
    with pytest.raises(CalibrantError, match="cut off while it was read"):
        lines.line(0)


# --- Crashes of methods: what is recorded of them, and runs again that lose no record ---------------------------------
THREE_METHODS = """
import os, signal
from functools import partial
from pathlib import Path
from calibrant import Protocol
from calibrant.bench.protocols import ProtocolResult

class First(Protocol, frozen=True):
    name = "first"

    def answer(self, task):
        mends = Path(os.environ["MENDED"])
        if not task.training.worlds[0].id.startswith("raise"):
            return ProtocolResult("found", {"mechanisms": {"X3": "(and X1 X2)"}})
        if "KILL_AFTER" not in os.environ:
            raise KeyError("missing")
        done = mends.read_text().split() if mends.exists() else []
        if len(done) == int(os.environ["KILL_AFTER"]):
            os.kill(os.getpid(), signal.SIGKILL)
        mends.write_text(" ".join([*done, self.name]))
        return ProtocolResult("found", {"mechanisms": {"X3": "(and X1 X2)"}})

class Second(First, frozen=True):
    name = "second"

class Third(First, frozen=True):
    name = "third"
"""


@pytest.fixture
def pool(tmp_path: Path) -> Path:
    path = tmp_path / "small.jsonl"
    write_pool(small_pool(["good", "or", "raise", "give_up", "good", "or", "good"]), path)
    return path


def test_crashed_instances_can_be_tried_again(pool: Path, tmp_path: Path) -> None:
    run(Stub(), [pool], tmp_path / "out")
    again = run(Stub(), [pool], tmp_path / "out", retry_crashed=True)
    assert again == RunSummary(skipped=6, written=1, crashed=1)
    assert [r.instance for r in folder_records(tmp_path / "out")] == [f"I{i}" for i in range(7)]


def test_crashes_of_an_earlier_run_are_told_again(pool: Path, tmp_path: Path) -> None:
    assert run(Stub(), [pool], tmp_path / "out").crashed == 1
    assert run(Stub(), [pool], tmp_path / "out") == RunSummary(skipped=7, written=0, crashed=1)


def test_a_retry_replaces_only_crashes_of_its_own_method_options_and_items(pool: Path, tmp_path: Path) -> None:
    write_pool(small_pool(["raise", "raise", "good"], name="other"), tmp_path / "other.jsonl")
    out, other = tmp_path / "out", tmp_path / "other.jsonl"
    for protocol, path in ((Stub(), pool), (Stub(), other), (Stub(pause=0.001), other), (Raises(), other)):
        run(protocol, [path], out)
    before = {record.key: record for record in folder_records(out)}
    crashes = {key for key, record in before.items() if record.outcome == "crashed"}
    assert len(crashes) == 1 + 2 + 2 + 3
    again = run(Stub(), [other], out, retry_crashed=True, selection=Selection(["I1", "I2"]))
    assert again == RunSummary(skipped=1, written=1, crashed=1)
    after = {record.key: record for record in folder_records(out)}
    assert list(after) == list(before)
    replaced = [key for key in after if after[key] != before[key]]  # by the time at least
    assert [(key.protocol, key.instance, after[key].pool) for key in replaced] == [("stub", "I1", "other")]


def test_a_crash_stays_until_what_replaces_it_has_an_outcome(pool: Path, tmp_path: Path) -> None:
    """A retry that ends before its first outcome changes no byte."""
    run(Stub(), [pool], tmp_path / "out")
    before = (tmp_path / "out" / FILE_NAME).read_bytes()
    with pytest.raises(CalibrantError, match="die before they answer"):
        run(DiesWarming(), [pool], tmp_path / "out", retry_crashed=True, execution=Execution(2))
    with pytest.raises(UnknownItemError):
        run(Stub(), [pool], tmp_path / "out", retry_crashed=True, selection=Selection(["I9"]))
    assert (tmp_path / "out" / FILE_NAME).read_bytes() == before


def test_retries_of_three_methods_killed_at_any_time_lose_nothing(tmp_path: Path) -> None:
    """Kill -9 while crashes are run again, at once and after 5: each key keeps a record, each outcome counts."""
    pool, out, mends = tmp_path / "pool.jsonl", tmp_path / "out", tmp_path / "mended"
    write_pool(small_pool(["raise", "good"] * 4, name="pool"), pool)
    script = tmp_path / "three_methods.py"
    script.write_text(THREE_METHODS, encoding="utf-8")
    methods = ",".join(f"{script}:{name}" for name in ("First", "Second", "Third"))

    def call(*options: str, **variables: str) -> int:
        command = [sys.executable, "-m", "calibrant", "run", methods, str(pool), "--out", str(out), "--workers", "1"]
        environment = {**os.environ, "PYTHONPATH": str(CHECKOUT), "MENDED": str(mends), **variables}
        return subprocess.run([*command, *options], env=environment, capture_output=True, timeout=120).returncode

    assert call() == 1
    before = {record.key: record.outcome for record in folder_records(out)}
    assert (len(before), list(before.values()).count("crashed")) == (3 * 8, 3 * 4)
    for num_retried in (0, 5):
        assert call("--retry-crashed", KILL_AFTER=str(num_retried)) == -signal.SIGKILL
        assert {record.key for record in folder_records(out)} == set(before)
    assert call() == 1  # takes over what the killed command had done, and runs nothing again
    outcomes = {record.key: record.outcome for record in folder_records(out)}
    assert outcomes.keys() == before.keys()
    assert list(outcomes.values()).count("crashed") == 3 * 4 - 5
    assert call("--retry-crashed", KILL_AFTER="-1") == 0
    assert {record.key: record.outcome for record in folder_records(out)} == dict.fromkeys(before, "found")
    assert len(mends.read_text(encoding="utf-8").split()) == 3 * 4  # none was answered twice
    assert sorted(path.name for path in out.iterdir()) == [FILE_NAME, "records.lock"]


CRASHING_FILE = """
from calibrant import Protocol

class Boom(Protocol, frozen=True):
    name = "boom"

    def answer(self, task):
        return look_up({})

def look_up(values):
    return values["missing"]

def recurse(depth):
    return recurse(depth + 1)

class Deep(Protocol, frozen=True):
    name = "deep"

    def answer(self, task):
        return recurse(0)

class Elsewhere(Protocol, frozen=True):
    name = "elsewhere"

    def answer(self, task):
        import fractions
        return fractions.Fraction("no number")
"""


@pytest.mark.parametrize("name", ["replayscm", "blickets", "causalab", "causim", "logic"])
def test_a_crash_is_shown_with_its_place_and_no_other_cause(name: str, tmp_path: Path) -> None:
    """In `run`, `show --run` and `list --scores`, of every benchmark."""
    pool, out = bundled_files()[name][0], tmp_path / "out"
    (tmp_path / "search.py").write_text(CRASHING_FILE, encoding="utf-8")
    done = called("run", f"{tmp_path / 'search.py'}:Boom", pool, "--out", out, "--limit", 1, "--workers", 1)
    (record,) = folder_records(out)
    place = f"{tmp_path.name}/search.py:11 in look_up"
    assert record.provenance == {
        "error": "KeyError: 'missing'",
        "at": place,
        "traceback": [
            f"{tmp_path.name}/search.py:8 in answer: return look_up({{}})",
            f'{place}: return values["missing"]',
        ],
    }
    crash = [
        f"boom on {record.instance} crashed: KeyError: 'missing', at {place}",
        *(f"    {frame}" for frame in record.provenance["traceback"]),
    ]
    shown = [f"  {line}" for line in crash]
    assert done.returncode == 1
    assert [line for line in done.stderr.splitlines() if line in shown] == shown
    for options in ([], ["--gold"], ["--why"]):
        lines = called("show", pool, record.instance, "--run", out, *options).stdout.splitlines()
        assert lines[:3] == crash
        assert lines[3:] in ([], ["    after 1 recorded step"])
    page = tmp_path / "page.html"
    refusal = called("show", pool, record.instance, "--run", out, "--html", page)
    assert (refusal.returncode, page.exists()) == (2, False)
    assert crash[0] in refusal.stderr
    listed = called("list", pool, "--scores", out)
    assert f"boom: 1 answer crashed: KeyError: 'missing', at {place}" in listed.stderr.splitlines()


@pytest.mark.parametrize("workers", [1, 2])
def test_frames_are_bounded_and_the_place_is_the_users(pool: Path, tmp_path: Path, workers: int) -> None:
    (tmp_path / "search.py").write_text(CRASHING_FILE, encoding="utf-8")
    for name in ("Deep", "Elsewhere"):
        called("run", f"{tmp_path / 'search.py'}:{name}", pool, "--out", tmp_path / name, "--workers", workers)
    deep, elsewhere = (next(folder_records(tmp_path / name)).provenance for name in ("Deep", "Elsewhere"))
    assert deep["error"].startswith("RecursionError")
    assert len(deep["traceback"]) == 5
    assert elsewhere["error"].startswith("ValueError: Invalid literal for Fraction")
    assert elsewhere["at"] == f"{tmp_path.name}/search.py:27 in answer"
    assert "fractions.py" in elsewhere["traceback"][-1]


def test_methods_are_opened_before_the_first_item_and_finished_ones_keep_their_table(
    pool: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for protocol, expected in ((NeedsLibrary(), 0), (LacksLibrary(), 7)):
        out = tmp_path / protocol.name
        with pytest.raises(MissingExtraError):
            run_and_report([Stub(), protocol], [pool], out, Execution())
        num_records = len(list(folder_records(out))) if out.exists() else 0
        assert num_records == expected
        assert ("stub" in capsys.readouterr().out) == bool(expected)


# what extras of the project bring, or their packages in turn
OPTIONAL = [
    "causallearn",
    "gies",
    "girth",
    "highspy",
    "networkx",
    "pandas",
    "pgmpy",
    "pyagrum",
    "pydot",
    "scipy",
    "sklearn",
    "statsmodels",
    "threadpoolctl",
    "z3",
]
DECLARING = {"exact-integer-program", "exact-smt", "pc+dsl", "ges+dsl", "pgmpy-hc+dsl", "gies+dsl"}


@pytest.mark.parametrize("name", NAMES)
def test_rows_of_the_project_declare_every_library_that_they_import(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A library that `answer` alone imports is noticed at the first item; of rows of the project there is none."""
    for module in OPTIONAL:
        monkeypatch.setitem(sys.modules, module, None)
    bench, declaring = benchmark(name), set()
    pools = {"replayscm": [small_pool(["or"]).items[0], small_problem(2, rate="1/10"), small_problem(2, num_hidden=1)]}
    items = pools.get(name) or [next(iter(bench.items.read_pool(bundled_pool(name)).items))]
    rows = protocols_of(bench)
    for row in rows:
        protocol = make_protocol(rows, row, {})
        try:
            protocol.require()
        except MissingExtraError:
            declaring.add(row)
            continue
        for item in items:
            result = timed_answer(protocol, bench.handout(item)).result
            assert result.outcome != "crashed", (row, result.provenance)
    assert declaring == (DECLARING if name == "replayscm" else set())


# --- Few jobs without a number of workers: no process is started ------------------------------------------------------
def _process(_: int) -> int:
    return os.getpid()


@pytest.mark.parametrize(
    ("workers", "budget", "num_jobs", "is_here"),
    [(None, None, 8, True), (None, None, 9, False), (2, None, 1, False), (None, 60.0, 1, False)],
)
def test_few_jobs_start_no_process(
    workers: int | None, budget: float | None, num_jobs: int, is_here: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("calibrant.bench.commands.options.usable_cores", lambda: 2)
    prepared: list[int] = []
    prepare = partial(prepared.append, 1) if is_here else prepare_nothing
    with open_executor(prepare, execution(workers, None, budget)) as executor:
        for _ in range(2):
            results = dict(executor.as_completed(_process, {i: i for i in range(num_jobs)}))
            assert results.keys() == set(range(num_jobs))
            assert ({*results.values()} == {os.getpid()}) is is_here
            assert is_here or os.getpid() not in results.values()
    assert prepared == [1] * is_here


def _count_page_faults(_: int) -> int:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(100):
        arrays = [bytes(3_000_000) for _ in range(6)]
        del arrays
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


@LINUX
def test_a_process_keeps_the_memory_of_an_array_for_the_next() -> None:
    """The first 18 MB cost up to 4,395 page faults; given back to the system each time, 17,000 in all."""
    with open_executor(prepare_nothing, Execution(2)) as executor:
        (faults,) = dict(executor.as_completed(_count_page_faults, {0: 0})).values()
    assert isinstance(faults, int)
    assert faults < 6_000


# --- Jobs that this process shares with others ------------------------------------------------------------------------
def _slow_process(number: int) -> int:
    time.sleep(0.05)  # long enough for the spawned process to get some of the jobs
    if number == 3:
        raise ValueError("job 3")
    if number == 30 and multiprocessing.parent_process() is not None:
        os._exit(7)
    return os.getpid()


def test_this_process_does_its_part_and_a_job_that_fails_or_kills_costs_the_others_nothing() -> None:
    results = dict(as_completed(_slow_process, {i: i for i in range(60)}, Execution(2)))
    assert results.keys() == set(range(60))
    assert results.pop(3) == Failure("crashed", "ValueError: job 3")
    results.pop(30)  # of this process, or the exit code of the other
    assert len({*results.values()} - {os.getpid()}) >= 1
    assert os.getpid() in results.values()


def _here_and_switch_seconds(number: int) -> tuple[bool, float]:
    time.sleep(0.01 * number)
    return multiprocessing.parent_process() is None, sys.getswitchinterval()


def test_threads_take_turns_faster_while_a_process_waits_for_their_messages() -> None:
    """Otherwise a process gets few of the jobs that take a few milliseconds: each message waits for four threads."""
    before = sys.getswitchinterval()
    results = as_completed(_here_and_switch_seconds, {i: i for i in range(4)}, Execution(2))
    next(results)
    here = [seconds for _, (is_here, seconds) in results if is_here]  # type: ignore[misc]  # none failed
    assert here
    assert max(here) < before / 2
    assert sys.getswitchinterval() == before
    stopped = as_completed(_here_and_switch_seconds, {1: 1, 2: 2}, Execution(2))
    next(stopped)
    stopped.close()  # type: ignore[attr-defined]  # a generator
    assert sys.getswitchinterval() == before


def _lacks_library(_: int) -> int:
    raise MissingExtraError("a library is missing")


def test_a_missing_library_ends_shared_jobs() -> None:
    with pytest.raises(MissingExtraError):
        dict(as_completed(_lacks_library, {1: 1, 2: 2, 3: 3}, Execution(2)))


# `LOADED` is the process that read this file: its own for a spawned process, the command's for a copy of it
SHARED_JOBS = """
import json, os, sys, threading, time
from collections import Counter
from pathlib import Path
from calibrant.bench.runs.executors import Execution, Failure
from calibrant.bench.runs.workers import as_completed

LOADED, FIRST_LATE_JOB, FLAG = os.getpid(), 20, Path(sys.argv[1])

def name_process(job):
    time.sleep(0.02)
    if job >= FIRST_LATE_JOB:
        if __name__ != "__main__":
            FLAG.touch()
        elif os.getpid() != LOADED:
            os._exit(7)
        deadline = time.monotonic() + 60
        while not FLAG.exists() and time.monotonic() < deadline:
            time.sleep(0.01)
    return "spawned" if __name__ != "__main__" else "here" if os.getpid() == LOADED else "copy"

if __name__ == "__main__":
    may_copy, has_thread = map(int, sys.argv[2:])
    if has_thread:
        threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
    results = as_completed(name_process, {job: job for job in range(40)}, Execution(2, may_copy=bool(may_copy)))
    print(json.dumps(Counter(r.error if isinstance(r, Failure) else r for _, r in results)))
"""


@LINUX
@pytest.mark.parametrize(("may_copy", "has_thread"), [(True, False), (True, True), (False, False)])
def test_a_process_is_copied_before_it_has_threads_and_its_successor_is_spawned(
    may_copy: bool, has_thread: bool, tmp_path: Path
) -> None:
    """A copy that ends costs its job alone; a thread of this process has jobs by then, so that no copy follows it."""
    script = tmp_path / "shared_jobs.py"
    script.write_text(SHARED_JOBS, encoding="utf-8")
    command = [sys.executable, str(script), str(tmp_path / "flag"), str(int(may_copy)), str(int(has_thread))]
    done = subprocess.run(command, env={"PYTHONPATH": str(CHECKOUT)}, capture_output=True, check=True, timeout=120)
    by_process = Counter(json.loads(done.stdout))
    assert by_process.total() == 40
    assert by_process["here"] >= 1
    assert by_process["spawned"] >= 1
    is_copied = may_copy and not has_thread
    assert (by_process["copy"] >= 1) is is_copied
    assert by_process["the worker process ended with exit code 7"] == is_copied
