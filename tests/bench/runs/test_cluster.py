"""A real scheduler and a real worker under its nanny, on loopback: what local processes do, and what they survive."""

from __future__ import annotations

import json
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING

import pytest

from calibrant.bench.cli import main
from calibrant.bench.core.registry import benchmark, bundled_files
from calibrant.bench.runs import cluster
from calibrant.bench.runs import cluster as connection
from calibrant.bench.runs.executors import Execution, Failure
from calibrant.bench.runs.records import FILE_NAME, folder_records
from calibrant.bench.runs.runner import RunSummary, run
from calibrant.bench.runs.workers import as_completed, open_executor
from calibrant.dsl.errors import CalibrantError, MissingExtraError
from calibrant.dsl.replayscm.pools.files import write_pool
from tests.bench.pools.test_bundled import draw_counting
from tests.faults.scenarios import Loopback
from tests.support.commands import jsonl, program, refused
from tests.support.effort import SOAKING
from tests.support.packages import needs
from tests.support.processes import all_end
from tests.support.stub_protocols import DiesWarming, LacksLibrary, Stub, small_pool

if TYPE_CHECKING:
    from distributed import Future


needs("distributed")

OUT_OF_BUDGET = 1.0


@pytest.fixture(scope="module")
def loopback(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Loopback]:
    checkout = Path(__file__).resolve().parents[3]
    variables = {"PYTHONPATH": str(checkout), "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "1"}
    with Loopback(tmp_path_factory.mktemp("loopback"), 1, variables) as made:
        made.wait()
        yield made


@pytest.fixture
def on_cluster(loopback: Loopback) -> Execution:
    return Execution(cluster=loopback.address)


def without_timing(folder: Path, name: str = FILE_NAME) -> list[bytes]:
    return [line.partition(b'"timing"')[0] for line in (folder / name).read_bytes().splitlines()]


def slow_half(number: int) -> float:
    time.sleep(0.05)
    return number / 2


def own_pid(number: int) -> int:
    return os.getpid()


def test_records_are_those_of_a_local_run(tmp_path: Path, on_cluster: Execution) -> None:
    write_pool(small_pool(["good", "or", "raise", "give_up", "good", "or", "good"]), tmp_path / "p.jsonl")
    for name, execution in (("local", Execution()), ("cluster", on_cluster)):
        assert run(Stub(), [tmp_path / "p.jsonl"], tmp_path / name, execution=execution) == RunSummary(0, 7, 1)
    assert without_timing(tmp_path / "cluster") == without_timing(tmp_path / "local")
    again = run(Stub(), [tmp_path / "p.jsonl"], tmp_path / "cluster", execution=on_cluster)
    assert again == RunSummary(skipped=7, written=0, crashed=1)


def test_hangs_and_deaths_under_a_nanny_cost_only_their_own_instance(tmp_path: Path, loopback: Loopback) -> None:
    behaviours = ["good", "hang", "die", "good", "or"]
    write_pool(small_pool(behaviours), tmp_path / "p.jsonl")
    execution = Execution(wall_budget=OUT_OF_BUDGET, cluster=loopback.address)
    before = loopback.worker_pids()
    summary = run(Stub(warm_up_pause=1.2), [tmp_path / "p.jsonl"], tmp_path / "out", execution=execution)
    assert summary == RunSummary(skipped=0, written=5, crashed=1)
    records = list(folder_records(tmp_path / "out"))
    expected = {"hang": "out_of_budget", "die": "crashed"}
    assert [record.outcome for record in records] == [expected.get(behaviour, "found") for behaviour in behaviours]
    assert records[1].provenance == {"stopped_by": "wall budget", "seconds": OUT_OF_BUDGET}
    assert records[2].provenance == {"error": "the worker process ended with exit code 3"}
    assert loopback.worker_pids() == before


def test_a_class_that_only_this_process_has_is_sent(tmp_path: Path, on_cluster: Execution) -> None:
    class Local(Stub, frozen=True):
        name = "local"

    write_pool(small_pool(["good", "or"]), tmp_path / "p.jsonl")
    run(Local(), [tmp_path / "p.jsonl"], tmp_path / "out", execution=on_cluster)
    assert [record.outcome for record in folder_records(tmp_path / "out")] == ["found", "found"]


def test_what_is_wrong_with_every_job_is_one_line(tmp_path: Path, on_cluster: Execution) -> None:
    write_pool(small_pool(["good", "or"]), tmp_path / "p.jsonl")
    with pytest.raises(MissingExtraError, match="a library cannot be imported"):
        run(LacksLibrary(), [tmp_path / "p.jsonl"], tmp_path / "out", execution=on_cluster)
    with pytest.raises(CalibrantError, match="die before they answer"):
        run(DiesWarming(), [tmp_path / "p.jsonl"], tmp_path / "out", execution=on_cluster)
    assert list(folder_records(tmp_path / "out")) == []


def test_audits_and_verdicts_are_those_made_here(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], loopback: Loopback
) -> None:
    write_pool(small_pool(["good", "or", "or"]), tmp_path / "p.jsonl")
    answers = [{"X3": "(and X1 X2)"}, {"X3": "(or X1 X2)"}, {"X3": "X1"}, "nothing"]  # "nothing" has no verdict there
    lines = [
        {"id": f"I{number % 3}", "sample": number, "answer": {"mechanisms": answers[number % 4]}}
        for number in range(130)  # in three groups
    ]
    predictions = jsonl(tmp_path / "predictions.jsonl", *lines)
    for where in (["--cluster", loopback.address], []):
        to = tmp_path / ("cluster" if where else "here")
        assert main(["score", str(tmp_path / "p.jsonl"), str(predictions), "--out", f"{to}.jsonl", *where]) == 0
        assert main(["audit", str(tmp_path / "p.jsonl"), "--out", str(to), *(where or ["--workers", "1"])]) == 0
        (to / "printed").write_text(capsys.readouterr().out)
    cluster, here = tmp_path / "cluster", tmp_path / "here"
    verdicts = here.with_suffix(".jsonl").read_bytes()
    assert cluster.with_suffix(".jsonl").read_bytes() == verdicts
    assert [verdicts.count(b'"trainExact": ' + value) for value in (b"true", b"false")] == [33, 65]
    assert without_timing(cluster, "audits.jsonl") == without_timing(here, "audits.jsonl") != []
    assert (cluster / "printed").read_text() == (here / "printed").read_text()


