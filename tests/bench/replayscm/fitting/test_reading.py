"""Reading of tables: vectors made by plain enumeration, and forms that no vector has."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import calibrant
from calibrant.bench.replayscm.fitting import columns as columns_module
from calibrant.bench.replayscm.fitting import reading
from calibrant.bench.replayscm.fitting.reading import read_table
from calibrant.dsl.errors import CalibrantError
from tests.support.commands import called
from tests.support.replayscm.table_vectors import fit_complete, table_vectors

READING = table_vectors("reading")


def test_all_vectors_are_read_as_stated(tmp_path: Path) -> None:
    compared = 0
    for vector in READING():
        file = tmp_path / "table.csv"
        file.write_text(vector["csv"], encoding="utf-8")
        expected: dict[str, Any] = vector["expected"]
        if "refused" not in expected:
            assert read_table(file, **vector["options"]).to_dict() == expected, vector["id"]
        else:
            with pytest.raises(calibrant.CalibrantError) as refusal:
                read_table(file, **vector["options"])
            message = str(refusal.value)
            assert f"row {expected.get('row')} " in message or "row" not in expected, vector["id"]
            assert repr(expected.get("column", "")) in message or "column" not in expected, vector["id"]
            assert "\n" not in message
        compared += 1
    assert compared == READING.number


def columns_of(data: dict[str, list[Any]], **reading: Any) -> dict[str, Any]:
    """Return name -> entry of each column as read."""
    return {column.name: column.to_dict() for column in read_table(data, **reading).columns}


def test_values_of_frames_without_a_value_are_gaps() -> None:
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("narwhals")
    frame = pandas.DataFrame({0: [1.0, None, 0.0], "B": pandas.array([True, None, False], dtype="boolean")})
    frame["C"] = pandas.Series([pandas.NaT, pandas.Timestamp("2020-01-01"), pandas.Timestamp("2021-01-01")])
    frame["D"] = pandas.Series(["None", None, "some"])
    table = read_table(frame)
    assert table.bits == {"0": "1-0", "B": "1-0", "C": "-01", "D": "0-1"}


def test_declared_categories_of_a_frame_are_levels_for_networks() -> None:
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("narwhals")
    column = pandas.Categorical(["low", "high", "low", "high"], categories=["low", "mid", "high"])
    frame = pandas.DataFrame({"dose": column, "A": [0, 1, 1, 0]})
    (dose, _) = read_table(frame, purpose="networks").columns
    assert (dose.kind, dose.words, dose.num_levels) == ("categories", ("high", "low", "mid"), 3)
    assert read_table(frame).columns[0].kind == "binary"


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        ("do(IL-6)", [["IL-6"]]),
        ("do(IL-6=yes), TNF alpha", [["IL-6", "TNF alpha"]]),
        ("do(IL-6, TNF alpha=no way)", [["IL-6", "TNF alpha"]]),
        ("IL-6 TNF alpha", [["IL-6", "TNF alpha"]]),
        ("TNF alpha = no way | IL-6", [["IL-6", "TNF alpha"]]),
        ("a, b + x=y", [["a, b", "x=y"]]),
        ("OBS", [[]]),
    ],
)
def test_codes_of_interventions_take_any_name_and_word(cell: str, expected: list[list[str]]) -> None:
    data = {"IL-6": ["yes", "no"], "TNF alpha": ["no way", "some"], "a, b": [0, 1], "x=y": [1, 0]}
    assert read_table({**data, "set": [cell, ""]}, do="set").targets == [*expected, []]


def test_a_word_of_a_binarized_column_is_what_it_was_set_to_and_no_name() -> None:
    data: dict[str, list[Any]] = {"age": ["a", "b", "c", "", "c"], "B": [0, 1, 1, 0, 1]}
    cells = ["", "", "age=c", "age=c", "do(age = c)"]
    table = read_table({**data, "set": cells}, do="set", binarize=["age:c"])
    assert table.bits["age=c"] == "00111"  # the gap takes the value stated
    assert table.targets == [[], [], ["age=c"], ["age=c"], ["age=c"]]
    with pytest.raises(calibrant.CalibrantError, match=r"row 2 .*'age=c' states that 'age=c' was set to c"):
        read_table({**data, "set": ["", "age=c", "", "", ""]}, do="set", binarize=["age:c"])


@pytest.mark.parametrize(
    ("cells", "settings", "bits", "kind"),
    [
        (["1", "", "1"], ["", "A=0", ""], "101", "binary"),
        (["yes", "", "", "yes"], ["", "do(A = no)", "B, A=yes", ""], "1011", "binary"),
        (["there", "", ""], ["", "A=not there, B", "A=not there B"], "100", "binary"),
        (["-", "", ""], ["", "A=+", "A=++B"], "011", "binary"),
        (["", ""], ["A=0", "A=1"], "01", "binary"),
        (["", "", ""], ["A=1", "A=1", "A"], "11-", "constant"),
        (["", "0"], ["A=0", ""], "00", "constant"),
    ],
)
def test_a_gap_takes_a_value_that_no_cell_has(cells: list[str], settings: list[str], bits: str, kind: str) -> None:
    data = {"A": cells, "B": [index % 2 for index in range(len(cells))], "set": settings}
    table = read_table(data, do="set")
    column = table.columns[0]
    assert (table.bits["A"], column.kind, column.num_missing) == (bits, kind, cells.count(""))
    assert table.targets == [[name for name in "AB" if name in word] for word in settings]


@pytest.mark.parametrize(
    ("cells", "settings", "reason"),
    [
        (["1", "1", "1"], ["", "A=0", ""], "row 2 .*'0' is no value of 'A'; known: 1"),
        (["1", "", "1"], ["", "A=0", "A=0"], "row 3 .*'A' was set to 0, and the cell has 1"),
        (["a", "", ""], ["", "A=b", "A=c"], "row 2 .*'b' is no value of 'A'; known: a"),
        (["1", "0", ""], ["", "", "A=2"], "row 3 .*'2' is no value of 'A'; known: 0, 1"),
        (["1", "0", ""], ["", "", "A=1,A=0"], "row 3 .*'A' was set to 0, and the cell has 1"),
        (["1", "0", "1"], ["", ", ;", ""], "row 2 .*', ;' is no column"),
    ],
)
def test_values_that_were_not_set_are_refused_with_the_row(cells: list[str], settings: list[str], reason: str) -> None:
    with pytest.raises(calibrant.CalibrantError, match=reason):
        read_table({"A": cells, "B": [0, 1, 1], "set": settings}, do="set")


def test_a_column_of_interventions_has_no_flag_and_is_none() -> None:
    data = {"A": [0, 1], "B": [1, 0], "I_A": [0, 1], "I_set": ["", "A"]}
    assert read_table(data, do="I_set", do_flags="I_*").targets == [[], ["A"]]
    with pytest.raises(calibrant.CalibrantError, match=r"column 'I_set': a flag of 'set', no other column"):
        read_table(data, do_flags="I_*")
    with pytest.raises(calibrant.CalibrantError, match=r"column 'I_set': a flag of 'set', no other column"):
        read_table({"A": [0, 1], "set": ["", "A"], "I_set": [0, 1]}, do="set", do_flags="I_*")


@pytest.mark.parametrize("name", ["Größe", "日本"])
def test_messages_have_names_as_they_stand(name: str) -> None:
    with pytest.raises(calibrant.CalibrantError, match=f"'{name}'"):
        read_table({name: list("abca"), "B": [0, 1, 1, 0]})
    with pytest.raises(calibrant.CalibrantError, match=f"'{name}'.* no value 'é'"):
        read_table({name: [0, 1]}, one={name: "é"})


def test_unknown_words_of_interventions_list_the_forms_that_are_read() -> None:
    data = {"IL-6": [0, 1], "B": [1, 0], "set": ["", "IL_6"]}
    with pytest.raises(calibrant.CalibrantError, match=r"row 2 .*'IL_6' is no column; did you mean IL-6\? read"):
        read_table(data, do="set")


def test_a_binarized_column_is_set_where_its_column_was(tmp_path: Path) -> None:
    file = tmp_path / "dose.csv"
    file.write_text("dose,A,set\n1.5,1,\n2.5,0,dose\n3.5,1,dose=3.5\n1,0,A\n", encoding="utf-8")
    table = read_table(file, do="set", binarize=["dose:>2", "dose: median"])
    assert table.targets == [[], ["dose>2", "dose:median"], ["dose>2", "dose:median"], ["A"]]
    assert table.bits["dose>2"] == "0110"


def test_formulas_print_and_take_the_users_names_and_words(tmp_path: Path) -> None:
    file = tmp_path / "cells.csv"
    file.write_text(
        'patient,IL-6,"a, b",cell death,not\n' + "\n".join(
            f"p{k},{['low', 'high'][a]},{'yes' if b else 'no'},{int(a and not b)},{c}"
            for k, (a, b, c) in enumerate([(0, 0, 1), (0, 1, 0), (1, 0, 1), (1, 1, 0), (1, 0, 0), (0, 0, 0)])
        ), encoding="utf-8",
    )  # fmt: skip
    page = tmp_path / "page.html"
    done = called(
        "fit", file, "--target", "cell death", "--one", "IL-6=high", "--html", page, "--out", tmp_path / "x.jsonl"
    )
    lines = done.stdout.splitlines()
    assert lines[:3] == [
        "coded 1: high (IL-6; 0: low), yes (a, b)",
        "left out: patient (all different)",
        "`cell death` = `IL-6` and not `a, b`",
    ]
    assert "column_" not in done.stdout
    text = page.read_text("utf-8")
    assert "cell death" in text
    assert not re.search(r"\bcolumn_\d", text)
    assert fit_complete(file, target="cell death", one={"IL-6": "high"}).formula == lines[2].partition(" = ")[2]


def test_columns_in_which_the_alphabet_decides_are_named(tmp_path: Path) -> None:
    """Of networks no line: their scores are the same with either code."""
    file = tmp_path / "visit.csv"
    file.write_text("a,b,level\nyes,ja,hoch\nNo,nein,niedrig\nyes,ja,niedrig\n", "utf-8")
    table = read_table(file)
    assert table.bits == {"a": "101", "b": "010", "level": "011"}
    order = "1 only as the later word of the alphabet: "
    named = f"{order}nein (b), niedrig (level); the other is 1 by --one b=ja"
    assert [line for line in table.reading_lines() if line.startswith(order)] == [named]
    assert called("fit", file, "--target", "a").stdout.splitlines()[1] == named
    assert order not in called("fit", file, "--target", "a", "--one", "level=niedrig", "--drop", "b").stdout
    assert order not in called("fit", file, "--score", "bde").stdout
    assert order not in called("fit", file, "--target", "a", "--drop", "level,b").stdout


@pytest.mark.parametrize(
    ("rows", "lines"),
    [
        (["0,1,1", "0,1"], ""),
        (["0", "0,1,1", "0,1"], "; 2 such rows: lines 2, 4"),
        (["0,1", "0,1,1", "", "0,1,1,1", "0,1", "1,1,1", "0"], "; 4 such rows: lines 2, 5, 6, ..."),
    ],
)
def test_rows_of_another_length_are_counted_and_the_first_three_are_named(
    rows: list[str], lines: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "CHUNK", 2)
    (tmp_path / "t.csv").write_text("\n".join(["A,B,Y", *rows]), "utf-8")
    message = rf"^t.csv, row \d \(lines of the file\): \d values? under 3 names; a row has one value a name{lines}$"
    with pytest.raises(calibrant.CalibrantError, match=message):
        read_table(tmp_path / "t.csv")


def test_a_number_without_a_value_has_any_spelling_and_occurs() -> None:
    data = {
        "A": ["1", "9", "0", "1"],
        "B": ["9.0", "0", "1", "9,0"],
        "C": ["x", "1,234", "y", "x"],
        "D": ["", "a", "b", "b"],
    }
    tables = [read_table(data, missing=["1,234", number]) for number in ("9", "9.0", "9,0", "9e0")]
    for table in tables:
        assert (table.bits["A"], table.bits["B"], table.bits["C"]) == ("1-01", "-01-", "0-10")
    assert (
        read_table(data, missing=["9", "NA", "1,234"]).bits["D"] == "-011"
    )  # always missing, whether it occurs or not
    for absent in ("99", "X", "1.234", "1234"):  # 1,234 may stand for either number, so only itself names it
        message = rf"^the data: no cell is '{absent}' \(--missing\); write the word as the table has it"
        with pytest.raises(calibrant.CalibrantError, match=message):
            read_table(data, missing=["9", absent])


def test_a_million_rows_are_counted_by_pattern() -> None:
    bits = np.random.default_rng(5).integers(0, 2, (200_000, 6))
    table = read_table(bits)
    assert repr(table) == "<Table: 200,000 rows of 6 columns, 6 used>"
    assert (table.num_rows, len(table.counts), int(table.counts.sum())) == (200_000, 64, 200_000)
    assert (table.codes[table.pattern_of_row] == bits).all()


def test_files_in_other_encodings_and_with_line_breaks_in_cells_are_read(tmp_path: Path) -> None:
    file = tmp_path / "notes.csv"
    file.write_bytes('note;Größe\n"two\nlines";1\nx;0\n\nx;1\n'.encode("cp1252"))
    table = read_table(file)
    assert table.bits == {"note": "011", "Größe": "101"}
    assert list(table.lines) == [2, 4, 6]
    assert table.remarks == ("read as Windows-1252: notes.csv is not UTF-8",)
    file.write_bytes("a,b\n0,1\n1,0\n".encode("utf-16"))
    assert read_table(file).bits == {"a": "01", "b": "10"}


def test_parquet_files_are_the_same_table(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    data = {"A": ["yes", None, "no"], "B": [True, False, True], "C": [1.5, 2.0, 1.5]}
    parquet.write_table(pyarrow.table(data), tmp_path / "t.parquet")
    assert read_table(tmp_path / "t.parquet").to_dict() == read_table(data).to_dict()


def test_rows_with_gaps_are_left_out_where_asked(tmp_path: Path) -> None:
    file = tmp_path / "gaps.csv"
    file.write_text("A,Y\n0,0\n,1\n1,1\n1,?\n", encoding="utf-8")
    done = called("fit", file, "--target", "Y", "--gaps", "drop")
    assert done.stdout.splitlines()[:3] == [
        "2 of 4 rows left out: a gap in a column used",
        "missing: 2 cells (1 A, 1 Y)",
        "Y = A",
    ]


@given(
    st.lists(st.lists(st.sampled_from(["0", "1", ""]), min_size=3, max_size=3), min_size=2, max_size=9),
    st.sampled_from([1, 2, 4_096]),
)
def test_copies_are_those_of_a_plain_comparison_however_few_patterns_are_screened(
    rows: list[list[str]], num_screened: int
) -> None:
    columns = {name: [row[k] for row in rows] for k, name in enumerate("ABC")}
    assume(all({"0", "1"} <= set(cells) for cells in columns.values()))
    expected, originals = [], list[str]()
    for name, cells in columns.items():
        for other in originals:
            equal = [a == b for a, b in zip(cells, columns[other], strict=True) if a and b]
            if len(equal) > 1 and (all(equal) or not any(equal)):
                expected.append(f"{'duplicate' if all(equal) else 'complement'} {name} of {other}")
                break
        else:
            originals.append(name)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(columns_module, "MAX_SCREENED", num_screened)
        notes = read_table(columns).notes
    assert [note for note in notes if note.startswith(("duplicate", "complement"))] == sorted(expected)


def test_all_notes_are_printed_on_request(tmp_path: Path) -> None:
    names = [f"X{k}" for k in range(1, 12)]
    file = tmp_path / "equal.csv"
    file.write_text("\n".join([",".join(names), *(",".join([bit] * len(names)) for bit in "0101")]), "utf-8")
    table = read_table(file)
    short, whole = list(table.reading_lines()), list(table.reading_lines(every=True))
    assert len(whole) >= len(names) - 1
    assert len(short) < len(whole)
    assert short[-1].endswith("(--verbose)")


BAD_CELLS: dict[str, tuple[str, dict[str, Any], str]] = {
    "names": (
        "A,B,x,y\n0,1,,Q\n1,0,Z,\n0,0,Z,\n1,1,W,E\n0,1,A=7,\n",
        {"do": ["x", "y"]},
        "row 3 .*'x': 'Z' is no .*; and 5 more in 2 columns",
    ),
    "positions": (
        "A,B,x\n0,1,0\n1,0,7\n0,0,2\n1,1,7\n",
        {"do": "x"},
        "row 3 .*'x': no column at position 7; .*; and 1 more in 1 column",
    ),
    "values": (
        "A,B,x\n0,1,A=1\n1,0,B=1\n0,1,A=1\n1,1,A=1\n",
        {"do": "x"},
        "row 2 .*has 0; correct one of them; and 2 more in 1 column",
    ),
    "flags": (
        "A,B,I_A,I_B\n0,1,u,0\n1,0,0,v\n0,0,u,1\n",
        {"do_flags": "I_*"},
        "row 2 .*'I_A': 'u' is no flag; .*; and 2 more in 2 columns",
    ),
    "both": (
        "A,B,I_A,x\n0,1,1,\n1,0,0,\n0,0,0,A\n",
        {"do": "x", "do_flags": "I_*"},
        "row 2 .*'x': it and .*; and 1 more in 1 column",
    ),
    "numbers": (
        "A,B\n0.5,1\nx,0\n1.5,0\ny,1\nx,1\n",
        {"binarize": "A:>1"},
        "row 3 .*'A', .*'x' is no number; .*; and 2 more in 1 column",
    ),
    "one": ("A,B\n0.5,1\nx,0\n1.5,0\n", {"binarize": "A:median"}, "row 3 .*'A', .*--missing WORD$"),
}


@pytest.mark.parametrize("case", BAD_CELLS)
def test_of_many_bad_cells_the_first_is_named_and_the_others_are_counted(case: str, tmp_path: Path) -> None:
    text, reading, message = BAD_CELLS[case]
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(calibrant.CalibrantError, match=f"^t.csv, {message}"):
        read_table(tmp_path / "t.csv", **reading)


def test_six_lines_state_how_a_table_was_read(tmp_path: Path) -> None:
    file = tmp_path / "lines.csv"
    file.write_text("a,it's,b,c,site,id,Y\nA,A,A,A,Basel,u,0\nB,B,B,B,Basel,v,1\nA,A,A,A,Basel,w,\nB,B,B,B,,x,1\n")
    table = read_table(file)
    short, whole = list(table.reading_lines()), list(table.reading_lines(every=True))
    assert [line.split()[0] for line in whole] == ["coded", "missing:", "left", "1", *["note:"] * 5]
    assert short == [*whole[:5], "note: 4 more on columns that tell nothing beside others (--verbose)"]
    assert whole[4] == "note: constant site: Basel is coded 0; an SCM may use it as a parent (--drop site)"
    assert table.coding["site"] == {"zero": "Basel"}
    assert len(list(table.without_gaps().reading_lines())) == 6
    pasted = shlex.split(whole[-1].partition("(")[2].rstrip(")"))
    assert pasted == ["--drop", "it's"]
    assert read_table(file, drop=pasted[1]).names == ("a", "b", "c", "site", "Y")


@pytest.mark.parametrize(
    ("text", "delimiter"), [("sep=;\nA;B\n1;0\n0;1\n1;0\n", "';'"), ("\ufeffsep=,\r\nA,B\r\n1,0\r\n0,1\r\n", "','")]
)
def test_the_line_of_a_spreadsheet_above_the_names_is_no_head(text: str, delimiter: str, tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    file.write_text(text, encoding="utf-8")
    table = read_table(file)
    assert table.names == ("A", "B")
    assert int(table.lines[0]) == 3
    assert table.remarks == (f"the first line states the delimiter, {delimiter}; the names are in the second",)
    file.write_text("sep=;\n", encoding="utf-8")
    with pytest.raises(calibrant.CalibrantError, match=r"t\.csv"):
        read_table(file)


ADVICE: dict[str, tuple[dict[str, Any], str]] = {
    "A,B,INT\n0,1,[]\n1,0,[]\n1,1,A\n": ({"do": "INT"}, r"if '\[\]' stands for nothing set, give --missing '\[\]'"),
    "0,1,1\n1,0,1\n": ({}, "put a line of names above the rows"),
    "A,A\n1,0\n": ({}, "rename one of them"),
    "# exported\nA,B\n1,0\n": ({}, "row 2 .* 2 values under 1 name; take out the lines above"),
    "A,B\n1,0\n# exported, today, by me\n": ({}, "row 3 .* 3 values under 2 names; take out lines that are comm"),
    "age, yr;smoke\n4;1\n5;0\n": ({}, "if ';' separates, quote the name that has ',' before it"),
    "age;ill\n20;no\n21;yes\n22;yes\n": (
        {"target": "ill"},
        r"read 'age', left out as all different, by a rule \(--binarize",
    ),
    "Messung 2024;;\nalt;neu;krank\n1;0;1\n0;1;0\n": (
        {"one": {"krank": "1"}, "target": "krank"},
        "has no column 'krank'.*if the first line is a title, take it",
    ),
}


@pytest.mark.parametrize("text", ADVICE)
def test_a_refusal_states_what_to_do(text: str, tmp_path: Path) -> None:
    options, advice = ADVICE[text]
    (tmp_path / "t.csv").write_text(text, encoding="utf-8")
    with pytest.raises(CalibrantError, match=advice):
        (calibrant.fit if "target" in options else read_table)(tmp_path / "t.csv", **options)


ALL_DIFFERENT = "column 'score' is left out: its 4 values are all different; --binarize 'score:RULE' uses it (RULE is "


@pytest.mark.parametrize(
    ("function", "options", "message"),
    [
        ("fit", {"target": "score"}, f"the data: {ALL_DIFFERENT}"),
        ("fit", {"roots": "score"}, f"the data: {ALL_DIFFERENT}"),
        ("fit", {"graph": "score -> group"}, f"graph: {ALL_DIFFERENT}"),
        ("learn_networks", {"graph": "[score][group|score]"}, f"graph: {ALL_DIFFERENT}"),
        ("learn_networks", {"effect": "score=12 | do(group=x)"}, f"effect: {ALL_DIFFERENT}"),
        ("learn_networks", {"effect": "group=x | do(score=12)"}, f"effect: {ALL_DIFFERENT}"),
        ("learn_networks", {"forbid": "score -> group"}, ALL_DIFFERENT),
        ("fit", {"target": "heal"}, "the data: column 'heal' is left out: it has no value"),
        ("fit", {"target": "set", "do": "set"}, "column 'set' is left out: it states what was set by hand"),
        ("fit", {"target": "set", "do_flags": "s*t", "one": {}}, "column 'set' is left out: it states what was set"),
        ("fit", {"target": "name", "drop": "name"}, "column 'name' is left out by --drop"),
        ("fit", {"target": "scare"}, "the data has no column 'scare'; known: group"),
    ],
)
def test_a_name_of_a_column_left_out_is_refused_with_the_reason(
    function: str, options: dict[str, Any], message: str
) -> None:
    data = {"name": list("abcd"), "score": [12, 31, 27, 8], "group": list("xyxy"), "heal": [""] * 4, "set": [""] * 4}
    if "do_flags" in options:
        data |= {"e": [0, 1, 0, 1], "set": [0, 1, 0, 0]}
    with pytest.raises(calibrant.CalibrantError, match=re.escape(message)):
        getattr(calibrant, function)(data, **options)


@pytest.mark.parametrize(
    ("words", "kind", "bits"),
    [
        (["1,0", "0,0", "1", "0", "1.00"], "binary", "10101"),  # the table in which Y was all different
        (["2,5", "10", "2,50", "10,0", ""], "binary", "0101-"),
        (["1,0", "1", "1,00", "1", "1"], "constant", "11111"),
        (["1,5", "2", "3,0", "3", "2,0"], "measured", None),
        (["1,0", "2,0", "3", "3,0", "2"], "categories", None),
        (["1,250", "1.250", "1,250", "1.250", "1.250"], "binary", "01011"),  # may be thousands: words, by code point
        (["1,0", "1", "x", "x", "1"], "categories", None),  # no column of numbers: three words
    ],
)
def test_decimal_commas_are_numbers_in_a_column_of_numbers(words: list[str], kind: str, bits: str | None) -> None:
    data = {"a": words, "b": [0, 1, 1, 0, 1]}
    if kind == "measured":
        with pytest.raises(calibrant.CalibrantError, match=r"column 'a' \(measured: '1,5', '2', '3,0'"):
            read_table(data, purpose="networks")
        return
    table = read_table(data, purpose="networks")
    assert (table.columns[0].kind, table.bits.get("a")) == (kind, bits)
    if kind == "binary" and "0,0" in words:
        assert read_table(data, one={"a": "0"}).bits["a"] == "01010"
        assert read_table(data, binarize="a:0,00").bits["a=0,00"] == "01010"


def test_rules_read_decimal_commas(tmp_path: Path) -> None:
    file = tmp_path / "ward.csv"
    file.write_text("temp;flu\n36,6;no\n38,25;yes\n39;yes\n37,0;no\n37,0;no\n", "utf-8")
    table = calibrant.read_table(file, binarize=["temp:>37,5", "temp:median"])
    assert table.bits == {"temp>37,5": "01100", "temp:median": "01100", "flu": "01100"}
    thousands = {"dose": ["1,500", "2,000", "1,500"], "y": [0, 1, 1]}
    with pytest.raises(calibrant.CalibrantError, match="a comma before three digits may stand for thousands"):
        calibrant.read_table(thousands, binarize="dose:>1600")
    shares = {"dose": ["0,250", "0,500", "-0,125"], "y": [0, 1, 1]}  # no number of thousands begins with 0
    assert calibrant.read_table(shares, binarize="dose:>0,3").bits["dose>0,3"] == "010"
    points = {"dose": ["1.500", "762", "1.799"], "y": [0, 1, 1]}
    with pytest.raises(calibrant.CalibrantError, match=r"'1\.500' is no number for sure \(a point before three digits"):
        calibrant.read_table(points, binarize="dose:median")
    for words in (["1.500", "2", "1.799"], ["1.5", "762", "1.799"], ["1.500", "762.000", "1.799"]):
        assert (
            calibrant.read_table(points | {"dose": words}, binarize="dose:median").bits["dose:median"].count("1") == 1
        )


@pytest.mark.parametrize("order", [1, -1])
def test_a_rule_of_numbers_does_not_depend_on_the_order_of_rows(order: int) -> None:
    with pytest.raises(calibrant.CalibrantError, match=r"'(yes|no)' is no number"):
        calibrant.read_table({"a": ["1", "yes", "no"][::order]}, binarize="a:>=1")


@pytest.mark.parametrize(("word", "value"), [("m", 0), ("f", 1)])
def test_one_of_a_constant_column_is_its_value_or_not(word: str, value: int) -> None:
    table = calibrant.read_table({"sex": ["f", "f"], "y": [0, 1]}, one={"sex": word})
    assert table.to_dict()["columns"][0] == {
        "name": "sex",
        "kind": "constant",
        "missing": 0,
        "word": "f",
        "value": value,
    }


def test_tables_and_batches_of_pyarrow_are_read() -> None:
    pyarrow = pytest.importorskip("pyarrow")
    pytest.importorskip("narwhals")
    table = pyarrow.table({"a b": ["yes", "no", None, "yes"], "d": [True, False, True, True]})
    for data in (table, table.to_batches()[0]):
        assert calibrant.read_table(data).bits == {"a b": "10-1", "d": "1011"}
    assert calibrant.read_table(table).to_frame("pyarrow").column("a b").to_pylist() == ["yes", "no", None, "yes"]


@pytest.mark.parametrize("data", [{1: [0, 1], "1": [1, 0]}, [{1: 0, "1": 1}, {1: 1, "1": 0}]])
def test_names_that_are_one_text_are_refused_in_any_source(data: Any) -> None:
    with pytest.raises(CalibrantError, match="the data has two columns '1'"):
        read_table(data)


def test_a_column_without_a_name_is_called_by_its_position() -> None:
    cells = [[0, 1, 1], [1, 0, 1], [1, 1, 0]]
    names = ["A", "column 2", "column 3"]
    assert [c.name for c in read_table(dict(zip(["A", None, ""], cells, strict=True))).columns] == names
    assert [c.name for c in read_table(np.array(cells), columns=["A", "", " "]).columns] == names
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(np.array(cells), columns=["A", None, float("nan")])
    assert [c.name for c in read_table(frame).columns] == names


def test_an_unknown_purpose_is_one_line() -> None:
    with pytest.raises(CalibrantError, match="purpose is 'networks of it'; allowed: formulas, networks"):
        read_table({"A": [0, 1]}, purpose="networks of it")  # type: ignore[arg-type]


def test_a_target_of_one_value_is_not_advised_to_be_dropped() -> None:
    lines = str(calibrant.fit({"x": [1, 1, 1], "y": [0, 1, 0]}, target="x"))
    assert "note: constant x: the column to explain has one value, so nothing is learned of it" in lines
    assert "--drop x" not in lines


@pytest.mark.parametrize(
    ("option", "reading"),
    [
        ("--one", {"do": "set", "one": "set=A"}),
        ("--one", {"do": "set", "do_flags": "I_*", "one": {"I_A": "1"}}),
        ("--binarize", {"do": "set", "binarize": "set:A|B"}),
    ],
)
def test_a_column_of_what_was_set_has_no_code(option: str, reading: dict[str, Any]) -> None:
    table = {"A": [0, 1, 1], "B": [0, 1, 0], "set": ["", "", "B"], "I_A": [0, 0, 0], "I_B": [0, 0, 1]}
    with pytest.raises(calibrant.CalibrantError, match=f"{option}: column '(set|I_A)' states what was set by hand"):
        calibrant.fit(table, target="B", **reading)
