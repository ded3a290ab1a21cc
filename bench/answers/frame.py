"""Scored answers as columns: items, units, values, samples and times as codes, so that a metric is one pass over them.

A rate is a ratio of sums over items, one of k answers to an item weighing 1/k; of a group of people every participant
weighs the same. Means are exact: they are those of the multiset of values, however the answers came in.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from math import lcm, nan
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from calibrant.bench.answers import rates as answers_rates
from calibrant.bench.core.metrics import Right, Sample, Values, weighted_mean
from calibrant.bench.core.scoring import PEOPLE_SYSTEM, AnswerContext, participant_of

Codes: TypeAlias = NDArray[np.int32 | np.int64]
Floats: TypeAlias = NDArray[np.float64]
_DIGEST = 16  # hexadecimal digits of a meaning that is stored as a number
_FLAGS = [(bool(f & 1), bool(f & 2), bool(f & 4), bool(f & 8)) for f in range(16)]
MAX_BLOCK = 1 << 18  # values of which sums over units are taken at a time
MAX_EXACT = 1 << 53  # doubles hold every whole number up to it
_NOT_A_DIGEST, _UNKNOWN = 16, 32  # flags: the meaning is another text, by its place; there is none


@dataclass(frozen=True, eq=False)
class Columns:
    """Columns of answers, and what their codes stand for.

    items, units: sorted; unit_of_item: of each item, its unit; values: distinct lists of values, also as an array
    origin, item, code: of each answer, its places in `origins`, `items` and `values`
    flags, meaning: of each answer as a sample; meanings: those that are no digests; seconds: NaN where unknown
    """

    origins: Sequence[answers_rates.Origin]
    items: Sequence[Any]
    units: Sequence[str]
    unit_of_item: Codes
    values: Sequence[Values]
    origin: Codes
    item: Codes
    code: Codes
    flags: NDArray[np.uint8]
    meaning: NDArray[np.uint64]
    meanings: Sequence[str]
    seconds: Floats

    @cached_property
    def table(self) -> Floats:
        """Values as an array, NaN where a metric is not defined."""
        return np.array(self.values, dtype=np.float64).reshape(len(self.values), self.num_metrics)

    @property
    def num_metrics(self) -> int:
        return len(self.values[0]) if self.values else 0

    @cached_property
    def marks(self) -> NDArray[np.uint8]:
        """For each list of values, which metrics it has, and behind these which are 1."""
        return np.hstack((~np.isnan(self.table), np.equal(self.table, 1))).astype(np.uint8)

    @cached_property
    def are_flags(self) -> list[bool]:
        """Whether each metric has no other values than 0 and 1."""
        flags: list[bool] = (np.isnan(self.table) | (self.table == 0) | (self.table == 1)).all(axis=0).tolist()
        return flags

    @cached_property
    def _scaled(self) -> dict[int, tuple[list[int], int]]:
        return {}

    def scaled_values(self, place: int) -> tuple[list[int], int]:
        """Return a metric of each list of values as whole numbers, 0 where it is not defined, and their divisor."""
        if place not in self._scaled:
            ratios = [(values[place] or 0).as_integer_ratio() for values in self.values]
            divisor = max(denominator for _, denominator in ratios)  # powers of two
            self._scaled[place] = [number * (divisor // denominator) for number, denominator in ratios], divisor
        return self._scaled[place]

    @cached_property
    def patterns(self) -> tuple[NDArray[np.bool_], Sequence[int]]:
        """Return for which lists of values metrics are defined: distinct columns, and that of each metric."""
        patterns, which = np.unique(~np.isnan(self.table), axis=1, return_inverse=True)
        return patterns.T, np.ravel(which).tolist()

    @cached_property
    def value_ranks(self) -> Codes:
        """Return the place of each list of values in an order that does not depend on the files'."""
        ranks = np.empty(len(self.values), dtype=np.int64)
        ranks[np.lexsort(np.nan_to_num(self.table, nan=-1.0).T)] = np.arange(len(self.values))
        return ranks


