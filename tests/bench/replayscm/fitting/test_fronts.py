"""Errors against size, and unknown rates: vectors made by listing, and what is stated of them."""

from __future__ import annotations

import random
import re
from itertools import product
from pathlib import Path
from typing import Any

import pytest

import calibrant
from calibrant.bench.replayscm.fitting import fronts
from calibrant.bench.replayscm.fitting import target as target_module
from calibrant.bench.replayscm.fitting.fit import Fit
from calibrant.solvers.formulas import minimal_sums
from calibrant.solvers.outcome import Found
from tests.support.commands import called
from tests.support.replayscm.table_vectors import table_vectors

SHOWN = 12  # formulas that a vector lists


def as_stated(kind: str, found: dict[str, Any], expected: dict[str, Any]) -> dict[str, Any]:
    """Return what was found as far as the vector states it."""
    stated: dict[str, Any] = {key: found.get(key) for key in expected}
    if kind == "rate":
        stated["parents"] = sorted(stated["parents"], key=str)
        stated["predict"] = {pattern: stated["predict"].get(pattern) for pattern in expected["predict"]}
        return stated
    points = []
    for point, wanted in zip(stated["front"], expected["front"], strict=True):
        point = {key: point[key] for key in wanted}
        if "listed" in wanted:
            point["listed"] = point["listed"][:SHOWN]
        for key in ("measures", "terms"):
            if key in wanted:
                point[key] = {name: point[key].get(name) for name in wanted[key]}
        points.append(point)
    return stated | {"front": points}


@pytest.mark.parametrize("kind", ["front", "scm_front", "rate"])
def test_all_vectors_have_the_stated_figures(kind: str, tmp_path: Path) -> None:
    vectors, compared = table_vectors(kind), 0
    for vector in vectors():
        file = tmp_path / "table.csv"
        file.write_text(vector["csv"], encoding="utf-8")
        expected = vector["expected"]
        if kind == "rate":
            expected["parents"] = sorted(expected["parents"], key=str)
        found = calibrant.fit(str(file), **vector["options"]).to_dict()
        assert as_stated(kind, found, expected) == expected, vector["id"]
        compared += 1
    assert compared == vectors.number


def test_no_function_fits_and_the_front_follows(tmp_path: Path) -> None:
    table = tmp_path / "table.csv"
    table.write_text("a b,F\n0,0\n0,1\n1,1\n1,1\n", "utf-8")
    done = called("fit", table, "--target", "F", "--errors", "front")
    assert done.returncode == 1
    assert "contradict each other" in done.stdout
    assert "     1     1         2          2  " in done.stdout  # 1 and `a b`
    page = tmp_path / "fit.html"
    called("fit", table, "--target", "F", "--errors", "front", "--html", page)
    top = page.read_text("utf-8").partition("errors against size")[0]
    assert "rows 2 and 3 (lines of the file) contradict each other" in top
    columns = called("fit", table, "--errors", "front").stdout
    assert columns.count("errors  size  formulas") == 2


NOISY = {"A": [0, 0, 1, 1, 1, 1], "B": [0, 1, 0, 1, 1, 1], "F": [0, 0, 0, 1, 1, 0]}
STATED: dict[str, tuple[dict[str, Any], str, str]] = {
    "target": ({"target": "F"}, "formulas (nodes, all operators) of at most 2 of 2 columns", "proven"),
    "scms": ({"roots": "A,B"}, "SCMs of at most 4 parents, roots A, B", "proven"),
}


@pytest.mark.parametrize("case", STATED)
def test_json_of_a_front_has_its_class_and_proof(case: str) -> None:
    question, model_class, proof = STATED[case]
    found = calibrant.fit(NOISY, errors="front", **question).to_dict()
    assert (found["class"], found["proof"]) == (model_class, proof)
    gapped = calibrant.fit({**NOISY, "F": [0, 0, 0, 1, 1, None]}, **question).to_dict()
    assert gapped["class"].split(" of ")[0] in ("functions", "SCMs")
    assert gapped["proof"] == "counted exactly"


