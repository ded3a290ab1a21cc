"""`generate` and `harden` on ReplaySCM: pools, latent SCMs in files, what is written and said."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from calibrant.audits.replayscm.ambiguity import gold_class
from calibrant.audits.replayscm.hardening.harden import counterexample_worlds
from calibrant.bench.cli import main
from calibrant.bench.core.registry import bundled_files, bundled_pool
from calibrant.bench.replayscm.appendix.facts import read_pool_facts
from calibrant.bench.replayscm.audit.separations import submitted_scm
from calibrant.bench.replayscm.pools.unfinished import Made, unfinished_pool
from calibrant.bench.runs.executors import Execution, Failure
from calibrant.bench.runs.records import folder_records
from calibrant.bench.runs.workers import as_completed
from calibrant.dsl.records import file_digest
from calibrant.dsl.replayscm.item import Pool, TaskKind
from calibrant.dsl.replayscm.pools.files import read_pool, write_pool
from calibrant.dsl.replayscm.scm import Scm
from calibrant.dsl.replayscm.score import Evaluator
from calibrant.solvers.replayscm.space import VersionSpace
from tests.support.commands import CHECKOUT, called, refused
from tests.support.effort import effort
from tests.support.replayscm.pools import ALL_ROWS, audited, dev_problems, two_bundled, with_a_wide_gold, written_pool
from tests.support.shared import shared_file
from tests.support.stub_protocols import small_pool

# --- Hardening and generation go on where they were stopped, and write the same bytes as if they had not been ---------


def instances(path: Path, number: int) -> Path:
    """Return the first so many instances of a bundled Hidden-order pool."""
    lines = bundled_pool("hidden-order").read_text(encoding="utf-8").splitlines(keepends=True)
    path.write_text("".join(lines[: number + 1]), encoding="utf-8")
    return path


def harden_line(folder: Path, name: str, number: int = 4) -> tuple[list[str], Path, Path]:
    """Return the command, the pool that it writes and a second file that it writes."""
    pool, out, report = folder / f"pool{number}.jsonl", folder / f"{name}.jsonl", folder / f"{name}_report.jsonl"
    instances(pool, number)
    return ["harden", str(pool), "--out", str(out), "--report", str(report), "--seed", "3"], out, report


def generate_line(folder: Path, name: str) -> tuple[list[str], Path, Path]:
    out, audits = folder / f"{name}.jsonl", folder / f"{name}_audits.jsonl"
    line = ["generate", "--strata", "hs_n6_easy_calibration,hs_n8_bridge", "--per-stratum", "2", "--seed", "7"]
    return [*line, "--out", str(out), "--audits", str(audits)], out, audits


Line = Callable[[Path, str], tuple[list[str], Path, Path]]


def records(out: Path) -> Path:
    return out.with_name(f"{out.name}.unfinished") / "instances.jsonl"


def whole_lines(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0


BOTH = [(harden_line, "2"), (generate_line, "1")]


@pytest.mark.soak
@pytest.mark.parametrize(("made_by", "workers"), effort(BOTH, [*BOTH, (harden_line, "1"), (generate_line, "2")]))
def test_a_killed_command_goes_on_and_writes_the_same_bytes(made_by: Line, workers: str, tmp_path: Path) -> None:
    """Records are kept and read by one class whoever makes them and with how many processes; all four in a soak."""
    line, out, more = made_by(tmp_path, "whole")
    assert main([*line, "--workers", "1"]) == 0
    whole = out.read_bytes(), more.read_bytes()
    line, out, more = made_by(tmp_path, "killed")
    slow = (  # a pause before each line is appended leaves time to be killed between two of them
        "import sys, time\nfrom calibrant.bench.runs.records import JsonlFile\n"
        "from calibrant.bench.cli import main\n"
        "append = JsonlFile.append\ndef slowly(self, record):\n    append(self, record)\n    time.sleep(0.3)\n"
        "JsonlFile.append = slowly\nif __name__ == '__main__':\n    sys.exit(main(sys.argv[1:]))\n"
    )
    script = tmp_path / "slow.py"
    script.write_text(slow, encoding="utf-8")
    process = subprocess.Popen(
        [sys.executable, str(script), *line, "--workers", workers],
        env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
        start_new_session=True,
        stderr=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 90
    while whole_lines(records(out)) < 2:
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    kept = whole_lines(records(out))
    assert not out.exists()
    first = records(out).read_bytes()[:-30]  # and the last line is torn
    records(out).write_bytes(first)
    assert main([*line, "--workers", workers]) == 0
    assert (out.read_bytes(), more.read_bytes()) == whole
    assert kept >= 2
    assert not records(out).parent.exists()


def test_what_is_there_is_not_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    line, out, _ = harden_line(tmp_path, "again")
    calls: list[str] = []
    honest = as_completed

    def stops(make: Callable[[object], Made], jobs: dict[object, object], execution: Execution) -> object:
        for index, found in enumerate(honest(make, jobs, execution)):
            calls.append(str(found[0]))
            yield found
            if index == 1:
                raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("calibrant.bench.replayscm.pools.unfinished.as_completed", stops)
        assert main([*line, "--workers", "1"]) == 130
    assert len(calls) == whole_lines(records(out)) == 2
    kept = records(out).read_bytes()
    other = [*line[:-1], "4"]  # another seed is other work: it starts from nothing, and leaves the first alone
    with monkeypatch.context() as patched:
        patched.setattr("calibrant.bench.replayscm.pools.unfinished.as_completed", stops)
        assert main([*other, "--workers", "1"]) == 130
    assert len(calls) == whole_lines(records(out)) == 4
    assert records(out).read_bytes().startswith(kept)
    pending: list[int] = []

    def counts(make: Callable[[object], Made], jobs: dict[object, object], execution: Execution) -> object:
        pending.append(len(jobs))
        return honest(make, jobs, execution)

    with monkeypatch.context() as patched:
        patched.setattr("calibrant.bench.replayscm.pools.unfinished.as_completed", counts)
        assert main([*line, "--workers", "1"]) == 0
    assert pending == [2]
    assert len(read_pool(out)) == 4


def test_a_crash_is_one_line_and_costs_one_instance(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    line, out, report = harden_line(tmp_path, "crash")
    honest = counterexample_worlds

    def crashes(problem: object, seed: int, **more: object) -> object:
        if getattr(problem, "id", "") == crashing:
            raise RuntimeError("no\nidea")
        return honest(problem, seed, **more)  # type: ignore[arg-type]

    crashing = read_pool(tmp_path / "pool4.jsonl").problems[1].id
    with monkeypatch.context() as patched:
        patched.setattr("calibrant.bench.replayscm.hardening.counterexample_worlds", crashes)
        told = refused(capsys, *line, "--workers", "1")
    assert told == f"{crashing}: RuntimeError: no idea; nothing is written, what is done is kept"
    assert not out.exists()
    assert not report.exists()
    assert whole_lines(records(out)) == 3
    assert main([*line, "--workers", "1"]) == 0


def test_a_record_that_is_none_and_a_place_that_is_none_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line, out, _ = harden_line(tmp_path, "broken")
    records(out).parent.mkdir()
    for text in ("{}\n", "{}", '{"work":"x"}\nmine'):  # the last line may be torn, but not be somebody else's
        records(out).write_text(text, encoding="utf-8")
        assert "not a record of an unfinished pool" in refused(capsys, *line)
        assert records(out).read_text(encoding="utf-8") == text
    for place, reason in ((tmp_path / "none" / "out.jsonl", "no such folder"), (tmp_path, "it is a folder")):
        changed = [*line[:3], str(place), *line[4:]]
        assert refused(capsys, *changed).endswith(f"{place}: {reason}")
    assert not (tmp_path / "none").exists()


def test_two_writers_are_one_too_many(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line, out, _ = harden_line(tmp_path, "two")
    with unfinished_pool(out, {}):
        assert "another unfinished pool is writing there" in refused(capsys, *line)


def halved(number: int) -> float:
    """Dies of 7 and cannot do 0; any other number is halved."""
    if number == 7:
        os._exit(3)
    if number == 8:
        time.sleep(60)
    return number / (2 if number else 0)


def test_jobs_fail_alone() -> None:
    found = dict(as_completed(halved, {name: n for n, name in enumerate("abc")}))
    assert found == {"a": Failure("crashed", "ZeroDivisionError: division by zero"), "b": 0.5, "c": 1.0}
    apart = dict(as_completed(halved, {n: n for n in (0, 1, 2, 7, 8)}, Execution(2, 5.0)))
    assert (apart[0], apart[1], apart[2]) == (Failure("crashed", "ZeroDivisionError: division by zero"), 0.5, 1.0)
    died = apart[7]
    assert isinstance(died, Failure)
    assert died.error.startswith("the worker process ended")
    assert apart[8] == Failure("out_of_budget", "not done in 5.0 seconds")


def test_generation_errors_are_one_line(tmp_path: Path) -> None:
    done = called("generate", "--strata", "t1_clean_hard", "--seed", "1", "--out", tmp_path / "no" / "pool.jsonl")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"error  {tmp_path / 'no' / 'pool.jsonl'}: no such folder\n"


def test_the_summary_names_the_published_numbers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line, _, report = harden_line(tmp_path, "summary", 2)
    assert main([*line, "--workers", "1"]) == 0
    printed = capsys.readouterr().out
    (before, after), (before2, after2) = [json.loads(text)["worlds"] for text in report.read_text().splitlines()]
    middle = [(one + other) / 2 for one, other in ((before, before2), (after - before, after2 - before2))]
    assert f"training worlds, median: {middle[0]:g} before, {middle[1]:g} added (up to " in printed
    assert "14.27 on average after, 11-23 (paper, Tables B.1, F.2)" in printed


# --- `calibrant pool alternatives`: Alternative-SCM items of pools that ask for an SCM --------------------------------


def test_items_keep_the_evidence_and_their_known_answer_succeeds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, made, again = (tmp_path / name for name in ("source.jsonl", "made.jsonl", "again.jsonl"))
    problems = dev_problems("hidden_order")[:6]
    write_pool(Pool("source", problems), source)
    assert main(["pool", "alternatives", str(source), str(made), "--seed", "3"]) == 0
    assert capsys.readouterr().err.splitlines()[0] == f"6 instances written to {made}"
    items = read_pool(made).problems
    for item, problem in zip(items, problems, strict=True):
        assert item.task.kind is TaskKind.ALTERNATIVE
        assert (item.task.training, item.task.disclosure) == (problem.task.training, problem.task.disclosure)
        assert item.sealed.heldout == problem.sealed.heldout
        score = Evaluator(item).score_answer(json.loads(item.sealed.labels["known_answer"]))
        assert score.to_dict()["jointSuccess"] is True
        assert score.to_dict()["experimentOptimality"] == 1.0
    assert main(["pool", "alternatives", str(source), str(again), "--seed", "3"]) == 0
    assert again.read_bytes() == made.read_bytes()


def test_items_of_discovered_alternatives_state_whose_answers_they_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, made, runs, file = (tmp_path / name for name in ("source.jsonl", "made.jsonl", "runs", "found.jsonl"))
    problems = dev_problems("hidden_order")[:6]
    write_pool(Pool("source", problems), source)
    assert main(["run", "first-found,majority", str(source), "--out", str(runs), "--workers", "1"]) == 0
    capsys.readouterr()
    assert main(["pool", "alternatives", str(source), str(made), "--from", str(runs)]) == 0
    assert f"written to {made}" in capsys.readouterr().err
    items = read_pool(made).problems
    assert items
    answers = {record.instance: record.answer for record in folder_records(runs) if record.protocol == "first-found"}
    for item in items:
        assert json.loads(item.sealed.labels["alternative_sources"]) == ["first-found"]
        answer = submitted_scm(item, {"mechanisms": answers[item.id.removesuffix("__ALT_EXP")]["mechanisms"]})
        gold, reference = item.sealed.gold, item.task.reference
        assert isinstance(answer, Scm)
        assert gold is not None
        assert reference is not None
        assert {"gold": gold, "alternative": answer}[item.sealed.labels["reference_role"]].equivalent(reference)
        known = json.loads(item.sealed.labels["known_answer"])
        assert Evaluator(item).score_answer(known).to_dict()["jointSuccess"] is True
    assert main(["alternatives", str(runs), "--out", str(file)]) == 0
    assert main(["pool", "alternatives", str(source), str(tmp_path / "again.jsonl"), "--from", str(file)]) == 0
    assert (tmp_path / "again.jsonl").read_bytes() == made.read_bytes()
    capsys.readouterr()
    file.write_text('{"instance": "a", "mechanisms": {}, "systems": "one"}\n', encoding="utf-8")
    line = refused(capsys, "pool", "alternatives", source, tmp_path / "other.jsonl", "--from", file)
    assert "line 1: 'systems' is 'one', not an array of names" in line


def test_instances_without_a_second_scm_are_named_and_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two roots, one mechanism of two parents seen in all four rows: nothing else fits."""
    source, made = tmp_path / "source.jsonl", tmp_path / "made.jsonl"
    write_pool(small_pool(["good"]), source)
    assert main(["pool", "alternatives", str(source), str(made)]) == 0
    assert capsys.readouterr().err.splitlines()[:2] == [
        "I0: no other SCM that a single intervention tells apart",
        f"0 instances written to {made}",
    ]


