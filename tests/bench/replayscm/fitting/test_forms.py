"""Truth tables of PLA files and of qualitative comparative analysis, and targets of many columns."""

from __future__ import annotations

import json
from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import calibrant
from calibrant.solvers.formulas import wide_tables
from tests.support.commands import called
from tests.support.effort import effort
from tests.support.replayscm.table_vectors import table_vectors

SHOWN = 12  # formulas that a vector lists


def restate(entries: Any, expected: Any) -> Any:
    """Return of JSON the keys that a vector states, and as many formulas."""
    if isinstance(expected, dict):
        return {key: restate(entries.get(key), value) for key, value in expected.items()}
    if isinstance(expected, list) and isinstance(entries, list):
        return entries[:SHOWN]
    return entries


@pytest.mark.parametrize("kind", ["forms", "truth_table", "wide"])
def test_all_vectors_have_the_stated_figures(kind: str, tmp_path: Path) -> None:
    vectors, compared, refused = table_vectors(kind), 0, 0
    for vector in vectors():
        file = tmp_path / ("table.pla" if kind == "forms" else "table.csv")
        file.write_text(vector["pla"] if kind == "forms" else vector["csv"], encoding="utf-8")
        expected, options = vector["expected"], vector["options"]
        options.pop("needed", None)
        if "refused" in expected:
            with pytest.raises(calibrant.CalibrantError, match=f"column '{expected['column']}'"):
                calibrant.fit(file, **options)
            refused += 1
            continue
        entries = json.loads(json.dumps(calibrant.fit(file, **options).to_dict()))
        assert restate(entries, expected) == expected, vector["id"]
        compared += 1
    assert compared + refused == vectors.number
    assert compared > refused


# --- PLA files, read a row at a time ----------------------------------------------------------------------------------


def read_plainly(kind: str, num_inputs: int, terms: Sequence[tuple[str, str]]) -> list[str] | None:
    """Return the values of each output by row, 0, 1 or ?; None if a row is 1 and 0."""
    outputs = []
    for position in range(len(terms[0][1])):
        values = ""
        for row in product("01", repeat=num_inputs):
            row = row[::-1]  # bit 0 of a row's number is the first input
            digits = {
                out[position]
                for cube, out in terms
                if all(c in ("-", "2", "~", bit) for c, bit in zip(cube, row, strict=True))
            }
            is_one, is_zero, is_free = bool(digits & {"1", "4"}), bool(digits & {"0", "3"}), bool(digits & {"-", "2"})
            if "r" in kind and is_one and is_zero:
                return None
            if "d" in kind and is_free:
                values += "?"
            elif is_one:
                values += "1"
            else:
                values += "0" if "r" not in kind or is_zero else "?"
        outputs.append(values)
    return outputs


@st.composite
def pla_files(draw: st.DrawFn) -> tuple[str, int, list[tuple[str, str]]]:
    kind = draw(st.sampled_from(["f", "fd", "fr", "fdr"]))
    num_inputs, num_outputs = draw(st.integers(1, 3)), draw(st.integers(1, 2))
    cubes = st.text("01-2~", min_size=num_inputs, max_size=num_inputs)
    outputs = st.text("0134-2~", min_size=num_outputs, max_size=num_outputs)
    return kind, num_inputs, draw(st.lists(st.tuples(cubes, outputs), min_size=1, max_size=5))


@settings(max_examples=effort(60, 5_000), deadline=None)
@given(pla_files())
def test_pla_files_have_the_values_of_their_rows(tmp_path_factory: Any, file: tuple[str, int, Any]) -> None:
    kind, num_inputs, terms = file
    lines = [f".i {num_inputs}", f".o {len(terms[0][1])}", f".type {kind}", *(f"{a} {b}" for a, b in terms), ".e"]
    path = tmp_path_factory.getbasetemp() / "drawn.pla"
    path.write_text("\n".join(lines), "utf-8")
    outputs = read_plainly(kind, num_inputs, terms)
    if outputs is None:
        with pytest.raises(calibrant.CalibrantError, match="is 1 and 0"):
            calibrant.fit(path)
        return
    entries = calibrant.fit(path).to_dict()
    assert list(entries) == [f"y{k + 1}" for k in range(len(outputs))]
    for values, entry in zip(outputs, entries.values(), strict=True):
        assert (entry["ones"], entry["zeros"]) == (values.count("1"), values.count("0"))
        for measure in ("all", "and-or-not", "sop", "pos"):
            assert entry[measure]["formulas"] >= len(entry[measure]["listed"][:20]) > 0
            for text in entry[measure]["listed"]:
                assert agrees(text, values)


