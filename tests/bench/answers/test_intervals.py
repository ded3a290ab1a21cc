"""Intervals against closed forms, published ones, simulated coverage and exact bootstrap distributions."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import product
from math import comb, sqrt
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibrant.bench.answers.frame import AnswerFrame
from calibrant.bench.answers.rates import (
    MIN_UNITS,
    NEAR,
    RESAMPLES,
    Array,
    Forecast,
    Interval,
    bootstrap_intervals,
    paired_differences,
    reliability,
    resample_counts,
    t_quantile,
    unit_interval,
    unit_moments,
    wilson,
)
from calibrant.bench.report.comparisons import difference_cell
from tests.support.commands import CHECKOUT

# --- Intervals against closed forms, tables of Student's t, simulated coverage and exact bootstrap distributions ------
# Means of answers are taken in bench/answers alone; what else takes means is listed with what it averages.
TAIL = 0.025
MARGIN = 0.008  # five standard errors of a frequency of 0.025 in 10,000 resamples


def interval(sums: Sequence[float], counts: Sequence[float]) -> Interval | None:
    (found,) = bootstrap_intervals(np.array([sums], float).T, np.array([counts], float).T)
    return found


def rate(values: Sequence[float]) -> Interval:
    found = interval(values, [1] * len(values))
    assert found is not None
    return found


def quantile(weights: dict[Fraction, Fraction], level: float) -> Fraction:
    """Return the quantile of an exact distribution; a case whose step is too near the level would test luck."""
    below = Fraction(0)
    for value in sorted(weights):
        assert abs(float(below) - level) > MARGIN
        below += weights[value]
        if below > level:
            assert float(below) - level > MARGIN
            return value
    raise AssertionError


@pytest.mark.parametrize(("hits", "problems"), [(5, 10), (4, 24), (7, 17), (13, 26), (18, 37)])
def test_a_rates_interval_is_that_of_a_binomial(hits: int, problems: int) -> None:
    """Drawing n of n problems with replacement, the number of hits is binomial."""
    p = Fraction(hits, problems)
    weights = {Fraction(k, problems): comb(problems, k) * p**k * (1 - p) ** (problems - k) for k in range(problems + 1)}
    expected = (float(quantile(weights, TAIL)), float(quantile(weights, 1 - TAIL)))
    assert rate([1] * hits + [0] * (problems - hits)) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("sums", "counts"),
    [
        ([1, 0, 1, 0, 0, 0], [1, 1, 1, 0, 0, 0]),  # a conditional rate: half of the problems do not count
        ([1, 0, 2, 1, 1, 0], [2, 1, 2, 1, 1, 2]),  # problems with one instance and with two
        ([3, -1, 2, 0, -2, 1], [1, 1, 1, 1, 1, 1]),  # differences
    ],
)
def test_ratios_agree_with_enumeration_of_every_resample(sums: list[int], counts: list[int]) -> None:
    """All 6^6 draws; those in which nothing counts are left out. Ends are within one step of the distribution."""
    seen: dict[Fraction, int] = {}
    for draw in product(range(6), repeat=6):
        denominator = sum(counts[i] for i in draw)
        if denominator:
            ratio = Fraction(sum(sums[i] for i in draw), denominator)
            seen[ratio] = seen.get(ratio, 0) + 1
    total = sum(seen.values())
    found = interval(sums, counts)
    assert found is not None
    for end, level in zip(found, (TAIL, 1 - TAIL), strict=True):
        below = sum(times for value, times in seen.items() if float(value) < end - 1e-9) / total
        up_to = sum(times for value, times in seen.items() if float(value) <= end + 1e-9) / total
        assert below <= level + MARGIN
        assert up_to >= level - MARGIN


def test_a_resample_in_which_one_answer_counts_is_one_too() -> None:
    """One answer drawn alone is a resample like others: of 60 problems four count, one of them with 0.

    Nothing but it is drawn with probability 0.0302, more than the tail; without the resamples in which a single one is
    drawn that would be 0.0131, less than the tail.
    """
    counts, n = [1] * 4 + [0] * 56, 60
    only_zero = ((57 / n) ** n - (56 / n) ** n) / (1 - (56 / n) ** n)
    drawn_once = (56 / n) ** (n - 1)
    assert only_zero - drawn_once < TAIL - MARGIN < TAIL < only_zero
    found = interval([0] + [1] * 3 + [0] * 56, counts)
    assert found is not None
    assert found.low == 0


def test_every_resample_draws_as_many_problems_as_there_are() -> None:
    drawn = resample_counts(24)
    assert drawn.shape == (RESAMPLES, 24)
    assert (drawn.sum(axis=1) == 24).all()
    assert (drawn >= 0).all()
    assert abs(drawn.mean(axis=0) - 1).max() < 0.05


def test_intervals_do_not_depend_on_what_else_is_asked() -> None:
    one, other = np.array([1.0] * 4 + [0.0] * 6), np.linspace(0, 1, 10)
    both = bootstrap_intervals(np.stack([one, other], axis=1), np.ones((10, 2)))
    assert both == [rate(list(one)), rate(list(other))]


def test_few_problems_and_no_problem_have_no_interval() -> None:
    assert interval([1] * (MIN_UNITS - 1), [1] * (MIN_UNITS - 1)) is None
    assert interval([0] * 20, [0] * 20) is None
    assert rate([1] * MIN_UNITS) == (1, 1)


@pytest.mark.parametrize(
    ("low", "high", "excludes"),
    [(0.01, 0.3, True), (-0.3, -0.01, True), (0, 0.3, False), (-1, 1, False), (0, 0, False)],
)
def test_excluding_zero_is_strict(low: float, high: float, excludes: bool) -> None:
    assert Interval(low, high).excludes_zero is excludes


def paired(one: Sequence[float], other: Sequence[float], clusters: Sequence[str] | None = None) -> Interval:
    names = clusters or [f"L{i}" for i in range(len(one))]
    found = paired_differences([(dict(enumerate(one)), dict(enumerate(other)))], dict(enumerate(names)))[0]
    assert found.interval is not None
    assert found.mean == pytest.approx(sum(a - b for a, b in zip(one, other, strict=True)) / len(one))
    return found.interval


def test_pairing_takes_out_what_the_problems_differ_in() -> None:
    """Problems from hopeless to trivial, one row always 0.1 better: no doubt about the difference."""
    levels = [k / 12 for k in range(11)]
    assert paired([level + 0.1 for level in levels], levels) == pytest.approx((0.1, 0.1))
    wide = rate([level + 0.1 for level in levels])
    assert wide.high - wide.low > 0.3


def test_a_paired_difference_is_binomial_where_one_row_is_never_worse() -> None:
    """Of 17 problems 7 are won: the number of wins in a resample is binomial(17, 7/17)."""
    p = Fraction(7, 17)
    weights = {Fraction(k, 17): comb(17, k) * p**k * (1 - p) ** (17 - k) for k in range(18)}
    expected = (float(quantile(weights, TAIL)), float(quantile(weights, 1 - TAIL)))
    assert paired([1] * 11 + [0] * 6, [1] * 4 + [0] * 13) == pytest.approx(expected)


def test_turning_a_difference_round_turns_its_interval_round() -> None:
    one, other = [1, 0, 1, 1, 0, 1, 0.5, 1], [0, 0, 1, 0.25, 1, 0, 0.5, 0]
    (low, high), (turned_low, turned_high) = paired(one, other), paired(other, one)
    assert (-turned_high, -turned_low) == pytest.approx((low, high))


def test_instances_of_one_latent_scm_are_drawn_together() -> None:
    """Twice the instances are not twice the evidence."""
    one, other = [1, 0, 1, 1, 0, 1, 0, 1], [0, 0, 1, 0, 1, 0, 0, 0]
    names = [f"L{i}" for i in range(8)]
    assert paired(one * 2, other * 2, names * 2) == pytest.approx(paired(one, other, names))
    apart = paired(one * 2, other * 2)
    assert apart.high - apart.low < 0.8 * (paired(one, other).high - paired(one, other).low)


def test_only_units_that_both_rows_have_are_compared() -> None:
    found = paired_differences([({1: 1.0, 2: 0.0, 3: 1.0}, {2: 1.0, 3: 0.0, 4: 0.0})], {k: str(k) for k in range(5)})[0]
    assert (found.mean, found.interval, found.num_units) == (0.0, None, 2)
    assert difference_cell(found).text == "*"
    assert difference_cell(paired_differences([({1: 1.0}, {2: 1.0})], {1: "a", 2: "b"})[0]).text == "\N{EN DASH}"


@pytest.mark.parametrize(
    ("degrees", "quantile"),
    [(1, 12.7062), (2, 4.30265), (10, 2.22814), (60, 2.00030), (101, 1.98373), (1_000, 1.96234)],
)
def test_quantiles_are_those_of_tables(degrees: int, quantile: float) -> None:
    assert t_quantile(degrees) == pytest.approx(quantile, rel=3e-6)


def _interval(sums: Array, counts: Array, **options: bool) -> Interval | None:
    (moments,) = unit_moments(sums[None], counts[None])
    return unit_interval(moments, **options)


def clustered(clusters: Sequence[Sequence[float]]) -> Interval:
    sums, counts = np.array([*map(sum, clusters)]), np.array([*map(len, clusters)], float)
    interval = _interval(sums, counts, is_share=True, is_clustered=True)
    assert interval is not None
    return interval


def test_a_mean_that_is_no_share_has_the_interval_of_a_sample() -> None:
    """Units of one item: the variance is that of the mean of a sample, with n - 1."""
    values = [0.0, 1.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 1.0]
    mean = sum(values) / len(values)
    error = sqrt(sum((value - mean) ** 2 for value in values) / 9 / 10)
    interval = _interval(np.array(values), np.ones(10), is_share=False, is_clustered=False)
    assert interval == pytest.approx((mean - t_quantile(9) * error, mean + t_quantile(9) * error))


def test_equal_copies_count_once_and_the_ends_have_wilsons_interval() -> None:
    once = [[float(k % 2)] * (1 + k // 6) for k in range(12)]
    assert clustered([values * 6 for values in once]) == pytest.approx(clustered(once))
    assert clustered([[1.0, 1.0]] * 8) == wilson(8, 8)
    assert clustered([[1.0, 0.0]] * 8) == wilson(4, 8)  # zero width
    near = clustered([[1.0] * 19 + [0.0]] * 7 + [[1.0] * 20])
    assert near == pytest.approx(wilson(8 * (7 * 19 + 20) / 160, 8))


def test_coverage_of_dependent_copies() -> None:
    """24 originals x 6 copies at .5, correlation .6: the naive interval covers .66."""
    random, covered, runs = Random(5), 0, 400
    for _ in range(runs):
        clusters = []
        for _ in range(24):
            shared = random.random() < 0.5
            keep = [random.random() < sqrt(0.6) for _ in range(6)]
            clusters.append([float(shared if kept_one else random.random() < 0.5) for kept_one in keep])
        low, high = clustered(clusters)
        covered += low <= 0.5 <= high
    assert 0.92 <= covered / runs <= 0.98


def test_one_unit_has_no_interval_and_shares_of_single_items_have_wilsons() -> None:
    assert _interval(np.array([3.0]), np.array([4.0]), is_share=True, is_clustered=True) is None
    assert _interval(np.array([1.0]), np.array([1.0]), is_share=True, is_clustered=False) is None
    halves = _interval(np.array([1.0, 0.5, 0.0]), np.ones(3), is_share=True, is_clustered=False)
    assert halves == wilson(1.5, 3)
    assert _interval(np.array([2.0, 2.0]), np.ones(2), is_share=False, is_clustered=False) is None  # no width


def _plain_interval(
    defined: list[tuple[int, float]], weights: list[Fraction], items_of_a_unit: int, is_clustered: bool, is_share: bool
) -> tuple[float, float] | None:
    """Return the interval of the docstring of `bench.answers.rates`, unit by unit in fractions."""
    sums: dict[int, Fraction] = {}
    counts: dict[int, Fraction] = {}
    for (item, value), weight in zip(defined, weights, strict=True):
        unit = item // items_of_a_unit
        sums[unit] = sums.get(unit, Fraction(0)) + Fraction(value) * weight
        counts[unit] = counts.get(unit, Fraction(0)) + weight
    num_units, number = len(counts), sum(counts.values())
    if num_units < 2:
        return None
    mean = sum(sums.values()) / number
    spread = sum((sums[unit] - mean * counts[unit]) ** 2 for unit in counts)
    if is_share and (not is_clustered or not spread or min(mean, 1 - mean) <= NEAR):
        size = num_units if is_clustered else float(number)
        return wilson(min(max(float(mean), 0.0), 1.0) * size, size)
    if not spread:
        return None
    half = t_quantile(num_units - 1) * sqrt(num_units / (num_units - 1) * spread) / float(number)
    low, high = float(mean) - half, float(mean) + half
    return (max(0.0, low), min(1.0, high)) if is_share else (low, high)


_VALUES = st.sampled_from([None, 0.0, 1.0, 0.5, 0.375, 7.25])


@given(st.lists(st.tuples(st.integers(0, 9), st.tuples(*[_VALUES] * 3)), min_size=1, max_size=40), st.integers(1, 3))
def test_metrics_in_one_pass_are_those_one_at_a_time(answers: list[tuple[int, Any]], items_of_a_unit: int) -> None:
    """Rates against fractions, item by item; intervals against those of frames that have the metric alone."""
    frame = AnswerFrame.of((item, f"u{item // items_of_a_unit}", values) for item, values in answers)
    times = Counter(item for item, _ in answers)
    for place in range(3):
        defined = [(item, values[place]) for item, values in answers if values[place] is not None]
        weights = [Fraction(1, times[item]) for item, _ in defined]
        total = sum(Fraction(value) * weight for (_, value), weight in zip(defined, weights, strict=True))
        assert frame.rates[place] == (float(total / sum(weights)) if defined else None)
        assert frame.total(place) == total
        assert frame.nums_defined[place] == len({item for item, _ in defined})
        for is_share in (True, False):
            plain = _plain_interval(defined, weights, items_of_a_unit, frame.is_clustered, is_share)
            interval = frame.interval(place, is_share=is_share)
            assert interval == (None if plain is None else pytest.approx(plain, abs=1e-9))
    assert len(frame._blocks) == 1  # all metrics in one pass


# --- Means of answers in one place ---------------------------------------------------------------------------------
MEANS = {"fmean", "mean", "nanmean", "average", "weighted_mean"}
# by folder and outermost name: what it averages that is no answer to an item, or who calls it from bench/answers
ELSEWHERE = {
    "causalab:_mean": "items of a pool",
    "causalab:_step_means": "steps of runs",
    "causim:CausimTraining": "nodes of one answer",
    "causim:class_shares": "classes of wrong answers, of which an answer has one",
    "core:_mean_values": "equally good answers of one record",
    "core:share": "items of a pool",
    "difficulty:success_plot": "systems, on one item",
    "difficulty:choose_subset": "systems that were left out",
    "difficulty:_estimate": "systems that were fitted",
    "difficulty:_summary": "errors of predictions",
    "difficulty:fit_difficulty": "features of items",
    "difficulty:_stratum_rates": "the table of rates that a fit predicts",
    "difficulty:_held_out": "losses of a fit",
    "difficulty:ResponseModel": "information of items",
    "pages:_reorder": "places of nodes",
    "replayscm:_Learning": "networks that were sampled",
    "replayscm:_effect": "completions of a table with gaps",
    "replayscm:extended_share": "cells of one answer",
    "replayscm:calibration": "bounds of items",
    "replayscm:_answer_row": "bounds of items",
    "replayscm:closing_text": "worlds of an item",
    "replayscm:_curve": "steps of runs",
    "replayscm:_summary": "items of a pool",
    "replayscm:_mean_regret": "steps of one answer",
    "suites:share_consistent": "originals whose copies agree",
}
# tables of papers: cohorts pooled over systems, and figures of pools
PAPERS = {
    *("replayscm:pooled_means", "replayscm:_bin_line", "replayscm:_statistic_lines", "replayscm:_mean_and_range"),
}


def _name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def means_in(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield calls of means, and sums that are divided by a number of something."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _name(node.func) in MEANS:
            yield node
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
            is_sum = isinstance(node.left, ast.Call) and _name(node.left.func) in ("sum", "fsum")
            number = node.right
            is_number = isinstance(number, ast.Call) and _name(number.func) == "len"
            is_number |= _name(number).startswith(("num", "count"))
            if is_sum and is_number:
                yield node


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("fmean(values)", 1),
        ("np.nanmean(table, axis=1)", 1),
        ("table.mean()", 1),
        ("fsum(rates) / len(rates)", 1),
        ("sum(x for x in y) / self.num_items", 1),
        ("total / len(rates)", 0),
        ("exact_mean(values)", 0),
        ("sum(values)", 0),
    ],
)
def test_means_are_recognised(text: str, number: int) -> None:
    assert len([*means_in(ast.parse(text))]) == number


def test_no_other_module_takes_means_of_answers() -> None:
    found: dict[str, str] = {}
    for path in sorted((CHECKOUT / "bench").rglob("*.py")):
        folder, name = path.relative_to(CHECKOUT / "bench").parts[0], path.relative_to(CHECKOUT).as_posix()
        for statement in ast.parse(path.read_text(encoding="utf-8")).body if folder not in ("answers", "lab") else ():
            if any(means_in(statement)):
                found[f"{folder.removesuffix('.py')}:{getattr(statement, 'name', '')}"] = name
    other = {key: name for key, name in found.items() if key not in ELSEWHERE.keys() | PAPERS}
    assert not other, "take these from bench/answers, or say what they average"
    assert not ELSEWHERE.keys() - found.keys(), "no longer there: take them off the list"


# --- Reliability against a written example, Wilson intervals against published ones -----------------------------------
def test_reliability_of_a_written_example() -> None:
    shares = [(Fraction(0), False), (Fraction(1, 4), False), (Fraction(1, 4), True), (Fraction(3, 4), True)]
    measured = reliability([Forecast(*pair) for pair in [*shares, (Fraction(1), True)]], num_bins=4)
    assert (measured.number, measured.predicted, measured.realised) == (5, 2.25, 3)
    assert measured.standard_error == pytest.approx((3 * 3 / 16) ** 0.5)
    assert [(b.low, b.high, b.number) for b in measured.bins] == [(0, 0.25, 3), (0.5, 0.75, 1), (0.75, 1, 1)]
    assert [b.predicted for b in measured.bins] == [pytest.approx(1 / 6), 0.75, 1]
    assert [b.realised for b in measured.bins] == [pytest.approx(1 / 3), 1, 1]


def test_wilson_intervals_are_the_published_ones() -> None:
    """Newcombe 1998 (Statistics in Medicine 17, table I), method 3, without continuity correction."""
    assert wilson(81, 263) == pytest.approx((0.2553, 0.3662), abs=5e-5)
    assert wilson(15, 148) == pytest.approx((0.0624, 0.1605), abs=5e-5)
    assert wilson(0, 20) == pytest.approx((0.0, 0.1611), abs=5e-5)
    assert all(wilson(0, number)[0] == 0 and wilson(number, number)[1] == 1 for number in range(1, 200))
    assert wilson(1, 29) == pytest.approx((0.0061, 0.1718), abs=5e-5)