def test_open_ended_items_have_gold_as_reference_and_no_known_answer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, made = tmp_path / "source.jsonl", tmp_path / "made.jsonl"
    write_pool(small_pool(["good"]), source)
    assert main(["pool", "alternatives", str(source), str(made), "--open-ended"]) == 0
    assert capsys.readouterr().err.splitlines()[0] == f"1 instance written to {made}"
    (item,), (problem,) = read_pool(made).problems, read_pool(source).problems
    assert item.task.reference == problem.sealed.gold
    assert item.task.training == problem.task.training
    assert "known_answer" not in item.sealed.labels
    facts = read_pool_facts([made])
    assert facts.sources == {}  # an open-ended case of Table G.2


def test_pools_of_other_tasks_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "source.jsonl"
    write_pool(Pool("source", dev_problems("hidden_roots")[:1]), source)
    line = refused(capsys, "pool", "alternatives", source, tmp_path / "made.jsonl")
    assert line.endswith("has no gold SCM, hides its roots or has a reference")
    assert not (tmp_path / "made.jsonl").exists()


# --- Latent SCMs as pool files state them, apart from the names of instances ------------------------------------------
def test_labels_of_the_file_name_the_latents_and_other_benchmarks_are_passed_over(tmp_path: Path) -> None:
    files = bundled_files()
    header, *lines = files["replayscm"][0].read_text(encoding="utf-8").splitlines()
    records = [json.loads(line) for line in lines]
    records[0]["sealed"].setdefault("labels", {})["latent"] = "L7"
    records[1]["sealed"].setdefault("labels", {}).pop("latent", None)
    changed = tmp_path / "changed.jsonl"
    changed.write_text("\n".join([header, *map(json.dumps, records[:2])]) + "\n", encoding="utf-8")
    latents = read_pool_facts([files["causim"][0], changed]).latents
    assert latents == {(file_digest(changed), records[0]["id"]): "L7"}


