"""A submission that the command writes is one that a board reads; what a release names as next works when pasted."""

from __future__ import annotations

import shlex
import shutil
import tomllib
from hashlib import sha256
from pathlib import Path

import pytest

from calibrant.bench.cli import main
from calibrant.bench.commands.suites import list_next_commands
from calibrant.bench.suites.manifest import read_manifest
from calibrant.bench.suites.submissions import Submission, read_submissions
from tests.support.commands import NEXT, refusal, refused

STATED = ("--system", 'gr\u00f6\u00dfer "5" \\\\', "--system-version", "1", "--submitter", "A. Submitter")


def _line(suite: Path, out: Path, *more: object) -> list[str]:
    answers = suite / "gold" / "rows" / "exact" / "questions.jsonl"
    return list(map(str, ["submission", suite, answers, *STATED, "--date", "2026-03-04", "--out", out, *more]))


def test_what_a_release_names_as_next_works(
    suite: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As its user types it: a folder of certificates, and the line after the submission."""
    monkeypatch.chdir(tmp_path)
    manifest = read_manifest(suite)
    commands = list_next_commands(suite, manifest)
    assert [command.words[0] for command in commands] == ["verify", "verify", "submission"]
    for command in commands[1:]:
        assert main(list(map(str, command.words))) == 0
    assert "ok       " in capsys.readouterr().out
    (submission,) = read_submissions(tmp_path / "submissions", manifest, _folder(tmp_path / "scratch"))
    assert isinstance(submission, Submission)
    assert submission.card.system == "my-system"
    capsys.readouterr()
    assert main(["board", str(suite), "submissions", "--out", "site"]) == 0
    pasted = [line.partition("calibrant ")[2] for line in NEXT.findall(capsys.readouterr().err)]
    assert [line.split()[0] for line in pasted] == ["verify", "verify", "submission"]
    for line in pasted[1:]:
        assert main(shlex.split(line)) == 0
    assert (tmp_path / "submissions" / "my-system-2" / "card.toml").is_file()


def test_the_card_says_what_was_stated(suite: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "all" / "mine"
    assert main(_line(suite, out, "--cost", "1.5", "--currency", "USD", "--relationship", "first_party")) == 0
    assert f"board {suite} {out.parent} --out site" in " ".join(capsys.readouterr().err.split())
    _, hint = refusal(capsys, *_line(suite, out))
    assert shlex.split(hint)[-1] == str(tmp_path / "all" / "mine-2")
    answers = (out / "questions.jsonl").read_bytes()
    assert answers == (suite / "gold" / "rows" / "exact" / "questions.jsonl").read_bytes()
    card = tomllib.loads((out / "card.toml").read_text(encoding="utf-8"))
    assert (card["system"], card["version"], card["submitter"]) == STATED[1::2]
    assert (card["suite"], card["suite_version"]) == ("two-pools", "1.0")
    assert (str(card["date"]), card["cost"], card["currency"]) == ("2026-03-04", 1.5, "USD")
    assert card["relationship"] == "first_party"
    assert card["files"] == {"questions.jsonl": sha256(answers).hexdigest()}


def test_what_no_board_would_take_is_refused_and_nothing_is_left(
    suite: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "mine"
    other = tmp_path / "answers.jsonl"
    shutil.copyfile(suite / "gold" / "rows" / "exact" / "questions.jsonl", other)
    line = _line(suite, out)
    twice = [*line[:3], line[2], *line[3:]]
    assert "the pool that it answers: detectors.jsonl or questions.jsonl" in refused(
        capsys, *line[:2], other, *line[3:]
    )
    assert "a second file for the same pool" in refused(capsys, *twice)
    assert "are given together" in refused(capsys, *line, "--cost", "1")
    assert "three capital letters" in refused(capsys, *line, "--cost", "1", "--currency", "dollars")
    assert "spaces or characters that are not shown" in refused(capsys, *line, "--developer", " \n")
    assert "is not called" in refused(capsys, *line, "--submitter", "row of the suite")
    assert "no public/suite.json in it" in refused(capsys, line[0], tmp_path, *line[2:])
    assert [path.name for path in tmp_path.iterdir()] == [other.name]
    out.mkdir()
    (out / "mine").touch()
    assert "there already" in refused(capsys, *line)


def _folder(path: Path) -> Path:
    path.mkdir()
    return path


def test_a_folder_without_certificates_is_refused(
    suite: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pool = suite / "gold" / "detectors" / "detectors.jsonl"
    assert "no certificate in it" in refused(capsys, "verify", tmp_path, pool)
