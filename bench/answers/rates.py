"""Rates of answers: exact means and weights, paired differences, intervals, and names of systems in tables."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import atan, comb, cos, fsum, pi, sin, sqrt
from statistics import NormalDist, stdev
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from calibrant.bench.core.scoring import AnswerContext
from calibrant.dsl.errors import in_one_line

NORMAL_95 = 1.959964  # half width of a 95 % interval, in standard errors


@dataclass(frozen=True, slots=True)
class Forecast:
    """The predicted probability of an event, and whether it occurred."""

    predicted: Fraction
    realised: bool


@dataclass(frozen=True, slots=True)
class ReliabilityBin:
    """Forecasts with predictions in (low, high]; the first bin includes 0.

    number: number of forecasts; predicted: mean prediction; realised: frequency of the event
    interval: 95 % Wilson score interval of the frequency
    """

    low: float
    high: float
    number: int
    predicted: float
    realised: float
    interval: tuple[float, float]


@dataclass(frozen=True, slots=True)
class Reliability:
    """Data of a reliability diagram over a pool.

    number: number of forecasts; predicted, realised: expected and actual number of events among them
    standard_error: standard deviation of the number of events if the predictions are right
    bins: the non-empty bins
    """

    number: int
    predicted: float
    realised: int
    standard_error: float
    bins: tuple[ReliabilityBin, ...]


def reliability(forecasts: Iterable[Forecast], *, num_bins: int = 10) -> Reliability:
    """Return predicted and realised frequencies in bins of equal width."""
    counts, realised = [0] * num_bins, [0] * num_bins
    predicted, variance = [Fraction()] * num_bins, Fraction()
    for forecast in forecasts:
        index = max(0, -int(-forecast.predicted * num_bins // 1) - 1)  # the upper end of a bin belongs to it
        counts[index] += 1
        realised[index] += forecast.realised
        predicted[index] += forecast.predicted
        variance += forecast.predicted * (1 - forecast.predicted)
    bins = [
        ReliabilityBin(
            index / num_bins,
            (index + 1) / num_bins,
            count,
            float(predicted[index] / count),
            realised[index] / count,
            wilson(realised[index], count),
        )
        for index, count in enumerate(counts)
        if count
    ]
    return Reliability(sum(counts), float(sum(predicted)), sum(realised), sqrt(variance), tuple(bins))


def wilson(successes: float, n: float) -> tuple[float, float]:
    """Return the 95 % score interval of a binomial proportion (Wilson 1927). n: number of trials, possibly weighted."""
    z = NORMAL_95
    share, z2 = successes / n, z * z
    middle = (share + z2 / (2 * n)) / (1 + z2 / n)
    half = z / (1 + z2 / n) * sqrt(share * (1 - share) / n + z2 / (4 * n * n))
    # without successes the lower end is exactly 0, without failures the upper one 1; rounding misses both by 1e-16
    return max(0.0, middle - half) if successes > 0 else 0.0, min(1.0, middle + half) if successes < n else 1.0


# --- Names of systems and pools in tables: all distinct, also where a browser collapses white space -------------------
SHORT_DIGEST = 8  # hexadecimal digits of a digest that are shown
CHOSEN = " (chosen)"  # suffix of the system's name in the row of the answers that a tie rule chose


class SystemKey(NamedTuple):
    """Identity of a system in tables. options: as `options_text`; is_chosen: whether a tie rule chose its answers."""

    system: str
    options: str
    is_chosen: bool = False

    @classmethod
    def of(cls, context: AnswerContext) -> SystemKey:
        return cls(context.system, context.options, context.is_chosen)


class Origin(NamedTuple):
    """Properties that answers of one system to one pool share.

    system: of a person, the group of all people; participant: a person's id, else empty
    """

    system: SystemKey
    participant: str
    setting: str
    stratum: str
    pool: str
    pool_digest: str
    pool_size: int
    outcome: str | None


def system_names(configs: Mapping[SystemKey, Mapping[str, Any]]) -> dict[SystemKey, str]:
    """Return displayed names of systems, with the options in which runs differ; names that look alike are quoted.

    Answers that `score` read have no options; beside a run of the same name they are `NAME (scored)`.
    """
    configs_by_system: dict[str, list[Mapping[str, Any]]] = {}
    for key, config in configs.items():
        configs_by_system.setdefault(key.system, []).append(config)
    differing = {system: differing_names(system_configs) for system, system_configs in configs_by_system.items()}
    suffixes = {
        key: option_suffix(config, differing[key.system]) + CHOSEN * key.is_chosen for key, config in configs.items()
    }
    names = {key: in_one_line(key.system + suffix) for key, suffix in suffixes.items()}
    keys_by_visible_name: dict[str, list[SystemKey]] = {}
    for key, name in names.items():
        keys_by_visible_name.setdefault(_visible(name), []).append(key)
    for group in (group for group in keys_by_visible_name.values() if len(group) > 1):
        has_suffix = any(suffixes[key] for key in group)
        for key in group:
            if key.system != _visible(key.system) or (has_suffix and not suffixes[key]):
                names[key] = in_one_line(f"{_quote(key.system)}{suffixes[key]}")
        if len({names[key] for key in group}) < len(group):
            names |= {key: f"{names[key]} (scored)" for key in group if not configs[key]}
    return names


def _visible(name: str) -> str:
    """Return a name as HTML displays it: outer white space is lost, inner white space is one space."""
    return " ".join(name.split())


def _quote(name: str) -> str:
    """Return a name in quotes; of adjacent spaces all but the last are escaped."""
    return re.sub(r" (?= )", r"\\x20", repr(name))


def pool_labels(names: Mapping[str, str]) -> dict[str, str]:
    """Return digest -> name of the pool in tables, followed by the start of its digest where names are equal."""
    counts = Counter(names.values())
    return {
        digest: name if counts[name] == 1 else f"{name} ({digest[:SHORT_DIGEST]})" for digest, name in names.items()
    }


def differing_options(config: Mapping[str, Any], configs: Sequence[Mapping[str, Any]]) -> str:
    """Return the suffix of a system's name with the options in which its configurations differ; empty if none do."""
    return option_suffix(config, differing_names(configs))


