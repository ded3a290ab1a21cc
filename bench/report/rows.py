"""Rows of tables: scored answers, grouped by setting, stratum, pool and system."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from fractions import Fraction
from functools import cached_property
from itertools import chain
from math import fsum, nan
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from calibrant.bench.answers.frame import AnswerFrame
from calibrant.bench.answers.intervals import Array, Interval, bootstrap_intervals
from calibrant.bench.answers.names import SystemKey, natural, pool_labels, system_names
from calibrant.bench.answers.participants import Value, clustered_mean
from calibrant.bench.core.metrics import (
    SUPPRESSED,
    UNDEFINED,
    InvalidHandling,
    Item,
    Metric,
    MetricSet,
    Right,
    Sample,
    Sampled,
    SampleList,
    mean_text,
    weighted_mean,
)
from calibrant.bench.core.observations import ObservationReader, Values
from calibrant.bench.core.scoring import PEOPLE, PEOPLE_SYSTEM, AnswerContext, participant_of
from calibrant.dsl.errors import in_one_line
from calibrant.dsl.text import plural

Answer: TypeAlias = tuple[AnswerContext, Mapping[str, Any]]  # where it is from, and its score
MIN_ROOM = 1e-9  # best less chance, added up: below there is nothing that skill could be a share of


class Grouping(Enum):
    """Property by which answers of a system are grouped into rows."""

    POOL = "pool"
    SETTING = "setting"
    STRATUM = "stratum"


class RowKey(NamedTuple):
    """Properties shared by the answers of a row.

    stratum, pool_digest: empty for a row over strata, over pools
    """

    setting: str
    stratum: str
    pool_digest: str
    system: SystemKey

    @classmethod
    def of(cls, context: AnswerContext, by: Grouping, *, with_strata: bool) -> RowKey:
        stratum = context.stratum if with_strata or by is Grouping.STRATUM else ""
        digest = "" if by is Grouping.SETTING else context.pool_digest
        return cls(context.setting, stratum, digest, SystemKey.of(context))


class Observation(NamedTuple):
    """One scored answer of a row.

    item: digest of its pool, id; unit: the id that items which are resampled together share
    num_samples: answers that the row has to the item; each weighs one of so many
    """

    item: Item
    unit: str
    num_samples: int
    values: Values
    seconds: float | None


class Rate(NamedTuple):
    """A metric's mean over a row.

    value: None where it is undefined or suppressed; text: as tables print it; num_items: that it is defined for
    """

    value: float | None
    text: str
    num_items: int

    @classmethod
    def of(cls, column: Metric, values: Mapping[float, int | Fraction], num_items: int) -> Rate:
        mean = weighted_mean(values)
        text = mean_text(mean, conditional=column.conditional, decimals=column.decimals, num_items=num_items)
        return cls(None if text in (UNDEFINED, SUPPRESSED) else mean, text, num_items)


@dataclass
class Row:
    """The answers of one system under one setting, to one pool or to all.

    columns: metrics, in the order of values; unit: from an item to the id with which it is resampled
    pools: by digest, name and size; answers: of each item, the values of each sample; strata: of the items
    participants: whose those values are, of a group of people; empty for any other system
    system: as tables call it, with the options in which its runs differ; pool_labels: by digest
    """

    key: RowKey
    columns: tuple[Metric, ...]
    config: Mapping[str, Any]
    unit: Callable[[Item], str]
    pools: dict[str, tuple[str, int]] = field(default_factory=dict)
    answers: dict[Item, list[Values]] = field(default_factory=dict)
    samples: dict[Item, SampleList] = field(default_factory=dict)
    outcomes: Counter[str] = field(default_factory=Counter)
    strata: set[str] = field(default_factory=set)
    participants: dict[Item, list[str]] = field(default_factory=dict)
    system: str = ""
    pool_labels: Mapping[str, str] = field(default_factory=dict)
    _intervals: dict[str, Interval | None] = field(default_factory=dict, init=False)
    _seconds: dict[Item, array[float]] = field(default_factory=dict)

    @property
    def setting(self) -> str:
        return self.key.setting

    @property
    def stratum(self) -> str:
        return self.key.stratum

    @property
    def pool(self) -> str:
        """The name of its pool, or how many there are."""
        names = sorted(set(self.pool_labels.values()))
        return names[0] if len(names) == 1 else plural(len(names), "pools")

    @property
    def num_items(self) -> int:
        return len(self.answers)

    @property
    def num_answers(self) -> int:
        return sum(map(len, self.answers.values()))

    @property
    def num_expected(self) -> int:
        """Number of items of its pools."""
        return sum(size for _, size in self.pools.values())

    @cached_property
    def places(self) -> Mapping[str, int]:
        """The place of each metric in `columns`."""
        return {column.key: place for place, column in enumerate(self.columns)}

    @cached_property
    def units(self) -> frozenset[str]:
        return frozenset(map(self.unit, self.answers))

    @property
    def seconds(self) -> list[float]:
        """The times of answers, where they are known."""
        return [seconds for times in self._seconds.values() for seconds in times if seconds == seconds]

    @property
    def observations(self) -> Iterator[Observation]:
        """The answers, by pool and item."""
        for item in sorted(self.answers):
            answers, times = self.answers[item], self._seconds.get(item)
            for place, values in enumerate(answers):
                seconds = None if times is None or times[place] != times[place] else times[place]
                yield Observation(item, self.unit(item), len(answers), values, seconds)

    def add(self, context: AnswerContext, values: Values, sample: Sample, participant: str = "") -> None:
        """Count one answer."""
        item = context.pool_digest, context.instance
        self.pools[context.pool_digest] = context.pool, context.pool_size
        answers = self.answers.get(item)
        if answers is None:
            answers, self.samples[item] = self.answers.setdefault(item, []), SampleList()
        answers.append(values)
        self.samples[item].append(sample)
        if participant:
            self.participants.setdefault(item, []).append(participant)
        self.strata.add(context.stratum)
        if context.outcome is not None:
            self.outcomes[context.outcome] += 1
        if context.seconds is not None or item in self._seconds:
            times = self._seconds.setdefault(item, array("d"))
            times.extend([nan] * (len(answers) - 1 - len(times)))
            times.append(nan if context.seconds is None else context.seconds)

    def collect_samples(self, rights: tuple[tuple[str, str, Right], ...]) -> Sampled:
        """Return its samples, for the table of systems that have several."""
        units = {item: self.unit(item) for item in self.samples}
        return Sampled(self.setting, self.system, self.pool, self.samples, units, rights)

    @property
    def num_taken(self) -> Counter[str]:
        """Number of answers by participant, of a group of people; empty for any other system."""
        return Counter(name for listed in self.participants.values() for name in listed)

    @cached_property
    def rates(self) -> dict[str, Rate]:
        """The mean of every metric over the items, each of which weighs the same however often it was answered.

        Of a group of people over participants, each of whom counts alike.
        """
        if self.participants:
            return {column.key: self._people_rate(place) for place, column in enumerate(self.columns)}
        if all(len(answers) == 1 for answers in self.answers.values()):
            counts = self._count_values()
            numbers = [count.total() for count in counts]
            return self._rates_of(counts, numbers)
        weights: list[dict[float, Fraction | int]] = [{} for _ in self.columns]
        num_items = [0] * len(self.columns)
        for answers in self.answers.values():
            weight = Fraction(1, len(answers)) if len(answers) > 1 else 1
            times_by_id = Counter(map(id, answers))  # equal ones are mostly one and the same
            by_id = {id(values): values for values in answers}
            for place in range(len(self.columns)):
                weighted = [(by_id[key][place], times) for key, times in times_by_id.items()]
                defined = [(value, times) for value, times in weighted if value is not None]
                num_items[place] += bool(defined)
                for value, times in defined:
                    weights[place][value] = weights[place].get(value, 0) + weight * times
        return self._rates_of(weights, num_items)

    def _count_values(self) -> list[Counter[float]]:
        """Return how often each metric has each value, where every item has one answer."""
        columns = zip(*(answers[0] for answers in self.answers.values()), strict=True)
        return [Counter(value for value in column if value is not None) for column in columns]

    def _rates_of(self, weights: Sequence[Mapping[float, int | Fraction]], num_items: Sequence[int]) -> dict[str, Rate]:
        rates = {
            column.key: Rate.of(column, known_weights, number)
            for column, known_weights, number in zip(self.columns, weights, num_items, strict=True)
        }
        return rates | {column.key: self._skill(column) for column in self.columns if column.skill_of}

    def _people_values(self, place: int) -> list[Value]:
        """Return the values of one metric with their participants and items."""
        return [
            (person, " ".join(item), value)
            for item, answers in self.answers.items()
            for values, person in zip(answers, self.participants[item], strict=True)
            if (value := values[place]) is not None
        ]

    def _people_rate(self, place: int) -> Rate:
        """Return the mean over participants of one metric, of each the mean over the items that they took."""
        by_person: dict[str, list[float]] = {}
        listed = self._people_values(place)
        for person, _, value in listed:
            by_person.setdefault(person, []).append(value)
        weights: dict[float, int | Fraction] = {}
        for values in by_person.values():
            for value in values:
                weights[value] = weights.get(value, 0) + Fraction(1, len(values))
        return Rate.of(self.columns[place], weights, len({item for _, item, _ in listed}))

    def interval(self, key: str) -> Interval | None:
        """Return the 95 % interval of a rate; None where the rate is not shown, and where there are too few units."""
        if key not in self._intervals:
            self._intervals[key] = None if self.rates[key].value is None else self._interval(self.places[key])
        return self._intervals[key]

    def _interval(self, place: int) -> Interval | None:
        column = self.columns[place]
        if self.participants:
            return clustered_mean(self._people_values(place)).interval
        if column.skill_of:
            gains, room = self._skill_sums(column)
            return bootstrap_intervals(gains[:, None], room[:, None])[0]
        return self.frame.interval(place, is_share=column.is_share)

    @cached_property
    def frame(self) -> AnswerFrame:
        return AnswerFrame.of(
            ((item, self.unit(item), values) for item, answers in self.answers.items() for values in answers),
            len(self.columns),
        )

    def restrict(self, keep: Callable[[Item], bool]) -> Row:
        """Return the row of the answers to some of its items."""
        return replace(self, answers={item: answers for item, answers in self.answers.items() if keep(item)})

    def restrict_units(self, units: Collection[str]) -> Row:
        """Return the row of the answers to the items of these units."""
        return self.restrict(lambda item: self.unit(item) in units)

    def _skill(self, column: Metric) -> Rate:
        """Return (rate - chance) / (best - chance) over the answers for which all are known."""
        gains, room = self._skill_sums(column)
        total = fsum(room)
        if total < MIN_ROOM:
            return Rate(None, UNDEFINED, len(room))
        value = fsum(gains) / total
        return Rate(value, f"{value:.{column.decimals}f}", len(room))

    def _skill_sums(self, column: Metric) -> tuple[Array, Array]:
        """Return what each unit adds to what a rate gains over chance, and to what the best gains."""
        places = [self.places[key] for key in (*column.skill_of, "decided", "chance", "best")]
        sums: dict[str, list[float]] = {}
        for item, answers in sorted(self.answers.items()):
            for values in answers:
                *rates, decided, chance, best = (values[place] for place in places)
                if chance is not None and best is not None and decided is not None:
                    unit = sums.setdefault(self.unit(item), [0.0, 0.0])
                    unit[0] += (fsum(rate or 0.0 for rate in rates) - chance) / len(answers)
                    unit[1] += (best - chance) / len(answers)
        columns = np.array([*sums.values()]).reshape(-1, 2)
        return columns[:, 0], columns[:, 1]


class RowGroups:
    """Groups answers as they come in; their order does not matter."""

    def __init__(
        self,
        metrics: MetricSet,
        columns: tuple[Metric, ...],
        by: Grouping = Grouping.POOL,
        *,
        with_strata: bool = False,
        unit: Callable[[Item], str] | None = None,
    ) -> None:
        self._columns = columns
        self._by = by
        self._with_strata = with_strata
        self._unit = unit or (lambda item: metrics.unit(item[1]))
        self._rows: dict[RowKey, Row] = {}

    def add(self, context: AnswerContext, values: Values, sample: Sample) -> None:
        """Count one answer of which these values were read; participants of one study are one system."""
        participant = participant_of(context.system)
        if participant:
            context = context._replace(system=PEOPLE_SYSTEM)
        key = RowKey.of(context, self._by, with_strata=self._with_strata)
        row = self._rows.get(key)
        if row is None:
            row = self._rows[key] = Row(key, self._columns, context.config, self._unit)
        row.add(context, values, sample, participant)

    def rows(self) -> list[Row]:
        """Return the rows with what tables call their systems and pools: names that no other row has."""
        configs = {row.key.system: row.config for row in self._rows.values()}
        people: dict[SystemKey, set[str]] = {}
        for row in self._rows.values():
            people.setdefault(row.key.system, set()).update(row.num_taken)
        grouped = {key: _group_name(key, people[key]) for key in configs}
        names = system_names({grouped[key]: config for key, config in configs.items()})
        labels = pool_labels({d: name for row in self._rows.values() for d, (name, _) in row.pools.items()})
        for row in self._rows.values():
            row.system = names[grouped[row.key.system]]
            row.pool_labels = {digest: labels[digest] for digest in row.pools}
        return list(self._rows.values())


def _group_name(key: SystemKey, participants: Collection[str]) -> SystemKey:
    """Return a system; a group of people with their number, and one of them alone with their id."""
    if not participants:
        return key
    name = f"{key.system} ({len(participants)})" if len(participants) > 1 else f"{PEOPLE}{min(participants)}"
    return key._replace(system=name)


def with_chosen(answer: Answer) -> Iterator[Answer]:
    """Yield an answer; of several equally good ones the chosen one again, for a row of its own."""
    yield answer
    context, score = answer
    if context.is_tied:
        yield context._replace(is_chosen=True), dict(score)


def group(
    answers: Iterable[Answer],
    metrics: MetricSet,
    by: Grouping,
    *,
    handling: InvalidHandling = InvalidHandling.PUBLISHED,
    with_strata: bool = False,
    unit: Callable[[Item], str] | None = None,
) -> list[Row]:
    """Group answers into rows with all metrics, names in one line; in no order."""
    reader = ObservationReader(metrics, handling, with_hidden=True)
    groups = RowGroups(metrics, reader.columns, by, with_strata=with_strata, unit=unit)
    observed: dict[tuple[str, int], tuple[Mapping[str, Any], tuple[Values, Sample]]] = {}  # scores that are shared
    for context, score in chain.from_iterable(map(with_chosen, answers)):
        key = context.setting, id(score)
        if key not in observed:
            observed[key] = score, reader.read_values(context.setting, score)  # the score lives as long as its id
        groups.add(context, *observed[key][1])
    rows = drop_equal_choices(groups.rows())
    for row in rows:
        row.key = row.key._replace(setting=in_one_line(row.setting), stratum=in_one_line(row.stratum))
        row.pool_labels = {digest: in_one_line(label) for digest, label in row.pool_labels.items()}
    return rows


def drop_equal_choices(rows: Sequence[Row]) -> list[Row]:
    """Return the rows without those of chosen answers whose rates are the means over all equally good ones."""
    by_key = {row.key: row for row in rows}

    def is_equal(row: Row) -> bool:
        mean = by_key.get(row.key._replace(system=row.key.system._replace(is_chosen=False)))
        return row.key.system.is_chosen and mean is not None and mean.rates == row.rates

    return [row for row in rows if not is_equal(row)]


def section_rows(answers: Iterable[Answer], metrics: MetricSet, by: Grouping) -> list[Row]:
    """Return rows for each stratum, in the order of the settings, then by stratum, pool and system."""
    rows = group(answers, metrics, by, with_strata=True)

    def place(row: Row) -> tuple[Any, ...]:
        pools = tuple(sorted(set(row.pool_labels.values())))
        return metrics.place(row.setting), natural(row.stratum), pools, natural(row.system)

    return sorted(rows, key=place)
