"""Tables of one's own: least formula or SCM with proof, how many fit, and one line for what is wrong."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from itertools import combinations, product
from pathlib import Path
from random import Random
from time import process_time
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import calibrant
from calibrant.audits.replayscm.why.explanation import Limits
from calibrant.audits.replayscm.why.parts import ReplayWhy
from calibrant.bench.cli import main
from calibrant.bench.replayscm.fitting import fit as fit_module
from calibrant.bench.replayscm.fitting.reading import read_table
from calibrant.bench.replayscm.why.page import count_origin, world_hint
from calibrant.dsl.formulas.reference import evaluate
from calibrant.solvers.outcome import Budget, Found, OutOfBudget
from tests.support.commands import called
from tests.support.replayscm.brute_force import function_size
from tests.support.replayscm.table_vectors import fit_complete

NAMES = ("A", "B", "C")


def rows_of(bits: int, shown: int) -> list[dict[str, int]]:
    """Rows of a function of A, B, C; shown: the rows that the table has."""
    every = [dict(zip(NAMES, (r & 1, r >> 1 & 1, r >> 2 & 1), strict=True)) | {"Y": bits >> r & 1} for r in range(8)]
    return [row for r, row in enumerate(every) if shown >> r & 1]


@given(bits=st.integers(0, 255), shown=st.integers(1, 255))
@settings(max_examples=40, deadline=None)
def test_the_formula_is_least_and_as_many_functions_fit_as_rows_leave(bits: int, shown: int) -> None:
    rows = rows_of(bits, shown)
    fitted = fit_complete(rows, target="Y")
    assert isinstance(fitted.outcome, calibrant.Found)
    answer: Any = fitted.outcome.value
    formula = answer.model.mechanisms["Y"]
    assert all(evaluate(formula, row) == row["Y"] for row in rows)
    agreeing = [other for other in range(256) if not (other ^ bits) & shown]
    grammar = fitted.problem.task.grammar
    # a constant is a literal of size 1; any other function is as small over its own parents as over all three
    sizes = [1 if other in (0, 255) else function_size(other, 3, grammar) for other in agreeing]
    assert answer.size == min(size for size in sizes if size is not None)
    assert fitted.why is not None
    assert fitted.why.count.lower == str(len(agreeing))


def test_a_column_without_variation_is_a_constant_in_all_that_is_printed(tmp_path: Path) -> None:
    """The pair that differs least has the constant on one side."""
    (tmp_path / "still.csv").write_text("a,b,y\n0,0,0\n0,0,1\n", encoding="utf-8")
    page, picture = tmp_path / "still.html", tmp_path / "still.svg"
    done = called("fit", tmp_path / "still.csv", "--html", page, "--svg", picture)
    assert (done.returncode, done.stderr) == (0, f"page written to {page}\npicture written to {picture}\n")
    notes, _, result = done.stdout.partition("roots: y\n")
    assert result.startswith("a = 0\nb = 0\n")
    assert notes.splitlines() == [
        # without a: b = 0; with it: both 0, or one is the other, alone or with y or not y
        f"note: constant {name}: an SCM may use it as a parent: 7 times as many SCMs fit with it as without"
        f" (--drop {name})"
        for name in "ab"
    ]
    printed = called("fit", tmp_path / "still.csv").stdout
    assert "\nA  a = 0\nB  a = b\n" in printed
    assert "a = b" in re.sub(r"<[^>]*>", "", page.read_text("utf-8"))  # names of variables are marked
    assert "a = 0" in picture.read_text("utf-8")


def test_parity_of_seven_says_what_was_exhausted_and_what_to_raise(tmp_path: Path) -> None:
    bits = list(product((0, 1), repeat=7))
    path = tmp_path / "parity.csv"
    lines = [",".join(map(str, (*row, sum(row) % 2))) for row in bits]
    path.write_text("a,b,c,d,e,f,g,y\n" + "\n".join(lines), encoding="utf-8")
    done = called("fit", path, "--target", "y")
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.startswith(
        "nothing fits: y is no function of at most 4 of the 7 other columns: all 99 sets were tried; "
        "7 are needed, 1 set of 7 does: --max-parents 7; if values are noisy, learn networks "
        "(--score bde; learn_networks in Python); at least 64 of 128 rows are wrong under any function of at most 4"
        " columns\ny needs 7 columns; 1 set of them determines it: a, b, c, d, e, f, g\n\ny: errors against size"
    )
    assert (
        "all 127 sets were tried; 7 are needed, 1 set of 7 does"
        in called("fit", path, "--target", "y", "--max-parents", 6).stdout
    )


def test_interventions_make_an_scm_of_a_table(tmp_path: Path) -> None:
    """X2 = X1 where it is free, X3 = X2 always: two worlds tell the direction."""
    path = tmp_path / "table.csv"
    path.write_text("X1;X2;X3;set\n0;0;0;\n1;1;1;\n0;1;1;X2\n1;0;0;X2\n", encoding="utf-8-sig")
    fitted = fit_complete(path, do="set")
    assert isinstance(fitted.outcome, calibrant.Found)
    answer: Any = fitted.outcome.value
    assert {v: str(f) for v, f in answer.model.mechanisms.items()} == {"X2": "X1", "X3": "X2"}
    done = called("fit", path, "--do", "set", "--html", tmp_path / "w.html", "--out", tmp_path / "t.jsonl", "--json",
                  "--certificates", tmp_path / "c")  # fmt: skip
    assert json.loads(done.stdout)["mechanisms"] == {"X2": "X1", "X3": "X2"}
    assert "<main" in (tmp_path / "w.html").read_text(encoding="utf-8")
    verified = called("verify", tmp_path / "c" / "table.json", tmp_path / "t.jsonl")
    assert (verified.returncode, verified.stdout[:2]) == (0, "ok")


def test_frames_arrays_mappings_and_rows_are_the_same_table() -> None:
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("narwhals")
    columns = {"A": [0, 1, 1], "Y": [True, False, False]}
    expected = read_table(columns).to_dict()
    frame = pandas.DataFrame(columns)
    assert read_table(frame).to_dict() == expected
    assert read_table(frame.to_dict("records")).to_dict() == expected
    bits = read_table(np.array([[0, 1], [1, 0], [1, 0]]), columns=["A", "Y"]).bits
    assert bits == expected["bits"] == {"A": "011", "Y": "100"}


def test_rows_that_disagree_are_named_where_no_bound_helps(tmp_path: Path) -> None:
    """Each column is 0 and 1 beside the same values of the others."""
    path = tmp_path / "noise.csv"
    path.write_text("a,b,y\n0,0,0\n0,0,1\n0,1,0\n1,0,0\n", encoding="utf-8")
    done = called("fit", path)
    assert (done.returncode, done.stderr) == (1, "")
    assert "rows 2 and 5 (lines of the file) contradict each other: a differs" in done.stdout
    assert "--score bde" in done.stdout
    assert "max_parents" not in done.stdout
    asked = called("fit", path, "--out", tmp_path / "item.jsonl", "--html", tmp_path / "why.html")
    assert (asked.returncode, asked.stderr) == (1, "no page and no pool written: nothing fits\n")
    assert [file.name for file in tmp_path.iterdir()] == ["noise.csv"]
    assert called("fit", path, "--score", "bde").returncode == 0
    refused = called("fit", path, "--score", "bde", "--target", "y")
    assert refused.returncode == 2
    assert "--target: not with --score, which prints networks of all columns; it takes --best" in refused.stderr


@pytest.mark.parametrize(
    ("text", "arguments", "reason"),
    [
        ("A,Y\n0,1\n0,0\n", (), "t.csv, rows 2 and 3 (lines of the file) contradict each other: Y differs"),
        ("A,Y\n0,1\n0,0\n", (), "or if values are noisy, learn networks (--score bde"),
        ("A,Y\n0,1\n0,0\n", ("--errors", "none"), "or if values are noisy, allow errors (--errors front) or learn"),
        ("A,Y\n0,1\n0,0\n", ("--errors", "front"), "or if values are noisy, learn networks (--score bde"),
        ("A,Y,set\n0,1,\n0,0,\n", ("--do", "set"), "is equal; correct one, or if values are noisy, learn"),
        ("A,B,Y,set\n0,0,0,B\n1,0,0,\n1,0,1,B\n", ("--do", "set"), "rows 3 and 4 (lines of the file) contradict"),
    ],
)
def test_contradicting_rows_have_the_exit_code_of_no_fit(
    text: str, arguments: tuple[str, ...], reason: str, tmp_path: Path
) -> None:
    (tmp_path / "t.csv").write_text(text, encoding="utf-8")
    done = called("fit", tmp_path / "t.csv", "--target", "Y", *arguments)
    assert done.returncode == 1
    assert reason in done.stdout
    with pytest.raises(calibrant.CalibrantError, match=r"rows (2 and 3|3 and 4) .* contradict each other"):
        calibrant.fit(tmp_path / "t.csv", target="Y", do="set" if "--do" in arguments else None)


AGES = "age,smoke,sick\n30,yes,no\n45.5,yes,yes\n60,no,no\n70,yes,yes\n"


@pytest.mark.parametrize(
    ("text", "arguments", "line", "hint"),
    [
        (AGES, ("--target", "sick", "--binarize", "age:>40"), "30,no,?",
         "(sick: no or yes). 30 is a value of age with `age>40` = 0; any other such value does."),
        (AGES, ("--target", "age>40", "--binarize", "age:>40", "--binarize", "age:>60"), "?,no,yes",
         "(age: its value, with `age>60` = 0)."),
        ("age,smoke,sick\n50,1,0\n60,0,1\n", ("--target", "sick", "--binarize", "age:>40"), "?,0,?",
         "(sick: 0 or 1). No age of the table has `age>40` = 0: replace its ? by one that has."),
        ('dose,s,sick\n"1,5",b,no\n7,c,yes\n7,b,yes\n', ("--target", "sick", "--binarize", "dose:1,5"), '"1,5",c,?',
         "1,5 is a value of dose with `dose=1,5` = 1; any other such value does."),
        ("gene,cond,resp\nhigh,a,big\nlow,a,small\nlow,b,small\n",
         ("--target", "resp", "--one", "gene=high", "--one", "resp=big"), "high,b,?", "(resp: small or big)."),
        ("a,b,y\n0,0,0\n1,0,1\n0,1,1\n", ("--target", "y"), "1,1,?", "each ? by the 0 or 1 that you observe (y)."),
    ],
)  # fmt: skip
def test_the_row_that_settles_it_is_in_the_words_of_the_file(
    text: str, arguments: tuple[str, ...], line: str, hint: str, tmp_path: Path
) -> None:
    (tmp_path / "t.csv").write_text(text, encoding="utf-8")
    done = called("fit", tmp_path / "t.csv", *arguments)
    assert f"\n{line}\nA line of the table; replace each ? by the " in done.stdout
    assert f"{hint}\n" in done.stdout
    assert " 1 were" not in done.stdout


def test_the_row_pasted_settles_a_table_with_a_rule(tmp_path: Path) -> None:
    """Either observed value leaves one SCM, and nothing is missing."""
    (tmp_path / "t.csv").write_text(AGES + "30,no,yes\n", encoding="utf-8")
    done = called("fit", tmp_path / "t.csv", "--target", "sick", "--binarize", "age:>40")
    assert "[1 SCM fits]" in done.stdout
    assert "missing" not in done.stdout


def test_rows_of_data_in_memory_are_counted_from_one() -> None:
    with pytest.raises(calibrant.CalibrantError, match=r"the data, row 1 \(counted from 1\), column 'do': 'C' is no"):
        fit_complete({"A": [1, 0], "B": [0, 1], "do": ["C", ""]}, do="do")


@pytest.mark.parametrize(
    ("text", "arguments", "reason"),
    [
        ("A,Y\n0,1\nx,1\nz,0\nx,0\n", (), "t.csv, column 'A' (more than two values: '0', 'x', 'z'): two "
         "values a column are read; give --binarize 'A:RULE' "),
        ("A,Y\n0,1\nx,1\nz,0\nx,0\n", (), "; networks take up to 64 values (--score bde); a word for no value is"),
        ("A,B,set\n0,1,\n0,1,\"A,B\"\n0,1,A\n1,1,B\n0,1,B\n", (), "if 'set' names the columns set in each row, "
         "give do (--do 'set')"),
        ("A,B c,set\n0,1,\n0,1,\"do(A=0, B c=1)\"\n0,1,do(A=0)\n1,1,none\n", (), "if 'set' names the columns set in"),
        ("A,B,KO\n0,1,WT\n1,1,B\n0,0,\n1,0,A+B\n0,1,B\n", (), "if 'KO' names the columns set in each row"),
        ("A,B,KO\n0,1,WT\n1,1,B\n", ("--do", "KO"), "if 'WT' stands for nothing set, give --missing WT"),
        ("A,Y\n0,1\n", ("--target", "Z"), "t.csv has no column 'Z'; known: A, Y"),
        ("A,Y\n0,1\n", ("--do", "set"), "t.csv has no column 'set' (--do); known: A, Y"),
        ("A,set\n0,B\n", ("--do", "set"), "t.csv, row 2 (lines of the file), column 'set': 'B' is no column"),
        ("A,A\n0,1\n", (), "t.csv has two columns 'A'"),
        ("A,Y\n0\n", (), "t.csv, row 2 (lines of the file): 1 value under 2 names"),
        ("", (), "t.csv is empty"),
        ('"a\nb",c\n0,1\n', (), "column 'a\\nb': a name has a line break; write it on one line"),
        (",".join(f"x{k}" for k in range(10**5)) + "\n", (), "t.csv has 100,000 columns; at most 10,000 are read"),
        ("A,Y\n", (), "t.csv has no rows"),
        ("A|Y\n0|1\n", (), "t.csv has one column only, 'A|Y', whose name holds '|'; cells are separated by commas, "),
        ('"A;Y"\n0\n', (), "whose name holds ';'"),
        ("sep=;\nA\tY\n0\t1\n", (), "whose name holds '\\t'"),
        ("A,Y\n0,1\n", ("--drop", "B"), "t.csv has no column 'B' (--drop); known: A, Y"),
        ("A,Y\n0,1\n", ("--one", "A"), "t.csv: --one 'A': write COL=WORD"),
        ("A,Y\n0,1\n", ("--binarize", "A:big"), "column 'A', --binarize 'big': no value 'big'; known: 0; rules are"),
        ("A,Y\n0,1\n", ("--drop", "A,Y"), "t.csv: no column has values to fit"),
        (",".join(f"x{k}" for k in range(61)) + "\n" + ",".join("0" * 61), (), "t.csv has 61 columns; at most 60"),
        (",".join(f"x{k}" for k in range(60)) + "\n" + ",".join("0" * 60), ("--roots", "x0", "--max-parents", "6"),
         "t.csv: 60 columns have"),
        ("A,Y\n0,1\n", ("--target", "Y", "--roots", "A"), "target and roots exclude each other"),
    ],
)  # fmt: skip
def test_each_fault_is_one_line(text: str, arguments: tuple[str, ...], reason: str, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(text, encoding="utf-8")
    done = called("fit", path, *arguments)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert reason in done.stderr


def test_advice_for_a_csv_file_is_a_line_of_it_and_pages_use_its_words(tmp_path: Path) -> None:
    """The columns are in no alphabetical order, and an empty line shifts the lines of the file."""
    file = tmp_path / "pump.csv"
    file.write_text("Tank;Light;Power\n0;0;0\n\n0;0;1\n1;1;1\n", encoding="utf-8")
    printed = called("fit", file, "--target", "Light", "--html", tmp_path / "why.html", "--out", tmp_path / "out.jsonl")
    assert printed.stderr.splitlines() == [
        f"page written to {tmp_path / 'why.html'}",
        f"pool written to {tmp_path / 'out.jsonl'}",
    ]
    lines = printed.stdout.splitlines()
    (advice,) = (line for line in lines if ";?;" in line)
    assert advice == "1;?;0"
    assert "Why is \u201cLight\u201d ambiguous?" in lines
    assert [number for number in range(2, 6) if f"line {number}" in printed.stdout] == [2, 4, 5]
    assert '{"id"' not in printed.stdout
    pool = json.loads((tmp_path / "out.jsonl").read_text(encoding="utf-8").splitlines()[1])
    assert pool["variables"] == ["Tank", "Light", "Power"]
    assert pool["training"][0]["rows"] == ["000", "001", "111"]
    page = (tmp_path / "why.html").read_text(encoding="utf-8")
    assert re.findall(r'class="middle">(\w+)</th>', page)[:3] == ["Tank", "Power", "Light"]
    assert "Words on this page" in page
    for value in "01":
        file.write_text(f"Tank;Light;Power\n0;0;0\n0;0;1\n1;1;1\n{advice.replace('?', value)}\n", encoding="utf-8")
        assert "One SCM fits" in called("fit", file, "--target", "Light").stdout


@pytest.mark.parametrize(
    ("text", "note", "witness"),
    [
        ("A,B,Y,set\n0,0,0,Y\n1,1,1,Y\n",
         "do_Y line 2 and do_Y line 3 do not show what Y would be: it was set in both.",
         "Witness all roots 0: A gives Y = 0; B gives Y = 1."),
        ("A,Y,set\n0,0,Y\n", "do_Y line 2 does not show what Y would be: it was set there.", "Witness all roots 0: A"),
        ("A,Y,set\n" + "1,0,Y\n" * 4, "4 rows, do_Y line 2 the first, do not show what Y would be: it was set in all",
         ""),
        ("Y,set\n1,Y\n", "it was set there.",
         "2 = 2 to the 1: Y was never seen free, and it may be 0 or 1.\nWitness: A"),
    ],
)  # fmt: skip
def test_a_target_that_every_row_sets_is_said_without_empty_parts(
    text: str, note: str, witness: str, tmp_path: Path
) -> None:
    file = tmp_path / "t.csv"
    file.write_text(text, encoding="utf-8")
    done = called("fit", file, "--do", "set", "--target", "Y", "--html", tmp_path / "why.html")
    page = (tmp_path / "why.html").read_text(encoding="utf-8")
    assert all(sentence in done.stdout and sentence in page for sentence in (note, *witness.split("\n")))


@pytest.mark.parametrize("shown", [0b1, 0b1011, 0b11111111, 0b10000001])
def test_the_page_says_how_the_count_comes_about(shown: int) -> None:
    fitted = fit_complete(rows_of(0b10010110, shown), target="Y")
    assert fitted.why is not None
    never = 8 - shown.bit_count()
    expected = (
        f"{fitted.why.count.in_words()} = 2 to the {never}: of the 8 rows over A, B and C, {never} were never seen"
    )
    assert count_origin(fitted.why).startswith(expected if never else "")


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (lambda pd: pd.DataFrame([[0, 1], [1, 0]], columns=["A", "A"]), "the data has two columns 'A'"),
        (lambda pd: pd.DataFrame({"A": [0, 1], "Y": [0, 1], "do": [None, "B"]}), "'B' is no column"),
        (lambda pd: type("LazyFrame", (), {"collect": None})(), "a LazyFrame has no rows yet: give data.collect"),
    ],
)
def test_frames_that_cannot_be_read_are_one_line(frame: Callable[[Any], Any], message: str) -> None:
    data = frame(pytest.importorskip("pandas"))
    do = "do" if "do" in getattr(data, "columns", ()) else None
    with pytest.raises(calibrant.CalibrantError, match=re.escape(message)):
        fit_complete(data, do=do)


def test_the_line_to_add_has_the_columns_of_the_file(tmp_path: Path) -> None:
    """It sets a column, and the file has no column for that: the hint says so beside the line."""
    path = tmp_path / "garden.csv"
    path.write_text("rain,sprinkler,wet,slippery\n0,0,0,0\n0,1,1,1\n1,0,1,1\n1,1,1,1\n", encoding="utf-8")
    why = fit_complete(path).why
    assert why is not None
    (decider, *_) = why.deciders
    assert decider.world["constants"] == {"wet": 0}
    assert decider.table_line == "0,1,0,?"
    assert "It sets wet: name that in a column, and give the column with --do." in world_hint(why, decider)


def notes_by_definition(rows: list[tuple[int | None, ...]], set_in: list[int | None]) -> set[str]:
    """Return the notes, from the cells, column by column. set_in: the column set in each row."""
    names, notes, originals = "ABCDE", set(), list[int]()
    for k, name in enumerate(names):
        values = {row[k] for row in rows} - {None}
        if len(values) < 2:
            notes.add(f"constant {name}" if values else f"empty {name}")
            continue
        for other in originals:
            both = [(row[k], row[other]) for row in rows if None not in (row[k], row[other])]
            kind = {True: "duplicate", False: "complement"}.get(both[0][0] == both[0][1]) if both else None
            if len(both) > 1 and len({a == b for a, b in both}) == 1:
                notes.add(f"{kind} {name} of {names[other]}")
                break
        else:
            originals.append(k)
    for y in originals:
        for a, b in combinations([k for k in originals if k != y], 2):
            seen: dict[tuple[int | None, int | None], list[int | None]] = {}
            for row, target in zip(rows, set_in, strict=True):
                if target != y and None not in (row[a], row[b], row[y]):
                    seen.setdefault((row[a], row[b]), []).append(row[y])
            twice = any(len(values) > 1 for values in seen.values())
            if len(seen) == 4 and twice and all(len(set(values)) == 1 for values in seen.values()):
                notes.add(f"determined {names[y]} by {names[a]}, {names[b]}")
                break
    return notes


@given(
    st.lists(st.tuples(*[st.sampled_from([0, 1, 0, 1, None])] * 5), min_size=1, max_size=9),
    st.data(),
)
@settings(max_examples=60, deadline=None)
def test_notes_are_those_of_the_definition(rows: list[tuple[int | None, ...]], data: st.DataObject) -> None:
    set_in = [data.draw(st.sampled_from([None, *range(5)])) for _ in rows]
    columns = {name: [row[k] for row in rows] for k, name in enumerate("ABCDE")}
    do = ["" if k is None else "ABCDE"[k] for k in set_in]
    expected = notes_by_definition(rows, set_in)
    if all(note.startswith("empty") for note in expected) and len(expected) == 5:
        return
    table = read_table({**columns, "set": do}, do="set")
    assert set(table.notes) == expected
    assert list(table.notes) == sorted(table.notes)


def test_a_column_that_two_others_determine_is_noted() -> None:
    """Rare in random tables of few rows."""
    rows = [(a, b, a ^ b, a, 1 - b) for a in (0, 1) for b in (0, 1)] + [(0, 0, 0, 0, 1)]
    table = read_table({name: [row[k] for row in rows] for k, name in enumerate("ABCDE")})
    expected = notes_by_definition([*rows], [None] * 5)
    assert set(table.notes) == expected
    assert {"determined C by A, B", "duplicate D of A", "complement E of B"} <= expected


def random_table(seed: int, num_columns: int, num_rows: int) -> dict[str, list[int]]:
    generator = np.random.default_rng(seed)
    return {f"c{k}": generator.integers(0, 2, num_rows).tolist() for k in range(num_columns)}


@pytest.mark.parametrize(
    ("num_columns", "num_rows", "max_parents", "outcome"),
    [(12, 1, 4, "Found"), (16, 2, 5, "Found"), (20, 5, 4, "OutOfBudget")],
)
def test_tables_of_few_rows_are_answered_or_out_of_budget_within_five_seconds(
    num_columns: int, num_rows: int, max_parents: int, outcome: str
) -> None:
    """Of the processor; kernels are compiled before."""
    fit_complete(random_table(0, 4, 3), max_parents=max_parents)
    data = random_table(1, num_columns, num_rows)
    started = process_time()
    fitted = fit_complete(data, max_parents=max_parents)
    assert process_time() - started < 5
    assert type(fitted.outcome).__name__ == outcome
    if fitted.why is None:
        assert "was not counted" in str(fitted) or "not decided: at least" in str(fitted)
    else:
        count = fitted.why.count
        assert fitted.why.state == "uncounted"
        assert 0 < int(count.lower) < int(str(count.upper))


def test_fewest_roots_are_proven_where_their_sets_are_too_many() -> None:
    """30 columns have 142,506 sets of 5; four columns would have at most 16 different rows."""
    data = random_table(4, 5, 60)
    for k in range(5, 30):
        first, second = (np.array(data[f"c{place}"]) for place in (k % 5, (k * 3 + 1) % 5))
        data[f"c{k}"] = (first ^ second if k % 2 else first & (1 - second)).tolist()
    fitted = fit_complete(data, max_parents=2)
    assert isinstance(fitted.outcome, OutOfBudget)
    assert fitted.outcome.reached.startswith("at least 5 roots are needed, and ")
    assert len(fitted.some_roots) == 5
    assert not fitted.has_page  # so none is suggested
    assert list(fitted.write("t", html=Path("fit.html"), svg=Path("fit.svg"), out=Path("fit.jsonl"))) == [
        "no page and no picture and no pool written: it is not decided what fits"
    ]
    ((added, _),) = fitted.suggestions
    again = fit_complete(data, max_parents=2, roots=added[1])
    assert isinstance(again.outcome, Found)


def test_a_table_that_is_not_counted_states_why(monkeypatch: pytest.MonkeyPatch) -> None:
    """Searches that spend a budget raise `BudgetSpent` without a message."""

    def spend(*_: object, **__: object) -> None:
        Budget(0).spend(1)

    monkeypatch.setattr(fit_module, "explain", spend)
    fitted = fit_complete({"A": [0, 0, 1, 1], "B": [0, 1, 0, 1], "Y": [0, 0, 0, 1]}, target="Y")
    assert "how many SCMs fit was not counted: more parent sets than are gone through; name the roots" in str(fitted)
    assert str(fitted.to_dict()["out_of_budget"]).startswith("more parent sets than")


@pytest.mark.parametrize("num_rows", [1, 2])
def test_bounds_of_a_count_within_limits_contain_it(num_rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With 11 columns to explain: terms of fewer are not worth counting."""
    data = random_table(2, 12, num_rows)

    def reason(limits: Limits) -> ReplayWhy:
        monkeypatch.setattr("calibrant.bench.replayscm.fitting.fit.LIMITS", limits)
        why = fit_complete(data, roots=["c0"], max_parents=2).why
        assert why is not None
        return why

    exact, bounded = reason(Limits()), reason(Limits(10**6, 1_000, 200))
    assert (exact.state, bounded.state) == ("open", "uncounted")
    assert int(bounded.count.lower) <= int(exact.count.lower) <= int(str(bounded.count.upper))
    assert reason(Limits(10**6, 1_000, 200)).to_dict() == bounded.to_dict()


