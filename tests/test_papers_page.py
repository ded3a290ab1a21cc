"""docs/papers.md: every command runs and gives the table it stands for; every stored printed table has a line.

The preparations run once, with one item each, and reports that differ in their tables alone run as one: what takes
seconds is the preparation. A command that the program no longer has, or a table that it no longer makes, fails here.
"""

from __future__ import annotations

import csv
import io
import re
import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from calibrant.audits.blickets.printed import TwoByTwo, fisher_exact
from calibrant.bench.blickets.paper import paper as blickets_paper
from calibrant.bench.causalab.paper import paper as causalab_paper
from calibrant.bench.causim.paper import paper as causim_paper
from calibrant.bench.lab.blickets import main as blickets_main
from calibrant.bench.replayscm.paper import paper
from calibrant.bench.report.layout import anchor_of
from calibrant.datasets import printed_table
from tests.support.commands import CHECKOUT, called
from tests.support.shared import shared_json

PAGE = CHECKOUT / "docs" / "papers.md"
BLICKETS = "python -m calibrant.bench.lab.blickets "
STORED: dict[str, Callable[[], tuple[str, ...]]] = {
    "ReplaySCM": lambda: tuple(paper().tables),
    "CausaLab": lambda: tuple(causalab_paper().tables),
    "CauSim": lambda: tuple(causim_paper().tables),
    "Extended blickets": lambda: tuple(blickets_paper().tables),
}
FILES = {
    "ReplaySCM": ["replayscm_paper_rows_rest.json"],
    "CausaLab": ["causalab_paper_rows.json", "causalab_paper_rows_rest.json"],
    "CauSim": ["causim_paper_rows.json", "causim_paper_rows_rest.json"],
    "Extended blickets": ["blickets_paper_rows.json", "blickets_paper_rows_rest.json"],
}
NUM_PRINTED = {"ReplaySCM": 40, "CausaLab": 10, "CauSim": 16, "Extended blickets": 9}  # tables with printed rows

ROWS_OF_ONE = {("CauSim", "25"): 2, ("Extended blickets", "7"): 3}  # rows that a stored row fills


@dataclass(frozen=True)
class Paper:
    """A section of the page.

    rows: first and second cell of each line of its table
    """

    title: str
    preparation: tuple[str, ...]
    rows: tuple[tuple[str, str], ...]

    @property
    def keys(self) -> set[str]:
        return {key for first, _ in self.rows for key in re.findall(r"`([^`]+)`", first)}

    @property
    def commands(self) -> Iterator[str]:
        pools = " ".join(f"--pool {name}" for name in self.pools)
        for _, second in self.rows:
            for code in re.findall(r"`([^`]+)`", second):
                is_command = code.startswith(("calibrant ", BLICKETS))
                if is_command and not re.search(r"\b(FILE|ID|DIR)\b", code):
                    yield code.replace("POOLS", pools)

    @property
    def pools(self) -> list[str]:
        """Return the pools that the preparation makes."""
        names = (re.search(r"--out (\S+\.jsonl)|alternatives \S+ (\S+\.jsonl)", line) for line in self.preparation)
        return [name[1] or name[2] for name in names if name]


def papers() -> list[Paper]:
    sections = re.split(r"^## ", PAGE.read_text("utf-8"), flags=re.MULTILINE)[1:]
    read = []
    for section in sections:
        lines = section.splitlines()
        block = re.search(r"```sh\n(.*?)```", section, flags=re.DOTALL)
        cells = [re.split(r"(?<!\\) \| ", line.strip("| ")) for line in lines if line.startswith("| ")]
        rows = [(cell[0], cell[1]) for cell in cells if cell[0] != "in the paper"]
        read.append(Paper(lines[0], tuple(block[1].splitlines()) if block else (), tuple(rows)))
    return read


PAPERS = {paper.title: paper for paper in papers()}


