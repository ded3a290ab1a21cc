"""Printed statistics of the paper, computed again: misprints, and measures that mislead."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import NamedTuple

from calibrant.audits.blickets.statistics import TwoByTwo, fisher_exact, posterior_odds
from calibrant.audits.claims import ClaimStatus, Finding

KIND = "misprint"
SIGNIFICANT = 0.05


class Sides(StrEnum):
    ONE = "one-sided"
    TWO = "two-sided"


class PrintedTest(NamedTuple):
    """A comparison of two rates as it is printed.

    p: as printed, such as `.038`; sides: as the print states
    """

    name: str
    counts: TwoByTwo
    p: str
    sides: Sides


def misprinted_tests(printed: Iterable[PrintedTest], where: str) -> Iterator[Finding]:
    """Yield a finding for each printed p that is not the one it is said to be, to as many decimals as are printed."""
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
    """Compare printed posterior odds with P / (1 - P), as under equal prior odds, and the formula's 2P / (1 - P).

    Printed odds come from sampling, so they count as the nearer of the two.
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
    """Printed counts of one agent under a switch.

    eligible: episodes with more than N activations, of which `eligible_correct` were answered correctly
    exactly_n: episodes with exactly N; correct: of all episodes
    """

    episodes: int
    correct: int
    eligible: int
    eligible_correct: int
    exactly_n: int

    @property
    def switched(self) -> tuple[int, int]:
        """Correct and wrong answers after the switch; all before it were correct, as the paper reports."""
        switched = self.eligible + self.exactly_n
        correct = self.correct - (self.episodes - switched)
        return correct, switched - correct


def self_selection(name: str, first: Switched, second: Switched, where: str) -> Finding:
    """Return whether leaving the episodes in which an agent stopped at N out decides if two agents differ (at .05)."""
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
    """Return whether a monitor fired on a change that the class of reasoning-eligible episodes does not see.

    If every eligible answer is correct, a firing that counts as false lies in an episode with N activations or fewer.
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
    """Return whether full raw accuracy comes mostly from episodes that ended before anything changed."""
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
    """Return whether a p that is credited to one run is that of several runs together."""
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
    """Return whether a value is printed so, to as many decimals as the print has."""
    decimals = len(printed.partition(".")[2])
    return f"{value:.{decimals}f}" == f"{float(printed):.{decimals}f}"
