"""Rows of tables: scored answers grouped by setting, stratum, pool and system; answers with systems' display names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cache, cached_property, lru_cache
from itertools import chain
from math import fsum
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from calibrant.bench.answers.frame import AnswerFrame, Answers
from calibrant.bench.answers.rates import (
    Array,
    Interval,
    Origin,
    SystemKey,
    bootstrap_intervals,
    drop_option,
    natural,
    pool_labels,
    system_names,
)
from calibrant.bench.core import metrics as core_metrics
from calibrant.bench.core.attribution import MIN_ROOM
from calibrant.bench.core.scoring import GROUP, PEOPLE, PEOPLE_SYSTEM, AnswerContext, participant_of
from calibrant.dsl.errors import in_one_line
from calibrant.dsl.text import plural

# --- Rows of tables: scored answers, grouped by setting, stratum, pool and system -------------------------------------
Answer: TypeAlias = tuple[AnswerContext, Mapping[str, Any]]  # context and score


class Grouping(Enum):
    """Property by which answers of a system are grouped into rows."""

    POOL = "pool"
    SETTING = "setting"
    STRATUM = "stratum"


class RowKey(NamedTuple):
    """Properties shared by the answers of a row.

    stratum: empty in a row over all strata; pool_digest: empty in a row over all pools
    """

    setting: str
    stratum: str
    pool_digest: str
    system: SystemKey

    @classmethod
    def of(cls, origin: Origin, by: Grouping, *, with_strata: bool) -> RowKey:
        stratum = origin.stratum if with_strata or by is Grouping.STRATUM else ""
        digest = "" if by is Grouping.SETTING else origin.pool_digest
        return cls(origin.setting, stratum, digest, origin.system)


class Observation(NamedTuple):
    """One scored answer of a row.

    item: (digest of its pool, id); unit: id of the group of items that are resampled together
    num_samples: number of the row's answers to the item; each has the weight 1 / num_samples
    """

    item: core_metrics.Item
    unit: str
    num_samples: int
    values: core_metrics.Values
    seconds: float | None


class Rate(NamedTuple):
    """A metric's mean over a row.

    value: the mean, None if it is undefined or suppressed; text: the mean as tables print it
    num_items: number of items for which the metric is defined
    """

    value: float | None
    text: str
    num_items: int

    @classmethod
    @lru_cache(1 << 14)  # the 4 * 10^5 cells of a report of 125 systems have a few thousand distinct values
    def of(cls, mean: float | None, num_items: int, *, conditional: bool, decimals: int) -> Rate:
        text = core_metrics.mean_text(mean, conditional=conditional, decimals=decimals, num_items=num_items)
        return cls(None if text in (core_metrics.UNDEFINED, core_metrics.SUPPRESSED) else mean, text, num_items)


@dataclass
class Row:
    """The answers of one system under one setting, to one pool or to all.

    columns: metrics, in the order of the frame's values; config: options of the system; frame: the answers
    pools: digest -> (name, size); pool_labels: digest -> name of the pool in tables
    system: name in tables, with the options in which its runs differ
    """

    key: RowKey
    columns: tuple[core_metrics.Metric, ...]
    config: Mapping[str, Any]
    frame: AnswerFrame
    pools: Mapping[str, tuple[str, int]]
    system: str = ""
    pool_labels: Mapping[str, str] = field(default_factory=dict)
    _intervals: dict[str, Interval | None] = field(default_factory=dict, init=False)
    _skills: dict[tuple[str, ...], tuple[Array, Array]] = field(default_factory=dict, init=False)

    @property
    def setting(self) -> str:
        return self.key.setting

    @property
    def stratum(self) -> str:
        return self.key.stratum

    @property
    def pool(self) -> str:
        """The name of its pool, or "N pools"."""
        names = sorted(set(self.pool_labels.values()))
        return names[0] if len(names) == 1 else plural(len(names), "pools")

    @property
    def items(self) -> Sequence[core_metrics.Item]:
        """The items, sorted by pool and id."""
        return self.frame.items

    @property
    def num_items(self) -> int:
        return self.frame.num_items

    @property
    def num_answers(self) -> int:
        return len(self.frame)

    @cached_property
    def num_samples(self) -> tuple[int, int]:
        """The smallest and the largest number of answers to an item."""
        sizes = self.frame.sizes
        return (int(sizes.min()), int(sizes.max())) if len(sizes) else (1, 1)

    @property
    def num_expected(self) -> int:
        """Number of items in its pools, answered or not."""
        return sum(size for _, size in self.pools.values())

    @property
    def strata(self) -> frozenset[str]:
        return frozenset(origin.stratum for origin in self.frame.origins)

    @property
    def outcomes(self) -> Counter[str]:
        return self.frame.outcomes

    @cached_property
    def column_indices(self) -> Mapping[str, int]:
        """The index of each metric in `columns`, and in the values of the frame."""
        return {column.key: index for index, column in enumerate(self.columns)}

    @cached_property
    def units(self) -> frozenset[str]:
        return frozenset(self.frame.units)

    @cached_property
    def seconds(self) -> list[float]:
        """The known times of answers."""
        return [seconds for seconds in self.frame.seconds.tolist() if seconds == seconds]

    @property
    def observations(self) -> Iterator[Observation]:
        """The answers, sorted by pool and item."""
        return map(Observation._make, self.frame.observe())

    @property
    def people_group(self) -> str:
        """The group of a study that its participants were assigned to; empty for any other system."""
        return str(self.config.get(GROUP, "")) if self.is_group else ""

    @property
    def label(self) -> str:
        """The system's name in a table that has a column of groups."""
        return drop_option(self.system, GROUP, self.people_group) if self.people_group else self.system

    @property
    def is_group(self) -> bool:
        """Whether it is a group of people."""
        return bool(self.frame.participants)

    @property
    def num_taken(self) -> Counter[str]:
        """Participant -> number of answers; empty if the system is no group of people."""
        return Counter(self.frame.participants)

    @cached_property
    def rates(self) -> dict[str, Rate]:
        """Key -> mean of the metric over items, which weigh the same however often they were answered.

        For a group of people it is the mean over participants, who weigh the same.
        """
        means = zip(self.columns, self.frame.rates, self.frame.nums_defined, strict=True)
        rates = {
            column.key: Rate.of(mean, num_defined, conditional=column.conditional, decimals=column.decimals)
            for column, mean, num_defined in means
        }
        if not self.is_group:
            rates |= {column.key: self._skill(column) for column in self.columns if column.skill_of}
        return rates

    def interval(self, key: str) -> Interval | None:
        """Return the 95 % interval of a rate; None if the rate is not shown or there are too few units."""
        if key not in self._intervals:
            self._intervals[key] = None if self.rates[key].value is None else self._interval(self.column_indices[key])
        return self._intervals[key]

    def _interval(self, metric_index: int) -> Interval | None:
        column = self.columns[metric_index]
        if column.skill_of and not self.is_group:
            gains, rooms = self._skill_sums(column)
            return bootstrap_intervals(gains[:, None], rooms[:, None])[0]
        return self.frame.interval(metric_index, is_share=column.is_share)

    def restrict(self, keep: Callable[[core_metrics.Item], bool]) -> Row:
        """Return the row of the answers to some of its items."""
        return replace(self, frame=self.frame.restrict(keep))

    def restrict_units(self, units: Collection[str]) -> Row:
        """Return the row of the answers to the items of these units."""
        return replace(self, frame=self.frame.restrict_units(units))

    def _skill(self, column: core_metrics.Metric) -> Rate:
        """Return the sum of (rate - chance) over that of (best - chance), for answers whose three values are known."""
        gains, rooms = self._skill_sums(column)
        total = fsum(rooms)
        if total < MIN_ROOM:
            return Rate(None, core_metrics.UNDEFINED, len(rooms))
        value = fsum(gains) / total
        return Rate(value, f"{value:.{column.decimals}f}", len(rooms))

    def _skill_sums(self, column: core_metrics.Metric) -> tuple[Array, Array]:
        """Return, by unit, the sums of (rate - chance), the numerator of a skill, and of (best - chance)."""
        if not all(self.frame.nums_defined[self.column_indices[key]] for key in ("decided", "chance", "best")):
            return np.zeros(0), np.zeros(0)
        if column.skill_of not in self._skills:
            chance, best, decided = (self.frame.read(self.column_indices[key]) for key in ("chance", "best", "decided"))
            rate = sum(np.nan_to_num(self.frame.read(self.column_indices[key])) for key in column.skill_of)
            is_known = ~np.isnan(decided) & ~np.isnan(best - chance)
            gains, rooms = (np.where(is_known, values, np.nan) for values in (rate - chance, best - chance))
            self._skills[column.skill_of] = self.frame.sums_of(gains), self.frame.sums_of(rooms)
        return self._skills[column.skill_of]