def test_a_formula_that_is_not_proven_least_is_stated_with_its_bound() -> None:
    random = Random("48/0")
    patterns = random.sample(range(64), 48)
    data = {f"x{i}": [row >> i & 1 for row in patterns] for i in range(6)}
    data["y"] = [random.randint(0, 1) for _ in patterns]
    fitted = calibrant.fit(data, target="y", max_parents=6)
    assert isinstance(fitted, fit_module.Fit)
    stated = re.match(r"not decided: best known (\d+) nodes, at least (\d+): (.*)", str(fitted))
    assert stated is not None
    formula = fitted.best_formula
    assert formula is not None
    assert int(stated[2]) <= int(stated[1]) == formula.size
    for row, value in zip(zip(*(data[f"x{i}"] for i in range(6)), strict=True), data["y"], strict=True):
        assert formula.evaluate({f"x{i}": bit for i, bit in enumerate(row)}.__getitem__, 1) == value


def test_progress_is_printed_from_two_seconds_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The first second is made shorter; scores come in shares, and the last share is not the end."""
    monkeypatch.setattr("calibrant.bench.commands.options.QUICK_PACE", (0.001, 0.001))
    file = tmp_path / "wide.csv"
    data = random_table(3, 15, 400)
    rows = zip(*data.values(), strict=True)
    file.write_text("\n".join([",".join(data), *(",".join(map(str, row)) for row in rows)]), encoding="utf-8")
    assert main(["fit", str(file), "--score", "bde"]) == 0
    lines = capsys.readouterr().err.splitlines()
    counts = {int(found[1]) for line in lines if (found := re.search(r"scores of parent sets: (\d+) of 16 done", line))}
    assert len(counts) > 2


# --- Results as frames ------------------------------------------------------------------------------------------------
WHOLE = {"a": ["no", "yes", "no", "yes"], "b": [0, 1, 1, 1]}


@pytest.mark.parametrize(
    ("data", "options", "expected"),
    [
        (WHOLE, {"target": "b", "errors": "front"}, [("b", 1, "1", 2, 2, "1", "least")]),
        ({"a": [0, 1, 0], "b": [1, 0, 1]}, {"target": "b"}, [("b", "not a")]),
        ({"a": [0, 1, None, 1], "b": [0, 1, 1, 1]}, {"target": "b"}, [("b", "a", 1, 1, 0)]),
        (WHOLE, {"graph": "a -> b"}, [("b", "a", True, None, 1)]),
        (
            WHOLE,
            {"target": "b", "consistency": "1"},
            [("b", "parsimonious", "1+1", "a"), ("b", "conservative", "1+1", "a")],
        ),
        (WHOLE, {"roots": ["a"], "errors": 1}, [(None, 1, "1", 2, 2, None, "least")]),
    ],
)
def test_results_are_frames(data: Any, options: dict[str, Any], expected: list[tuple[Any, ...]]) -> None:
    pytest.importorskip("narwhals")
    frame = calibrant.fit(data, **options).to_frame()
    rows = [tuple(None if value != value else value for value in row) for row in frame.itertuples(index=False)]
    assert rows == expected


def test_networks_and_tables_are_frames() -> None:
    pytest.importorskip("narwhals")
    learned = calibrant.learn_networks({"a": [0, 1, 0, 1], "b": [0, 1, 0, 1]})
    frame = learned.to_frame("pandas")
    assert list(zip(frame["from"], frame["to"], strict=True)) == list(learned.arcs)
    assert frame["in_best"].sum() == 1
    words = calibrant.read_table({"a b": ["yes", "no", None], "n": ["1.0", "0", "?"]}).to_frame()
    assert words.fillna("gap").values.tolist() == [["yes", "1.0"], ["no", "0"], ["gap", "gap"]]
    with pytest.raises(calibrant.CalibrantError, match="backend is 'x'; allowed: pandas"):
        learned.to_frame("x")


def test_a_fit_is_a_graph_of_networkx_under_the_names_of_the_table() -> None:
    pytest.importorskip("networkx")
    cells = {"IL-6 x": [0, 0, 1, 1], "B": [0, 1, 0, 1], "idle": [0, 1, 1, 0], "Y": [0, 0, 0, 1]}
    whole = calibrant.fit({name: cells[name] for name in ("IL-6 x", "B", "Y")})
    assert isinstance(whole, calibrant.Fit)
    graph = whole.to_networkx()
    assert set(graph.nodes) == {"IL-6 x", "B", "Y"}
    assert sorted(graph.edges) == [("B", "Y"), ("IL-6 x", "Y")]
    assert dict(graph.nodes(data="formula")) == {"IL-6 x": "", "B": "", "Y": whole.formula or "B and `IL-6 x`"}
    one = calibrant.fit(cells, target="Y")
    assert isinstance(one, calibrant.Fit)
    assert one.to_networkx().nodes["Y"]["formula"] == one.formula
    none = calibrant.fit(cells, target="Y", max_parents=1)
    assert isinstance(none, calibrant.Fit)
    with pytest.raises(calibrant.CalibrantError, match="no value: impossible"):
        none.to_networkx()


def _least_plain_sizes() -> dict[int, int]:
    """Nodes of the least formula of not, and, or for each function of three columns, by listing every size in turn."""
    rows = range(8)
    sizes = {sum((row >> v & 1) << row for row in rows): 1 for v in range(3)} | {0: 1, 255: 1}
    for size in range(2, 14):
        of_size = {n: [f for f, least in sizes.items() if least == n] for n in range(1, size)}
        made = {255 ^ f for f in of_size[size - 1]}
        for n in range(1, size - 1):  # a join of more arguments: one more node than the join of all but the last
            pairs = list(product(of_size[n], of_size.get(size - 1 - n, [])))
            made |= {f & g for f, g in pairs} | {f | g for f, g in pairs}
        sizes |= {f: size for f in made if f not in sizes}
    return sizes


LEAST_PLAIN = _least_plain_sizes()


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 255), st.integers(1, 255))
def test_a_tie_without_xor_and_iff_comes_first(function: int, seen: int) -> None:
    """Joins of two arguments alone are listed, so a tie that needs wider ones is not demanded."""
    rows = [row for row in range(8) if seen >> row & 1]
    data = {name: [row >> v & 1 for row in rows] for v, name in enumerate("xyz")}
    fitted = calibrant.fit(data | {"f": [function >> row & 1 for row in rows]}, target="f")
    assert isinstance(fitted, calibrant.Fit)
    assert isinstance(fitted.outcome, Found)
    plain = min(
        (size for f, size in LEAST_PLAIN.items() if not (f ^ function) & seen), default=None
    )  # None: all are above 13
    if plain == fitted.outcome.value.size:
        assert not re.search("xor|iff", fitted.formula or "xor")