def agrees(text: str, values: str) -> bool:
    """Return whether a formula over x1, x2, ... has all values of a truth table, read by Python itself."""
    words = text.replace("(", " ( ").replace(")", " ) ").split()

    def read(position: int) -> tuple[Any, int]:
        if words[position] != "(":
            return words[position], position + 1
        parts: list[Any] = [words[position + 1]]
        position += 2
        while words[position] != ")":
            part, position = read(position)
            parts.append(part)
        return parts, position + 1

    tree, _ = read(0)

    def value(part: Any, row: int) -> int:
        if isinstance(part, str):
            return int(part) if part in "01" else row >> int(part[1:]) - 1 & 1
        numbers = [value(argument, row) for argument in part[1:]]
        rules = {"not": 1 - numbers[0], "and": min(numbers), "or": max(numbers), "xor": sum(numbers) % 2}
        return rules.get(part[0], int(len(set(numbers)) == 1))

    return all(code == "?" or value(tree, row) == int(code) for row, code in enumerate(values))


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        (".o 1\n1 1", r"\.i is missing"),
        (".i x\n.o 1\n1 1", r"line 1: \.i takes one whole number"),
        (".i 2\n.o 1\n1 1", "line 3: 2 digits; 2 inputs and 1 outputs are needed"),
        (".i 2\n.o 1\n1x 1", "line 3: 'x' is no value of an input"),
        (".i 2\n.o 1\n11 5", "line 3: '5' is no value of an output"),
        (".i 2\n.o 1\n.ilb a a\n11 1", "two columns 'a'"),
        (".i 2\n.o 1\n.ob a b\n11 1", r"line 3: \.ob has 2 names, 1 are needed"),
        (".i 2\n.o 1\n.type x\n11 1", r"line 3: \.type is one of f, fd, fr, fdr"),
        (".i 2\n.o 1\n.mv 4\n11 1", r"line 3: '\.mv' is not read"),
        (".i 2\n.i 2\n.o 1\n11 1", r"line 2: a second \.i"),
        (".i 40\n.o 1\n", "40 inputs and 1 outputs; at most 12 and 48"),
    ],
)
def test_faults_of_pla_files_are_one_line(lines: str, reason: str, tmp_path: Path) -> None:
    file = tmp_path / "table.pla"
    file.write_text(lines + "\n", "utf-8")
    with pytest.raises(calibrant.CalibrantError, match=reason) as refusal:
        calibrant.fit(file)
    assert "\n" not in str(refusal.value)


def test_the_command_prints_outputs_of_a_pla_file(tmp_path: Path) -> None:
    file = tmp_path / "lamp.pla"
    file.write_text("# a lamp\n.i 3\n.o 2\n.ilb left right key\n.ob on `off`\n.p 2\n1-1|10\n-11 1-\n.e\n", "utf-8")
    done = called("fit", file, "--operators", "sop")
    assert done.returncode == 0, done.stderr
    assert "on, a function of left, right, key: 3 of 8 rows are 1, 5 are 0, 0 are free" in done.stdout
    assert "size 2+4 (sums of products: products+literals), proven least; 1 formula of 1 function" in done.stdout
    assert "(key and left) or (key and right)" in done.stdout
    assert called("fit", file, "--target", "on", "--json").stdout.count('"ones"') == 1
    assert "has no output 'left'" in called("fit", file, "--target", "left").stderr
    assert "leave the option out" in called("fit", file, "--out", tmp_path / "pool.jsonl").stderr
    assert not (tmp_path / "pool.jsonl").exists()


# --- Qualitative comparative analysis ---------------------------------------------------------------------------------


@settings(max_examples=effort(40, 5_000), deadline=None)
@given(
    st.lists(st.tuples(*[st.integers(0, 1)] * 3), min_size=2, max_size=14),
    st.sampled_from([Fraction(1, 2), Fraction(3, 4), Fraction(1)]),
    st.integers(1, 3),
)
def test_codes_and_measures_are_those_of_the_rows(
    rows: list[tuple[int, int, int]], consistency: Fraction, cases: int
) -> None:
    rows = [*rows, (0, 0, 0), (1, 1, 1)]
    table = {name: [row[k] for row in rows] for k, name in enumerate(("x1", "x2", "F"))}
    entries = calibrant.fit(table, target="F", consistency=str(consistency), cases=cases).to_dict()
    codes = ""
    for second, first in product((0, 1), repeat=2):
        ones = [f for a, b, f in rows if (a, b) == (first, second)]
        codes += "?" if len(ones) < cases else str(int(Fraction(sum(ones), len(ones)) >= consistency)) if ones else "?"
    assert entries["codes"] == codes
    for name, values in (("open", codes), ("zero", codes.replace("?", "0"))):
        assert entries[name]["formulas"] == len(entries[name]["listed"]) > 0
        for text, (fit, coverage) in entries[name]["measures"].items():
            assert agrees(text, values)
            right = sum(f for a, b, f in rows if covers(text, a, b))
            covered = sum(covers(text, a, b) for a, b, _ in rows)
            assert fit == (str(Fraction(right, covered)) if covered else None)
            assert coverage == str(Fraction(right, sum(f for *_, f in rows)))


