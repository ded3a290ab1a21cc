"""Which of the paper's printed statistics its own counts refute."""

from __future__ import annotations

import pytest

from calibrant.audits.blickets import printed
from calibrant.audits.blickets.printed import (
    PrintedTest,
    Sides,
    Switched,
    TwoByTwo,
    cochran_mantel_haenszel,
    cohens_h,
    firings_outside_eligible,
    misprinted_tests,
    odds_ratio,
    posterior_odds_finding,
    rounds_to,
)
from calibrant.audits.claims import ClaimStatus
from calibrant.bench.blickets.paper import paper
from calibrant.bench.lab.blickets import main, paper_findings
from tests.support.packages import needs
from tests.support.shared import shared_json

needs("scipy", "statsmodels")


def test_three_one_sided_values_stand_under_a_two_sided_heading() -> None:
    findings = list(misprinted_tests((test.test for test in paper().tests), paper().source))
    assert [(f.data["printed"], round(float(f.data["two_sided"]), 4)) for f in findings] == [
        (".003", 0.0064),
        (".159", 0.3178),
        (".276", 0.552),
    ]
    assert all(f.kind == "misprint" and f.verdict is ClaimStatus.PROVED for f in findings)
    assert findings[0].claim == "p = .003, printed as two-sided, is the one-sided value; two-sided it is 0.0064"
    assert findings[0].where.endswith("arXiv:2604.20039: hard exactly-N, CG against CG+DB")


def test_a_value_that_is_neither_is_told_so() -> None:
    wrong = PrintedTest("made up", TwoByTwo(3, 1, 1, 3), ".300", Sides.TWO)
    (finding,) = misprinted_tests([wrong], "a test")
    assert "neither the one-sided nor the two-sided" in finding.claim


def test_the_printed_odds_are_not_those_of_the_printed_formula() -> None:
    printed = paper().posterior_odds
    finding = posterior_odds_finding(printed.name, TwoByTwo(*printed.counts), printed.odds, paper().source)
    assert finding.verdict is ClaimStatus.PROVED
    assert finding.claim == "printed odds of 100.4 are P/(1-P) = 100.6, not the 2P/(1-P) = 201.2 of the formula"
    other = posterior_odds_finding(printed.name, TwoByTwo(*printed.counts), "201.0", paper().source)
    assert other.verdict is ClaimStatus.REFUTED


def test_every_other_printed_statistic_agrees_with_its_counts() -> None:
    for test in paper().tests:
        counts = TwoByTwo(*test.counts)
        if test.h:
            rates = counts.yes / (counts.yes + counts.no), counts.other_yes / (counts.other_yes + counts.other_no)
            assert rounds_to(cohens_h(*rates), test.h)
        if test.odds_ratio:
            assert all(map(rounds_to, odds_ratio(counts), test.odds_ratio))
    stratified = cochran_mantel_haenszel(TwoByTwo(*stratum) for stratum in paper().stratified.strata)
    assert rounds_to(stratified.p, paper().stratified.p)
    assert all(map(rounds_to, stratified.odds_ratio, paper().stratified.odds_ratio))


@pytest.mark.parametrize(
    ("value", "printed", "expected"), [(0.0376, ".038", True), (0.0374, ".038", False), (1.0, "1.000", True)]
)
def test_a_value_is_compared_to_as_many_decimals_as_are_printed(value: float, printed: str, expected: bool) -> None:
    assert rounds_to(value, printed) is expected


# --- measures that mislead --------------------------------------------------------------------------------------------


def _not_in_the_paper() -> dict[str, float]:
    """Two-sided values over all switched episodes, from the shared file."""
    rows = shared_json("blickets_paper_rows.json", part="family")
    found = {test["name"]: test["two_sided"] for test in rows["tests"] if test["name"].startswith("all switched")}
    return {name.partition(", ")[2].partition(" (")[0]: value for name, value in found.items()}


def test_who_stopped_at_n_decides_two_of_three_comparisons() -> None:
    from scipy.stats import fisher_exact  # a second, which every process that collects would take

    findings = {f.where.rpartition("Table 6, ")[2]: f for f in paper_findings() if f.kind == "self-selected"}
    assert {name: round(float(f.data["switched"]), 4) for name, f in findings.items()} == _not_in_the_paper()
    assert {name: (round(float(f.data["eligible"]), 4), f.verdict) for name, f in findings.items()} == {
        "CG against Base": (0.0379, ClaimStatus.PROVED),
        "CG+DB against CG": (1.0, ClaimStatus.PROVED),
        "CG+DB against Base": (round(fisher_exact([[41, 2], [22, 8]]).pvalue, 4), ClaimStatus.REFUTED),
    }
    assert findings["CG against Base"].claim.endswith("switched (31 of 47 against 22 of 37)")


def test_two_firings_at_n_5_lie_outside_the_class_that_is_to_judge_them() -> None:
    (finding,) = (f for f in paper_findings() if f.kind == "evidence-at-n")
    assert finding.verdict is ClaimStatus.PROVED
    assert finding.data == {"false_firings": 2, "eligible": 19, "eligible_correct": 19}
    some_wrong = Switched(50, 42, 19, 18, 8)
    assert firings_outside_eligible("made up", 2, some_wrong, "a test").verdict is ClaimStatus.OPEN
    assert firings_outside_eligible("made up", 0, Switched(50, 42, 19, 19, 8), "a test").verdict is ClaimStatus.REFUTED


def test_full_accuracy_at_n_5_is_that_of_answers_before_the_change() -> None:
    found = {f.where.rpartition(", ")[2]: f for f in paper_findings() if f.kind == "gameable"}
    assert {agent: f.verdict for agent, f in found.items()} == {
        "Base": ClaimStatus.PROVED,
        "CG": ClaimStatus.REFUTED,
        "CG+DB": ClaimStatus.REFUTED,
    }
    assert found["Base"].claim == "50 of 50 answers are correct, and 47 were given before the rule changed"


def test_the_command_lists_all_findings_about_the_paper(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["findings"]) == 0
    kinds = [line.partition(",")[0] for line in capsys.readouterr().out.splitlines()]
    assert kinds == ["misprint"] * 5 + ["contradiction"] + ["self-selected"] * 3 + ["evidence-at-n"] + ["gameable"] * 3


def test_without_the_library_the_command_says_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def missing(name: str) -> object:
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(printed, "import_module", missing)
    assert main(["findings"]) == 2
    assert capsys.readouterr() == (
        "",
        "bench.lab.blickets: scipy is missing; run: pip install 'calibrant[statistics]'\n",
    )
