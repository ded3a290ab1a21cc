"""A graph as a claim on a table: refuted by rows, or its SCMs counted; drawn tables compared with a plain listing."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import calibrant
from calibrant.bench.replayscm.fitting.claimed_graph import GraphFit
from tests.support.commands import called
from tests.support.effort import examples
from tests.support.replayscm.table_vectors import table_vectors

OWN = "smoke,alarm,fire,leave\nyes,no,no,no\nyes,yes,yes,yes\nno,yes,yes,yes\nno,no,no,no\nno,yes,no,yes\n"


def judge(data: Any, graph: Any, **options: Any) -> GraphFit:
    """Judge a graph as a claim."""
    judged = calibrant.fit(data, graph=graph, **options)
    assert isinstance(judged, GraphFit)
    return judged


ARCS = (("c0", "c1"), ("c0", "c2"), ("c1", "c2"), ("c0", "c3"), ("c1", "c3"), ("c2", "c3"))
OPTIONS: dict[int | None, tuple[int, ...]] = {0: (0,), 1: (1,), None: (0, 1)}
CELLS = st.sampled_from([0, 1, 0, 1, None])
ROW = st.tuples(st.tuples(CELLS, CELLS, CELLS, CELLS), st.integers(-1, 3))


@settings(max_examples=examples(500))
@given(st.lists(ROW, min_size=1, max_size=7), st.frozensets(st.sampled_from(ARCS)))
def test_functions_of_the_parents_are_those_of_a_listing(
    rows: list[tuple[tuple[int | None, ...], int]], arcs: frozenset[tuple[str, str]]
) -> None:
    table: dict[str, list[Any]] = {f"c{k}": [cells[k] for cells, _ in rows] for k in range(4)}
    if any(set(column) == {None} for column in table.values()):
        return  # a column without a value is left out
    judged = judge(table | {"do": ["" if k < 0 else f"c{k}" for _, k in rows]}, sorted(arcs), do="do")
    stated = judged.to_dict()
    scms = faithful = 1
    for child in {child for _, child in arcs}:
        v = int(child[1])
        parents = [int(p[1]) for p, c in sorted(arcs) if c == child]
        number = on_all = 0
        for bits in product((0, 1), repeat=1 << len(parents)):
            fits = all(
                any(
                    bits[sum(bit << i for i, bit in enumerate(filled))] == cells[v]
                    for filled in product(*(OPTIONS[cells[p]] for p in parents))
                )
                for cells, was_set in rows
                if was_set != v and cells[v] is not None
            )
            number += fits
            depends = all(any(bits[r] != bits[r ^ 1 << i] for r in range(len(bits))) for i in range(len(parents)))
            on_all += int(fits and depends)
        assert stated["columns"][child]["functions"] == number
        assert stated["columns"][child]["functions_of_all_parents"] == on_all
        assert stated["columns"][child]["refuted"] == (number == 0)
        scms, faithful = scms * number, faithful * on_all
    assert [stated["scms"], stated["scms_of_all_arcs"]] == [scms, faithful]
    assert stated["refuted"] == (scms == 0) == (not judged.fits)


def test_least_formulas_are_those_of_the_target_alone() -> None:
    """The vectors of fronts list the least formula without errors; the graph gives the target all other columns."""
    compared = 0
    for vector in table_vectors("front")():
        options, points = vector["options"], vector["expected"]["front"]
        names = vector["csv"].splitlines()[0].split(",")
        parents = [name for name in names if name not in (options["target"], options.get("do"))]
        if points[-1]["errors"] or len(parents) > options.get("max_parents", 4) or "," in "".join(names):
            continue
        reading = {key: options[key] for key in ("do",) if key in options}
        cells = zip(*(line.split(",") for line in vector["csv"].splitlines()[1:]), strict=True)
        data = dict(zip(names, map(list, cells), strict=True))
        judged = judge(
            data,
            [(parent, options["target"]) for parent in parents],
            operators=options.get("operators", "all"),
            **reading,
        )
        column = judged.to_dict()["columns"][options["target"]]
        size = column["size"]
        assert (list(size) if isinstance(size, tuple) else size) == points[-1]["size"]
        assert len(column["formulas"]) == min(points[-1]["formulas"], 20)
        compared += 1
    assert compared > 5


def test_contradicting_rows_are_named_and_judged_on_request(tmp_path: Path) -> None:
    table = tmp_path / "own.csv"
    table.write_text(OWN, "utf-8")
    done = called("fit", table, "--graph", "fire -> alarm, alarm -> leave")
    assert done.returncode == 0
    assert "your graph is refuted: 1 column of 2 (alarm)" in done.stdout
    assert (
        "rows 2 and 6 (lines of the file) have fire = no, and\n  alarm = no and yes; at least 1 row wrong"
        in done.stdout
    )
    assert "leave = alarm  (size 1, proven least over the graph's parents)" in done.stdout
    assert called("fit", table, "--graph", "fire -> alarm", "--fail-on", "refuted").returncode == 1
    assert called("fit", table, "--graph", "alarm -> leave", "--fail-on", "refuted").returncode == 0
    graph = tmp_path / "own.dot"
    graph.write_text("digraph { alarm -> leave; smoke -> leave; }", "utf-8")
    stated = json.loads(called("fit", table, "--graph", graph, "--json").stdout)
    assert stated["refuted"] is False
    assert [stated["scms"], stated["scms_of_all_arcs"]] == [1, 0]
    assert stated["roots"] == ["smoke", "alarm", "fire"]


@pytest.mark.parametrize(
    ("name", "text", "unread"),
    [
        ("g.csv", "from,to,sign\nA,B,-\n", "column 'sign' not read"),
        ("g.csv", "A,B,-1\n", "column 3 not read"),
        ("g.csv", '"","from","to"\n"1","A","B"\n', ""),  # as R's write.csv writes the arcs of bnlearn
        ("g.csv", "weight;Source;Target\n0,5;A;B\n", "column 'weight' not read"),
        ("g.csv", "cause\teffect\nA\tB\n", ""),
        ("g.txt", "Graph Nodes:\nA;B\n\nGraph Edges:\n1. A --> B\n\nGraph Attributes:\nBIC: -1.5\n", ""),
        ("g.csv", "A,B\n", ""),
        ("g.dot", "digraph { A [shape=box]; A -> B [arrowhead=tee, color=red] }", "'arrowhead', attribute 'color' not"),
        ("g.dot", "digraph { edge [arrowhead=tee]; A -> B }", "attribute 'arrowhead' not read"),
        ("g.dot", "digraph { A -> B; node [shape=box]; B [label=b] }", ""),
    ],
)
def test_signs_in_a_graph_file_are_stated_as_not_read(name: str, text: str, unread: str, tmp_path: Path) -> None:
    table, graph = tmp_path / "table.csv", tmp_path / name
    table.write_text("A,B\n0,1\n1,0\n", "utf-8")
    graph.write_text(text, "utf-8")
    for mode in ((), ("--score", "bde")):
        done = called("fit", table, "--graph", graph, *mode)
        assert done.returncode == 0
        assert ("not read" in done.stdout) == bool(unread)
        assert unread in done.stdout
    assert "not refuted: 1 SCM has it" in called("fit", table, "--graph", graph).stdout


def test_a_fault_of_a_graph_file_names_its_line_after_empty_ones(tmp_path: Path) -> None:
    graph = tmp_path / "g.csv"
    graph.write_text("from,to\n\nA,B\n\nB\n", "utf-8")
    with pytest.raises(calibrant.CalibrantError, match="line 5: 'B' is not of the form from,to"):
        calibrant.fit({"A": [0, 1], "B": [1, 0]}, graph=str(graph))


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        (
            "g.csv",
            ",A,B\nA,0,1\nB,0,0\n",
            "line 1: the first column has no name; a CSV of arcs has a head with from and to",
        ),
        ("g.txt", "Graph Nodes:\nA;B\n\nGraph Edges:\n1. A --- B\n", "'A --- B' is no arc -->"),
    ],
)
def test_matrices_and_edges_without_a_direction_are_named(name: str, text: str, problem: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text, "utf-8")
    with pytest.raises(calibrant.CalibrantError, match=problem):
        calibrant.fit({"A": [0, 1], "B": [1, 0]}, graph=str(tmp_path / name))


def test_a_graph_has_its_place_among_all_networks(tmp_path: Path) -> None:
    table = tmp_path / "table.csv"
    table.write_text("a,b,y\n" + "0,0,0\n0,1,1\n1,0,1\n1,1,1\n" * 2, "utf-8")
    done = called("fit", table, "--score", "bde", "--graph", "a -> y, y -> b")
    assert "Your graph is 2nd of 25 (score -" in done.stdout
    done = called("fit", table, "--score", "bde", "--graph", "a -> y")
    assert "Your graph is 11th of 25 (score -" in done.stdout


def test_rows_refute_only_where_the_column_was_not_set() -> None:
    table = {"A": [0, 0, 1], "B": [0, 1, 1], "do": ["", "B", ""]}
    assert judge(table, "A -> B", do="do").fits
    assert not judge({name: cells for name, cells in table.items() if name != "do"}, "A -> B").fits


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"target": "B"}, "target and graph exclude each other"),
        ({"errors": "front"}, "errors and graph exclude each other"),
        ({"graph": "A -> C"}, "graph has 'C', which is no column"),
        ({"graph": "A -> B, B -> A"}, "close a cycle"),
    ],
)
def test_what_a_graph_excludes_is_one_line(options: dict[str, Any], reason: str) -> None:
    with pytest.raises(calibrant.CalibrantError, match=reason) as refusal:
        calibrant.fit({"A": [0, 1], "B": [0, 1]}, **{"graph": "A -> B"} | options)
    assert "\n" not in str(refusal.value)


def test_a_graph_has_no_pool(tmp_path: Path) -> None:
    with pytest.raises(calibrant.CalibrantError, match="--out: a graph of your own makes no item"):
        list(judge({"A": [0, 1], "B": [0, 1]}, "A -> B").write("t.csv", out=tmp_path / "t.jsonl"))


def test_names_of_columns_may_be_numbers_and_other_arguments_are_named() -> None:
    pandas = pytest.importorskip("pandas")
    fitted = calibrant.fit(pandas.DataFrame([[0, 1], [1, 0]]), target=1)  # type: ignore[arg-type]
    assert isinstance(fitted, calibrant.Fit)
    assert (fitted.target, fitted.outcome.value.size) == ("1", 2)
    table: Any = {"a": [0, 1], "b": [0, 1]}
    with pytest.raises(calibrant.CalibrantError, match=r"^unknown option 'drops'; did you mean drop\? known: do, "):
        calibrant.fit(table, target="b", drops="a")  # type: ignore[call-overload,call-arg,unused-ignore]
    table["a"] = 1
    with pytest.raises(calibrant.CalibrantError, match=r"^the data, column 'a': 1 is no list of cells$"):
        calibrant.fit(table, target="b")
