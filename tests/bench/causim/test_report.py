"""Reports on CauSim: views by topology, error profiles, and the paper's tables from made-up answers."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Sequence
from decimal import ROUND_HALF_DOWN, ROUND_HALF_EVEN, ROUND_HALF_UP, Decimal
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from calibrant.bench.causim.benchmark import BENCHMARK
from calibrant.bench.causim.paper import (
    ANSWERS_OF_CELL,
    MEDICAL,
    NONSENSE,
    OTHER,
    Asked,
    Level,
    ShownProgram,
    check_references,
    paper,
    paper_tables,
    questions_asked,
    shown_programs,
    vocabulary_of,
)
from calibrant.bench.causim.report import (
    NOTHING,
    RIGHT,
    TABLE_IDS,
    UNTOLD,
    by_level,
    by_topology,
    causim_figures,
    causim_section,
    class_shares,
)
from calibrant.bench.cli import main
from calibrant.bench.core.attribution import KEY
from calibrant.bench.core.scoring import AnswerContext
from calibrant.bench.lab.causim import main as print_tables
from calibrant.bench.report.comparisons import PAIRED, add_pairs
from calibrant.bench.report.layout import NOTHING as EMPTY_CELL
from calibrant.bench.report.layout import Source, Table
from calibrant.bench.report.pool_attribution import AttributionCoverage
from calibrant.bench.report.rows import Answer, Grouping, named_answers
from calibrant.bench.report.sections import ReportContents, Section
from calibrant.bench.report.sources import context_of
from calibrant.bench.runs.records import Record, folder_records
from calibrant.dsl.causim import networks
from calibrant.dsl.causim.bundle import module_text
from calibrant.dsl.causim.generation import grow
from calibrant.dsl.causim.prompt import View
from calibrant.dsl.causim.records import read_pool
from calibrant.dsl.errors import CalibrantError
from tests.support.commands import jsonl
from tests.support.shared import shared_json

# --- A report on CauSim: views by topology, the error profile by level, the paper's tables beside ours, samples -------
OK = {"ok": 4}
NOT = {"correct": False, "answered": True, "why": "wrong_answer", "trivial": False, "copyable": False, "vacuous": False}
YES = {**NOT, "correct": True, "why": None, "meaning": "right", "nodes": OK, "first": None, "wrong": {}}
DO = {**NOT, "meaning": "a", "nodes": {"ok": 3, "do ignored": 1}, "first": "do ignored", "wrong": {"A": "do ignored"}}
NOISE = {**NOT, "meaning": "b", "nodes": {"ok": 2, "wrong noise": 2}, "first": "wrong noise", "wrong": {}}
SETTINGS = ("counterfactual-deterministic", "counterfactual-stochastic")
NONE = {**NOT, "answered": False, "why": "no_object", "meaning": None, "nodes": None, "first": None, "wrong": None}


def answer(item: int, score: dict[str, Any], **changes: Any) -> Answer:
    setting = changes.pop("setting", "counterfactual-deterministic")
    stratum = changes.pop("stratum", "chain-04")
    origin = AnswerContext("m", "p", "d", 9, f"{stratum}-{setting}-{item}", setting, stratum, benchmark="causim")
    return origin._replace(**changes), score


def tables(*answers: Answer, **wanted: Any) -> dict[str, Table]:
    """Tables of these answers, to questions whose prompts show code."""
    shown = {(context.pool_digest, context.instance): ShownProgram("code", NONSENSE) for context, _ in answers}
    return {table.id: table for table in causim_section("CauSim", answers, ReportContents(**wanted), shown).tables}


def figures(table: Table, *labels: str) -> dict[str, tuple[str, str]]:
    (row,) = [row for row in table.rows if set(labels) <= set(row.labels)]
    return {heading.key: (cell.text, cell.interval) for heading, cell in zip(table.headings, row.cells, strict=True)}


def test_a_question_weighs_the_same_however_often_it_was_answered() -> None:
    """Three questions three times right, three once wrong: Wilson's ends 1/2 ± z sqrt(1/24 + z²/144) / (1 + z²/6)."""
    right = [answer(item, YES, sample=k) for item in range(3) for k in range(3)]
    found = tables(*right, *(answer(item, DO) for item in (3, 4, 5)))
    shown = figures(found["causim"], "counterfactual-deterministic", "chain", "m")
    assert shown["accuracy"] == ("0.500", "[0.188, 0.812]")
    assert next(row.labels for row in found["causim"].rows)[-1] == "6"
    profile = figures(found["causim-profile"], "counterfactual", "4")
    assert (profile["nodes_ok"][0], profile["nodes_do_ignored"][0]) == ("0.875", "0.125")
    ours = [row for row in found["3"].rows if row.source is Source.OURS]
    assert [row.cells[3].text for row in ours] == ["0.500"]


