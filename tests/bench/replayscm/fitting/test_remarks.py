"""Tables that may mean something else than was read, and files that are none: named with what to do."""

from __future__ import annotations

import gzip
import json
import re
import shlex
from pathlib import Path

import pytest

from calibrant.bench.replayscm.fitting.reading import read_table
from calibrant.dsl.errors import CalibrantError
from tests.support.commands import called


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"A B C\n0 1 1\n1 0 1\n", "cells are separated by blanks; write commas, semicolons or tabs"),
        (b'"A" "B c"\n"1" 0 1\n"2" 1 0\n', "cells are separated by blanks; write commas, semicolons or tabs"),
        (b"A   B\n0   1\n1   0\n", "cells are separated by blanks; write commas, semicolons or tabs"),
        (b"PK\x03\x04\x14\0\xff", "it looks like a workbook; save the sheet as CSV in UTF-8"),
        (b'<?xml version="1.0"?>\n<sbml/>\n', "XML, no CSV; calibrant network reads SBML and GINML"),
        (b".model m\n.names a b f\n11 1\n", "it looks like BLIF; what reads it: ABC or SIS"),
        (b"a 1 b c\nb -1 c\n", "it looks like a prior network as SIF; what reads it: calibrant family FILE DATA"),
        (gzip.compress(b"A,B\n0,1\n", mtime=0), "compressed with gzip; give the file as it was: gunzip FILE"),
        ("A,B\n0,1\n".encode("utf-16-le"), "no text in UTF-8, for it has a NUL"),
    ],
)
def test_files_that_are_no_table_are_named(content: bytes, problem: str, tmp_path: Path) -> None:
    file = tmp_path / "table.csv"
    file.write_bytes(content)
    with pytest.raises(CalibrantError, match=re.escape(f"table.csv: {problem}")):
        read_table(file)


def test_json_is_named(tmp_path: Path) -> None:
    file = tmp_path / "table.json"
    for text, kind in (
        ('{"A": 0}\n{"A": 1}\n', "JSON lines"),
        ('[{"A": 0}]\n', "a JSON list"),
        ("[[0, 1]]", "a JSON list"),
    ):
        file.write_text(text, encoding="utf-8")
        with pytest.raises(CalibrantError, match=f"table.json is {kind}, no CSV"):
            read_table(file)


@pytest.mark.parametrize("names", [["<3", ">3"], ["<LOD", "B"], ["<b>x</b>", "<B"]])
def test_names_that_begin_like_tags_are_names(names: list[str], tmp_path: Path) -> None:
    file = tmp_path / "table.csv"
    file.write_text(",".join(names) + "\n0,1\n1,0\n", encoding="utf-8")
    assert [column.name for column in read_table(file).columns] == names
    file.write_text("<sbml>\n<model/>\n</sbml>\n", encoding="utf-8")
    with pytest.raises(CalibrantError, match="XML, no CSV"):
        read_table(file)


def test_one_column_of_words_is_a_table(tmp_path: Path) -> None:
    file = tmp_path / "table.csv"
    file.write_text("what it was\nyes\nno\nno it was not\nyes\n", encoding="utf-8")
    assert read_table(file, purpose="networks").columns[0].kind == "categories"


def test_columns_at_positions_are_stated(tmp_path: Path) -> None:
    """Codes of the columns that were set, as of bnlearn's isachs; an environment of 0 and 1 reads so too."""
    file = tmp_path / "table.csv"
    file.write_text("INT,A,B\n0,0,1\n2,1,0\n1,1,1\n2,0,0\n", encoding="utf-8")
    table = read_table(file, do="INT")
    assert table.targets == [[], ["B"], ["A"], ["B"]]
    assert table.remarks == ("INT has positions of columns: 1 is A, 2 is B",)
    file.write_text("INT,A,B\n,0,1\nB,1,0\nA,1,1\n", encoding="utf-8")
    assert read_table(file, do="INT").remarks == ()


def test_names_that_are_values_of_their_columns_are_pointed_out(tmp_path: Path) -> None:
    file = tmp_path / "table.csv"
    for text, is_said in (("0,1\n1,0\n0,1\n", True), ("A,B\n1,0\n0,1\n", False), ("0,B\n1,0\n0,1\n", False)):
        file.write_text(text, encoding="utf-8")
        remarks = read_table(file, purpose="networks").remarks
        assert any("if the first line is a row, put a line of names above it" in line for line in remarks) is is_said
    assert read_table({"0": [0, 1], "1": [1, 0]}).remarks == ()


def test_the_index_of_a_frame_is_pointed_out_and_sets_name_interventions() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"A": [0, 1, 1], "B": [0, 1, 0], "set": [set(), {"A"}, frozenset({"A", "B"})]})
    table = read_table(frame, do="set")
    assert table.remarks == ()
    assert table.targets == [[], ["A"], ["A", "B"]]
    indexed = read_table(frame.drop(columns="set").set_index("A"))
    assert indexed.remarks == ("the index is no column: A; data.reset_index() makes it one",)


@pytest.mark.parametrize("word", ["#N/A", "missing", ".", "Total"])
def test_one_word_among_numbers_is_named_with_the_option_that_makes_it_a_gap(word: str, tmp_path: Path) -> None:
    file = tmp_path / "table.csv"
    file.write_text(f"A,B,C\n0,1,yes\n{word},0,no\n1,1,?\n0,2.0,other\n", encoding="utf-8")
    option = f"--missing {shlex.quote(word)}"
    table = read_table(file, purpose="networks")
    assert table.remarks == (f"A has numbers and one word, {word!r} in row 3; {option} if it stands for no value",)
    gapped = read_table(file, purpose="networks", missing=shlex.split(option)[1])
    assert gapped.remarks == ()
    assert gapped.bits["A"] == "0-10"


def test_a_constant_column_is_named_before_the_result_on_terminal_page_and_in_json(tmp_path: Path) -> None:
    file = tmp_path / "data.csv"
    file.write_text("A,B,C,K\n0,0,0,1\n1,1,1,1\n0,0,0,1\n1,1,1,1\n", encoding="utf-8")
    page = tmp_path / "why.html"
    printed = called("fit", file, "--html", page).stdout
    # without K: each of three is the root, one other is its copy, the last one of 4 functions of both, all alike: 3 * 7
    times = f"{3891 / 21:.1f} times as many SCMs fit with it as without"
    assert printed.startswith(
        f"note: constant K: an SCM may use it as a parent: {times} (--drop K)\nnote: duplicate B "
    )
    body = page.read_text("utf-8")
    assert body.index("<h1>") < body.index("note: constant K") < body.index("3,891 SCMs fit")
    answer = [line for line in printed.splitlines() if line.startswith(("A = ", "B = ", "C = ", "K = "))]
    top = body[body.index("<h1>") : body.index("note: constant K")]
    assert "\n".join(answer) in top  # the formulas of the terminal, before how the table was read
    assert "total size 3, proven least" in top
    expected = ["constant K", "duplicate B of A", "duplicate C of A"]
    stated = json.loads(called("fit", file, "--json").stdout)
    assert (stated["notes"], stated["constants"]) == (expected, {"K": pytest.approx(3891 / 21)})
    scored = called("fit", file, "--score", "bde")
    assert scored.stdout.startswith("note: constant K: arcs from a constant gain score without information (--drop K)")
    assert json.loads(called("fit", file, "--score", "bic", "--json").stdout)["notes"] == expected
