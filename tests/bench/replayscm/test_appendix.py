"""Appendix tables: expectations are counted by hand from figures-up answers, or are relations of printed figures."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from calibrant.bench.replayscm.appendix import cohorts
from calibrant.bench.replayscm.appendix import contrasts as appendix
from calibrant.bench.replayscm.appendix.cohorts import COHORT_TABLES
from calibrant.bench.replayscm.appendix.contrasts import APPENDIX_IDS, appendix_makers
from calibrant.bench.replayscm.appendix.facts import PoolFacts, construction_table
from calibrant.bench.replayscm.appendix.metrics import depths, reference_overlap
from calibrant.bench.replayscm.paper import paper, printed_table
from calibrant.bench.report.layout import Source
from calibrant.bench.report.rows import Row
from calibrant.dsl.errors import CalibrantError
from calibrant.dsl.formulas.text import parse
from calibrant.dsl.replayscm.item import Pool
from calibrant.dsl.replayscm.pools.files import read_pool
from calibrant.dsl.replayscm.scm import Scm
from calibrant.dsl.replayscm.score import Evaluator
from tests.support.report_rows import INVALID, Answers, answer, ours, rows_of
from tests.support.shared import shared_file, shared_json

DASH = "\N{EN DASH}"
NUM = 8
SPECS = {spec.id: spec for spec in appendix.APPENDIX_SPECS}
OUR_KEYS = {
    ("G.4", "parent_f1"): "reference_f1",
    ("G.4", "parent_map_exact"): "reference_map_exact",
    ("G.4", "local_match"): "reference_match",
}  # against the reference, not against gold


def structured(train: float, heldout: float, f1: float, shd: int, local: float) -> dict[str, Any]:
    """Return a valid answer with structure metrics; its parents are gold's iff f1 is 1."""
    structure = {"f1": f1, "shd": shd, "local_match": local, "exact_map": f1 == 1, "recall": f1, "variable_exact": f1}
    return answer(train, heldout) | {"structure": structure}


def levels_of(system: str = "m", num_extra: int = NUM) -> list[Row]:
    """Ordered: 4 exact, 3 alternatives, 1 miss. Ord-Ext: 6 exact, 1 alternative, 1 invalid, over the same problems."""
    gold, other, miss = structured(1, 1, 1, 0, 1), structured(1, 0.5, 0.5, 4, 0.5), structured(0.5, 0.25, 0.5, 6, 0.25)
    original = [gold] * 4 + [other] * 3 + [miss]
    extra = [gold] * 4 + [other] + [gold] * 2 + [INVALID]
    return rows_of(
        Answers(system, original, "Ordered", "p", is_run=False),
        Answers(system, extra[:num_extra], "Ord-Ext", "q", is_run=False),
    )


def test_stored_rows_are_the_printed_ones() -> None:
    published = shared_json("replayscm_paper_rows_rest.json", part="family")["tables"]
    assert set(published) <= set(paper().tables)
    for number, expected in published.items():
        table = printed_table(number)
        assert table is not None
        assert table.columns == [OUR_KEYS.get((number, key), key) for key in expected["columns"]], number
        of_hidden_roots = number.startswith(("G.6", "G.7", "G.8"))  # where the paper's tables have no setting
        assert table.rows == [["Hid-Roots", *row] if of_hidden_roots else row for row in expected["rows"]], number


def test_every_appendix_table_has_a_maker_and_every_column_of_ours_is_a_printed_one() -> None:
    figures = appendix_makers([], PoolFacts(), [], with_paper=True)
    assert set(APPENDIX_IDS) - set(figures) == set(COHORT_TABLES)
    for spec in appendix.APPENDIX_SPECS:
        table = printed_table(spec.id)
        assert table is not None
        assert [heading.key for heading in spec.headings] == [key for key in table.columns if key != "n"], spec.id


def test_printed_joint_success_is_the_mean_over_known_pairs_and_open_ended_items() -> None:
    by_source, panel = printed_table("G.2"), printed_table("3A")
    assert by_source is not None
    assert panel is not None
    rated = [row for row in by_source.rows if row[4] not in ("*", DASH)]
    joint = {(row[0], row[1], row[2]): (int(row[3]), float(row[4])) for row in rated}
    compared = 0
    for setting, system, _, all_joint, left_out, *_ in panel.rows:
        parts = [joint[setting, system, name] for name in ("KP-all", "OE") if (setting, system, name) in joint]
        if sum(number for number, _ in parts) == 100:
            assert sum(n * rate for n, rate in parts) / 100 == pytest.approx(float(all_joint), abs=0.001)
            compared += 1
        if (setting, system, "OM-src") in joint:
            assert f"{joint[setting, system, 'OM-src'][1]:.3f}" == left_out
    assert compared == 18