def test_the_note_on_intervals_says_what_was_computed() -> None:
    """Programs that several questions are about are the units, of Student's t; of one question each, Wilson's alone."""
    notes = []
    for version in ("", "-v{}-x"):
        answers = [answer(k, YES if k % 3 else DO) for k in range(9)]
        answers = [
            (context._replace(instance=f"p{k // 3 if version else k}{version.format(k)}"), score)
            for k, (context, score) in enumerate(answers)
        ]
        section = causim_section("CauSim", answers, ReportContents(), {})
        (table,) = (table for table in section.tables if table.id == "causim")
        notes.append((section.about, next(cell.interval for cell in table.rows[0].cells if cell.interval)))
    (plain, wilson), (clustered, student) = notes
    assert wilson == "[0.354, 0.879]"  # 6 of 9, by its formula: (s + z²/2n ± z sqrt(s(1 - s)/n + z²/4n²)) / (1 + z²/n)
    assert student != wilson
    assert "where questions share a program, clustered by it: Student's t" in clustered
    assert "program" not in plain


def test_shares_of_attribution_are_over_the_questions_that_accuracy_is_over() -> None:
    """Two refusals, and four answers to questions whose evidence is not counted: NoAnswer is 2 of 6."""
    found = tables(*(answer(k, {**(NONE if k < 2 else YES), KEY: None}) for k in range(6)))
    (row,) = found["causim-attribution"].rows
    assert row.labels[-1] == "6"
    shares = figures(found["causim-attribution"], "m")
    assert [shares[key][0] for key in ("earned", "uncounted", "no_answer")] == ["0.000", "0.667", "0.333"]
    assert next(line.labels[-1] for line in found["causim"].rows) == "6"


def test_answers_without_attribution_are_said_to_be_left_out_by_rule() -> None:
    coverage = AttributionCoverage()
    coverage.count(*answer(0, {**YES, KEY: None}))
    (line,) = coverage.lines()
    assert "is not counted; attribution covers questions that state that they have one answer (first: " in line


@pytest.mark.parametrize(("by", "pools"), [("pool", ["one", "two"]), ("setting", ["2 pools"])])
def test_two_systems_are_compared_over_all_settings_and_in_each(by: str, pools: list[str]) -> None:
    """Of eight programs in each pool `a` is right on all and `b` on none but, in the second setting, on one."""
    answers = []
    for system, is_right in (
        ("a", lambda k, setting: True),
        ("b", lambda k, setting: k == 0 and setting == SETTINGS[1]),
    ):
        for pool, setting, k in product(("one", "two"), SETTINGS, range(8)):
            score = {**YES, "accuracy": 1.0} if is_right(k, setting) else {**DO, "accuracy": 0.0}
            origin = AnswerContext(
                system, pool, pool, 16, f"p{k}-v0-{setting}", setting, "chain-04", benchmark="causim"
            )
            answers.append((origin, score))
    contents = ReportContents(tables=frozenset({PAIRED}), by=Grouping(by))
    (table,) = add_pairs(Section.of("CauSim", "", answers, (), ()), BENCHMARK, answers, contents).tables
    rows = {row.labels[:1] + row.labels[3:]: row for row in table.rows}
    assert [row.labels[:3] for row in table.rows] == [(s, "a", "b") for s in ("all", *SETTINGS) for _ in pools]
    for pool in pools:
        number = 16 // len(pools)
        assert rows["all", pool, str(2 * number)].cells[0].text == "+0.938"
        assert rows[SETTINGS[0], pool, str(number)].cells[0].text == "+1.000"
        assert rows[SETTINGS[1], pool, str(number)].cells[0].text == "+0.875"
        assert rows["all", pool, str(2 * number)].cells[1].text == "better"
    assert add_pairs(Section.of("CauSim", "", answers, (), ()), BENCHMARK, answers, ReportContents()).tables == ()


