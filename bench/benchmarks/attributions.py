"""Attributions of answers whose records have none: made from the pools, when a table asks for them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.answers.attribution import KEY
from bench.benchmarks.registry import benchmark, benchmark_of
from bench.report.rate_rows import SHORT_DIGEST, AnswerOrigin
from dsl.errors import CalibrantError, in_one_line
from dsl.replayscm.pools.files import file_digest
from dsl.stored_items import items_by_id


class Unattributed:
    """The pools whose answers have no attribution, among those that were counted."""

    def __init__(self) -> None:
        self._pools: dict[str, tuple[str, str]] = {}
        self._attributed: set[str] = set()

    def count(self, origin: AnswerOrigin, score: Mapping[str, Any]) -> None:
        """Note whether an answer has one."""
        if origin.pool_digest not in self._attributed:
            self._pools.setdefault(origin.pool_digest, (origin.pool, origin.benchmark))
            if KEY in score:
                self._attributed.add(origin.pool_digest)

    def refuse(self) -> None:
        """Raise `CalibrantError` for a pool of which no answer has one: its file is needed to make them."""
        for digest, (name, of) in self._pools.items():
            if digest not in self._attributed:
                which = f"{name} (sha256 {digest[:SHORT_DIGEST]})"
                raise CalibrantError(
                    f"--attribution: the answers to {in_one_line(which)}, a pool of {benchmark(of).title}, have none;"
                    " add --pool POOL with that file"
                )


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
