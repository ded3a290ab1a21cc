"""Messages on wrong values: what was given, the nearest name first, one place, and a command that works."""

from __future__ import annotations

import html
import re
import shlex
import shutil
from pathlib import Path

import pytest

from calibrant.bench.cli import main
from calibrant.bench.core.registry import bundled_sample
from calibrant.dsl.replayscm.generation.strata import LARGE_STRATA, STRATA
from calibrant.dsl.text import nearest_names
from tests.support.commands import CHECKOUT, refusal

STUDY = '[study]\nout = "records"\ntitel = "Lamps"\n[[block]]\npool = "switches.jsonl"\n'
HEADER = '{"format":"calibrant-pool","version":1,"name":"x"}\n'


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with a pool, answers, a study and a broken pool, where commands run."""
    for file in ("switches.jsonl", "answers.jsonl"):
        shutil.copy(CHECKOUT / "docs" / "examples" / file, tmp_path)
    shutil.copy(bundled_sample("causim"), tmp_path / "causim.jsonl")
    (tmp_path / "study.toml").write_text(STUDY, "utf-8")
    (tmp_path / "broken.jsonl").write_text(HEADER + '{"id": "lamp",}\n', "utf-8")
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
        ("play --study study.toml", "study: unknown field `titel`; did you mean title? known: out, title, ", ""),
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


def test_the_page_of_a_question_has_a_command_that_works_when_it_is_pasted(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the path of its pool, and the id by which the page calls the item."""
    name = "chain-0000-s20-v02-deduction-000"
    assert main(["show", "causim.jsonl", name, "--html", "why.html"]) == 0
    assert main(["audit", "causim.jsonl", "--only", name, "--html", "audit.html"]) == 0
    for page, item in (("why.html", r"item-\w+"), ("audit.html", name)):
        (command,) = re.findall(r"<pre>calibrant (harden [^<]*)</pre>", html.unescape(Path(page).read_text("utf-8")))
        assert re.fullmatch(f"harden causim.jsonl --only {item} --out hardened.jsonl", command)
        assert main(shlex.split(command)) == 0
        Path("hardened.jsonl").unlink()
