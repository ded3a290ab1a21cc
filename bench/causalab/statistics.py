"""Statistics of laboratories: nodes, edges, allowances, visible parts, noise and labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import comb
from statistics import fmean, pvariance

from calibrant.bench.core.statistics import PoolStatistic, PoolStatistics, share, span, spread, tally
from calibrant.dsl.causalab.item import LabItem
from calibrant.dsl.causalab.mechanism import winnable


def _label(name: str) -> PoolStatistic[LabItem]:
    return PoolStatistic(lambda item: (item.sealed.labels[name],) if name in item.sealed.labels else (), spread)


def _mean(numbers: Sequence[float]) -> float | None:
    return fmean(numbers) if numbers else None


def _variance(numbers: Sequence[float]) -> float | None:
    """Return the population variance, as Table 1 has it."""
    return pvariance(numbers) if numbers else None


def _num_edges(item: LabItem) -> tuple[int]:
    return (len(item.sealed.mechanism.edges),)


def _motifs(end: int) -> PoolStatistic[LabItem]:
    """Mean number of pairs of edges that share an end: 0, of children of one node (forks); 1, of parents (colliders).

    Pairs whose other ends are joined count too.
    """

    def number(item: LabItem) -> tuple[int]:
        degrees = Counter(edge[end] for edge in item.sealed.mechanism.edges)
        return (sum(comb(degree, 2) for degree in degrees.values()),)

    return PoolStatistic(number, _mean)


COLUMNS: Mapping[str, PoolStatistic[LabItem]] = {
    "n": PoolStatistic(lambda item: (True,), len),
    "nodes": PoolStatistic(lambda item: (len(item.task.nodes),), span),
    "edges": PoolStatistic(_num_edges, spread),
    "edge_mean": PoolStatistic(_num_edges, _mean),
    "edge_variance": PoolStatistic(_num_edges, _variance),
    "fork_mean": _motifs(0),
    "collider_mean": _motifs(1),
    "allowance": PoolStatistic(lambda item: (item.task.allowance,), span),
    "settable": PoolStatistic(lambda item: (len(item.task.settable),), span),
    "records": PoolStatistic(lambda item: (len(item.task.records),), span),
    "traced": PoolStatistic(lambda item: (len(item.task.trace),), span),
    "family": PoolStatistic(lambda item: (item.task.family,), tally),
    "noise": PoolStatistic(lambda item: (item.task.noise,), share),
    "freq_parent": PoolStatistic(lambda item: (item.task.freq_parent,), share),
    "target": PoolStatistic(lambda item: (item.sealed.target,), spread),
    "winnable": PoolStatistic(lambda item: (winnable(item.sealed.target, item.task.tries),), share),
    "members": _label("members"),
    "fewest_settings": _label("fewest_settings"),
}
STATISTICS = PoolStatistics(COLUMNS, lambda item: item.stratum)