def test_the_profile_pools_topologies_and_scenarios_of_a_level() -> None:
    other = {"setting": "counterfactual-stochastic", "stratum": "star-04"}
    kinds = [*(answer(k, YES) for k in range(3)), *(answer(k, DO, **other) for k in range(3)), answer(3, NONE)]
    found = tables(*kinds, *(answer(k, NOISE, stratum="star-10") for k in range(6)))
    rows = {row.labels[:2]: row for row in found["causim-profile"].rows}
    assert set(rows) == {("counterfactual", "4"), ("counterfactual", "10")}
    assert figures(found["causim-profile"], "10")["nodes_wrong_noise"][0] == "0.500"
    assert figures(found["causim-profile"], "4")["nodes_ok"][0] == "0.875"  # the answer without an object has no nodes
    assert {row.labels[1] for row in found["causim"].rows} == {"chain", "star", ""}
    assert figures(found["causim"], "all")["accuracy"][0] == "0.231"  # 3 of 13 questions, in one row over all


def test_fates_are_shares_of_questions_by_system_and_nodes() -> None:
    abduction = {**NONE, "answered": True}
    answers = [answer(0, YES), answer(1, DO), answer(1, YES, sample=1), answer(2, NONE), answer(3, abduction)]
    found = class_shares(named_answers([*answers, answer(4, NOISE, stratum="chain-02")]))
    assert list(found["m"]) == [2, 4]
    assert found["m"][2]["wrong noise"] == 1
    named = {name: share for name, share in found["m"][4].items() if share}
    assert named == {RIGHT: 0.375, "do ignored": 0.125, NOTHING: 0.25, UNTOLD: 0.25}


def test_fates_of_people_are_means_over_participants() -> None:
    """One took two questions and got one right, the other one, wrongly: a fourth, not a third."""
    answers = [
        answer(k, score, system=f"human:{name}") for name, k, score in (("a", 0, YES), ("a", 1, DO), ("b", 0, DO))
    ]
    found = class_shares(named_answers([*answers, *(answer(k, YES, system=f"m{k}") for k in (10, 2))]))
    assert list(found) == ["m2", "m10", "people (2)"]
    assert {name: share for name, share in found["people (2)"][4].items() if share} == {RIGHT: 0.25, "do ignored": 0.75}


def test_tables_of_one_topology_and_of_built_in_models_have_their_own_rows_only() -> None:
    found = tables(
        *(answer(0, YES, stratum="inverted_star-04"), answer(1, DO, stratum="chain-04")),
        *(answer(2, YES, stratum="asia-08"), answer(3, DO, stratum="asia-08", setting="intervention-deterministic")),
        *(answer(4, YES, stratum="nihss-05"), answer(5, YES, setting="counterfactual-stochastic")),
    )
    assert figures(found["3"], "m")["nodes_4"][0] == "0.500"
    assert not found["18"].fits  # about nonsense prose
    assert figures(found["33"], "m")["nodes_5"][0] == "1.000"
    asia = figures(found["25"], "ASIA", "m")
    assert [asia[key][0] for key in ("overall", "counterfactual", "intervention")] == ["0.500", "1.000", "0.000"]
    assert not found["4"].fits  # no intervention about one of the paper's topologies
    assert figures(found["25"], "ASIA", "Trained")["overall"][0] == "0.155"
    alone = tables(answer(1, DO), with_paper=False)["3"]
    assert {row.source for row in alone.rows} == {Source.OURS}


def test_kinds_are_told_where_the_question_is_said_to_have_one_answer() -> None:
    earned = {**YES, KEY: {"kind": "earned", "decided": True, "fits": True}}
    found = tables(answer(0, earned), answer(1, {**YES, KEY: None}, setting="counterfactual-stochastic"))
    assert figures(found["causim-attribution"], "counterfactual-deterministic")["earned"][0] == "1.000"
    assert "causim-attribution" not in tables(answer(0, YES))


def test_levels_and_topologies_replace_strata() -> None:
    answers = [answer(0, YES, stratum="inverted_star-10"), answer(1, YES, stratum="of my own")]
    assert {context.stratum for context, _ in by_topology(answers)} == {"inverted_star", "of my own"}
    assert {(context.setting, context.stratum) for context, _ in by_level(answers)} == {
        ("counterfactual", "10"),
        ("counterfactual", "0"),
    }


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of two samples a question: the last right answer with another program's name around it, and nothing."""
    made = tmp_path_factory.mktemp("report")
    strata = ["--strata", "chain,cancer", "--per-stratum", "8"]
    assert main(["generate", "--benchmark", "causim", "--seed", "3", *strata, "--out", str(made / "pool.jsonl")]) == 0
    lines = [
        {"id": item.id, "model": "<b>", "response": text}
        for item in BENCHMARK.items.read_pool(made / "pool.jsonl").items
        for text in (json.dumps(dict.fromkeys(item.task.question.required_keys(item.task.model), 0)), "nothing")
    ]
    predictions = jsonl(made / "in.jsonl", *lines)
    assert main(["score", str(made / "pool.jsonl"), str(predictions), "--out", str(made / "out.jsonl")]) == 0
    return made / "out.jsonl"


