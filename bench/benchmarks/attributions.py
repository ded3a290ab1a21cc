"""Attributions of answers whose records have none: made from the pools, when a table asks for them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.answers.attribution import KEY
from bench.benchmarks.registry import benchmark, benchmark_of
from bench.report.rate_rows import AnswerOrigin
from dsl.replayscm.pools.files import file_digest
from dsl.stored_items import items_by_id

Scores = Iterable[tuple[AnswerOrigin, Mapping[str, Any]]]


def attributed(scores: Scores, pools: Sequence[Path]) -> Iterator[tuple[AnswerOrigin, Mapping[str, Any]]]:
    """The same answers, each with its attribution where its pool is among these and its record says none."""
    items = {file_digest(path): items_by_id(benchmark_of(path).read_pool(path).items) for path in pools}
    for origin, score in scores:
        item = items.get(origin.pool_digest, {}).get(origin.instance)
        if item is None or KEY in score:
            yield origin, score
        else:
            yield origin, {**score, KEY: benchmark(origin.benchmark).attribution(item, {}, (), score)}
