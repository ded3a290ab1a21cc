"""Which of the paper's printed statistics its own counts refute."""

from __future__ import annotations

import pytest

from audits.blickets.printed import PrintedTest, Sides, misprinted_tests, posterior_odds_finding, rounds_to
from audits.blickets.statistics import TwoByTwo, cochran_mantel_haenszel, cohens_h, odds_ratio
from audits.finding import Standing
from bench.blickets.paper import paper


def test_three_one_sided_values_stand_under_a_two_sided_heading() -> None:
    findings = list(misprinted_tests((test.test for test in paper().tests), paper().source))
    assert [(f.data["printed"], round(float(f.data["two_sided"]), 4)) for f in findings] == [
        (".003", 0.0064),
        (".159", 0.3178),
        (".276", 0.552),
    ]
    assert all(f.kind == "misprint" and f.verdict is Standing.PROVED for f in findings)
    assert findings[0].claim == "p = .003, printed as two-sided, is the one-sided value; two-sided it is 0.0064"
    assert findings[0].where.endswith("arXiv:2604.20039: hard exactly-N, CG against CG+DB")


def test_a_value_that_is_neither_is_told_so() -> None:
    wrong = PrintedTest("made up", TwoByTwo(3, 1, 1, 3), ".300", Sides.TWO)
    (finding,) = misprinted_tests([wrong], "a test")
    assert "neither the one-sided nor the two-sided" in finding.claim


def test_the_printed_odds_are_not_those_of_the_printed_formula() -> None:
    printed = paper().posterior_odds
    finding = posterior_odds_finding(printed.name, TwoByTwo(*printed.counts), printed.odds, paper().source)
    assert finding.verdict is Standing.PROVED
    assert finding.claim == "printed odds of 100.4 are P/(1-P) = 100.6, not the 2P/(1-P) = 201.2 of the formula"
    other = posterior_odds_finding(printed.name, TwoByTwo(*printed.counts), "201.0", paper().source)
    assert other.verdict is Standing.REFUTED


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