@pytest.mark.parametrize("operators", ["all", "sop"])
def test_a_target_that_no_function_fits_has_its_front_at_once(operators: str, tmp_path: Path) -> None:
    table = tmp_path / "table.csv"
    table.write_text("a,b,F\n0,0,0\n0,0,1\n0,0,0\n1,0,1\n1,1,1\n", "utf-8")
    options = ("--target", "F", "--operators", operators)
    done = called("fit", table, *options)
    assert done.returncode == 1
    assert "at least 1 of 5 rows is wrong under any function of at most 2 columns" in done.stdout
    asked = called("fit", table, *options, "--errors", "front").stdout
    assert done.stdout.partition("\n\n")[2] == asked.partition("\n\n")[2] != ""
    refused_front = called("fit", table, *options, "--errors", "none")
    assert refused_front.returncode == 1
    assert "allow errors (--errors front)" in refused_front.stdout
    assert "at least 1 of 5" not in refused_front.stdout
    with pytest.raises(calibrant.CalibrantError, match="contradict"):
        calibrant.fit(table, target="F", errors="none")


def test_too_few_errors_are_stated_with_the_least(tmp_path: Path) -> None:
    table = tmp_path / "table.csv"
    table.write_text("a,y\n0,1\n0,1\n0,0\n0,0\n1,1\n", "utf-8")
    done = called("fit", table, "--target", "y", "--errors", "1")
    assert "of at most 1 of 1 column, 5 rows; proven\nno formula has at most 1 error; the least is 2\n" in done.stdout
    assert calibrant.fit(table, target="y", errors=1).to_dict()["least_errors"] == 2
    assert "least_errors" not in calibrant.fit(table, target="y", errors=2).to_dict()
    whole = called("fit", table, "--roots", "a", "--errors", "1")
    assert "roots a; proven\nno SCM has at most 1 error; the least is 2\n" in whole.stdout


def test_the_page_has_points_formulas_and_marked_rows(tmp_path: Path) -> None:
    table, page = tmp_path / "table.csv", tmp_path / "page.html"
    rows = ["no,1,no", "no,2,yes", "yes,1,yes", "yes,2,yes", "yes,2,no", "no,1,no"]
    table.write_text("a<b,dose,F\n" + "\n".join(rows) + "\n", "utf-8")
    done = called("fit", table, "--target", "F", "--errors", "front", "--html", page)
    assert done.returncode == 1
    text = page.read_text("utf-8")
    points = calibrant.fit(table, target="F", errors="front").to_dict()["front"]
    assert [text.count(f'href="#point-0-{k}"') for k in range(len(points))] == [1] * len(points)
    assert text.count('id="point-') == len(points)
    assert "a&lt;b" in text
    assert "a<b" not in text
    assert text.count("contradicts another row</td>") == 2  # lines 5 and 6
    assert text.count("wrong, contradicts") == 1
    assert "https://" not in text
    called("fit", table, "--errors", "front", "--html", page)  # every column has a front of its own
    ids = re.findall(r' id="([^"]+)"', page.read_text("utf-8"))
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"operators": "nand"}, "operators is 'nand'; allowed: all, and-or-not, sop, pos"),
        ({"errors": "few"}, "errors is 'few'; 'front', 'none' or a whole number from 0 is allowed"),
        ({"errors": "front", "ties": 0}, "ties is 0; 1 to 10,000 formulas are listed"),
        ({"rates": "1/10:1/2"}, "their prior probabilities do not add up to 1"),
        ({"rates": "2/3"}, "below 1/2 are allowed"),
        ({"rates": "x"}, "write 1/10, 1/100,1/20 or 1/100:1/5,1/20:4/5"),
    ],
)
def test_what_is_wrong_is_one_line(options: dict[str, Any], reason: str) -> None:
    with pytest.raises(calibrant.CalibrantError, match=reason) as refusal:
        calibrant.fit({"A": [0, 1], "F": [0, 1]}, target="F", **options)
    assert "\n" not in str(refusal.value)


def conjunction(num_columns: int) -> dict[str, list[int]]:
    rows = list(product((0, 1), repeat=num_columns))
    return {f"c{k}": [row[k] for row in rows] for k in range(num_columns)} | {"F": [min(row) for row in rows]}


