"""Audits of every benchmark as they are recorded and resumed; `harden --alternatives`."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

import pytest

from calibrant.bench.cli import main
from calibrant.bench.core.registry import NAMES, benchmark, bundled_files, bundled_pool
from calibrant.bench.replayscm.alternatives import FoundModels, meaning_of
from calibrant.bench.runs.records import FILE_NAME, Record, Timing, folder_records
from calibrant.dsl.formulas.text import render
from calibrant.dsl.replayscm.disclosure import HiddenOrder
from calibrant.dsl.replayscm.item import Pool, Problem
from calibrant.dsl.replayscm.pools.files import read_pool, write_pool
from calibrant.dsl.replayscm.reference import replays_exactly
from calibrant.dsl.replayscm.scm import Scm
from calibrant.dsl.replayscm.score import Evaluator
from calibrant.dsl.text import plural
from calibrant.solvers.replayscm.members import sample_members
from calibrant.solvers.replayscm.space import ModelClass, VersionSpace
from tests.support.commands import CHECKOUT, called, jsonl, program, refused
from tests.support.effort import effort
from tests.support.replayscm.pools import ALL_ROWS, FOUR_MEMBERS, dev_problems, written_pool
from tests.support.replayscm.written import written_problem, written_scm, written_world

# --- Audits of every benchmark: recorded as they are made, resumed after a kill, shown as a page, failing where
# asked
NUM_ITEMS = {"replayscm": 3, "blickets": 8, "causalab": 5, "causim": 8, "logic": 8}
FIRST = {"blickets": 12}  # earlier items of the pool have no finding
FINDING_NAMES = [name for name in NAMES if name != "replayscm"]
KILLED_AFTER_TWO = """
import os, signal, sys
from calibrant.bench.cli import main
from calibrant.bench.runs.records import JsonlFile

append, appended = JsonlFile.append, []

def append_and_die(self, record):
    append(self, record)
    appended.append(record)
    if len(appended) == 2:
        os.kill(os.getpid(), signal.SIGKILL)

