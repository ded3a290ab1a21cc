"""Truth tables of PLA files and of qualitative comparative analysis, and targets of many columns."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import calibrant
from calibrant.solvers.formulas import wide_tables
from tests.support.commands import called
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
