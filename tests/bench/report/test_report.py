"""The tables of a report: every expectation is counted by hand from made-up answers, or is what the paper prints."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from calibrant.bench.core.metrics import InvalidHandling
from calibrant.bench.core.scoring import AnswerContext
from calibrant.bench.replayscm import paper
from calibrant.bench.replayscm.appendix.cohorts import per_problem
from calibrant.bench.replayscm.paper import TableSpec, disclosure_deltas, printed_settings, printed_table, report_rows
from calibrant.bench.replayscm.report import TABLE_IDS, compare_systems, report_tables
from calibrant.bench.report.comparisons import describe_pair
from calibrant.bench.report.layout import Source
from calibrant.bench.report.rows import Grouping, Row
from calibrant.bench.report.sections import ReportContents
from calibrant.dsl.errors import CalibrantError
from calibrant.dsl.replayscm.pools.official import BY_NAME, latent_of
from tests.support.commands import refused
from tests.support.report_rows import INVALID, Answers, answer, ours, row_of, rows_of, write_run
from tests.support.shared import shared_json

DASH = "\N{EN DASH}"
PAPER_TABLES = ("1", "2", "3B", "C.1", "C.3", "C.4", "D.1", "F.11", "F.12", "H.2")


def line(spec: TableSpec, scores: list[dict[str, Any]], **options: Any) -> dict[str, str]:
    (only,) = ours(spec.make([row_of(scores, **options)], with_paper=False))
    return only


EIGHT = [answer(1, 1)] * 4 + [answer(1, 0.5)] * 2 + [answer(0.5, 0.25), INVALID]


def test_the_core_table_counts_as_the_paper_does() -> None:
    made = line(paper.CORE, EIGHT)
    assert (made["setting"], made["system"], made["pool"], made["n"]) == ("Ordered", "s", "p", "8")
    assert (made["valid"], made["train_exact"], made["heldout_exact"]) == ("0.875", "0.750", "0.500")
    assert made["heldout_world"] == "0.750"  # 5.25 over the 7 valid ones
    assert made["heldout_world_given_train_exact"] == "0.833"  # 5 / 6
    assert made["heldout_exact_given_train_exact"] == "0.667"  # 4 / 6
    (row,) = rows_of(Answers("s", EIGHT), means=InvalidHandling.PAPER)
    assert ours(paper.CORE.make([row], with_paper=False))[0]["heldout_world"] == "0.656"  # 5.25 / 8


def test_suppressed_and_undefined_rates_have_no_interval_and_others_have() -> None:
    for train_exact, shown in ((0, DASH), (1, "*"), (5, "*"), (6, "1.000")):
        made = line(paper.CORE, [answer(1, 1)] * train_exact + [answer(0.5, 0)] * 8)
        assert made["heldout_exact_given_train_exact"] == shown
        assert bool(made["heldout_exact_given_train_exact interval"]) is (train_exact == 6)
        assert made["train_exact interval"] != ""
    few = line(paper.CORE, [answer(1, 1)] * 5)
    assert (few["train_exact"], few["train_exact interval"]) == ("1.000", "[0.566, 1.000]")  # 1 / (1 + z^2 / 5)
    assert line(paper.CORE, [answer(1, 1)])["train_exact interval"] == ""  # of one problem nothing is known


def test_an_interval_of_a_distance_holds_its_mean() -> None:
    """Four of 3 and four of 7: standard error sqrt(32 / 7 / 8) = 0.756, times 2.365 of Student's t with 7 degrees."""
    scores = [answer(1, 1) | {"structure": {"shd": distance}} for distance in (3, 7) * 4]
    made = line(paper.STRUCTURE, scores)
    assert (made["parent_shd"], made["parent_shd interval"]) == ("5.00", "[3.21, 6.79]")


def test_a_row_that_misses_instances_says_so() -> None:
    rows = rows_of(Answers("s", EIGHT), Answers("t", EIGHT[:6]))
    collected = {r["system"]: r["n"] for r in ours(paper.CORE.make(rows, with_paper=False))}
    assert collected == {"s": "8", "t": "6"}
    partial = replace(rows[1], pools={digest: (name, 8) for digest, (name, _) in rows[1].pools.items()})
    assert ours(paper.CORE.make([partial], with_paper=False))[0]["n"] == "6 of 8"