JsonlFile.append = append_and_die
sys.exit(main(sys.argv[1:]))
"""


def pool_of(name: str, folder: Path) -> Path:
    """Write some items of a bundled pool."""
    path, first = folder / "pool.jsonl", FIRST.get(name, 0)
    with bundled_files()[name][0].open(encoding="utf-8") as lines:
        header = next(lines)
        path.write_text("".join([header, *islice(lines, first, first + NUM_ITEMS[name])]), encoding="utf-8")
    return path


def records_of(folder: Path) -> list[dict[str, Any]]:
    text = (folder / "audits.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def without_timing(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{key: value for key, value in record.items() if key != "timing"} for record in records]


def test_a_kill_leaves_the_records_that_are_there(tmp_path: Path) -> None:
    script, out = tmp_path / "killed.py", tmp_path / "out"
    script.write_text(KILLED_AFTER_TWO, encoding="utf-8")
    line = ("audit", pool_of("blickets", tmp_path), "--workers", "1", "--out", out)
    assert program(script, *line, env={**os.environ, "PYTHONPATH": str(CHECKOUT)}).returncode == -signal.SIGKILL
    assert (out / "audits.jsonl").read_bytes().count(b"\n") == 2
    called(*line[:-1], tmp_path / "whole")
    assert without_timing(records_of(out)) == without_timing(records_of(tmp_path / "whole"))[:2]


@pytest.mark.parametrize("name", NAMES)
def test_an_audit_resumes_with_what_it_had(name: str, tmp_path: Path) -> None:
    """After two records and a torn one, as a kill leaves them, of the last items, which may have been done first."""
    pool = pool_of(name, tmp_path)
    line = ["audit", str(pool), "--workers", "1"]
    whole, begun = called(*line, "--out", tmp_path / "whole"), tmp_path / "begun"
    before = b"".join((tmp_path / "whole" / "audits.jsonl").read_bytes().splitlines(keepends=True)[-2:])
    begun.mkdir()
    (begun / "audits.jsonl").write_bytes(before + b'{"pool":"torn')
    resumed = called(*line, "--out", begun)
    assert (resumed.returncode, resumed.stdout) == (whole.returncode, whole.stdout)
    assert f"{plural(NUM_ITEMS[name] - 2, 'instances')} audited, 2 had a record already" in resumed.stderr
    assert set(before.splitlines()) < set((begun / "audits.jsonl").read_bytes().splitlines())  # as they were
    assert without_timing(records_of(begun)) == without_timing(records_of(tmp_path / "whole"))
    again = called(*line, "--out", begun)
    assert again.stdout == whole.stdout
    assert f"0 instances audited, {NUM_ITEMS[name]} had a record already" in again.stderr


@pytest.mark.soak
@pytest.mark.parametrize("name", FINDING_NAMES)
def test_records_hold_the_findings_that_are_printed(name: str, tmp_path: Path) -> None:
    """By two workers of one benchmark, or of each in a soak."""
    pool = pool_of(name, tmp_path)
    workers = effort(1 + (name == FINDING_NAMES[0]), 2)
    printed = called("audit", pool, "--out", tmp_path / "audits", "--json", "--workers", workers)
    records = records_of(tmp_path / "audits")
    items = benchmark(name).items.read_pool(pool).items
    assert [record["instance"] for record in records] == [item.id for item in items]
    listed = json.loads(printed.stdout)
    findings = [{key: one[key] for key in one.keys() - {"state", "fit", "reason"}} for one in listed if one["kind"]]
    assert [finding for record in records for finding in record["findings"]] == findings != []
    assert {one["instance"]: one["reason"] for one in listed} == {r["instance"]: r["why"]["reason"] for r in records}
    assert called("audit", pool, "--json").stdout == printed.stdout


@pytest.mark.parametrize("name", FINDING_NAMES)
def test_a_page_shows_every_item_and_finding(name: str, tmp_path: Path) -> None:
    pool = pool_of(name, tmp_path)
    header, first, *others = pool.read_text(encoding="utf-8").splitlines(keepends=True)
    hostile = json.dumps(json.loads(first) | {"id": "<b>one\u202e</b>"}) + "\n"
    pool.write_text("".join([header, hostile, *others]), encoding="utf-8")
    page = tmp_path / "audit.html"
    done = called("audit", pool, "--html", page, "--json")
    text = page.read_text(encoding="utf-8")
    assert f"page written to {page}" in done.stderr
    assert text.count("<h2>What the audit proves</h2>") == NUM_ITEMS[name]
    assert "&lt;b&gt;one" in text
    assert "<b>one" not in text
    assert "\u202e" not in text
    assert "//" not in text.replace("http://www.w3.org/2000/svg", "")
    findings = [one for one in json.loads(done.stdout) if one["kind"]]
    assert text.count("<td>proved</td><td>") == sum(one["verdict"] == "proved" for one in findings)
    pages = "".join(part.split("</section>")[0] for part in text.split("<h2>What the audit proves</h2>")[1:])
    assert pages.count('<tr><th scope="row">') == len(findings)
    assert {
        (kind, verdict)
        for kind, verdict in re.findall(r'<th scope="row">([\w-]+)</th><td>(\w+)</td><td class="n">', text)
    } == {(one["kind"], one["verdict"]) for one in findings}


@pytest.mark.parametrize("name", FINDING_NAMES)
def test_a_proved_finding_of_the_kind_fails_the_audit(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pool, out = pool_of(name, tmp_path), tmp_path / "audits"
    findings = json.loads(called("audit", pool, "--out", out, "--json").stdout)
    proved = {one["kind"] for one in findings if one["verdict"] == "proved"}
    assert proved
    for kind in sorted({one["kind"] for one in findings if one["kind"]} | {"leak"}):
        assert called("audit", pool, "--out", out, "--fail-on", kind).returncode == int(kind in proved)
    assert refused(capsys, "audit", pool, "--fail-on", "nonsense").startswith("unknown kind 'nonsense'; known: ambig")


def test_an_item_that_cannot_be_audited_fails_the_audit_and_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool, out = pool_of("causim", tmp_path), tmp_path / "audits"
    second = benchmark("causim").items.read_pool(pool).items[1].id
    line = ["audit", pool, "--out", out, "--html", tmp_path / "audit.html"]
    from calibrant.bench.causim.audit import CausimFindings

    honest = CausimFindings.findings

    def fails(self: CausimFindings, item: Any) -> Any:
        if item.id == second:
            raise ArithmeticError("no\nsuch number")
        return honest(self, item)

    with monkeypatch.context() as patched:
        patched.setattr(CausimFindings, "findings", fails)
        failed = called(*line)
    assert failed.returncode == 1
    assert failed.stderr.splitlines()[-1] == f"{second}: ArithmeticError: no such number"
    assert [one["outcome"] for one in records_of(out)] == ["audited", "crashed", *["audited"] * 6]
    assert "ArithmeticError: no such number" in (tmp_path / "audit.html").read_text(encoding="utf-8")
    crash = (out / "audits.jsonl").read_bytes()
    assert called("audit", pool, "--out", out, "--only", records_of(out)[0]["instance"]).returncode == 0
    assert (out / "audits.jsonl").read_bytes() == crash  # which is not of an item that was audited again
    mended = called(*line)
    assert (mended.returncode, mended.stderr.splitlines()[0]) == (0, "1 instance audited, 7 had a record already")
    assert records_of(out)[1]["findings"] is not None


def test_a_folder_of_other_audits_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    called("audit", pool_of("causim", tmp_path), "--out", tmp_path / "audits")
    stored = (tmp_path / "audits" / "audits.jsonl").read_bytes()
    message = refused(capsys, "audit", pool_of("replayscm", tmp_path), "--out", tmp_path / "audits")
    assert "audits.jsonl: line 1: not a record of an audit" in message
    assert (tmp_path / "audits" / "audits.jsonl").read_bytes() == stored


# --- `calibrant harden --alternatives`: every line is separated, not separable or refused, and the report says
# which
def harden(pool: Path, alternatives: Path, folder: Path) -> list[dict[str, Any]]:
    line = ["harden", str(pool), "--out", str(folder / "hard.jsonl"), "--report", str(folder / "report.jsonl")]
    assert main([*line, "--alternatives", str(alternatives), "--workers", "1"]) == 0
    return [json.loads(text) for text in (folder / "report.jsonl").read_text(encoding="utf-8").splitlines()]


def line_for(problem: Problem, model: Scm) -> dict[str, Any]:
    return {"instance": problem.id, "mechanisms": {v: render(f) for v, f in model.mechanisms.items()}}


@pytest.mark.parametrize("setting", ["hidden-order", "hidden-roots"])
def test_members_are_separated_by_the_world_that_is_named(
    setting: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Which world shows a difference first is recomputed with the row-by-row reference."""
    problem = read_pool(bundled_pool(setting)).problems[0]
    pool = tmp_path / "one.jsonl"
    write_pool(Pool("one", (problem,), {}), pool)
    drawn = sample_members(VersionSpace(problem.task, ModelClass(4)), Random(1), 6)
    lines = [line_for(problem, model) for model in drawn]
    if setting == "hidden-roots":
        lines = [line | {"roots": list(model.roots)} for line, model in zip(lines, drawn, strict=True)]
    (report,) = harden(pool, jsonl(tmp_path / "found.jsonl", *lines), tmp_path)
    (hard,) = read_pool(tmp_path / "hard.jsonl").problems
    added = hard.task.training.worlds[len(problem.task.training.worlds) :]
    told = report["alternatives"]
    assert [one["line"] for one in told] == list(range(1, 7))
    seen: list[Scm] = []
    for one, model in zip(told, drawn, strict=True):
        if any(model.equivalent(other) for other in seen):
            assert (one["outcome"], one["why"].startswith("means the same as line")) == ("refused", True)
            continue
        first = next(world.id for world in added if not replays_exactly(model, [world]))
        assert (one["outcome"], one["world"], one["why"]) == ("separated", first, "")
        seen.append(model)
    assert len(seen) > 3
    assert f"alternatives: {len(seen)} separated, 0 not separated, {6 - len(seen)} refused\n" in capsys.readouterr().out


