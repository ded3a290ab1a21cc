"""Scored answers as arrays of codes (item, unit, values of metrics, sample) and times, so that a rate is one pass.

A rate is a ratio of sums over items, in which one of k answers to an item weighs 1/k; in a group of people every
participant weighs the same. Means are exact, so they do not depend on the order of answers.
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
_DIGEST_CHARS = 16  # a meaning (key of an equivalence class) of 16 hexadecimal digits is stored as a 64-bit number
_FLAGS = [(bool(f & 1), bool(f & 2), bool(f & 4), bool(f & 8)) for f in range(16)]  # the booleans of a Sample
MAX_BLOCK_VALUES = 1 << 18  # answers x metrics in one pass of sums over units; bounds memory
MAX_EXACT = 1 << 53  # doubles represent all integers up to this one
_NOT_A_DIGEST, _UNKNOWN = 16, 32  # two more flags: the meaning is an index into `meanings`; there is no meaning


@dataclass(frozen=True, eq=False)
class Columns:
    """Arrays of codes of answers, and the values that the codes index.

    items, units: sorted; unit_of_item: index in `units` of each item; values: distinct rows of metric values
    origin, item, code: index of each answer in `origins`, `items` and `values`
    flags: index in `_FLAGS` of each answer's sample, plus _NOT_A_DIGEST or _UNKNOWN
    meaning: each answer's meaning as a number: its digest, or an index in `meanings`, the texts that are no digests
    seconds: time of each answer, NaN if unknown
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
        """Values as an array (distinct values, metrics), NaN where a metric is not defined."""
        return np.array(self.values, dtype=np.float64).reshape(len(self.values), self.num_metrics)

    @property
    def num_metrics(self) -> int:
        return len(self.values[0]) if self.values else 0

    @cached_property
    def marks(self) -> NDArray[np.uint8]:
        """For each row of `values`: whether each metric is defined, then whether each is 1; (values, 2 * metrics)."""
        return np.hstack((~np.isnan(self.table), np.equal(self.table, 1))).astype(np.uint8)

    @cached_property
    def are_flags(self) -> list[bool]:
        """Whether all defined values of each metric are 0 or 1."""
        flags: list[bool] = (np.isnan(self.table) | (self.table == 0) | (self.table == 1)).all(axis=0).tolist()
        return flags

    @cached_property
    def _scaled(self) -> dict[int, tuple[list[int], int]]:
        return {}

    def scaled_values(self, metric_index: int) -> tuple[list[int], int]:
        """Return (value of a metric in units of 1/divisor for each row of `values`, 0 if undefined; divisor)."""
        if metric_index not in self._scaled:
            ratios = [(values[metric_index] or 0).as_integer_ratio() for values in self.values]
            divisor = max(denominator for _, denominator in ratios)  # all are powers of two, so each divides it
            self._scaled[metric_index] = (
                [numerator * (divisor // denominator) for numerator, denominator in ratios],
                divisor,
            )
        return self._scaled[metric_index]

    @cached_property
    def patterns(self) -> tuple[NDArray[np.bool_], Sequence[int]]:
        """Distinct masks of the rows of `values` that define a metric, and for each metric the index of its mask."""
        masks, mask_indices = np.unique(~np.isnan(self.table), axis=1, return_inverse=True)
        return masks.T, np.ravel(mask_indices).tolist()

    @cached_property
    def value_ranks(self) -> Codes:
        """Rank of each row of `values`, independent of the order of files."""
        ranks = np.empty(len(self.values), dtype=np.int64)
        ranks[np.lexsort(np.nan_to_num(self.table, nan=-1.0).T)] = np.arange(len(self.values))
        return ranks


class Answers:
    """Collector of scored answers as arrays, about 30 bytes an answer. unit: item -> id of its unit."""

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
        """Add one answer with the values of its metrics."""
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
        """Add the metric values of an answer without context, sample and time."""
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
        flags, code = valid | correct << 1 | train_exact << 2 | heldout_exact << 3, 0
        if meaning is None:
            flags |= _UNKNOWN
        elif (digest := _read_digest(meaning)) is not None:
            code = digest
        else:
            flags |= _NOT_A_DIGEST
            code = self._meanings.setdefault(meaning, len(self._meanings))
        self._flags.append(flags)
        self._meaning.append(code)

    def columns(self) -> Columns:
        """Return the arrays of the answers added so far."""
        items, order = [*self._items], sorted(range(len(self._items)), key=[*self._items].__getitem__)
        ranks = np.empty(len(items), dtype=np.int32)
        ranks[order] = np.arange(len(items))
        sorted_items = [items[index] for index in order]
        unit_names = [self._unit(item) for item in sorted_items]
        units = sorted(set(unit_names))
        unit_index = {unit: index for index, unit in enumerate(units)}
        seconds = np.full(len(self._item), nan)
        seconds[: len(self._seconds)] = self._seconds
        return Columns(
            [_origin_of(key) for key in self._origins],
            sorted_items,
            units,
            np.array([unit_index[name] for name in unit_names], dtype=np.int64),
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
        """Return the answers grouped by a key of their origins, keys in order of first occurrence."""
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
    system_key = answers_rates.SystemKey(PEOPLE_SYSTEM if participant else system, options, is_chosen)
    return answers_rates.Origin(system_key, participant, setting, stratum, pool, pool_digest, pool_size, outcome)


def _read_digest(meaning: str) -> int | None:
    """Return the integer that sixteen lower-case hexadecimal digits state; None for any other text."""
    if len(meaning) != _DIGEST_CHARS:
        return None
    try:
        digest = int(meaning, 16)
    except ValueError:
        return None
    return digest if f"{digest:016x}" == meaning else None  # no capitals, signs or underscores


@dataclass(frozen=True, eq=False)
class AnswerFrame:
    """A selection of the answers in `columns`. index: their positions there, by item, then in order of arrival."""

    columns: Columns
    index: Codes
    _blocks: dict[int, list[answers_rates.Moments]] = field(default_factory=dict, init=False, repr=False)

    @classmethod
    def of(cls, answers: Iterable[tuple[Any, str, Values]]) -> AnswerFrame:
        """Return the frame of answers given as (item, unit, values)."""
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
        """Position of the first answer to each item."""
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
        """The items, sorted."""
        return [self.columns.items[code] for code in self._item_codes]

    @property
    def num_items(self) -> int:
        return len(self._starts)

    @cached_property
    def item(self) -> Codes:
        """Index in `items` of each answer's item."""
        return np.repeat(np.arange(self.num_items), self.sizes)

    @cached_property
    def times(self) -> Codes:
        """Number of answers to each answer's item."""
        return np.repeat(self.sizes, self.sizes)

    @cached_property
    def _unit_codes(self) -> tuple[Codes, Codes]:
        """Codes of the units, and the index among them of each item's unit."""
        codes, indices = np.unique(self.columns.unit_of_item[self._item_codes], return_inverse=True)
        return codes, indices

    @cached_property
    def units(self) -> list[str]:
        """The units, sorted."""
        return [self.columns.units[code] for code in self._unit_codes[0]]

    @cached_property
    def unit(self) -> Codes:
        """Index in `units` of each answer's unit."""
        return self._unit_codes[1][self.item]

    @cached_property
    def clusters(self) -> dict[Any, str]:
        """Item or unit -> unit, so that means by item and by unit are clustered alike."""
        unit_by_item = zip(self.items, self._unit_codes[1].tolist(), strict=True)
        return {item: self.units[index] for item, index in unit_by_item} | {unit: unit for unit in self.units}

    @property
    def is_clustered(self) -> bool:
        """Whether some items share a unit."""
        return len(self.units) < self.num_items

    @cached_property
    def origins(self) -> list[answers_rates.Origin]:
        """The distinct origins of the answers."""
        if not self.columns.origins:
            return []
        # not np.unique, which imports np.ma: 5 % of the time of a short `score`
        codes = np.flatnonzero(np.bincount(self.columns.origin[self.index])).tolist()
        return [self.columns.origins[code] for code in codes]

    @cached_property
    def outcomes(self) -> Counter[str]:
        """Number of answers by outcome, those without one left out."""
        num_by_outcome: Counter[str] = Counter()
        codes, counts = np.unique(self.columns.origin[self.index], return_counts=True)
        for code, count in zip(codes.tolist(), counts.tolist(), strict=True):
            if (outcome := self.columns.origins[code].outcome) is not None:
                num_by_outcome[outcome] += count
        return num_by_outcome

    @cached_property
    def participants(self) -> list[str]:
        """The participant of each answer; empty if no system is a person."""
        if not any(origin.participant for origin in self.origins):
            return []
        return [self.columns.origins[code].participant for code in self.columns.origin[self.index].tolist()]

    @property
    def seconds(self) -> Floats:
        """The time of each answer, NaN if unknown."""
        return self.columns.seconds[self.index]

    def observe(self) -> Iterator[tuple[Any, str, int, Values, float | None]]:
        """Yield (item, unit, number of answers to the item, values, seconds or None) of each answer."""
        columns = (self.item, self.unit, self.times, self.columns.code[self.index], self.seconds)
        for item, unit, times, code, seconds in zip(*(column.tolist() for column in columns), strict=True):
            time = seconds if seconds == seconds else None
            yield self.items[item], self.units[unit], times, self.columns.values[code], time

    # --- Parts ---

    def restrict(self, keep: Callable[[Any], bool]) -> AnswerFrame:
        """Return the answers to the items for which `keep` is true."""
        mask = np.array([keep(item) for item in self.items], dtype=bool)
        return AnswerFrame(self.columns, self.index[mask[self.item]])

    def restrict_units(self, units: Collection[str]) -> AnswerFrame:
        """Return the answers to the items of these units."""
        mask = np.array([unit in units for unit in self.units], dtype=bool)
        return AnswerFrame(self.columns, self.index[mask[self.unit]])

    def merge(self, others: Iterable[AnswerFrame]) -> AnswerFrame:
        """Return these answers with those of other frames of the same columns."""
        index = np.concatenate([self.index, *(other.index for other in others)])
        return AnswerFrame(self.columns, index[np.argsort(self.columns.item[index], kind="stable")])

    # --- Rates ---

    def read(self, metric_index: int) -> Floats:
        """Return the value of a metric for each answer, NaN where it is not defined. metric_index: as in `Values`."""
        values: Floats = self.columns.table[self.columns.code[self.index], metric_index]
        return values

    def count(self, metric_index: int, value: float) -> int:
        """Return the number of answers for which a metric equals `value`."""
        return int((self.read(metric_index) == value).sum())

    @cached_property
    def _code_counts(self) -> tuple[list[int], list[int], int]:
        """Codes of the distinct rows of values, their weighted counts times `multiple`, and `multiple`.

        Each of k answers to an item weighs 1/k; `multiple` is the least integer that makes all weights whole.
        """
        counts: dict[int, int] = {}
        sizes = np.flatnonzero(np.bincount(self.sizes)).tolist()
        multiple = lcm(*sizes)
        for times in sizes:
            answers = self.index if len(sizes) == 1 else self.index[self.times == times]
            codes, code_counts = np.unique(self.columns.code[answers], return_counts=True)
            for code, count in zip(codes.tolist(), code_counts.tolist(), strict=True):
                counts[code] = counts.get(code, 0) + count * (multiple // times)
        return [*counts], [*counts.values()], multiple

    @cached_property
    def _sums(self) -> tuple[list[float], list[float]]:
        """Exact weights, times `multiple`, of the answers for which each metric is defined, and for which it is 1."""
        codes, counts, _ = self._code_counts
        dtype = np.float64 if sum(counts) <= MAX_EXACT else object
        weights, rows = np.array(counts, dtype=dtype), np.array(codes, dtype=np.int64)
        table = self.columns.table[rows]
        return (weights @ (~np.isnan(table)).astype(dtype)).tolist(), (
            weights @ np.equal(table, 1).astype(dtype)
        ).tolist()

    def _exact_sum(self, metric_index: int) -> tuple[int, int]:
        """Return the sum of a metric, times `multiple`, as numerator and denominator."""
        values, divisor = self.columns.scaled_values(metric_index)
        codes, counts, _ = self._code_counts
        return sum(values[code] * count for code, count in zip(codes, counts, strict=True)), divisor

    def _person_weights(self, metric_index: int) -> dict[float, answers_rates.Number]:
        """Return value -> weight for a group of people: one of k values of a participant weighs 1/k."""
        values = self.people_values(metric_index)
        sizes = Counter(person for person, _, _ in values)
        counts = Counter((value, sizes[person]) for person, _, value in values)
        weights: dict[float, answers_rates.Number] = {}
        for (value, size), count in counts.items():
            weights[value] = weights.get(value, 0) + Fraction(count, size)
        return weights

    @cached_property
    def rates(self) -> list[float | None]:
        """Rate of each metric: weighted mean of its defined values, 1/k for one of k answers to an item; None if none.

        For a group of people: the mean over participants of each one's mean over the items that they took.
        """
        if self.participants:
            return [
                weighted_mean(self._person_weights(metric_index)) for metric_index in range(self.columns.num_metrics)
            ]
        defined, ones = self._sums
        rates = [num_ones / weight if weight else None for num_ones, weight in zip(ones, defined, strict=True)]
        for metric_index, is_flag in enumerate(self.columns.are_flags):
            if defined[metric_index] and not is_flag:
                exact, divisor = self._exact_sum(metric_index)
                rates[metric_index] = exact / (int(defined[metric_index]) * divisor)
        return rates

    def total(self, metric_index: int) -> Fraction:
        """Return the exact weighted sum of a metric, with the weights of `rates`."""
        if self.participants:
            weights = self._person_weights(metric_index)
            return answers_rates.weighted_sum(weights.keys(), weights.values())
        return Fraction(*self._exact_sum(metric_index)) / self._code_counts[2]

    @cached_property
    def nums_defined(self) -> list[int]:
        """Number of items for which each metric is defined."""
        if self.num_items == len(self) and not self.participants:
            return [int(weight) for weight in self._sums[0]]
        code = self.columns.code[self.index]
        masks, mask_indices = self.columns.patterns
        num_by_mask = [int(np.unique(self.item[mask[code]]).size) for mask in masks]
        return [num_by_mask[mask_index] for mask_index in mask_indices]

    @cached_property
    def _by_value(self) -> Codes:
        """Positions of the answers sorted by item and values, independent of the order of files."""
        if self.num_items == len(self):
            return np.arange(len(self))
        return np.lexsort((self.columns.value_ranks[self.columns.code[self.index]], self.item))

    @cached_property
    def _ordered(self) -> tuple[Codes, Codes, Floats]:
        """Code of values, unit and weight of each answer, in the order of `_by_value`."""
        order = self._by_value
        return self.columns.code[self.index[order]], self.unit[order], 1 / self.times[order]

    def _moments(self, metric_index: int) -> answers_rates.Moments:
        """Return the sums over units for a metric's interval; neighbouring metrics are computed in one pass."""
        size = max(1, MAX_BLOCK_VALUES // len(self))
        block, index_in_block = divmod(metric_index, size)
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
        return self._blocks[block][index_in_block]

    def sums_of(self, values: Floats) -> Floats:
        """Return the weighted sum of each unit that has a value, units in the order of their first item.

        values: value of each answer, NaN for none; one of k answers to an item weighs 1/k
        """
        if len(self.units) == len(self):
            return values[~np.isnan(values)]
        defined = np.flatnonzero(~np.isnan(values))
        units, first = np.unique(self.unit[defined], return_index=True)
        order = units[np.argsort(first)]
        sums = np.bincount(self.unit[defined], values[defined] / self.times[defined], minlength=len(self.units))
        return sums[order].astype(np.float64)

    def estimate(self, metric_index: int, *, is_share: bool = True) -> Estimate | None:
        """Return the rate of a metric with its interval; None if no answer has it."""
        mean = self.rates[metric_index] if len(self) else None
        if mean is None:
            return None
        return Estimate(mean, self.interval(metric_index, is_share=is_share), self.nums_defined[metric_index])

    def interval(self, metric_index: int, *, is_share: bool) -> answers_rates.Interval | None:
        """Return the 95 % interval of a metric's rate; for people it is clustered by participant and item."""
        if self.participants:
            return answers_rates.clustered_mean(self.people_values(metric_index)).interval
        return answers_rates.unit_interval(
            self._moments(metric_index), is_share=is_share, is_clustered=self.is_clustered
        )

    def people_values(self, metric_index: int) -> list[answers_rates.Value]:
        """Return (participant, item, value) of each answer for which a metric is defined."""
        names = [" ".join(item) for item in self.items]
        values = zip(self.participants, self.item.tolist(), self.read(metric_index).tolist(), strict=True)
        return [(person, names[item], value) for person, item, value in values if value == value]

    def item_means(self, metric_index: int) -> dict[Any, float]:
        """Return the mean of a metric on each item for which it is defined."""
        return self._means(metric_index, self.item, self.items)

    def unit_means(self, metric_index: int) -> dict[str, float]:
        """Return the mean of a metric over the items of each unit for which it is defined."""
        return self._means(metric_index, self.unit, self.units)

    def _means(self, metric_index: int, group: Codes, names: Sequence[Any]) -> dict[Any, float]:
        values = self.read(metric_index)
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
        """Return the correctness, 0 to 1, of each item's most frequent meaning; None if a valid sample has no meaning.

        Equally frequent meanings count by their mean; an item without a valid sample counts as wrong.
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
        vote = np.cumsum(is_new) - 1  # index of each sample's (item, meaning)
        votes = np.bincount(vote, minlength=0)
        hits = np.bincount(vote, is_right[valid][order], minlength=len(votes)).astype(np.int64)
        item_of_vote = item[is_new]
        max_votes = np.zeros(self.num_items, dtype=np.int64)
        np.maximum.at(max_votes, item_of_vote, votes)
        leading = votes == max_votes[item_of_vote]
        num_leading = np.bincount(item_of_vote[leading], minlength=self.num_items).tolist()
        num_hits = np.bincount(item_of_vote[leading], hits[leading], minlength=self.num_items).astype(np.int64).tolist()
        return [
            Fraction(hits, num_meanings * num_votes) if num_meanings else Fraction(0)
            for hits, num_meanings, num_votes in zip(num_hits, num_leading, max_votes.tolist(), strict=True)
        ]

    def estimate_items(self, values: Sequence[Fraction]) -> Estimate:
        """Return the mean of one exact value per item, with the interval of a share."""
        unit_of_item = self._unit_codes[1]
        floats = np.array([float(value) for value in values])
        sums = np.bincount(unit_of_item, floats, minlength=len(self.units)).astype(np.float64)
        counts = np.bincount(unit_of_item, minlength=len(self.units)).astype(np.float64)
        (moments,) = answers_rates.unit_moments(sums[None], counts[None])
        interval = answers_rates.unit_interval(moments, is_share=True, is_clustered=self.is_clustered)
        return Estimate(answers_rates.exact_mean(values), interval, self.num_items)


class Estimate(NamedTuple):
    """A mean over items with its 95 % interval. num_items: number of items for which it is defined."""

    mean: float
    interval: answers_rates.Interval | None
    num_items: int


def estimate(answers: Iterable[tuple[Any, str, float | None]], *, is_share: bool = True) -> Estimate | None:
    """Return the mean of (item, unit, value) answers; None if no value is defined."""
    return AnswerFrame.of((item, unit, (value,)) for item, unit, value in answers).estimate(0, is_share=is_share)
