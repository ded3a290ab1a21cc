"""Tables: every expectation is counted by hand, or is a figure of the published tables and their specification."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from calibrant.bench.cli import main
from calibrant.bench.core.metrics import InvalidHandling, mean_text, weighted_mean
from calibrant.bench.core.scoring import AnswerContext
from calibrant.bench.pages.terminal_tables import aligned, table_text
from calibrant.bench.replayscm.paper import CORE, DISTANCE
from calibrant.bench.replayscm.verdict import METRICS
from calibrant.bench.report.rows import Grouping
from calibrant.bench.report.table import ResultTable, UnansweredCounts
from calibrant.bench.runs.records import Record, folder_records
from calibrant.dsl.replayscm.pools.official import BY_NAME, OFFICIAL_FILES, table_setting
from tests.support.report_rows import blicket_record, graded, write_records
from tests.support.shared import shared_json

DASH = "\N{EN DASH}"
INVALID: dict[str, Any] = {"valid": False, "correct": False}


def answer(train: float, heldout: float, **extra: Any) -> dict[str, Any]:
    """Return a valid answer with these shares of exact worlds."""
    exact = {"trainExact": train == 1, "heldoutExact": train == 1 and heldout == 1}
    rates = {"trainWorldExactAccuracy": train, "heldoutWorldExactAccuracy": heldout}
    return {"valid": True, **exact, **rates, **extra}


def rows(
    scores: Iterable[Mapping[str, Any]],
    *,
    setting: str = "Ordered",
    means: InvalidHandling = InvalidHandling.PUBLISHED,
    by: Grouping = Grouping.POOL,
) -> list[dict[str, str]]:
    table = ResultTable(METRICS, by=by, handling=means)
    listed = list(scores)
    for i, score in enumerate(listed):
        table.add(AnswerContext("s", "p", "digest", len(listed), f"I{i}", setting, ""), score)
    return table.cells()


def row(scores: Iterable[Mapping[str, Any]], **options: Any) -> dict[str, str]:
    (only,) = rows(scores, **options)
    return only


FOUR = [answer(1, 1), answer(1, 0.5), answer(0.5, 0.25), INVALID]


def test_rates_are_over_all_instances_and_means_leave_invalid_ones_out() -> None:
    made = row(FOUR)
    assert (made["n"], made["coverage"]) == ("4", "1.000")
    assert (made["valid"], made["train_exact"], made["heldout_exact"]) == ("0.750", "0.500", "0.250")
    assert (made["train_world"], made["heldout_world"]) == ("0.833", "0.583")  # 2.5 / 3 and 1.75 / 3


def test_the_papers_means_count_invalid_ones_as_zero() -> None:
    made = row(FOUR, means=InvalidHandling.PAPER)
    assert (made["train_world"], made["heldout_world"]) == ("0.625", "0.438")  # 2.5 / 4 and 1.75 / 4 = 0.4375
    assert (made["valid"], made["train_exact"], made["heldout_exact"]) == ("0.750", "0.500", "0.250")


def test_counterexample_pools_count_invalid_ones_as_zero_under_either_convention() -> None:
    for means in InvalidHandling:
        assert row(FOUR, means=means, setting="Ord-CEx")["heldout_world"] == "0.438"
    for spec in (CORE, DISTANCE):  # with a column HeldoutWorld
        assert "unless invalid ones count as 0 (--means paper; CEx always)" in spec.caption


def test_the_published_symbolic_row_comes_out_of_counts_that_give_it() -> None:
    """Hid-Full, symbolic exact-search: 225 of 250 valid and train-exact, 134 of these held-out exact."""
    worlds = [1.0] * 134 + [0.75] * 79 + [0.625] * 12  # 200.75 in all, so 0.892 of 225 and 0.803 of 250
    scores = [answer(1, rate) for rate in worlds] + [INVALID] * 25
    published = shared_json("paper_rows.json")["tables"]
    (expected,) = [
        r
        for r in published["topline_results_main"]
        if (r["setting"], r["system"]) == ("Hid-Full", "symbolic exact-search")
    ]
    made = row(scores, setting="Hid-Full")
    assert {key: made[key] for key in expected if key != "system"} == {
        k: v for k, v in expected.items() if k != "system"
    }
    assert (
        row(scores, setting="Hid-Full", means=InvalidHandling.PAPER)["heldout_world"] == "0.803"
    )  # as the specification says


def test_rows_have_the_published_keys() -> None:
    published = shared_json("paper_rows.json")["tables"]
    keys = {key for name in ("topline_results_main", "identifiability_audit_performance") for key in published[name][0]}
    keys |= set(published["diagnostic_decomposition_main_panel_b"][0]) - {"model"}
    keys |= set(published["diagnostic_decomposition_main_panel_a"][0])
    not_ours = {"joint_leave_model_out", "paired_train_correct", "model"}  # need other models' and other pools' results
    assert keys - not_ours <= row(FOUR).keys()


@pytest.mark.parametrize(
    ("train_exact", "shown"), [(0, DASH), (1, "*"), (5, "*"), (6, "0.333")], ids=["none", "one", "five", "six"]
)
def test_conditional_rates_over_one_to_five_are_suppressed_and_over_none_undefined(
    train_exact: int, shown: str
) -> None:
    scores = [answer(1, 1 if i < 2 else 0) for i in range(train_exact)] + [answer(0.5, 1)] * 3
    made = row(scores)
    assert made["heldout_exact_given_train_exact"] == shown
    assert made["heldout_world_given_train_exact"] == shown


def test_unconditional_rates_are_never_suppressed() -> None:
    made = row([answer(1, 0.5)])
    assert (made["train_exact"], made["heldout_world"], made["heldout_exact"]) == ("1.000", "0.500", "0.000")


def test_means_over_no_valid_answer_are_undefined_or_zero() -> None:
    assert row([INVALID])["heldout_world"] == DASH
    assert row([INVALID], means=InvalidHandling.PAPER)["heldout_world"] == "0.000"


def test_a_missing_heldout_split_is_undefined_not_zero() -> None:
    made = row([answer(1, 1) | {"heldoutWorldExactAccuracy": None}], means=InvalidHandling.PAPER)
    assert (made["heldout_world"], made["train_world"]) == (DASH, "1.000")


def test_hidden_roots_take_the_mechanisms_exactness_and_condition_on_the_root_set() -> None:
    right = {"mechanismTrainExact": True, "mechanismHeldoutExact": True, "rootSetExact": True}
    wrong_roots = {"mechanismTrainExact": True, "mechanismHeldoutExact": False, "rootSetExact": False}
    misfit = {"mechanismTrainExact": False, "mechanismHeldoutExact": False, "rootSetExact": True}
    scores = [
        *[answer(1, 1, **right)] * 3,
        *[answer(1, 0.5, **wrong_roots)] * 2,
        *[answer(0.5, 0.25, **misfit)] * 3,
        {**INVALID, "rootSetExact": True, "mechanismTrainExact": False},  # the root checks passed, the map did not
        INVALID,
    ]
    for setting in ("Hidden-roots", "Hid-Roots"):
        made = row(scores, setting=setting)
        assert (made["train_exact"], made["heldout_exact"], made["root_exact"]) == ("0.500", "0.300", "0.700")
        assert made["train_exact_given_root_exact"] == "0.429"  # 3 of 7
        assert made["heldout_exact_given_root_exact"] == "0.429"
        assert made["heldout_world_given_root_exact"] == "0.625"  # 3.75 over the six that have a value
    zero_filled = row(scores, setting="Hidden-roots", means=InvalidHandling.PAPER)
    assert zero_filled["heldout_world_given_root_exact"] == "0.536"  # 3.75 / 7


def test_hidden_roots_do_not_read_correct_or_the_plain_keys() -> None:
    score = answer(1, 1, mechanismTrainExact=False, mechanismHeldoutExact=False, rootSetExact=False, correct=True)
    made = row([score], setting="Hidden-roots")
    assert (made["train_exact"], made["heldout_exact"], made["root_exact"]) == ("0.000", "0.000", "0.000")
    assert row([score], setting="Hidden-order")["root_exact"] == DASH


def test_alternative_rows() -> None:
    full = {"altSuccess": True, "jointSuccess": True, "witnessValid": True}
    no_experiment = {"altSuccess": True}
    scores = [answer(1, 1, **full), answer(1, 0.5, **no_experiment), answer(1, 1, altSuccess=False), INVALID]
    for setting in ("Alt-Ordered", "Alt-Hid"):
        made = row(scores, setting=setting)
        assert (made["alt_scm_joint"], made["alt_train_exact"], made["experiment_witness"]) == (
            "0.250",
            "0.500",
            "0.250",
        )
    assert row(scores, setting="Ordered")["alt_scm_joint"] == DASH


def test_optimality_is_over_joint_successes_and_suppressed_where_these_are_few() -> None:
    success = {"altSuccess": True, "jointSuccess": True, "witnessValid": True}
    best = [answer(1, 1, **success, experimentOptimality=1.0)] * 4
    half = [answer(1, 1, **success, experimentOptimality=0.5)] * 2
    failed = [answer(1, 1, altSuccess=True, jointSuccess=False, experimentOptimality=0.0), INVALID]
    assert row([*best, *half, *failed], setting="Alt-Hid")["experiment_optimality"] == "0.833"  # 5 / 6
    assert row([*best, half[0], *failed], setting="Alt-Hid")["experiment_optimality"] == "*"
    assert row(failed, setting="Alt-Hid")["experiment_optimality"] == DASH
    assert row([*best, *half], setting="Ordered")["experiment_optimality"] == DASH


def test_structure_is_over_scored_answers_and_suppressed_like_the_papers() -> None:
    def compared(f1: float, shd: int, exact_map: bool) -> dict[str, Any]:
        same = 1.0 if exact_map else 0.5
        metrics = {"precision": f1, "recall": f1, "f1": f1, "shd": shd, "exact_map": exact_map}
        return {"structure": metrics | {"variable_exact": same, "local_match": same}}

    scores = [answer(1, 1, **compared(1.0, 0, True))] * 6 + [answer(0.5, 0, **compared(0.5, 3, False))] * 2 + [INVALID]
    made = row(scores)
    assert (made["structure_scored"], made["parent_f1"], made["parent_shd"]) == ("8", "0.875", "0.75")
    assert (made["parent_map_exact"], made["parent_exact"], made["local_match"]) == ("0.750", "0.875", "0.875")
    assert made["train_exact_given_parent_map_exact"] == "1.000"
    few = row(scores[5:])
    assert (few["structure_scored"], few["parent_f1"], few["train_exact_given_parent_map_exact"]) == ("3", "*", "*")


def test_the_funnel_is_over_all_answers() -> None:
    def stages(*passed: str) -> dict[str, Any]:
        names = ("extracted", "schema", "keys", "parse", "legal", "acyclic")
        return {**INVALID, "strictJson": "extracted" in passed, "funnel": {name: name in passed for name in names}}

    made = row([stages(), stages("extracted", "schema"), stages("extracted", "schema", "keys", "parse")])
    assert [made[k] for k in ("strict_json", "extracted", "keys", "legal")] == ["0.667", "0.667", "0.333", "0.000"]


def test_the_order_of_answers_does_not_matter() -> None:
    rng = random.Random(5)
    thirds = [answer(1, k / 3) for k in (0, 1, 2, 3)] + [answer(k / 7, k / 11) for k in range(1, 7)] + [INVALID]
    first = row(thirds)
    for _ in range(20):
        rng.shuffle(thirds)
        assert row(thirds) == first


def test_rows_follow_the_disclosure_ladder_then_natural_names() -> None:
    table = ResultTable(METRICS, by=Grouping.STRATUM)
    for setting in ("Hidden-roots", "Alt-Ordered", "Hidden-order", "Block", "Ordered"):
        for stratum in ("n10", "n8", ""):
            table.add(AnswerContext("s", "p", "d", 1, "I", setting, stratum), answer(1, 1))
    ladder = ["Ordered", "Block", "Hidden-order", "Hidden-roots", "Alt-Ordered"]
    assert [r["setting"] for r in table.cells()] == [setting for setting in ladder for _ in range(3)]
    assert [r["stratum"] for r in table.cells()][:3] == [DASH, "n8", "n10"]


def test_pools_are_kept_apart_unless_asked_for_by_setting() -> None:
    def collected(by: Grouping) -> ResultTable:
        table = ResultTable(METRICS, by=by)
        table.add(AnswerContext("s", "one", "d1", 1, "I", "Ordered", ""), answer(1, 1))
        table.add(AnswerContext("s", "two", "d2", 3, "I", "Ordered", ""), answer(0.5, 0))
        return table

    assert [(r["pool"], r["n"], r["coverage"]) for r in collected(Grouping.POOL).cells()] == [
        ("one", "1", "1.000"),
        ("two", "1", "0.333"),
    ]
    (merged,) = collected(Grouping.SETTING).cells()
    assert (merged["pool"], merged["n"], merged["coverage"], merged["train_exact"]) == (
        "2 pools",
        "2",
        DASH,  # the settings of two items of "two" are not known
        "0.500",
    )
    for by in (Grouping.POOL, Grouping.SETTING):
        assert collected(by).incomplete() == ["two: 1 of 3 instances scored for s; rates are over those"]


def test_answers_that_are_crashes_are_said_beside_the_rates() -> None:
    table = ResultTable(METRICS)
    for instance, outcome in (("I", "found"), ("J", "crashed"), ("K", "crashed")):
        table.add(AnswerContext("s", "one", "d1", 3, instance, "Ordered", "", outcome=outcome), answer(1, 1))
    assert table.incomplete() == ["one: 2 of 3 answers of s are crashes; rates count them as not valid"]


def test_configurations_of_one_protocol_get_rows_of_their_own() -> None:
    table = ResultTable(METRICS)
    for parents in (3, 5):
        config = {"max_parents": parents, "wall_budget": None}
        table.add(AnswerContext("exact", "p", "d", 1, "I", "Ordered", "", config, "found", 0.25), answer(1, 1))
    table.add(AnswerContext("m", "p", "d", 1, "I", "Ordered", ""), answer(1, 1))
    assert [r["system"] for r in table.cells()] == ["exact (max_parents=3)", "exact (max_parents=5)", "m"]


def test_outcomes_and_seconds() -> None:
    table = ResultTable(METRICS)
    for i, (outcome, seconds) in enumerate([("found", 0.5), ("found", 0.1), ("out_of_budget", 2.0), ("crashed", None)]):
        table.add(AnswerContext("x", "p", "d", 4, f"I{i}", "Ordered", "", {}, outcome, seconds), INVALID)
    (made,) = table.cells()
    assert (made["found"], made["out_of_budget"], made["crashed"], made["impossible"]) == ("2", "1", "1", "0")
    assert (made["seconds_median"], made["seconds_max"]) == ("0.5000", "2.0000")
    assert row([INVALID])["found"] == DASH  # a model has no outcome


@pytest.mark.parametrize(
    ("values", "shown"), [({}, DASH), ({1.0: 1, 0.0: 2}, "0.333"), ({0.1: 3}, "0.100"), ({1 / 3: 1, 2 / 3: 1}, "0.500")]
)
def test_rates_are_rounded_once(values: dict[float, int], shown: str) -> None:
    mean = weighted_mean(values)
    assert mean_text(mean, conditional=False, decimals=3, num_items=sum(values.values())) == shown


def test_column_keys_are_distinct() -> None:
    keys = [metric.key for view in METRICS.views.values() for metric in view.metrics]
    assert len(set(keys)) == len(keys)


def test_official_files_are_those_of_the_release() -> None:
    released = shared_json("official_sha256.json")
    ours = {file.name: {"bytes": file.num_bytes, "sha256": file.digest} for file in OFFICIAL_FILES}
    assert ours == released


def test_official_files_have_the_settings_of_the_published_tables() -> None:
    published = shared_json("paper_rows.json")["tables"]
    named = {r["setting"] for table in published.values() for r in table if "setting" in r} | {"Hid-Roots"}
    assert {file.setting for file in OFFICIAL_FILES} == named
    ordered = BY_NAME["cind_a_scm_benchmark240_final_v1.runtime.yaml"]
    assert table_setting(ordered.digest, "Ordered") == "Ord-Full"
    assert table_setting("unknown", "Ordered") == "Ordered"


def test_text_tables_align_numbers_right_and_leave_out_what_is_undefined_everywhere() -> None:
    assert aligned(["name", "rate"], [["a", "1.000"], ["long", "*"]]) == "name   rate\na     1.000\nlong      *"
    text = table_text(rows(FOUR), METRICS).text
    assert text.split("\n")[0].split() == [
        *("Setting", "System", "Pool", "n", "Valid", "TrainExact"),
        *("TrainWorld", "HeldoutWorld", "HeldoutExact", "HW|TE", "HE|TE"),
    ]
    assert "RootExact" in table_text(rows([answer(1, 1, rootSetExact=True)], setting="Hidden-roots"), METRICS).text


# --- Protocols that find nothing say why on the screen, with how many items it was ------------------------------


IMPOSSIBLE = "exact: 2 items: nothing of the class fits (exhausted: all of it)"
SPENT = "exact: 1 item: unanswered within the budget (3 of 9 sets)"


def _records(of: str) -> list[Record]:
    score = graded()
    said = [("impossible", {"exhausted": "all of it"})] * 2 + [("out_of_budget", {"reached": "3 of 9 sets"})]
    made = [
        blicket_record(k, score, protocol="exact", outcome=outcome, provenance=why)
        for k, (outcome, why) in enumerate([*said, ("found", {})])
    ]
    return [msgspec.structs.replace(one, benchmark=of) for one in made]


@pytest.mark.parametrize("as_json", [False, True])
def test_table_says_why_there_are_no_answers(as_json: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_records(tmp_path / "run", _records("blickets"))
    assert main(["table", str(folder), *(["--json"] if as_json else [])]) == 0
    printed = capsys.readouterr()
    lines = printed.err.splitlines()
    assert [line for line in lines if line.startswith("exact: ")] == [IMPOSSIBLE, SPENT]
    assert not as_json or json.loads(printed.out)


def test_run_says_it_after_the_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two rows of one unit that contradict every mechanism: X2 is 0 and 1 where its only possible parent is 0."""
    header = {"format": "calibrant-pool", "version": 1, "name": "mine"}
    item = {
        "id": "a",
        "kind": "CIND_A_SCM",
        "variables": ["X1", "X2"],
        "units": ["u0", "u1"],
        "disclosure": {"type": "hidden_order", "roots": ["X1"]},
        "training": [{"id": "w0", "rows": ["00", "01"]}],
        "sealed": {},
    }
    pool = tmp_path / "mine.jsonl"
    pool.write_text("".join(f"{json.dumps(line)}\n" for line in (header, item)), encoding="utf-8")
    assert main(["run", "exact", str(pool), "--out", str(tmp_path / "run"), "--workers", "1"]) == 0
    (record,) = folder_records(tmp_path / "run")
    (line,) = [line for line in capsys.readouterr().err.splitlines() if line.startswith("exact: ")]
    assert line.startswith("exact: 1 item: nothing of the class fits (exhausted: no acyclic admissible choice")
    assert record.provenance["exhausted"] in line + ")"


