"""The command: errors, exit codes, imports, compilation, the demo; `calibrant score` from files to verdicts."""

from __future__ import annotations

import gc
import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from calibrant.bench.cli import main
from calibrant.bench.commands import demo
from calibrant.bench.commands.demo import SUITE_FILE
from calibrant.bench.core.names import FIRST
from calibrant.bench.core.registry import benchmark, bundled_files
from calibrant.bench.runs.records import FILE_NAME, folder_records
from calibrant.bench.suites.manifest import read_specification
from calibrant.bench.terminal import width_of
from calibrant.dsl.errors import CalibrantError
from calibrant.dsl.networks.network import FORMATS
from calibrant.dsl.replayscm.pools.files import read_pool, write_pool
from calibrant.solvers.networks.network import read_network
from tests.bench.pools.sample_suites import SAMPLES
from tests.support.commands import CHECKOUT, PROGRESS, called, command, jsonl, program, refusal, refused
from tests.support.effort import SOAKING, effort
from tests.support.shared import shared_file, shared_records
from tests.support.stub_protocols import small_pool

# --- The command from outside: help, guards, runs and tables; what it prints, where, and with which exit code ---------
SMALL = ["good", "or", "good"]


@pytest.fixture
def pool(tmp_path: Path) -> Path:
    path = tmp_path / "small.jsonl"
    write_pool(small_pool(SMALL), path)
    return path


# --- help, version, guards ----------------------------------------------------------------------------------------

HEAVY = (
    "numba",
    "numpy",
    "z3",
    "pysat",
    "pgmpy",
    "jinja2",
    "matplotlib",
    "yaml",
    "pebble",
    "rich",
    "filelock",  # with what these two import, a sixth of the time of --help
    "platformdirs",
    "calibrant.solvers",
    "calibrant.audits",
    "calibrant.baselines",
    # a key at the top of a command brings the types of all capabilities: 80 modules and .08 s
    "calibrant.bench.core.capabilities",
    "calibrant.bench.protocols",
    "calibrant.bench.report",
    "calibrant.bench.pages",
    "calibrant.bench.runs",
    "calibrant.bench.scoring",
)


@pytest.mark.parametrize(
    "arguments",
    [[], ["--help"], ["run", "--help"], ["report", "--help"], ["pool", "check", "--help"], ["--version"]],
)
def test_help_imports_nothing_heavy(arguments: list[str]) -> None:
    source = f"""
import sys
from calibrant.bench.cli import main
from calibrant.bench.commands.demo import SUITE_FILE
code = main({arguments!r})
heavy = tuple(f"{{module}}." for module in {HEAVY!r})
print([name for name in sys.modules if f"{{name}}.".startswith(heavy)], code, file=sys.stderr)
"""
    done = program("-c", source)
    assert done.stderr == "[] 0\n"
    assert "calibrant" in done.stdout


