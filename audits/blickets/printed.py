"""Statistics as the paper defines them, its printed values computed again, and findings about its measures.

Fisher's test on scipy, odds ratios and the Cochran-Mantel-Haenszel test on statsmodels; both are imported when a
function needs them and come with the extra `statistics`. Effect size and posterior odds need neither.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import StrEnum
from fractions import Fraction
from importlib import import_module
from math import comb
from typing import Any, NamedTuple

from calibrant.audits.claims import ClaimStatus, Finding
from calibrant.dsl.errors import CalibrantError, MissingExtraError

# --- The statistics that the extended blicket benchmark reports (arXiv 2604.20039, sections 4 and 5), as defined there
TIE = 1e-7  # relative: tables this close to the observed one in probability count as equally probable


class UndefinedStatisticError(CalibrantError):
    """Counts for which a statistic has no value."""


class TwoByTwo(NamedTuple):
    """Successes and failures of two groups, in the order in which tables list them."""

    yes: int
    no: int
    other_yes: int
    other_no: int


class FisherTest(NamedTuple):
    """P-values of Fisher's exact test of a 2 by 2 table.

    two_sided: probability of all tables with these margins that are at most as probable as the observed one
    greater: probability of at least as many successes in the first group
    """

    two_sided: float
    greater: float


def fisher_exact(table: TwoByTwo) -> FisherTest:
    """Test equal rates exactly (Fisher), two-sided over all tables with p <= p observed * (1 + TIE)."""
    yes, no, other_yes, other_no = _require_counts(table)
    if not any(table):  # one table has these margins: nothing was observed
        return FisherTest(1.0, 1.0)
    hypergeometric = _library("scipy.stats").hypergeom(
        yes + no + other_yes + other_no, yes + other_yes, yes + no
    )  # size of the population, successes in it, size of the sample
    first, last = max(0, yes - other_no), min(yes + no, yes + other_yes)
    probabilities = hypergeometric.pmf(range(first, last + 1))
    rare = probabilities[probabilities <= probabilities[yes - first] * (1 + TIE)]
    return FisherTest(min(1.0, float(rare.sum())), min(1.0, float(probabilities[yes - first :].sum())))


def probability_of_greater(table: TwoByTwo) -> Fraction:
    """Return P(rate > other rate), exactly, after both groups, with a Beta(1, 1) prior on each rate.

    The second group has k' successes in n' trials. P(its rate < x) is the probability that more than k' of m = n' + 1
    uniform draws are below x. With the first rate as x, the number of these draws is Beta-binomial.
    """
    yes, no, other_yes, other_no = _require_counts(table)
    a, b, m = yes + 1, no + 1, other_yes + other_no + 1
    ways = sum(comb(a + j - 1, j) * comb(b + m - j - 1, m - j) for j in range(other_yes + 1, m + 1))
    return Fraction(ways, comb(a + b + m - 1, m))


def posterior_odds(table: TwoByTwo) -> Fraction:
    """Return P / (1 - P) with P from `probability_of_greater`.

    It is the Bayes factor of "greater" against "smaller", since both are as probable before the data.
    """
    p = probability_of_greater(table)
    return p / (1 - p)


def _require_counts(table: TwoByTwo) -> TwoByTwo:
    if min(table) < 0:
        raise UndefinedStatisticError(f"counts {', '.join(map(str, table))}; they are 0 or more")
    return table


def _library(module: str) -> Any:
    try:
        return import_module(module)
    except ImportError:
        package = module.partition(".")[0]
        raise MissingExtraError(f"{package} is missing; run: pip install 'calibrant[statistics]'") from None


# --- Printed statistics of the paper, computed again: misprints, and measures that mislead ----------------------------
KIND = "misprint"
SIGNIFICANT = 0.05


class Sides(StrEnum):
    ONE = "one-sided"
    TWO = "two-sided"


class PrintedTest(NamedTuple):
    """A comparison of two rates as it is printed.

    p: as printed, such as `.038`; sides: as stated beside it
    """

    name: str
    counts: TwoByTwo
    p: str
    sides: Sides


def misprinted_tests(printed: Iterable[PrintedTest], where: str) -> Iterator[Finding]:
    """Yield a finding for each printed p that is not the value of its stated sides, to the printed decimals."""
    for test in printed:
        exact = fisher_exact(test.counts)
        values = {Sides.TWO: exact.two_sided, Sides.ONE: exact.greater}
        if rounds_to(values[test.sides], test.p):
            continue
        matching_side = next((sides for sides, value in values.items() if rounds_to(value, test.p)), None)
        verdict = (
            f"is the {matching_side} value" if matching_side else "is neither the one-sided nor the two-sided value"
        )
        yield Finding(
            KIND,
            ClaimStatus.PROVED,
            f"{where}: {test.name}",
            f"p = {test.p}, printed as {test.sides}, {verdict}; {test.sides} it is {values[test.sides]:.4f}",
            {"printed": test.p, "two_sided": exact.two_sided, "one_sided": exact.greater, **test.counts._asdict()},
        )


def posterior_odds_finding(name: str, counts: TwoByTwo, printed: str, where: str) -> Finding:
    """Return whether printed posterior odds are P / (1 - P), of equal prior odds, or the formula's 2P / (1 - P).

    The paper's odds come from sampling, so the nearer of the two values is taken.
    """
    odds = float(posterior_odds(counts))
    doubled = 2 * odds
    is_single = abs(float(printed) - odds) <= abs(float(printed) - doubled)
    return Finding(
        KIND,
        ClaimStatus.PROVED if is_single else ClaimStatus.REFUTED,
        f"{where}: {name}",
        f"printed odds of {printed} are P/(1-P) = {odds:.1f}, not the 2P/(1-P) = {doubled:.1f} of the formula"
        if is_single
        else f"printed odds of {printed} are the 2P/(1-P) = {doubled:.1f} of the formula; P/(1-P) is {odds:.1f}",
        {"printed": printed, "odds": odds, "doubled": doubled, **counts._asdict()},
    )


class Switched(NamedTuple):
    """Printed numbers of episodes of one agent, where the rule switches after N activations.

    eligible: episodes with more than N activations; eligible_correct: those of them answered correctly
    exactly_n: episodes with exactly N activations; correct: all episodes answered correctly
    """

    episodes: int
    correct: int
    eligible: int
    eligible_correct: int
    exactly_n: int

    @property
    def switched(self) -> tuple[int, int]:
        """Numbers of correct and wrong answers after the switch; all before it were correct, as the paper reports."""
        switched = self.eligible + self.exactly_n
        correct = self.correct - (self.episodes - switched)
        return correct, switched - correct


def self_selection(name: str, first: Switched, second: Switched, where: str) -> Finding:
    """Return whether excluding the episodes that stopped at N decides whether two agents differ (at .05)."""
    wrong, second_wrong = (counts.eligible - counts.eligible_correct for counts in (first, second))
    eligible = fisher_exact(TwoByTwo(first.eligible_correct, wrong, second.eligible_correct, second_wrong)).two_sided
    table = TwoByTwo(*first.switched, *second.switched)
    everywhere = fisher_exact(table).two_sided
    decides = (eligible < SIGNIFICANT) != (everywhere < SIGNIFICANT)
    return Finding(
        "self-selected",
        ClaimStatus.PROVED if decides else ClaimStatus.REFUTED,
        f"{where}: {name}",
        f"p = {eligible:.4f} among episodes that the agents continued after the switch, {everywhere:.4f} over all that"
        f" switched ({table.yes} of {table.yes + table.no} against {table.other_yes} of {sum(table[2:])})",
        {"eligible": eligible, "switched": everywhere, **table._asdict()},
    )


def firings_outside_eligible(name: str, false_firings: int, counts: Switched, where: str) -> Finding:
    """Return whether a monitor fired in episodes that are not reasoning-eligible (N activations or fewer).

    If every eligible answer is correct, each firing that counts as false lies in such an episode.
    """
    all_correct = counts.eligible == counts.eligible_correct
    return Finding(
        "evidence-at-n",
        (ClaimStatus.PROVED if false_firings else ClaimStatus.REFUTED) if all_correct else ClaimStatus.OPEN,
        f"{where}: {name}",
        f"{false_firings} firings count as false, and {counts.eligible_correct} of {counts.eligible} eligible answers"
        " are correct" + ("; so they lie in episodes with N activations or fewer" if all_correct else ""),
        {"false_firings": false_firings, "eligible": counts.eligible, "eligible_correct": counts.eligible_correct},
    )


def accuracy_of_silence(name: str, counts: Switched, where: str) -> Finding:
    """Return whether an accuracy of 1 comes mostly from episodes that ended before the rule changed."""
    ended_before = counts.episodes - counts.eligible - counts.exactly_n
    is_silence = counts.correct == counts.episodes and 2 * ended_before > counts.episodes
    return Finding(
        "gameable",
        ClaimStatus.PROVED if is_silence else ClaimStatus.REFUTED,
        f"{where}: {name}",
        f"{counts.correct} of {counts.episodes} answers are correct, and {ended_before} were given before the rule"
        " changed",
        {"episodes": counts.episodes, "correct": counts.correct, "before": ended_before, "eligible": counts.eligible},
    )


def credited_to_one_run(name: str, run: TwoByTwo, pooled: TwoByTwo, printed: str, where: str) -> Finding:
    """Return whether a p that is printed for one run is that of several runs together."""
    alone, together = fisher_exact(run), fisher_exact(pooled)
    values = (together.two_sided, together.greater)
    is_pooled = any(rounds_to(value, printed) for value in values)
    is_alone = any(rounds_to(value, printed) for value in (alone.two_sided, alone.greater))
    return Finding(
        KIND,
        ClaimStatus.PROVED if is_pooled and not is_alone else ClaimStatus.REFUTED,
        f"{where}: {name}",
        f"p = {printed} is that of the runs together ({pooled.yes} of {pooled.yes + pooled.no} against"
        f" {pooled.other_yes} of {pooled.other_yes + pooled.other_no}); of the run alone it is {alone.two_sided:.3f}"
        f" two-sided, {alone.greater:.3f} one-sided, with odds of {float(posterior_odds(run)):.1f}",
        {"printed": printed, "two_sided": alone.two_sided, "one_sided": alone.greater, **run._asdict()},
    )


def wrong_before_the_switch(name: str, counts: Switched, where: str) -> Finding:
    """Return whether printed counts leave a wrong answer before the switch, against "pre-switch is always right"."""
    episodes = counts.episodes - counts.eligible - counts.exactly_n
    correct = counts.correct - counts.eligible_correct
    return Finding(
        "contradiction",
        ClaimStatus.PROVED if correct < episodes else ClaimStatus.REFUTED,
        f"{where}: {name}",
        f"{counts.eligible} RE and {counts.exactly_n} exactly-N of {counts.episodes} episodes leave {episodes}"
        f" before the switch; {counts.eligible_correct} of {counts.correct} right answers are RE, so {correct} of these"
        " are right",
        {"before": episodes, "right": correct, **counts._asdict()},
    )


def rounds_to(value: float, printed: str) -> bool:
    """Return whether a value rounds to the printed text, at its number of decimals."""
    decimals = len(printed.partition(".")[2])
    return f"{value:.{decimals}f}" == f"{float(printed):.{decimals}f}"


# --- Findings about the benchmark's measures, from graded episodes ----------------------------------------------------