class RowGroups:
    """Collector of answers into rows; their order does not matter."""

    def __init__(
        self,
        metrics: core_metrics.MetricSet,
        columns: tuple[core_metrics.Metric, ...],
        by: Grouping = Grouping.POOL,
        *,
        with_strata: bool = False,
        unit: Callable[[core_metrics.Item], str] | None = None,
    ) -> None:
        self._columns = columns
        self._by = by
        self._with_strata = with_strata
        self._answers = Answers(unit or (lambda item: metrics.unit(item[1])))
        self._rows: tuple[int, list[Row]] = 0, []

    def add(self, context: AnswerContext, values: core_metrics.Values, sample: core_metrics.Sample) -> None:
        """Add one answer with its values; participants of one study are one system."""
        self._answers.add(context, values, sample)

    def rows(self) -> list[Row]:
        """Return the rows, with unambiguous display names of systems and pools."""
        if self._rows[0] != len(self._answers):
            self._rows = len(self._answers), self._make_rows()
        return self._rows[1]

    def _make_rows(self) -> list[Row]:
        frames = self._answers.group(lambda origin: RowKey.of(origin, self._by, with_strata=self._with_strata))
        configs = self._answers.configs
        people: dict[SystemKey, set[str]] = {}
        pools: dict[str, str] = {}
        for key, frame in frames.items():
            people.setdefault(key.system, set()).update(frame.participants)
            pools |= {origin.pool_digest: origin.pool for origin in frame.origins}
        group_keys = {key: _group_name(key, people[key]) for key in configs}
        names = system_names({group_keys[key]: config for key, config in configs.items()})
        labels = pool_labels(pools)
        rows = []
        for key, frame in frames.items():
            sizes = {origin.pool_digest: (origin.pool, origin.pool_size) for origin in frame.origins}
            row_labels = {digest: labels[digest] for digest in sizes}
            row = Row(key, self._columns, configs[key.system], frame, sizes, names[group_keys[key.system]], row_labels)
            rows.append(row)
        return rows


