"""Tables are as wide as COLUMNS or the terminal states, piped or not; what is right by luck is said in a sentence."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from calibrant.bench.core.registry import benchmark
from calibrant.bench.core.scoring import AnswerContext
from calibrant.bench.pages.aligned import fit_columns
from calibrant.bench.report.table import ResultTable
from tests.bench.commands.lines import Files
from tests.support.commands import CHECKOUT, called

WIDTHS = (40, 80, 200)
LINES = (
    "table RUN",
    "table RUN --columns all",
    "table RUN --attribution --pool POOL",
    "score POOL PREDICTIONS",
    "list POOL",
    "list POOL --why",
    "list POOL --scores RUN",
    "audit POOL",
)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    return Files.made("causalab", tmp_path_factory.mktemp("width"))


def words(line: str, files: Files) -> list[str]:
    places = {"RUN": files.run, "POOL": files.pool, "PREDICTIONS": files.predictions}
    return [str(places.get(word, word)) for word in line.split()]


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("line", LINES)
def test_no_line_on_standard_output_is_wider(
    line: str, width: int, files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    done = called(*words(line, files))
    assert done.returncode == 0, done.stderr
    assert done.stdout
    assert [text for text in done.stdout.splitlines() if len(text) > width] == []
    assert "\x1b" not in done.stdout + done.stderr


@pytest.mark.parametrize("width", [60, 80, 100])
def test_every_column_of_attributions_is_shown_with_its_values_whatever_the_width(
    width: int, files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Blocks of the narrow table together are the wide one, and the classes are in the first of them from 80 on."""
    line = words("table RUN --attribution --pool POOL", files)
    monkeypatch.setenv("COLUMNS", str(width))
    narrow = called(*line)
    monkeypatch.setenv("COLUMNS", "400")
    whole = called(*line)
    assert "left out" not in narrow.stderr + whole.stderr
    blocks = [columns_of(block) for block in narrow.stdout.split("\n\n")]
    joined = {heading: cells for block in blocks for heading, cells in block.items()}
    expected = columns_of(whole.stdout)
    assert len(expected) > 15
    assert {k: v for k, v in expected.items() if k not in ("Setting", "System", "Pool")} == {
        k: v for k, v in joined.items() if k not in ("Setting", "System", "Pool")
    }
    assert width < 80 or {"n", "Earned", "Lucky", "Missed", "Short"} <= blocks[0].keys()
    for block in blocks:  # the labels of every block tell its rows apart
        labels = list(
            zip(*(block[heading] for heading in ("Setting", "System", "Pool") if heading in block), strict=True)
        )
        assert len(set(labels)) == len(labels) == len(expected["n"])


def columns_of(block: str) -> dict[str, list[str]]:
    """Return the columns of a table by heading; cells are two spaces apart, headings may have one inside."""
    headings, *rows = (re.split(r" {2,}", line.strip()) for line in block.strip().splitlines())
    return {heading: [row[place] for row in rows] for place, heading in enumerate(headings)}


def test_help_fits_80_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert max(map(len, called("--help").stdout.splitlines())) <= 80


def on_a_terminal(width: int, *arguments: str) -> str:
    """Return what a process prints on a terminal of that width."""
    controller, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 50, width, 0, 0))
    variables = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    process = subprocess.Popen(
        [sys.executable, "-m", "calibrant.bench.cli", *arguments],
        stdout=terminal,
        stderr=subprocess.DEVNULL,
        cwd=CHECKOUT,
        env=variables | {"NO_COLOR": "1"},
    )
    os.close(terminal)
    printed = b""
    try:
        while block := os.read(controller, 65536):
            printed += block
    except OSError:  # Linux reports the closed end so
        pass
    os.close(controller)
    assert process.wait(60) == 0
    return printed.decode().replace("\r\n", "\n")


@pytest.mark.parametrize("width", WIDTHS)
def test_a_terminal_of_a_width_and_columns_of_it_show_the_same(
    width: int, files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = words("list POOL --why", files)
    monkeypatch.setenv("COLUMNS", str(width))
    assert on_a_terminal(width, *line) == called(*line).stdout


def test_below_60_columns_a_row_is_a_paragraph_and_nothing_is_left_out() -> None:
    headings = {"system": "System", "n": "n", "right": "Right", "text": "Text", "none": "None"}
    row = {"system": "a", "n": "24", "right": "0.5", "text": "word " * 12, "none": "\N{EN DASH}"}
    fitted = fit_columns(headings, [row, {**row, "system": "b"}], width=40)
    paragraph = "a\n  n 24  Right 0.5\n  Text word word word word word word\n  word word word word word word"
    assert fitted.text == f"{paragraph}\n\n{paragraph.replace('a', 'b', 1)}"
    assert fitted.left_out == ()


EPISODE: dict[str, object] = {
    "errors": [],
    "strict": True,
    "rule_in_force": {"rule": "conjunctive", "blickets": ["A", "E"]},
    "closed": "answered",
    "steps": 14,
    "refused": 0,
    "activations": 3,
    "class": None,
    "split": None,
    "post_evidence": None,
    "distinct_configurations": 12,
    "first_activation": 6,
    "answer": {"rule": "conjunctive", "blickets": ["A", "E"]},
}


def answer(system: str, instance: str, kind: str) -> tuple[AnswerContext, dict[str, object]]:
    context = AnswerContext(system, "pool", "0" * 64, 9, instance, "moderator", "", benchmark="blickets")
    right = kind in ("earned", "lucky")
    decided = kind in ("earned", "missed")
    return context, {
        **EPISODE,
        "correct": right,
        "attribution": {"kind": kind, "decided": decided, "fits": right, "members": "1"},
    }


@pytest.mark.parametrize(
    ("kinds", "sentence"),
    [
        (
            {"a": ["earned", "lucky", "short"], "b": ["lucky", "lucky", "earned"]},
            "2 of the 3 right answers of b were not decided by what it had seen.",
        ),
        ({"a": ["lucky"], "b": ["lucky"]}, "The only right answer of a was not decided by what it had seen."),
        ({"a": ["earned", "short", "missed"]}, ""),
        ({}, ""),
    ],
)
def test_the_sentence_on_luck_is_about_the_system_with_the_largest_share(
    kinds: dict[str, list[str]], sentence: str
) -> None:
    table = ResultTable(benchmark("blickets").metrics)
    for system, listed in kinds.items():
        for place, kind in enumerate(listed):
            table.add(*answer(system, f"i{place}", kind))
    assert table.luck() == sentence


def test_score_says_what_was_right_by_luck(tmp_path: Path) -> None:
    files = Files.made("blickets", tmp_path)
    assert called("run", "copy,quiet,static", files.pool, "--out", tmp_path / "runs").returncode == 0
    done = called("score", files.pool, tmp_path / "runs" / "records.jsonl", "--id-field", "instance")
    assert done.returncode == 0, done.stderr
    listed = called("list", files.pool, "--scores", tmp_path / "runs", "--class", "lucky", "--json").stdout
    assert bool(re.search(r"(?:right answers|only right answer) of .* not decided by", done.stdout)) is bool(listed)
