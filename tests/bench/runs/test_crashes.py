"""Crashes of methods: what is recorded of them, and runs again that lose no record."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from calibrant.bench.commands.run import run_and_report
from calibrant.bench.core.registry import NAMES, benchmark, bundled_files
from calibrant.bench.protocols import make_protocol, protocols_of
from calibrant.bench.runs.jobs import Execution
from calibrant.bench.runs.records import FILE_NAME, folder_records
from calibrant.bench.runs.runner import RunSummary, Selection, run
from calibrant.bench.runs.workers import timed_answer
from calibrant.datasets import bundled_pool
from calibrant.dsl.errors import CalibrantError, MissingExtraError, UnknownItemError
from calibrant.dsl.replayscm.pools.files import write_pool
from tests.support.commands import CHECKOUT, called
from tests.support.replayscm.extensions.problems import small_problem
from tests.support.stub_protocols import DiesWarming, LacksLibrary, NeedsLibrary, Raises, Stub, small_pool

THREE_METHODS = """
import os, signal
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


@pytest.mark.parametrize("num_retried", [0, 5])
def test_retries_of_three_methods_killed_at_any_time_lose_nothing(tmp_path: Path, num_retried: int) -> None:
    """Kill -9 while crashes are run again: each key keeps a record, each outcome of the retry counts."""
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
    assert call("--retry-crashed", KILL_AFTER=str(num_retried)) == -signal.SIGKILL
    assert {record.key for record in folder_records(out)} == set(before)
    assert call() == 1  # takes over what the killed command had done, and runs nothing again
    outcomes = {record.key: record.outcome for record in folder_records(out)}
    assert outcomes.keys() == before.keys()
    assert list(outcomes.values()).count("crashed") == 3 * 4 - num_retried
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
    of, declaring = benchmark(name), set()
    pools = {"replayscm": [small_pool(["or"]).items[0], small_problem(2, rate="1/10"), small_problem(2, num_hidden=1)]}
    items = pools.get(name) or [next(iter(of.items.read_pool(bundled_pool(name)).items))]
    rows = protocols_of(of)
    for row in rows:
        protocol = make_protocol(rows, row, {})
        try:
            protocol.require()
        except MissingExtraError:
            declaring.add(row)
            continue
        for item in items:
            result = timed_answer(protocol, of.handout(item)).result
            assert result.outcome != "crashed", (row, result.provenance)
    assert declaring == (DECLARING if name == "replayscm" else set())