class Answers:
    """Collects scored answers as columns, about 30 bytes each."""

    def __init__(self, unit: Callable[[Any], str]) -> None:
        self._unit = unit
        self._origins: dict[tuple[Hashable, ...], int] = {}
        self.configs: dict[answers_rates.SystemKey, Mapping[str, Any]] = {}
        self._items: dict[Any, int] = {}
        self._values: dict[Values, int] = {}
        self._meanings: dict[str, int] = {}
        self._origin, self._item, self._code = array("i"), array("i"), array("i")
        self._flags, self._meaning, self._seconds = array("B"), array("Q"), array("d")

    def __len__(self) -> int:
        return len(self._item)

    def add(self, context: AnswerContext, values: Values, sample: Sample) -> None:
        """Add one answer of which these values were read."""
        key = (context.system, context.options, context.is_chosen, context.setting, context.stratum, context.pool)
        key += (context.pool_digest, context.pool_size, context.outcome)  # type: ignore[assignment]
        origin = self._origins.get(key)
        if origin is None:
            origin = self._origins[key] = len(self._origins)
            self.configs.setdefault(_system_of(context), context.config)
        self._origin.append(origin)
        self._append((context.pool_digest, context.instance), values, context.seconds)
        self._append_sample(sample)

    def add_values(self, item: Any, values: Values) -> None:
        """Add the values of an answer of which nothing else is of interest."""
        self._origin.append(0)
        self._append(item, values, None)
        self._flags.append(_UNKNOWN)
        self._meaning.append(0)

    def _append(self, item: Any, values: Values, seconds: float | None) -> None:
        self._item.append(self._items.setdefault(item, len(self._items)))
        self._code.append(self._values.setdefault(values, len(self._values)))
        if seconds is not None or self._seconds:
            self._seconds.extend([nan] * (len(self._item) - 1 - len(self._seconds)))
            self._seconds.append(nan if seconds is None else seconds)

    def _append_sample(self, sample: Sample) -> None:
        valid, correct, train_exact, heldout_exact, meaning = sample
        flags, number = valid | correct << 1 | train_exact << 2 | heldout_exact << 3, 0
        if meaning is None:
            flags |= _UNKNOWN
        elif (digest := _read_digest(meaning)) is not None:
            number = digest
        else:
            flags |= _NOT_A_DIGEST
            number = self._meanings.setdefault(meaning, len(self._meanings))
        self._flags.append(flags)
        self._meaning.append(number)

    def columns(self) -> Columns:
        """Return the columns of what was added so far."""
        items, places = [*self._items], sorted(range(len(self._items)), key=[*self._items].__getitem__)
        ranks = np.empty(len(items), dtype=np.int32)
        ranks[places] = np.arange(len(items))
        sorted_items = [items[place] for place in places]
        unit_names = [self._unit(item) for item in sorted_items]
        units = sorted(set(unit_names))
        unit_places = {unit: index for index, unit in enumerate(units)}
        seconds = np.full(len(self._item), nan)
        seconds[: len(self._seconds)] = self._seconds
        return Columns(
            [_origin_of(key) for key in self._origins],
            sorted_items,
            units,
            np.array([unit_places[name] for name in unit_names], dtype=np.int64),
            [*self._values],
            np.array(self._origin, dtype=np.int32),
            ranks[np.array(self._item, dtype=np.int32)],
            np.array(self._code, dtype=np.int32),
            np.array(self._flags, dtype=np.uint8),
            np.array(self._meaning, dtype=np.uint64),
            [*self._meanings],
            seconds,
        )

    def group(self, key: Callable[[answers_rates.Origin], Hashable]) -> dict[Any, AnswerFrame]:
        """Return the answers by a key of their origins, in the order in which the keys came."""
        columns = self.columns()
        groups: dict[Hashable, int] = {}
        group_of_origin = np.array([groups.setdefault(key(o), len(groups)) for o in columns.origins], dtype=np.int64)
        group = group_of_origin[columns.origin]
        order = np.lexsort((columns.item, group))
        ends = np.cumsum(np.bincount(group, minlength=len(groups)))
        return dict(zip(groups, (AnswerFrame(columns, part) for part in np.split(order, ends[:-1])), strict=True))


def _system_of(context: AnswerContext) -> answers_rates.SystemKey:
    key = answers_rates.SystemKey.of(context)
    return key._replace(system=PEOPLE_SYSTEM) if participant_of(context.system) else key


