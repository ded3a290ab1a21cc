"""Metrics of verdicts, samples of an item, and rates."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from itertools import groupby
from typing import Any, NamedTuple, TypeAlias

from calibrant.bench.core.verdict import LazyVerdict, MeanScore

# --- Several answers (samples) of one model to one item ---------------------------------------------------------------


class Sample(NamedTuple):
    """Outcome of one answer.

    meaning: key of the answer's equivalence class, equal for answers that state the same; None where it is not known
    """

    valid: bool
    correct: bool
    train_exact: bool
    heldout_exact: bool
    meaning: str | None


Item: TypeAlias = tuple[str, str]  # pool digest, instance
Right: TypeAlias = Callable[[Sample], bool]


# --- The metrics of a benchmark: readers of verdicts, grouped into views of tables ------------------------------------


class InvalidHandling(Enum):
    """Value of an invalid submission in the means of HeldoutWorld and TrainWorld.

    PUBLISHED: left out, as in the published tables, but 0 in the counterexample audit pools
    PAPER: 0 everywhere, as the paper's text states
    """

    PUBLISHED = "published"
    PAPER = "paper"


class Metric(NamedTuple):
    """A rate or mean over answers.

    meaning: noun phrase for captions and docs, without a full stop
    value: verdict -> value; None if the answer is not in the denominator
    conditional: whether it is over some of the answers only; such rates over few answers are suppressed
    skill_of: keys of metrics whose sum is a rate; this metric is (rate - chance) / (best - chance); empty for others
    is_share: whether all values are within 0 to 1, so that the interval is Wilson's (bench.answers.rates)
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

    id, title: id and title of the view's own table in a report; empty if it has none
    note: sentences of the caption on several metrics, or on the denominator
    optional: whether JSON and `--columns all` omit the view if no answer has any of its metrics
    applies: verdict -> whether it may have any of the metrics; if not, all are None without reading it. None: always
    """

    metrics: tuple[Metric, ...]
    id: str = ""
    title: str = ""
    note: str = ""
    optional: bool = False
    applies: Callable[[Any], bool] | None = None

    def caption(self, keys: Collection[str]) -> str:
        """Return the note, then the meanings of the metrics with these keys."""
        meanings = [f"{metric.heading}: {metric.meaning}." for metric in self.metrics if metric.key in keys]
        return " ".join(filter(None, [self.note, *meanings]))


class Success(NamedTuple):
    """Criterion of a right answer: what lists, games, reports, attributions and chance levels mean by "right".

    meaning: definition of "right" for captions and docs, without a full stop
    is_right: (score, setting) -> whether the answer is right
    is_defined: (score, setting) -> whether answers to the item can be right or wrong at all
    """

    meaning: str
    is_right: Callable[[Mapping[str, Any], str], bool]
    is_defined: Callable[[Mapping[str, Any], str], bool] = lambda score, setting: True

    def judge(self, score: Mapping[str, Any], setting: str) -> bool | None:
        """Return whether the answer is right; None where that is not defined."""
        return self.is_right(score, setting) if self.is_defined(score, setting) else None

    def rate(self, score: Mapping[str, Any], setting: str) -> float | None:
        """Return 1 for a right answer, 0 for a wrong one, a share for equally good answers; None where undefined."""
        if not self.is_defined(score, setting):
            return None
        parts = score.parts if isinstance(score, MeanScore) else ((1, score),)
        num_right = sum(times for times, part in parts if self.is_right(part, setting))
        return num_right / sum(times for times, _ in parts)


def success_of_field(meaning: str) -> Success:
    """Return the criterion of benchmarks whose score states it as the field `correct`."""
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
"""Metrics by reading rule, from fields that only lines of `calibrant score` have; undefined for records of runs."""


def score_itself(score: Mapping[str, Any], setting: str, handling: InvalidHandling) -> Mapping[str, Any]:
    """Return the score unchanged: the `verdict` of benchmarks whose metrics ignore setting and invalid submissions."""
    return score


def item_itself(instance: str) -> str:
    """Return the id of an item: the `unit` of benchmarks whose items are resampled one by one."""
    return instance


def figure_if_recorded(*keys: str) -> Callable[[Any], float | None]:
    """Return a reader of the number under these nested keys; None for scores that lack it."""

    def value(score: Any) -> float | None:
        field = score
        for key in keys:
            field = field.get(key) if isinstance(field, Mapping) else None
        return float(field) if isinstance(field, int | float) else None

    return value


@dataclass(frozen=True, kw_only=True)
class MetricSet:
    """Metrics, views and row order of one benchmark's tables.

    benchmark: name of the benchmark
    success: criterion of a right answer
    views: by name, the default first
    first: keys of the metrics that narrow tables drop last
    settings: prefixes of settings, in the order of rows
    sample: verdict -> outcome of the answer as one of several to an item
    rights: (key, heading, criterion) for each rate over several answers to an item, such as pass@k and majority
    hidden: metrics in no view, for tables of reports alone
    verdict: (score, setting, handling of invalid submissions) -> the argument of `Metric.value` and `sample`
    unit: id of an item -> id of its unit, a group of items that are resampled together
    item_unit: item -> id of its unit, where the item's id does not tell; None where it does
    row_group: (setting, digest of the pool) -> setting in the rows of tables
    about_correct: definition of the field `correct` if it differs from `success`; else empty
    unread: keys (or "key.part") of a verdict's line that no table reads, because records may lack them
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
        """Return the id of an item's unit."""
        return self.item_unit(item) or self.unit(item.id)

    def setting_order_key(self, setting: str) -> tuple[int, str]:
        """Return a sort key: the index of the longest matching prefix in `settings`, then the setting itself."""
        prefixes = enumerate(("", *self.settings))
        _, negative_index = max((len(prefix), -i) for i, prefix in prefixes if setting.startswith(prefix))
        return -negative_index, setting


