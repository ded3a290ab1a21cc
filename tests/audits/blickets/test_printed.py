"""Which of the paper's printed statistics its own counts refute."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import islice
from math import asin, comb, factorial, isclose, sqrt
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrant.audits.blickets import printed
from calibrant.audits.blickets.items import difficulty, steps_needed, winnable_share
from calibrant.audits.blickets.printed import (
    TIE,
    PrintedTest,
    Sides,
    Switched,
    TwoByTwo,
    UndefinedStatisticError,
    firings_outside_eligible,
    fisher_exact,
    misprinted_tests,
    posterior_odds,
    posterior_odds_finding,
    probability_of_greater,
    rounds_to,
)
from calibrant.audits.claims import ClaimStatus
from calibrant.bench.blickets.paper import paper
from calibrant.bench.lab.blickets import main, paper_findings
from calibrant.dsl.blickets.episode import BlicketEpisode
from calibrant.dsl.blickets.generation import SUITES, sample_items
from calibrant.dsl.blickets.item import BlicketItem, Form, Mechanism, Rule, all_rules
from calibrant.dsl.blickets.score import grade
from calibrant.dsl.errors import MissingExtraError
from calibrant.solvers.blickets.exact import exact_learner, space_after, space_of_condition
from calibrant.solvers.blickets.learner import conclude_episode
from calibrant.solvers.outcome import Found, Impossible, OutOfBudget
from tests.oracles.two_by_two import cochran_mantel_haenszel, cohens_h, odds_ratio
from tests.support.benchmarks.blickets import static_item
from tests.support.effort import examples
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


# --- The paper's statistics: against the shared figures, against R's published examples, and against enumeration ------
needs("scipy", "statsmodels")

COUNTS = st.builds(TwoByTwo, *[st.integers(0, 40)] * 4)
BERKELEY = [  # admissions of 1973 by department, men and then women, as R's UCBAdmissions has them
    TwoByTwo(512, 313, 89, 19),
    TwoByTwo(353, 207, 17, 8),
    TwoByTwo(120, 205, 202, 391),
    TwoByTwo(138, 279, 131, 244),
    TwoByTwo(53, 138, 94, 299),
    TwoByTwo(22, 351, 24, 317),
]


def _rows() -> dict[str, Any]:
    rows: dict[str, Any] = shared_json("blickets_paper_rows.json", part="family")
    return rows


def _agrees(value: float, given: float) -> bool:
    """To the digits that are given, of which the shared file has three or four behind the point."""
    return round(value, 4) == given or round(value, 3) == given


def test_every_shared_test_is_recomputed_to_its_digits() -> None:
    tests = _rows()["tests"]
    assert len(tests) >= 12
    for test in tests:
        table = TwoByTwo(*test["table"])
        fisher = fisher_exact(table)
        assert round(fisher.two_sided, 4) == test["two_sided"], test["name"]
        if "one_sided" in test:
            assert round(fisher.greater, 4) == test["one_sided"], test["name"]
        if "odds_ratio" in test:
            assert [round(value, 3) for value in odds_ratio(table)] == test["odds_ratio"]
        if "h" in test:
            rates = table.yes / (table.yes + table.no), table.other_yes / (table.other_yes + table.other_no)
            assert _agrees(cohens_h(*rates), test["h"]), test["name"]


def test_the_stratified_test_and_the_posterior_are_recomputed() -> None:
    further = _rows()["further"]
    stratified = cochran_mantel_haenszel(TwoByTwo(*stratum) for stratum in further["cmh"]["strata"])
    assert round(stratified.p, 4) == further["cmh"]["p"]
    assert [round(value, 3) for value in stratified.odds_ratio] == further["cmh"]["odds_ratio"]
    successes, n, other, other_n = further["bayes"]["counts"]
    counts = TwoByTwo(successes, n - successes, other, other_n - other)
    assert round(float(probability_of_greater(counts)), 5) == further["bayes"]["posterior"]
    assert round(float(posterior_odds(counts)), 1) == further["bayes"]["odds"]


def test_the_share_of_the_gain_is_that_of_the_eligible_rates() -> None:
    """From the counts of Table 6, as the shared file's formula takes them."""
    rows = {
        row[0]: dict(zip(("re", "re_correct"), map(int, row[3:5]), strict=True))
        for row in _rows()["tables"]["6"]["rows"]
    }
    base, graph, both = (Fraction(row["re_correct"], row["re"]) for row in rows.values())
    share = _rows()["further"]["share"]
    assert round(float((graph - base) / (both - base)), 3) == share["value"]
    assert share["formula"] == "(31/33 - 22/30) / (41/43 - 22/30)"


def test_fishers_tea_tasting_is_as_in_r() -> None:
    tea = fisher_exact(TwoByTwo(3, 1, 1, 3))
    assert tea == pytest.approx((34 / 70, 17 / 70))