def test_hidden_roots_rates_are_of_the_mechanisms_and_task_correct_is_not() -> None:
    right = answer(1, 1) | {"mechanismTrainExact": True, "mechanismHeldoutExact": True, "rootSetExact": True}
    wrong = right | {"correct": False, "trainExact": False, "heldoutExact": False, "rootSetExact": False}
    scores = [right] * 6 + [wrong] * 2
    made = line(paper.HIDDEN_ROOTS, scores, setting="Hidden-roots")
    assert (made["root_exact"], made["train_exact"], made["heldout_exact"]) == ("0.750", "1.000", "1.000")
    assert made["train_exact_given_root_exact"] == "1.000"
    assert line(paper.CALIBRATION, scores, setting="Hidden-roots")["task_correct"] == "0.750"
    assert paper.HIDDEN_ROOTS.make([row_of(scores, setting="Block")], with_paper=False) is None


def test_the_calibration_table_has_no_models() -> None:
    rows = rows_of(
        Answers("search", EIGHT), Answers("GPT", EIGHT, is_run=False), Answers("bnlearn+DSL", EIGHT, is_run=False)
    )
    assert [r["system"] for r in ours(paper.CALIBRATION.make(rows, with_paper=False))] == ["bnlearn+DSL", "search"]
    assert [r["system"] for r in ours(paper.CORE.make(rows, with_paper=False))] == ["GPT", "bnlearn+DSL", "search"]


def test_retention_counts_train_exact_answers() -> None:
    assert line(paper.RETENTION, EIGHT)["num_train_exact"] == "6"


# --- alternatives ------------------------------------------------------------------------------------------------

GOLD, OTHER, MISS = answer(1, 1, 1.0), answer(1, 0.5, 0.75), answer(0.5, 0.5, 0.5)


def test_alternatives_are_train_exact_and_mean_something_else() -> None:
    made = line(paper.PER_SYSTEM, [GOLD] * 4 + [OTHER] * 2 + [MISS, INVALID])
    assert (made["n"], made["num_train_exact"], made["num_alternatives"]) == ("8", "6", "2")
    assert (made["alternative"], made["alternative_given_train_exact"]) == ("0.250", "0.333")
    for answers in ([answer(1, 1)] * 6, [answer(1, 1)] * 6 + [answer(0.5, 0.5)] * 4):  # no structure metrics
        unknown = line(paper.PER_SYSTEM, answers)
        keys = ("num_alternatives", "alternative", "alternative_given_train_exact")
        assert [unknown[key] for key in keys] == [DASH] * 3
    roots = {"mechanismTrainExact": True, "rootSetExact": False, "structure": None}
    assert line(paper.PER_SYSTEM, [answer(1, 1) | roots] * 6, setting="Hidden-roots")["alternative"] == "1.000"


def test_problems_without_alternative_are_counted_over_systems() -> None:
    """Problem 0: nobody; 1: the model; 2: the search; 3: both."""
    rows = rows_of(
        Answers("model", [GOLD, OTHER, MISS, OTHER], is_run=False), Answers("search", [GOLD, GOLD, OTHER, OTHER])
    )
    (made,) = ours(per_problem(rows, with_paper=False))
    assert made["systems"] == "1 model, 1 search"
    assert made["num_without_model_alternative"] == "2"
    assert made["num_without_search_alternative"] == "2"
    assert (made["num_without_alternative"], made["any_alternative"]) == ("1", "0.750")
    (unknown,) = ours(per_problem(rows_of(Answers("search", [OTHER, answer(1, 1)])), with_paper=False))
    assert (unknown["num_without_alternative"], unknown["any_alternative"]) == (DASH, DASH)
    (alone,) = ours(per_problem(rows_of(Answers("search", [GOLD, OTHER])), with_paper=False))
    assert (alone["num_without_model_alternative"], alone["num_without_search_alternative"]) == (DASH, "1")


# --- pairs -------------------------------------------------------------------------------------------------------


