"""Observations: the values of all metrics of a scored answer, read off its verdict once."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, TypeAlias

from calibrant.bench.core.metrics import READERS, InvalidHandling, Metric, MetricSet, Sample, weighted_mean
from calibrant.bench.core.verdict import LazyVerdict, MeanScore

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