@given(COUNTS)
def test_fishers_test_adds_up_all_tables_with_the_same_margins(table: TwoByTwo) -> None:
    yes, no, other_yes, other_no = table
    first, second, successes = yes + no, other_yes + other_no, yes + other_yes
    possible = range(max(0, successes - second), min(first, successes) + 1)
    ways = {k: comb(first, k) * comb(second, successes - k) for k in possible}
    allowed = ways[yes] * (1 + Fraction(TIE))
    total = comb(first + second, successes)
    fisher = fisher_exact(table)
    assert fisher.two_sided == pytest.approx(sum(w for w in ways.values() if w <= allowed) / total, rel=1e-9)
    assert fisher.greater == pytest.approx(sum(w for k, w in ways.items() if k >= yes) / total, rel=1e-9)


@given(COUNTS)
def test_fishers_test_takes_either_group_and_either_result_first(table: TwoByTwo) -> None:
    yes, no, other_yes, other_no = table
    expected = pytest.approx(fisher_exact(table).two_sided, rel=1e-9)
    assert fisher_exact(TwoByTwo(other_yes, other_no, yes, no)).two_sided == expected
    assert fisher_exact(TwoByTwo(no, yes, other_no, other_yes)).two_sided == expected


@given(COUNTS)
def test_halves_are_added_to_all_cells_only_where_one_is_empty(table: TwoByTwo) -> None:
    a, b, c, d = (cell + (0 in table) / 2 for cell in table)
    spread = 1.96 * sqrt(1 / a + 1 / b + 1 / c + 1 / d)
    ratio = a * d / (b * c)
    factor = 2.718281828459045**spread
    assert odds_ratio(table) == pytest.approx((ratio, ratio / factor, ratio * factor), rel=1e-9)


def test_the_stratified_test_is_as_r_has_it_on_its_own_example() -> None:
    from scipy.stats import chi2  # a second, which every process that collects would take

    berkeley = cochran_mantel_haenszel(BERKELEY)
    assert round(berkeley.p, 4) == 0.2323
    assert [round(value, 3) for value in berkeley.odds_ratio] == [0.905, 0.772, 1.06]
    assert round(chi2.isf(berkeley.p, 1), 4) == 1.4269


def test_a_difference_within_the_correction_has_probability_one() -> None:
    assert cochran_mantel_haenszel([TwoByTwo(5, 5, 5, 5)]).p == 1
    assert cochran_mantel_haenszel([TwoByTwo(6, 5, 5, 5)]).p == 1  # 6 successes, 5.76 expected
    assert cochran_mantel_haenszel([TwoByTwo(8, 3, 5, 5)]).p < 1


@settings(deadline=None)
@given(COUNTS)
def test_a_stratum_without_two_groups_and_two_results_changes_nothing(table: TwoByTwo) -> None:
    strata = [TwoByTwo(9, 4, 6, 8)]
    alone = cochran_mantel_haenszel(strata)
    yes, no, _, _ = table
    for empty in (TwoByTwo(yes, no, 0, 0), TwoByTwo(yes, 0, no, 0), TwoByTwo(0, 1, 0, 0)):
        assert cochran_mantel_haenszel([*strata, empty]) == alone


def test_effect_sizes_are_those_of_the_definition() -> None:
    assert cohens_h(1, 0) == pytest.approx(2 * asin(1))
    assert cohens_h(0.5, 0.5) == 0
    assert cohens_h(0.25, 0.75) == -cohens_h(0.75, 0.25)


def test_posteriors_of_nothing_and_of_one_success_are_known_by_hand() -> None:
    assert probability_of_greater(TwoByTwo(0, 0, 0, 0)) == Fraction(1, 2)
    assert probability_of_greater(TwoByTwo(1, 0, 0, 0)) == Fraction(2, 3)
    assert posterior_odds(TwoByTwo(1, 0, 0, 1)) == 5


@given(COUNTS)
def test_one_rate_or_the_other_is_greater(table: TwoByTwo) -> None:
    yes, no, other_yes, other_no = table
    swapped = TwoByTwo(other_yes, other_no, yes, no)
    assert probability_of_greater(table) + probability_of_greater(swapped) == 1


@settings(max_examples=examples(15), deadline=None)
@given(COUNTS)
def test_the_posterior_is_the_integral_over_both_rates(table: TwoByTwo) -> None:
    from scipy import integrate
    from scipy.stats import beta

    first = beta(table.yes + 1, table.no + 1)
    second = beta(table.other_yes + 1, table.other_no + 1)
    area, error = integrate.quad(lambda x: first.pdf(x) * second.cdf(x), 0, 1, limit=200)
    assert isclose(area, float(probability_of_greater(table)), abs_tol=1e-6 + error)