# --- levels -----------------------------------------------------------------------------------------------------------


def test_levels_stand_side_by_side_over_the_problems_that_all_have() -> None:
    (figures,) = ours(appendix.REPLAY_BY_LEVEL.make(levels_of(), with_paper=False))
    assert (figures["train_exact_original"], figures["train_exact_extra_worlds"]) == ("0.875", "0.875")
    assert figures["heldout_world_original"] == "0.719"  # (4 + 1.5 + 0.25) / 8
    assert figures["heldout_world_extra_worlds"] == "0.929"  # 6.5 over the 7 valid ones
    assert figures["train_exact_counterexample_audit"] == DASH
    (fewer,) = ours(appendix.REPLAY_BY_LEVEL.make(levels_of(num_extra=7), with_paper=False))
    assert (fewer["n"], fewer["train_exact_original"]) == ("7", "1.000")  # the miss is not among the seven
    assert appendix.REPLAY_BY_LEVEL.make(levels_of()[:1], with_paper=False) is None


def test_the_matrix_has_a_row_for_each_group_of_pools_about_the_same_problems() -> None:
    """Two pools of one setting: the other's problems are no problems of Ord-Ext."""
    gold = structured(1, 1, 1, 0, 1)
    others = rows_of(Answers("m", [gold] * 3, "Ordered", "r", is_run=False, suffix="-other"))
    for rows in ([*others, *levels_of()], [*levels_of(), *others]):
        (figures,) = ours(appendix.TRAIN_EXACT_MATRIX.make(rows, with_paper=False))
        assert (figures["n"], figures["Ord-Match"]) == (str(NUM), "0.875")


def test_lines_of_one_system_name_their_pools() -> None:
    gold = structured(1, 1, 1, 0, 1)
    sides = (("Ordered", "r"), ("Ord-Ext", "s"))
    others = rows_of(
        *(Answers("m", [gold] * 3, setting, pool, is_run=False, suffix="-other") for setting, pool in sides)
    )
    one = rows_of(*(Answers("n", [gold] * 3, setting, pool, is_run=False, suffix="-other") for setting, pool in sides))
    lines = ours(appendix.TRAIN_EXACT_MATRIX.make([*levels_of(), *others, *one], with_paper=False))
    assert [(line["system"], line["n"]) for line in lines] == [("m (p, q)", str(NUM)), ("m (r, s)", "3"), ("n", "3")]


def test_differences_are_over_problems_with_a_valid_answer_on_both_sides() -> None:
    (figures,) = ours(appendix.PARENT_DIFFERENCES.make(levels_of(), with_paper=False))
    assert (figures["pair"], figures["n"]) == ("Ord-Ext - Ordered", "7")
    assert figures["parent_shd_difference"] == "-1.14"  # 4 less on two of seven
    assert figures["parent_map_exact_difference"] == "+0.286"
    (figures,) = ours(appendix.MECHANISM_DIFFERENCES.make(levels_of(), with_paper=False))
    assert (figures["local_match_difference"], figures["heldout_world_difference"]) == ("+0.143", "+0.143")


def test_alternatives_before_and_after_and_among_problems_solved_twice() -> None:
    (figures,) = ours(appendix.ALTERNATIVES_BEFORE_AND_AFTER.make(levels_of(), with_paper=False))
    assert (figures["train_exact_original"], figures["train_exact_extra_worlds"]) == ("7", "7")
    assert (figures["alternative_original"], figures["alternative_given_train_exact_original"]) == ("0.375", "0.429")
    assert (figures["alternative_extra_worlds"], figures["alternative_difference"]) == ("0.125", "-0.250")
    (figures,) = ours(appendix.ALTERNATIVES_SOLVED_ON_BOTH_SIDES.make(levels_of(), with_paper=False))
    assert (figures["solved_both"], figures["alternatives_original"], figures["alternatives_extra_worlds"]) == (
        "7",
        "3",
        "1",
    )
    assert figures["difference"] == "-0.286"
    (few,) = ours(appendix.ALTERNATIVES_SOLVED_ON_BOTH_SIDES.make(levels_of(num_extra=5), with_paper=False))
    assert (few["solved_both"], few["alternative_rate_original"], few["difference"]) == ("5", "*", "*")