# --- harden and generate as commands: what they write, what they say, and their exit codes ----------------------------
@pytest.fixture
def bundled(tmp_path: Path) -> Path:
    return two_bundled(tmp_path / "two.jsonl")


@pytest.fixture
def wide(tmp_path: Path) -> Path:
    return with_a_wide_gold(tmp_path / "wide.jsonl")


def test_harden_until_one_member_is_left_and_certify_it(
    bundled: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, report, folder = tmp_path / "hard.jsonl", tmp_path / "report.jsonl", tmp_path / "certificates"
    line = ["harden", str(bundled), "--out", str(out), "--report", str(report), "--seed", "5", "--workers", "1"]
    assert main([*line, "--certificates", str(folder)]) == 0
    first = out.read_bytes()
    again = [str(tmp_path / "again.jsonl") if word == str(out) else word for word in line[:-6]]
    assert main([*again, "--seed", "5", "--workers", "1"]) == 0
    assert (tmp_path / "again.jsonl").read_bytes() == first
    before, after = read_pool(bundled), read_pool(out)
    for old, new, text in zip(before.problems, after.problems, report.read_text().splitlines(), strict=True):
        told = json.loads(text)
        worlds = old.task.training.worlds, new.task.training.worlds
        assert worlds[1][: len(worlds[0])] == worlds[0]
        assert told["worlds"] == [len(worlds[0]), len(worlds[1])]
        assert new.sealed.heldout == old.sealed.heldout
        assert (told["outcome"], told["members"][1]) == ("reached", "1")
    capsys.readouterr()
    assert main(["verify", *map(str, sorted(folder.iterdir())), str(out)]) == 0
    assert main(["audit", str(out), "--fail-on", "ambiguous", "--workers", "1"]) == 0
    assert main(["audit", str(bundled), "--fail-on", "ambiguous", "--workers", "1"]) == 1


def test_harden_until_all_members_replay_the_held_out_worlds(
    bundled: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, report = tmp_path / "hard.jsonl", tmp_path / "report.jsonl"
    line = ["harden", str(bundled), "--out", str(out), "--report", str(report), "--workers", "1"]
    assert main([*line, "--goal", "heldout-agreement"]) == 0
    told = [json.loads(text) for text in report.read_text(encoding="utf-8").splitlines()]
    assert [one["outcome"] for one in told] == ["reached"] * 2
    for problem in read_pool(out).problems:
        space = VersionSpace(problem.task, gold_class(problem))
        assert space.agreement(problem.sealed.heldout.worlds) == 1
    assert read_pool(out).metadata["hardened"]["goal"] == "heldout-agreement"
    capsys.readouterr()
    other = ["harden", bundled, "--out", tmp_path / "other.jsonl", "--goal", "heldout-agreement"]
    assert "--goal: it needs --mode cex" in refused(capsys, *other, "--mode", "extra-worlds")


def test_harden_until_named_searches_discover_no_alternative(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same searches are then run by the commands on the written items, and find gold alone."""
    pool = tmp_path / "bridges.jsonl"
    write_pool(Pool("bridges", read_pool(bundled_pool("hidden-order")).problems[6:7]), pool)
    out, report, runs = tmp_path / "hard.jsonl", tmp_path / "report.jsonl", tmp_path / "runs"
    searches = ["--goal", "no-discovered", "--searches", "exact,bnlearn+dsl", "--seeds", "2"]
    line = ["harden", str(pool), "--out", str(out), "--report", str(report), "--workers", "1"]
    assert main([*line, *searches]) == 0
    assert "last round, which discovered none: bnlearn+dsl 2 found, exact 1 found" in capsys.readouterr().out
    lines = [json.loads(text) for text in report.read_text(encoding="utf-8").splitlines()]
    assert [line["outcome"] for line in lines] == ["reached"]
    separated = [entry for line in lines for entry in line["discovered"]]
    assert {entry["search"] for entry in separated} <= {"exact", *(f"bnlearn+dsl, seed {k}" for k in range(2))}
    assert separated
    assert all(entry["world"] for entry in separated)
    assert read_pool(out).metadata["hardened"]["searches"] == {"names": "exact,bnlearn+dsl", "num_seeds": 2}

    def discovered(path: Path, folder: Path) -> str:
        assert main(["run", "exact", str(path), "--out", str(folder), "--workers", "1"]) == 0
        file = folder.with_suffix(".jsonl")
        assert main(["alternatives", str(folder), "--out", str(file), "--sweep", str(path), "--seeds", "2"]) == 0
        return file.read_text(encoding="utf-8")

    assert discovered(pool, tmp_path / "before") != ""
    assert discovered(out, runs) == ""
    capsys.readouterr()
    other = ["harden", pool, "--out", tmp_path / "other.jsonl"]
    assert "--searches: it needs --goal no-discovered" in refused(capsys, *other, "--searches", "exact")
    unknown = refused(capsys, *other, "--goal", "no-discovered", "--searches", "nobody")
    assert "nobody" in unknown
    assert "exact" in unknown


def test_harden_says_by_its_exit_code_whether_every_instance_got_there(
    wide: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, report = tmp_path / "hard.jsonl", tmp_path / "report.jsonl"
    line = ["harden", str(wide), "--out", str(out), "--report", str(report), "--workers", "1"]
    strict = ["--only", "CAL_vhs_n9_dense_strict_20000001"]
    assert main([*line, *strict, "--max-parents", "4"]) == 1
    printed = capsys.readouterr()
    assert "1 impossible" in printed.out
    assert "has 5 functional parents in gold" in printed.err
    (unchanged,) = read_pool(out).problems
    assert unchanged in read_pool(wide).problems
    first = tmp_path / "first.jsonl"
    assert main(["harden", str(wide), "--out", str(first), "--workers", "1", "--limit", "1"]) == 0
    assert [problem.id for problem in read_pool(first).problems] == [read_pool(wide).problems[0].id]
    assert read_pool(first).metadata["hardened"]["instances"] == [read_pool(wide).problems[0].id]


def test_worlds_that_do_not_suffice_are_kept_and_the_exit_code_is_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pool = shared_file("thr2.jsonl", part="replayscm/adversarial")
    out, report = tmp_path / "hard.jsonl", tmp_path / "report.jsonl"
    line = ["harden", str(pool), "--out", str(out), "--report", str(report), "--seed", "1", "--workers", "1"]
    assert main(line) == 1
    assert "1 out of budget" in capsys.readouterr().out
    (told,) = [json.loads(text) for text in report.read_text(encoding="utf-8").splitlines()]
    assert told["outcome"] == "out_of_budget"
    assert told["worlds"][1] > told["worlds"][0]
    assert len(read_pool(out).problems[0].task.training.worlds) == told["worlds"][1]


def test_harden_without_gold_is_a_failed_check(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pool = written_pool(tmp_path / "p.jsonl", [ALL_ROWS])
    header, text = pool.read_text(encoding="utf-8").splitlines()
    record = json.loads(text)
    del record["sealed"]["gold"]
    pool.write_text(f"{header}\n{json.dumps(record)}\n", encoding="utf-8")
    out = tmp_path / "hard.jsonl"
    assert main(["harden", str(pool), "--out", str(out), "--workers", "1"]) == 1
    assert "I0: failed: problem 'I0' has no gold SCM" in capsys.readouterr().err
    assert read_pool(out).problems == read_pool(pool).problems
    (audit,) = audited(capsys, pool)  # what needs gold is left out, and says so; counts do not
    assert audit["findings"]["left_out"].keys() == {"exposure", "bounded", "coverage"}
    assert audit["findings"]["classes"][0]["members"] == "1"


def test_generate_writes_a_pool_and_its_audits(tmp_path: Path) -> None:
    """With two workers; tests/audits/replayscm/generation compares their bytes with those of one."""
    out, audits = tmp_path / "made.jsonl", tmp_path / "audits.jsonl"
    line = ["generate", "--strata", "hs_n6_easy_calibration", "--per-stratum", "1", "--seed", "7"]
    assert main([*line, "--out", str(out), "--audits", str(audits), "--workers", "2"]) == 0
    pool = read_pool(out)
    assert [problem.stratum for problem in pool.problems] == ["hs_n6_easy_calibration"]
    audited_ids = [json.loads(line)["id"] for line in audits.read_text().splitlines()]
    assert audited_ids == [problem.id for problem in pool.problems]


def test_generate_names_the_strata_that_there_are(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = refused(capsys, "generate", "--strata", "none", "--seed", "1", "--out", tmp_path / "g.jsonl")
    assert "hs_n6_easy_calibration" in line


def test_items_that_ask_for_an_alternative_are_not_hardened(
    bundled: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    items, out = tmp_path / "items.jsonl", tmp_path / "out.jsonl"
    assert main(["pool", "alternatives", str(bundled), str(items)]) == 0
    assert main(["harden", str(items), "--out", str(out), "--workers", "1"]) == 1
    assert "failed: it asks for an alternative to a reference" in capsys.readouterr().err
    assert read_pool(out).problems == read_pool(items).problems


def test_generated_pools_have_their_audits_beside_them(tmp_path: Path) -> None:
    """From the command line on, hardening included: the files that it names are there and agree."""
    out = tmp_path / "pool.jsonl"
    line = ["generate", "--strata", "hs_n6_easy_calibration", "--per-stratum", "1", "--seed", "7", "--workers", "1"]
    assert main([*line, "--out", str(out)]) == 0
    (told,) = (tmp_path / "pool.audits.jsonl").read_text(encoding="utf-8").splitlines()
    assert json.loads(told)["id"] == read_pool(out).problems[0].id