def test_counts_without_a_statistic_are_refused_in_one_line() -> None:
    with pytest.raises(UndefinedStatisticError, match="they are 0 or more"):
        fisher_exact(TwoByTwo(1, -1, 2, 3))
    with pytest.raises(UndefinedStatisticError, match="nothing to compare"):
        cochran_mantel_haenszel([TwoByTwo(3, 0, 4, 0)])
    with pytest.raises(UndefinedStatisticError, match="0 or infinite"):
        cochran_mantel_haenszel([TwoByTwo(3, 2, 4, 0)])
    with pytest.raises(UndefinedStatisticError, match="from 0 to 1"):
        cohens_h(1.2, 0.5)


def test_a_missing_library_is_named_with_the_extra_that_brings_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> Any:
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(printed, "import_module", missing)
    with pytest.raises(MissingExtraError, match=r"^scipy is missing; run: pip install 'calibrant\[statistics\]'$"):
        fisher_exact(TwoByTwo(3, 1, 1, 3))
    assert posterior_odds(TwoByTwo(1, 0, 0, 1)) == 5  # needs no library


# --- Labels of items: what the exact learner needs, and how often it gets there --------------------------------------


def _item(suite: str) -> BlicketItem:
    return next(sample_items(SUITES[suite], 3))


def _ordered_switch() -> BlicketItem:
    """Return a switch to a rule whose blickets have an order: in no class here."""
    item = _item("easy-3")
    later = Mechanism(Rule(Form.CONJUNCTIVE, 0b11), (1, 0))
    return replace(item, sealed=replace(item.sealed, mechanisms=(item.sealed.mechanisms[0], later)))


def test_members_beforehand_are_those_of_the_formulas() -> None:
    for n in (2, 3, 4, 5):
        rules = 2 * (2**n - 1) - n
        orders = sum(factorial(n) // factorial(n - k) for k in range(2, n + 1))
        assert difficulty(static_item(Rule(Form.CONJUNCTIVE, 3), n)).members == {
            "static": rules,
            "switch": rules * (rules - 1) * 12,
            "order": orders,
            "noise": rules * 5,
        }


def test_labels_are_texts_that_an_item_can_carry() -> None:
    labels = difficulty(_item("hard-3")).as_labels()
    assert labels["members_static"] == "57"
    assert (labels["certifiable"], labels["winnable"]) == ("yes", "1")
    assert 10 <= int(labels["steps"]) <= 25
    assert "steps" not in difficulty(_ordered_switch()).as_labels()


@pytest.mark.parametrize(
    "suite",
    ["conjunctive", "easy-3", "hard-3-AC", "order-3-of-4", "forced-exposure", "forced-moves", "switch-by-steps"],
)
def test_an_exact_learner_wins_under_every_assignment_of_roles(suite: str) -> None:
    assert winnable_share(_item(suite)) == Found(1.0)


def test_what_no_class_here_knows_has_no_exact_learner() -> None:
    item = _ordered_switch()
    assert isinstance(exact_learner(item), Impossible)
    assert isinstance(steps_needed(item), Impossible)
    assert isinstance(winnable_share(item), Impossible)
    assert isinstance(winnable_share(static_item(all_rules(6)[0], 6)), Impossible)


def test_a_short_budget_is_out_of_budget_and_not_winnable() -> None:
    item = _item("conjunctive")
    short = replace(item, task=replace(item.task, budget=2))
    assert isinstance(steps_needed(short), OutOfBudget)
    assert winnable_share(short) == Found(0.0)


def test_winnable_share_is_that_of_playing_every_assignment() -> None:
    """Seven moves are enough for some pairs and not for others; roles are 10 pairs, each played here by itself."""
    item = _item("conjunctive")
    short = replace(item, task=replace(item.task, budget=7))
    pairs = [rule for rule in all_rules(5) if rule.form is Form.CONJUNCTIVE and rule.blickets.bit_count() == 2]
    won = [isinstance(steps_needed(static_item(rule, 5, 7)), Found) for rule in pairs]
    assert 0 < sum(won) < 10
    assert winnable_share(short) == Found(sum(won) / 10)


@pytest.mark.parametrize("suite", ["conjunctive", "disjunctive", "easy-3", "order", "stochastic"])
def test_the_knowing_space_keeps_the_rule_in_force(suite: str) -> None:
    for item in islice(sample_items(SUITES[suite], 9), 10):
        learner = exact_learner(item)
        assert isinstance(learner, Found)
        episode = BlicketEpisode(item)
        conclude_episode(episode, learner.value)
        space = space_after(space_of_condition(item.task, item.condition), item.task, episode.steps)
        assert grade(item, episode.steps).rule_in_force.canonical in space.verdicts()
