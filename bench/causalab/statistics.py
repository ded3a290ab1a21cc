"""Statistics of laboratories: nodes, edges, allowances, visible parts, noise and labels."""

from __future__ import annotations

from collections.abc import Mapping

from calibrant.bench.core.statistics import PoolStatistic, PoolStatistics, share, span, spread, tally
from calibrant.dsl.causalab.item import LabItem
from calibrant.dsl.causalab.reactor import winnable


def _label(name: str) -> PoolStatistic[LabItem]:
    return PoolStatistic(lambda item: (item.sealed.labels[name],) if name in item.sealed.labels else (), spread)


COLUMNS: Mapping[str, PoolStatistic[LabItem]] = {
    "n": PoolStatistic(lambda item: (True,), len),
    "nodes": PoolStatistic(lambda item: (len(item.task.nodes),), span),
    "edges": PoolStatistic(lambda item: (len(item.sealed.mechanism.edges),), spread),
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
