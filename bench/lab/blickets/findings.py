"""Findings about the paper's printed statistics, computed again."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from calibrant.audits.blickets.printed import (
    Switched,
    TwoByTwo,
    accuracy_of_silence,
    credited_to_one_run,
    firings_outside_eligible,
    misprinted_tests,
    posterior_odds_finding,
    self_selection,
    wrong_before_the_switch,
)
from calibrant.audits.claims import ClaimStatus, Finding
from calibrant.bench.blickets.paper import paper, printed_counts, printed_detections
from calibrant.bench.blickets.rates import Counts


def paper_findings() -> Iterator[Finding]:
    """Misprints, comparisons that selection decides, firings outside their class, and accuracy without a switch."""
    source, odds = paper().source, paper().posterior_odds
    yield from misprinted_tests((test.test for test in paper().tests), source)
    yield posterior_odds_finding(odds.name, TwoByTwo(*odds.counts), odds.odds, source)
    by_agent, by_run = dict(_labelled("5a")), dict(_labelled("5b"))
    together = _accuracies(by_agent["CG+DB",], by_agent["CG",])
    alone = _accuracies(by_run["06", "CG+DB"], by_run["06", "CG"])
    yield credited_to_one_run("Table 4, Run 06, CG+DB against CG", alone, together, RUN_06_P, source)
    yield from (finding for finding in class_sums() if finding.verdict is ClaimStatus.PROVED)
    hard = _by_agent("6")
    for first, second in combinations(hard, 2):
        yield self_selection(f"Table 6, {second} against {first}", hard[second], hard[first], source)
    late = _by_agent("11")
    false = {tuple(labels): detections.false for labels, detections in printed_detections()}
    yield firings_outside_eligible("Tables 9 and 11, CG+DB at N = 5", false["06", "5", "5"], late["CG+DB"], source)
    for agent, counts in late.items():
        yield accuracy_of_silence(f"Table 11, {agent}", counts, source)


def class_sums() -> Iterator[Finding]:
    """Yield for each printed row with all classes whether its counts leave a wrong answer before the switch."""
    for number in ("5a", "5b", "6", "8", "11"):
        for labels, counts in _labelled(number):
            if counts.exactly_n is not None:
                name = f"Table {number}, {', '.join(labels)}{' steps' * (number == '8')}"
                yield wrong_before_the_switch(name, _count_switched(counts), paper().source)


RUN_06_P = ".015"  # Table 4


def _labelled(number: str) -> list[tuple[tuple[str, ...], Counts]]:
    return [(tuple(labels), counts) for labels, counts in printed_counts(number)]


def _accuracies(first: Counts, second: Counts) -> TwoByTwo:
    """Return right and wrong answers of two agents."""
    return TwoByTwo(first.correct, first.episodes - first.correct, second.correct, second.episodes - second.correct)


def _by_agent(number: str) -> dict[str, Switched]:
    return {labels[0]: _count_switched(counts) for labels, counts in printed_counts(number)}


def _count_switched(counts: Counts) -> Switched:
    classes = counts.eligible, counts.eligible_correct, counts.exactly_n
    eligible, correct, exactly_n = (count for count in classes if count is not None)
    return Switched(counts.episodes, counts.correct, eligible, correct, exactly_n)
