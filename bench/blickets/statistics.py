"""Statistics of blicket items: sizes, rules, switches, noise and labels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from calibrant.bench.core.statistics import PoolStatistic, PoolStatistics, share, span, spread, tally
from calibrant.dsl.blickets.item import BlicketItem, Mechanism


def _rule(mechanism: Mechanism) -> str:
    return f"{mechanism.rule.form}-{mechanism.rule.blickets.bit_count()}"


def _steps(item: BlicketItem) -> Iterable[float]:
    """Labels are free texts."""
    text = item.labels.get("steps", "")
    return (float(text),) if text.replace(".", "", 1).isdecimal() and text.isascii() else ()


COLUMNS: Mapping[str, PoolStatistic[BlicketItem]] = {
    "n": PoolStatistic(lambda item: (True,), len),
    "objects": PoolStatistic(lambda item: (item.task.n,), span),
    "budget": PoolStatistic(lambda item: (item.task.budget,), span),
    "first_rule": PoolStatistic(lambda item: (_rule(item.sealed.mechanisms[0]),), tally),
    "later_rules": PoolStatistic(lambda item: map(_rule, item.sealed.mechanisms[1:]), tally),
    "switches": PoolStatistic(lambda item: item.sealed.switches, span),
    "ordered": PoolStatistic(lambda item: (item.sealed.mechanisms[0].order is not None,), share),
    "p": PoolStatistic(lambda item: (item.sealed.p,), tally),
    "informed": PoolStatistic(lambda item: (item.task.condition is not None,), share),
    "count": PoolStatistic(lambda item: (item.task.count,), tally),
    "steps": PoolStatistic(_steps, spread),
}
STATISTICS = PoolStatistics(COLUMNS, lambda item: item.stratum)
