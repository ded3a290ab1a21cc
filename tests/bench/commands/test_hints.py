"""A command that a message names works when it is pasted."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from pathlib import Path

import pytest

from tests.bench.commands.lines import BENCHMARKS, COMMANDS, Files
from tests.support.commands import CHECKOUT, called, jsonl

HINT = re.compile(r"`(calibrant [^`]+)`")


@pytest.fixture(scope="module", params=BENCHMARKS)
def files(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Files:
    return Files.made(request.param, tmp_path_factory.mktemp(request.param))


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


def test_the_field_that_show_asks_for_can_be_named(tmp_path: Path) -> None:
    files = Files.made("blickets", tmp_path)
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
def test_pools_have_one_name_and_an_alias(name: str, tmp_path: Path) -> None:
    files = Files.made("causim", tmp_path)
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
        "list", pool, "--scores", scores, "--class", "short"
    )  # two samples of a system: rows are not distinct
    heads, *rows = done.stdout.splitlines()
    assert heads.split()[:2] == ["Id", "System"]
    assert [next(name for name in ids if name in row) for row in rows] == sorted(ids * 4, key=ids.index)
    assert sum(systems[0] in row for row in rows) == 4
    assert "7.5 \N{MULTIPLICATION SIGN} 10" in done.stdout
    assert "left out to fit 80 columns: Setting, Right;" in done.stderr
    (hint,) = HINT.findall(done.stderr)
    listed = [json.loads(line) for line in called(*shlex.split(hint)[1:]).stdout.splitlines()]
    assert {row["left"] for row in listed} == {"75198014899529318400", "2528371261405832826231944380416"}
