"""Metrics of verdicts, samples of an item, and rates."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from itertools import groupby
from typing import Any, NamedTuple, TypeAlias

from calibrant.bench.core.verdict import LazyVerdict, MeanScore

# --- Several answers of one model to one item: what counts of each ---------------------------------------------------


class Sample(NamedTuple):
    """Outcome of one answer.

    meaning: equal for two answers that mean the same; None where that is not known
    """

    valid: bool
    correct: bool
    train_exact: bool
    heldout_exact: bool
    meaning: str | None


Item: TypeAlias = tuple[str, str]  # pool digest, instance
Right: TypeAlias = Callable[[Sample], bool]


# --- The metrics of a benchmark: how each is read off a verdict, and which of them tables show together ---------------


class InvalidHandling(Enum):
    """Value of an invalid submission in the means of HeldoutWorld and TrainWorld.

    PUBLISHED: it is left out, as behind the published tables; except in the counterexample audit pools, where it is 0
    PAPER: it is 0 everywhere, as the paper's text says
    """

    PUBLISHED = "published"
    PAPER = "paper"


class Metric(NamedTuple):
    """A rate or mean over answers.

    meaning: what it counts, without a verb and a stop, for captions and docs
    value: read off the benchmark's verdict; None where an answer is not in the denominator
    conditional: over some of the answers only, so that a rate over few is not shown
    skill_of: metrics that add up to a rate: it is what that rate gains over `chance`, as a share of what `best` gains
    is_share: whether no value is outside 0 to 1: of shares the interval is Wilson's (bench.answers.rates)
    """

    key: str
    heading: str
    meaning: str
    value: Callable[[Any], float | None]
    conditional: bool = False
    decimals: int = 3
    skill_of: tuple[str, ...] = ()
    is_share: bool = True


class View(NamedTuple):
    """Metrics that a table shows together.

    id, title: of the table in a report; empty where it has none of its own
    note: sentences of its caption on several metrics, or on what is counted
    optional: whether JSON and all columns leave it out where no answer has any of its metrics
    applies: whether a verdict has any of its metrics, where most have none; they are None without being read then
    """

    metrics: tuple[Metric, ...]
    id: str = ""
    title: str = ""
    note: str = ""
    optional: bool = False
    applies: Callable[[Any], bool] | None = None

    def caption(self, keys: Collection[str]) -> str:
        """Return the note and the meaning of each metric with one of these keys."""
        meanings = [f"{metric.heading}: {metric.meaning}." for metric in self.metrics if metric.key in keys]
        return " ".join(filter(None, [self.note, *meanings]))


class Success(NamedTuple):
    """Criterion of a right answer: in lists, play, reports, the four classes of attribution and chance levels.

    meaning: of "right", for captions and docs, without a stop
    is_right: (score, setting) -> whether the answer is right; no other field of a score is shown under that word
    is_defined: the same arguments -> whether the item can tell right from wrong, whatever the answer
    """

    meaning: str
    is_right: Callable[[Mapping[str, Any], str], bool]
    is_defined: Callable[[Mapping[str, Any], str], bool] = lambda score, setting: True

    def judge(self, score: Mapping[str, Any], setting: str) -> bool | None:
        """Return whether the answer is right; None where that is not defined."""
        return self.is_right(score, setting) if self.is_defined(score, setting) else None

    def rate(self, score: Mapping[str, Any], setting: str) -> float | None:
        """Return the share of right ones among equally good answers, 0 or 1 of one alone; None where undefined."""
        if not self.is_defined(score, setting):
            return None
        parts = score.parts if isinstance(score, MeanScore) else ((1, score),)
        right = sum(times for times, part in parts if self.is_right(part, setting))
        return right / sum(times for times, _ in parts)


def success_of_field(meaning: str) -> Success:
    """Return the success that the field `correct` of a score states."""
    return Success(meaning, lambda score, setting: score.get("correct") is True)


def _flag_of_line(key: str) -> Callable[[Any], float | None]:
    def value(score: Any) -> float | None:
        flag = score.get(key) if isinstance(score, Mapping) and "correctPublished" in score else None
        return None if flag is None else float(flag)

    return value


READERS = (
    Metric("chosen", "correct", "answers that are right by the chosen reader", _flag_of_line("correct")),
    Metric(
        "published", "published", "answers that are right by the published reader", _flag_of_line("correctPublished")
    ),
    Metric("lenient", "lenient", "answers that are right by the lenient reader", _flag_of_line("correctLenient")),
)
"""Metrics of lines of `calibrant score` alone, read off the line itself; undefined for records of runs."""


def score_itself(score: Mapping[str, Any], setting: str, handling: InvalidHandling) -> Mapping[str, Any]:
    """Return the score: what metrics read where nothing depends on the setting or on invalid submissions."""
    return score


def item_itself(instance: str) -> str:
    """Return the id of an item that is resampled alone."""
    return instance


def figure_if_recorded(*keys: str) -> Callable[[Any], float | None]:
    """Return a reader of the number under these keys, one inside the other; None for scores that lack it."""

    def value(score: Any) -> float | None:
        figure = score
        for key in keys:
            figure = figure.get(key) if isinstance(figure, Mapping) else None
        return float(figure) if isinstance(figure, int | float) else None

    return value


@dataclass(frozen=True, kw_only=True)
class MetricSet:
    """Metrics, views and row order of one benchmark's tables.

    benchmark: its name
    success: what a right answer is
    views: by name; the first is what is shown when none is named
    first: keys of what is kept longest where the width is short
    settings: beginnings of settings, in the order of rows
    sample: what counts of one of several answers
    rights: key, heading and criterion of what is counted over several answers
    hidden: metrics of no view, for tables of reports alone
    verdict: (score, setting, handling of invalid submissions) -> what `Metric.value` and `sample` read
    unit: the id that items which are drawn together in a resampling share, from an item's id
    item_unit: the same from an item, where it has more than its id; None where the id decides
    row_group: (setting, digest of the pool) -> the setting that tables have for it
    about_correct: what the field `correct` is where that is not success; empty where it is
    unread: keys of a line of a verdict that records do without, so that nothing reads them, and as "key.part" parts
    """

    benchmark: str
    success: Success
    views: Mapping[str, View]
    first: tuple[str, ...]
    settings: tuple[str, ...]
    sample: Callable[[Any], Sample]
    rights: tuple[tuple[str, str, Right], ...]
    verdict: Callable[[Mapping[str, Any], str, InvalidHandling], Any] = score_itself
    unit: Callable[[str], str] = item_itself
    item_unit: Callable[[Any], str | None] = lambda item: None
    row_group: Callable[[str, str], str] = lambda setting, pool_digest: setting
    hidden: tuple[Metric, ...] = ()
    about_correct: str = ""
    unread: tuple[str, ...] = ()

    @property
    def columns(self) -> tuple[Metric, ...]:
        """The metrics of all views, each once."""
        return tuple({metric.key: metric for view in self.views.values() for metric in view.metrics}.values())

    @property
    def default_view(self) -> str:
        return next(iter(self.views))

    def unit_of(self, item: Any) -> str:
        """Return the id that an item shares with those that are resampled with it."""
        return self.item_unit(item) or self.unit(item.id)

    def setting_order_key(self, setting: str) -> tuple[int, str]:
        """Return a key that sorts settings by their order."""
        matches = max((len(start), -i) for i, start in enumerate(("", *self.settings)) if setting.startswith(start))
        return -matches[1], setting


# --- Rates as tables print them: means of multisets, and which conditional ones are not shown -------------------------
UNDEFINED = "\N{EN DASH}"
SUPPRESSED = "*"
MAX_SUPPRESSED = 5  # conditional rates over 1 to 5 instances are not shown (paper, captions of Tables 1 and C.3)
OUTCOMES = ("found", "impossible", "out_of_budget", "crashed")


Weighted: TypeAlias = Mapping[float, int | Fraction]
"""How often each value occurs; an answer that is one of k samples of its item occurs 1/k times."""


def weighted_mean(values: Weighted) -> float | None:
    """Return the mean of a multiset of values, the same however they came in; None if there is none."""
    if len(values) < 2:
        return next(iter(values), None)
    if all(times.__class__ is int and value in (0, 1) for value, times in values.items()):  # as exact, and faster
        return float(values.get(1, 0) / sum(values.values()))
    count = sum(values.values(), Fraction(0))
    total = sum((Fraction(value) * times for value, times in values.items()), Fraction(0))
    return float(total / count)


def rate_text(values: Weighted, *, conditional: bool, decimals: int = 3, num_items: int | None = None) -> str:
    """Return the mean as tables print it.

    num_items: number of items it is over, if not one for each time a value occurs
    """
    return mean_text(
        weighted_mean(values),
        conditional=conditional,
        decimals=decimals,
        num_items=sum(values.values()) if num_items is None else num_items,
    )


def mean_text(mean: float | None, *, conditional: bool, decimals: int, num_items: int | Fraction) -> str:
    """Return a mean over so many items as tables print it."""
    if mean is None:
        return UNDEFINED
    if conditional and is_suppressed(num_items):
        return SUPPRESSED
    return f"{mean:.{decimals}f}"


def is_suppressed(num_items: int | Fraction) -> bool:
    """Return whether a conditional rate over so many items is not shown."""
    return 0 < num_items <= MAX_SUPPRESSED


# --- Observations: the values of all metrics of a scored answer, read off its verdict once ----------------------------

Values: TypeAlias = tuple[float | None, ...]
"""The value of every metric, in the order of `ObservationReader.columns`; None where an answer is not counted."""
_Condition: TypeAlias = Callable[[Any], bool]
_Group: TypeAlias = tuple[_Condition | None, list[Callable[[Any], float | None]]]
"""Metrics that a verdict has under a condition; 10^6 plain lines have 29 of ReplaySCM's 52."""