def _origin_of(key: tuple[Any, ...]) -> answers_rates.Origin:
    system, options, is_chosen, setting, stratum, pool, pool_digest, pool_size, outcome = key
    participant = participant_of(system)
    named = answers_rates.SystemKey(PEOPLE_SYSTEM if participant else system, options, is_chosen)
    return answers_rates.Origin(named, participant, setting, stratum, pool, pool_digest, pool_size, outcome)


def _read_digest(meaning: str) -> int | None:
    """Return the number that sixteen lower hexadecimal digits spell; None for any other text."""
    if len(meaning) != _DIGEST:
        return None
    try:
        number = int(meaning, 16)
    except ValueError:
        return None
    return number if f"{number:016x}" == meaning else None  # no capitals, signs or underscores


@dataclass(frozen=True, eq=False)
class AnswerFrame:
    """Some answers of `columns`. index: their places there, by item, those to an item as they came in."""

    columns: Columns
    index: Codes
    _blocks: dict[int, list[answers_rates.Moments]] = field(default_factory=dict, init=False, repr=False)

    @classmethod
    def of(cls, answers: Iterable[tuple[Any, str, Values]]) -> AnswerFrame:
        """Return the frame of answers with their items, units and values."""
        units: dict[Any, str] = {}
        collected = Answers(units.__getitem__)
        for item, unit, values in answers:
            units[item] = unit
            collected.add_values(item, values)
        columns = collected.columns()
        return cls(columns, np.argsort(columns.item, kind="stable"))

    def __len__(self) -> int:
        return len(self.index)

    @cached_property
    def _starts(self) -> Codes:
        """Return where the answers to each item begin."""
        return np.flatnonzero(np.diff(self.columns.item[self.index], prepend=-1))

    @cached_property
    def sizes(self) -> Codes:
        """Number of answers to each item."""
        return np.diff(self._starts, append=len(self.index))

    @cached_property
    def _item_codes(self) -> Codes:
        return self.columns.item[self.index[self._starts]]

    @cached_property
    def items(self) -> list[Any]:
        """Return the items, sorted."""
        return [self.columns.items[code] for code in self._item_codes]

    @property
    def num_items(self) -> int:
        return len(self._starts)

    @cached_property
    def item(self) -> Codes:
        """Place of each answer's item in `items`."""
        return np.repeat(np.arange(self.num_items), self.sizes)

    @cached_property
    def times(self) -> Codes:
        """Number of answers to each answer's item."""
        return np.repeat(self.sizes, self.sizes)

    @cached_property
    def _unit_codes(self) -> tuple[Codes, Codes]:
        """Return the units, and the place of each item's among them."""
        codes, places = np.unique(self.columns.unit_of_item[self._item_codes], return_inverse=True)
        return codes, places

    @cached_property
    def units(self) -> list[str]:
        """Return the units, sorted."""
        return [self.columns.units[code] for code in self._unit_codes[0]]

    @cached_property
    def unit(self) -> Codes:
        """Place of each answer's unit in `units`."""
        return self._unit_codes[1][self.item]

    @cached_property
    def clusters(self) -> dict[Any, str]:
        """Return the unit of each item, and of each unit."""
        of_items = zip(self.items, self._unit_codes[1].tolist(), strict=True)
        return {item: self.units[place] for item, place in of_items} | {unit: unit for unit in self.units}

    @property
    def is_clustered(self) -> bool:
        """Whether some items share a unit."""
        return len(self.units) < self.num_items

    @cached_property
    def origins(self) -> list[answers_rates.Origin]:
        """Return the distinct origins of the answers."""
        if not self.columns.origins:
            return []
        # no np.unique: it imports np.ma, a twentieth of a short `score`
        codes = np.flatnonzero(np.bincount(self.columns.origin[self.index])).tolist()
        return [self.columns.origins[code] for code in codes]

    @cached_property
    def outcomes(self) -> Counter[str]:
        """Number of answers by outcome, where they have one."""
        numbers: Counter[str] = Counter()
        codes, counts = np.unique(self.columns.origin[self.index], return_counts=True)
        for code, number in zip(codes.tolist(), counts.tolist(), strict=True):
            if (outcome := self.columns.origins[code].outcome) is not None:
                numbers[outcome] += number
        return numbers

    @cached_property
    def participants(self) -> list[str]:
        """Return the participant who gave each answer; empty of systems that are no people."""
        if not any(origin.participant for origin in self.origins):
            return []
        return [self.columns.origins[code].participant for code in self.columns.origin[self.index].tolist()]

    @property
    def seconds(self) -> Floats:
        """Return the time of each answer, NaN where it is not known."""
        return self.columns.seconds[self.index]

    def observe(self) -> Iterator[tuple[Any, str, int, Values, float | None]]:
        """Yield item, unit, number of answers to the item, values and time of each answer."""
        columns = (self.item, self.unit, self.times, self.columns.code[self.index], self.seconds)
        for item, unit, times, code, seconds in zip(*(column.tolist() for column in columns), strict=True):
            time = seconds if seconds == seconds else None
            yield self.items[item], self.units[unit], times, self.columns.values[code], time

    # --- Parts ---

    def restrict(self, keep: Callable[[Any], bool]) -> AnswerFrame:
        """Return the answers to the items to keep."""
        mask = np.array([keep(item) for item in self.items], dtype=bool)
        return AnswerFrame(self.columns, self.index[mask[self.item]])

    def restrict_units(self, units: Collection[str]) -> AnswerFrame:
        """Return the answers to the items of these units."""
        mask = np.array([unit in units for unit in self.units], dtype=bool)
        return AnswerFrame(self.columns, self.index[mask[self.unit]])

    def merge(self, others: Iterable[AnswerFrame]) -> AnswerFrame:
        """Return these answers and those of other frames of the same columns."""
        index = np.concatenate([self.index, *(other.index for other in others)])
        return AnswerFrame(self.columns, index[np.argsort(self.columns.item[index], kind="stable")])

    # --- Rates ---

    def read(self, place: int) -> Floats:
        """Return the value of a metric for each answer, NaN where it is not defined."""
        values: Floats = self.columns.table[self.columns.code[self.index], place]
        return values

    def count(self, place: int, value: float) -> int:
        """Return the number of answers for which a metric has a value."""
        return int((self.read(place) == value).sum())

    @cached_property
    def _code_counts(self) -> tuple[list[int], list[int], int]:
        """Return the distinct lists of values, how often each occurs, and what these counts are multiplied by.

        One of k answers to an item occurs 1/k times; the multiple is the least that makes all counts whole.
        """
        counts: dict[int, int] = {}
        sizes = np.flatnonzero(np.bincount(self.sizes)).tolist()
        multiple = lcm(*sizes)
        for times in sizes:
            of_times = self.index if len(sizes) == 1 else self.index[self.times == times]
            codes, numbers = np.unique(self.columns.code[of_times], return_counts=True)
            for code, number in zip(codes.tolist(), numbers.tolist(), strict=True):
                counts[code] = counts.get(code, 0) + number * (multiple // times)
        return [*counts], [*counts.values()], multiple

    @cached_property
    def _sums(self) -> tuple[list[float], list[float]]:
        """Return how often each metric is defined and how often it is 1, exactly, times the multiple of counts."""
        codes, counts, _ = self._code_counts
        kind = np.float64 if sum(counts) <= MAX_EXACT else object
        numbers, rows = np.array(counts, dtype=kind), np.array(codes, dtype=np.int64)
        table = self.columns.table[rows]
        return (numbers @ (~np.isnan(table)).astype(kind)).tolist(), (
            numbers @ np.equal(table, 1).astype(kind)
        ).tolist()

    def _exact_sum(self, place: int) -> tuple[int, int]:
        """Return the sum of a metric, times the multiple of counts, as a fraction."""
        values, divisor = self.columns.scaled_values(place)
        codes, counts, _ = self._code_counts
        return sum(values[code] * number for code, number in zip(codes, counts, strict=True)), divisor

    def _person_weights(self, place: int) -> dict[float, answers_rates.Number]:
        """Return the same of a group of people, where one of k values of a participant occurs 1/k times."""
        values = self.people_values(place)
        sizes = Counter(person for person, _, _ in values)
        counts = Counter((value, sizes[person]) for person, _, value in values)
        weights: dict[float, answers_rates.Number] = {}
        for (value, size), number in counts.items():
            weights[value] = weights.get(value, 0) + Fraction(number, size)
        return weights

    @cached_property
    def rates(self) -> list[float | None]:
        """Ratio of sums over items of each metric, an item's answers by their mean; None where it is not defined.

        Of a group of people the mean over participants, of each the mean over the items that they took.
        """
        if self.participants:
            return [weighted_mean(self._person_weights(place)) for place in range(self.columns.num_metrics)]
        numbers, ones = self._sums
        rates = [total / number if number else None for total, number in zip(ones, numbers, strict=True)]
        for place, is_flag in enumerate(self.columns.are_flags):
            if numbers[place] and not is_flag:
                exact, divisor = self._exact_sum(place)
                rates[place] = exact / (int(numbers[place]) * divisor)
        return rates

    def total(self, place: int) -> Fraction:
        """Return the exact sum of a metric, one of k answers to an item weighing 1/k, of people as in `rates`."""
        if self.participants:
            weights = self._person_weights(place)
            return answers_rates.weighted_sum(weights.keys(), weights.values())
        return Fraction(*self._exact_sum(place)) / self._code_counts[2]

    @cached_property
    def nums_defined(self) -> list[int]:
        """Number of items for which each metric is defined."""
        if self.num_items == len(self) and not self.participants:
            return [int(number) for number in self._sums[0]]
        code = self.columns.code[self.index]
        patterns, which = self.columns.patterns
        numbers = [int(np.unique(self.item[pattern[code]]).size) for pattern in patterns]
        return [numbers[place] for place in which]

    @cached_property
    def _by_value(self) -> Codes:
        """Return the places of answers by item and values, an order that does not depend on the files'."""
        if self.num_items == len(self):
            return np.arange(len(self))
        return np.lexsort((self.columns.value_ranks[self.columns.code[self.index]], self.item))

    @cached_property
    def _ordered(self) -> tuple[Codes, Codes, Floats]:
        """Return values, unit and weight of each answer, in the order of `_by_value`."""
        order = self._by_value
        return self.columns.code[self.index[order]], self.unit[order], 1 / self.times[order]

    def _moments(self, place: int) -> answers_rates.Moments:
        """Return the sums over units that a metric's interval is of; neighbours are computed with it, in one pass."""
        size = max(1, MAX_BLOCK // len(self))
        block, place_in_block = divmod(place, size)
        if block not in self._blocks:
            codes, unit, weight = self._ordered
            values = self.columns.table[codes, block * size : (block + 1) * size]
            shape = len(self.units), values.shape[1]
            bins = (unit[:, None] * shape[1] + np.arange(shape[1])).ravel()
            defined = ~np.isnan(values)
            numerators, denominators = np.where(defined, values, 0.0) * weight[:, None], defined * weight[:, None]
            sums, counts = (
                np.bincount(bins, added.ravel(), minlength=shape[0] * shape[1]).astype(np.float64).reshape(shape).T
                for added in (numerators, denominators)
            )
            self._blocks[block] = answers_rates.unit_moments(sums, counts)
        return self._blocks[block][place_in_block]

    def sums_of(self, values: Floats) -> Floats:
        """Return the sums over units with some value, in the order in which items name them.

        values: of each answer, NaN where there is none; one of k answers to an item weighs 1/k
        """
        if len(self.units) == len(self):
            return values[~np.isnan(values)]
        defined = np.flatnonzero(~np.isnan(values))
        places, first = np.unique(self.unit[defined], return_index=True)
        order = places[np.argsort(first)]
        sums = np.bincount(self.unit[defined], values[defined] / self.times[defined], minlength=len(self.units))
        return sums[order].astype(np.float64)

    def estimate(self, place: int, *, is_share: bool = True) -> Estimate | None:
        """Return the rate of a metric with its interval; None where no answer has it."""
        mean = self.rates[place] if len(self) else None
        if mean is None:
            return None
        return Estimate(mean, self.interval(place, is_share=is_share), self.nums_defined[place])

    def interval(self, place: int, *, is_share: bool) -> answers_rates.Interval | None:
        """Return the 95 % interval of a metric's rate; of people clustered by participant and item."""
        if self.participants:
            return answers_rates.clustered_mean(self.people_values(place)).interval
        return answers_rates.unit_interval(self._moments(place), is_share=is_share, is_clustered=self.is_clustered)

    def people_values(self, place: int) -> list[answers_rates.Value]:
        """Return the values of one metric with their participants and items."""
        names = [" ".join(item) for item in self.items]
        values = zip(self.participants, self.item.tolist(), self.read(place).tolist(), strict=True)
        return [(person, names[item], value) for person, item, value in values if value == value]

    def item_means(self, place: int) -> dict[Any, float]:
        """Return the mean of a metric on each item for which it is defined."""
        return self._means(place, self.item, self.items)

    def unit_means(self, place: int) -> dict[str, float]:
        """Return the mean of a metric over the items of each unit for which it is defined."""
        return self._means(place, self.unit, self.units)

    def _means(self, place: int, group: Codes, names: Sequence[Any]) -> dict[Any, float]:
        values = self.read(place)
        defined = ~np.isnan(values)
        weight = 1 / self.times[defined]
        sums = np.bincount(group[defined], values[defined] * weight, minlength=len(names))
        counts = np.bincount(group[defined], weight, minlength=len(names))
        return {names[k]: float(sums[k] / counts[k]) for k in np.flatnonzero(counts).tolist()}

    # --- Samples ---

    def num_right(self, right: Right) -> Codes:
        """Return the number of right answers to each item."""
        return np.bincount(self.item[self._is_right(right)], minlength=self.num_items)

    def _is_right(self, right: Right) -> NDArray[np.bool_]:
        flags = np.array([right(Sample(*flags, None)) for flags in _FLAGS], dtype=bool)
        is_right: NDArray[np.bool_] = flags[self.columns.flags[self.index] & 15]
        return is_right

    def majorities(self, right: Right) -> list[Fraction] | None:
        """Return how right the most frequent meaning is on each item; None if some valid sample's is not known.

        Where several are equally frequent it is the mean over these; an item without a valid sample counts as wrong.
        """
        flags, is_right = self.columns.flags[self.index], self._is_right(right)
        valid = (flags & 1).astype(bool)
        if (flags[valid] & _UNKNOWN).any():
            return None
        kinds = (flags[valid] & _NOT_A_DIGEST).astype(np.int64)
        order = np.lexsort((self.columns.meaning[self.index][valid], kinds, self.item[valid]))
        item, kind = self.item[valid][order], kinds[order]
        meaning = self.columns.meaning[self.index][valid][order]
        is_new = np.ones(len(item), dtype=bool)
        is_new[1:] = (np.diff(item) != 0) | (np.diff(kind) != 0) | (meaning[1:] != meaning[:-1])
        vote = np.cumsum(is_new) - 1
        votes = np.bincount(vote, minlength=0)
        hits = np.bincount(vote, is_right[valid][order], minlength=len(votes)).astype(np.int64)
        item_of_vote = item[is_new]
        most = np.zeros(self.num_items, dtype=np.int64)
        np.maximum.at(most, item_of_vote, votes)
        leading = votes == most[item_of_vote]
        num_leading = np.bincount(item_of_vote[leading], minlength=self.num_items).tolist()
        num_hits = np.bincount(item_of_vote[leading], hits[leading], minlength=self.num_items).astype(np.int64).tolist()
        return [
            Fraction(hits, number * size) if number else Fraction(0)
            for hits, number, size in zip(num_hits, num_leading, most.tolist(), strict=True)
        ]

    def estimate_items(self, values: Sequence[Fraction]) -> Estimate:
        """Return the mean of one exact value an item, with the interval of a share."""
        per_unit = self._unit_codes[1]
        floats = np.array([float(value) for value in values])
        sums = np.bincount(per_unit, floats, minlength=len(self.units)).astype(np.float64)
        counts = np.bincount(per_unit, minlength=len(self.units)).astype(np.float64)
        (moments,) = answers_rates.unit_moments(sums[None], counts[None])
        interval = answers_rates.unit_interval(moments, is_share=True, is_clustered=self.is_clustered)
        return Estimate(answers_rates.exact_mean(values), interval, self.num_items)


class Estimate(NamedTuple):
    """A mean over items with its 95 % interval; num_items: for which it is defined."""

    mean: float
    interval: answers_rates.Interval | None
    num_items: int


def estimate(answers: Iterable[tuple[Any, str, float | None]], *, is_share: bool = True) -> Estimate | None:
    """Return the mean of one value an answer, given with items and units; None where no answer has one."""
    return AnswerFrame.of((item, unit, (value,)) for item, unit, value in answers).estimate(0, is_share=is_share)
