"""Printed statistics that their own counts refute."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import NamedTuple

from audits.blickets.statistics import TwoByTwo, fisher_exact, posterior_odds
from audits.finding import Finding, Standing

KIND = "misprint"


class Sides(StrEnum):
    ONE = "one-sided"
    TWO = "two-sided"


class PrintedTest(NamedTuple):
    """A comparison of two rates as it is printed.

    p: as printed, such as `.038`; sides: what the print says it is
    """

    name: str
    counts: TwoByTwo
    p: str
    sides: Sides


def misprinted_tests(printed: Iterable[PrintedTest], where: str) -> Iterator[Finding]:
    """A finding for each printed p that is not the one it is said to be, to as many decimals as are printed."""
    for test in printed:
        exact = fisher_exact(test.counts)
        values = {Sides.TWO: exact.two_sided, Sides.ONE: exact.greater}
        if rounds_to(values[test.sides], test.p):
            continue
        other = next((sides for sides, value in values.items() if rounds_to(value, test.p)), None)
        what = f"is the {other} value" if other else "is neither the one-sided nor the two-sided value"
        yield Finding(
            KIND,
            Standing.PROVED,
            f"{where}: {test.name}",
            f"p = {test.p}, printed as {test.sides}, {what}; {test.sides} it is {values[test.sides]:.4f}",
            {"printed": test.p, "two_sided": exact.two_sided, "one_sided": exact.greater, **test.counts._asdict()},
        )


def posterior_odds_finding(name: str, counts: TwoByTwo, printed: str, where: str) -> Finding:
    """Whether printed posterior odds are P / (1 - P), as under equal prior odds, or the 2P / (1 - P) of the formula.

    Printed odds come from sampling, so they count as the nearer of the two.
    """
    odds = float(posterior_odds(counts))
    doubled = 2 * odds
    is_single = abs(float(printed) - odds) <= abs(float(printed) - doubled)
    return Finding(
        KIND,
        Standing.PROVED if is_single else Standing.REFUTED,
        f"{where}: {name}",
        f"printed odds of {printed} are P/(1-P) = {odds:.1f}, not the 2P/(1-P) = {doubled:.1f} of the formula"
        if is_single
        else f"printed odds of {printed} are the 2P/(1-P) = {doubled:.1f} of the formula; P/(1-P) is {odds:.1f}",
        {"printed": printed, "odds": odds, "doubled": doubled, **counts._asdict()},
    )


def rounds_to(value: float, printed: str) -> bool:
    """Whether a value is printed so, to as many decimals as the print has."""
    decimals = len(printed.partition(".")[2])
    return f"{value:.{decimals}f}" == f"{float(printed):.{decimals}f}"
