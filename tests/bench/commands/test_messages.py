"""Messages on wrong values, and commands that messages name: they work when pasted."""

from __future__ import annotations

import html
import json
import re
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from calibrant.bench.cli import main
from calibrant.bench.core.registry import bundled_pool, bundled_sample
from calibrant.bench.terminal import NextCommand, is_quiet, print_next
from calibrant.dsl.replayscm.generation.strata import LARGE_STRATA, STRATA
from calibrant.dsl.text import nearest_names
from tests.bench.commands.lines import BENCHMARKS, COMMANDS, Files
from tests.support.commands import CHECKOUT, called, jsonl, program, refusal

# --- Messages on wrong values: what was given, the nearest name first, one place, and a command that works ------------
STUDY = '[study]\nout = "records"\ntitel = "Lamps"\n[[block]]\npool = "switches.jsonl"\n'
HEADER = '{"format":"calibrant-pool","version":1,"name":"x"}\n'


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with a pool, answers, a study and a broken pool, where commands run."""
    for file in ("switches.jsonl", "answers.jsonl"):
        shutil.copy(CHECKOUT / "docs" / "examples" / file, tmp_path)
    shutil.copy(bundled_sample("causim"), tmp_path / "causim.jsonl")
    (tmp_path / "study.toml").write_text(STUDY, "utf-8")
    (tmp_path / "broken.jsonl").write_text(HEADER + '{"id": "lamp" 1}\n', "utf-8")
    (tmp_path / "list.txt").write_text("a list\n", "utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("line", "error", "hint"),
    [
        ("sample --seed x --out a.jsonl", "'--seed': 'x' should be a valid integer", "sample --help"),
        ("list switches.jsonl --limit -1", "'--limit': '-1' should be greater than or equal to 0", "list --help"),
        (
            "generate --strata hs_n6_easy --seed 1 --out g.jsonl",
            "did you mean hs_n6_easy_calibration or ",
            "generate --strata hs_n6_easy_calibration --seed 1 --out g.jsonl",
        ),
        (
            "variants switches.jsonl --seed 1 --kinds renam --out v.jsonl",
            "unknown kind 'renam' for ReplaySCM; did you mean rename or names? known: ",
            "variants switches.jsonl --seed 1 --kinds rename --out v.jsonl",
        ),
        (
            "training causim.jsonl --curriculum blok --out blocks",
            "unknown curriculum 'blok'; did you mean block? known: ",
            "training causim.jsonl --curriculum block --out blocks",
        ),
        (
            "audit switches.jsonl --fail-on ambigous:k4",
            "'ambigous:k4'; did you mean ambiguous:k4? It has to be ambiguous, ",
            "audit switches.jsonl --fail-on ambiguous:k4",
        ),
        ("audit switches.jsonl --fail-on ambiguous:k9", "'ambiguous:k9': it has to be ambiguous, ", ""),
        (
            "audit causim.jsonl --limit 1 --fail-on leek",
            "unknown kind 'leek'; did you mean leak? known: ",
            "audit causim.jsonl --limit 1 --fail-on leak",
        ),
        ("play --study study.toml", "study: unknown field `titel`; did you mean title or titles?", ""),
        ("list broken.jsonl", "broken.jsonl: line 2: not JSON: ", ""),
        (
            "run exact switches.jsonl --out answers.jsonl",
            "--out: answers.jsonl is a file; a folder is expected",
            "run exact switches.jsonl --out answers",
        ),
        (
            "score switches.jsonl answers.jsonl --out -",
            "--out: - is not a path; /dev/stdout is standard output",
            "score switches.jsonl answers.jsonl --out /dev/stdout",
        ),
        ("run exact switches.jsonl --out -", "--out: - is not a path; a folder is expected", ""),
        (
            "show switches.jsonl lamp --html -",
            "--html: - is not a path; ",
            "show switches.jsonl lamp --html /dev/stdout",
        ),
    ],
)
def test_a_wrong_value_has_a_message_that_helps(
    line: str, error: str, hint: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    printed, command = refusal(capsys, *shlex.split(line))
    assert error in printed
    assert command == (f"calibrant {hint}" if hint else "")
    assert not Path("-").exists()


def test_a_broken_line_has_one_line_number_and_a_column(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    error, _ = refusal(capsys, "list", "broken.jsonl")
    assert re.findall(r"line \d+", error) == ["line 2"]
    assert error.endswith("column 15")


def test_a_hint_for_an_existing_file_works(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for line in ("run exact switches.jsonl --out answers.jsonl", "score switches.jsonl answers.jsonl --out list.txt"):
        _, hint = refusal(capsys, *line.split())
        assert main(shlex.split(hint)[1:]) == 0
        capsys.readouterr()


def test_a_name_whose_end_was_left_away_is_offered_first() -> None:
    """Of every stratum: from its first four letters on, those that begin so come before others that are like it."""
    names = [stratum.name for stratum in (*STRATA, *LARGE_STRATA)]
    for name in names:
        for end in range(4, len(name) + 1):
            begun = [other for other in names if other.startswith(name[:end])]
            near = nearest_names(name[:end], names)
            assert set(near[: len(begun)]) <= set(begun)
            assert near[0] == min(begun, key=lambda other: (len(other), names.index(other)))


def test_the_page_of_a_question_has_a_command_that_works_when_it_is_pasted(folder: Path) -> None:
    """With the path of its pool, and the id by which the page calls the item."""
    name = "chain-0000-s20-v02-deduction-000"
    assert main(["show", "causim.jsonl", name, "--html", "why.html"]) == 0
    assert main(["audit", "causim.jsonl", "--only", name, "--html", "audit.html"]) == 0
    for page in ("why.html", "audit.html"):
        (command,) = re.findall(r"<pre>calibrant (harden [^<]*)</pre>", html.unescape(Path(page).read_text("utf-8")))
        assert command == f"harden causim.jsonl --only {name} --out hardened.jsonl"
        assert main(shlex.split(command)) == 0
        Path("hardened.jsonl").unlink()


# --- A command that a message names works when it is pasted -----------------------------------------------------------
HINT = re.compile(r"`(calibrant [^`]+)`")


@pytest.fixture(params=BENCHMARKS)
def files(request: pytest.FixtureRequest, files_of: Callable[[str], Files]) -> Files:
    return files_of(request.param)


def pasted(printed: str) -> int:
    """Run what the messages name; how many commands that was."""
    hints = HINT.findall(printed)
    for hint in hints:
        done = called(*shlex.split(hint)[1:])
        assert done.returncode == 0, (hint, done.stderr)
        assert not HINT.findall(done.stderr), "what was left out is there now"
    return len(hints)


def test_what_was_left_out_is_shown_by_the_command_that_is_named(files: Files, tmp_path: Path) -> None:
    """Of run, score and table, with options; of file names with spaces."""
    folder, scores = tmp_path / "a run", tmp_path / "the scores.jsonl"
    lines: list[list[object]] = [
        ["run", "exact", files.pool, "--out", folder, "--workers", "1"],
        ["score", files.pool, files.predictions, "--out", scores],
        ["table", folder, "--by", "stratum"],
        ["table", folder, "--attribution", "--pool", files.pool],
        ["table", scores, "--attribution", "--pool", files.pool],
    ]
    named = []
    for line in lines:
        done = called(*line)
        assert done.returncode == 0, done.stderr
        assert ("left out to fit" in done.stderr) == bool(HINT.findall(done.stderr))
        named.append(pasted(done.stderr))
    assert sum(named) >= 2


def test_without_a_file_of_verdicts_nothing_is_named(files: Files) -> None:
    assert HINT.findall(called("score", files.pool, files.predictions).stderr) == []


def test_the_field_that_show_asks_for_can_be_named(tmp_path: Path, files_of: Callable[[str], Files]) -> None:
    files = files_of("blickets")
    records = tmp_path / "foreign.jsonl"
    text = (files.run / "records.jsonl").read_text(encoding="utf-8")
    records.write_text(text.replace('"instance":', '"puzzle":'), encoding="utf-8")
    line = ["show", files.pool, files.ids[0], "--run", records]
    refusal = called(*line)
    assert refusal.returncode == 2
    assert "--id-field names the one that does" in refusal.stderr
    done = called(*line, "--id-field", "puzzle", "--model-field", "protocol")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", ["--pool", "--pools"])
def test_pools_have_one_name_and_an_alias(name: str, files_of: Callable[[str], Files]) -> None:
    files = files_of("causim")
    for line in (["table", files.run, "--attribution"], ["report", files.run, "--attribution"]):
        assert called(*line, name, files.pool).returncode == 0


def test_every_command_that_a_message_names_is_there_with_its_options() -> None:
    """In every text of the sources: a command of the app, and options that it has."""
    named = 0
    for path in sorted((CHECKOUT / "bench").rglob("*.py")) + sorted((CHECKOUT / "calibrant").rglob("*.py")):
        for hint in HINT.findall(path.read_text(encoding="utf-8")):
            words = hint.split()[1:]
            name = " ".join(words[:2]) if " ".join(words[:2]) in COMMANDS else words[0]
            if name == "ARGUMENTS" or (name not in COMMANDS and not words[0].islower()):
                continue
            assert name in COMMANDS, (path, hint)
            known = {text for one in COMMANDS[name].params for text in (*one.opts, *one.secondary_opts)}
            assert {word for word in words if word.startswith("--")} <= known, (path, hint)
            named += 1
    assert named > 20


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("scor switches.jsonl answers.jsonl", "score switches.jsonl answers.jsonl"),
        ("pool chek switches.jsonl", "pool check switches.jsonl"),
        ("list switches.jsonl --limt 3", "list switches.jsonl --limit 3"),
        ("list swiches.jsonl", "list switches.jsonl"),
        ("score switches.jsonl answer.jsonl", "score switches.jsonl answers.jsonl"),
        ("fit switchs.csv", "fit switches.csv"),
        ("table nowhere.jsonl", ""),
        ("list switches.jsonl --class short --limit x", "list --help"),
    ],
)
def test_a_misspelt_word_is_put_right(line: str, hint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of commands, options and files; where nothing is near there is no guess. What is put right works."""
    for file in ("switches.jsonl", "answers.jsonl", "switches.csv"):
        shutil.copy(CHECKOUT / "docs" / "examples" / file, tmp_path)
    monkeypatch.chdir(tmp_path)
    done = called(*shlex.split(line))
    assert done.returncode == 2
    assert re.findall(r"^hint   calibrant (.*)$", done.stderr, re.MULTILINE) == [hint] * bool(hint)
    assert called(*shlex.split(hint or "--help")).returncode == 0


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("list empty.jsonl", "no pool: it is empty"),
        ("table empty.jsonl", "no verdicts in it; `calibrant score --out` writes them"),
        ("score switches.jsonl answers.jsonl --out folder", "folder: Is a directory"),
        ("run exact switches.jsonl --out answers.jsonl", "answers.jsonl is a file; a folder is expected"),
        ("list switches.jsonl --class fair", "'fair' is not one of 'earned', 'lucky', 'short', 'missed'"),
    ],
)
def test_wrong_files_are_one_line(line: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for file in ("switches.jsonl", "answers.jsonl"):
        shutil.copy(CHECKOUT / "docs" / "examples" / file, tmp_path)
    (tmp_path / "empty.jsonl").touch()
    (tmp_path / "folder").mkdir()
    monkeypatch.chdir(tmp_path)
    done = called(*shlex.split(line))
    assert (done.returncode, done.stdout) == (2, "")
    assert reason in done.stderr.splitlines()[0]
    assert "Value error" not in done.stderr


def test_a_list_of_answers_keeps_ids_and_systems_and_names_what_it_leaves_out(tmp_path: Path) -> None:
    pool = CHECKOUT / "bench" / "replayscm" / "data" / "sample_hidden_order.jsonl"
    ids = ["CAL_vhs_n9_dense_strict_20000000", "CAL_vhs_n10_extreme_near_impossible_20000002"]
    systems = ("model-9000", "b")
    lines = [{"id": name, "model": system, "response": "{}"} for name in ids for system in systems for _ in range(2)]
    given, scores = jsonl(tmp_path / "given.jsonl", *lines), tmp_path / "scores.jsonl"
    assert called("score", pool, given, "--out", scores).returncode == 0
    done = called(
        "list", pool, "--scores", scores, "--class", "no_answer"
    )  # two samples of a system: rows are not distinct
    heads, *rows = done.stdout.splitlines()
    assert heads.split()[:2] == ["Id", "System"]
    assert [next(name for name in ids if name in row) for row in rows] == sorted(ids * 4, key=ids.index)
    assert sum(systems[0] in row for row in rows) == 4
    assert "7.5 \N{MULTIPLICATION SIGN} 10" in done.stdout
    assert "left out to fit 80 columns: Setting, Sample, Right;" in done.stderr
    (hint,) = HINT.findall(done.stderr)
    listed = [json.loads(line) for line in called(*shlex.split(hint)[1:]).stdout.splitlines()]
    assert [row["sample"] for row in listed] == [0, 1] * 4
    assert {row["left"] for row in listed} == {"75198014899529318400", "2528371261405832826231944380416"}


# --- --quiet, and the loggers of programs -----------------------------------------------------------------------------


def test_quiet_leaves_the_result_and_drops_hints_and_progress(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pool, results = bundled_pool("ordered"), {}
    for words in ((), ("--quiet",)):
        done = called("pool", "check", pool, *words)
        results[words] = done.stdout
        assert done.returncode == 0
    assert results[()] == results["--quiet",]
    assert called("run", "static,quiet", bundled_sample("blickets"), "--out", tmp_path / "runs").returncode == 0
    examples = CHECKOUT / "docs/examples"
    for line in (
        ("table", tmp_path / "runs", "--attribution"),
        ("family", examples / "prior.sif", examples / "cells.csv"),
        ("network", examples / "feedback.bnet"),
    ):
        usual, quiet = called(*line), called(*line, "--quiet")
        assert (usual.stdout, usual.returncode, quiet.stderr) == (quiet.stdout, quiet.returncode, "")
        assert usual.stderr or line[0] != "table"  # the legend; the others have no hint on these files
    commands = [NextCommand(("list", pool), "what is in it")]
    print_next(commands)
    assert "calibrant list" in capsys.readouterr().err
    token = is_quiet.set(True)
    print_next(commands)
    is_quiet.reset(token)
    assert capsys.readouterr().err == ""
    done = program("-m", "calibrant", "fit", CHECKOUT / "docs/examples/cells.csv", "--quiet")
    assert "compiling" not in done.stderr
    silent = called("bench", "evaluator", "--seconds", 0, "--quiet")  # it compiles kernels
    assert (silent.returncode, silent.stderr) == (0, "")
    assert called("run", "none-such", pool, "--out", tmp_path / "c", "--quiet").stderr.startswith("error")


def test_programs_log_progress(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    import calibrant

    with caplog.at_level("INFO", logger="calibrant"):
        calibrant.run("copy-parent", calibrant.load_pool(bundled_pool("ordered"))[:2], tmp_path / "runs")
        calibrant.fit({"A": [0, 1, 1], "Y": [1, 0, 0]}, target="Y")
    logged = [(record.name, record.getMessage()) for record in caplog.records]
    assert logged[:1] == [("calibrant.run", "copy-parent on sample_ordered: 0 of 2 done")]
    assert ("calibrant.run", "copy-parent on sample_ordered: 2 of 2 done") in logged
    assert {name for name, _ in logged} == {"calibrant.run", "calibrant.fit"}