# --- Rates as tables print them: means of multisets, with suppression of conditional rates over few answers -----------
UNDEFINED = "\N{EN DASH}"
SUPPRESSED = "*"
MAX_SUPPRESSED = 5  # conditional rates over 1 to 5 instances are not shown (paper, captions of Tables 1 and C.3)
OUTCOMES = ("found", "impossible", "out_of_budget", "crashed")


Weighted: TypeAlias = Mapping[float, int | Fraction]
"""A multiset: value -> how often it occurs; each of k samples of an item counts as 1/k."""


def weighted_mean(values: Weighted) -> float | None:
    """Return the mean of a multiset; None if it is empty. It is rounded once, so it does not depend on the order."""
    if len(values) < 2:
        return next(iter(values), None)
    if all(times.__class__ is int and value in (0, 1) for value, times in values.items()):  # exact too, and faster
        return float(values.get(1, 0) / sum(values.values()))
    count = sum(values.values(), Fraction(0))
    total = sum((Fraction(value) * times for value, times in values.items()), Fraction(0))
    return float(total / count)


def mean_text(mean: float | None, *, conditional: bool, decimals: int, num_items: int | Fraction) -> str:
    """Return a mean over `num_items` items as tables print it."""
    if mean is None:
        return UNDEFINED
    if conditional and is_suppressed(num_items):
        return SUPPRESSED
    return f"{mean:.{decimals}f}"


def is_suppressed(num_items: int | Fraction) -> bool:
    """Return whether a conditional rate over `num_items` items is suppressed."""
    return 0 < num_items <= MAX_SUPPRESSED


# --- Observations: the values of all metrics of a scored answer, read off its verdict ---------------------------------

Values: TypeAlias = tuple[float | None, ...]
"""The value of every metric, in the order of `ObservationReader.columns`; None where an answer is not counted."""
_Condition: TypeAlias = Callable[[Any], bool]
_Group: TypeAlias = tuple[_Condition | None, list[Callable[[Any], float | None]]]
"""A condition, and readers of metrics that are None unless it holds: plain lines have only 29 of ReplaySCM's 52."""


_NO_READERS: Values = (None,) * len(READERS)


class ObservationReader:
    """Reader of verdicts of one benchmark.

    Equal tuples of values are one object, because 10^6 answers have a few hundred distinct ones.

    with_hidden: whether `MetricSet.hidden` is read too
    """

    def __init__(
        self,
        metrics: MetricSet,
        handling: InvalidHandling = InvalidHandling.PUBLISHED,
        *,
        with_hidden: bool = False,
    ) -> None:
        self.metrics = metrics
        verdict_metrics = (*metrics.columns, *metrics.hidden) if with_hidden else metrics.columns
        self.columns = (*verdict_metrics, *READERS)
        self._groups = [*_groups(metrics, verdict_metrics)]
        self._handling = handling
        self._by_bulk_key: dict[tuple[str, Hashable], tuple[Values, Sample]] = {}
        self._interned: dict[Values, Values] = {}

    def read_values(self, setting: str, score: Mapping[str, Any]) -> tuple[Values, Sample]:
        """Return the values of all metrics of a verdict under a setting, and its outcome as one of several samples."""
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
        values: list[float | None] = []  # extended group by group; a generator would be resumed for every value
        for applies, readers in self._groups:
            if applies is None or applies(verdict):
                values += [None if (value := reader(verdict)) is None else float(value) for reader in readers]
            else:
                values += [None] * len(readers)
        return tuple(values)


def _groups(metrics: MetricSet, columns: Sequence[Metric]) -> Iterator[_Group]:
    """Yield a condition and the readers under it, for each run of neighbouring columns with one condition."""
    conditions = {metric.key: view.applies for view in metrics.views.values() for metric in view.metrics}
    for applies, group in groupby(columns, lambda column: conditions.get(column.key)):
        yield applies, [column.value for column in group]


def _mean_values(parts: Sequence[tuple[int, Values]]) -> Values:
    """Return the mean of every metric over the answers for which it is defined. parts: (weight, values) by answer."""
    means: list[float | None] = []
    for column in zip(*(values for _, values in parts), strict=True):
        weights: dict[float, int] = {}
        for (times, _), value in zip(parts, column, strict=True):
            if value is not None:
                weights[value] = weights.get(value, 0) + times
        means.append(weighted_mean(weights))
    return tuple(means)
