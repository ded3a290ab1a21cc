"""The paper's figures as facts, and ours counted beside them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from calibrant.bench.causim.paper import paper
from calibrant.bench.causim.tables import paper_tables, questions_asked
from calibrant.bench.cli import main
from calibrant.bench.lab.causim.__main__ import main as print_tables
from calibrant.bench.report.layout import NOTHING, Source, Table
from calibrant.bench.report.named_answers import named_answers
from calibrant.bench.report.scored_answers import context_of
from calibrant.bench.runs.records import Record, folder_records
from calibrant.dsl.causim.prompt import View
from tests.support.shared import shared_file


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("tables")
    strata = ["--strata", "chain,inverted_star,star", "--per-stratum", "16"]
    assert main(["generate", "--benchmark", "causim", "--seed", "2", *strata, "--out", str(made / "pool.jsonl")]) == 0
    line = ["run", "exact,run_once", str(made / "pool.jsonl"), "--out", str(made / "out"), "--workers", "1"]
    assert main(line) == 0
    return made / "out"


def _by_number(records: list[Record], view: View = "code") -> dict[str, Table]:
    answers = [(context_of(record), record.score) for record in records]
    views = {(context.pool_digest, context.instance): view for context, _ in answers}
    return {table.id: table for table in paper_tables(questions_asked(named_answers(answers), views))}


def test_our_copy_of_the_figures_is_the_shared_one() -> None:
    shared: dict[str, Any] = json.loads(shared_file("causim_paper_rows.json", part="family").read_text())
    assert paper().source == shared["source"]
    assert paper().tables.keys() == shared["tables"].keys()
    for number, table in paper().tables.items():
        theirs = shared["tables"][number]
        assert (table.where, table.labels, table.columns) == (theirs["where"], theirs["labels"], theirs["columns"])
        assert table.rows == theirs["rows"]
        assert ("counterfactual" in table.questions) == ("counterfactual queries" in theirs["title"])
        assert ("intervention" in table.questions) == ("intervention queries" in theirs["title"])


def test_printed_tables_are_by_number_of_nodes() -> None:
    tables = _by_number([])
    assert list(tables) == ["3", "4", "5", "6", "11", "12", "13", "17", "18", "19", "20", "21", "22", "25", "33"]
    for number, table in tables.items():
        if number != "25":
            first, last = (4, 9) if number == "33" else (1, 10)
            assert [heading.text for heading in table.headings] == [str(n) for n in range(first, last + 1)]
        assert {len(row.cells) for row in table.rows} == {len(table.headings)}
        assert {row.source for row in table.rows} == {Source.PAPER}
    assert tables["3"].rows[0].cells[0].text == "0.878"
    asia = {row.labels: [cell.text for cell in row.cells] for row in tables["25"].rows if row.labels[0] == "ASIA"}
    assert asia == {("ASIA", "Base"): ["0.040", "0.060", "0.020"], ("ASIA", "Trained"): ["0.155", "0.190", "0.120"]}


def test_ours_are_counted_over_questions_with_one_answer_by_type_nodes_and_topology(folder: Path) -> None:
    records = list(folder_records(folder))
    tables = _by_number(records)
    for number, kinds, topologies in (
        ("3", {"counterfactual"}, {"chain", "inverted_star"}),
        ("4", {"intervention"}, {"chain", "inverted_star"}),
    ):
        ours = {row.labels[0]: row.cells for row in tables[number].rows if row.source is Source.OURS}
        assert set(ours) == {"exact", "run_once"}
        for nodes in (1, 2, 4, 6, 8):
            asked = [
                record.score["correct"]
                for record in records
                if record.protocol == "run_once"
                and record.setting in {f"{kind}-deterministic" for kind in kinds}
                and record.stratum in {f"{topology}-{nodes:02}" for topology in topologies}
            ]
            cell, exact = ours["run_once"][nodes - 1], ours["exact"][nodes - 1]
            if asked:
                assert (cell.text, exact.text) == (f"{sum(asked) / len(asked):.3f}", "1.000")
                assert float(cell.low) <= float(cell.text) <= float(cell.high)
            else:
                assert cell == exact == NOTHING


def test_no_row_of_ours_stands_under_a_table_of_other_questions(folder: Path) -> None:
    """Of prose nothing fits: which words it uses is not recorded; of code, the tables on prose do not."""
    records = list(folder_records(folder))
    assert not any(table.fits for table in _by_number(records, "prose").values())
    for number, table in _by_number(records).items():
        assert table.fits == (number in ("3", "4", "5", "6")), number
        assert table.fits == any(row.source is Source.OURS for row in table.rows)


def test_the_command_prints_them_and_refuses_a_folder_without_records(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert print_tables([str(folder), "--pool", str(folder.parent / "pool.jsonl")]) == 0
    printed = capsys.readouterr().out
    assert printed.count(" run_once ") == 4  # Tables 3 to 6
    assert print_tables([str(folder)]) == 0
    assert " run_once " not in capsys.readouterr().out  # what the prompts show is not known
    assert print_tables([str(tmp_path)]) == 2
    assert capsys.readouterr().err.count("\n") == 1