def test_a_budget_that_ends_is_stated_with_bounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thirtieth of the budget, in which three points and more are proven too."""
    for module in (fronts, minimal_sums):
        monkeypatch.setattr(module, "FRONT_CONFLICTS", 1_000)
    rng = random.Random(4)
    rows = [(*row, rng.randrange(2)) for row in product("01", repeat=6)]
    table = tmp_path / "table.csv"
    table.write_text("a,b,c,d,e,f,F\n" + "".join(",".join(map(str, row)) + "\n" for row in rows), "utf-8")
    options = ("--target", "F", "--errors", "front", "--operators", "sop", "--max-parents", "6")
    page = tmp_path / "page.html"
    done = called("fit", table, *options, "--html", page)
    assert done.returncode == 0
    assert "proven as far as the budget goes" in done.stdout
    assert "the budget of 1,000 conflicts ended: with fewer than" in done.stdout
    assert "not proven least:" in done.stdout
    fitted = calibrant.fit(table, target="F", errors="front", operators="sop", max_parents=6)
    answer, frame = fitted.to_dict(), fitted.to_frame("pandas")
    proven, left = answer["front"], answer["open"]
    assert len(proven) > 2
    assert left["points"][-1]["errors"] == 0
    assert tuple(left["at_least"]) > tuple(proven[-1]["size"])
    assert all(tuple(point["size"]) >= tuple(left["at_least"]) for point in left["points"])
    assert frame["proof"].tolist() == ["least"] * len(proven) + ["not proven"] * len(left["points"])
    assert frame["errors"].tolist()[-1] == 0
    text = page.read_text("utf-8")
    assert "the budget of 1,000 conflicts ended: with fewer than" in text
    assert text.count("(not proven least)") == len(left["points"])
    assert "Fewest errors with a proven least size:" in text


@pytest.mark.parametrize(("operators", "num_columns", "limit"), [("sop", 11, 4), ("all", 7, 6)])
def test_classes_that_are_not_compared_are_refused(operators: str, num_columns: int, limit: int) -> None:
    """The conjunction of all columns would be left out of such a front."""
    seven = conjunction(7)
    table = {f"d{k}": seven[f"c{k % 7}"] for k in range(num_columns)} | {"F": seven["F"]}
    options: dict[str, Any] = {"operators": operators, "errors": "front", "max_parents": 7}
    with pytest.raises(calibrant.CalibrantError, match=f"lower max_parents .--max-parents {limit}"):
        calibrant.fit(table, target="F", **options)
    narrow = calibrant.fit(table, target="F", **{**options, "max_parents": 4}).to_dict()
    assert narrow["front"][-1]["errors"] == 1


# --- Formulas people write: x or not (y or z), of 6 nodes as x xor iff(x, y, z), of two products and three literals ---
WRITTEN = {"x": [1, 1, 0, 0, 0, 0], "y": [0, 0, 0, 1, 1, 0], "z": [1, 0, 0, 1, 0, 1], "f": [1, 1, 1, 0, 0, 0]}


def test_the_first_lines_state_the_measure_that_was_asked_for() -> None:
    lines = list(calibrant.fit(WRITTEN, target="f", operators="sop").lines())
    assert lines[:2] == ["f = (not y and not z) or x", "size 2+3 (sums of products: products+literals), proven least"]
    assert "f = (not (y or z)) or x" not in lines
    wrong = {**WRITTEN, "f": [1, 0, 1, 0, 0, 0], "z": [1, 1, 0, 1, 0, 1]}
    assert next(iter(calibrant.fit(wrong, target="f", operators="sop").lines())).startswith("nothing fits")


def test_an_scm_has_ties_without_xor_and_iff_first() -> None:
    fitted = calibrant.fit(WRITTEN, roots=["x", "y", "z"])
    assert isinstance(fitted, Fit)
    answer = fitted.outcome
    assert isinstance(answer, Found)
    assert str(answer.value.model.mechanisms["f"]) in ("(or (not (or y z)) x)", "(or x (not (or y z)))")
    assert answer.value.size == 6


def test_a_front_at_hand_is_not_computed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(target_module, "front", lambda *arguments, **options: pytest.fail("a second front"))
    fitted = calibrant.fit(WRITTEN, target="f", operators="and-or-not", errors="front")
    assert isinstance(fitted, Fit)
    assert fitted.formula == "(not (y or z)) or x"