def test_printed_rows_of_matched_settings_follow_ours() -> None:
    table = appendix.REPLAY_BY_LEVEL.make(levels_of(), with_paper=True)
    assert table is not None
    printed = [row for row in table.rows if row.source is Source.PAPER]
    assert {row.labels[0] for row in printed} == {"Ord-Match"}
    assert len(printed) == 9
    assert printed[0].labels == ("Ord-Match", "GPT-5.4", "paper", "100")
    assert [cell.text for cell in printed[0].cells] == ["0.580", "0.748", "0.630", "0.880", "0.530", "0.848"]
    table = appendix.PARENT_DIFFERENCES.make(levels_of(), with_paper=True)
    assert table is not None
    first = next(row for row in table.rows if row.source is Source.PAPER)
    assert first.labels[0] == "Ord-Ext - Ord-Match"
    assert (first.cells[0].text, first.cells[0].low, first.cells[0].high) == ("-0.82", "-1.27", "-0.40")


# --- cohorts ----------------------------------------------------------------------------------------------------------


def two_cohorts() -> list[Row]:
    """Return base (TrainWorld 0.75, HeldoutWorld 0.5) and a later cohort with one of four half as good."""
    base, good = answer(0.75, 0.5), answer(1, 1)
    later = [good] * 6 + [answer(0.5, 0)] * 2
    return rows_of(Answers("m", [base] * NUM, "Ordered", "p"), Answers("m", later, "Ordered", "q"))


def test_cohorts_are_compared_without_pairing_and_retention_is_a_ratio_of_means() -> None:
    rows = two_cohorts()
    listed = cohorts.find_cohorts(rows, [("base", "digest of p"), ("later", "digest of q")])
    base, later = ours(cohorts.cohort_table(listed, "F.3", with_paper=False))
    assert (base["train_world"], base["heldout_world"], base["retention"]) == ("0.750", "0.500", "0.667")
    assert (later["train_world"], later["heldout_world"]) == ("0.875", "0.750")
    assert later["retention"] == "0.857"  # .75 / .875, not the mean of 1 and 0
    (difference,) = ours(cohorts.cohort_table(listed, "F.4", with_paper=False))
    assert difference["comparison"] == "later - base"
    assert (difference["heldout_world_difference"], difference["gap_difference"]) == ("+0.250", "-0.125")
    low, high = (float(end) for end in difference["heldout_world_difference interval"].strip("[]").split(", "))
    assert low < 0.25 < high  # the later cohort varies
    (by_system,) = ours(cohorts.cohort_table(listed, "F.5", with_paper=False))
    assert (by_system["system"], by_system["retention_difference"]) == ("m", "+0.190")


def test_a_cohort_without_answers_and_a_text_that_is_no_cohort_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CalibrantError, match="--cohort other: no answers to that pool"):
        cohorts.find_cohorts(two_cohorts(), [("other", "no such digest")])
    for text in ("base", "=pool.jsonl", "base=", f"base={tmp_path / 'none.jsonl'}"):
        with pytest.raises(CalibrantError, match="--cohort"):
            cohorts.parse_cohorts([text])


def test_bins_of_kill_coverage_have_their_own_problems() -> None:
    (row,) = rows_of(Answers("m", [answer(1, 1)] * 6 + [answer(0.5, 0.25)] * 6, "Ordered", "p"))
    kills = {item: 0.4 if int(item[1][1:]) < 6 else 0.8 for item in row.items}
    low, high = ours(cohorts.by_kill_coverage([row], kills, with_paper=False))
    assert (low["n"], low["heldout_world"], low["retention"]) == ("6", "1.000", "1.000")
    assert (high["n"], high["heldout_world"], high["heldout_world_given_train_exact"]) == ("6", "0.250", DASH)


# --- Alternative-SCM --------------------------------------------------------------------------------------------------