def ladder(*values: tuple[str, str, list[dict[str, Any]]]) -> list[Answers]:
    return [Answers("s", scores, setting=setting, pool=setting, suffix=suffix) for setting, suffix, scores in values]


def test_disclosure_deltas_are_first_minus_second_over_the_same_latents() -> None:
    ordered = [answer(1, 1)] * 6 + [answer(0.5, 0.5)] * 4
    block = [answer(1, 1)] * 3 + [answer(0.5, 0.5)] * 7
    hidden = [INVALID] * 2 + [answer(0.5, 0)] * 4
    rows = rows_of(
        *ladder(("Hidden-order", "", hidden), ("Ordered", "", ordered), ("Block", "__PARTIAL_ORDER_2BLOCK", block))
    )
    made = ours(disclosure_deltas(rows, with_paper=False))
    assert [(r["pair"], r["n"]) for r in made] == [
        ("Ordered -> Block", "10"),
        ("Block -> Hidden-order", "6"),
        ("Ordered -> Hidden-order", "6"),
    ]
    assert [r["train_exact_difference"] for r in made] == ["+0.300", "+0.500", "+1.000"]
    assert made[0]["heldout_world_difference"] == "+0.150"  # problems 3 to 5 fall from 1 to 0.5
    assert made[1]["heldout_world_difference"] == "*"  # four of the six have a rate in both settings
    assert made[2]["train_exact_difference interval"] == "[+1.000, +1.000]"


def test_no_delta_between_different_latents_systems_or_families() -> None:
    apart = [
        Answers("s", EIGHT, pool="a"),
        Answers("s", EIGHT, setting="Block", pool="b", suffix="other"),
        Answers("t", EIGHT, setting="Block", pool="c"),
        Answers("s", EIGHT, setting="Hid-CEx", pool="d"),
    ]
    assert disclosure_deltas(rows_of(*apart), with_paper=False) is None


WINS = [answer(1, 1)] * 9 + [answer(1, 0.5)]
LOSES = [answer(1, 1)] * 2 + [answer(1, 0.5)] * 8


def test_a_row_is_better_only_where_the_paired_interval_excludes_zero() -> None:
    close = [answer(1, 0.5), *[answer(1, 1)] * 8, answer(1, 0.5)]
    made = ours(compare_systems(rows_of(Answers("a", WINS), Answers("b", LOSES), Answers("c", close)), ()))
    said = {(r["system"], r["other"]): (r["heldout_exact_difference"], r["verdict"]) for r in made}
    assert said == {
        ("a", "b"): ("+0.700", "better"),
        ("a", "c"): ("+0.100", "not separated"),
        ("b", "c"): ("-0.600", "worse"),
    }
    assert {r["train_exact_difference"] for r in made} == {"+0.000"}


def test_the_first_row_of_a_pair_is_said_as_a_sentence() -> None:
    table = compare_systems(rows_of(Answers("a", WINS), Answers("b", LOSES)), ())
    assert table is not None
    (row,) = table.rows
    assert row.cells[-1].text == "better"
    figures = f"+0.700 [{row.cells[-2].low}, {row.cells[-2].high}]"
    assert (
        describe_pair(table, ["a", "b"]) == describe_pair(table, ["b", "a", "c"]) == f"a is better than b: {figures}."
    )
    assert describe_pair(table, ["a", "c"]) == ""
    twice = replace(table, rows=(row, replace(row, labels=("Block", *row.labels[1:]))))
    assert describe_pair(twice, ["a", "b"]) == f"{row.labels[0]}, {row.labels[3]}: a is better than b: {figures}."
    overall = replace(table, rows=(replace(row, labels=("all", *row.labels[1:])), row))
    assert describe_pair(overall, ["a", "b"]) == f"a is better than b: {figures}."
    few = compare_systems(rows_of(Answers("a", WINS[:5]), Answers("b", LOSES[:5])), ())
    assert few is not None
    unknown = "Whether a is better than b is not known: too few independent items for an interval."
    assert describe_pair(few, ["a", "b"]) == unknown


