"""Outcomes of systems on the items of a pool, as a table of right and wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import fsum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.bench.core.registry import one_benchmark
from calibrant.bench.report.scored_answers import scored_answers
from calibrant.bench.report.sources import items_of_pools
from calibrant.dsl.errors import CalibrantError

if TYPE_CHECKING:
    from calibrant.bench.core.benchmark import Benchmark
    from calibrant.bench.core.samples import Item

    FloatArray = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True)
class OutcomeTable:
    """Outcomes by item and system.

    rates: [item, system], share of right answers, NaN where a system did not answer; strata: of each item
    """

    benchmark: Benchmark[Any]
    keys: tuple[Item, ...]
    items: tuple[Any, ...]
    strata: tuple[str, ...]
    systems: tuple[str, ...]
    rates: FloatArray

    def binary(self) -> tuple[tuple[int, ...], np.ndarray[Any, np.dtype[np.int64]]]:
        """Return the items that all systems answered, and 0 or 1 for each: right in at least half of the answers."""
        complete = tuple(int(k) for k in np.flatnonzero(~np.isnan(self.rates).any(axis=1)))
        return complete, (self.rates[list(complete)] >= 0.5).astype(np.int64)


def read_outcomes(runs: Sequence[Path], pools: Sequence[Path]) -> OutcomeTable:
    """Return the outcomes of runs and scored files on the items of pools; `CalibrantError` without any.

    A system that occurs with several options is one system for each. Items without a right answer are left out.
    """
    of = one_benchmark(pools)
    items = items_of_pools(of.name, pools)
    judge = of.metrics.success.judge
    sums: dict[tuple[Item, str], list[float]] = {}
    strata: dict[Item, str] = {}
    for context, score in scored_answers(runs):
        key = (context.pool_digest, context.instance)
        if key in items and (right := judge(score, context.setting)) is not None:
            strata[key] = context.stratum or context.setting
            sums.setdefault((key, _system(context.system, context.config)), []).append(right)
    if not sums:
        names = ", ".join(path.name for path in pools)
        raise CalibrantError(f"no scored answer to an item of {names}; give runs, or files of calibrant score, of it")
    keys = tuple(key for key in items if key in strata)
    systems = tuple(sorted({system for _, system in sums}))
    rates = np.full((len(keys), len(systems)), np.nan)
    for row, key in enumerate(keys):
        for column, system in enumerate(systems):
            answers = sums.get((key, system))
            if answers:
                rates[row, column] = fsum(answers) / len(answers)
    return OutcomeTable(of, keys, tuple(items[key] for key in keys), tuple(strata[key] for key in keys), systems, rates)


def _system(name: str, config: Mapping[str, Any]) -> str:
    options = ",".join(f"{key}={value}" for key, value in sorted(config.items()) if value is not None)
    return f"{name}({options})" if options else name
