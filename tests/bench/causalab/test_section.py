"""`calibrant report` on laboratories: views with intervals, the paper's rows, kinds and edges, in every format."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from statistics import mean

import pytest

from calibrant.bench.cli import main
from calibrant.bench.runs.records import Record, folder_records
from tests.bench.report.test_html import Page
from tests.support.browser import needs_chromium, pressed
from tests.support.commands import refused
from tests.support.report_rows import blicket_record, graded, write_records

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
    assert found["8", "", "exact", "imec_4_nodes"] == "\N{EN DASH}"


def test_bad_input_is_refused_in_one_line(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "no answers that belong into table 10" in refused(capsys, "report", run, "--table", "10")
    assert "lab-attribution, " in refused(capsys, "report", run, "--table", "Z.9")