def test_systems_are_compared_on_what_both_answered() -> None:
    rows = rows_of(Answers("a", WINS), Answers("b", LOSES[2:]))
    (made,) = ours(compare_systems(rows, ()))
    assert (made["n"], made["heldout_exact_difference"]) == ("8", "+1.000")
    table = compare_systems(rows_of(Answers("a", WINS[:5]), Answers("b", LOSES[:5])), ())
    few = ours(table)
    assert (few[0]["heldout_exact_difference"], few[0]["verdict"]) == ("*", DASH)
    explained = table.caption.partition("all of them at once.")[2] if table else ""
    assert explained.startswith(
        f" * stands for a difference over 1 to 5 instances. {DASH} stands for a verdict without"
    )
    assert (
        "too few latent SCMs that both answered; more of them help, more answers to the same ones do not" in explained
    )
    many = compare_systems(rows_of(Answers("a", WINS), Answers("b", LOSES)), ())
    assert many is not None
    assert "stands for" not in many.caption


def test_many_systems_are_compared_with_exact_or_with_those_named() -> None:
    names = ["exact", *"abcdef"]
    rows = rows_of(*(Answers(name, WINS) for name in names))
    assert {(r["system"], r["other"]) for r in ours(compare_systems(rows, ()))} == {(n, "exact") for n in "abcdef"}
    assert {r["other"] for r in ours(compare_systems(rows, ["b"]))} == {"b"}
    assert len(ours(compare_systems(rows[:5], ()))) == 10  # every pair of few
    with pytest.raises(CalibrantError, match=r"no system 'nobody' to compare with; there are a, b, c, d, e, exact, f"):
        compare_systems(rows, ["nobody"])


def test_crashes_are_noted_below_the_rates() -> None:
    answers = []
    for index in range(8):
        outcome = "crashed" if index < 3 else "found"
        run = AnswerContext("s", "p", "d", 8, f"I{index}", "Ordered", "", {"a": 1}, outcome)
        answers.append((run, answer(1, 1)))
    made = paper.CORE.make(report_rows(answers), with_paper=False)
    assert made is not None
    assert made.notes == ("3 of 8 answers of s to p (Ordered) are crashes; rates count them as not valid.",)


def test_names_are_cleaned_of_what_has_no_place_in_a_file() -> None:
    (row,) = rows_of(Answers("a\rb\ud800c", WINS, pool="p\x00"))
    assert (row.system, row.pool) == ("a b c", "p ")


def test_what_cannot_be_made_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_run(tmp_path / "runs", Answers("s", WINS))
    assert refused(capsys, "report", folder, "--table", "ceiling") == "no answers that belong into table ceiling"
    assert "no system 'nosuch' to compare with; there are s" in refused(capsys, "report", folder, "--against", "nosuch")
    told = refused(capsys, "report", folder, "--out", tmp_path / "report.pdf")
    assert "'.pdf' is none of .html, .md, .csv, .tex, .txt" in told
    assert not (tmp_path / "report.pdf").exists()


# --- grouping ----------------------------------------------------------------------------------------------------


def test_rows_by_setting_join_pools() -> None:
    rows = rows_of(Answers("s", EIGHT, pool="p"), Answers("s", EIGHT, pool="q", suffix="x"), by=Grouping.SETTING)
    (made,) = ours(paper.CORE.make(rows, with_paper=False))
    assert (made["pool"], made["n"], made["heldout_world"]) == ("2 pools", "16", "0.750")


def test_twice_the_same_latents_are_no_narrower_an_interval() -> None:
    once = rows_of(Answers("s", EIGHT, pool="p"))
    twice = rows_of(Answers("s", EIGHT, pool="p"), Answers("s", EIGHT, pool="q"), by=Grouping.SETTING)
    one, other = (ours(paper.CORE.make(rows, with_paper=False))[0] for rows in (once, twice))
    assert (one["n"], other["n"]) == ("8", "16")
    intervals = [key for key in one if key.endswith(" interval")]
    assert one["heldout_world interval"] != ""
    widths = [[end - start for start, end in (json.loads(made[key]) for made in (one, other))] for key in intervals]
    assert len(widths) >= 5
    assert all(of_twice > 0.8 * of_once for of_once, of_twice in widths)  # 16 independent ones: 0.71


