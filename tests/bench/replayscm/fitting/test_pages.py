"""Pages of fits whose table is no item: decided formulas, marked rows, next commands; measured in a browser."""

from __future__ import annotations

import html
import re
import shlex
from pathlib import Path

import pytest

from calibrant.bench.cli import main
from tests.support.accessibility import DESKTOP, PHONE, THEMES, measure, needs_axe
from tests.support.commands import called
from tests.support.replayscm.table_vectors import fit_complete

HEAD = "a<b,sex,c,d e,set\n"
WHOLE = ["no,f,0,0,", "yes,f,0,0,", "yes,m,0,1,", "yes,m,1,0,d e", "no,m,1,0,", "yes,f,1,1,"]
GAPPED = [*WHOLE[:5], "yes,?,1,1,", "NA,m,1,,"]
PLA = ".i 3\n.o 2\n.ilb a b c\n.ob f g\n.type fd\n11- 1-\n0-1 -1\n000 01\n.e\n"
PAGES: dict[str, tuple[str, list[str]]] = {
    "gaps": ("\n".join(GAPPED), ["--do", "set", "--target", "d e"]),
    "columns": ("\n".join(GAPPED), ["--do", "set"]),
    "scms": ("\n".join(GAPPED), ["--do", "set", "--roots", "a<b,sex,c"]),
    "graph": ("\n".join(WHOLE), ["--do", "set", "--graph", "sex -> d e"]),
    "configurations": ("\n".join(WHOLE), ["--do", "set", "--target", "d e", "--consistency", "4/5"]),
    "pla": (PLA, []),
}
SHOWN = {
    "gaps": ["<code>d e = ", "is right in every row under ", ">gap</td>"],
    "columns": ["sex: rows that no completion puts right", "d e: rows that some completion puts wrong"],
    "scms": ["under one completion of the gaps", ">gap</td>"],
    "graph": ["The graph is refuted: 1 column of 1 (d e)", ">contradicts another row (d e)</td>", "Your graph"],
    "configurations": ["is the parsimonious solution", "Truth table", "Remainders 0 (conservative)"],
    "pla": ["<code>f = a and b</code>", "g: nodes of not, and, or", "size 3, proven least"],
}


