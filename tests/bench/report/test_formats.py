"""Tables as terminal text, Markdown, CSV and LaTeX: nothing is lost, and nothing in a name becomes markup."""

from __future__ import annotations

import csv
import io
import re
from dataclasses import replace

import pytest

from calibrant.bench.answers.rates import Interval
from calibrant.bench.replayscm.report import report_tables
from calibrant.bench.report.layout import (
    TEXTS,
    Cell,
    Heading,
    Source,
    Table,
    TableRow,
    as_csv,
    as_latex,
    as_markdown,
    as_terminal,
    cell,
    in_latex,
)
from calibrant.bench.report.sections import ReportContents
from tests.support.report_rows import Answers, answer, rows_of

HOSTILE = 'a|b, "c"\n<i>_d_</i> & 5% $x$ {y} \\z ~ ^ # `e` *f* \r~~g~~ &amp;'
DASH = "\N{EN DASH}"


def table(label: str = "s", *cells: Cell) -> Table:
    ours = TableRow(("Ordered", label, "p_1", "8"), cells or (Cell("0.500", "0.250", "0.750"), Cell("*")))
    paper = TableRow(("Ord-Full", "GPT", "paper", "250"), (Cell("1.000"), Cell(DASH)), Source.PAPER)
    labels = tuple(Heading(key, key.title()) for key in ("setting", "system", "pool", "n"))
    headings = (Heading("train_exact", "TrainExact"), Heading("given", "HE|TE"))
    return Table("1", "Replay", "A caption.", labels, headings, (ours, paper), ("A note.",))


def test_terminal_text_is_aligned_and_has_caption_and_notes() -> None:
    heading, columns, ours, paper, caption, note = as_terminal([table()]).splitlines()
    assert heading == "Table 1. Replay"
    assert columns.split() == ["Setting", "System", "Pool", "N", "TrainExact", "HE|TE"]
    assert ours.split() == ["Ordered", "s", "p_1", "8", "0.500", "[0.250,", "0.750]", "*"]
    assert paper.split() == ["Ord-Full", "GPT", "paper", "250", "1.000", DASH]
    assert columns.index("TrainExact") == ours.index("0.500") == paper.index("1.000")
    assert (caption, note) == ("A caption.", "A note.")
    assert len(as_terminal([table("a\nb\x1b[31m")]).splitlines()) == 6
    assert "\x1b" not in as_terminal([table("\x1b[31m")])


def test_csv_gives_back_every_figure_and_every_name() -> None:
    rows = list(csv.DictReader(io.StringIO(as_csv([table(HOSTILE)]))))
    assert [(r["column"], r["value"], r["low"], r["high"], r["text"]) for r in rows] == [
        ("train_exact", "0.500", "0.250", "0.750", ""),
        ("given", "", "", "", "*"),
        ("train_exact", "1.000", "", "", ""),
        ("given", "", "", "", ""),
    ]
    assert [r["source"] for r in rows] == ["ours", "ours", "paper", "paper"]
    assert {(r["table"], r["setting"], r["system"], r["pool"], r["n"]) for r in rows} == {
        ("1", "Ordered", "".join(c if c.isprintable() else " " for c in HOSTILE), "p_1", "8"),
        ("1", "Ord-Full", "GPT", "paper", "250"),
    }


def test_sizes_and_counts_are_numbers_in_csv() -> None:
    plain = table()
    rows = [
        replace(plain.rows[0], labels=(*plain.rows[0].labels[:-1], size), cells=(Cell(figure), Cell(figure)))
        for size, figure in (("8 of 24", "1,234"), ("10 x 3", "-0.250"), ("1,250", "not separated"))
    ]
    read = list(csv.DictReader(io.StringIO(as_csv([replace(plain, rows=tuple(rows))]))))[::2]
    assert [(r["n"], r["n_text"], r["value"], r["text"]) for r in read] == [
        ("8", "8 of 24", "1234", ""),
        ("10", "10 x 3", "-0.250", ""),
        ("1250", "", "", "not separated"),
    ]


def test_csv_of_a_whole_report_gives_back_its_cells() -> None:
    scores = [answer(1, 1, 1.0)] * 5 + [answer(1, 0.5, 0.5)] * 3
    names = ("a, b", "c")
    made = report_tables(
        rows_of(*(Answers(n, scores, setting=s, pool=s) for n in names for s in ("Ordered", "Block"))), ReportContents()
    )
    read = list(csv.DictReader(io.StringIO(as_csv(made))))
    cells = [one for t in made for row in t.rows for one in row.cells]
    stated = [(r["value"] or r["text"] or DASH, r["low"], r["high"]) for r in read]
    assert stated == [(one.text, one.low, one.high) for one in cells]
    for r in read:
        assert [float(r[key]) for key in ("n", "value", "low", "high") if r[key]]
    assert {r["table"] for r in read} == {t.id for t in made}
    assert {"paired", "D.1", "F.11", "time"} < {r["table"] for r in read}
    assert {(r["system"], r["other"]) for r in read if r["table"] == "paired"} == {("a, b", "c")}