@pytest.mark.parametrize(
    "suffix", ["", "__ALT_EXP", "__ROOT_UNKNOWN", "__PARTIAL_ORDER_2BLOCK", "__PARTIAL_ORDER_3BLOCK"]
)
def test_variants_share_the_latent_of_their_source(suffix: str) -> None:
    assert latent_of(f"CIND_7{suffix}") == "CIND_7"


# --- the paper's rows --------------------------------------------------------------------------------------------


def printed(number: str) -> dict[tuple[str, str], dict[str, str]]:
    table = printed_table(number)
    assert table is not None
    assert len({(row[0], row[1]) for row in table.rows}) == len(table.rows)
    return {(row[0], row[1]): dict(zip(table.columns, row[2:], strict=True)) for row in table.rows}


def test_printed_rows_are_those_of_the_release() -> None:
    released = shared_json("paper_rows.json")["tables"]
    for number, name in (("1", "topline_results_main"), ("3B", "diagnostic_decomposition_main_panel_b")):
        here = printed(number)
        assert len(here) == len(released[name])
        for row in released[name]:
            cells = here[row.get("setting", "Hid-Roots"), row["system"]]
            assert cells == {key: row[key] for key in cells}
    ladder_rows = {row["model"]: row for row in released["information_ladder_common_pool"]}
    for (setting, model), cells in printed("C.4").items():
        if setting in ladder_rows.get(model, {}):
            assert cells["train_exact"] == ladder_rows[model][setting]
    differing = {
        (row["setting"], row["model"], key, row[key], cells[key])
        for row in released["identifiability_audit_performance"]
        for cells in [printed("C.4").get((row["setting"], row["model"]), {})]
        for key in cells.keys() & row.keys()
        if row[key] != cells[key]
    }
    assert differing == {  # the release and the paper themselves differ in two cells
        ("Hid-Ext", "Grok 4.20", "heldout_world", "0.467", "0.466"),
        ("Hid-Ext", "Grok 4.3", "heldout_world", "0.135", "0.137"),
    }


def test_printed_tables_agree_with_each_other() -> None:
    core, structure, retention = printed("1"), printed("2"), printed("C.4")
    sizes = {"Ord-Full": 250, "Hid-Full": 250}
    for place, cells in retention.items():
        assert int(cells["num_train_exact"]) == round(float(cells["train_exact"]) * sizes.get(place[0], 100))
        if place in core:
            assert all(core[place][key] == cells[key] for key in cells if key in core[place])
    for (pair, model), cells in printed("D.1").items():
        one, other = (retention[setting, model] for setting in pair.split(" -> "))
        difference = float(one["train_exact"]) - float(other["train_exact"])
        assert float(cells["train_exact_difference"]) == pytest.approx(difference)
    for place, cells in printed("H.2").items():
        known = core.get(place) or printed("3B")[place]
        assert all(known[key] == cells[key] for key in cells if key in known)
    for place, cells in printed("C.3").items():
        if place[0] == "Block" and place[1] != "Grok 4.3":  # printed with 95 valid answers there, 97 elsewhere
            assert all(structure[place][key] == cells[key] for key in cells if key in structure[place])
    for place, cells in printed("F.12").items():
        rate = int(cells["num_alternatives"]) / int(cells["num_attempted"])
        assert float(cells["alternative"]) == pytest.approx(rate, abs=5.1e-4)
        assert (cells["alternative_given_train_exact"] == DASH) is (cells["num_train_exact"] == "0")
        if place in retention:
            assert cells["num_train_exact"] == retention[place]["num_train_exact"]


def test_printed_rows_stand_after_ours_and_the_note_says_that_pools_differ() -> None:
    rows = rows_of(Answers("s", EIGHT, setting="Block", pool="mine"), Answers("s", EIGHT, pool="mine too"))
    tables = {table.id: table for table in report_tables(rows, ReportContents())}
    core = tables["1"]
    assert [row.labels[:2] for row in core.rows][:2] == [("Ordered", "s"), ("Ord-Full", "GPT-5.4")]
    assert core.rows[12].labels == ("Block", "s", "mine", "8")
    assert core.rows[13].labels == ("Block", "GPT-5.4", "paper", "100")
    assert [cell.text for cell in core.rows[13].cells] == ["1.000", "0.600", "0.774", "0.410", "0.912", "0.683"]
    assert "arXiv:2605.08197" in core.notes[0]
    assert "Ord-Full 250, Block 100" in core.notes[0]
    assert "The pools differ" in core.notes[1]
    assert "mine, mine too" in core.notes[1]
    plain = {table.id: table for table in report_tables(rows, ReportContents(with_paper=False))}
    assert all(row.source is Source.OURS for table in plain.values() for row in table.rows)
    assert all(table.notes == () for table in plain.values())