def _group_name(key: SystemKey, participants: Collection[str]) -> SystemKey:
    """Return a system's key; a group of N participants is renamed `people (N)`, a single one by id."""
    if not participants:
        return key
    name = f"{key.system} ({len(participants)})" if len(participants) > 1 else f"{PEOPLE}{min(participants)}"
    return key._replace(system=name)


def num_answered(rows: Sequence[Row], by: Grouping) -> list[int]:
    """Return the number of items that each row's system answered; by pool, in all settings."""
    if by is not Grouping.POOL:
        return [row.num_items for row in rows]
    items: dict[tuple[str, str], set[core_metrics.Item]] = {}
    for row in rows:
        items.setdefault((row.system, row.pool), set()).update(row.items)
    return [len(items[row.system, row.pool]) for row in rows]


def num_expected(rows: Sequence[Row], by: Grouping) -> list[int]:
    """Return the denominator of each row's coverage, a number of items; 0 if it is not known.

    By setting it is the number of items of the row's setting in its pools. It is known if every item of these pools was
    answered by some system, under one setting only.
    """
    if by is Grouping.STRATUM:
        return [0] * len(rows)
    if by is Grouping.POOL:
        return [row.num_expected for row in rows]
    settings: dict[core_metrics.Item, set[str]] = {}
    for row in rows:
        for item in row.items:
            settings.setdefault(item, set()).add(row.setting)
    num_in_one_setting = Counter(digest for (digest, _), names in settings.items() if len(names) == 1)
    num_by_setting = Counter((item[0], name) for item, names in settings.items() for name in names)
    return [
        sum(num_by_setting[digest, row.setting] for digest in row.pools)
        if all(num_in_one_setting[digest] == size for digest, (_, size) in row.pools.items())
        else 0
        for row in rows
    ]


def answered_by_pool(rows: Iterable[Row]) -> Iterator[tuple[str, str, int, int]]:
    """Yield (pool, system, number of answered items in all settings, size of the pool), without groups of people."""
    items: dict[tuple[str, str], set[core_metrics.Item]] = {}
    pools: dict[str, tuple[str, int]] = {}
    for row in rows:
        pools |= {digest: (row.pool_labels[digest], size) for digest, (_, size) in row.pools.items()}
        for item in () if row.is_group else row.items:
            items.setdefault((row.system, item[0]), set()).add(item)
    for (system, digest), answered in items.items():
        label, size = pools[digest]
        yield label, system, len(answered), size


def with_tie_choice(answer: Answer) -> Iterator[Answer]:
    """Yield an answer; if it is a mean over equally good ones, also the chosen one, for a row of its own."""
    yield answer
    context, score = answer
    if context.is_tied:
        yield context._replace(is_chosen=True), dict(score)


