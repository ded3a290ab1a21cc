"""Observations: the values of all metrics of a scored answer, read off its verdict once."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, TypeAlias

from calibrant.bench.core.metrics import InvalidHandling, MetricSet
from calibrant.bench.core.samples import Sample
from calibrant.bench.core.verdict import LazyVerdict

Values: TypeAlias = tuple[float | None, ...]
"""The value of every metric, in the order of `ObservationReader.columns`; None where an answer is not counted."""


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
        self.columns = (*metrics.columns, *metrics.hidden) if with_hidden else metrics.columns
        # read off the columns once: 10^6 lines look up 52 of them each
        self._readers = [column.value for column in self.columns]
        self._handling = handling
        self._by_bulk_key: dict[tuple[str, Hashable], tuple[Values, Sample]] = {}
        self._interned: dict[Values, Values] = {}

    def read_values(self, setting: str, score: Mapping[str, Any]) -> tuple[Values, Sample]:
        """Return the values of a verdict under a setting, and what counts of it as one of several samples."""
        if isinstance(score, LazyVerdict):
            observation = self._by_bulk_key.get((setting, score.bulk_key))
            if observation is not None:
                return observation[0], Sample(*observation[1][:-1], score.meaning)
        verdict = self.metrics.verdict(score, setting, self._handling)
        # a list first: a generator resumes for every value
        values = tuple([None if (value := read(verdict)) is None else float(value) for read in self._readers])
        observed = self._interned.setdefault(values, values), self.metrics.sample(verdict)
        if isinstance(score, LazyVerdict):
            self._by_bulk_key[setting, score.bulk_key] = observed
        return observed