def _origin(outcome: str | None, reason: str) -> AnswerContext:
    return AnswerContext("row", "p", "d", 9, "i", "s", "t", outcome=outcome, reason=reason)


def test_of_several_reasons_the_most_frequent_is_printed_in_one_line() -> None:
    counts = UnansweredCounts()
    for reason in ("b", "a", "b\n", "b", "a\x1b" * 200):
        counts.add(_origin("out_of_budget", reason))
    counts.add(_origin("impossible", ""))
    counts.add(_origin("found", ""))
    counts.add(_origin(None, ""))
    assert list(counts.lines()) == [
        "row: 1 item: no answer, without a proof that there is none (no reason recorded)",
        "row: 5 items: unanswered within the budget (b; 3 other reasons)",
    ]


@pytest.mark.parametrize("command", ["table", "report"])
def test_a_source_that_does_not_exist_is_named(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([command, str(tmp_path / "nofile.jsonl")]) == 2
    assert "nofile.jsonl: there is no such file or folder" in capsys.readouterr().err


def settings_table(answered: Mapping[str, Iterable[int]], pool_size: int) -> ResultTable:
    """Return rows by setting of systems with these answered items; item 3 is Extended, the others are Ordered."""
    table = ResultTable(METRICS, by=Grouping.SETTING)
    for system, items in answered.items():
        for i in items:
            setting = "Extended" if i == 3 else "Ordered"
            table.add(AnswerContext(system, "p", "digest", pool_size, f"I{i}", setting, ""), answer(1, 1))
    return table


def test_coverage_by_setting_is_over_the_items_of_the_setting() -> None:
    whole = settings_table({"s": range(4)}, 4)
    assert [cells["coverage"] for cells in whole.cells()] == ["1.000", "1.000"]
    assert whole.incomplete() == []
    partial = settings_table({"s": range(4), "t": [0]}, 4)
    coverage = {(line["setting"], line["system"]): line["coverage"] for line in partial.to_json()}
    assert coverage == {("Ordered", "s"): 1, ("Extended", "s"): 1, ("Ordered", "t"): 1 / 3}
    assert partial.incomplete() == ["p: 1 of 4 instances scored for t; rates are over those"]


def test_coverage_by_setting_is_not_claimed_where_the_settings_of_some_items_are_not_known() -> None:
    table = settings_table({"s": (0, 1, 3)}, 4)
    assert {line["coverage"] for line in table.to_json()} == {None}
    assert table.incomplete() == ["p: 3 of 4 instances scored for s; rates are over those"]
