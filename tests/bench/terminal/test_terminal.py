"""Output of the command: streams, legends, listings, folders, and how wide tables are."""

from __future__ import annotations

import csv
import fcntl
import io
import json
import os
import pty
import re
import shlex
import shutil
import struct
import subprocess
import sys
import termios
import time
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibrant.bench.cli import main
from calibrant.bench.core.registry import benchmark, bundled_pool, bundled_sample
from calibrant.bench.core.scoring import AnswerContext
from calibrant.bench.pages.terminal_tables import fit_columns
from calibrant.bench.report.layout import inert
from calibrant.bench.report.table import ResultTable, attribution_legend, tie_legend
from calibrant.bench.terminal import PrintableStream, drawn_on, json_text, making_folder, printable
from calibrant.dsl.errors import in_one_line
from tests.bench.commands.lines import Files
from tests.support.commands import CHECKOUT, called, command, jsonl, refusal, refused
from tests.support.replayscm.records import native_file, native_record

# --- Nothing that a file calls its instances or models can act on a terminal or in a spreadsheet ----------------------
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
    stream.close()
    assert not below.closed
    below.close()
    stream.close()  # as when it is collected after the other: Python 3.14 prints the error that this would raise


def test_an_ascii_terminal_gets_question_marks_and_no_way_around_the_rule(pool: Path) -> None:
    environment = {"PATH": "/usr/bin", "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii"}
    done = command("prompts", pool, "--text", env=environment)
    assert done.returncode == 0
    assert acting(done.stdout) == set()


