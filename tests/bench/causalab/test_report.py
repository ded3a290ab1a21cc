"""Reports on CausaLab: views, kinds and edges; the paper's tables from made-up answers and the released suites."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path
from statistics import mean
from typing import Any

import pytest

from calibrant.bench.causalab.paper import TABLE_NUMBERS, paper, paper_tables, without_printed
from calibrant.bench.causalab.report import COLUMNS, difference_table, lab_figures
from calibrant.bench.causalab.scoring import METRICS
from calibrant.bench.cli import main
from calibrant.bench.core.metrics import Metric, Sample
from calibrant.bench.core.scoring import AnswerContext
from calibrant.bench.report.layout import NOTHING, Cell, Heading, Source, Table, TableRow
from calibrant.bench.report.rows import NamedAnswer, Row, RowGroups
from calibrant.bench.runs.records import Record, folder_records
from calibrant.dsl.causalab.generation import PLANS
from calibrant.dsl.errors import CalibrantError
from tests.bench.report.test_html import Page
from tests.support.browser import needs_chromium, pressed
from tests.support.commands import called, refused
from tests.support.report_rows import blicket_record, graded, write_records
from tests.support.shared import shared_file, shared_json

# --- `calibrant report` on laboratories: views with intervals, the paper's rows, kinds and edges, in every format -----
SUITES = ("3nodes", "4nodes", "4nodes_freqparent")
ROWS = ("exact", "total-effects", "prior")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("labs")
    drawn = ["generate", "--benchmark", "causalab", "--seed", "4", "--strata", ",".join(SUITES), "--per-stratum", "3"]
    assert main([*drawn, "--out", str(folder / "pool.jsonl")]) == 0
    line = ["run", ",".join(ROWS), str(folder / "pool.jsonl"), "--out", str(folder / "run"), "--workers", "1"]
    assert main(line) == 0
    return folder / "run"


def made(out: Path, *arguments: object) -> str:
    assert main(["report", *map(str, arguments), "--out", str(out)]) == 0
    return out.read_text(encoding="utf-8")


def _figures(text: str) -> dict[tuple[str, str, str, str], str]:
    rows = csv.DictReader(io.StringIO(text))
    return {(row["table"], row["setting"], row["system"], row["column"]): row["value"] for row in rows}


def _scores(run: Path, suite: str, system: str) -> list[Record]:
    return [record for record in folder_records(run) if (record.setting, record.protocol) == (suite, system)]


def test_tables_are_the_views_and_the_papers(run: Path, tmp_path: Path) -> None:
    tables = [line.split(",")[0] for line in made(tmp_path / "r.csv", run).splitlines()[1:]]
    views = ["lab", "lab-weights", "lab-edges", "lab-attribution", "lab-commitment"]
    assert list(dict.fromkeys(tables)) == [*views, "3", "4", "5", "6", "7", "8", "9", "11"]


def test_figures_are_means_over_the_answers_of_a_suite(run: Path, tmp_path: Path) -> None:
    found = _figures(made(tmp_path / "r.csv", run))
    for suite in SUITES:
        for system in ROWS:
            scores = [record.score for record in _scores(run, suite, system)]
            assert len(scores) == 3
            for key, column in (("all_edge_f1", "edge_f1"), ("accuracy", "accuracy")):
                assert found["lab", suite, system, column] == f"{mean(score[key] for score in scores):.3f}"
            assert found["lab", suite, system, "shd"] == f"{mean(score['shd'] for score in scores):.2f}"
    assert found["lab-edges", "4nodes", "exact", "edge_recall"] == "1.000"


def test_attribution_counts_edges_against_the_evidence(run: Path, tmp_path: Path) -> None:
    found = _figures(made(tmp_path / "r.csv", run))

    def said(system: str, column: str) -> str:
        return found["lab-attribution", "4nodes", system, column]

    assert (said("exact", "earned"), said("exact", "graph_earned")) == ("1.000", "1.000")
    assert (said("prior", "earned"), said("prior", "missed")) == ("0.000", "1.000")  # decided, and nothing dialled
    assert said("exact", "edges_contradicted") == said("exact", "edges_unproven") == "0.00"
    extra = [record.score["all_edge_precision"] < 1 for record in _scores(run, "4nodes", "total-effects")]
    assert any(extra)  # whatever is no edge of the truth is contradicted once all was set
    assert float(said("total-effects", "edges_contradicted")) > 0
    assert float(said("prior", "edges_missed")) > 0  # edges into the frequency are decided before any setting
    assert said("prior", "premature") == "1.000"


def test_without_the_papers_rows_ours_are_the_same(run: Path, tmp_path: Path) -> None:
    beside, alone = made(tmp_path / "r.csv", run, "--paper"), made(tmp_path / "alone.csv", run)
    only_beside = (",paper,", ',"all systems, ')  # rows by properties set are there to be compared with printed ones
    assert [line for line in beside.splitlines() if not any(part in line for part in only_beside)] == alone.splitlines()
    assert len(alone.splitlines()) < len(beside.splitlines())


def test_the_page_is_of_the_answers_alone_and_well_formed_with_both_plots(run: Path, tmp_path: Path) -> None:
    page = made(tmp_path / "r.html", run, "--plots", tmp_path / "plots")
    shuffled = write_records(tmp_path / "shuffled", reversed(list(folder_records(run))))
    assert made(tmp_path / "s.html", shuffled) == page
    pictures = {f"plot-lab-graphs-{suite.replace('_', '-')}" for suite in SUITES}
    assert pictures <= set(Page(page).ids)
    saved = {path.stem for path in (tmp_path / "plots").iterdir()}
    of_paper = {name for name in saved if name.startswith(("lab-frontier", "lab-budget", "lab-nodes"))}
    assert len(saved - of_paper) == 2 + len(SUITES)
    assert {"lab-frontier-5", "lab-nodes"} <= of_paper
    assert page.count("total-effects, 4nodes/4/0") == 1
    assert len(Page(page).ids) == len(set(Page(page).ids))


@needs_chromium
def test_tables_sort_and_graphs_are_drawn_in_a_browser(run: Path, tmp_path: Path) -> None:
    presses = """
      const rows = () => [...document.querySelectorAll("#table-lab tbody tr")].map((row) => row.cells[2].textContent);
      const heads = [...document.querySelectorAll("#table-lab th button")];
      heads.find((head) => head.textContent === "SHD").click();
      said.push([...new Set(rows().slice(0, 2))].join(" "));
      document.getElementById("paper").click();
      const visible = (row) => row.getClientRects().length > 0;
      said.push([...document.querySelectorAll("#table-4 tbody.paper tr")].filter(visible).length);
      const drawings = [...document.querySelectorAll("[id^=plot-lab-graphs] svg")];
      const graphs = drawings.map((svg) => svg.getBoundingClientRect());
      said.push(graphs.filter((box) => box.width > 400 && box.height > 200).length);
      const drawn = document.querySelector("#plot-lab-graphs-4nodes .arrow.good");
      said.push(drawn.getAttribute("marker-end"));
      said.push(document.getElementById(drawn.getAttribute("marker-end").slice(5, -1)) !== null);
      said.push(performance.getEntriesByType("resource").length);
    """
    assert pressed(made(tmp_path / "r.html", run), presses, tmp_path) == [
        "exact",
        "11",  # ten printed rows, and the heading above them
        "3",
        "url(#lab-graphs-4nodes-good)",
        "true",
        "0",
    ]


def test_tables_of_one_number_are_told_apart_in_a_mixed_report(run: Path, tmp_path: Path) -> None:
    other = write_records(tmp_path / "other", [blicket_record(k, graded()) for k in range(4)])
    page = made(tmp_path / "both.html", run, other)
    assert len(set(Page(page).ids)) == len(Page(page).ids)
    assert "Table 7. " in page
    assert page.count("Table 7. ") >= 2  # one of each
    tables = {line.split(",")[0] for line in made(tmp_path / "both.csv", run, other).splitlines()[1:]}
    assert {"7", "7 (CausaLab)", "lab", "standing"} <= tables
    chosen = {line.split(",")[0] for line in made(tmp_path / "7.csv", run, other, "--table", "7").splitlines()[1:]}
    assert chosen == {"7", "7 (CausaLab)"}


def test_records_without_the_later_figures_are_read(run: Path, tmp_path: Path) -> None:
    """Of runs that were recorded before records had them."""
    import msgspec

    old = []
    for record in folder_records(run):
        attribution = record.attribution
        if isinstance(attribution, dict):
            attribution = {key: attribution[key] for key in ("kind", "decided", "fits", "members", "class", "graph")}
            attribution["graph"] = {key: attribution["graph"][key] for key in ("kind", "decided", "fits")}
        score = {key: value for key, value in record.score.items() if key != "imec"}
        old.append(msgspec.structs.replace(record, attribution=attribution, score=score))
    found = _figures(made(tmp_path / "r.csv", write_records(tmp_path / "old", old)))
    assert found["lab-attribution", "4nodes", "exact", "earned"] == "1.000"
    assert ("lab-attribution", "4nodes", "exact", "edges_missed") not in found
    assert found["8", "", "exact", "imec_4_nodes"] == ""


def test_bad_input_is_refused_in_one_line(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "no answers that belong into table 10" in refused(capsys, "report", run, "--table", "10")
    assert "lab-attribution, " in refused(capsys, "report", run, "--table", "Z.9")


# --- The paper's figures as facts, and ours beside them under the suite that a row is about ---------------------------
def _answer(suite: str, system: str = "exact", *, item: str = "i", **score: Any) -> NamedAnswer:
    figures = {"activated": 1.0, "accuracy": 1.0, "settings": 3, "all_edge_f1": 0.5, "shd": 2, "imec": 4} | score
    stratum = f"{PLANS[suite].nodes} nodes" if suite in PLANS else ""
    return NamedAnswer(system, AnswerContext(system, "p", "d", 4, item, suite, stratum, benchmark="causalab"), figures)


def _tables(*answers: NamedAnswer) -> dict[str, Table]:
    return {table.id: table for table in paper_tables(answers)}


def _ours(table: Table) -> list[tuple[str, ...]]:
    return [row.labels for row in table.rows if row.source is Source.OURS]


def test_our_copy_of_the_figures_is_the_shared_one() -> None:
    shared = shared_json("causalab_paper_rows.json", part="family")
    assert (paper().source, paper().notes) == (shared["source"], shared["notes"])
    assert set(TABLE_NUMBERS) < paper().tables.keys() == shared["tables"].keys()
    for number, table in paper().tables.items():
        theirs = shared["tables"][number]
        assert (table.where, table.labels, table.columns) == (theirs["where"], theirs["labels"], theirs["columns"])
        assert (table.title, table.rows) == (theirs["title"], theirs["rows"])


def test_every_printed_figure_stands_in_its_table() -> None:
    suites = ("3nodes", "4nodes", "5nodes", "6nodes", "7nodes", "4nodes_quad_hard", "4nodes_golden")
    tables = _tables(*map(_answer, suites))
    assert tuple(tables) == TABLE_NUMBERS
    for number, table in tables.items():
        printed = paper().tables[number]
        rows = [row for row in table.rows if row.source is Source.PAPER]
        assert len(rows) == len(printed.rows)
        for row, line in zip(rows, printed.rows, strict=True):
            figures = [cell.text for cell in row.cells if cell != NOTHING]
            assert row.labels[: len(printed.labels)] == tuple(line[: len(printed.labels)])
            assert figures == [
                x for c, x in zip(printed.columns, line[len(printed.labels) :], strict=True) if c != "rows"
            ]
            assert row.labels[-1] == "paper"
            assert ("rows" in printed.columns) == (row.labels[-2].isdecimal())


def test_what_is_said_of_printed_rows_goes_with_them() -> None:
    tables = _tables(_answer("4nodes_hidden_n1"), _answer("5nodes"), _answer("4nodes"))
    assert "the same 50 records" in tables["4"].notes[1]
    assert "averages over 46 to 49 rows" in tables["7"].notes[1]
    for table in tables.values():
        alone = without_printed(table)
        assert {row.source for row in alone.rows} == ({Source.OURS} if table.fits else set())
        assert not any("rinted" in note or "GPT" in note or "same 50" in note for note in alone.notes)
    assert "XoYi shows X earlier crystals" in without_printed(tables["9"]).notes[0]


def test_an_answer_stands_behind_the_printed_rows_of_tables_about_its_suite_and_nowhere_else() -> None:
    tables = _tables(_answer("4nodes_hidden_vrange_pm5"), _answer("4nodes_hidden_vrange_pm5", "greedy"))
    assert [number for number, table in tables.items() if table.fits] == ["4"]
    assert [number for number, table in tables.items() if _ours(table)] == ["4"]
    rows = [row.labels for row in tables["4"].rows]
    assert rows[-2:] == [
        ("4nodes_hidden_vrange_pm5", "exact", "1", "ours"),
        ("4nodes_hidden_vrange_pm5", "greedy", "1", "ours"),
    ]
    assert all(labels[-1] == "paper" for labels in rows[:-2])
    assert not any(table.fits for table in _tables(_answer("my own suite")).values())


def test_table_7_is_by_number_of_nodes_and_8_by_system() -> None:
    answers = [_answer("7nodes"), _answer("3nodes", imec=2), _answer("3nodes", item="j"), _answer("4nodes", imec=1)]
    tables = _tables(*answers, _answer("4nodes", "abstain", imec=None))
    assert _ours(tables["7"]) == [
        ("abstain", "4", "1", "ours"),
        ("exact", "3", "2", "ours"),
        ("exact", "4", "1", "ours"),
        ("exact", "7", "1", "ours"),
    ]
    rows = {row.labels[0]: [cell.text for cell in row.cells] for row in tables["8"].rows if row.source is Source.OURS}
    assert rows == {"exact": ["3.00", "1.00"], "abstain": [NOTHING.text] * 2}


def test_table_8_has_rows_by_the_number_of_properties_set() -> None:
    def setting(*names: str) -> dict[str, Any]:
        return {"set": [[name, 1.0] for name in names]}

    answers = [
        _answer("4nodes", imec=5, attribution=setting()),
        _answer("4nodes", "abstain", imec=7, attribution=setting()),
        _answer("3nodes", imec=2, attribution=setting("ph", "ph")),
        _answer("4nodes", imec=1),
    ]
    rows = {
        row.labels[0]: [cell.text for cell in row.cells]
        for row in _tables(*answers)["8"].rows
        if row.labels[0].startswith("all systems")
    }
    dash = NOTHING.text
    assert rows == {
        "all systems, 0 properties set": [dash, "6.00"],
        "all systems, 1 property set": ["2.00", dash],
    }


def test_regimes_are_told_by_the_items_own_records_and_allowance() -> None:
    """Printed budgets come in their order, others last; the settings that were made do not matter."""
    tables = _tables(
        _answer("6nodes", "old"),
        _answer("6nodes", records=2, allowance=20),
        _answer("6nodes", records=5, allowance=5, settings=0),
        _answer("6nodes", records=0, allowance=5, settings=5),
        _answer("6nodes", item="j", records=0, allowance=5, settings=4),
        _answer("6nodes", "abstain", records=5, allowance=0, settings=0),
    )
    for number in ("10", "12"):
        assert _ours(tables[number]) == [
            ("pure observation", "5o0i", "abstain", "1", "ours"),
            ("pure intervention", "0o5i", "exact", "2", "ours"),
            ("mixed intervention", "5o5i", "exact", "1", "ours"),
            ("mixed intervention", "2o20i", "exact", "1", "ours"),
            ("mixed intervention", "2o20i", "old", "1", "ours"),
        ]


def test_an_item_with_another_budget_than_its_suite_stands_in_no_table_about_suites() -> None:
    def fitting(**score: Any) -> list[str]:
        return [number for number, table in _tables(_answer("4nodes", **score)).items() if table.fits]

    assert fitting(records=6, allowance=0) == ["9", "11"]
    assert fitting(records=2, allowance=12) == ["3", "4", "5", "6", "7", "8", "9", "11"]
    golden = _tables(_answer("4nodes_golden", records=2, allowance=0))
    assert [number for number, table in golden.items() if table.fits] == ["6"]


def test_activated_is_what_the_paper_calls_accuracy_and_has_a_score_interval() -> None:
    answers = [_answer("4nodes_quad_hard", item=f"i{k}", activated=float(k < 3)) for k in range(4)]
    table = _tables(*answers)["3"]
    (row,) = (row for row in table.rows if row.source is Source.OURS)
    figures = {heading.key: cell for heading, cell in zip(table.headings, row.cells, strict=True)}
    cell = figures["accuracy_percent"]  # three of four; Wilson as in the report on blickets
    assert (cell.text, cell.low, cell.high) == ("75.0", "30.1", "95.4")
    assert figures["within_percent"].text == "100.0"
    assert figures["freq_weight_f1"] == NOTHING  # not in these scores


# --- The table of differences and the paper's figures, from made-up answers -------------------------------------------
def row(system: str, activated: Sequence[float], setting: str = "4nodes") -> Row:
    columns = tuple(Metric(key, key, key, lambda score: 0.0) for key in COLUMNS)
    groups = RowGroups(METRICS, columns)
    for k, value in enumerate(activated):
        context = AnswerContext(system, "p", "d", 9, f"I{k}", setting, "")
        groups.add(context, (value, *[0.5] * (len(columns) - 1)), Sample(True, True, False, False, None))
    (made,) = groups.rows()
    return made


def test_differences_are_paired_and_in_points() -> None:
    table = difference_table([row("a", [1] * 8), row("b", [1] * 6 + [0] * 4)], ["b"])
    assert table is not None
    (line,) = table.rows
    assert line.labels == ("4nodes", "a", "b", "8")
    assert line.cells[0].text == "+25.0"  # two of the eight that both answered
    assert float(line.cells[0].low) < 25 < float(line.cells[0].high)
    assert [cell.text for cell in line.cells[1:]] == ["+0.0"] * (len(COLUMNS) - 1)


def test_suites_are_not_mixed_and_an_unknown_system_is_refused() -> None:
    assert difference_table([row("a", [1] * 8), row("b", [0] * 8, "6nodes")], ["b"]) is None
    assert difference_table([row("a", [1] * 8)], []) is None
    with pytest.raises(CalibrantError, match="no system 'x' to compare with; there are a"):
        difference_table([row("a", [1] * 8)], ["x"])


def printed(number: str) -> Table:
    """Return a printed table as a report has it."""
    table = paper().tables[number]
    keys = [key for key in table.columns if key != "rows"]
    width = len(table.labels)
    rows = []
    for listed in table.rows:
        figures: dict[str, Any] = dict(zip(table.columns, listed[width:], strict=True))
        labels = (*listed[:width], *(() if "system" in table.labels else ("GPT",)))
        rows.append(TableRow(labels, tuple(Cell(figures[key]) for key in keys), Source.PAPER))
    names = (*table.labels, *(() if "system" in table.labels else ("system",)))
    headings = tuple(Heading(key, key) for key in keys)
    return Table(number, table.title, "", tuple(Heading(n, n) for n in names), headings, tuple(rows))


def test_each_table_has_its_figures_with_a_mark_for_every_printed_row() -> None:
    plots = {plot.name: plot.svg for plot in lab_figures([printed(n) for n in ("3", "4", "5", "6", "7", "9", "10")])}
    assert sorted(plots) == [
        *("lab-budget-10", "lab-budget-9", "lab-frontier-10", "lab-frontier-3", "lab-frontier-4", "lab-frontier-5"),
        *("lab-frontier-6", "lab-frontier-9", "lab-nodes"),
    ]
    regimes = len({row[0] for row in paper().tables["9"].rows})
    assert plots["lab-frontier-9"].count('class="mark"') == len(paper().tables["9"].rows) + regimes  # and in the legend
    assert plots["lab-frontier-4"].count("<polyline") == len(paper().tables["4"].rows) - 1  # an arrow to each variant
    assert plots["lab-nodes"].count('class="mark"') == 4 * 20 + 4


# --- Table 1 of the paper out of the released suites ------------------------------------------------------------------
def test_all_printed_figures_of_table_1_come_out_of_the_released_suites() -> None:
    for nodes, graphs, *figures in paper().tables["1"].rows:
        path = shared_file(f"data/{nodes}nodes.jsonl", part="causalab")
        (row,) = json.loads(called("pool", "stats", path, "--json").stdout)
        keys = ("edge_mean", "edge_variance", "fork_mean", "collider_mean")
        assert [row["n"], *(f"{row[key]:.2f}" for key in keys)] == [int(graphs), *figures]