def test_the_command_writes_every_format(verdicts: Path, tmp_path: Path) -> None:
    for name in ("r.html", "r.md", "r.csv", "r.tex", "r.txt"):
        assert main(["report", str(verdicts), "--out", str(tmp_path / name), "--plots", str(tmp_path / "plots")]) == 0
    rows = list(csv.DictReader(io.StringIO((tmp_path / "r.csv").read_text(encoding="utf-8"))))
    made = list(dict.fromkeys(row["table"] for row in rows))
    assert made == ["reading", *(name for name in TABLE_IDS if name in made)]
    assert {"reading", "causim", "causim-profile", "causim-flags", "causim-attribution", "causim-samples"} == set(made)
    pool = str(verdicts.parent / "pool.jsonl")
    assert main(["report", str(verdicts), "--out", str(tmp_path / "p.csv"), "--pool", pool, "--attribution"]) == 0
    fitting = {line.split(",")[0] for line in (tmp_path / "p.csv").read_text(encoding="utf-8").splitlines()}
    assert {"3", "25"} <= fitting  # what prompts show is read off the pool
    answered = {row["value"] for row in rows if row["table"] == "causim" and row["column"] == "answered"}
    assert answered == {"0.500"}
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "<b>" not in re.sub(r"<b>[\w ,.]+[.:]?</b>", "", page)
    assert "&lt;b&gt;" in page
    saved = {path.name for path in (tmp_path / "plots").iterdir()}
    assert {"causim-profile.svg", "causim-kinds.svg"} <= saved