def alternative(joint: bool, changed: Sequence[int] = (0, 1, 0), same: Sequence[int] = (0, 0, 0)) -> dict[str, Any]:
    overlap = {"f1": 0.9, "exact_map": not sum(changed), "local_match": 0.8, "variables": [2, 2, 1]}
    overlap |= {"changed_parents": [*changed], "changed_function": [*same]}
    flags = dict.fromkeys(("jointSuccess", "altSuccess", "witnessValid", "pairSeparates"), joint)
    return {"valid": True, "experimentValid": True, "overlap": overlap, **flags}


def alternatives() -> tuple[list[Row], dict[tuple[str, str], frozenset[str]]]:
    """Twelve items, of eight an alternative is known, two of these from an answer of m; m solves the last nine."""
    scores = [alternative(i >= 3, *(((0, 0, 0), (0, 0, 1)) if i % 2 else ((0, 1, 0), (0, 0, 0)))) for i in range(12)]
    source = [answer(1, 1)] * 4 + [answer(0.5, 0.5)] * 8
    rows = rows_of(
        Answers("m", scores, "Alt-Ordered", "a", is_run=False, suffix="__ALT_EXP"),
        Answers("m", source, "Ordered", "p", is_run=False),
    )
    (row,) = (row for row in rows if row.setting == "Alt-Ordered")
    items = sorted(row.items, key=lambda item: int(item[1][1:].removesuffix("__ALT_EXP")))
    return rows, {item: frozenset({"m"} if k < 2 else {"other"}) for k, item in enumerate(items[:8])}


def test_joint_success_by_where_the_alternative_is_from_and_without_the_models_own() -> None:
    rows, sources = alternatives()
    facts = PoolFacts(sources=sources)
    figures = {line["origin"]: line for line in ours(appendix.BY_SOURCE.make(rows, facts, with_paper=False))}
    assert {name: line["n"] for name, line in figures.items()} == {
        "KP-all": "8",
        "OM-src": "6",
        "SM-src": "2",
        "OE": "4",
    }
    assert {name: line["joint"] for name, line in figures.items()} == {
        "KP-all": "0.625",
        "OM-src": "0.833",
        "SM-src": "0.000",
        "OE": "1.000",
    }
    (panel,) = ours(appendix.SUPPLIED_REFERENCE.make(rows, facts, with_paper=False))
    assert (panel["paired_train_correct"], panel["alt_scm_joint"]) == ("0.333", "0.750")
    assert panel["joint_leave_model_out"] == "0.833"
    (unknown,) = ours(appendix.SUPPLIED_REFERENCE.make(rows, with_paper=False))
    assert unknown["joint_leave_model_out"] == DASH  # without the pool's file nobody knows


def test_success_given_that_the_paired_task_failed() -> None:
    (figures,) = ours(appendix.AGAINST_PAIRED_TASK.make(alternatives()[0], with_paper=False))
    assert (figures["pair"], figures["paired_train_correct"]) == ("Ordered -> Alt-Ordered", "0.333")
    assert figures["alt_scm_joint_given_paired_failure"] == "1.000"  # the eight from the fifth on
    table = appendix.AGAINST_PAIRED_TASK.make(alternatives()[0], with_paper=True)
    assert table is not None
    assert sum(row.source is Source.PAPER for row in table.rows) == 9


def test_edits_by_kind_and_by_depth_over_successful_alternatives() -> None:
    rows, _ = alternatives()
    (row,) = (row for row in rows if row.setting == "Alt-Ordered")
    (figures,) = ours(appendix.REFERENCE_OVERLAP.make([row], with_paper=False))
    assert (figures["num_valid"], figures["num_success"], figures["one_variable"]) == ("12", "9", "1.000")
    assert figures["one_variable_changed_parents"] == "0.444"  # items 4, 6, 8, 10 of nine
    by_depth = {line["depth"]: line for line in ours(cohorts.by_depth(rows, "A", with_paper=False))}
    assert {depth: line["num_variables"] for depth, line in by_depth.items()} == {"1": "18", "2": "18", "3+": "9"}
    assert (by_depth["2"]["structure_and_mechanism"], by_depth["2"]["mechanism_only"]) == ("0.222", "0.000")
    assert (by_depth["3+"]["structure_and_mechanism"], by_depth["3+"]["mechanism_only"]) == ("0.000", "0.556")
    shares = {line["depth"]: line["share_of_changed"] for line in ours(cohorts.by_depth(rows, "B", with_paper=False))}
    assert shares == {"1": "0.000", "2": "0.444", "3+": "0.556"}