@pytest.mark.parametrize("arguments", [["nonsense"], ["run"], ["table", "--by", "moon", "x"], ["pool"], ["--nope"]])
def test_bad_usage_is_one_line_that_says_where_to_look(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    error, hint = refusal(capsys, *arguments)
    assert error
    assert hint.endswith(" --help")
    assert called(*hint.split()[1:]).returncode == 0


# --- run, table, demo ---------------------------------------------------------------------------------------------

WITH_STUB = """
import sys
from calibrant.bench.replayscm.rows import listed
from calibrant.bench.cli import main
from calibrant.bench.commands.demo import SUITE_FILE
from tests.support.stub_protocols import Stub

if __name__ == "__main__":
    listed.ROWS = listed.PLAIN = (Stub,)
    sys.exit(main())
"""


def test_run_prints_the_table_and_resumes(pool: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    first = command("run", "exact", pool, "--out", out, "--workers", "1")
    said, left_out = first.stderr.splitlines()
    assert (first.returncode, said) == (0, "3 instances answered, 0 had a record already")
    assert left_out.startswith("left out to fit 80 columns: TrainWorld, ")
    assert max(map(len, first.stdout.splitlines())) <= 80
    heading, row = first.stdout.splitlines()
    assert heading.split()[:6] == ["Setting", "System", "Pool", "n", "Valid", "TrainExact"]
    assert row.split()[:6] == ["Ordered", "exact", "small", "3", "1.000", "1.000"]
    again = called("run", "exact", pool, "--out", out, "--workers", "2", "--json")
    assert (again.returncode, again.stderr) == (0, "0 instances answered, 3 had a record already\n")
    (row,) = json.loads(again.stdout)["rows"]
    assert (row["system"], row["n"], row["heldout_exact"]) == ("exact", 3, 1)


def test_table_of_an_incomplete_run_warns(pool: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["run", "exact", str(pool), "--out", str(tmp_path / "out"), "--workers", "1", "--only", "I1"]
    assert main(arguments) == 0
    capsys.readouterr()
    assert main(["table", str(tmp_path / "out"), "--json"]) == 0
    printed = capsys.readouterr()
    assert printed.err == "incomplete: small: 1 of 3 instances scored for exact; rates are over those\n"
    (row,) = json.loads(printed.out)["rows"]
    assert (row["n"], row["coverage"], row["train_exact"]) == (1, 1 / 3, 1)
    assert main(["table", str(tmp_path / "out"), "--by", "stratum", "--means", "paper", "--columns", "funnel"]) == 0
    assert "odd" in capsys.readouterr().out


def test_the_same_records_in_two_folders_count_once_and_contradictions_are_refused(
    pool: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("one", "two"):
        assert main(["run", "exact", str(pool), "--out", str(tmp_path / name), "--workers", "1"]) == 0
    capsys.readouterr()
    assert main(["table", str(tmp_path / "one"), str(tmp_path / "two"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"][0]["n"] == 3
    records = tmp_path / "two" / FILE_NAME
    records.write_text(records.read_text(encoding="utf-8").replace('"size":3', '"size":4'), encoding="utf-8")
    assert "exact on 'I0' is also elsewhere, and differs" in refused(
        capsys, "table", tmp_path / "one", tmp_path / "two"
    )


def test_verdicts_in_two_files_count_once_in_any_order_of_keys_and_contradictions_are_refused(
    pool: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    answers = jsonl(tmp_path / "answers.jsonl", *({"instanceId": f"I{k}", "response": "?"} for k in range(3)))
    one, two = tmp_path / "one.jsonl", tmp_path / "two.jsonl"
    assert main(["score", str(pool), str(answers), "--out", str(one)]) == 0
    lines = [json.loads(line) for line in one.read_text(encoding="ascii").splitlines()]
    jsonl(two, *(dict(reversed(line.items())) for line in lines))
    capsys.readouterr()
    assert main(["table", str(one), str(two), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"][0]["n"] == 3
    jsonl(two, *(dict(reversed(line.items())) for line in lines[:2]), {**lines[2], "failureExplanation": "none"})
    assert "(no model) on 'I2' is also elsewhere, and differs" in refused(capsys, "table", one, two)


def test_run_refuses_bad_input_in_one_line(pool: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = ["--out", tmp_path / "out", "--workers", 1]
    assert refused(capsys, "run", "nope", pool, *out).startswith("unknown protocol 'nope'; known: exact, ")
    message = refused(capsys, "run", "static", "exact", pool, *out)
    assert message == "exact is a protocol; several have commas between them: run static,exact POOL"
    assert refused(capsys, "run", "exact", tmp_path / "gone", *out) == "gone: cannot be read: No such file or directory"
    assert "max_parents is 9" in refused(capsys, "run", "exact", pool, *out, "--max-parents", 9)
    assert "'max_parents' is not NAME=VALUE" in refused(capsys, "run", "exact", pool, *out, "-o", "max_parents")
    assert "no instance 'I9' in small.jsonl" in refused(capsys, "run", "exact", pool, *out, "--only", "I9")
    assert "no records.jsonl there" in refused(capsys, "table", tmp_path)
    (tmp_path / "file").write_text("", encoding="utf-8")
    assert "a folder is expected" in refused(capsys, "run", "exact", pool, "--out", tmp_path / "file", "--workers", 1)


def listen_to_control_c() -> None:
    """Restore SIGINT: a shell starts background jobs with it ignored, and their children inherit that."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.mark.parametrize("workers", [1, 2])
def test_control_c_stops_cleanly_and_keeps_what_is_done(tmp_path: Path, workers: int) -> None:
    write_pool(small_pool(["good"] * 60), tmp_path / "p.jsonl")
    script, out = tmp_path / "interruptible.py", tmp_path / "out"
    script.write_text(WITH_STUB, encoding="utf-8")
    arguments = ["run", "stub", tmp_path / "p.jsonl", "--out", out, "--workers", workers, "-o", "pause=0.05"]
    line = [sys.executable, str(script), *map(str, arguments)]
    environment = {**os.environ, "PYTHONPATH": str(CHECKOUT)}
    process = subprocess.Popen(
        line,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=listen_to_control_c,
    )
    deadline = time.monotonic() + 30
    while not (out / FILE_NAME).exists() or (out / FILE_NAME).read_bytes().count(b"\n") < 3:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to the workers too
    stdout, stderr = process.communicate(timeout=30)
    assert (process.returncode, stdout) == (130, "")
    assert PROGRESS.sub("", stderr) == "calibrant: interrupted; the same command goes on from here\n"
    kept = len(list(folder_records(out)))
    assert 3 <= kept < 60
    again = subprocess.run(line, env=environment, capture_output=True, text=True, check=False)
    assert (
        PROGRESS.sub("", again.stderr).splitlines()[0] == f"{60 - kept} instances answered, {kept} had a record already"
    )


# --- sample, demo -------------------------------------------------------------------------------------------------


def test_sample_gives_the_same_bytes_for_the_same_seed_and_the_same_scms_in_every_setting(tmp_path: Path) -> None:
    def sampled(name: str, *extra: str) -> Path:
        path = tmp_path / name
        arguments = ["sample", "--strata", "hs_n6_easy_calibration", "--per-stratum", "2", "--out", str(path), *extra]
        assert main(arguments) == 0
        return path

    one, again, other = (sampled(name, "--seed", seed) for name, seed in (("a", "3"), ("b", "3"), ("c", "4")))
    assert one.read_bytes() == again.read_bytes() != other.read_bytes()
    golds = [problem.sealed.gold for problem in read_pool(one).problems]
    for setting in ("ordered", "block", "hidden-roots"):
        disclosed = read_pool(sampled(setting, "--seed", "3", "--setting", setting))
        assert [problem.sealed.gold for problem in disclosed.problems] == golds


def test_sample_names_the_strata_there_are(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = refused(capsys, "sample", "--strata", "moon", "--seed", 1, "--out", tmp_path / "p.jsonl")
    assert "unknown stratum 'moon'; known: hs_n6_easy_calibration, " in line


def _every_nth_item(pool: Path, step: int, folder: Path) -> Path:
    header, *items = pool.read_text(encoding="utf-8").splitlines(keepends=True)
    (folder / pool.name).write_text("".join([header, *items[::step]]), encoding="utf-8")
    return folder / pool.name


@pytest.mark.soak
def test_the_demo_answers_the_bundled_problems_and_ends_with_a_report_and_a_plot(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every third item, or fifth of CauSim's, where kinds of questions take turns: one of each stratum, suite and kind.

    They are also the four pools of the bundled suite, which is released with all its rows and whose board is built.

    In a soak all of them, as a user has them.
    """
    pools = tmp_path_factory.mktemp("pools")
    fewer = {
        name: tuple(_every_nth_item(pool, effort(5 if name == "causim" else 3, 1), pools) for pool in paths)
        for name, paths in bundled_files().items()
    }
    monkeypatch.setattr("calibrant.bench.core.registry.bundled_files", lambda: fewer)
    by_name = {path.stem.removeprefix("sample_"): path for paths in fewer.values() for path in paths}
    monkeypatch.setattr("calibrant.bench.suites.pools.bundled_sample", by_name.__getitem__)
    done = called("demo", "--json", "--workers", 1, "--out", tmp_path)
    assert done.returncode == 0
    rows = {(row["setting"], row["system"]): row for row in json.loads(done.stdout)["rows"]}
    settings = ("Ordered", "Block", "Hidden-order", "Hidden-roots")
    replayed = [(setting, system) for setting in settings for system in ("exact", "exact (chosen)", "posterior")]
    conditions, agents = ("conjunctive", "disjunctive", "moderator", "order", "stochastic"), ("quiet", "static")
    played = [(one, name) for one in conditions for name in (*agents, "switch-aware")]
    labs = [(suite, name) for suite in SAMPLES["causalab"].suites for name in ("abstain", "exact", "greedy")]
    assert [*rows][: len(replayed) + len(played) + len(labs)] == [*replayed, *played, *labs]
    rest = [*rows][len(replayed) + len(played) + len(labs) :]
    networks = [key for key in rest if key[0] in ("acyclic", "cyclic")]
    asked = [key for key in rest if key not in networks]
    assert {name for _, name in asked} == {"exact", "graph_only", "copy"}
    assert {name for _, name in networks} == {"exact", "posterior", "greedy"}
    assert all(rows[key]["accuracy"] == 1 for key in (*labs, *asked) if key[1] == "exact")
    for key in replayed:
        assert (rows[key]["coverage"], rows[key]["valid"], rows[key]["train_exact"]) == (1, 1, 1)
    assert [rows["conjunctive", name]["accuracy"] for name in agents] == [1, 1]
    report, board, toys = (Path(line.split(" written to ")[1]) for line in done.stderr.splitlines()[-3:])
    plot = tmp_path / "ladder.svg"
    assert {read_network(file).format for file in toys.iterdir()} == {*FORMATS} - {"rules", "zginml"}
    assert board == tmp_path / "board" / "calibrant-mini-1.0" / "index.html"
    assert board.read_text(encoding="utf-8").count("<td>row of the suite</td>") == len(
        list((board.parent / "rows").iterdir())
    )
    specification = read_specification(SUITE_FILE)
    shown = [
        (row["name"], pool)
        for row in json.loads((board.parent / "board.json").read_text())["rows"]
        for pool in row["pools"]
    ]
    assert sorted(shown) == sorted((row, pool.name) for pool in specification.pools for row in pool.rows)
    assert report == tmp_path / "report.html"
    page = report.read_text(encoding="utf-8")
    assert page.startswith("<!DOCTYPE html>")
    episodes = '<section class="timeline"'
    assert [page.count(part) for part in ('id="table-1"', 'id="table-standing"', episodes)] == [1, 1, 3]
    assert f"HeldoutExact, {effort(8, 24)} SCMs" in plot.read_text(encoding="utf-8")


@pytest.mark.soak
def test_the_demo_says_what_there_is_to_see_in_80_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of CausaLab alone, the fastest; with all items of all benchmarks in a soak."""
    if not SOAKING:
        fewer = {name: bundled_files()[name][:1] for name in ("causalab", FIRST)}
        monkeypatch.setattr("calibrant.bench.core.registry.bundled_files", lambda: fewer)
        import_module("calibrant.bench.report.writing")  # which would keep what stands for `benchmarks`
        monkeypatch.setattr("calibrant.bench.core.registry.benchmarks", lambda: [benchmark("causalab")])
        monkeypatch.setattr(demo, "_write_board", lambda folder, scratch, records: folder / "board")
    opened: list[str] = []
    monkeypatch.setattr(demo, "_open_page", lambda page: opened.append(page.name))
    done = called("demo", "--out", tmp_path, "--open")
    assert done.returncode == 0
    assert opened == ["report.html"]
    lines = (done.stdout + done.stderr).splitlines()
    assert len(lines) + 9 <= 80  # `make demo` adds nine the first time: its own line, the installation's seven, an end
    assert max(map(len, done.stdout.splitlines())) <= 80
    place = lines.index("CausaLab: set dials, and state what causes a crystal's frequency.")
    assert lines[place + 1].startswith("exact explains everything that it was shown, and is right on 100 %")
    place = next(number for number in range(place, len(lines)) if lines[number].startswith("Method"))
    assert re.split("  +", lines[place])[:5] == ["Method", "Items", "Right", "Earned", "Lucky"]
    explained = " ".join(done.stdout[: done.stdout.index("\n\n")].split())
    tables = done.stdout.split("\n\n")[1:]
    assert len(tables) == (5 if SOAKING else 1)
    for table in tables:
        head = next(line for line in table.splitlines() if line.startswith("Method"))
        rows = [line for line in table.splitlines() if line.count(" %") > 4]
        assert len(rows) >= 2
        for row in rows:
            assert sum(int(share) for share in re.findall(r"(\d+) %", row)[1:]) == 100
        for heading in re.split("  +", head)[2:]:
            assert f"{heading}: " in explained


# --- pipes --------------------------------------------------------------------------------------------------------


def test_a_command_leaves_the_garbage_collector_as_it_was(capsys: pytest.CaptureFixture[str]) -> None:
    before = gc.get_threshold()
    assert main(["schema", "records"]) == 0
    assert main(["none-such"]) == 2
    assert gc.get_threshold() == before


def test_a_reader_that_leaves_ends_the_command_quietly(tmp_path: Path) -> None:
    pool = shared_file("pool_dev_t1_ordered.runtime.yaml")
    line = [sys.executable, "-m", "calibrant.bench.cli", "pool", "check", str(pool), "--json"]
    process = subprocess.Popen(line, cwd=CHECKOUT, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait() == 0


# --- `calibrant demo` overwrites its own reports only; what is piped is as wide as COLUMNS says -----------------------
@pytest.mark.parametrize("name", ["report.html", "ladder.svg"])
def test_a_report_of_somebody_else_is_not_overwritten(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    (tmp_path / name).write_text("mine", encoding="utf-8")
    line = refused(capsys, "demo", "--out", tmp_path)
    assert line == f"{tmp_path / name}: not written by demo; give another --out, or --force to overwrite it"
    assert [file.name for file in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_text(encoding="utf-8") == "mine"


def test_its_own_report_is_overwritten_until_somebody_changes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    report = tmp_path / "report.html"
    demo._require_own_report(tmp_path, force=False)  # nothing there
    report.write_text("made", encoding="utf-8")
    demo._sign(tmp_path, demo.REPORT_FILES)
    demo._require_own_report(tmp_path, force=False)
    report.write_text("changed", encoding="utf-8")
    with pytest.raises(CalibrantError, match="not written by demo"):
        demo._require_own_report(tmp_path, force=False)
    demo._require_own_report(tmp_path, force=True)


@pytest.mark.parametrize(
    ("stated", "width"),
    [("200", 200), ("40", 40), ("1", 40), ("401", 400), ("", 80), ("wide", 80), ("0", 80), ("9" * 30, 80)],
)
def test_what_is_piped_is_as_wide_as_columns_says(stated: str, width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", stated)
    assert width_of(io.StringIO()) == width


# --- `calibrant score`: prediction files in, verdicts out -------------------------------------------------------------
GOOD, WRONG = {"mechanisms": {"X3": "(and X1 X2)"}}, {"mechanisms": {"X3": "(xor X1 X2)"}}


def test_score_of_the_official_sample_predictions_is_the_published_one(capsys: pytest.CaptureFixture[str]) -> None:
    pool = shared_file("official_sample.runtime.yaml")
    assert main(["score", str(pool), str(shared_file("official_sample_predictions.jsonl")), "--json"]) == 0
    printed = capsys.readouterr()
    scored = {line["instanceId"]: line for line in map(json.loads, printed.out.splitlines())}
    expected = {
        vector["instanceId"]: vector["expect"]
        for vector in shared_records("conformance_dev.jsonl")
        if vector["kind"] == "alt_good_sample"
    }
    assert scored.keys() == expected.keys()
    assert len(scored) == 2
    for instance, verdict in expected.items():
        known = ("valid", "correct", "trainExact", "heldoutExact", "heldoutAccuracy", "jointSuccess", "witnessValid")
        assert {key: scored[instance][key] for key in known} == {key: verdict[key] for key in known}
        assert scored[instance]["model"] == "sample-reference"
    assert "sample-reference" in printed.err  # the table


def test_stored_responses_are_scored_as_stored_by_their_answers(tmp_path: Path) -> None:
    """The 18 real model answers of the official sample, through a prediction file and back."""
    pool = shared_file("official_sample.runtime.yaml")
    stored = [(p.id, result) for p in read_pool(pool).problems for result in p.results()]
    lines = [{"instanceId": i, "model": r.model, "extractedAnswer": r.extracted_answer} for i, r in stored]
    made = tmp_path / "scores.jsonl"
    assert called("score", pool, jsonl(tmp_path / "in.jsonl", *lines), "--out", made).returncode == 0
    scored = [json.loads(line) for line in made.read_text(encoding="utf-8").splitlines()]
    assert len(scored) == 18
    for line, (instance, stored_result) in zip(scored, stored, strict=True):
        assert (line["instanceId"], line["model"]) == (instance, stored_result.model)
        assert line["valid"] == stored_result.evaluation["valid"]
        assert line["correct"] == stored_result.evaluation["correct"]
    table = called("table", made, "--json")
    assert table.returncode == 0
    assert sum(row["n"] for row in json.loads(table.stdout)["rows"]) == 18


def test_every_way_to_give_an_answer(pool: Path, tmp_path: Path) -> None:
    text = f"Sure.\n```json\n{json.dumps(GOOD)}\n```"
    ways: list[dict[str, Any]] = [
        {"extractedAnswer": GOOD},
        {"rawResponse": text},
        {"response": json.dumps(GOOD)},
        {"text": text},
        {"response": None},
    ]
    lines = [{"instanceId": "I0", "model": f"m{i}", **way} for i, way in enumerate(ways)]
    lines += [{"instanceId": "I2", "extractedAnswer": WRONG}, {"instanceId": "I1", "model": None, "text": ""}]
    file = jsonl(tmp_path / "in.jsonl", *lines[:3], "", *lines[3:])
    result = called("score", pool, file, "--json")
    assert result.returncode == 0
    scored = [json.loads(line) for line in result.stdout.splitlines()]
    assert [line["valid"] for line in scored] == [True, True, True, True, False, True, False]
    assert [line["correct"] for line in scored] == [True, True, True, True, False, False, False]
    assert [line["strictJson"] for line in scored][:4] == [None, False, True, False]
    assert [line["model"] for line in scored] == ["m0", "m1", "m2", "m3", "m4", None, None]
    assert "(no model)" in result.stderr


def test_the_extractor_is_a_choice(pool: Path, tmp_path: Path) -> None:
    nested: dict[str, Any] = {"instanceId": "I0", "model": "m", "rawResponse": json.dumps({"answer": GOOD})}
    file = jsonl(tmp_path / "in.jsonl", nested)
    for extractor, valid in (("paper", True), ("published", False)):
        result = called("score", pool, file, "--json", "--extractor", extractor)
        assert json.loads(result.stdout)["valid"] is valid


def test_structure_metrics_are_there_where_they_are_asked_for(pool: Path, tmp_path: Path) -> None:
    file = jsonl(tmp_path / "in.jsonl", {"instanceId": "I0", "model": "m", "extractedAnswer": WRONG})
    plain, with_structure = (
        json.loads(called("score", pool, file, "--json", *extra).stdout) for extra in ([], ["--structure"])
    )
    assert "structure" not in plain
    assert (with_structure["structure"]["exact_map"], with_structure["structure"]["local_match"]) == (True, 0.0)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('{"instanceId": "I0", "response": "x", "instanceId": "I1"}', "key 'instanceId' occurs twice in one object"),
        ('{"id": "I0", "answer": {"mechanisms": {"X3": "X1", "X3": "X2"}}}', "key 'X3' occurs twice in one object"),
        ("{", "not a JSON object in UTF-8: expecting property name enclosed in double quotes at character 2"),
        ("[]", "not a JSON object in UTF-8, but a list"),
        ("I0,first", "not a JSON object in UTF-8; a table is read if its name ends in .csv or .tsv"),
        ("[" * 100_000, "nested more than 200 deep"),
        ('{"instanceId": ' + "9" * 5000 + "}", "not a JSON object in UTF-8"),
        ({"model": "m"}, "it names no item; its keys are model; --id-field names the one that does"),
        ({"instanceId": ["I0"]}, "instanceId is ['I0'], not a text"),
        ({"instanceId": "I0", "model": 4}, "model is 4, not a text"),
        ({"instanceId": "I9", "model": "m"}, "small has no instance 'I9'; --skip-unknown passes over such lines"),
        (
            {"instanceId": "I0", "model": "first", "prediction": "{}"},
            "no answer in it; its keys are instanceId, model, prediction; --text-field names the one that holds it",
        ),
        ({"instanceId": "I0", "text": "", "seconds": -1}, "seconds is -1, not a duration"),
        ({"instanceId": "I0", "text": "", "sample": "one"}, "sample is 'one', not a number of a sample"),
        ({"instanceId": "I0", "model": "first", "text": "", "epoch": 0}, "a second sample 0 of model 'first' for 'I0'"),
    ],
)
def test_lines_that_cannot_be_scored_are_refused_with_their_number(
    pool: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], line: Any, reason: str
) -> None:
    file = jsonl(tmp_path / "in.jsonl", {"instanceId": "I0", "model": "first", "text": ""}, "", line)
    out = tmp_path / "scores.jsonl"
    assert refused(capsys, "score", pool, file, "--out", out) == (
        f"{file}: line 3: {reason}; the line before it is good; --on-error skip leaves such lines out"
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.jsonl", "small.jsonl"]  # nothing half written


def test_a_score_line_is_strict_json_whatever_was_submitted(tmp_path: Path) -> None:
    pool = shared_file("official_sample.runtime.yaml")
    sample = next(shared_records("official_sample_predictions.jsonl"))
    sample["extractedAnswer"]["experiment"] = {"type": "\ud800", "assignments": {"X1": float("nan")}}
    result = called("score", pool, jsonl(tmp_path / "in.jsonl", sample), "--json", "--skip-unknown")
    assert result.returncode == 0

    def no_constant(name: str) -> None:
        raise AssertionError(name)

    scored = json.loads(result.stdout, parse_constant=no_constant)
    assert scored["experiment"]["assignments"] == {"X1": None}


def test_a_file_that_score_did_not_write_is_no_source_for_a_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = jsonl(tmp_path / "x.jsonl", {"instanceId": "I0"})
    refusal = refused(capsys, "table", file)
    assert refusal.startswith(f"{file}: line 1: not a line that `calibrant score` wrote; predictions are scored first")
    record = jsonl(tmp_path / "moved.jsonl", {"instance": "I0", "protocol": "exact", "config": {}})
    assert "but a record of `calibrant run`; give the folder" in refused(capsys, "table", record)