def test_markdown_has_one_cell_per_column_whatever_names_say() -> None:
    lines = as_markdown([table(HOSTILE)]).splitlines()
    grid = [line for line in lines if line.startswith("|")]
    assert len(grid) == 4
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in grid} == {7}
    assert "<i>" not in "\n".join(grid).replace("\\<", "")
    assert "*GPT*" in grid[3]
    assert "*s*" not in as_markdown([table()])
    assert lines[0] == "## Table 1. Replay"
    assert lines[-1] == "A note."


@pytest.mark.parametrize(
    ("text", "latex"),
    [
        ("100% & 5#", r"100\% \& 5\#"),
        ("a_b^c~d", r"a\_b\textasciicircum{}c\textasciitilde{}d"),
        ("{x} $y$ \\z", r"\{x\} \$y\$ \textbackslash{}z"),
        ("HW|TE <1>", r"HW\textbar{}TE \textless{}1\textgreater{}"),
        (DASH, "--"),
        ("Δ", r"$\Delta$"),
        ("“paper”", "``paper''"),
        ('"', r"\textquotedbl{}"),
        ("plain-name 1.0*", "plain-name 1.0*"),
    ],
)
def test_latex_shows_special_characters_as_themselves(text: str, latex: str) -> None:
    assert in_latex(text) == latex


def test_latex_tables_are_whole() -> None:
    text = as_latex([table(HOSTILE)])
    lines = text.splitlines()
    assert [lines[0], lines[2], lines[3], lines[5]] == [
        r"\begin{table}",
        r"\begin{tabular}{llllrr}",
        r"\toprule",
        r"\midrule",
    ]
    for name in ("table", "tabular"):
        assert text.count(rf"\begin{{{name}}}") == text.count(rf"\end{{{name}}}") == 1
    unescaped = re.sub(r"\\[{}&]", "", text)
    assert unescaped.count("{") == unescaped.count("}")
    body = [line for line in unescaped.splitlines() if line.endswith(r"\\")]
    assert [line.count("&") for line in body] == [5, 5, 5]
    assert r"0.500 {\scriptsize [$0.250$, $0.750$]}" in text
    assert r"\textit{GPT}" in text
    assert r"\label{tab:table-1}" in text
    assert r"$+$0.100 {\scriptsize [$-0.050$, $+0.200$]}" in as_latex([table("s", Cell("+0.100", "-0.050", "+0.200"))])
    assert as_latex([table("s", Cell(DASH))]).count(r"& -- \\") == 2  # ours and the paper's


@pytest.mark.parametrize(
    ("interval", "signed", "low", "high"),
    [
        (Interval(0.25, 0.75), False, "0.25", "0.75"),
        (Interval(-0.5, 0.126), True, "-0.50", "+0.13"),
        (Interval(-0.0, 0.0), True, "+0.00", "+0.00"),
        (None, False, "", ""),
    ],
)
def test_intervals_have_the_decimals_of_their_figure(
    interval: Interval | None, signed: bool, low: str, high: str
) -> None:
    made = cell("0.50", interval, decimals=2, signed=signed)
    assert (made.text, made.low, made.high) == ("0.50", low, high)
    assert made.interval == (f"[{low}, {high}]" if interval else "")


@pytest.mark.parametrize("name", sorted(TEXTS))
def test_no_table_is_no_error(name: str) -> None:
    assert isinstance(TEXTS[name]([]), str)


@pytest.mark.parametrize("width", [40, 80, 200])
def test_no_line_of_a_table_is_wider_than_the_terminal_and_no_figure_is_left_out(width: int) -> None:
    labels = (Heading("system", "System"), Heading("n", "n"))
    headings = tuple(Heading(f"k{k}", f"Column {k}") for k in range(12))
    row = TableRow(("exact", "8"), tuple(Cell(f"{k}.{k:03}", "0.100", "0.900") for k in range(12)))
    lines = as_terminal([Table("wide", "A wide table", "Caption.", labels, headings, (row,))], width).splitlines()
    assert max(map(len, lines)) <= width
    assert all(f"{k}.{k:03}" in "\n".join(lines) for k in range(12))
