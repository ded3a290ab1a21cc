"""Reports on blickets: the section with its plot, the paper's tables, and what rates are measured on."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibrant.audits.blickets.attribution import attribute_runs
from calibrant.audits.claims import ClaimStatus
from calibrant.baselines.blickets.context import first_firings
from calibrant.bench.blickets.paper import (
    PlayedEpisode,
    paper,
    paper_tables,
    printed_counts,
    printed_detections,
    setup_tables,
)
from calibrant.bench.blickets.rates import (
    Counts,
    Detections,
    Graded,
    Share,
    count_classes,
    count_detections,
    count_errors,
)
from calibrant.bench.blickets.report import KINDS, class_plot
from calibrant.bench.blickets.scoring import METRICS
from calibrant.bench.cli import main
from calibrant.bench.core.scoring import AnswerContext
from calibrant.bench.lab.blickets import class_sums, paper_findings
from calibrant.bench.lab.speed.blickets import text_log, toggles
from calibrant.bench.report.layout import NOTHING, Source, Table, as_markdown
from calibrant.bench.report.rows import Answer, Grouping, Row, section_rows
from calibrant.bench.report.sections import attribution_plot, kind_shares
from calibrant.bench.runs.records import Record, folder_records
from calibrant.dsl.blickets.episode import BlicketEpisode
from calibrant.dsl.blickets.item import BlicketItem, Condition, Form, Mechanism, Rule, Sealed, Task, all_rules
from calibrant.dsl.blickets.records import read_pool
from calibrant.dsl.blickets.replies import text_runs
from calibrant.dsl.blickets.score import Exposed, grade
from calibrant.dsl.episode import Step
from calibrant.dsl.errors import short_repr
from tests.support.benchmarks.blickets import static_item
from tests.support.commands import CHECKOUT, refused
from tests.support.report_rows import Answers, answer, blicket_record, graded, write_records, write_run
from tests.support.shared import shared_json

# --- `calibrant report` on blickets: by condition with intervals, beside the paper's rows, in every format ------------
FOUR = (
    graded(exposed="RE", steps=4),
    graded(exposed="RE", steps=6),
    graded(correct=False, exposed="exactly-N", steps=8),
    graded(steps=10),
)


def _records(stratum: str = "easy-3", **changes: object) -> list[Record]:
    return [blicket_record(i, score, stratum=stratum, **changes) for i, score in enumerate(FOUR)]


def made(out: Path, *arguments: object) -> str:
    out.unlink(missing_ok=True)
    assert main(["report", *map(str, arguments), "--out", str(out)]) == 0
    return out.read_text(encoding="utf-8")


def _figures(text: str) -> dict[tuple[str, str, str, str], tuple[str, str, str]]:
    rows = csv.DictReader(io.StringIO(text))
    return {
        (row["table"], row["source"], row["system"], row["column"]): (
            row["value"] or row["text"],
            row["low"],
            row["high"],
        )
        for row in rows
    }


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return write_records(tmp_path / "run", _records())


def test_blickets_have_tables_of_their_own_and_none_of_another_benchmark(run: Path, tmp_path: Path) -> None:
    tables = [line.split(",")[0] for line in made(tmp_path / "r.csv", run).splitlines()[1:]]
    assert list(dict.fromkeys(tables)) == ["standing", "evidence", "errors", "attribution", "5a", "5b", "7"]
    for word in ("TrainExact", "Valid", "HeldoutExact", "latent SCM"):
        assert word not in made(tmp_path / "r.html", run)


def test_shares_have_score_intervals_and_means_students(run: Path, tmp_path: Path) -> None:
    """Three of four: (3/4 + z²/8 ± z sqrt(3/64 + z²/64)) / (1 + z²/4) with z² = 3.8415; 4 to 10: 7 ± 3.182 * 1.291."""
    found = _figures(made(tmp_path / "r.csv", run))
    assert found["standing", "ours", "static", "accuracy"] == ("0.750", "0.301", "0.954")
    assert found["standing", "ours", "static", "steps"] == ("7.0", "2.9", "11.1")
    assert found["standing", "ours", "static", "exactly_n_rate"][0] == "0.250"
    assert found["standing", "ours", "static", "eligible_accuracy"] == ("*", "", "")  # over two
    assert found["evidence", "ours", "static", "activations"] == ("1.0", "", "")  # all alike: no interval from that
    assert found["errors", "ours", "static", "mixed"] == ("0.250", "0.046", "0.699")
    kinds = [found["attribution", "ours", "static", kind][0] for kind in ("earned", "missed", "lucky", "short")]
    assert kinds == ["0.750", "0.000", "0.000", "0.250"]


def test_the_papers_rows_stand_beside_ours_under_the_same_condition(run: Path, tmp_path: Path) -> None:
    found = _figures(made(tmp_path / "r.csv", run, "--paper"))
    assert found["5a", "paper", "Base", "accuracy"] == ("87.3", "", "")
    assert found["5a", "ours", "static", "accuracy"] == ("75.0", "30.1", "95.4")
    assert found["5a", "ours", "static", "switched_accuracy"][0] == "66.7"
    alone = made(tmp_path / "alone.csv", run)
    assert ",paper," not in alone
    assert _figures(alone)["5a", "ours", "static", "accuracy"] == ("75.0", "30.1", "95.4")
    elsewhere = write_records(tmp_path / "elsewhere", _records("of my own"))
    assert {key[0] for key in _figures(made(tmp_path / "e.csv", elsewhere))} == {
        "standing",
        "evidence",
        "errors",
        "attribution",
    }


def test_the_items_decide_on_the_condition_where_their_pool_is_given(tmp_path: Path) -> None:
    pool, renamed = tmp_path / "pool.jsonl", tmp_path / "renamed.jsonl"
    drawn = ["generate", "--benchmark", "blickets", "--seed", "1", "--strata", "hard-3", "--per-stratum", "2"]
    assert main([*drawn, "--out", str(pool)]) == 0
    renamed.write_text(pool.read_text().replace('"stratum":"hard-3"', '"stratum":"easy-3"'))
    assert main(["run", "static", str(renamed), "--out", str(tmp_path / "run"), "--workers", "1"]) == 0
    believed = _figures(made(tmp_path / "a.csv", tmp_path / "run"))
    known = _figures(made(tmp_path / "b.csv", tmp_path / "run", "--pools", renamed))
    assert ("5a" in {key[0] for key in believed}, "6" in {key[0] for key in believed}) == (True, False)
    assert ("5a" in {key[0] for key in known}, "6" in {key[0] for key in known}) == (False, True)
    assert "were taken from their strata" in made(tmp_path / "a.md", tmp_path / "run")
    assert "were taken from their strata" not in made(tmp_path / "b.md", tmp_path / "run", "--pools", renamed)


def test_table_nine_counts_what_the_records_say_of_db4(tmp_path: Path) -> None:
    """Two RE and correct, of which one with DB4; at exactly N, wrong, with DB4; before the switch, with DB1 alone."""
    fired: tuple[dict[str, int], ...] = ({"DB4": 12}, {}, {"DB3": 9, "DB4": 14}, {"DB1": 6})
    watched = [
        msgspec.structs.replace(record, protocol="cg+db", provenance={"fired": behaviours})
        for record, behaviours in zip(_records(), fired, strict=True)
    ]
    found = _figures(made(tmp_path / "r.csv", write_records(tmp_path / "watched", watched)))
    ours = {column: value[0] for (table, source, _, column), value in found.items() if (table, source) == ("9", "ours")}
    assert ours == {
        "switched": "3",
        "firings": "2",
        "true": "1",
        "false": "1",
        "missed": "1",
        "sensitivity": "50.0",
        "precision": "50.0",
    }
    old = made(tmp_path / "old.csv", write_records(tmp_path / "old", _records()))
    assert not any(line.startswith("9,") for line in old.splitlines())  # they do not say what fired


def test_a_run_records_which_behaviours_fired(tmp_path: Path) -> None:
    pool, out = tmp_path / "pool.jsonl", tmp_path / "run"
    drawn = ["generate", "--benchmark", "blickets", "--seed", "1", "--strata", "stochastic", "--per-stratum", "3"]
    assert main([*drawn, "--out", str(pool)]) == 0
    for protocol in ("cg+db", "cg"):
        assert main(["run", protocol, str(pool), "--out", str(out), "--workers", "1"]) == 0
    said = {(record.protocol, record.instance): record.provenance for record in folder_records(out)}
    items = {item.id: item for item in read_pool(pool).items}
    for record in folder_records(out):
        steps = [Step(step.action, step.reading, step.refused, step.cost) for step in record.steps or []]
        fired = first_firings(items[record.instance].task, steps)
        assert said[record.protocol, record.instance] == ({"fired": fired} if record.protocol == "cg+db" else {})
    assert any("DB3" in provenance.get("fired", {}) for provenance in said.values())


@pytest.mark.parametrize("suffix", [".md", ".tex", ".txt"])
def test_in_a_mixed_folder_one_benchmark_comes_after_the_other(run: Path, tmp_path: Path, suffix: str) -> None:
    other = write_run(tmp_path / "other", Answers("alpha", [answer(1, 1, 1.0)] * 8))
    alone, blickets = made(tmp_path / f"a{suffix}", other), made(tmp_path / f"b{suffix}", run)
    for order in ([other, run], [run, other]):
        both = made(tmp_path / f"both{suffix}", *order)
        assert both.startswith(alone.rstrip("\n"))
        assert both.endswith(blickets)
        assert len(both) - len(alone) - len(blickets) in (0, 1)


def test_a_mixed_page_has_a_heading_for_each_and_every_id_once(run: Path, tmp_path: Path) -> None:
    other = write_run(tmp_path / "other", Answers("alpha", [answer(1, 1, 1.0)] * 8))
    page = made(tmp_path / "both.html", other, run)
    assert page.index('id="tab-replayscm"') < page.index('id="tab-blickets"')
    assert page.count('role="tabpanel"') == 3
    assert page.index('id="table-1"') < page.index('id="table-standing"')


def test_systems_that_differ_in_options_and_pools_of_one_name_are_told_apart(tmp_path: Path) -> None:
    records = [*_records(config={"order": 1}), *_records(config={"order": 2}), *_records(pool_digest="e" * 64)]
    text = made(tmp_path / "r.md", write_records(tmp_path / "run", records), "--table", "standing")
    assert "static (order=1)" in text
    assert "static (order=2)" in text
    assert "p (dddddddd)" in text
    assert "p (eeeeeeee)" in text


def test_what_is_missing_or_crashed_is_said(tmp_path: Path) -> None:
    first, second, *_ = _records()
    crashed = blicket_record(1, graded(correct=False), outcome="crashed")
    text = made(tmp_path / "r.txt", write_records(tmp_path / "run", [first, crashed]), "--table", "standing")
    assert "static: 2 of 4 items of p; rates are over those." in text.replace("\n", " ")
    assert "1 of 2 answers of static to p are crashes" in text.replace("\n", " ")
    assert "crashes" not in made(tmp_path / "s.txt", write_records(tmp_path / "other", [first, second]))


def test_bad_input_is_refused_in_one_line(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "no answers that belong into table 1" in refused(capsys, "report", run, "--table", "1")
    assert "no answers that belong into table 11" in refused(capsys, "report", run, "--table", "11")
    known = refused(capsys, "report", run, "--table", "Z.9")
    assert known.startswith("unknown table 'Z.9'; known: 1, 2, ")
    ids = ["standing", "evidence", "errors", "attribution", "5a", "5b", "6", "7", "8", "9", "10", "11"]
    assert set(ids) <= set(known.partition("known: ")[2].split(", "))
    broken = blicket_record(0, graded() | {"class": "nonsense"})
    said = refused(capsys, "report", write_records(tmp_path / "broken", [broken]))
    assert said.startswith(f"static on {short_repr('I0')} of p: not a score of blickets: ")
    odd = blicket_record(0, graded(), provenance={"fired": ["DB4"]})
    said = refused(capsys, "report", write_records(tmp_path / "odd", [odd]))
    assert said.startswith(f"static on {short_repr('I0')} of p: not a score of blickets: ")


# --- The plot of earned, missed, lucky and short answers: the shares that it shows, and the file that it is -----------
def _answers(system: str, stratum: str, kinds: str) -> list[Answer]:
    return [
        (
            AnswerContext(system, "p", "d", 4, f"I{i}", "moderator", stratum, benchmark="blickets"),
            graded() | {"attribution": {"kind": kind, "decided": kind in ("earned", "missed"), "fits": True}},
        )
        for i, kind in enumerate(kinds.split())
    ]


def _rows(*answers: list[Answer]) -> list[Row]:
    return section_rows([one for group in answers for one in group], METRICS, Grouping.SETTING)


def test_shares_are_of_the_answers_under_each_condition() -> None:
    rows = _rows(_answers("a", "easy-3", "earned earned lucky short"), _answers("b", "hard-3", "missed earned"))
    found = kind_shares(rows, KINDS)
    assert list(found) == ["moderator, easy-3", "moderator, hard-3"]
    others = dict.fromkeys(("missed", "uncounted", "invalid", "no_answer"), 0)
    assert found["moderator, easy-3"] == {"a": {"earned": 0.5, "lucky": 0.25, "short": 0.25} | others}
    assert found["moderator, hard-3"]["b"]["missed"] == 0.5


def test_answers_without_attribution_give_no_plot() -> None:
    assert attribution_plot(_rows([(run, graded()) for run, _ in _answers("a", "easy-3", "earned")]), KINDS) is None


def test_the_plot_names_systems_conditions_and_kinds_as_text() -> None:
    plot = attribution_plot(_rows(_answers("<b>$x$", "easy-3", "earned lucky")), KINDS)
    assert plot is not None
    for text in ("&lt;b&gt;$x$", "moderator, easy-3", "earned", "missed", "lucky", "short"):
        assert text in plot.svg
    assert "<b>" not in plot.svg


def test_the_plot_is_a_file_and_the_page_has_its_figures(tmp_path: Path) -> None:
    run = write_records(tmp_path / "run", [blicket_record(i, graded(correct=i < 3)) for i in range(4)])
    assert main(["report", str(run), "--out", str(tmp_path / "r.html"), "--plots", str(tmp_path / "plots")]) == 0
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert 'id="plot-attribution"' not in page  # its first screen has the same shares as bars
    assert "static: 3 earned, 1 short of 4" in page
    svg = (tmp_path / "plots" / "attribution.svg").read_text(encoding="utf-8")
    assert "moderator, easy-3" in svg
    assert "static" in svg


# --- The paper's tables rebuilt from its counts, and our episodes counted beside them ---------------------------------
PAIR = Mechanism(Rule(Form.CONJUNCTIVE, 3))
SINGLE = Mechanism(Rule(Form.DISJUNCTIVE, 4))
TRIPLE = Mechanism(Rule(Form.CONJUNCTIVE, 28))


def _shared() -> dict[str, Any]:
    rows: dict[str, Any] = shared_json("blickets_paper_rows.json", part="family")
    return rows


def _tables(*ours: PlayedEpisode) -> dict[str, Table]:
    return {table.id: table for table in paper_tables(ours)}


def _column(table: Table, key: str, source: Source = Source.PAPER) -> list[str]:
    place = [heading.key for heading in table.headings].index(key)
    return [row.cells[place].text for row in table.rows if row.source is source]


def test_our_copy_of_the_figures_is_the_shared_one() -> None:
    shared = _shared()
    rest = shared_json("blickets_paper_rows_rest.json", part="family")
    printed_tables = shared["tables"] | rest["tables"]
    for number, table in paper().tables.items():
        assert (table.labels, table.columns) == (
            printed_tables[number]["labels"],
            printed_tables[number]["columns"],
        )
        assert table.rows == printed_tables[number]["rows"]
    assert set(paper().tables) == set(printed_tables)
    printed = [test for test in shared["tests"] if test["printed"]]
    assert [(t.name, list(t.counts)) for t in paper().tests] == [(t["name"], t["table"]) for t in printed]
    for ours, theirs in zip(paper().tests, printed, strict=True):
        assert f"p = {ours.p}" in theirs["printed"]
    assert [list(stratum) for stratum in paper().stratified.strata] == shared["further"]["cmh"]["strata"]


@pytest.mark.parametrize(
    ("number", "key", "percents"),
    [
        ("5a", "accuracy", "87.3 77.3 89.1"),
        ("5a", "eligible_accuracy", "97.5 98.7 97.9"),
        ("5a", "exactly_n_rate", "10.9 21.8 9.1"),
        ("6", "accuracy", "70.0 68.0 90.0"),
        ("6", "eligible_accuracy", "73.3 93.9 95.3"),
        ("6", "exactly_n_rate", "14.0 28.0 6.0"),
        ("11", "accuracy", "100.0 90.0 84.0"),
        ("11", "eligible_rate", "6.0 8.0 38.0"),
        ("11", "eligible_accuracy", "100.0 100.0 100.0"),
        ("7", "percent", f"87.3 77.3 89.1 73.3 93.9 95.3 76.7 76.7 73.3 20 {NOTHING.text} 30"),
    ],
)
def test_percentages_that_the_paper_prints_follow_from_its_counts(number: str, key: str, percents: str) -> None:
    assert _column(_tables()[number], key) == percents.split()


def test_the_pooled_table_is_the_sum_of_its_runs() -> None:
    pooled = {labels[0]: counts for labels, counts in printed_counts("5a")}
    runs = printed_counts("5b")
    for agent, counts in pooled.items():
        of_agent = [c for labels, c in runs if labels[1] == agent]
        for field in ("episodes", "correct", "eligible", "eligible_correct", "exactly_n"):
            assert sum(getattr(c, field) for c in of_agent) == getattr(counts, field), (agent, field)


def test_tables_six_seven_eight_and_ten_tell_the_same_counts() -> None:
    six = {labels[0]: counts for labels, counts in printed_counts("6")}
    eight = {tuple(labels): counts for labels, counts in printed_counts("8")}
    assert (eight["Base", "75"], eight["CG+DB", "75"]) == (six["Base"], six["CG+DB"])
    for row in paper().tables["10"].rows:
        counts = six[row[0]]
        assert (counts.episodes - counts.correct, counts.exactly_n) == (int(row[1]), int(row[2]))
        assert counts.eligible is not None
        assert counts.eligible_correct is not None
        assert counts.eligible - counts.eligible_correct == int(row[3])
    assert eight["Base", "50"].exactly_n is None


def test_over_all_switched_episodes_the_graph_gains_nothing_certain() -> None:
    six = {labels[0]: counts.switched_accuracy for labels, counts in printed_counts("6")}
    assert six == {"Base": Share(22, 37), "CG": Share(31, 47), "CG+DB": Share(41, 46)}


def test_the_total_of_detections_is_the_sum_of_the_runs() -> None:
    *runs, (labels, total) = printed_detections()
    assert labels[0] == "total"
    for field in ("switched", "firings", "true_positives", "false_positives", "false_negatives"):
        assert sum(getattr(run, field) for _, run in runs) == getattr(total, field)
    assert all(d.firings == d.true_positives + d.false_positives for _, d in printed_detections())
    assert (total.sensitivity, total.precision) == (Share(132, 132), Share(132, 136))


# --- ours -------------------------------------------------------------------------------------------------------------


def _item(rules: tuple[Mechanism, ...], switch: int, budget: int = 75) -> BlicketItem:
    return BlicketItem("made", Condition.MODERATOR, Task(tuple("ABCDE"), budget), Sealed(rules, (switch,)))


def _played(
    item: BlicketItem, moves: str, answer: str = "", agent: str = "ours", *, fired: bool | None = None
) -> PlayedEpisode:
    """Play `+A -B`, which places A and removes B; an answer such as `conjunctive AB` is submitted at the end."""
    episode = BlicketEpisode(item)
    for word in moves.split():
        episode.act({"place" if word[0] == "+" else "remove": word[1:]})
    if answer:
        rule, blickets = answer.split()
        episode.act({"check": {"rule": rule, "blickets": list(blickets)}})
    return PlayedEpisode(agent, item, grade(item, episode.steps), fired)


HARD = _item((PAIR, TRIPLE), 3)
TO_N = "+A +B +C -C"  # three activations
PRE = _played(HARD, "+A +B", "conjunctive AB", fired=False)
AT_N = _played(HARD, TO_N, "conjunctive AB", fired=True)
SEEN_AT_N = _played(HARD, f"{TO_N} -A", "conjunctive CDE", fired=True)  # right by luck
ELIGIBLE = _played(HARD, f"{TO_N} -A +C +D +E", "conjunctive CDE", fired=True)
OVER = _played(HARD, f"{TO_N} +C +D +E", "conjunctive ABCDE", fired=False)
WRONG_TYPE = _played(HARD, f"{TO_N} +C +D +E", "disjunctive AB", fired=False)
OPEN = _played(HARD, TO_N)
ALL = (PRE, AT_N, SEEN_AT_N, ELIGIBLE, OVER, WRONG_TYPE, OPEN)


def _grades(*episodes: PlayedEpisode) -> list[Graded]:
    return [episode.grade for episode in episodes]


def test_episodes_are_counted_by_class_and_those_without_an_answer_are_not_right() -> None:
    assert [e.grade.exposed for e in ALL[:6]] == [Exposed.PRE, *[Exposed.EXACTLY_N] * 2, *[Exposed.RE] * 3]
    assert count_classes(_grades(*ALL)) == Counts(7, 3, 3, 1, 3, 1)
    assert count_classes(_grades(*ALL)).switched_accuracy == Share(2, 6)
    early = _played(HARD, "+A", "conjunctive AC")  # wrong before the switch
    assert count_classes(_grades(*ALL, early)).switched_accuracy == Share(2, 6)
    assert count_classes([]) == Counts(0, 0)


def test_detections_and_errors_are_told_apart() -> None:
    found = count_detections((e.grade, bool(e.fired)) for e in ALL)
    assert found == Detections(6, 3, true_positives=1, false_positives=2, false_negatives=0)
    silent = count_detections([(ELIGIBLE.grade, False), (PRE.grade, False)])
    assert silent == Detections(1, 0, true_positives=0, false_positives=0, false_negatives=1)
    errors = count_errors(_grades(*ALL))
    assert (errors.errors, errors.exactly_n, errors.eligible) == (4, 2, 2)
    assert errors.detail == "1 over-inclusion, 1 type and mixed"
    silent_after_n = _played(HARD, f"{TO_N} +C +D +E")
    assert count_errors(_grades(silent_after_n)).detail == "1 no answer"


def test_our_rows_stand_in_the_tables_of_their_condition_and_no_others() -> None:
    easy_three = _played(_item((PAIR, SINGLE), 3), "+A +B", "conjunctive AB", "easy", fired=False)
    easy_five = _played(_item((PAIR, SINGLE), 5), "+A +B", "conjunctive AB", "easier", fired=False)
    short = _played(_item((PAIR, TRIPLE), 3, budget=50), "+A +B", "conjunctive AB", "short")
    other = _played(_item((PAIR, TRIPLE), 7), "+A +B", "conjunctive AB", "other")
    of_items = [one._replace(item=replace(HARD, id=f"made {index}")) for index, one in enumerate(ALL)]
    tables = _tables(*of_items, easy_three, easy_five, short, other)
    ours = {number: [row.labels for row in table.rows if row.source is Source.OURS] for number, table in tables.items()}
    assert ours == {
        "5a": [("easy",)],
        "5b": [("ours", "easy")],
        "6": [("ours",)],
        "F2": [("ours",)],
        "7": [("hidden moderator, easy, raw accuracy", "easy"), ("hidden moderator, hard, RE accuracy", "ours")],
        "8": [("ours", "75"), ("short", "50")],
        "9": [("easy", "5", "3"), ("easier", "5", "5")],
        "10": [("ours",)],
        "11": [("easier",)],
    }
    (row,) = (row for row in tables["6"].rows if row.source is Source.OURS)
    texts = [cell.text for cell in row.cells]
    assert texts == ["7", "3", "42.9", "3", "42.9", "1", "33.3", "3", "42.9", "85.7", "33.3"]
    assert row.cells[2].interval == "[15.8, 75.0]"
    (of_one_item,) = (row for row in _tables(*ALL)["6"].rows if row.source is Source.OURS)
    assert [cell.text for cell in of_one_item.cells] == texts
    assert of_one_item.cells[2].interval == ""  # seven episodes of one item


@pytest.mark.parametrize(
    ("number", "rules", "switch"),
    [("5a", (PAIR, SINGLE), 3), ("6", (PAIR, TRIPLE), 3), ("8", (PAIR, TRIPLE), 3), ("11", (PAIR, SINGLE), 5)],
)
def test_two_right_of_five_are_forty_percent_however_the_other_three_ended(
    number: str, rules: tuple[Mechanism, ...], switch: int
) -> None:
    item = _item(rules, switch)
    silent = [_played(item, moves) for moves in ("", "+A", "+A +B")]
    tables = _tables(*silent, *[_played(item, "+A +B", "conjunctive AB")] * 2)
    (row,) = (row for row in tables[number].rows if row.source is Source.OURS)
    assert [cell.text for cell in row.cells[:3]] == ["5", "2", "40.0"]


def test_every_row_has_a_cell_for_every_heading() -> None:
    for table in _tables(*ALL).values():
        assert all(len(row.labels) == len(table.labels) for row in table.rows)
        assert all(len(row.cells) == len(table.headings) for row in table.rows)
        assert table.notes[0].startswith("Printed rows: ")


# --- switch rate, Figure 2, setup, and what the printed counts say ----------------------------------------------------


def test_printed_switch_rates_are_those_of_the_counts() -> None:
    numbers = {"08": "6", "03, 04, 06 at N = 3": "5a", "06 at N = 5": "11"}
    counts = {(runs, labels[0]): c for runs, number in numbers.items() for labels, c in printed_counts(number)}
    for runs, agent, switched, number in paper().tables["switch"].rows:
        assert counts[runs, agent].switch_rate == Share(int(switched), int(number))
    assert _column(_tables()["6"], "switch_rate") == ["74.0", "94.0", "92.0"]


def test_figure_2_follows_from_table_6_and_counts_our_episodes_by_class() -> None:
    table = _tables()["F2"]
    printed = paper().tables["F2"].rows
    for row, (agent, pre, exactly_n, right, wrong) in zip(table.rows, printed, strict=True):
        assert (row.labels, [cell.text for cell in row.cells]) == ((agent,), [pre, "0", exactly_n, right, wrong])
    plot = class_plot([table])
    assert plot is not None
    parts = [float(text) for row in printed for text in row[1:] if float(text) > 0]  # no class of 0 has a part
    assert plot.svg.count("<rect") == len(parts) + 5  # and the legend
    assert class_plot([]) is None


def test_one_printed_row_of_21_contradicts_that_answers_before_the_switch_are_right() -> None:
    findings = list(class_sums())
    proved = [finding for finding in findings if finding.verdict is ClaimStatus.PROVED]
    assert len(findings) == 21
    assert ["Table 8, CG+DB, 50 steps" in finding.where for finding in proved] == [True]
    assert "leave 1 before the switch; 18 of 18 right answers are RE, so 0 of these are right" in proved[0].claim


def test_the_p_credited_to_run_06_is_that_of_three_runs() -> None:
    (finding,) = [f for f in paper_findings() if "Table 4, Run 06" in f.where]
    expected = shared_json("blickets_paper_rows_rest.json", part="family")["tests"][0]
    assert finding.verdict is ClaimStatus.PROVED
    assert round(float(finding.data["two_sided"]), 4) == expected["two_sided"]
    assert round(float(finding.data["one_sided"]), 4) == expected["one_sided"]
    assert f"odds of {expected['posterior_odds']:.1f}" in finding.claim


def test_setup_tables_agree_with_the_printed_ones_and_stand_in_the_docs() -> None:
    tables = {table.id: table for table in setup_tables()}
    agents = [[row.labels[0], *(cell.text for cell in row.cells)] for row in tables["1"].rows]
    assert agents == paper().tables["1"].rows
    thresholds = [(row.labels[0], row.cells[4].text, row.cells[5].text) for row in tables["2"].rows]
    assert thresholds == [(row[0], row[4], f"{row[5]} of 10") for row in paper().tables["2"].rows]
    assert [row.cells[0].text for row in tables["3"].rows] == [row[1] for row in paper().tables["3"].rows]
    page = (CHECKOUT / "docs" / "blickets.md").read_text("utf-8")
    for table in tables.values():
        rows = [row for row in as_markdown([table]).splitlines() if row.startswith("|")]
        assert len(rows) > 2
        assert all(row in page for row in rows), f"docs/blickets.md lacks Table {table.id}"


# --- What the rates of bench.lab.speed are measured on ----------------------------------------------------------------
@given(st.sampled_from(all_rules(8)), st.integers(0, 30), st.integers(0, 100))
def test_logs_are_read_as_the_games_are_and_keep_their_rule(rule: Rule, num_moves: int, seed: int) -> None:
    (run,) = text_runs([text_log(rule, num_moves, Random(seed))])
    assert run.rule == rule
    assert len(run.steps) == num_moves + 1
    assert not any(step.refused for step in run.steps)
    counted = attribute_runs([run])
    assert (counted.runs, counted.truth_kept) == (1, 1)


def test_toggles_are_never_refused() -> None:
    episode = BlicketEpisode(static_item(Rule(Form.CONJUNCTIVE, 3), 5))
    steps = [episode.act(action) for action in toggles(episode.task.objects, 75, Random(3))]
    assert len(steps) == 75
    assert all(step.reading for step in steps)