def page_of(name: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> tuple[str, str]:
    """Return the page of a fit, and what the command printed."""
    content, options = PAGES[name]
    table = folder / ("t.pla" if name == "pla" else "t.csv")
    table.write_text(content if name == "pla" else f"{HEAD}{content}\n", "utf-8")
    assert main(["fit", str(table), *options, "--html", str(folder / "page.html")]) in (0, 1)
    return (folder / "page.html").read_text("utf-8"), capsys.readouterr().err


@pytest.mark.parametrize("name", PAGES)
def test_pages_have_the_result_the_rows_and_next_commands(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page, printed = page_of(name, tmp_path, capsys)
    assert f"page written to {tmp_path / 'page.html'}" in printed
    assert [text for text in SHOWN[name] if text not in page] == []
    assert "a<b" not in page
    assert "https://" not in page
    ids = re.findall(r' id="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    commands = re.findall(r'<pre tabindex="0">calibrant (.*)</pre>', page)
    assert commands
    assert not any("--html" in command for command in commands)
    for command in commands:
        assert called(*shlex.split(html.unescape(command))).returncode in (0, 1), command


def test_tables_on_pages_and_in_the_terminal_have_the_words_of_the_table(tmp_path: Path) -> None:
    """Digits stay of what --binarize made; a word that is markup is escaped."""
    file, page = tmp_path / "w.csv", tmp_path / "w.html"
    file.write_text("smoke,grade,age,ill\nyes,<b>,60,2\nyes,a,20,1\nno,<b>,60,1\nyes,<b>,20,2\n", encoding="utf-8")
    words = ["fit", file, "--binarize", "age:>50", "--html", page]
    assert called(*words, "--target", "ill", "--consistency", "1").returncode == 0
    table = page.read_text("utf-8").partition("<caption>Truth table</caption>")[2].partition("</table>")[0]
    cells = re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", table)[6:]
    assert cells[:6] == ["yes", "&lt;b&gt;", "0", "1", "1.000", "2"]
    printed = called(*words, "--target", "ill").stdout
    assert re.search(r"^a +no +never +2 +1 +A and B differ$", printed, re.MULTILINE), printed
    assert "No row shows ill with grade = a, smoke = no while" in printed
    assert "`age>50` = 0, grade = a, smoke = no." in printed
    text = page.read_text("utf-8")
    assert "a unit with age&gt;50 = 0, grade = a, smoke = no." in text
    assert '<td class="middle">&lt;b&gt;</td><td class="middle">yes</td>' in text
    assert "grade = 0" not in text
    assert "<b> " not in text


@needs_axe
@pytest.mark.parametrize("name", PAGES)
def test_pages_are_accessible(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page, _ = page_of(name, tmp_path, capsys)
    for index, width in enumerate((DESKTOP, PHONE)):
        measured = measure(page, tmp_path, theme=THEMES[index], width=width)
        assert (measured.violations, measured.requests) == ([], [])
        assert measured.scroll_width <= width


def test_rows_in_which_columns_were_set_are_named_by_the_names_of_the_table(tmp_path: Path) -> None:
    """Inside, `Gen A` is column_1 and `Gen-B` column_2, and their rows are those of do_column_1_column_2."""
    file, page = tmp_path / "genes.csv", tmp_path / "genes.html"
    rows = "0,0,0,\n0,1,1,\n1,0,1,\n1,1,1,\n1,0,1,Gen A\n0,1,1,Gen A + Gen-B\n"
    file.write_text(f"Gen A,Gen-B,Y,set\n{rows}", encoding="utf-8")
    done = called("fit", file, "--do", "set", "--target", "Y", "--html", page)
    text = page.read_text(encoding="utf-8")
    assert "without the rows of do_`Gen A`: 1 SCM would fit" in done.stdout.splitlines()
    assert "without the rows of do_`Gen A`_`Gen-B`: 1 SCM would fit" in done.stdout.splitlines()
    assert "observed line 4; do_Gen A line 6<" in text
    assert ">do_Gen A_Gen-B<" in text
    assert "column_" not in done.stdout + text
    fitted = fit_complete(file, do="set", target="Y")
    assert [world["id"] for world in fitted.to_dict()["why"]["evidence"]["worlds"]] == [
        "observed", "do_`Gen A`", "do_`Gen A`_`Gen-B`",
    ]  # fmt: skip


def test_a_column_that_is_named_like_such_rows_keeps_its_name() -> None:
    data = {"Gen A": [0, 1, 0], "do_column_1": [0, 1, 1], "Y": [0, 1, 1], "set": ["", "", "Gen A"]}
    fitted = fit_complete(data, do="set", target="Y")
    assert "`Gen A`  do_column_1  seen   A  B  where" in "\n".join(fitted.lines())


def test_a_line_that_names_what_it_sets_is_not_told_to(tmp_path: Path) -> None:
    """The name has a blank, and is another one inside; without a column of such names the hint stays."""
    file = tmp_path / "genes.csv"
    file.write_text("A,B,Gen Y,set\n0,0,0,\n1,1,1,\n1,1,1,\n", encoding="utf-8")
    lines = called("fit", file, "--do", "set", "--roots", "A").stdout.splitlines()
    place = lines.index("1,?,0,Gen Y")
    assert lines[place + 1] == "A line of the table; replace each ? by the 0 or 1 that you observe (B)."
    lines = called("fit", file, "--drop", "set", "--roots", "A").stdout.splitlines()
    assert lines[lines.index("1,?,0,") + 1] == (
        "A line of the table; replace each ? by the 0 or 1 that you observe (B). It sets Gen Y: name that in a column,"
        " and give the column with --do."
    )