def _in_pool(row: Row, digest: str, name: str, size: int) -> Row:
    return replace(row, pools={digest: (name, size)}, pool_labels={digest: name})


def notes_below(row: Row) -> tuple[str, ...]:
    table = paper.CORE.make([row], with_paper=True)
    assert table is not None
    return table.notes


def test_an_official_pool_in_full_is_the_papers_pool() -> None:
    official = BY_NAME["cind_a_scm_paired50_partial_order_mixed25_2block25_3block_v3.runtime.yaml"]
    row = row_of([answer(1, 1)] * 8, setting="Block", pool=official.name)
    same = _in_pool(row, official.digest, official.name, 8)
    (note,) = notes_below(same)
    assert "printed in Table 1" in note
    partial = _in_pool(row, official.digest, official.name, 100)
    assert len(notes_below(partial)) == 2
    full = BY_NAME["cind_a_scm_benchmark240_final_v1.runtime.yaml"]
    ordered = _in_pool(row_of([answer(1, 1)] * 8, setting="Ord-Full"), full.digest, full.name, 8)
    assert len(notes_below(ordered)) == 1
    alternatives = paper.PER_SYSTEM.make([ordered], with_paper=True)  # the paper's are on the matched 100 of these 250
    assert alternatives is not None
    assert len(alternatives.notes) == 2


@pytest.mark.parametrize(
    ("number", "setting", "theirs"),
    [
        ("1", "Hidden-order", ("Hid-Full",)),
        ("F.12", "Hidden-order", ("Hid-Match",)),
        ("1", "Hidden-roots", ()),
        ("3B", "Hidden-roots", ("Hid-Roots",)),
        ("D.1", "Hidden-order -> Hidden-roots", ("Hid-Match -> Hid-Roots",)),
        ("D.1", "Ord-Full -> Block", ("Ord-Match -> Block",)),
        ("C.4", "Hid-Ext", ("Hid-Ext",)),
        ("C.4", "Ordered", ("Ord-Full", "Ord-Match")),
        ("paired", "Ordered", ()),
    ],
)
def test_settings_go_by_the_papers_names(number: str, setting: str, theirs: tuple[str, ...]) -> None:
    assert printed_settings(number, setting) == theirs


def test_every_printed_table_is_one_of_ours() -> None:
    assert all(printed_table(number) for number in PAPER_TABLES)
    assert set(PAPER_TABLES) <= set(TABLE_IDS)


def test_only_the_tables_that_are_wanted_and_only_columns_that_are_defined() -> None:
    rows = rows_of(Answers("s", EIGHT))
    assert [t.id for t in report_tables(rows, ReportContents(frozenset({"H.2", "1"})))] == ["1", "H.2"]
    failed = rows_of(Answers("s", [answer(0, 0)] * 8))
    (alone,) = report_tables(failed, ReportContents(frozenset({"1"}), with_paper=False))
    (printed,) = report_tables(failed, ReportContents(frozenset({"1"})))
    of_exact = "heldout_exact_given_train_exact"
    assert of_exact not in {heading.key for heading in alone.headings}
    assert of_exact in {heading.key for heading in printed.headings}  # printed rows have it
    assert "time" not in {t.id for t in report_tables(rows, ReportContents(with_times=False))}


def test_times_are_medians_maxima_and_sums() -> None:
    (table,) = report_tables(rows_of(Answers("s", EIGHT)), ReportContents(frozenset({"time"})))
    (made,) = ours(table)  # 0.5, 1.0, ..., 4.0 seconds
    assert (made["seconds_median"], made["seconds_max"], made["seconds_total"]) == ("2.2500", "4.0000", "18.00")