# --- What tables say of their own columns, files without items, and text beside a page --------------------------------
HEADING = re.compile(r"(?:^|; |\. )([A-Z]\w*(?:[| ]\w+)*|k<=\d(?: to k<=\d)?): ")
LABELS = {"Setting", "System", "Pool", "n"}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with a pool of one open item of its author's, where commands run."""
    shutil.copy(CHECKOUT / "docs" / "examples" / "switches.jsonl", tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def explained(text: str) -> set[str]:
    return set(HEADING.findall(" ".join(text.split())))


def test_every_column_of_attributions_is_explained_and_no_other(folder: Path) -> None:
    assert called("run", "exact", "switches.jsonl", "--out", "runs").returncode == 0
    line = ["table", "runs", "--attribution", "--pool", "switches.jsonl"]
    done = called(*line)
    blocks = [block.splitlines()[0].split() for block in done.stdout.split("\n\n")]
    assert explained(done.stderr) == {heading for block in blocks for heading in block} - LABELS
    assert "Uniform weighs all that fit alike" in " ".join(done.stderr.split())
    assert explained(called(*line, "--columns", "earned,decided").stderr) == {"Earned", "Decided"}
    assert explained(called("table", "runs").stderr) == set()
    assert attribution_legend(["n", "Chance"], 80) == ["Chance: expected rate of a draw from what fits."]


@pytest.mark.parametrize("width", ["60", "80", "200"])
def test_every_column_of_an_audit_is_explained_and_no_other(
    width: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", width)
    _, table, legend, *_ = called("audit", "switches.jsonl").stdout.split("\n\n")
    _, heads, *_ = table.splitlines()
    headings = re.split(r"\s{2,}", heads)
    counts = [heading for heading in headings if heading.startswith("k<=")]
    stated = {*headings, f"{counts[0]} to {counts[-1]}"} - {*counts, "Instance", "Setting"}
    assert explained(legend) == stated
    assert max(map(len, legend.splitlines())) <= int(width)


def test_the_row_of_the_chosen_answer_is_explained(folder: Path) -> None:
    shutil.copy(bundled_pool("block"), "block.jsonl")
    done = called("run", "exact", "block.jsonl", "--out", "runs", "--workers", "1")
    assert "exact (chosen)  " in done.stdout
    assert "exact (chosen): the answer that the tie rule takes of them." in " ".join(done.stderr.split())
    assert tie_legend(None, 80) == []


@pytest.mark.parametrize("name", ["replayscm", "blickets", "causalab", "causim", "logic"])
def test_a_pool_without_items_is_one_line(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    source = bundled_pool("block") if name == "replayscm" else bundled_sample(name)
    Path("empty.jsonl").write_text(source.read_text("utf-8").splitlines()[0] + "\n", "utf-8")
    lines = ("list POOL", "list POOL --why --json", "pool check POOL", "pool stats POOL", "audit POOL")
    for line in (*lines, "run exact POOL --out runs", "prompts POOL --out prompts.jsonl"):
        assert refused(capsys, *line.replace("POOL", "empty.jsonl").split()) == "no items in empty.jsonl"
    assert [path.name for path in tmp_path.glob("*") if path.is_file()] == ["empty.jsonl"]


def test_a_pool_of_other_items_is_refused_with_the_right_one(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In the present folder, or a bundled one; the number of ids that are not in it is stated."""
    two = bundled_pool("block").read_text("utf-8").splitlines(keepends=True)[:3]
    Path("two.jsonl").write_text("".join(two), "utf-8")
    for pool, run in (("switches.jsonl", "own"), ("two.jsonl", "few"), (bundled_pool("block"), "bundled")):
        assert called("run", "exact", pool, "--out", run, "--limit", "2", "--workers", "1").returncode == 0
    table = ("table", "own", "--attribution", "--pool")
    error, hint = refusal(capsys, *table, bundled_pool("block"))
    assert error.startswith("--pool: sample_block.jsonl lacks 1 of 1 answered id; the answers are to switches (sha256 ")
    assert hint == "calibrant table own --attribution --pool switches.jsonl"
    assert called(*shlex.split(hint)[1:]).returncode == 0
    error, hint = refusal(capsys, "table", "bundled", "--attribution", "--pool", "switches.jsonl")
    assert error.startswith("--pool: switches.jsonl lacks 2 of 2 answered ids; ")
    assert hint == f"calibrant table bundled --attribution --pool {bundled_pool('block')}"
    error, hint = refusal(capsys, "table", "few", "--attribution", "--pool", bundled_pool("block"))
    assert error.startswith("--pool: sample_block.jsonl has the answered ids, but is another file; ")
    assert hint == ""


def test_why_prints_beside_a_page(folder: Path) -> None:
    reason = "Two SCMs fit everything else and disagree there"
    for line in (["show", "switches.jsonl", "lamp"], ["list", "switches.jsonl"]):
        assert reason in " ".join(called(*line, "--why", "--html", f"{line[0]}.html").stdout.split())
        assert called(*line, "--html", f"{line[0]}.html").stdout == ""
        assert reason in Path(f"{line[0]}.html").read_text("utf-8")


def test_the_published_hardening_stands_beside_published_strata_alone(folder: Path) -> None:
    assert "published CEx" not in called("harden", "switches.jsonl", "--out", "own.jsonl").stdout
    line = ("harden", bundled_pool("hidden-order"), "--limit", "1", "--out", "drawn.jsonl", "--workers", "1")
    assert "published CEx" in called(*line).stdout


# --- `calibrant list`: items, and answers by class and system; large pools by their ids -------------------------------


def rows(*arguments: object) -> list[dict[str, object]]:
    done = called("list", *arguments, "--json")
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.fixture
def files(files_of: Callable[[str], Files]) -> Files:
    return files_of("causalab")


def test_classes_divide_the_answers_of_a_system(files: Files) -> None:
    everything = rows(files.pool, "--scores", files.run, "--system", "greedy")
    classes = [
        rows(files.pool, "--scores", files.run, "--class", kind) for kind in ("earned", "lucky", "short", "missed")
    ]
    assert [row["id"] for row in everything] == list(files.ids)
    assert sorted(str(row["id"]) for listed in classes for row in listed) == sorted(files.ids)
    for kind, listed in zip(("earned", "lucky", "short", "missed"), classes, strict=True):
        assert all(row["class"] == kind and row["right"] is (kind in ("earned", "lucky")) for row in listed)
    assert "system" not in everything[0]


def test_an_unknown_system_is_refused_with_those_there_are(files: Files, capsys: pytest.CaptureFixture[str]) -> None:
    line = ("list", files.pool, "--scores", files.run, "--system", "nobody")
    assert refused(capsys, *line) == "no answer of 'nobody'; there are greedy"


def large_pool(path: Path, number: int) -> Path:
    header, *items = bundled_sample("blickets").read_text("utf-8").splitlines()
    begun = [json.dumps({**json.loads(item), "id": "ITEM"}).split("ITEM") for item in items]
    with path.open("w", encoding="utf-8") as file:
        file.write(f"{header}\n")
        for place in range(number):
            file.write(f"item-{place}".join(begun[place % len(items)]) + "\n")
    return path


def test_a_hundred_thousand_ids_take_two_seconds(tmp_path: Path) -> None:
    """Of processor time: their items are not made. The first items have all that is listed of small pools."""
    pool = large_pool(tmp_path / "large.jsonl", 100_000)
    before = time.process_time()
    listed = called("list", pool, "--limit", 0, "--json").stdout
    assert time.process_time() - before < 2
    assert [json.loads(line)["id"] for line in listed.splitlines()] == [f"item-{place}" for place in range(100_000)]
    assert called("list", pool, "--limit", 0).stdout.splitlines()[1:] == [f"item-{k}" for k in range(100_000)]
    first = called("list", pool, "--limit", 3)
    assert first.stderr == "3 of 100,000 items; --limit 0 for all, --json for scripts\n"
    small = large_pool(tmp_path / "small.jsonl", 3)
    assert first.stdout == called("list", small).stdout


def test_a_broken_line_of_a_large_pool_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pool = large_pool(tmp_path / "large.jsonl", 2_500)
    with pool.open("a", encoding="utf-8") as file:
        file.write("{}\n")
    assert refused(capsys, "list", pool).startswith("large.jsonl: line 2502: ")


# --- Folders that a command makes: what a killed process leaves goes with the next run, and nothing else does ---------
MAKER = """
import sys, time
from pathlib import Path
from calibrant.bench.terminal import making_folder
with making_folder(Path(sys.argv[1])) as (made, scratch):
    made.mkdir()
    scratch.mkdir()
    (scratch / "half").write_text("done")
    print("at work", flush=True)
    time.sleep(300)
"""


@contextmanager
def maker(out: Path) -> Iterator[subprocess.Popen[str]]:
    """Give a process that is making a folder; it is killed, as by kill -9, at the latest when the block ends."""
    line = [sys.executable, "-c", MAKER, str(out)]
    with subprocess.Popen(line, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "at work\n"
            yield process
        finally:
            process.kill()


def make(out: Path) -> None:
    with making_folder(out) as (made, _):
        made.mkdir()
        (made / "file").write_text("whole")


def test_the_next_run_removes_what_a_killed_one_left(tmp_path: Path) -> None:
    out = tmp_path / "release[1]"
    for _ in range(3):
        with maker(out) as process:
            process.kill()
    assert len(list(tmp_path.iterdir())) == 1  # that of the last; each start removes the one before
    make(out)
    assert list(tmp_path.iterdir()) == [out]
    assert (out / "file").read_text() == "whole"


def test_what_is_at_work_or_of_others_stays(tmp_path: Path) -> None:
    out = tmp_path / "release"
    others = [
        tmp_path / name for name in (".release.12345678", ".release.abcdefgh", ".release2.abcdefgh", ".release.a")
    ]
    for folder in others:
        (folder / "made").mkdir(parents=True)
        (folder / "made" / "theirs").touch()
    (others[0] / "calibrant.lock").touch()
    (others[0] / "notes.txt").touch()  # no program of ours puts it there
    link = tmp_path / ".release.linklink"
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "calibrant.lock").touch()
    link.symlink_to(tmp_path / "elsewhere")
    with maker(out), maker(tmp_path / "release-2") as killed:
        killed.kill()
        killed.wait()
        at_work = {path.name for path in tmp_path.iterdir()}
        make(out)
        assert {path.name for path in tmp_path.iterdir()} == at_work | {"release"}
        assert all((folder / "made" / "theirs").is_file() for folder in others)
    with maker(tmp_path / "release-2"):
        assert len(list(tmp_path.glob(".release-2.*"))) == 1


# --- Tables are as wide as COLUMNS or the terminal states, piped or not; what is right by luck is said in a
# sentence
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
    return {heading: [row[index] for row in rows] for index, heading in enumerate(headings)}


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


@pytest.mark.parametrize("width", [40, 200])  # 80 is what is taken of a terminal that has none
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
        for index, kind in enumerate(listed):
            table.add(*answer(system, f"i{index}", kind))
    assert table.luck() == sentence


def test_score_says_what_was_right_by_luck(tmp_path: Path, files_of: Callable[[str], Files]) -> None:
    files = files_of("blickets")
    assert called("run", "copy,quiet,static", files.pool, "--out", tmp_path / "runs").returncode == 0
    done = called("score", files.pool, tmp_path / "runs" / "records.jsonl", "--id-field", "instance")
    assert done.returncode == 0, done.stderr
    listed = called("list", files.pool, "--scores", tmp_path / "runs", "--class", "lucky", "--json").stdout
    assert bool(re.search(r"(?:right answers|only right answer) of .* not decided by", done.stdout)) is bool(listed)


@pytest.mark.parametrize(("encoding", "is_typed"), [("utf-8", True), ("latin-1", False), ("ascii", False)])
def test_names_in_json_are_as_they_were_typed_where_the_encoding_has_them(
    encoding: str, is_typed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Characters that act on a terminal stay escaped, as JSON reads them back; half a character too."""
    value = {"gr\u00f6\u00dfe": ["\u65e5\u672c", "\U0001f642"], "mark": "\u202e\U000e0001\ud800"}
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(io.BytesIO(), encoding=encoding))
    text = json_text(value)
    assert json.loads(text) == value
    assert ("gr\u00f6\u00dfe" in text, "\u65e5\u672c" in text, "\U0001f642" in text) == (is_typed,) * 3
    assert not set("\u202e\U000e0001\ud800") & set(text)
    assert json_text("a\x7f") == '"a\\u007f"'