def group(
    answers: Iterable[Answer],
    metrics: core_metrics.MetricSet,
    by: Grouping,
    *,
    handling: core_metrics.InvalidHandling = core_metrics.InvalidHandling.PUBLISHED,
    with_strata: bool = False,
    unit: Callable[[core_metrics.Item], str] | None = None,
) -> list[Row]:
    """Group answers into rows with all metrics, in no particular order."""
    reader = core_metrics.ObservationReader(metrics, handling, with_hidden=True)
    groups = RowGroups(metrics, reader.columns, by, with_strata=with_strata, unit=unit)
    # (setting, id() of the score) -> score and its values: answers may share a score, which is read once
    observed: dict[tuple[str, int], tuple[Mapping[str, Any], tuple[core_metrics.Values, core_metrics.Sample]]] = {}
    for context, score in chain.from_iterable(map(with_tie_choice, answers)):
        key = context.setting, id(score)
        if key not in observed:
            # the entry keeps the score alive, so its id() stays unique
            observed[key] = score, reader.read_values(context.setting, score)
        groups.add(context, *observed[key][1])
    rows = drop_equal_choices(groups.rows())
    for row in rows:
        row.key = row.key._replace(setting=in_one_line(row.setting), stratum=in_one_line(row.stratum))
        row.pool_labels = {digest: in_one_line(label) for digest, label in row.pool_labels.items()}
    return rows


def drop_equal_choices(rows: Sequence[Row]) -> list[Row]:
    """Remove rows of chosen answers whose rates equal the means over all equally good ones."""
    by_key = {row.key: row for row in rows}

    def is_equal(row: Row) -> bool:
        mean = by_key.get(row.key._replace(system=row.key.system._replace(is_chosen=False)))
        return row.key.system.is_chosen and mean is not None and mean.rates == row.rates

    return [row for row in rows if not is_equal(row)]


def section_rows(answers: Iterable[Answer], metrics: core_metrics.MetricSet, by: Grouping) -> list[Row]:
    """Return rows by stratum, sorted by setting, stratum, pool and system."""
    rows = group(answers, metrics, by, with_strata=True)

    def sort_key(row: Row) -> tuple[Any, ...]:
        pools = tuple(sorted(set(row.pool_labels.values())))
        return metrics.setting_order_key(row.setting), natural(row.stratum), pools, natural(row.system)

    return sorted(rows, key=sort_key)


# --- Answers with display names of their systems, for tables that list single answers ---------------------------------


class NamedAnswer(NamedTuple):
    """One scored answer.

    system: display name in the report, with the options in which its runs differ
    """

    system: str
    context: AnswerContext
    score: Mapping[str, Any]

    @property
    def answer(self) -> Answer:
        return self.context, self.score


def named_answers(answers: Iterable[Answer]) -> list[NamedAnswer]:
    """Return the answers with display names of their systems, sorted by system, pool and item."""
    answers = list(answers)
    names = system_names({SystemKey.of(context): context.config for context, _ in answers})
    natural_key = cache(natural)
    named = [NamedAnswer(names[SystemKey.of(context)], context, score) for context, score in answers]
    return sorted(
        named,
        key=lambda answer: (
            natural_key(answer.system),
            answer.context.pool_digest,
            natural_key(answer.context.instance),
        ),
    )


def coverage_notes(answers: Sequence[NamedAnswer]) -> tuple[str, ...]:
    """Return notes on incomplete answers to pools and on crashes, in which people are one system."""
    contexts_by_system: dict[tuple[str, str], list[AnswerContext]] = {}
    for answer in answers:
        system = PEOPLE_SYSTEM if participant_of(answer.context.system) else answer.system
        contexts_by_system.setdefault((system, answer.context.pool_digest), []).append(answer.context)
    notes = []
    for (system, _), contexts in contexts_by_system.items():
        num_taken = Counter(name for name, _ in {(context.system, context.instance) for context in contexts})
        low, high = min(num_taken.values()), max(num_taken.values())
        num_crashed = sum(context.outcome == "crashed" for context in contexts)
        pool, size = in_one_line(contexts[0].pool), contexts[0].pool_size
        is_group = bool(participant_of(contexts[0].system))
        name = f"{system} ({len(num_taken)})" if is_group else system
        if low < size:
            reach = f"{low}" if low == high else f"{low} to {high}"
            mean = "rates are means over participants, each alike" if is_group else "rates are over those"
            notes.append(f"{name}: {reach} of {plural(size, 'items')} of {pool}; {mean}.")
        if num_crashed:
            notes.append(
                f"{num_crashed} of {plural(len(contexts), 'answers')} of {name} to {pool} are crashes; "
                "rates count them."
            )
    return tuple(notes)
