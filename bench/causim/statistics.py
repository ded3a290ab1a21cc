"""Statistics of causal questions: programs, worlds, evidence, questions and labels."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256

from calibrant.bench.core.statistics import PoolStatistic, PoolStatistics, share, span, spread
from calibrant.dsl.causim.item import CausimItem


def _program(item: CausimItem) -> tuple[bytes]:
    return (sha256(item.task.source.encode("utf-8", "surrogatepass")).digest(),)


COLUMNS: Mapping[str, PoolStatistic[CausimItem]] = {
    "n": PoolStatistic(lambda item: (True,), len),
    "programs": PoolStatistic(_program, lambda programs: len(set(programs))),
    "nodes": PoolStatistic(lambda item: (len(item.task.model),), span),
    "worlds": PoolStatistic(lambda item: (item.task.model.worlds,), spread),
    "unknown_noise": PoolStatistic(lambda item: (len(item.task.question.unknown),), span),
    "intervened": PoolStatistic(lambda item: (len(item.task.question.do),), span),
    "observed": PoolStatistic(lambda item: (len(item.task.question.observed),), span),
    "answers": PoolStatistic(lambda item: (item.labels.size,), spread),
    "trivial": PoolStatistic(lambda item: (item.labels.trivial,), share),
    "effect": PoolStatistic(lambda item: (item.labels.effect_some,), share),
    "copyable": PoolStatistic(lambda item: (item.labels.copy,), share),
}
STATISTICS = PoolStatistics(COLUMNS, lambda item: item.topology)
