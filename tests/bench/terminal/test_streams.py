"""Nothing that a file calls its instances or models can act on a terminal or in a spreadsheet."""

from __future__ import annotations

import csv
import io
import json
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibrant.bench.cli import main
from calibrant.bench.report.formats import inert
from calibrant.bench.terminal import PrintableStream, drawn_on, printable
from calibrant.dsl.errors import in_one_line
from tests.support.commands import command, jsonl
from tests.support.replayscm.pool_texts import native_file, native_record

NAME = "\x1b[31mI1\x1b]0;owned\x07\x9b2J\rI2\x7f\u202eI3\nforged: row"
MODEL = "=cmd|' /C calc'!A0\x1b[2J"


@pytest.fixture
def pool(tmp_path: Path) -> Path:
    return native_file([native_record(NAME), native_record("plain")], tmp_path)


def acting(text: str) -> set[str]:
    """Characters that do something to a terminal, or to the order of what it shows."""
    return {c for c in text if c not in "\n\t" and unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp", "Cs")}


@pytest.mark.parametrize(
    "line",
    [
        ["audit", "POOL", "--workers", "1"],
        ["audit", "POOL", "--details", "--workers", "1"],
        ["audit", "POOL", "--fail-on", "ambiguous", "--workers", "1"],
        ["audit", "POOL", "--json", "--workers", "1"],
        ["prompts", "POOL", "--text"],
        ["prompts", "POOL"],
        ["show", "POOL", "none of these"],
        ["show", "POOL", NAME],
        ["separate", "POOL", NAME],
        ["harden", "POOL", "--out", "OUT", "--workers", "1"],
        ["harden", "POOL", "--out", "OUT", "--mode", "extra-worlds", "--workers", "1"],
        ["pool", "check", "POOL", "--fields"],
        ["pool", "stats", "POOL"],
        ["pool", "alternatives", "POOL", "OUT"],
        ["run", "exact", "POOL", "--out", "OUT", "--workers", "1", "--only", NAME],
    ],
    ids=lambda line: " ".join(line[:1] + line[2:3]),
)
def test_ids_do_not_act_on_the_terminal(
    line: list[str], pool: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    code = main([{"POOL": str(pool), "OUT": str(tmp_path / "out")}.get(word, word) for word in line])
    assert code in (0, 1, 2)
    printed = capfd.readouterr()
    assert printed.out + printed.err
    assert acting(printed.out + printed.err) == set()
    assert not any(text.startswith("forged") for text in (printed.out + printed.err).splitlines())


def test_models_do_not_act_on_the_terminal_either(
    pool: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    lines = [{"instanceId": name, "model": MODEL, "response": "\x1b[2J"} for name in (NAME, "plain")]
    scored = tmp_path / "scores.jsonl"
    assert main(["score", str(pool), str(jsonl(tmp_path / "p.jsonl", *lines)), "--out", str(scored)]) == 0
    assert main(["table", str(scored)]) == 0
    for form in ("terminal", "markdown", "latex", "csv"):
        assert main(["report", str(scored), "--format", form]) == 0
    printed = capfd.readouterr()
    assert acting(printed.out + printed.err) == set()


def test_a_spreadsheet_finds_no_formula_and_every_number(
    pool: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    lines = [{"instanceId": n, "model": m, "response": "{}"} for n in (NAME, "plain") for m in (MODEL, "-2+3", "@a")]
    scored = tmp_path / "scores.jsonl"
    assert main(["score", str(pool), str(jsonl(tmp_path / "p.jsonl", *lines)), "--out", str(scored)]) == 0
    capfd.readouterr()
    assert main(["report", str(scored), "--format", "csv", "--no-paper"]) == 0
    cells = [cell for row in csv.reader(io.StringIO(capfd.readouterr().out)) for cell in row]
    assert {"'-2+3", "'@a"} <= set(cells)
    dangerous = [cell for cell in cells if cell[:1] in ("=", "+", "-", "@", "\t", "\r")]
    assert all(float(cell) is not None for cell in dangerous)  # numbers, all of them
    assert dangerous == [] or min(map(float, dangerous)) < 0 or "+0.000" in dangerous


@pytest.mark.parametrize("number", ["-0.250", "+0.125", "-3", "1e-5", "-1E+05", "0.5", "", "\N{EN DASH}"])
def test_numbers_stay_numbers(number: str) -> None:
    assert inert(number) == number


@pytest.mark.parametrize("formula", ["=1+1", "+1+1", "-1+1", "@SUM(A1)", "\t=1", "\r=1", "-", "+inf()", "-1 "])
def test_formulas_are_defused(formula: str) -> None:
    assert inert(formula) == f"'{formula}"


@given(st.text())
def test_printable_text_keeps_its_lines_and_everything_that_is_harmless(text: str) -> None:
    made = printable(text)
    assert acting(made) <= {c for c in text if unicodedata.category(c) == "Cf"} - set("\u202e\u200b\ufeff\u2066")
    assert made.count("\n") == text.count("\n")
    if not acting(text):
        assert made == text
    assert printable(made) == made
    assert "\n" not in in_one_line(text)


def test_json_stays_json(pool: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["show", str(pool), NAME, "--json", "--gold"]) == 0
    printed = capfd.readouterr().out
    assert acting(printed) == set()
    assert json.loads(printed)["id"] == NAME


def test_what_draws_on_the_terminal_gets_the_stream_itself() -> None:
    below = io.StringIO()
    stream = PrintableStream(below)
    assert drawn_on(stream) is below  # type: ignore[arg-type]
    assert drawn_on(below) is below
    print("\x1b[1mbold", file=stream)
    assert below.getvalue() == "\\u001b[1mbold\n"


def test_an_ascii_terminal_gets_question_marks_and_no_way_around_the_rule(pool: Path) -> None:
    environment = {"PATH": "/usr/bin", "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii"}
    done = command("prompts", pool, "--text", env=environment)
    assert done.returncode == 0
    assert acting(done.stdout) == set()