def test_depth_is_one_more_than_the_deepest_functional_parent() -> None:
    """D mentions C without depending on it; E has depth 3 through C."""
    texts = {"B": "(not A)", "C": "(or A B)", "D": "(and A (or C (not C)))", "E": "(xor B C)"}
    assert depths(Scm(("A",), {v: parse(text) for v, text in texts.items()})) == {"B": 1, "C": 2, "D": 1, "E": 3}


def test_official_records_state_sources_and_coverage_and_answers_their_overlap() -> None:
    pool = read_pool(shared_file("official_sample.runtime.yaml"))
    first = pool.problems[0]
    assert first.sealed.labels["kill_coverage"] == "0.4"
    assert "gpt-5.4" in json.loads(first.sealed.labels["alternative_sources"])
    assert first.task.reference is not None
    assert reference_overlap(Evaluator(first).score_answer({})) is None
    for result in first.results():
        overlap = reference_overlap(Evaluator(first).score_answer(result.extracted_answer))
        assert overlap is not None
        assert sum(overlap.variables) == 5


# --- Hidden-roots -----------------------------------------------------------------------------------------------------


def test_failures_are_counted_given_exact_roots_and_rates_given_wrong_ones() -> None:
    def roots(exact: bool, train: float, heldout: float) -> dict[str, Any]:
        scored = answer(train, heldout) | {"rootSetExact": exact}
        return scored | {"mechanismTrainExact": train == 1, "mechanismHeldoutExact": train == 1 and heldout == 1}

    scores = [roots(True, 1, 1)] * 2 + [roots(True, 1, 0.5)] * 3 + [roots(True, 0.5, 0)] * 4
    scores += [roots(False, 1, 1)] + [roots(False, 0.5, 0.25)] * 5 + [INVALID | {"rootSetExact": True}]
    (row,) = rows_of(Answers("m", scores, "Hidden-roots"))
    (figures,) = ours(SPECS["G.7B"].make([row], with_paper=False))
    assert (figures["num_train_failures"], figures["num_heldout_failures"]) == (
        "5",
        "3",
    )  # the invalid one fits nothing
    assert figures["train_exact_given_root_wrong"] == "0.167"
    assert figures["heldout_world_given_root_wrong"] == "0.375"  # (1 + 5 / 4) / 6
    (figures,) = ours(SPECS["G.8A"].make([row], with_paper=False))
    assert (figures["root_exact"], figures["num_root_exact_valid"]) == ("0.625", "9")
    (figures,) = ours(SPECS["G.8B"].make([row], with_paper=False))
    assert figures["train_exact_given_root_exact_valid"] == "0.556"
    assert figures["heldout_world_given_root_exact_train_exact"] == "*"  # five of them


# --- construction, and the command ------------------------------------------------------------------------------------


def hardened(pool: Pool, mode: str) -> Pool:
    """Return the pool as hardened without a world added."""
    return replace(pool, metadata={"hardened": {"mode": mode}})


def test_levels_of_pools_are_counted_in_the_pools() -> None:
    pool = read_pool(shared_file("pool_dev_t1_ordered.runtime.yaml"))
    small = Pool("p", pool.problems[:2])
    first, second = small.problems
    training = first.task.training
    fewer = replace(training, worlds=training.worlds[:-1])
    before = Pool("p", (replace(first, task=replace(first.task, training=fewer)), second))
    table = construction_table({"a": before, "b": hardened(small, "extra-worlds")}, with_paper=False)
    figures = {line["statistic"]: line for line in ours(table)}
    numbers = [len(problem.task.training.worlds) for problem in small.problems]
    added = figures["worlds added per problem by Extra Worlds, mean (range)"]
    assert (added["original"], added["extra_worlds"]) == (DASH, "0.50 (0-1)")
    final = figures["final training worlds per problem, mean (range)"]["extra_worlds"]
    assert final == f"{sum(numbers) / 2:.2f} ({min(numbers)}-{max(numbers)})"
    assert construction_table({"a": before}, with_paper=False) is None


def test_a_hardened_pools_rows_are_of_its_level() -> None:
    facts = PoolFacts({"d": hardened(Pool("p", ()), "cex"), "e": Pool("q", ())})
    assert facts.setting("d", "Hidden-order") == "Hid-CEx"
    assert facts.setting("d", "Block") == "Block"
    assert facts.setting("e", "Hidden-order") == "Hidden-order"