def test_what_is_no_alternative_is_refused_with_the_reason(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Gold is X3 = X1 and X2; I1 shows the rows 00 and 10 only."""
    pool = written_pool(tmp_path / "small.jsonl", [ALL_ROWS, FOUR_MEMBERS])
    supplied = [
        ("I1", "(and X2 X1)", "means the same as gold"),
        ("I1", "X1", "does not fit the training worlds: X3 in world good-1"),
        ("I1", "(or X1", "mechanism of 'X3'"),
        ("I1", "X2", ""),
        ("I1", "(not (not X2))", "means the same as line 4"),
        ("I0", "X2", "does not fit the training worlds: X3 in world good-0"),
        ("I7", "X2", "about no instance"),
    ]
    lines = [{"instance": name, "mechanisms": {"X3": text}} for name, text, _ in supplied]
    reports = harden(pool, jsonl(tmp_path / "found.jsonl", *lines), tmp_path)
    told = {one["line"]: one for report in reports for one in report["alternatives"]}
    assert [one["line"] for one in reports[0]["alternatives"]] == [6]
    for number, (_, _, why) in enumerate(supplied[:-1], 1):
        assert told[number]["outcome"] == ("refused" if why else "separated")
        assert told[number]["why"].startswith(why)
        assert bool(told[number]["world"]) != bool(why)
    printed = capsys.readouterr()
    assert "alternatives: 1 separated, 0 not separated, 5 refused; 1 are about no instance" in printed.out
    assert "I1: line 1: refused: means the same as gold\n" in printed.err


def test_what_no_admissible_world_shows_is_named(tmp_path: Path) -> None:
    """B to E copy A. The alternative differs where B, C, D, E are 1 and A is 0: that takes four targets."""
    copies = dict.fromkeys("BCDE", "(not (not A))")
    gold = written_scm("A", **copies, Z="B")
    other = written_scm("A", **copies, Z="(xor B (and (not A) B C D E))")
    names = " ".join(gold.variables)
    rows = " ".join("".join(bit for _ in gold.variables) for bit in "01")
    problem = written_problem(
        HiddenOrder(gold.variables, ("A",)), gold, [written_world("w", names, rows)], latent="A B C D E Z"
    )
    pool = tmp_path / "four.jsonl"
    write_pool(Pool("four", (problem,), {}), pool)
    (report,) = harden(pool, jsonl(tmp_path / "found.jsonl", line_for(problem, other)), tmp_path)
    (told,) = report["alternatives"]
    assert (told["outcome"], told["world"]) == ("not_separated", "")
    assert told["why"] == "agrees with gold in every row that an admissible world can show"


def test_files_that_hold_no_alternatives_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pool = written_pool(tmp_path / "small.jsonl", [ALL_ROWS])
    line = ["harden", pool, "--out", tmp_path / "hard.jsonl", "--workers", "1", "--alternatives"]
    found = tmp_path / "found.jsonl"
    for text, reason in [
        ("{", "line 2: not JSON: "),
        ("[]", "line 2: not an object with 'instance' and 'mechanisms'"),
        ('{"instance": 7, "mechanisms": {}}', "line 2: not an object with 'instance' and 'mechanisms'"),
        ('{"instance": "I0"}', "line 2: 'mechanisms' is None, not an object of variable: formula"),
    ]:
        jsonl(found, {"instance": "I0", "mechanisms": {"X3": "X2"}}, text)
        assert reason in refused(capsys, *line, found)
    (tmp_path / "bytes.jsonl").write_bytes(b"\xff\n")
    assert "not UTF-8" in refused(capsys, *line, tmp_path / "bytes.jsonl")
    assert refused(capsys, *line, tmp_path / "none.jsonl").endswith("none.jsonl: No such file or directory")
    assert "--alternatives: it needs --mode cex" in refused(capsys, *line, found, "--mode", "extra-worlds")


def test_a_class_without_gold_is_proved_impossible(tmp_path: Path) -> None:
    """X3 = X1 and X2 has two parents: no world that it simulates makes it the only SCM of one parent."""
    pool, report = written_pool(tmp_path / "small.jsonl", [ALL_ROWS]), tmp_path / "report.jsonl"
    line = ["harden", str(pool), "--out", str(tmp_path / "hard.jsonl"), "--report", str(report), "--max-parents", "1"]
    assert main([*line, "--workers", "1"]) == 1
    (told,) = map(json.loads, report.read_text(encoding="utf-8").splitlines())
    assert told["outcome"] == "impossible"
    assert told["why"] == "X3 has 2 functional parents in gold, so gold is not in the class, whatever worlds are added"
    assert read_pool(tmp_path / "hard.jsonl").problems == read_pool(pool).problems
    second = tmp_path / "second.jsonl"
    line[3], line[5], line[-1] = str(tmp_path / "harder.jsonl"), str(second), "2"
    assert main([*line, "--workers", "1"]) == 0
    assert json.loads(second.read_text(encoding="utf-8"))["outcome"] == "reached"


# --- `calibrant alternatives`: what counts as an alternative, one line for each meaning, and files that harden takes
PATTERN_SCORE = {"valid": True, "trainExact": True, "heldoutExact": False, "structure": {"local_match": 0.5}}
GOLD_SCORE = PATTERN_SCORE | {"heldoutExact": True, "structure": {"local_match": 1.0}}


def record(
    mechanisms: Mapping[str, str],
    *,
    score: Mapping[str, Any] = PATTERN_SCORE,
    instance: str = "I1",
    protocol: str = "one",
    seed: int = 0,
    roots: tuple[str, ...] = (),
) -> Record:
    answer = {"roots": list(roots), "mechanisms": dict(mechanisms)} if roots else {"mechanisms": dict(mechanisms)}
    setting = "Hidden-roots" if roots else "Ordered"
    return Record(
        pool="p.jsonl",
        pool_digest="0",
        pool_size=2,
        index=0,
        instance=instance,
        setting=setting,
        stratum="",
        protocol=protocol,
        config={"seed": seed},
        outcome="found",
        answer=answer,
        size=1,
        score=dict(score),
        provenance={},
        program="0",
        timing=Timing(0.0, ""),
    )


def found_in(records: list[Record]) -> FoundModels:
    return FoundModels(lambda: records)


def test_texts_of_one_meaning_are_one_alternative_and_the_smallest_is_kept() -> None:
    found = found_in(
        [
            record({"X3": "(not (or (not X1) (not X2)))"}, protocol="two"),
            record({"X3": "(and X2 X1)"}),
            record({"X3": "(or X1 X2)"}, seed=1),
            record({"X3": "(xor X1 X2)"}, instance="I2", score=GOLD_SCORE),
        ]
    )
    assert [model.to_dict() for model in found.alternatives()] == [
        {
            "instance": "I1",
            "mechanisms": {"X3": "(or X1 X2)"},
            "found_by": ["one (seed=1) on p.jsonl"],
            "systems": ["one"],
        },
        {
            "instance": "I1",
            "mechanisms": {"X3": "(and X2 X1)"},
            "found_by": ["one (seed=0) on p.jsonl", "two on p.jsonl"],
            "systems": ["one", "two"],
        },
    ]


def test_what_is_added_between_two_readings_is_left_out() -> None:
    there = [record({"X3": "(or X1 X2)"})]
    readings = iter([there, [*there, record({"X3": "(and X1 X2)"}, seed=1), record({"X3": "X1"}, protocol="two")]])
    found = FoundModels(lambda: next(readings))
    assert [model.answer for model in found.alternatives()] == [{"mechanisms": {"X3": "(or X1 X2)"}}]


def test_only_what_decides_the_value_belongs_to_a_meaning() -> None:
    base = meaning_of({"mechanisms": {"X3": "X1", "X4": "(and X1 X3)"}})
    assert base == meaning_of({"mechanisms": {"X4": "(and X3 X1)", "X3": "(or X1 (and X1 X2))"}})
    assert base != meaning_of({"mechanisms": {"X3": "X1", "X4": "(or X1 X3)"}})
    assert base != meaning_of({"mechanisms": {"X3": "X2", "X4": "(and X1 X3)"}})
    rooted = {"mechanisms": {"X3": "X1"}}
    assert meaning_of(rooted | {"roots": ["X2", "X1"]}) == meaning_of(rooted | {"roots": ["X1", "X2"]})
    assert meaning_of(rooted | {"roots": ["X1", "X2"]}) != meaning_of(rooted | {"roots": ["X1", "X4"]})


def test_seeds_of_one_protocol_are_one_system() -> None:
    failed = {"valid": False, "trainExact": False}
    found = found_in(
        [
            record({"X3": "(and X1 X2)"}, seed=0),
            record({"X3": "(or X1 X2)"}, seed=1),
            record({"X3": "(or X2 X1)"}, seed=2),
            record({"X3": "(xor X1 X2)"}, seed=0, instance="I2", score=GOLD_SCORE),
            record({}, seed=1, instance="I2", score=failed),
            record({}, seed=0, instance="I3", score=failed),
        ]
    )
    (row,) = found.rows()
    assert row == {
        "Setting": "Ordered",
        "System": "one",
        "Pool": "p.jsonl",
        "Runs": "3",
        "Attempted": "3",
        "TrainExact": "2",
        "Alternatives": "1",
        "Alt/attempt": "0.333",
        "Alt/TE": "*",
        "SCMs": "3",
        "SCMs/TE": "1.50",
        "most": "2",
        "not gold": "2",
        "not held-out exact": "2",
    }
    assert [(one["instance"], one["found"], one["not_gold"]) for one in found.counts()] == [("I1", 2, 2), ("I2", 1, 0)]


def test_an_answer_with_other_roots_is_no_gold_and_without_gold_nothing_is_claimed() -> None:
    wrong_roots = {"valid": True, "mechanismTrainExact": True, "rootSetExact": False, "structure": None}
    found = found_in([record({"X3": "X1"}, roots=("X1", "X2"), score=wrong_roots)])
    assert found.rows()[0]["Alternatives"] == "1"
    unknown = found_in([record({"X3": "X1"}, score=PATTERN_SCORE | {"structure": None})])
    assert unknown.rows()[0]["Alternatives"] == "\N{EN DASH}"
    assert [model.to_dict()["mechanisms"] for model in unknown.alternatives()] == [{"X3": "X1"}]


def test_answers_to_alternative_tasks_are_passed_over() -> None:
    other = record({"X3": "X1"})
    answer = {"alternative": other.answer, "experiment": {}, "witness": {}}
    made = {name: getattr(other, name) for name in other.__struct_fields__} | {"answer": answer}
    assert found_in([Record(**made)]).rows() == []


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two instances of a shared pool that leave something open, two protocols, two seeds."""
    folder = tmp_path_factory.mktemp("swept")
    write_pool(Pool("few", tuple(dev_problems("hidden_order")[i] for i in (1, 5))), folder / "pool.jsonl")
    pool, runs = str(folder / "pool.jsonl"), str(folder / "runs")
    assert main(["run", "exact-mbde+dsl", pool, "--out", runs, "--workers", "1"]) == 0
    line = ["alternatives", runs, "--out", str(folder / "found.jsonl"), "--sweep", pool, "--seeds", "2"]
    assert main(line) == 0
    return folder


def test_a_sweep_adds_its_seeds_to_the_folder_and_goes_on(swept: Path) -> None:
    records = list(folder_records(swept / "runs"))
    seeds = [one.config["seed"] for one in records if one.protocol == "bnlearn+dsl"]
    assert sorted(seeds) == [0, 0, 1, 1]
    before = (swept / "runs" / FILE_NAME).read_bytes()
    again = ["alternatives", str(swept / "runs"), "--out", str(swept / "again.jsonl"), "--sweep"]
    assert main([*again, str(swept / "pool.jsonl"), "--seeds", "2"]) == 0
    assert (swept / "runs" / FILE_NAME).read_bytes() == before
    assert (swept / "again.jsonl").read_bytes() == (swept / "found.jsonl").read_bytes()


def test_every_line_is_an_alternative_by_the_evaluator_and_no_two_mean_the_same(swept: Path) -> None:
    problems = {problem.id: problem for problem in read_pool(swept / "pool.jsonl").problems}
    lines = [json.loads(line) for line in (swept / "found.jsonl").read_text().splitlines()]
    assert lines
    models: list[tuple[str, Scm]] = []
    for line in lines:
        score = Evaluator(problems[line["instance"]]).score_answer({"mechanisms": line["mechanisms"]})
        assert score.train_exact
        gold = problems[line["instance"]].sealed.gold
        assert gold is not None
        assert score.model is not None
        assert not score.model.equivalent(gold)
        assert not any(name == line["instance"] and other.equivalent(score.model) for name, other in models)
        models.append((line["instance"], score.model))


def test_harden_takes_the_file(swept: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = ["--alternatives", str(swept / "found.jsonl"), "--workers", "1"]
    main(["harden", str(swept / "pool.jsonl"), "--out", str(swept / "hard.jsonl"), *given])
    number = len((swept / "found.jsonl").read_text().splitlines())
    counted = capsys.readouterr().out.splitlines()[-1]
    assert counted.startswith("alternatives: ")
    separated, unseparated, rejected = (int(part.split()[0]) for part in counted.split(": ")[1].split(", "))
    assert (separated + unseparated, rejected) == (number, 0)


def test_json_has_every_instance(swept: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert main(["alternatives", str(swept / "runs"), "--out", str(swept / "more.jsonl"), "--json"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert [row["System"] for row in made["rows"]] == ["bnlearn+dsl", "exact-mbde+dsl"]
    assert [row["Runs"] for row in made["rows"]] == [2, 1]
    assert len(made["instances"]) == 4
    assert all(1 <= one["found"] <= 2 and one["not_gold"] <= one["found"] for one in made["instances"])


def test_folders_without_records_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = refused(capsys, "alternatives", tmp_path, "--out", tmp_path / "found.jsonl")
    assert line.startswith(f"{tmp_path}: no records.jsonl there")
    assert not (tmp_path / "found.jsonl").exists()