_NO_READERS: Values = (None,) * len(READERS)


class ObservationReader:
    """Reads verdicts of one benchmark. Equal values are one object: 10^6 answers have a few hundred different ones.

    with_hidden: also the metrics that only tables of reports read
    """

    def __init__(
        self,
        metrics: MetricSet,
        handling: InvalidHandling = InvalidHandling.PUBLISHED,
        *,
        with_hidden: bool = False,
    ) -> None:
        self.metrics = metrics
        read_of_verdicts = (*metrics.columns, *metrics.hidden) if with_hidden else metrics.columns
        self.columns = (*read_of_verdicts, *READERS)
        self._groups = [*_groups(metrics, read_of_verdicts)]
        self._handling = handling
        self._by_bulk_key: dict[tuple[str, Hashable], tuple[Values, Sample]] = {}
        self._interned: dict[Values, Values] = {}

    def read_values(self, setting: str, score: Mapping[str, Any]) -> tuple[Values, Sample]:
        """Return the values of a verdict under a setting, and what counts of it as one of several samples."""
        if isinstance(score, LazyVerdict):
            observation = self._by_bulk_key.get((setting, score.bulk_key))
            if observation is not None:
                return observation[0], Sample(*observation[1][:-1], score.meaning)
        verdict = self._verdict(score, setting)
        if isinstance(score, MeanScore):
            values = _mean_values([(times, self._read(self._verdict(part, setting))) for times, part in score.parts])
            values += _NO_READERS
        else:
            values = self._read(verdict) + tuple(metric.value(score) for metric in READERS)
        observed = self._interned.setdefault(values, values), self.metrics.sample(verdict)
        if isinstance(score, LazyVerdict):
            self._by_bulk_key[setting, score.bulk_key] = observed
        return observed

    def _verdict(self, score: Mapping[str, Any], setting: str) -> Any:
        return self.metrics.verdict(score, setting, self._handling)

    def _read(self, verdict: Any) -> Values:
        read: list[float | None] = []  # a list first: a generator resumes for every value
        for applies, readers in self._groups:
            if applies is None or applies(verdict):
                read += [None if (value := reader(verdict)) is None else float(value) for reader in readers]
            else:
                read += [None] * len(readers)
        return tuple(read)


def _groups(metrics: MetricSet, columns: Sequence[Metric]) -> Iterator[_Group]:
    """Yield the readers of columns that follow each other under one condition."""
    conditions = {metric.key: view.applies for view in metrics.views.values() for metric in view.metrics}
    for applies, group in groupby(columns, lambda column: conditions.get(column.key)):
        yield applies, [column.value for column in group]


def _mean_values(parts: Sequence[tuple[int, Values]]) -> Values:
    """Return the mean of every metric over answers, those left out that it is not defined for."""
    means: list[float | None] = []
    for column in zip(*(values for _, values in parts), strict=True):
        weights: dict[float, int] = {}
        for (times, _), value in zip(parts, column, strict=True):
            if value is not None:
                weights[value] = weights.get(value, 0) + times
        means.append(weighted_mean(weights))
    return tuple(means)
