"""A report on CauSim: views by topology, the error profile by level, the paper's tables beside ours, samples."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest

from calibrant.bench.causim.benchmark import BENCHMARK
from calibrant.bench.causim.paper import NONSENSE, ShownProgram
from calibrant.bench.causim.report import (
    NOTHING,
    RIGHT,
    TABLE_IDS,
    UNTOLD,
    by_level,
    by_topology,
    causim_section,
    fates,
)
from calibrant.bench.cli import main
from calibrant.bench.core.attribution import KEY
from calibrant.bench.core.scoring import AnswerContext
from calibrant.bench.report.layout import Source, Table
from calibrant.bench.report.rows import Answer, named_answers
from calibrant.bench.report.sections import ReportContents
from tests.support.commands import jsonl

OK = {"ok": 4}
NOT = {"correct": False, "answered": True, "why": "wrong_answer", "trivial": False, "copyable": False, "vacuous": False}
YES = {**NOT, "correct": True, "why": None, "meaning": "right", "nodes": OK, "first": None, "wrong": {}}
DO = {**NOT, "meaning": "a", "nodes": {"ok": 3, "do ignored": 1}, "first": "do ignored", "wrong": {"A": "do ignored"}}
NOISE = {**NOT, "meaning": "b", "nodes": {"ok": 2, "wrong noise": 2}, "first": "wrong noise", "wrong": {}}
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


def test_the_profile_pools_topologies_and_scenarios_of_a_level() -> None:
    other = {"setting": "counterfactual-stochastic", "stratum": "star-04"}
    kinds = [*(answer(k, YES) for k in range(3)), *(answer(k, DO, **other) for k in range(3)), answer(3, NONE)]
    found = tables(*kinds, *(answer(k, NOISE, stratum="star-10") for k in range(6)))
    rows = {row.labels[:2]: row for row in found["causim-profile"].rows}
    assert set(rows) == {("counterfactual", "4"), ("counterfactual", "10")}
    assert figures(found["causim-profile"], "10")["nodes_wrong_noise"][0] == "0.500"
    assert figures(found["causim-profile"], "4")["nodes_ok"][0] == "0.875"  # the answer without an object has no nodes
    assert {row.labels[1] for row in found["causim"].rows} == {"chain", "star"}


def test_fates_are_shares_of_questions_by_system_and_nodes() -> None:
    abduction = {**NONE, "answered": True}
    answers = [answer(0, YES), answer(1, DO), answer(1, YES, sample=1), answer(2, NONE), answer(3, abduction)]
    found = fates(named_answers([*answers, answer(4, NOISE, stratum="chain-02")]))
    assert list(found["m"]) == [2, 4]
    assert found["m"][2]["wrong noise"] == 1
    named = {name: share for name, share in found["m"][4].items() if share}
    assert named == {RIGHT: 0.375, "do ignored": 0.125, NOTHING: 0.25, UNTOLD: 0.25}


def test_fates_of_people_are_means_over_participants() -> None:
    """One took two questions and got one right, the other one, wrongly: a fourth, not a third."""
    answers = [
        answer(k, score, system=f"human:{name}") for name, k, score in (("a", 0, YES), ("a", 1, DO), ("b", 0, DO))
    ]
    found = fates(named_answers([*answers, *(answer(k, YES, system=f"m{k}") for k in (10, 2))]))
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
    assert "<b>" not in re.sub(r"<b>[\w ]+[.:]?</b>", "", page)
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