@pytest.mark.parametrize(("name", "suites", "count"), [("blickets", 3, 2), ("causalab", 2, 10), ("causim", 3, 2)])
def test_drawn_pools_are_those_drawn_here(
    name: str, suites: int, count: int, tmp_path: Path, loopback: Loopback
) -> None:
    """Ten items of a laboratory are two parts of a suite."""
    chosen = ",".join(benchmark(name).suites.names[:suites])
    line = ["generate", "--benchmark", name, "--seed", "3", "--strata", chosen, "--per-stratum", str(count)]
    for folder, where in (("cluster", ["--cluster", loopback.address]), ("here", [])):
        (tmp_path / folder).mkdir()
        assert main([*line, "--out", str(tmp_path / folder / "p.jsonl"), *where]) == 0
    drawn = (tmp_path / "here" / "p.jsonl").read_bytes()
    assert len(drawn.splitlines()) > suites
    assert (tmp_path / "cluster" / "p.jsonl").read_bytes() == drawn


def test_progress_of_a_cluster_counts_items(tmp_path: Path, loopback: Loopback) -> None:
    seen = draw_counting("causim", ["chain", "asia"], 60, (), tmp_path / "p.jsonl", Execution(cluster=loopback.address))
    assert seen == sorted(seen)
    assert (seen[0], seen[-1]) == (0, 120)
    assert len(set(seen)) > 70  # each of one suite, and programs of the other


def test_claims_are_those_made_here(capsys: pytest.CaptureFixture[str], loopback: Loopback) -> None:
    pool = str(bundled_files()["blickets"][0])
    printed = []
    for where in (["--cluster", loopback.address], []):
        assert main(["audit", pool, "--only", "easy-3-20-0", "--only", "easy-3-20-1", "--json", *where]) == 0
        printed.append(json.loads(capsys.readouterr().out))
    assert printed[0] == printed[1]
    assert {found["instance"] for found in printed[0]} == {"easy-3-20-0", "easy-3-20-1"}


