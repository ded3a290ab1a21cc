"""Tables with gaps: vectors made by listing of completions, and drawn tables compared with a plain listing."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import calibrant
from calibrant.bench.cli import main
from calibrant.bench.replayscm.fitting.missing import GapFit
from calibrant.solvers.acyclic.count import Bounds
from calibrant.solvers.formulas import uncertain_rows as function_counts
from calibrant.solvers.outcome import Budget
from calibrant.solvers.replayscm import completions as scm_counts
from tests.bench.commands.lines import COMMANDS
from tests.support.commands import called, refused
from tests.support.effort import examples
from tests.support.replayscm.table_vectors import table_vectors

Cell = int | None
Row = tuple[Cell, ...]


def gap_fit(data: Any, **options: Any) -> GapFit:
    """Fit a table with gaps."""
    fitted = calibrant.fit(data, **options)
    assert isinstance(fitted, GapFit)
    return fitted


@pytest.mark.parametrize("kind", ["gaps", "gap_scms"])
def test_all_vectors_have_the_stated_figures(kind: str, tmp_path: Path) -> None:
    vectors, compared = table_vectors(kind), 0
    for vector in vectors():
        file = tmp_path / "table.csv"
        file.write_text(vector["csv"], encoding="utf-8")
        found, expected = gap_fit(str(file), **vector["options"]).to_dict(), vector["expected"]
        if "by_parents" in expected:
            for stated in (found, expected):
                stated["by_parents"] = sorted(stated["by_parents"])
        assert {key: found[key] for key in expected} == expected, vector["id"]
        compared += 1
    assert compared == vectors.number


# --- A plain listing --------------------------------------------------------------------------------------------------
def fillings(row: Row) -> Iterator[tuple[int, ...]]:
    """Yield every completion of a row."""
    return product(*((0, 1) if cell is None else (cell,) for cell in row))


@cache
def functions_over(num_inputs: int) -> tuple[tuple[tuple[int, ...], frozenset[int]], ...]:
    """Return the tables of all functions, row r with bit i as input i, with the inputs that they depend on."""
    listed = []
    for table in product((0, 1), repeat=1 << num_inputs):
        flips = {i for r in range(len(table)) for i in range(num_inputs) if table[r] != table[r ^ 1 << i]}
        listed.append((table, frozenset(flips)))
    return tuple(listed)


def value_of(table: Sequence[int], inputs: Sequence[int]) -> int:
    return table[sum(bit << i for i, bit in enumerate(inputs))]


def listed_fits(rows: Sequence[Row], target: int, sets: Sequence[set[int]], quantifier: Any) -> Iterator[Any]:
    """Yield the functions of the other columns that are right in each row; quantifier: any or all, of completions."""
    others = [k for k in range(len(rows[0])) if k != target]
    for table, depends in functions_over(len(others)):
        counted = [
            row for row, was_set in zip(rows, sets, strict=True) if row[target] is not None and target not in was_set
        ]
        if all(
            quantifier(value_of(table, [filled[k] for k in others]) == row[target] for filled in fillings(row))
            for row in counted
        ):
            yield table, frozenset(others[i] for i in depends)


def is_acyclic(parents: dict[int, frozenset[int]]) -> bool:
    unplaced = dict(parents)
    while unplaced:
        first = next((v for v, above in unplaced.items() if not above & set(unplaced)), None)
        if first is None:
            return False
        del unplaced[first]
    return True


def listed_scms(
    rows: Sequence[Row], sets: Sequence[set[int]], inner: Sequence[int], max_parents: int, quantifier: Any
) -> list[dict[int, tuple[Sequence[int], frozenset[int]]]]:
    """Return every SCM whose mechanisms each fit by themselves."""
    choices = [[(t, d) for t, d in listed_fits(rows, v, sets, quantifier) if len(d) <= max_parents] for v in inner]
    scms = [dict(zip(inner, chosen, strict=True)) for chosen in product(*choices)]
    return [scm for scm in scms if is_acyclic({v: depends for v, (_, depends) in scm.items()})]


def replays_a_completion(scm: dict[int, Any], rows: Sequence[Row], sets: Sequence[set[int]]) -> bool:
    """Return whether every row has a completion that all mechanisms return where their column was not set."""

    def agrees(filled: tuple[int, ...], was_set: set[int]) -> bool:
        return all(
            v in was_set or value_of(table, [x for k, x in enumerate(filled) if k != v]) == filled[v]
            for v, (table, _) in scm.items()
        )

    return all(
        any(agrees(filled, was_set) for filled in fillings(row)) for row, was_set in zip(rows, sets, strict=True)
    )


def as_table(rows: Sequence[Row], sets: Sequence[set[int]]) -> dict[str, list[Any]]:
    names = [f"c{k}" for k in range(len(rows[0]))]
    table: dict[str, list[Any]] = {name: [row[k] for row in rows] for k, name in enumerate(names)}
    table["do"] = ["+".join(names[k] for k in sorted(was_set)) for was_set in sets]
    return table


CELLS = st.sampled_from([0, 1, None])


def drawn_rows(num_columns: int) -> st.SearchStrategy[list[tuple[Row, frozenset[int]]]]:
    """Draw rows with the columns that were set; every column has a value somewhere, and there is a gap."""
    row = st.tuples(st.tuples(*[CELLS] * num_columns), st.frozensets(st.integers(0, num_columns - 1), max_size=1))
    return st.lists(row, min_size=1, max_size=6).filter(
        lambda rows: (
            any(None in cells for cells, _ in rows)
            and all(any(cells[k] is not None for cells, _ in rows) for k in range(num_columns))
        )
    )


@settings(max_examples=examples(200))
@given(drawn_rows(4), st.integers(1, 3))
def test_functions_that_may_and_must_fit_are_those_of_a_listing(
    drawn: list[tuple[Row, frozenset[int]]], max_parents: int
) -> None:
    rows, sets = [row for row, _ in drawn], [set(was_set) for _, was_set in drawn]
    found = gap_fit(as_table(rows, sets), target="c3", do="do", max_parents=max_parents).to_dict()
    # rows in which the target was set decide nothing for that reason, known or not
    lacking = [row[3] is None and 3 not in was_set for row, was_set in zip(rows, sets, strict=True)]
    assert found["rows_without_target"] == sum(lacking)
    numbers: dict[frozenset[int], list[int]] = {}
    for index, quantifier in enumerate((any, all)):
        for _, depends in listed_fits(rows, 3, sets, quantifier):
            if len(depends) <= max_parents:
                numbers.setdefault(depends, [0, 0])[index] += 1
    expected = {frozenset(f"c{k}" for k in depends): number for depends, number in numbers.items()}
    assert {frozenset(parents): [may, must] for parents, may, must in found["by_parents"]} == expected
    assert [found["may"], found["must"]] == [sum(n[i] for n in numbers.values()) for i in (0, 1)]
    least = {"sure": any, "possible": all}
    for name, quantifier in least.items():
        fewest = min(
            sum(
                not quantifier(value_of(table, filled[:3]) == row[3] for filled in fillings(row))
                for row, was_set in zip(rows, sets, strict=True)
                if row[3] is not None and 3 not in was_set
            )
            for table, depends in functions_over(3)
            if len(depends) <= max_parents
        )
        assert found[f"front_{name}"][-1][0] == fewest


@settings(max_examples=examples(200), deadline=None)
@given(drawn_rows(3), st.frozensets(st.integers(0, 2), max_size=2), st.integers(1, 2))
def test_scms_are_those_of_a_listing_of_completions(
    drawn: list[tuple[Row, frozenset[int]]], roots: frozenset[int], max_parents: int
) -> None:
    rows, sets = [row for row, _ in drawn], [set(was_set) for _, was_set in drawn]
    inner = [v for v in range(3) if v not in roots]
    names = [f"c{v}" for v in sorted(roots)]
    found = gap_fit(as_table(rows, sets), roots=names, do="do", max_parents=max_parents).to_dict()
    local = listed_scms(rows, sets, inner, max_parents, any)
    assert found["local"] == len(local)
    assert found["must"] == len(listed_scms(rows, sets, inner, max_parents, all))
    assert found["joint"] == sum(replays_a_completion(scm, rows, sets) for scm in local)
    assert found["must"] <= found["joint"] <= found["local"]


# --- Budgets, words, refusals -----------------------------------------------------------------------------------------
def wide_table() -> dict[str, list[Cell]]:
    """Return twelve rows of six columns, two fifths of them gaps."""
    rng = np.random.default_rng(1)
    table: dict[str, list[Cell]] = {
        f"x{k}": [
            None if is_gap else int(bit)
            for bit, is_gap in zip(rng.integers(0, 2, 12), rng.random(12) < 0.4, strict=True)
        ]
        for k in range(6)
    }
    return table | {"y": rng.integers(0, 2, 12).tolist()}


def test_without_branches_the_counts_are_bounds_that_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    exact = gap_fit(wide_table(), target="y", max_parents=6).to_dict()
    assert isinstance(exact["may"], int)
    assert exact["may"] > 0
    monkeypatch.setattr(function_counts, "MAX_BRANCHES", 3)
    bounded = gap_fit(wide_table(), target="y", max_parents=6).to_dict()
    lower, upper = bounded["may_bounds"]
    assert bounded["may"] is None
    assert lower <= exact["may"] <= upper < 1 << 64
    assert "at least" in "\n".join(gap_fit(wide_table(), target="y", max_parents=6).lines())


def test_beyond_the_listing_joint_lies_between_must_and_local(monkeypatch: pytest.MonkeyPatch) -> None:
    table = {"A": [0, 1, None], "B": [None, 1, 0], "C": [1, None, 0]}
    exact = gap_fit(table, roots=["A"], max_parents=2).to_dict()
    assert exact["must"] <= exact["joint"] <= exact["local"]
    monkeypatch.setattr(scm_counts, "MAX_LISTED", 1)
    fitted = gap_fit(table, roots=["A"], max_parents=2)
    assert fitted.to_dict()["joint_bounds"] == [exact["must"], exact["local"]]
    assert "more than 1 SCMs, which are not listed" in str(fitted)
    monkeypatch.setattr(scm_counts, "MAX_LISTED", 100_000)
    monkeypatch.setattr(scm_counts, "MAX_CHECKS", 1)
    assert "too many completions" in str(gap_fit(table, roots=["A"], max_parents=2))


def test_counts_of_equal_parts_are_shared_and_bounds_are_numbers() -> None:
    counter = function_counts.AssignmentCounter(Budget(None))
    clauses = function_counts.Clauses(frozenset({0b0011, 0b1100}), frozenset({0b0110}))
    listed = sum(
        all(bits & mask for mask in clauses.ones) and all(~bits & mask for mask in clauses.zeros) for bits in range(32)
    )
    assert counter.count(clauses, 0b11111) == Bounds(listed, listed)


def test_first_lines_state_what_the_gaps_do(tmp_path: Path) -> None:
    file = tmp_path / "ward.csv"
    file.write_text("smoke;IL-6;bronc\nyes;;yes\nno;1;\n?;0;no\nyes;0;yes\nno;0;no\n", encoding="utf-8")
    done = called("fit", file, "--target", "bronc")
    lines = done.stdout.splitlines()
    assert done.returncode == 0
    assert lines[:4] == [
        "coded 1: yes (smoke, bronc)",
        "missing: 3 cells (1 smoke, 1 IL-6, 1 bronc)",
        "gaps in 3 of 5 rows; a gap may be either value, no row is left out",
        "1 row without bronc: nothing is decided by it",
    ]
    columns = called("fit", file)
    assert "each column by itself; SCMs are counted where roots are named" in columns.stdout
    assert json.loads(called("fit", file, "--json").stdout)["columns"].keys() == {"smoke", "IL-6", "bronc"}


@pytest.mark.parametrize("option", [("--svg", "x.svg"), ("--out", "x.jsonl")])
def test_a_table_with_gaps_is_no_item(
    option: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "t.csv"
    file.write_text("A,Y\n0,\n1,1\n0,0\n", encoding="utf-8")
    message = refused(capsys, "fit", file, "--target", "Y", option[0], tmp_path / option[1])
    assert f"{option[0]}: a table with gaps is no item: leave out rows with gaps (--gaps drop)" in message


def test_a_column_that_names_columns_is_taken_for_what_was_set(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "t.csv"
    file.write_text("A,B,Y,set by hand\nno,no,no,\nyes,no,no,\nyes,yes,yes,A\nno,yes,no,A+B\n", encoding="utf-8")
    message = refused(capsys, "fit", file, "--target", "Y", "--html", tmp_path / "x.html", "--steps")
    assert (
        "is 'set by hand' what was set by hand in each row? then give --do 'set by hand'; a table with gaps" in message
    )
    note = "note: set by hand holds names of other columns: is it what was set by hand in each row? --do 'set by hand'"
    assert note in called("fit", file, "--target", "Y").stdout
    assert note in called("fit", file, "--target", "Y", "--gaps", "drop").stdout
    assert note not in called("fit", file, "--target", "Y", "--do", "set by hand").stdout
    file.write_text("0,1,2\n0,1,\n1,1,0\n0,0,1\n", encoding="utf-8")  # a head of numbers, whose columns hold 0 and 1
    assert "names of other columns" not in called("fit", file, "--target", "1").stdout


def test_a_mistyped_name_with_spaces_is_offered_whole(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "t.csv"
    file.write_text("A,Y,set by hand\n0,0,\n1,1,A\n", encoding="utf-8")
    assert main(["fit", str(file), "--do", "set_by_hand", "--target", "Y"]) == 2
    hint = capsys.readouterr().err.partition("hint")[2].strip().splitlines()[0]
    assert hint == f"calibrant fit {file} --do 'set by hand' --target Y"
    assert main(shlex.split(hint)[1:]) == 0


def test_rates_are_of_complete_rows() -> None:
    with pytest.raises(calibrant.CalibrantError, match=r"an unknown rate \(--rates\) is of complete rows"):
        calibrant.fit({"A": [0, 1, None], "F": [0, 1, 1]}, target="F", rates="1/10")


def test_seven_columns_are_not_compared_on_rows_with_gaps() -> None:
    with pytest.raises(calibrant.CalibrantError, match=r"max_parents is 7; on rows with gaps \(here 1 gap\) at most 6"):
        calibrant.fit({"A": [0, 1, None], "F": [0, 1, 1]}, target="F", max_parents=7)


def test_many_sets_of_five_and_six_are_one_line() -> None:
    table: dict[str, list[Cell]] = {f"x{k}": [0, 1, None if k else 1] for k in range(12)}
    with pytest.raises(calibrant.CalibrantError, match="12 columns have 1,716 sets of five and six"):
        calibrant.fit(table | {"y": [0, 1, 1]}, target="y", max_parents=6)


# --- No option is ignored ---------------------------------------------------------------------------------------------
GAPPED = """A,B,C,Y,I_A
0,hi,0,0,0
0,lo,1,1,0
1,hi,1,,0
1,lo,,1,0
0,hi,0,1,1
1,hi,1,0,0
0,lo,1,1,0
"""
GAP_MODES: dict[str, list[str]] = {
    "target": ["--target", "C"],
    "roots": ["--roots", "A,B,I_A"],
    "columns": [],
    "graph": ["--graph", "A -> Y, A -> C, B -> C"],
    "networks": ["--score", "bde"],
}
READING: dict[str, list[str]] = {
    "--do": ["I_A"],
    "--do-flags": ["I_*"],
    "--one": ["B=hi"],
    "--binarize": ["B:lo"],
    "--drop": ["C"],
    "--missing": ["lo"],
    "--gaps": ["drop"],
}
GAP_OPTIONS: dict[str, list[str]] = READING | {
    "--target": ["Y"],
    "--roots": ["A"],
    "--max-parents": ["1"],
    "--operators": ["sop"],
    "--errors": ["0"],
    "--ties": ["1"],
    "--rates": ["1/10"],
    "--consistency": ["4/5"],
    "--cases": ["2"],
    "--score": ["k2"],
    "--best": ["3"],
    "--prior": ["uniform"],
    "--iss": ["5"],
    "--require": ["C -> A"],
    "--forbid": ["A -> Y"],
    "--tiers": ["Y < A"],
    "--order": ["Y,A"],
    "--max-parents-of": ["Y=0"],
    "--knowledge": ["FOLDER/knowledge.txt"],
    "--assume": ["FOLDER/knowledge.txt"],
    "--graph": ["C -> Y"],
    "--effect": ["Y=1 | do(A=0)"],
    "--seconds": ["5"],
    "--search": [],
    "--fail-on": ["refuted"],
    "--export": ["FOLDER/best.txt"],
    "--html": ["FOLDER/page.html"],
    "--svg": ["FOLDER/picture.svg"],
    "--out": ["FOLDER/pool.jsonl"],
    "--certificates": ["FOLDER/certificates"],
    "--steps": [],
    "--json": [],
    "--verbose": [],
}


def gap_answer(folder: Path, *arguments: str) -> list[Any]:
    """Return exit code, text, JSON and names of files of a fit; of a refusal its code and line."""
    folder.mkdir()
    (folder / "table.csv").write_text(GAPPED, encoding="utf-8")
    (folder / "knowledge.txt").write_text("forbid A -> Y\n", encoding="utf-8")
    line = ["fit", str(folder / "table.csv"), *(text.replace("FOLDER", str(folder)) for text in arguments)]
    done = called(*line)
    if done.returncode == 2:
        return [2, done.stderr]
    as_json = "" if "--json" in arguments else called(*line, "--json").stdout
    texts = [text.replace(str(folder), "FOLDER") for text in (done.stdout, as_json)]
    return [done.returncode, *texts, sorted(path.name for path in folder.iterdir())]


@pytest.fixture(scope="module")
def plain_answer(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], list[Any]]:
    """Answers without an option, one a mode."""
    return cache(lambda mode: gap_answer(tmp_path_factory.mktemp("plain") / mode, *GAP_MODES[mode]))


def test_the_options_of_this_table_are_all_that_fit_has() -> None:
    options = {name for option in COMMANDS["fit"].params for name in option.opts if name.startswith("--")}
    assert options - {"--help", "--quiet"} == GAP_OPTIONS.keys()  # --quiet: hints on standard error alone


@pytest.mark.parametrize("option", GAP_OPTIONS)
@pytest.mark.parametrize("mode", GAP_MODES)
def test_no_option_is_ignored_on_a_table_with_gaps(
    mode: str, option: str, plain_answer: Callable[[str], list[Any]], tmp_path: Path
) -> None:
    """Every option changes what is stated or written, or is refused in one line that names it."""
    base = GAP_MODES[mode]
    if option in base or (option == "--verbose" and mode != "networks"):  # nothing is cut of so small a table
        return
    plain, chosen = plain_answer(mode), gap_answer(tmp_path / "a", *base, option, *GAP_OPTIONS[option])
    assert plain[0] != 2
    if chosen[0] == 2:
        assert chosen[1].count("error  ") == 1
        line = chosen[1].splitlines()[0].replace("max_parents", "max-parents")
        assert option in READING or any(name.removeprefix("--") in line for name in (option, *base[:1]))
    else:
        assert chosen != plain


@pytest.mark.parametrize(
    "option",
    [{"prior": "orders"}, {"search": True}, {"seconds": 1.0}],
)
def test_networks_refuse_what_is_not_summed_over_gaps(option: dict[str, Any]) -> None:
    (name,) = option
    table = {"A": [0, 1, None], "Y": [0, 1, 1]}
    with pytest.raises(
        calibrant.CalibrantError, match=rf"1 gap, and {name} \(--{name}\) .*: leave it out.*--gaps drop"
    ):
        calibrant.learn_networks(table, **option)
    calibrant.learn_networks(table, gaps="drop", **option)


def test_the_first_network_with_gaps_has_a_sentence() -> None:
    learned = calibrant.learn_networks({"A": [0, 1, None], "Y": [0, 1, 1]})
    assert learned.to_dict()["proof"] == "proven highest over all networks, summed over 2 completions of the gaps"
    assert "the first is proven highest over all networks, summed over 2 completions of the gaps;" in str(learned)


def test_a_fit_with_gaps_is_a_graph() -> None:
    """Y is A in the whole rows; the gap leaves A alone, or A with B, by hand: Y may be A, `A and B` or `A or B`."""
    fitted = calibrant.fit({"A": [0, 0, 1, 1], "B": [0, 1, None, 1], "Y": [0, 0, 1, 1]}, target="Y")
    assert isinstance(fitted, calibrant.GapFit)
    graph = fitted.to_networkx()
    assert set(graph) == {"A", "B", "Y"}
    assert dict(graph.edges) == {("A", "Y"): {"necessary": True}, ("B", "Y"): {"necessary": False}}
    counted = calibrant.fit({"A": [0, 1, None], "Y": [0, 1, 1]}, roots="A")
    assert isinstance(counted, calibrant.GapFit)
    with pytest.raises(calibrant.CalibrantError, match="counted, not listed: fit without roots"):
        counted.to_networkx()


def test_each_command_that_a_fit_with_gaps_suggests_runs(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    file.write_text(GAPPED, encoding="utf-8")
    for base in (GAP_MODES["graph"], GAP_MODES["target"]):
        options: dict[str, Any] = {base[0].removeprefix("--"): base[1]}
        suggestions = calibrant.fit(str(file), **options).suggestions
        assert len(suggestions) == 2
        for added, _ in suggestions:
            done = called("fit", file, *base, *added)
            assert done.returncode in (0, 1)
            if "--score" in added:
                assert "Your graph is " in done.stdout
    file.write_text("A,B,Y\n0,,0\n,1,1\n1,0,\n", encoding="utf-8")
    asked: list[dict[str, Any]] = [{"graph": "A -> Y"}, {"target": "Y"}]
    for options in asked:
        assert [added for added, _ in calibrant.fit(str(file), **options).suggestions] == [("--json",)]


@pytest.mark.parametrize("option", [{"errors": "front"}, {"operators": "sop"}, {"ties": 3}])
def test_scms_with_gaps_refuse_fronts(option: dict[str, Any]) -> None:
    (name,) = option
    with pytest.raises(
        calibrant.CalibrantError, match=rf"1 gap, and with roots .* without {name} \(--{name}\): .*drop"
    ):
        calibrant.fit({"A": [0, 1, None], "Y": [0, 1, 1]}, roots="A", **option)


def test_a_prior_of_functions_is_of_rates(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(calibrant.CalibrantError, match=r"give rates \(--rates\)"):
        calibrant.fit({"A": [0, 1], "Y": [0, 1]}, target="Y", prior="by_parents")
    file = tmp_path / "t.csv"
    file.write_text("A,Y\n0,0\n1,1\n", encoding="utf-8")
    assert "give --rates" in refused(capsys, "fit", file, "--target", "Y", "--prior", "uniform")


def test_a_graph_is_ranked_among_networks_with_gaps(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "t.csv"
    file.write_text("A,Y\n" + "0,0\n1,1\n" * 9 + "0,\n", encoding="utf-8")
    line = ("fit", file, "--score", "bde", "--fail-on", "refuted", "--html", tmp_path / "page.html")
    worse = called(*line, "--graph", "[A][Y]")
    assert worse.returncode == 1
    assert "Your graph is 3rd of 3 (score -" in worse.stdout
    assert "Your graph is 3rd of 3" in (tmp_path / "page.html").read_text(encoding="utf-8")
    best = called(*line, "--graph", "A -> Y")
    assert best.returncode == 0
    assert "Your graph is as good as the best of 3" in best.stdout
    assert json.loads(called(*line, "--graph", "A -> Y", "--json").stdout)["graph"]["better_networks"] == 0
    assert "which is no column" in refused(capsys, *line, "--graph", "A -> Q")
    banned = calibrant.learn_networks(str(file), graph="A -> Y", forbid="A -> Y").ranking
    assert banned is not None
    assert banned.violations
    assert banned.gap == pytest.approx(0, abs=1e-9)  # Y -> A scores the same