def differing_names(configs: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the options in which configurations differ."""
    names = sorted({name for config in configs for name in config})
    return [name for name in names if any(config.get(name) != configs[0].get(name) for config in configs)]


def option_suffix(config: Mapping[str, Any], names: Sequence[str]) -> str:
    """Return these options of a configuration as a suffix of a system's name."""
    return f" ({', '.join(f'{name}={config.get(name)}' for name in names)})" if names else ""


def drop_option(system: str, name: str, value: str) -> str:
    """Return a system's name without one option of its suffix, for tables with a column for that option."""
    option = in_one_line(f"{name}={value}")
    for part, replacement in ((f" ({option})", ""), (f"({option}, ", "("), (f", {option}", "")):
        if part in system:
            return system.replace(part, replacement, 1)
    return system


def natural(text: str) -> tuple[tuple[str, int], ...]:
    """Return a sort key by which numbers inside names are ordered by value: n8 before n10."""
    parts = re.split(r"(\d+)", text)
    return tuple((part, 0) if not part.isdecimal() else ("", int(part)) for part in parts)


# --- Intervals of rates and means, over items or units of items -------------------------------------------------------
# A rate is a ratio of sums over items; several answers to an item count by their mean. Items that share a latent model
# form a unit: they tend to be right or wrong together. Let unit u have n_u items with the sum s_u, and let G units have
# n items in all. Then the variance is G/(G-1) sum_u (s_u - rate * n_u)^2 / n^2, with Student's t at G-1 degrees of
# freedom (Miller, arXiv:2411.00640; the factor G/(G-1) corrects for few units). A share has Wilson's interval instead:
# for n trials if no items share a unit; for G trials if it is near 0 or 1 or all units are equal. Measured coverage of
# the 95 % interval with 6 to 60 units of 1 to 4 items at rates of .5, .2 and .05: .92 to 1.00 (percentile bootstrap:
# .87 to .99).
#
# Skill and paired differences have the bootstrap over units, which resamples numerator and denominator together. Its
# seed is fixed, so equal input gives equal intervals; resamples with a denominator of 0 are left out.
#
# Means over participants are clustered by participant and item: both are resampled, and the weight of an answer is the
# product of the two counts (the pigeonhole bootstrap of A. B. Owen 2007, The Annals of Applied Statistics 1, 386).
#
# Student's quantile is computed here, to 2e-8 of scipy's: scipy is an optional dependency and takes 1.2 s to import.
RESAMPLES = 10_000
SEED = 2026
NUM_DRAWS = 4_000  # resamples of participants and items
LEVEL = 0.95
MIN_UNITS = 6  # for a bootstrap interval; conditional rates over fewer are suppressed as well (bench.core.metrics)
MAX_BISECTED = 100  # degrees of freedom up to which the quantile is bisected
TINY = 1e-18  # sums of squares below it are rounding errors of equal units
NEAR = 0.1  # shares closer to 0 or 1 have Wilson's interval: the clustered one covers only .90 at a mean of .9
INTERVALS = (
    "95 % intervals over items: of shares Wilson's, of other means Student's t; where items share a latent model,"
    " clustered by it (Student's t, near 0 and 1 Wilson's at as many items as there are models)."
)

Array: TypeAlias = NDArray[np.float64]
Value: TypeAlias = tuple[str, str, float]  # participant, item, value


class Interval(NamedTuple):
    low: float
    high: float

    @property
    def excludes_zero(self) -> bool:
        return self.low > 0 or self.high < 0


@lru_cache(maxsize=4)
def resample_counts(num_units: int) -> Array:
    """Return how often each resample holds each unit: shape (RESAMPLES, num_units), rows sum to num_units."""
    generator = np.random.Generator(np.random.PCG64(SEED))
    counts = generator.multinomial(num_units, np.full(num_units, 1 / num_units), size=RESAMPLES)
    return counts.astype(np.float64)


def bootstrap_intervals(sums: Array, counts: Array) -> list[Interval | None]:
    """Return the intervals of `sums.sum(0) / counts.sum(0)` over resampled units; None for fewer than MIN_UNITS.

    sums, counts: addends of numerators and denominators, shape (units, quantities)
    """
    num_units = len(sums)
    if num_units < MIN_UNITS:
        return [None] * sums.shape[1]
    columns = np.hstack([sums, counts])
    keys = [column.tobytes() for column in columns.T]
    # equal columns are resampled once: most quantities have the count 1 on every unit
    index_by_key = {key: index for index, key in enumerate(dict.fromkeys(keys))}
    distinct = columns[:, [keys.index(key) for key in index_by_key]]
    totals = resample_counts(num_units) @ np.ascontiguousarray(distinct)
    return [
        _quantiles(totals[:, index_by_key[numerator]], totals[:, index_by_key[denominator]])
        for numerator, denominator in zip(keys[: sums.shape[1]], keys[sums.shape[1] :], strict=True)
    ]


def _quantiles(numerators: Array, denominators: Array) -> Interval | None:
    defined = denominators > 0
    if not defined.any():
        return None
    tail = (1 - LEVEL) / 2
    low, high = np.quantile(numerators[defined] / denominators[defined], [tail, 1 - tail])
    return Interval(float(low), float(high))


class Moments(NamedTuple):
    """Sums over units that the interval of a ratio needs.

    num_units: number of units with a denominator above 0; total: sum of the denominators
    mean: the ratio, 0 if `total` is 0; spread: sum over units of (numerator - mean * denominator)^2
    """

    num_units: int
    total: float
    mean: float
    spread: float


def unit_moments(sums: Array, counts: Array) -> list[Moments]:
    """Return the moments of ratios. sums, counts: numerators and denominators by unit, shape (ratios, units)."""
    totals = np.ascontiguousarray(counts).sum(axis=1)
    means = np.ascontiguousarray(sums).sum(axis=1) / np.where(totals > 0, totals, 1)
    spreads = np.ascontiguousarray((sums - means[:, None] * counts) ** 2).sum(axis=1)
    columns = ((counts > 0).sum(axis=1), totals, means, spreads)
    return [*map(Moments, *(column.tolist() for column in columns))]


@lru_cache(1 << 14)  # most cells of a report have one of few distinct moments
def unit_interval(moments: Moments, *, is_share: bool, is_clustered: bool) -> Interval | None:
    """Return the 95 % interval of a ratio of sums over independent units; None for fewer than two units.

    None also for equal units if the ratio is no share. is_share: whether all values are within 0 to 1
    is_clustered: whether some unit has several items
    """
    num_units, total, mean, spread = moments
    if num_units < 2:
        return None
    if is_share and not is_clustered:
        return Interval(*_wilson(mean, total))
    if is_share and (spread < TINY or min(mean, 1 - mean) <= NEAR):
        return Interval(*_wilson(mean, num_units))
    if spread < TINY:
        return None
    half = t_quantile(num_units - 1) * sqrt(num_units / (num_units - 1) * spread) / total
    low, high = mean - half, mean + half
    return Interval(max(0.0, low), min(1.0, high)) if is_share else Interval(low, high)


def _wilson(mean: float, n: float) -> tuple[float, float]:
    """Return `wilson` of a share of n trials, after clipping it to 0 to 1, which rounded sums may exceed."""
    return wilson(min(max(mean, 0.0), 1.0) * n, n)


@lru_cache(maxsize=1 << 12)
def t_quantile(degrees: int, tail: float = 0.025) -> float:
    """Return the upper quantile of Student's t with integer degrees of freedom.

    It is bisected up to MAX_BISECTED degrees; above, it is the expansion of Abramowitz and Stegun 26.7.5, with an error
    below 1e-7.
    """
    if degrees > MAX_BISECTED:
        z = NormalDist().inv_cdf(1 - tail)
        terms = (z**3 + z) / 4, (5 * z**5 + 16 * z**3 + 3 * z) / 96, (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
        return z + fsum(term / degrees**k for k, term in enumerate(terms, 1))
    low, high = 0.0, 1.0
    while t_tail(high, degrees) > tail:
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if t_tail(middle, degrees) > tail else (low, middle)
    return (low + high) / 2


def t_tail(value: float, degrees: int) -> float:
    """Return P(T > value) of Student's t for value >= 0: the finite sums of Abramowitz and Stegun 26.7.3 and 26.7.4."""
    angle = atan(value / sqrt(degrees))
    cosine, sine = cos(angle), sin(angle)
    if degrees % 2:
        term = total = cosine if degrees > 1 else 0.0
        for k in range(3, degrees, 2):
            term *= cosine * cosine * (k - 1) / k
            total += term
        inside = 2 / pi * (angle + sine * total)
    else:
        term = total = 1.0
        for k in range(2, degrees, 2):
            term *= cosine * cosine * (k - 1) / k
            total += term
        inside = sine * total
    return (1 - inside) / 2


# --- Means over participants ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ClusteredMean:
    """A mean over participants of each one's mean over items.

    interval: its 95 % interval; None for fewer than MIN_UNITS participants
    with_items: whether items are resampled too; fewer than MIN_UNITS items are held fixed
    """

    mean: float
    interval: Interval | None
    num_participants: int
    num_items: int

    @property
    def with_items(self) -> bool:
        return self.num_items >= MIN_UNITS


def clustered_mean(values: Sequence[Value]) -> ClusteredMean:
    """Return the mean of one value for each participant and item; `ValueError` for no values.

    If all answers are 0, or all are 1, the bootstrap has width 0, so the interval is Wilson's over participants or
    items, whichever are fewer: answers of one participant, or to one item, may be fully correlated.
    """
    if not values:
        raise ValueError("no values")
    people = {name: k for k, name in enumerate(sorted({value[0] for value in values}))}
    items = {name: k for k, name in enumerate(sorted({value[1] for value in values}))}
    table = np.full((len(people), len(items)), np.nan)
    for person, item, value in values:
        table[people[person], items[item]] = value
    present = ~np.isnan(table)
    filled = np.where(present, table, 0.0)
    mean = float((filled.sum(1) / present.sum(1)).mean())
    result = ClusteredMean(mean, None, len(people), len(items))
    if len(people) < MIN_UNITS:
        return result
    if mean in (0.0, 1.0) and set(table[present]) <= {0.0, 1.0}:
        num_trials = min(len(people), len(items)) if result.with_items else len(people)
        interval = Interval(*wilson(mean * num_trials, num_trials))
    else:
        interval = _bootstrap(filled, present.astype(np.float64), with_items=result.with_items)
    return ClusteredMean(mean, interval, len(people), len(items))


def _bootstrap(filled: np.ndarray, present: np.ndarray, *, with_items: bool) -> Interval:
    """Return the pigeonhole bootstrap's interval. filled: values, 0 if absent; present: 1 or 0; (people, items)."""
    num_people, num_items = filled.shape
    generator = np.random.Generator(np.random.PCG64(SEED))
    person_counts = generator.multinomial(num_people, np.full(num_people, 1 / num_people), size=NUM_DRAWS)
    if with_items:
        item_counts = generator.multinomial(num_items, np.full(num_items, 1 / num_items), size=NUM_DRAWS)
    else:
        item_counts = np.ones((NUM_DRAWS, num_items), dtype=np.int64)
    totals, num_answers = item_counts @ filled.T, item_counts @ present.T  # (draws, people)
    has_any = num_answers > 0  # a resample without any item of a participant leaves the participant out
    means = np.divide(totals, num_answers, out=np.zeros_like(totals), where=has_any)
    weights = person_counts * has_any
    sizes = weights.sum(1)
    resampled_means = (weights * means).sum(1)[sizes > 0] / sizes[sizes > 0]
    low, high = np.quantile(resampled_means, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Interval(float(low), float(high))


# --- Exact means, weights of answers, sums by class -------------------------------------------------------------------
Number: TypeAlias = int | Fraction


def exact_mean(values: Iterable[float | Fraction]) -> float:
    """Return the exact mean, rounded once; `ZeroDivisionError` for no values."""
    counts = Counter(values)  # fractions are slow, and few values are distinct
    return float(sum((Fraction(value) * times for value, times in counts.items()), Fraction()) / counts.total())


def mean_if_known(values: Sequence[float | None]) -> float | None:
    """Return the exact mean; None if a value is None or there are no values."""
    numbers = [value for value in values if value is not None]
    return exact_mean(numbers) if numbers and len(numbers) == len(values) else None


def weighted_sum(values: Iterable[float | Number], weights: Iterable[Number]) -> Fraction:
    """Return the exact sum of values times weights; fast if few pairs are distinct."""
    counts = Counter(zip(values, weights, strict=True))
    return sum((Fraction(value) * weight * times for (value, weight), times in counts.items()), Fraction())


def item_weights(items: Sequence[Hashable]) -> list[Number]:
    """Return the weight of each answer: 1/k for one of k answers to an item. items: item of each answer."""
    counts = Counter(items)
    weights: dict[int, Number] = {k: 1 if k == 1 else Fraction(1, k) for k in {*counts.values()}}
    return [weights[counts[item]] for item in items]


def people_weights(participants: Sequence[str]) -> Mapping[str, Fraction]:
    """Return participant -> weight of each of their answers: participants weigh alike, and all weights add up to 1.

    participants: participant of each answer
    """
    counts = Counter(participants)
    return {name: Fraction(1, len(counts) * num_answers) for name, num_answers in counts.items()}


def sum_classes(shares: Iterable[tuple[Any, Number]]) -> dict[Any, Number]:
    """Return class -> exact sum of its shares, from (class, share) pairs."""
    sums: dict[Any, Number] = {}
    for (kind, share), times in Counter(shares).items():
        sums[kind] = sums.get(kind, 0) + share * times
    return sums


def pass_at(num_samples: int, num_right: int, k: int) -> Fraction:
    """Return the probability that k samples, drawn without replacement, hold a right one; k <= num_samples.

    The unbiased estimate 1 - C(n-c, k) / C(n, k) (Chen et al. 2021, Evaluating Large Language Models ..., eq. 1).
    """
    return 1 - Fraction(comb(num_samples - num_right, k), comb(num_samples, k))


# --- Differences over matched units -----------------------------------------------------------------------------------
Means: TypeAlias = Mapping[Any, float]
"""Means of a metric by unit."""


class Difference(NamedTuple):
    """A mean difference over matched units; mean and interval are None if no unit matches."""

    mean: float | None
    interval: Interval | None
    num_units: int


def paired_differences(pairs: Sequence[tuple[Means, Means]], cluster: Mapping[Any, str]) -> list[Difference]:
    """Return the mean of `first - second` over the units in both, for each pair of means.

    Intervals resample whole clusters of units; pairs over the same clusters share the resampling, the largest cost.

    cluster: unit -> its cluster
    """
    units = [sorted(first.keys() & second.keys()) for first, second in pairs]
    clusters_of_pair = [tuple(sorted({cluster[unit] for unit in shared})) for shared in units]
    results = [Difference(None, None, 0)] * len(pairs)
    for names in dict.fromkeys(filter(None, clusters_of_pair)):
        pair_indices = [k for k, unit_names in enumerate(clusters_of_pair) if unit_names == names]
        row_by_name = {name: row for row, name in enumerate(names)}
        sums, counts = np.zeros((len(names), len(pair_indices))), np.zeros((len(names), len(pair_indices)))
        for column, k in enumerate(pair_indices):
            first, second = pairs[k]
            for unit in units[k]:
                sums[row_by_name[cluster[unit]], column] += first[unit] - second[unit]
                counts[row_by_name[cluster[unit]], column] += 1
        intervals = bootstrap_intervals(sums, counts)
        for column, k in enumerate(pair_indices):
            num_units = len(units[k])
            results[k] = Difference(float(sums[:, column].sum() / num_units), intervals[column], num_units)
    return results


def normal_difference(first: Means, second: Means, scale: float = 1) -> Difference:
    """Return the mean of `scale * (first - second)` with a normal interval, which papers use; None below MIN_UNITS."""
    differences = [scale * (first[unit] - second[unit]) for unit in sorted(first.keys() & second.keys())]
    if len(differences) < MIN_UNITS:
        return Difference(mean_if_known(differences), None, len(differences))
    mean, half = exact_mean(differences), NORMAL_95 * stdev(differences) / len(differences) ** 0.5
    return Difference(mean, Interval(mean - half, mean + half), len(differences))