def test_a_large_work_is_sent_to_each_worker_once(on_cluster: Execution) -> None:
    ballast = bytes(range(256)) * 1_000

    def long_enough(number: int) -> bool:
        return len(ballast) == number

    found = dict(as_completed(long_enough, {"same": len(ballast), "other": 1}, on_cluster))
    assert found == {"same": True, "other": False}


def mallocs_setting(number: int) -> str | None:
    return os.environ.get("MALLOC_TRIM_THRESHOLD_")


def test_a_job_keeps_its_memory_although_the_nanny_has_its_worker_return_it(on_cluster: Execution) -> None:
    from dask import config

    assert config.get("distributed.nanny.pre-spawn-environ.MALLOC_TRIM_THRESHOLD_")
    assert dict(as_completed(mallocs_setting, {"a": 1}, on_cluster)) == {"a": None}


def kills_its_worker(number: int) -> int:
    if number == 2:
        os.kill(os.getppid(), signal.SIGKILL)
        time.sleep(60.0)
    return number


def test_a_job_that_kills_its_worker_costs_none_of_those_it_was_handed_out_with(on_cluster: Execution) -> None:
    found = dict(as_completed(kills_its_worker, {number: number for number in range(6)}, on_cluster))
    failed = found.pop(2)
    assert failed == Failure("crashed", "the workers that had it died, one after the other")
    assert found == {number: number for number in (0, 1, 3, 4, 5)}


def test_other_versions_are_refused(on_cluster: Execution, monkeypatch: pytest.MonkeyPatch) -> None:
    ours = {"Python": "3.99", "numpy": "1.0"}
    monkeypatch.setattr("calibrant.bench.runs.cluster.versions", lambda: ours)
    with pytest.raises(
        CalibrantError,
        match=r"^Python 3\.99 here, 3\.\d+ there, at the worker tcp://127\.0\.0\.1:\d+; install the same",
    ):
        dict(as_completed(slow_half, {"a": 1}, on_cluster))


def test_a_killed_worker_loses_nothing_and_its_process_ends_with_it(loopback: Loopback) -> None:
    execution = Execution(cluster=loopback.address)
    (doing,) = dict(as_completed(own_pid, {"a": 1}, execution)).values()
    assert isinstance(doing, int)
    killed = False
    found: dict[int, float | Failure] = {}
    for key, result in as_completed(slow_half, {number: number for number in range(20)}, execution):
        assert key not in found
        found[key] = result
        if len(found) >= 4 and not killed:
            (worker,) = loopback.worker_pids()
            os.kill(worker, signal.SIGKILL)
            killed = True
    assert found == {number: number / 2 for number in range(20)}
    assert all_end([doing], 30.0)


