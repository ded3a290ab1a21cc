"""Inputs of a report: folders of runs, scored or raw predictions, official files with embedded results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

import msgspec

from calibrant.bench.core.metrics import Item
from calibrant.bench.core.registry import NAMES, benchmark_of, stated_name
from calibrant.bench.core.scoring import AnswerContext
from calibrant.bench.core.verdict import MeanScore
from calibrant.bench.pools.capabilities import STORED_RESULTS
from calibrant.bench.report.rows import Answer
from calibrant.bench.report.scored_answers import scored_answers
from calibrant.bench.runs.records import stated_benchmarks
from calibrant.bench.scoring.answers import FieldNames
from calibrant.bench.scoring.files import STANDARD_INPUT, PredictionFile
from calibrant.dsl.errors import CalibrantError, short_repr
from calibrant.dsl.records import file_digest, item_ids, items_by_id


@dataclass(frozen=True)
class Sources:
    """Sources of scored answers.

    runs: folders of runs, and files that `calibrant score` wrote
    predictions: raw predictions for instances of `pools`, JSON lines or a log of Inspect; a line of `calibrant score`
        will do too
    official: pool files that embed model results
    pools: pool files; they say which instances share a latent SCM, where instance names do not
    fields: what the user calls the fields of raw predictions; say: is told what was recognised in them
    """

    runs: Sequence[Path] = ()
    predictions: Sequence[Path] = ()
    official: Sequence[Path] = ()
    pools: Sequence[Path] = ()
    fields: FieldNames | None = None
    say: Callable[[str], None] = lambda line: None

    def answers(self) -> dict[str, list[Answer]]:
        """Return every scored answer by its benchmark, in their order; `CalibrantError` if there is none."""
        answers_by_benchmark: dict[str, list[Answer]] = {name: [] for name in NAMES}
        keys: set[tuple[str, str, str, str, int]] = set()
        recognised: list[str] = []
        for context, score in share_equal(self._score_all(recognised)):
            key = (
                context.pool_digest,
                context.instance,
                context.system,
                context.options,
                context.sample,
            )
            if key in keys:
                raise CalibrantError(
                    f"{context.system} on {short_repr(context.instance)} of {context.pool} is given twice"
                )
            keys.add(key)
            answers_by_benchmark[context.benchmark].append((context, score))
        for line in recognised:
            self.say(line)
        if not any(answers_by_benchmark.values()):
            raise CalibrantError("no scored answers in these folders and files")
        return {name: answers for name, answers in answers_by_benchmark.items() if answers}

    def _score_all(self, recognised: list[str]) -> Iterator[tuple[AnswerContext, Mapping[str, Any]]]:
        yield from scored_answers(self.runs, with_steps=bool(self.pools))
        for path in self.official:
            yield from benchmark_of(path).require(STORED_RESULTS)(path).answers()
        for path in self.predictions:
            yield from self._score_predictions(path, recognised)

    def _score_predictions(
        self, path: Path, recognised: list[str]
    ) -> Iterator[tuple[AnswerContext, Mapping[str, Any]]]:
        if not self.pools:
            raise CalibrantError(f"{path}: predictions are scored against pools; give them with --pool")
        from calibrant.bench.scoring.predictions import Predictions
        from calibrant.bench.scoring.scorer import PoolScorer

        pools = self._pools_of(path)
        scorer = PoolScorer(pools, benchmark_of(pools[0]).scoring.report_options)
        predictions = Predictions(path, scorer, fields=self.fields)
        yield from map(scorer.score, predictions)
        recognised.append(f"{path}: {predictions.recognised}")

    def transcripts(self) -> dict[str, list[Path]]:
        """Return, by benchmark of the pools, what may hold whole episodes and can be read again."""
        paths_by_benchmark = {
            name: folders_of(name, self.runs) for name in dict.fromkeys(benchmark_of(pool).name for pool in self.pools)
        }
        for path in self.predictions:
            if self.pools and path != STANDARD_INPUT:
                paths_by_benchmark[benchmark_of(self._pools_of(path)[0]).name].append(path)
        return paths_by_benchmark

    def _pools_of(self, path: Path) -> list[Path]:
        """Return the pools of one benchmark: of several that of which the file's first line names an item."""
        of: dict[str, list[Path]] = {}
        for pool in self.pools:
            of.setdefault(benchmark_of(pool).name, []).append(pool)
        if len(of) > 1:
            texts = {value for value in _first_line(path).values() if isinstance(value, str)}
            for pools in of.values():
                if any(
                    name in texts for pool in pools for name in item_ids(benchmark_of(pool).items.read_pool(pool).items)
                ):
                    return pools
        return next(iter(of.values()))


def _first_line(path: Path) -> dict[str, Any]:
    return next((content or {} for _, content in PredictionFile(path).objects()), {})


def share_equal(answers: Iterable[Answer]) -> Iterator[Answer]:
    """Yield the answers; equal scores on an item are one object, so that what follows reads it once.

    Many systems give the same answer to an item. Verdicts that are computed at first access stay as they are.
    """
    shared: dict[tuple[str, str, bytes], Mapping[str, Any]] = {}
    for context, score in answers:
        if isinstance(score, dict):
            parts = score.parts if isinstance(score, MeanScore) else ()
            content = msgspec.msgpack.encode((score, parts))  # not JSON, which has no number for nan
            key = context.pool_digest, context.instance, blake2b(content, digest_size=16).digest()
            score = shared.setdefault(key, score)
        yield context, score


def folders_of(name: str, runs: Sequence[Path]) -> list[Path]:
    """Return the folders among these that have a record of this benchmark."""
    return [
        path
        for path in runs
        if path.is_dir() and any(stated_name(stated) == name for stated in stated_benchmarks(path))
    ]


def items_of_pools(name: str, pools: Sequence[Path]) -> dict[Item, Any]:
    """Return the items of one benchmark's pools, by digest of the pool and id."""
    items: dict[Item, Any] = {}
    for path in pools:
        of = benchmark_of(path)
        if of.name == name:
            digest = file_digest(path)
            items |= {
                (digest, instance): item for instance, item in items_by_id(of.items.read_pool(path).items).items()
            }
    return items
