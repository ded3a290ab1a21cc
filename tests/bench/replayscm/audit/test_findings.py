"""What an audit finds in X3 = X1 and X2, worked out by hand; and on a generated pool, by the enumeration of members.

With the rows 00 and 10 shown, four functions fit: 0 (xor X1 X1, size 3), X2 (size 1), X1 and X2 (size 3), and X2
without X1 (size 4). Weights of 2**-size are 2, 8, 2 and 1 sixteenths. The held-out worlds show all four rows.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from fractions import Fraction
from itertools import product
from pathlib import Path
from random import Random
from typing import Any
from xml.etree import ElementTree

import pytest

from calibrant.audits.replayscm.bounded import pattern_coverage
from calibrant.audits.replayscm.items import AuditOptions, audit_instance
from calibrant.baselines.replayscm.posterior.choice import certified_member
from calibrant.baselines.replayscm.posterior.posterior import Posterior
from calibrant.bench.cli import main
from calibrant.bench.core.registry import bundled_pool
from calibrant.bench.replayscm.audit import ScmAudit, audit_pool
from calibrant.bench.replayscm.audit.extended import calibration
from calibrant.bench.replayscm.audit.page import reliability_diagram
from calibrant.bench.replayscm.audit.records import NUM_DRAWS, BehaviourReplay, generator_ceiling
from calibrant.bench.replayscm.audit.text import calibration_text
from calibrant.bench.runs.audits import timed_audit
from calibrant.bench.runs.records import Record, RunFile, Timing
from calibrant.dsl.formulas.formula import var
from calibrant.dsl.formulas.reference import evaluate
from calibrant.dsl.formulas.text import Grammar, parse
from calibrant.dsl.records import file_digest
from calibrant.dsl.replayscm.disclosure import HiddenOrder
from calibrant.dsl.replayscm.item import Problem
from calibrant.dsl.replayscm.pools.files import read_pool
from calibrant.dsl.replayscm.scm import scm
from calibrant.dsl.replayscm.world import Panel
from tests.support.commands import called, refused
from tests.support.replayscm.brute_force import replay
from tests.support.replayscm.pools import (
    ALL_ROWS,
    FOUR_MEMBERS,
    TWO_MEMBERS,
    audited,
    dev_problems,
    with_a_wide_gold,
    written_pool,
)
from tests.support.replayscm.written import written_problem, written_world

EVIDENCE = [ALL_ROWS, TWO_MEMBERS, FOUR_MEMBERS]
MEMBERS = ("0000", "0011", "0001", "0010")  # values in the rows 00, 10, 01, 11; gold is the third

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written_pool(tmp_path_factory.mktemp("evidence") / "small.jsonl", EVIDENCE)


@pytest.fixture(scope="module")
def findings(pool: Path) -> list[dict[str, Any]]:
    done = called("audit", pool, "--json", "--workers", "1")
    return [record["findings"] for record in json.loads(done.stdout)["instances"]]


def test_draws_and_ceilings_by_hand(findings: list[dict[str, Any]]) -> None:
    by_size = [Fraction(1), Fraction(1, 2), Fraction(2, 13)]  # gold against 0, both of size 3; then of 2, 8, 2 and 1
    best = [Fraction(1), Fraction(1, 2), Fraction(8, 13)]
    for found, uniform, weighed, most in zip(findings, (1.0, 0.5, 0.25), by_size, best, strict=True):
        assert [(draw["size_penalty"], draw["probability"]) for draw in found["draws"]] == [
            (None, uniform),
            (None, uniform),
            (1, float(weighed)),
        ]
        plain, sized = found["ceilings"]
        assert (plain["lower"], plain["upper"], plain["exact"], plain["size_penalty"]) == (uniform, uniform, True, None)
        assert (sized["lower"], sized["upper"], sized["exact"], sized["size_penalty"]) == (*[float(most)] * 2, True, 1)
    assert findings[0]["ceilings"][0]["realised"] is True
    assert findings[2]["ceilings"][1]["realised"] is False  # the best answer by size is X2, and gold is not


def test_every_capped_class_holds_the_members(findings: list[dict[str, Any]]) -> None:
    """All four functions have formulas of at most 4 nodes, so no cap leaves one out."""
    for found, members in zip(findings, ("1", "2", "4"), strict=True):
        assert {one["members"] for one in found["capped"]} == {members}
        shapes = {(one["max_parents"], one["max_size"]) for one in found["capped"]}
        assert shapes == {*product((2, 3, 4), (15,)), *product((2, 3, 4, 5), (11,)), *product((2, 3, 4, 5, 6), (9,))}


def test_bounded_searches_say_budget_flag_and_exact_number(findings: list[dict[str, Any]]) -> None:
    for found, members in zip(findings, (1, 2, 4), strict=True):
        bounded = found["bounded"]
        assert bounded["budgets"]["stronger"] == {"slack": 4, "cap": 10, "states_per_size": 80_000}
        assert bounded["budgets"]["pairs"]["upstream_alternatives"] == 5
        for search in ("local", "stronger", "pairs", "shortcuts"):
            assert all({"budget_hit", "exact"} <= finding.keys() for finding in bounded[search])
        assert [(f["found"], f["budget_hit"], f["exact"]) for f in bounded["local"]] == [
            (members - 1, False, str(members - 1))
        ]
        assert bounded["pairs"] == bounded["shortcuts"] == []  # no edge between two mechanisms; gold has size 3


def test_the_best_split_is_what_its_rows_make_of_the_members(findings: list[dict[str, Any]]) -> None:
    assert findings[0]["split"] is None
    for found, members in zip(findings[1:], (MEMBERS[::2], MEMBERS), strict=True):
        split = found["split"]
        assert "X3" not in split["targets"]
        assert set(split["columns"]) == {"X1", "X2"}
        outcomes = [tuple(member[int(row[0]) + 2 * int(row[1])] for row in split["rows"]) for member in members]
        left = sum(Fraction(outcomes.count(outcome), len(members)) ** 2 for outcome in set(outcomes))
        assert split["removed"] == [float(1 - left)] * 2
        gold = outcomes[len(members) // 2]
        assert split["removed_from_gold"] == float(1 - Fraction(outcomes.count(gold), len(members)))
        assert split["removed"][0] == 1 - 1 / len(members)  # no world can do better


def test_coverage_of_the_evidence_is_that_of_the_patterns(findings: list[dict[str, Any]]) -> None:
    assert [found["coverage"] for found in findings] == [
        {"seen": seen, "total": 4, "by_variable": {"X3": [seen, 4]}} for seen in (4, 3, 2)
    ]
    problem = read_pool(bundled_pool("hidden-order")).problems[0]
    found = audit_instance(problem, AuditOptions()).coverage
    assert found is not None
    assert Fraction(found.seen, found.total) == pattern_coverage(problem).share


def test_survivors_are_separated_by_any_targets(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Recomputed: every set of targets but X3 leaves rows on which the two differ; constants rate by enumeration."""
    (record,) = audited(capsys, written_pool(tmp_path / "four.jsonl", [FOUR_MEMBERS]))
    shown = record["findings"]["survivors"]
    grammar = read_pool(tmp_path / "four.jsonl").problems[0].task.grammar
    one, other = (parse(shown[name]["X3"], grammar) for name in ("one", "other"))
    rows = [{"X1": a, "X2": b} for a, b in product((0, 1), repeat=2)]
    differing = [row for row in rows if evaluate(one, row) != evaluate(other, row)]
    assert shown["separating_sets"] == {"0": 1, "1": 2, "2": 1}
    assert shown["targets"]["disagreement_rate"] == len(differing) / 4
    assert shown["targets"]["targets"] == []


