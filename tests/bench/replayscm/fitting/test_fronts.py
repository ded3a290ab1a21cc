"""Errors against size, and unknown rates: vectors made by listing, and small tables compared with a plain listing."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping
from fractions import Fraction
from functools import cache
from itertools import combinations, product
from math import prod
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import calibrant
from calibrant.bench.replayscm.fitting import fronts
from calibrant.bench.replayscm.fitting import target as target_module
from calibrant.bench.replayscm.fitting.fit import Fit
from calibrant.solvers.formulas import minimal_sums
from calibrant.solvers.outcome import Found
from tests.solvers.formulas.test_fronts import list_nodes
from tests.support.commands import called
from tests.support.effort import effort
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


@given(st.lists(st.tuples(*[st.integers(0, 1)] * 3), min_size=1, max_size=9))
def test_the_least_errors_are_those_of_all_functions_of_two_columns(rows: list[tuple[int, int, int]]) -> None:
    table = {"A": [a for a, _, _ in rows], "B": [b for _, b, _ in rows], "F": [f for _, _, f in rows]}
    fitted = calibrant.fit(table, target="F", errors="front")
    errors = [point["errors"] for point in fitted.to_dict()["front"]]
    least = min(sum(f != bits[2 * b + a] for a, b, f in rows) for bits in product((0, 1), repeat=4))
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] == least
    assert fitted.fits == (least == 0)
    bounded = calibrant.fit(table, target="F", errors=errors[0]).to_dict()["front"]
    assert [point["errors"] for point in bounded] == errors


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


def test_a_class_that_is_too_small_has_its_front(tmp_path: Path) -> None:
    table = tmp_path / "table.csv"
    rows = [(*row, sum(row) % 2) for row in product((0, 1), repeat=3)]
    table.write_text("a,b,c,F\n" + "".join(",".join(map(str, row)) + "\n" for row in rows), "utf-8")
    done = called("fit", table, "--target", "F", "--max-parents", "2")
    assert done.returncode == 1
    assert "at least 4 of 8 rows are wrong under any function of at most 2 columns" in done.stdout


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
        ({"rates": True}, "write 1/10, 1/100,1/20 or 1/100:1/5,1/20:4/5"),
        ({"max_parents": True}, "max_parents is True"),
    ],
)
def test_what_is_wrong_is_one_line(options: dict[str, Any], reason: str) -> None:
    with pytest.raises(calibrant.CalibrantError, match=reason) as refusal:
        calibrant.fit({"A": [0, 1], "F": [0, 1]}, target="F", **options)
    assert "\n" not in str(refusal.value)


def conjunction(num_columns: int) -> dict[str, list[int]]:
    rows = list(product((0, 1), repeat=num_columns))
    return {f"c{k}": [row[k] for row in rows] for k in range(num_columns)} | {"F": [min(row) for row in rows]}


@pytest.mark.parametrize(("operators", "size"), [("sop", [1, 5]), ("pos", [5, 5])])
def test_sums_of_all_columns_are_proven(operators: Any, size: list[int]) -> None:
    table = conjunction(5)
    answer = calibrant.fit(table, target="F", operators=operators, errors="front", max_parents=5).to_dict()
    assert "open" not in answer
    last = answer["front"][-1]
    assert (last["errors"], last["size"], last["formulas"]) == (0, size, 1)
    none = calibrant.fit(table, target="F", operators=operators, errors=0, max_parents=5).to_dict()
    assert none["front"] == [last]


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


def test_rates_alone_have_a_posterior_of_one() -> None:
    found = calibrant.fit({"A": [0, 1, 1], "F": [0, 1, 0]}, target="F", rates="1/10,1/5").to_dict()
    assert sum(map(Fraction, found["rates"].values())) == 1
    decimals = calibrant.fit({"A": [0, 1, 1], "F": [0, 1, 0]}, target="F", rates=[0.1, 0.2]).to_dict()
    assert decimals["rates"] == found["rates"]


CELL = st.sampled_from(["0", "1", "1", "0", ""])


@settings(max_examples=effort(25, 5_000), deadline=None)
@given(
    st.lists(st.tuples(*[CELL] * 4), min_size=1, max_size=8),
    st.permutations(range(4)),
    st.sampled_from(["all", "and-or-not", "sop", "pos"]),
)
def test_names_and_orders_change_nothing_but_names(
    rows: list[tuple[str, ...]], order: list[int], operators: str
) -> None:
    """Fronts, and counts of functions under gaps; rows are turned round, 0 and 1 become words."""
    names, other_names = ["a", "b", "c", "y"], ["y", "IL-6", "not", "3"]
    words = {"0": "no", "1": "yes", "": ""}
    table = {name: [row[k] for row in rows] for k, name in enumerate(names)}
    other = {other_names[k]: [words[row[k]] for row in reversed(rows)] for k in order}
    options: dict[str, Any] = {"operators": operators, "errors": "front"}
    stated = [
        calibrant.fit(data, target=target, missing=(), **options).to_dict() if len(set(data[target]) - {""}) else {}
        for data, target in ((table, "y"), (other, "3"))
    ]
    first, second = map(_numbers, stated)
    assert first == second


def _numbers(stated: Mapping[str, Any]) -> dict[str, Any]:
    """Return the figures in which no name occurs."""
    fronts = {key: stated[key] for key in ("front", "front_sure", "front_possible") if key in stated}
    for key, front in fronts.items():
        if key == "front":
            fronts[key] = [[p["errors"], p["size"], p["formulas"], p["functions"]] for p in front]
    counts = {key: stated.get(key) for key in ("may", "must", "rows_without_target", "counted", "ones")}
    return counts | fronts | {"sets": sorted((len(s), *numbers) for s, *numbers in stated.get("by_parents", ()))}


# --- Whole SCMs and unknown rates, against listing of all functions ---------------------------------------------------
@cache
def _least_formulas() -> dict[int, tuple[int, int]]:
    """List truth table over a, b, c -> least size, and how many formulas have it."""
    least: dict[int, tuple[int, int]] = {}
    for size, formulas in list_nodes("all").items():
        assert isinstance(size, int)
        words = list(formulas.values())
        least |= {word: (size, words.count(word)) for word in {*words} - {*least}}
    return least


BITS = st.integers(0, 1)


def _spread(word: int) -> int:
    """Return a function of a and b, of 4 bits, as one of a, b and c."""
    return word | word << 4


@cache
def _least_sums(*, dual: bool) -> dict[int, tuple[tuple[int, int], int]]:
    """List table over a, b -> least products and literals of a sum (dual: of a product of sums), and their number."""
    products = []
    for literals in product((None, 0, 1), repeat=2):
        word = sum(all(x is None or r >> i & 1 == x for i, x in enumerate(literals)) << r for r in range(4))
        products.append((word, sum(x is not None for x in literals)))
    sizes: dict[int, list[tuple[int, int]]] = {}
    for number in range(3):
        for chosen in combinations(products, number):
            word = 0
            for covered, _ in chosen:
                word |= covered
            sizes.setdefault(word ^ 15 if dual else word, []).append((number, sum(count for _, count in chosen)))
    return {word: (min(of_word), of_word.count(min(of_word))) for word, of_word in sizes.items()}


@settings(max_examples=effort(40, 5_000), deadline=None)
@given(
    st.lists(st.tuples(st.tuples(BITS, BITS, BITS), st.sampled_from(["", "", "x", "y", "z"])), min_size=1, max_size=8),
    st.sets(st.sampled_from("xyz"), max_size=2),
    st.sampled_from(["all", "all", "sop", "pos"]),
)
def test_fronts_of_scms_are_those_of_a_listing(
    rows: list[tuple[tuple[int, int, int], str]], roots: set[str], operators: str
) -> None:
    names = "xyz"
    free = [k for k in range(3) if names[k] not in roots]
    choices = []  # of each column that is no root: errors, size, formulas, parents
    for k in free:
        first, second = (j for j in range(3) if j != k)
        options = []
        for word in range(16):
            errors = sum(
                name != names[k] and row[k] != word >> (row[first] + 2 * row[second]) & 1 for row, name in rows
            )
            parents = [
                j
                for j, step in ((first, 1), (second, 2))
                if any((word >> r ^ word >> (r ^ step)) & 1 for r in range(4))
            ]
            nodes, num_formulas = _least_formulas()[_spread(word)]
            size: tuple[int, ...] = (nodes,)
            if operators != "all":
                size, num_formulas = _least_sums(dual=operators == "pos")[word]
            options.append((errors, size, num_formulas, parents))
        choices.append(options)
    totals: dict[tuple[tuple[int, ...], int], list[int]] = {}
    for chosen in product(*choices):
        arcs = {(j, k) for k, (*_, parents) in zip(free, chosen, strict=True) for j in parents}
        if any((k, j) in arcs for j, k in arcs) or {(0, 1), (1, 2), (2, 0)} <= arcs or {(1, 0), (2, 1), (0, 2)} <= arcs:
            continue
        summed = tuple(map(sum, zip(*(c[1] for c in chosen), strict=True))) or (0,) * (1 if operators == "all" else 2)
        number = totals.setdefault((summed, sum(c[0] for c in chosen)), [0, 0])
        number[0] += prod(c[2] for c in chosen)
        number[1] += 1
    expected: list[dict[str, Any]] = []
    for (total, errors), (formulas, functions) in sorted(totals.items()):
        if not expected or errors < expected[-1]["errors"]:
            numbers = {"formulas": formulas, "functions": functions}
            expected.append({"errors": errors, "size": total[0] if operators == "all" else list(total)} | numbers)
    data: dict[str, list[Any]] = {name: [row[k] for row, _ in rows] for k, name in enumerate(names)}
    reading: dict[str, Any] = {"do": "set"} if any(name for _, name in rows) else {"drop": ["set"]}
    data["set"] = [name for _, name in rows]
    options_of_fit: dict[str, Any] = {"roots": sorted(roots), "operators": operators, "errors": "front"}
    fitted = calibrant.fit(data, max_parents=2, **options_of_fit, **reading)
    assert fitted.to_dict()["front"] == expected


@settings(max_examples=effort(30, 5_000), deadline=None)
@given(
    st.lists(st.tuples(BITS, BITS, BITS), min_size=1, max_size=9),
    st.sets(st.sampled_from(["0", "1/50", "1/10", "1/4", "1/3"]), min_size=1, max_size=3),
    st.sampled_from(["uniform", "by_parents"]),
    st.sampled_from([1, 2]),
)
def test_posteriors_of_rates_are_those_of_a_listing(
    rows: list[tuple[int, int, int]], rates: set[str], prior: str, max_parents: int
) -> None:
    """Two columns and a target; every function of the class, at every rate."""
    mass: dict[tuple[int, tuple[str, ...], str], Fraction] = {}
    for word in range(16):
        parents = [n for n, step in (("x", 1), ("y", 2)) if any((word >> r ^ word >> (r ^ step)) & 1 for r in range(4))]
        if len(parents) > max_parents:
            continue
        weight = Fraction(1) if prior == "uniform" else Fraction(1, (1, 2, 1)[len(parents)] * (2, 2, 10)[len(parents)])
        wrong = sum(y != word >> (a + 2 * b) & 1 for a, b, y in rows)
        for rate in rates:
            r = Fraction(rate)
            mass[word, tuple(parents), rate] = weight / len(rates) * r**wrong * (1 - r) ** (len(rows) - wrong)
    total, functions = sum(mass.values()), {word for word, *_ in mass}
    names = ("x", "y", "F")
    data = {name: [row[k] for row in rows] for k, name in enumerate(names)}
    options: dict[str, Any] = {"rates": sorted(rates), "prior": prior, "max_parents": max_parents}
    if total == 0:
        with pytest.raises(calibrant.CalibrantError):
            calibrant.fit(data, target="F", **options)
        return
    stated = calibrant.fit(data, target="F", **options).to_dict()
    scale = len(functions) if prior == "uniform" else max_parents + 1
    assert stated["functions"] == len(functions)
    assert Fraction(stated["evidence"]) == total / scale
    assert {r: Fraction(p) for r, p in stated["rates"].items()} == {
        str(Fraction(rate)): share
        for rate in rates
        if (share := sum(m for (*_, r), m in mass.items() if r == rate) / total)
    }
    assert {tuple(s): Fraction(p) for s, p in stated["parents"]} == {
        parents: sum(m for (_, s, _), m in mass.items() if s == parents) / total for parents in {key[1] for key in mass}
    }
    assert {v: Fraction(p) for v, p in stated["arcs"].items()} == {
        v: sum((m for (_, s, _), m in mass.items() if v in s), Fraction(0)) / total for v in ("x", "y")
    }
    for pattern, probability in stated["predict"].items():
        row = int(pattern[0]) + 2 * int(pattern[1])
        one = sum(m * abs((word >> row & 1) - Fraction(rate)) for (word, _, rate), m in mass.items())
        assert Fraction(probability) == one / total
    by_word = {word: sum(m for (w, *_), m in mass.items() if w == word) / total for word in functions}
    highest = max(by_word.values())
    assert Fraction(stated["best"]["posterior"]) == highest
    best = {"".join(str(word >> row & 1) for row in range(4)) for word, p in by_word.items() if p == highest}
    assert set(stated["best"]["tables"]) == best


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