def covers(text: str, first: int, second: int) -> bool:
    """Return whether a formula over x1, x2 is 1."""
    row = first + 2 * second
    return agrees(text, "".join("1" if r == row else "?" for r in range(4)))


def test_the_command_prints_a_truth_table(tmp_path: Path) -> None:
    file = tmp_path / "cases.csv"
    file.write_text("rich,urban,votes\nyes,yes,yes\nyes,yes,no\nyes,no,yes\nno,yes,no\nno,yes,no\n", "utf-8")
    done = called("fit", file, "--target", "votes", "--consistency", "1/2")
    assert done.returncode == 0, done.stderr
    assert "2 rows are 1, 1 is 0, 1 remainder" in done.stdout
    assert "  rich: consistency 0.667, coverage 1.000" in done.stdout
    assert done.stdout.count("  rich") == 2  # once in each solution
    assert "--consistency" in called("fit", file, "--consistency", "1/2", "--score", "bde").stderr


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"consistency": "0"}, "consistency is '0'; a share above 0 and up to 1"),
        ({"consistency": "x"}, "consistency is 'x'"),
        ({"consistency": ".8", "cases": 0}, "cases is 0; a whole number from 1"),
        ({"cases": 2}, "cases are of a truth table"),
        ({"consistency": ".8", "operators": "pos"}, "consistency gives sums of products"),
        ({"consistency": ".8", "errors": "front"}, "consistency gives sums of products"),
        ({"max_parents": 13}, "max_parents is 13; 1 to 12"),
    ],
)
def test_wrong_options_are_one_line(options: dict[str, Any], reason: str) -> None:
    with pytest.raises(calibrant.CalibrantError, match=reason) as refusal:
        calibrant.fit({"A": [0, 1], "F": [0, 1]}, target="F", **options)
    assert "\n" not in str(refusal.value)


# --- Many columns -----------------------------------------------------------------------------------------------------


def test_nothing_within_the_bound_names_the_columns_that_are_needed(tmp_path: Path) -> None:
    rows = list(product((0, 1), repeat=7))
    lines = [",".join(map(str, (*row, sum(row) % 2))) for row in rows]
    file = tmp_path / "parity.csv"
    file.write_text("a,b,c,d,e,f,g,F\n" + "\n".join(lines) + "\n", "utf-8")
    done = called("fit", file, "--target", "F")
    assert done.returncode == 1
    assert "7 are needed, 1 set of 7 does: --max-parents 7" in done.stdout
    done = called("fit", file, "--target", "F", "--max-parents", "7")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "F = a xor b xor c xor d xor e xor f xor g" in done.stdout
    assert "total size 8, proven least" in done.stdout
    entries = json.loads(called("fit", file, "--target", "F", "--max-parents", "8", "--json").stdout)
    assert (entries["size"], entries["mentions"], entries["needed"], entries["functions"]) == (8, 7, 7, 1)


def test_a_formula_without_proof_is_the_best_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wide_tables, "MAX_CONFLICTS", 500)
    import numpy as np

    random = np.random.default_rng(3)
    bits = (np.arange(256)[:, None] >> np.arange(8)) & 1
    table = {f"c{k}": bits[:, k].tolist() for k in range(8)} | {"F": random.integers(0, 2, 256).tolist()}
    fitted = calibrant.fit(table, target="F", max_parents=8)
    entries = fitted.to_dict()
    assert fitted.fits
    assert entries["size"] is None
    assert "best known" in entries["out_of_budget"]
    assert entries["needed"] == entries["mentions"] == 8
    assert "proven least" not in str(fitted)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (".i 2\n.o 1\n.type fr\n00 0\n01 0\n10 0\n11 1\n.e\n", "write its rows as CSV and fit --target y1"),
        (".i 2\n.o 1\n.type fr\n00 0\n01 0\n11 1\n.e\n", "a truth table with free rows is no item"),
    ],
)
def test_a_pool_of_a_truth_table_is_refused_for_its_reason(text: str, reason: str, tmp_path: Path) -> None:
    (tmp_path / "t.pla").write_text(text, "utf-8")
    done = called("fit", tmp_path / "t.pla", "--out", tmp_path / "t.jsonl")
    assert done.returncode == 2
    assert reason in done.stderr


def test_no_note_advises_to_drop_the_target_of_a_truth_table(tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    table.write_text("a,b,outcome\n0,0,0\n0,1,0\n1,0,0\n1,1,1\n1,1,1\n", "utf-8")
    done = called("fit", table, "--target", "outcome", "--consistency", "4/5")
    assert "--drop" not in done.stdout
    assert "1 row is 1, 3 are 0" in done.stdout
    assert "--drop" in called("fit", table).stdout  # without a target there is a note
