"""Statistics of items of logic models: networks, data, truths."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from calibrant.bench.core.statistics import PoolStatistic, PoolStatistics, share, span, spread
from calibrant.dsl.logic.clause import model_size
from calibrant.dsl.logic.item import LogicItem


def _true_sizes(item: LogicItem) -> Iterable[int]:
    return () if item.sealed is None else (model_size(item.sealed.gold),)


def _is_measured(item: LogicItem) -> Iterable[bool]:
    return (value is not None for row in item.task.values for value in row)


COLUMNS: Mapping[str, PoolStatistic[LogicItem]] = {
    "n": PoolStatistic(lambda item: (True,), len),
    "edges": PoolStatistic(lambda item: (len(item.task.edges),), span),
    "stimuli": PoolStatistic(lambda item: (len(item.task.setup.stimuli),), span),
    "readouts": PoolStatistic(lambda item: (len(item.task.setup.readouts),), span),
    "experiments": PoolStatistic(lambda item: (len(item.task.experiments),), span),
    "questions": PoolStatistic(lambda item: (len(item.task.questions),), span),
    "measured": PoolStatistic(_is_measured, share),
    "gold_size": PoolStatistic(_true_sizes, spread),
}
STATISTICS = PoolStatistics(COLUMNS, lambda item: item.stratum)