def test_a_system_to_compare_with_needs_the_pool(verdicts: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["report", str(verdicts), "--against", "<b>"]
    assert main(words) == 2
    assert "add the pool pool: --pool POOL" in capsys.readouterr().err
    assert main([*words, "--pool", str(verdicts.parent / "pool.jsonl")]) == 0
    assert main([*words[:3], "<c>"]) == 2
    assert "no system '<c>' to compare with; there are " in capsys.readouterr().err


def test_one_table_can_be_asked_for(verdicts: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(verdicts), "--table", "causim-profile"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("Error profile by type and number of nodes")
    assert "Table 3" not in printed


# --- The paper's figures as facts, and ours counted beside them -------------------------------------------------------
VIEWS: tuple[View, ...] = ("code", "prose")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("tables")
    strata = ["--strata", "chain,inverted_star,star", "--per-stratum", "16"]
    assert main(["generate", "--benchmark", "causim", "--seed", "2", *strata, "--out", str(made / "pool.jsonl")]) == 0
    line = ["run", "exact,run_once", str(made / "pool.jsonl"), "--out", str(made / "out"), "--workers", "1"]
    assert main(line) == 0
    return made / "out"


def _by_number(records: list[Record], view: View = "code", against: Sequence[str] = ()) -> dict[str, Table]:
    answers = [(context_of(record), record.score) for record in records]
    programs = {(context.pool_digest, context.instance): ShownProgram(view, NONSENSE) for context, _ in answers}
    return {table.id: table for table in paper_tables(questions_asked(named_answers(answers), programs), against)}


def test_our_copy_of_the_figures_is_the_shared_one() -> None:
    shared: dict[str, Any] = shared_json("causim_paper_rows.json", part="family")
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
    assert list(tables) == ["3", "4", "5", "6", "11", "12", "13", "17", "18", "19", "20", "21", "22", "25", "33", "34"]
    for number, table in tables.items():
        if number != "25":
            first, last = {"33": (4, 9), "34": (1, 9)}.get(number, (1, 10))
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
                if len(asked) > 1:  # of questions about one program nothing is known of others
                    assert not cell.low or float(cell.low) <= float(cell.text) <= float(cell.high)
                else:
                    assert cell.interval == ""
            else:
                assert cell == exact == EMPTY_CELL


def test_no_row_of_ours_stands_under_a_table_of_other_questions(folder: Path) -> None:
    """Of code, the tables on prose do not fit."""
    records = list(folder_records(folder))
    for number, table in _by_number(records).items():
        assert table.fits == (number in ("3", "4", "5", "6")), number
        assert table.fits == any(row.source is Source.OURS for row in table.rows)


def test_an_answer_stands_beside_a_table_iff_view_vocabulary_topology_and_type_agree() -> None:
    """Printed: 3 to 6 code; 11 to 13 medical prose; 17 to 22 nonsense prose; 25 networks; 33 and 34 NIHSS."""
    kinds = {"counterfactual": {"3", "5", "11", "12", "17", "18", "20", "21"}}
    kinds["intervention"] = {"4", "6", "11", "13", "17", "19", "20", "22"}
    kinds["deduction"] = kinds["abduction"] = set()
    looks = {
        ("code", "nonsense"): {"3", "4", "5", "6"},
        ("prose", "medical"): {"11", "12", "13"},
        ("prose", "nonsense"): {"17", "18", "19", "20", "21", "22"},
    }
    for kind, view, vocabulary, topology, scenario in product(
        kinds,
        VIEWS,
        ("nonsense", "medical", "other"),
        ("chain", "inverted_star", "tree", "asia", "nihss", ""),
        ("deterministic", "stochastic"),
    ):
        expected = kinds[kind] & looks.get((view, vocabulary), set())
        if view == "prose" and vocabulary == "nonsense":
            expected -= {"17", "18", "19"} if topology != "inverted_star" else set()
        if topology not in ("chain", "inverted_star"):
            wide = {"asia": {"25"}, "nihss": {"33", "34"}}.get(topology, set()) if view == "code" else set()
            expected = wide if kind in ("counterfactual", "intervention") else set()
        question = Asked("ours", kind, scenario, Level(topology, 5), 1.0, view, vocabulary, 8)
        tables = paper_tables([question])
        beside = {table.id for table in tables if any(row.source is Source.OURS for row in table.rows)}
        assert beside == (expected if scenario == "deterministic" else set()), (kind, view, vocabulary, topology)


def test_table_34_needs_eight_answers_to_a_question() -> None:
    """Pass@8 of 16 answers with 4 right: 1 - C(12, 8) / C(16, 8) = 1 - 495 / 12870."""
    level = Level("nihss", 5)
    (table,) = [
        t
        for t in paper_tables([Asked("a", "intervention", "deterministic", level, 0.25, "code", samples=16)])
        if t.id == "34"
    ]
    assert [row.cells[4].text for row in table.rows if row.source is Source.OURS] == ["0.962"]
    few = paper_tables([Asked("a", "intervention", "deterministic", level, 1.0, "code", samples=7)])
    assert [row.source for table in few if table.id == "34" for row in table.rows] == [Source.PAPER] * 2


def test_scores_state_view_and_vocabulary_where_they_are_not_the_usual_ones(tmp_path: Path) -> None:
    path = tmp_path / "pool.jsonl"
    options = ["-o", "view=prose", "-o", "vocabulary=medical"]
    line = ["generate", "--benchmark", "causim", "--strata", "chain", "--seed", "2", "--per-stratum", "2"]
    assert main([*line, "--out", str(path), *options]) == 0
    assert main(["run", "exact", str(path), "--out", str(tmp_path / "out"), "--workers", "1"]) == 0
    scores = [record.score for record in folder_records(tmp_path / "out")]
    assert [(score["view"], score["vocabulary"]) for score in scores] == [("prose", "medical")] * 2


def test_the_words_of_a_program_tell_its_vocabulary_where_a_record_does_not(tmp_path: Path) -> None:
    path = tmp_path / "pool.jsonl"
    line = [
        "generate",
        "--benchmark",
        "causim",
        "--strata",
        "chain",
        "--seed",
        "2",
        "--per-stratum",
        "2",
        "--out",
        str(path),
    ]
    assert main([*line, "-o", "vocabulary=medical"]) == 0
    header, *lines = path.read_text("utf-8").splitlines()
    records = [json.loads(text) for text in lines]
    for record in records:
        assert record.pop("vocabulary") == MEDICAL
    path.write_text("\n".join([header, *map(json.dumps, records)]) + "\n", "utf-8")
    items = {("", item.id): item for item in read_pool(path).items}
    assert {item.vocabulary for item in items.values()} == {NONSENSE}  # the default of a record that states none
    assert {program.vocabulary for program in shown_programs(items).values()} == {MEDICAL}
    for topology in ("chain", "layered"):
        grown = [module_text(version.bundle) for version in grow(3, "x", topology, 4)]
        assert {vocabulary_of(source) for source in grown} == {NONSENSE}
    assert vocabulary_of(networks.program(5)) == OTHER


def test_increments_are_those_that_the_paper_prints() -> None:
    shared = shared_json("causim_paper_rows_rest.json", part="family")["tables"]
    tables = _by_number([], against=["Base"])
    pairs = {"7": "3", "8": "4", "9": "5", "10": "6", "14": "11", "15": "12", "16": "13"}
    pairs |= {f"{n}i": n for n in ("17", "18", "19", "20", "21", "22", "34")}
    for number, source in pairs.items():
        rows = {row.labels[0]: [float(cell.text) for cell in row.cells] for row in tables[source].rows}
        for system, *texts in shared[number]["rows"]:
            if system == "Base":
                continue
            printed = [float(text.partition("(")[2].rstrip(")") or text) for text in texts]
            within = 0.0101 if number.endswith("i") else 0.0051
            assert all(abs(a - b) < within for a, b in zip(rows[f"{system} - Base"], printed, strict=True)), number


def test_our_increments_are_over_the_questions_that_both_answered(folder: Path) -> None:
    table = _by_number(list(folder_records(folder)), against=["run_once"])["3"]
    rows = {row.labels[0]: row.cells for row in table.rows if row.source is Source.OURS}
    for exact, once, increment in zip(rows["exact"], rows["run_once"], rows["exact - run_once"], strict=True):
        if exact is EMPTY_CELL:
            assert increment is EMPTY_CELL
        else:
            assert float(increment.text) == pytest.approx(float(exact.text) - float(once.text), abs=0.0011)
    assert not any(" - " in row.labels[0] for row in _by_number(list(folder_records(folder)))["3"].rows)
    with pytest.raises(CalibrantError, match=r"no system 'Bass' to compare with; there are .*Base, "):
        check_references([table], ["Bass"], {})
    with pytest.raises(CalibrantError, match=r"'Bass' is compared in .*; add the pool lake: --pool POOL"):
        check_references([table], ["Bass"], {"Bass": "lake"})


def test_intervals_stand_beside_printed_figures_whose_digits_tell_the_number_of_answers() -> None:
    tables = _by_number([])
    assert {number for number, table in tables.items() if table.rows[0].cells[0].low} == ANSWERS_OF_CELL.keys()
    for number, answers in ANSWERS_OF_CELL.items():
        figures = [float(cell.text) for row in tables[number].rows for cell in row.cells]
        share = 2 * answers if number == "25" else answers  # overall is over both types
        assert all(abs(figure * share - round(figure * share)) < share * 0.00051 for figure in figures)
    printed = [cell.text for number in "3456" for row in tables[number].rows for cell in row.cells]
    assert len(printed) == 160
    for rule, num_other in ((ROUND_HALF_UP, 47), (ROUND_HALF_DOWN, 50), (ROUND_HALF_EVEN, 36)):
        for answers, expected in ((600, 0), (400, num_other)):  # figures that no number of right answers rounds to
            rounded = {str((Decimal(right) / answers).quantize(Decimal("0.001"), rule)) for right in range(answers + 1)}
            assert sum(text not in rounded for text in printed) == expected
    base = tables["3"].rows[0].cells[0]
    assert (base.text, base.low, base.high) == ("0.878", "0.850", "0.902")  # 527 of 600
    cell = tables["12"].rows[0].cells[0]  # 31 of 100
    assert (cell.text, cell.low, cell.high) == ("0.310", "0.228", "0.406")


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


# --- Figures of the CauSim paper, from made-up questions --------------------------------------------------------------
def test_causim_draws_a_panel_for_each_kind_with_rows_of_ours() -> None:
    asked = [Asked("s", "intervention", "deterministic", Level("chain", n), 1.0, "code") for n in (2, 4)]
    plots = {plot.name: plot.svg for plot in causim_figures(paper_tables(asked))}
    assert "Table 4: intervention questions" in plots["causim-nodes-3-4"]
    assert "Table 3:" not in plots["causim-nodes-3-4"]  # counterfactual questions: none of ours
    assert list(causim_figures(paper_tables())) == []