def grouped(commands: Iterator[str]) -> dict[tuple[str, ...], list[str]]:
    """Return command lines without their tables, each with the tables that it is to make."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for command in commands:
        words = shlex.split(command)
        tables = [words[k + 1] for k, word in enumerate(words) if word == "--table"]
        rest = [word for k, word in enumerate(words) if "--table" not in (word, words[k - 1] if k else "")]
        groups.setdefault(tuple(rest), []).extend(tables)
    return groups


def test_the_page_has_the_four_papers() -> None:
    assert list(PAPERS) == list(STORED)
    assert all(paper.preparation and len(paper.rows) > 10 for paper in PAPERS.values())


@pytest.mark.parametrize("title", STORED)
def test_every_stored_table_has_a_line_with_a_command_or_a_reason(title: str) -> None:
    missing = set(STORED[title]()) - PAPERS[title].keys
    assert not missing, f"docs/papers.md lacks {', '.join(sorted(missing))} of {title}"
    assert all(second.strip() for _, second in PAPERS[title].rows)


@pytest.mark.parametrize("title", STORED)
def test_every_table_of_the_files_of_printed_figures_has_a_line(title: str) -> None:
    for name in FILES[title]:
        tables = shared_json(name, part="family")["tables"]
        assert set(tables) <= PAPERS[title].keys, name


def csv_rows(figures: list[dict[str, str]], number: str) -> set[tuple[str, ...]]:
    """Return the labels of the printed rows of a table; figures of one row share all of them."""
    of_figure = {"table", "source", "column", "value", "low", "high", "text"}
    rows = (row for row in figures if row["table"] == number and row["source"] == "paper")
    return {tuple(text for key, text in row.items() if key not in of_figure) for row in rows}


def markdown_rows(text: str) -> list[int]:
    """Return the number of printed rows of each table: those with a label in italics."""
    return [len(re.findall(r"^\|.* \*[^|]+\* \|", part, flags=re.MULTILINE)) for part in text.split("\n## ")]


def terminal_rows(text: str, rows: list[set[tuple[str, ...]]]) -> list[int]:
    """Return how many of the rows of each table have a line with all of their labels."""
    parts = text.split("\n\n")
    lines = [[set(re.split(r" {2,}", line.strip())) for line in part.splitlines()] for part in parts]
    return [
        sum(any(set(labels) - {""} <= line for line in part) for labels in of_table)
        for part, of_table in zip(lines, rows, strict=True)
    ]


def html_rows(page: str, numbers: list[str]) -> dict[str, int]:
    """Return the number of rows in the part "In the paper" of each table."""
    counts = dict.fromkeys(numbers, 0)
    for number in numbers:
        name = anchor_of(f"table {number}")
        for part in re.findall(rf'id="{name}(?:-paper)?">(.*?)</table>', page, flags=re.DOTALL):
            body = re.search(r'<tbody class="paper">(.*?)</tbody>', part, flags=re.DOTALL)
            counts[number] += body[1].count("<tr>") if body else 0
    return counts


@pytest.mark.parametrize("title", STORED)
def test_every_command_runs_and_names_its_table(
    title: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "400")  # as wide as it goes: no table is cut into paragraphs
    monkeypatch.chdir(tmp_path)
    paper = PAPERS[title]
    counted: set[str] = set()
    for line in paper.preparation:
        assert called(*shlex.split(line)[1:]).returncode in (0, 1), line  # 1: a pool is not hardened to the end
    for words, tables in grouped(paper.commands).items():
        if " ".join(words).startswith(BLICKETS):
            assert blickets_main(words[3:]) == 0
            assert "Table 1: " in capsys.readouterr().out or words[3] == "findings"
            continue
        chosen = [word for table in tables for word in ("--table", table)]
        form = ["--format", "csv"] if tables else []
        done = called(*words[1:], *chosen, *form)
        assert done.returncode == 0, f"{' '.join(words)}: {done.stderr}"
        figures = [*csv.DictReader(io.StringIO(done.stdout))] if tables else []
        made = list(dict.fromkeys(figure["table"] for figure in figures))
        assert set(tables) == set(made), f"{' '.join(words)}: tables {sorted(set(tables) - set(made))} are not made"
        if not tables or "--paper" not in words or "--against" in words:  # with differences as rows of their own
            continue
        stored = {n: len(printed_texts(title, n)) * ROWS_OF_ONE.get((title, n), 1) for n in made}
        printed = {number: csv_rows(figures, number) for number in made}
        assert {number: len(rows) for number, rows in printed.items()} == stored, " ".join(words)
        counted.update(made)
        texts = {form: called(*words[1:], *chosen, "--format", form).stdout for form in ("markdown", "terminal")}
        assert called(*words[1:], *chosen, "--out", "page.html").returncode == 0
        counts = {
            "markdown": dict(zip(made, markdown_rows(texts["markdown"]), strict=True)),
            "terminal": dict(zip(made, terminal_rows(texts["terminal"], [*printed.values()]), strict=True)),
            "html": html_rows(Path("page.html").read_text("utf-8"), made),
        }
        for kind, count in counts.items():
            assert count == stored, f"{' '.join(words)} --format {kind}"
    assert len(counted) == NUM_PRINTED[title]


def test_groups_keep_every_table_with_its_own_line() -> None:
    commands = ["calibrant report r --table 1 --paper", "calibrant report r --table 2 --paper", "calibrant show p i"]
    assert grouped(iter(commands)) == {
        ("calibrant", "report", "r", "--paper"): ["1", "2"],
        ("calibrant", "show", "p", "i"): [],
    }


FINDINGS = CHECKOUT / "docs" / "findings.md"
COUNTS = re.compile(r"(\d+) of (\d+)")


def differences() -> list[list[str]]:
    section = FINDINGS.read_text("utf-8").split("## Where printed figures and ours differ")[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("| ") and "`" in line]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def printed_texts(title: str, number: str) -> list[tuple[str, ...]]:
    """Return the rows of a stored table, as texts."""
    if title == "ReplaySCM":
        table = printed_table(number)
        assert table is not None, number
        return [tuple(row) for row in table.rows]
    papers: dict[str, Any] = {"CausaLab": causalab_paper, "CauSim": causim_paper, "Extended blickets": blickets_paper}
    return [tuple(row) for row in papers[title]().tables[number].rows]


def test_figures_that_differ_are_printed_so_and_differ_beyond_chance() -> None:
    rows = differences()
    assert len(rows) > 8
    for place, printed, ours, p, reason in rows:
        title, number = re.match(r"(.*?) `(.+?)`", place).groups()  # type: ignore[union-attr]
        names = [part.strip() for part in place.split(",")[1:]]
        table = printed_texts(title, number)
        cells = {cell for row in table for cell in row}
        for figure in re.findall(r"`([\d.]+)`", printed + reason):
            assert figure in cells, f"{place}: {figure} is not in the table"
        assert reason, place
        if (counts := COUNTS.match(printed)) and (here := COUNTS.match(ours)):
            (a, n), (b, m) = (map(int, match.groups()) for match in (counts, here))
            two_sided = fisher_exact(TwoByTwo(a, n - a, b, m - b)).two_sided
            assert two_sided < 0.05, place
            stated = f"{two_sided:.3f}".lstrip("0") if two_sided >= 0.0005 else "<.001"
            assert p == stated, f"{place}: p is {two_sided}"
            shares = {f"{a / n:.3f}", f"{100 * a / n:.0f}", f"{100 * a / n:.1f}", str(a)}
            of_row = [row for row in table if all(any(name in cell for cell in row) for name in names[:1])]
            assert any(shares & set(row) for row in of_row), f"{place}: {printed} is not printed there"
        else:
            assert not p, place