def test_hidden_roots_are_split_by_what_gold_shows() -> None:
    problem = read_pool(bundled_pool("hidden-roots")).problems[0]
    found = audit_instance(problem, AuditOptions())
    assert found.ceilings
    assert found.split is not None
    assert (found.split.removed, found.split.estimate, found.split.standard_error) == (None, None, None)
    assert found.split.removed_from_gold is not None
    assert 0 < found.split.removed_from_gold < 1
    without = replace(problem, sealed=replace(problem.sealed, gold=None))
    told = audit_instance(without, AuditOptions())
    assert told.split is None
    assert "the roots are hidden" in told.left_out["split"]


def test_gold_outside_the_headline_class_widens_the_prior(pool: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for record in audited(capsys, pool, "--max-parents", "1"):
        assert {draw["in_words"].split(",")[0] for draw in record["findings"]["draws"]} == {"functional parents <= 2"}


# --- calibration and answers ------------------------------------------------------------------------------------------


def answers(folder: Path, pool: Path, protocol: str, exact: dict[int, bool]) -> Path:
    problems = read_pool(pool).problems
    with RunFile(folder) as file:
        for index, right in exact.items():
            one, score = problems[index], {"heldoutExact": right}
            place = "small", file_digest(pool), 3, index, one.id, one.setting, one.stratum
            file.append(Record(*place, protocol, {"k": 4}, "found", {}, 3, score, {}, "0", Timing(0.0, "")))
    return folder


def test_answers_are_compared_with_the_ceiling_of_the_same_instances(pool: Path, tmp_path: Path) -> None:
    """Ceilings are 1, 1/2 and 1/4: their mean over I0 and I2 is 5/8."""
    records = audit_pool(pool, tmp_path / "records", AuditOptions()).records
    folder = answers(tmp_path / "run", pool, "all", {0: True, 1: True, 2: False})
    answers(folder, pool, "two", {0: True, 2: False})
    found = calibration(records, [folder])
    number, lower, upper = found.means["uniform"]
    assert (number, lower) == (3, upper)
    assert upper == pytest.approx(1.75 / 3)
    priors = [(row.protocol, row.prior) for row in found.rows]
    assert priors == [(name, prior) for name in ("all", "two") for prior in found.means if (name, prior) in priors]
    first, _, second, sized = (row for row in found.rows if row.prior != "generator")
    assert (first.protocol, first.number, first.rate) == ("all", 3, 2 / 3)
    assert first.ceiling[1] == pytest.approx(1.75 / 3)
    assert (second.protocol, second.number, second.rate, second.ceiling) == ("two", 2, 0.5, (0.625, 0.625))
    assert second.below == 0.125
    assert sized.ceiling[1] == pytest.approx((1 + 8 / 13) / 2)
    assert found.reliability["uniform"].predicted == 1.75
    realised = [r.findings.ceilings[0].realised for r in records if r.findings]
    assert found.reliability["uniform"].realised == sum(map(bool, realised))
    text = calibration_text(found, 80)
    assert "ceiling, uniform: mean 0.583, of 3 instances (every member alike, as no pool is drawn; certified)" in text
    assert re.search(r"two \(k=4\)  uniform +2         0.500    0.625  \+0.125", text)


def test_calibration_is_in_json_and_in_the_report(
    pool: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = answers(tmp_path / "run", pool, "<b>mine</b>", {0: True, 2: False})
    page = tmp_path / "report.html"
    line = ["audit", str(pool), "--runs", str(folder), "--html", str(page), "--workers", "1"]
    assert main([*line, "--json"]) == 0
    made = json.loads(capsys.readouterr().out)["calibration"]
    assert made["ceilings"]["uniform"] == {"number": 3, "lower": pytest.approx(7 / 12), "upper": pytest.approx(7 / 12)}
    row, sized = (one for one in made["answers"] if one["prior"] != "generator")
    assert (row["prior"], sized["prior"]) == ("uniform", "by size")
    assert (row["rate"], row["ceiling"], row["below"]) == (0.5, [0.625, 0.625], 0.125)
    assert sum(one["number"] for one in made["reliability"]["by size"]["bins"]) == 3
    text = page.read_text(encoding="utf-8")
    assert "<td>&lt;b&gt;mine&lt;/b&gt; (k=4)</td>" in text
    assert "reliability diagram, by size" in text
    assert main(line) == 0
    assert page.read_text(encoding="utf-8") == text


def test_a_folder_without_answers_to_the_pool_is_refused(
    pool: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = written_pool(tmp_path / "other.jsonl", [ALL_ROWS])
    folder = answers(tmp_path / "run", other, "p", {0: True})
    assert "no answers to this pool's instances" in refused(capsys, "audit", pool, "--runs", folder, "--workers", "1")
    assert "no records.jsonl there" in refused(capsys, "audit", pool, "--runs", tmp_path / "none")


def test_marks_of_a_diagram_lie_where_their_bin_is(pool: Path, tmp_path: Path) -> None:
    found = calibration(audit_pool(pool, tmp_path / "records", AuditOptions()).records).reliability["uniform"]
    root = ElementTree.fromstring(reliability_diagram("uniform", found))
    (line,) = root.iter(f"{SVG}polyline")  # of right forecasts, from (0, 0) to (1, 1)
    (left, bottom), (right, top) = ([float(n) for n in pair.split(",")] for pair in line.get("points", "").split())
    marks, reaches = list(root.iter(f"{SVG}circle")), [m for m in root.iter(f"{SVG}line") if m.get("class") == "reach"]
    assert [float(mark.get("cx", "")) for mark in marks] == [
        pytest.approx(left + (right - left) * p, abs=0.1) for p in (0.25, 0.5, 1.0)
    ]
    for mark, reach, one in zip(marks, reaches, found.bins, strict=True):
        y = float(mark.get("cy", ""))
        assert y == pytest.approx(bottom + (top - bottom) * one.realised, abs=0.1)  # up is more
        assert float(reach.get("y2", "")) <= y <= float(reach.get("y1", ""))


def test_details_say_everything_in_plain_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pool = written_pool(tmp_path / "four.jsonl", [FOUR_MEMBERS])
    assert main(["audit", str(pool), "--details", "--workers", "1"]) == 0
    printed = capsys.readouterr().out
    for line in (
        "  members  4 with k<=4, formula sizes <= 15",
        "  a draw   0.154 held-out exact, by size: functional parents <= 4, formula size <= 15, Ordered",
        "  ceiling  0.25, if uniform: functional parents <= 4, any formula size, Ordered; the best answer is ",
        "  interventions  1 without, 0 constant, 0 assigned; targets: 1 with 0",
        "  coverage  2 of 4 local predecessor patterns",
        "  exposure  least for X3: 2 cells in 1 worlds",
        "  held-out novelty  0.000 to 1.000, mean 0.500",
        "  bounded  local alternatives: 3 found; 3 there are",
        "  bounded  shortcuts: none",
        "  separation  1 set of 0, 2 sets of 1, 1 set of 2; best: no intervention, ",
        "removes 0.7500 of the members, 0.7500 with gold's outcome; ",
    ):
        assert line in printed
    assert "With at most 4 functional parents, several SCMs fit 1 of 1 instance." in printed


def test_five_parents_have_a_ceiling_by_size_if_gold_is_small_enough() -> None:
    wide = {p.id: p for p in read_pool(bundled_pool("hidden-order")).problems}
    small = audit_instance(wide["CAL_vhs_n8_dense_20000001"], AuditOptions())
    uniform, by_size = small.ceilings
    assert "functional parents <= 5" in uniform.in_words
    assert "formula size <= 11" in by_size.in_words
    assert 0 < by_size.lower <= by_size.upper < 1
    large = audit_instance(wide["CAL_vhs_n9_dense_strict_20000001"], AuditOptions())
    assert len(large.ceilings) == 1
    assert large.left_out["ceiling by size"].startswith("the truth at X7 has no formula of 11 nodes")


def test_hidden_roots_are_split_in_text_and_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = bundled_pool("hidden-roots").read_text(encoding="utf-8").splitlines(keepends=True)
    pool, page = tmp_path / "roots.jsonl", tmp_path / "roots.html"
    pool.write_text("".join(lines[:2]), encoding="utf-8")
    assert main(["audit", str(pool), "--details", "--html", str(page), "--workers", "1"]) == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("  split  ")]
    assert " of the members with gold's outcome; " in line
    share = line.split(" removes ")[1].split(" ")[0]
    assert f"It removes {share} of them; members with other roots would copy" in page.read_text(encoding="utf-8")


def test_every_intervention_on_one_variable_is_looked_at() -> None:
    """In this instance do(X2 = 0) in all contexts removes 0.98 of the members, by enumeration; most worlds do not."""
    found = audit_instance(read_pool(bundled_pool("hidden-order")).problems[0], AuditOptions())
    assert found.split is not None
    assert found.split.removed is not None
    assert found.split.estimate is not None
    assert found.split.removed[0] <= 0.9816698615933642 <= found.split.removed[1]
    assert found.split.estimate > 0.95


def test_what_is_too_large_to_sum_over_is_out_of_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("calibrant.solvers.acyclic.count.MAX_TERMS", 1_000)
    names = tuple(f"X{i}" for i in range(1, 23))
    text = " ".join("".join(str(row >> i % 3 & 1) for i in range(22)) for row in range(4))
    gold = scm(names[:3], {names[i]: var(names[i % 3]) for i in range(3, 22)})
    problem = written_problem(HiddenOrder(names, names[:3]), gold, [written_world("w", " ".join(names), text)])
    record = timed_audit(ScmAudit(AuditOptions(max_parents=2, classes=(2,))).audit, "replayscm", problem)
    assert (record.outcome, record.result) == ("out_of_budget", None)
    assert record.error == "19 variables that may lie on a cycle together, in more than 1,000 partial orders"


# --- Which class a verdict is of, what passes the gate, and which instances are audited -------------------------------


def test_fail_on_ambiguous(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    unique = written_pool(tmp_path / "unique.jsonl", [ALL_ROWS])
    two = written_pool(tmp_path / "two.jsonl", [ALL_ROWS, TWO_MEMBERS])
    for pool, condition, code in [
        (unique, "ambiguous", 0),
        (two, "ambiguous", 1),
        (two, "ambiguous:k2", 1),
        (two, "ambiguous:parents<=6", 1),
        (two, "ambiguous:k1", 1),  # nothing fits all rows of the first
        (unique, "ambiguous:k1", 1),
    ]:
        assert main(["audit", str(pool), "--fail-on", condition, "--workers", "1"]) == code, condition
    for nonsense in ("ambiguous:", "ambiguous:k7", "ambiguous:4", "unique", "ambiguous:parents<4"):
        line = refused(capsys_after(capsys), "audit", unique, "--fail-on", nonsense)
        assert line.startswith(f"--fail-on '{nonsense}': it has to be ambiguous, ambiguous:k4 or")


@pytest.fixture
def gated_pool(tmp_path: Path) -> Path:
    return written_pool(tmp_path / "small.jsonl", [ALL_ROWS, TWO_MEMBERS, FOUR_MEMBERS])


@pytest.fixture
def wide(tmp_path: Path) -> Path:
    return with_a_wide_gold(tmp_path / "wide.jsonl")


def test_verdicts_are_of_the_smallest_class_with_gold(wide: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An empty class k <= 4 says nothing of an instance whose gold has five parents, and does not pass the gate."""
    records = audited(capsys, wide)
    assert [record["findings"]["headline"] for record in records] == [4, 4, 5]
    strict = {one["max_parents"]: int(one["members"]) for one in records[-1]["findings"]["classes"]}
    assert strict[4] == 0
    assert strict[5] > 1
    line = ["audit", str(wide), "--only", "CAL_vhs_n9_dense_strict_20000001", "--workers", "1"]
    assert main([*line, "--fail-on", "ambiguous"]) == 1
    printed = capsys.readouterr()
    assert "--fail-on: functional parents <= 5: 1 ambiguous, of 1 instance" in printed.err
    assert "ambiguous, k<=5" in printed.out
    for named in ("ambiguous:k4", "ambiguous:k2"):
        assert main([*line, "--fail-on", named]) == 1
        assert ": 1 empty, of 1 instance" in capsys.readouterr().err
    assert main([*line, "--max-parents", "4"]) == 0
    assert "empty, k<=4" in capsys.readouterr().out


def test_a_gate_in_a_class_where_every_instance_is_empty_fails(wide: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", str(wide), "--fail-on", "ambiguous:k1", "--workers", "1"]) == 1
    assert "--fail-on: functional parents <= 1: 3 empty, of 3 instances" in capsys.readouterr().err


def test_each_class_has_its_line_and_the_page_says_which_verdict_is_of_which(
    wide: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.html"
    assert main(["audit", str(wide), "--html", str(page), "--workers", "1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(
        line.startswith("With at most 4 functional parents, ") and line.endswith("of 2 instances.") for line in lines
    )
    assert "With at most 5 functional parents, several SCMs fit 1 of 1 instance." in lines
    text = page.read_text(encoding="utf-8")
    assert "functional parents &lt;= 4, any formula size, Hidden-order</b> (2 instances)" in text
    assert '"ambiguous, k ≤ 5"' in text


def test_only_and_limit_choose_what_is_audited(
    gated_pool: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = audited(capsys, gated_pool)
    assert audited(capsys, gated_pool, "--only", "I2", "--only", "I0") == [whole[0], whole[2]]
    assert audited(capsys, gated_pool, "--limit", "2") == whole[:2]
    folder = tmp_path / "certificates"
    assert main(["audit", str(gated_pool), "--only", "I1", "--certificates", str(folder), "--workers", "1"]) == 0
    assert [path.name for path in folder.iterdir()] == ["I1.json"]
    capsys.readouterr()
    assert "no instance 'I9'; known: 'I0', 'I1', 'I2'" in refused(capsys, "audit", gated_pool, "--only", "I9")


def capsys_after(capsys: pytest.CaptureFixture[str]) -> pytest.CaptureFixture[str]:
    """Return the fixture without what was printed so far."""
    capsys.readouterr()
    return capsys


# --- The ceiling under the generator's prior: what members do against the oracle, certainty, where it is left out -----


def bundled(setting: str) -> tuple[Problem, ...]:
    return tuple(read_pool(bundled_pool(setting)).problems)


@pytest.mark.parametrize("setting", ["ordered", "hidden-order", "hidden-roots"])
def test_what_a_member_does_is_what_the_reference_makes_of_it(setting: str) -> None:
    for problem in bundled(setting)[:3]:
        panel = problem.sealed.heldout
        replayed, posterior = BehaviourReplay(panel), Posterior(problem.task)
        rng = Random(1)
        members = [posterior.sample(rng) for _ in range(6)]
        for member, behaviour in zip(members, replayed.behaviours(members), strict=True):
            model = certified_member(problem.task, member)
            rows = [
                replay(model, world.intervention, row.__getitem__) for world in panel.worlds for row in world.rows()
            ]
            columns = [sum(row[v] << r for r, row in enumerate(rows)) for v in panel.variables]
            assert behaviour == (model.roots, *columns)


def test_where_all_draws_do_what_gold_does_the_ceiling_is_one() -> None:
    """With its held-out worlds among the training worlds nothing about them is open."""
    problem = bundled("hidden-order")[0]
    shown = Panel(problem.task.variables, problem.worlds)
    found = generator_ceiling(replace(problem, task=replace(problem.task, training=shown)))
    assert (found.probability, found.standard_error, found.realised) == (1.0, 0.0, True)
    assert found.draws == NUM_DRAWS


def test_it_is_the_same_every_time_and_says_why_it_is_left_out() -> None:
    problem = bundled("hidden-roots")[1]
    found = generator_ceiling(problem)
    assert found == generator_ceiling(problem)
    assert found.probability is not None
    assert 0 < found.probability <= 1
    constants = replace(problem, task=replace(problem.task, grammar=Grammar(allow_constants=True)))
    assert "standard operators" in generator_ceiling(constants).left_out
    bare = replace(problem, sealed=replace(problem.sealed, heldout=Panel(problem.task.variables, ())))
    assert generator_ceiling(bare).left_out == "there are no held-out worlds"
    unknown = replace(problem, sealed=replace(problem.sealed, gold=None))
    assert generator_ceiling(unknown).realised is None


def test_the_prior_predicts_how_often_its_best_answer_is_right() -> None:
    """Over development instances: realised within three standard errors of what was predicted."""
    found = [generator_ceiling(problem) for problem in dev_problems("hidden_order")[::4]]
    shares = [one.probability for one in found if one.probability is not None]
    realised = sum(bool(one.realised) for one in found)
    assert len(shares) == len(found)
    assert abs(realised - sum(shares)) < 3 * sum(share * (1 - share) for share in shares) ** 0.5
