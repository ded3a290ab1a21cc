"""The statistics that the extended blicket benchmark reports (arXiv 2604.20039, sections 4 and 5), as defined there.

Fisher's test on scipy, odds ratios and the Cochran-Mantel-Haenszel test on statsmodels; both are imported when a
function needs them and come with the extra `statistics`. Effect size and posterior odds need neither.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from importlib import import_module
from math import asin, comb, erfc, exp, sqrt
from typing import Any, NamedTuple

from calibrant.dsl.errors import CalibrantError, MissingExtraError

TIE = 1e-7  # relative: tables this close to the observed one in probability count as equally probable
CONTINUITY = 0.5
HALF = 0.5  # added to every cell of a table with an empty one
Z = 1.96  # standard errors on either side of an estimate in a 95 % interval, rounded as the paper's are


class UndefinedStatisticError(CalibrantError):
    """Counts for which a statistic has no value."""


class TwoByTwo(NamedTuple):
    """Successes and failures of two groups, in the order in which tables list them."""

    yes: int
    no: int
    other_yes: int
    other_no: int


class Estimate(NamedTuple):
    """A point and its two-sided 95 % interval."""

    value: float
    low: float
    high: float


class FisherTest(NamedTuple):
    """P-values of Fisher's exact test of a 2 by 2 table.

    two_sided: probability of all tables with these margins that are at most as probable as the observed one
    greater: probability of at least as many successes in the first group
    """

    two_sided: float
    greater: float


class StratifiedTest(NamedTuple):
    """Result of a test over the strata of a table.

    p: two-sided, of a common odds ratio of 1; odds_ratio: that of Mantel and Haenszel
    """

    p: float
    odds_ratio: Estimate


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


def probability_of_greater(table: TwoByTwo) -> Fraction:
    """Return P(rate > other rate), exactly, after both groups, with a Beta(1, 1) prior on each rate.

    The second rate is below x with the probability that of m = n' + 1 uniform draws more than k' are below x, and a
    Beta-binomial counts those draws when x is the first rate.
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


def _compares(t: TwoByTwo) -> bool:
    """Return whether both groups and both results occur."""
    return min(t.yes + t.no, t.other_yes + t.other_no, t.yes + t.other_yes, t.no + t.other_no) > 0


def _wald(log_ratio: float, standard_error: float) -> Estimate:
    return Estimate(exp(log_ratio), exp(log_ratio - Z * standard_error), exp(log_ratio + Z * standard_error))


def _array(rows: Sequence[Sequence[float]]) -> Any:
    return _library("numpy").array(rows, dtype=float)


def _library(module: str) -> Any:
    try:
        return import_module(module)
    except ImportError:
        package = module.partition(".")[0]
        raise MissingExtraError(f"{package} is missing; run: pip install 'calibrant[statistics]'") from None
