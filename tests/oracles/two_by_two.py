"""Statistics of 2 by 2 tables that the extended blicket benchmark prints: effect size, odds ratio, stratified test."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from math import asin, erfc, exp, sqrt
from typing import Any, NamedTuple

from calibrant.audits.blickets.printed import TwoByTwo, UndefinedStatisticError, _library, _require_counts

CONTINUITY = 0.5
Z = 1.96  # standard errors on either side of an estimate in a 95 % interval, rounded as the paper's are


HALF = 0.5  # added to every cell of a table with an empty one


class Estimate(NamedTuple):
    """A point and its two-sided 95 % interval."""

    value: float
    low: float
    high: float


class StratifiedTest(NamedTuple):
    """Result of a test over the strata of a table.

    p: two-sided, of a common odds ratio of 1; odds_ratio: that of Mantel and Haenszel
    """

    p: float
    odds_ratio: Estimate


def cohens_h(rate: float, other_rate: float) -> float:
    """Return 2 (asin sqrt rate - asin sqrt other_rate), the difference of rates after the arcsine transformation."""
    if not (0 <= rate <= 1 and 0 <= other_rate <= 1):
        raise UndefinedStatisticError(f"rates of {rate} and {other_rate}; they are from 0 to 1")
    return 2 * (asin(sqrt(rate)) - asin(sqrt(other_rate)))


def odds_ratio(table: TwoByTwo) -> Estimate:
    """Return the odds of success in the first group over those in the second, with the Wald interval of its log.

    One half is added to all four cells if and only if one of them is 0.
    """
    cells: list[list[float]] = [[table.yes, table.no], [table.other_yes, table.other_no]]
    if 0 in _require_counts(table):
        cells = [[cell + HALF for cell in row] for row in cells]
    ratio = _library("statsmodels.stats.contingency_tables").Table2x2(_array(cells), shift_zeros=False)
    return _wald(float(ratio.log_oddsratio), float(ratio.log_oddsratio_se))


def cochran_mantel_haenszel(strata: Iterable[TwoByTwo]) -> StratifiedTest:
    """Test of equal rates over strata, corrected for continuity; the interval is that of Robins, Breslow and Greenland.

    The correction takes at most the whole difference away, so p is 1 where successes differ from their expectation by
    one half or less. Raises `UndefinedStatisticError` where no stratum can show a difference, or the ratio is 0 or
    infinite.
    """
    tables = [_require_counts(table) for table in strata]
    informative = [t for t in tables if _compares(t)]
    if not informative:
        raise UndefinedStatisticError("no stratum has two groups and two results; there is nothing to compare")
    if not any(t.yes * t.other_no for t in informative) or not any(t.no * t.other_yes for t in informative):
        raise UndefinedStatisticError("the common odds ratio is 0 or infinite; it has no interval")
    cells = [_array([[t.yes, t.no], [t.other_yes, t.other_no]]) for t in informative]
    stratified = _library("statsmodels.stats.contingency_tables").StratifiedTable(cells)
    expected = (Fraction((t.yes + t.no) * (t.yes + t.other_yes), sum(t)) for t in informative)
    excess = abs(sum(t.yes for t in informative) - sum(expected, Fraction(0)))
    chi_square = float(stratified.test_null_odds(correction=True).statistic) if excess > CONTINUITY else 0.0
    return StratifiedTest(
        erfc(sqrt(chi_square / 2)),  # the upper tail of chi-square with one degree of freedom
        _wald(float(stratified.logodds_pooled), float(stratified.logodds_pooled_se)),
    )


def _compares(t: TwoByTwo) -> bool:
    """Return whether both groups and both results occur."""
    return min(t.yes + t.no, t.other_yes + t.other_no, t.yes + t.other_yes, t.no + t.other_no) > 0


def _wald(log_ratio: float, standard_error: float) -> Estimate:
    return Estimate(exp(log_ratio), exp(log_ratio - Z * standard_error), exp(log_ratio + Z * standard_error))


def _array(rows: Sequence[Sequence[float]]) -> Any:
    return _library("numpy").array(rows, dtype=float)
