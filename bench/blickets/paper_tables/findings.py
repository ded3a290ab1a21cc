"""Findings about the paper's printed statistics, computed again."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from calibrant.audits.blickets.printed import (
    Switched,
    accuracy_of_silence,
    firings_outside_eligible,
    misprinted_tests,
    posterior_odds_finding,
    self_selection,
)
from calibrant.audits.blickets.statistics import TwoByTwo
from calibrant.audits.finding import Finding
from calibrant.bench.blickets.paper_tables.printed import paper
from calibrant.bench.blickets.paper_tables.rates import Counts
from calibrant.bench.blickets.paper_tables.tables import printed_counts, printed_detections


def paper_findings() -> Iterator[Finding]:
    """Misprints, comparisons that selection decides, firings outside their class, and accuracy without a switch."""
    source, odds = paper().source, paper().posterior_odds
    yield from misprinted_tests((test.test for test in paper().tests), source)
    yield posterior_odds_finding(odds.name, TwoByTwo(*odds.counts), odds.odds, source)
    hard = _by_agent("6")
    for first, second in combinations(hard, 2):
        yield self_selection(f"Table 6, {second} against {first}", hard[second], hard[first], source)
    late = _by_agent("11")
    false = {tuple(labels): detections.false for labels, detections in printed_detections()}
    yield firings_outside_eligible("Tables 9 and 11, CG+DB at N = 5", false["06", "5", "5"], late["CG+DB"], source)
    for agent, counts in late.items():
        yield accuracy_of_silence(f"Table 11, {agent}", counts, source)


def _by_agent(number: str) -> dict[str, Switched]:
    return {labels[0]: _count_switched(counts) for labels, counts in printed_counts(number)}


def _count_switched(counts: Counts) -> Switched:
    classes = counts.eligible, counts.eligible_correct, counts.exactly_n
    eligible, correct, exactly_n = (count for count in classes if count is not None)
    return Switched(counts.episodes, counts.correct, eligible, correct, exactly_n)