def test_a_result_that_goes_down_with_its_worker_is_made_again(
    loopback: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    ends: list[Future] = []
    seen, whole = list[str](), cluster._drain
    monkeypatch.setattr(connection, "COUNT_SECONDS", 0.1)

    def drained(done: SimpleQueue[Future], seconds: float) -> list[Future]:
        ended = whole(done, seconds)
        ends.extend(ended)
        if ended and not seen:
            for worker in loopback.worker_pids():
                os.kill(worker, signal.SIGKILL)
            while ended[0].status == "finished":
                time.sleep(0.01)
            seen.append(ended[0].status)
        return ended

    monkeypatch.setattr(cluster, "_drain", drained)
    assert dict(as_completed(slow_half, {"a": 1, "b": 2}, Execution(cluster=loopback.address))) == {"a": 0.5, "b": 1.0}
    assert len(seen) == 1
    assert len(ends) == len(set(ends))  # nobody asks without a pause whether it is made again


def test_a_result_that_goes_down_while_it_is_fetched_ends_nothing(
    loopback: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    from distributed import KilledWorker

    client = connection.connect(loopback.address).client
    whole, fetched = client.gather, list[int]()

    def gather(futures: list[Future]) -> object:
        fetched.append(len(futures))
        if futures and sum(fetched) == len(futures):
            raise KilledWorker("a", None, 1)  # as if the workers had died that were to make one of them again
        return whole(futures)

    monkeypatch.setattr(client, "gather", gather)
    monkeypatch.setattr(connection, "COUNT_SECONDS", 0.1)
    assert dict(as_completed(slow_half, {"a": 1, "b": 2}, Execution(cluster=loopback.address))) == {"a": 0.5, "b": 1.0}
    assert sum(fetched) > 2


def test_a_scheduler_that_is_lost_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with Loopback(tmp_path, 0) as made:
        made.wait()
        client = connection.connect(made.address).client
        monkeypatch.setattr("calibrant.bench.runs.cluster.NOTICE_SECONDS", 0.5)
        with open_executor(print, Execution(cluster=made.address)) as executor:
            killer = threading.Timer(2.5, made.scheduler.kill)
            killer.start()
            with pytest.raises(CalibrantError) as caught:
                dict(executor.as_completed(slow_half, {"a": 1}))
            killer.join()
        lost = f"the scheduler at {made.address} is lost; start it again, then the same command goes on from here"
        assert str(caught.value) == lost
        assert client.status == "closed"  # else its thread goes on trying to reconnect
        waiting = f"no workers at {made.address}; waiting for one: dask worker {made.address} --nthreads 1\n"
        assert capsys.readouterr().err == waiting
        write_pool(small_pool(["good"]), tmp_path / "p.jsonl")
        monkeypatch.setattr("calibrant.bench.runs.cluster.CONNECT_SECONDS", 1.0)
        line = ["run", "exact", tmp_path / "p.jsonl", "--out", tmp_path / "out", "--cluster", made.address]
        assert refused(capsys, *line).startswith(f"no scheduler answers at {made.address} in 1 seconds: ")


def test_what_is_no_address_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_pool(small_pool(["good"]), tmp_path / "p.jsonl")
    line = ["run", "exact", str(tmp_path / "p.jsonl"), "--out", str(tmp_path / "out"), "--cluster"]
    for address in ("localhost", "http://a:1", "tcp://a", "tcp://a b:1"):
        told = refused(capsys, *line, address)
        assert told == f"'{address}' is no address of a cluster; give tcp://HOST:PORT or tls://HOST:PORT"
    monkeypatch.delenv("DASK_DISTRIBUTED__COMM__TLS__CLIENT__CERT", raising=False)
    assert refused(capsys, *line, "tls://127.0.0.1:1").startswith("tls://127.0.0.1:1: no certificate to show; ")
    assert "one of --cluster and --workers" in refused(capsys, *line, "tcp://a:1", "--workers", "2")


# --- `--cluster` at the address of something that is no scheduler: one line within ten seconds, no hang, no traceback
needs("distributed")

MAX_SECONDS = 10.0  # of the processor; about 1.5, beside at most 4 of waiting
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


ASK_EACH = """
import sys, time
from calibrant.bench.cli import main
for address in sys.argv[3:]:
    start = time.process_time()
    code = main(["run", "exact", sys.argv[1], "--out", sys.argv[2], "--cluster", address])
    print(code, time.process_time() - start, flush=True)
"""


@pytest.mark.soak
def test_what_is_no_scheduler_is_one_line(tmp_path: Path) -> None:
    """In a process of its own, with what libraries say on standard error; one for all servers, which starts once.

    In a soak of those too that begin, as HTTP does, with a number of frames that is beyond all bounds.
    """
    names = [*SERVERS] if SOAKING else [name for name in SERVERS if name not in ("ssh", "ones")]
    write_pool(small_pool(["good"]), tmp_path / "p.jsonl")
    out = tmp_path / "out"
    with ExitStack() as servers:
        addresses = [servers.enter_context(_server(answer)) for answer in map(SERVERS.__getitem__, names)]
        done = program("-c", ASK_EACH, tmp_path / "p.jsonl", out, *addresses)
    costs = [line.split() for line in done.stdout.splitlines()]
    assert [code for code, _ in costs] == ["2"] * len(names), done
    assert max(float(seconds) for _, seconds in costs) < MAX_SECONDS, done
    told = done.stderr.splitlines()
    assert len(told) == len(names), done
    for name, address, line in zip(names, addresses, told, strict=True):
        assert address in line, (name, done)
        assert "scheduler" in line, (name, done)
    assert not (out / "records.jsonl").exists() or not (out / "records.jsonl").read_bytes()
