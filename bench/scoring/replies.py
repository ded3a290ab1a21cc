"""Predictions about items that are answered at once: a response or an object in, the benchmark's verdict out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from calibrant.bench.core.attribution import KEY
from calibrant.bench.core.benchmark import Benchmark
from calibrant.bench.core.registry import one_benchmark
from calibrant.bench.pools.ids import PublicIds
from calibrant.bench.report.rate_rows import AnswerOrigin
from calibrant.bench.scoring.input.answer_fields import FieldNames
from calibrant.bench.scoring.predictions import PoolItems, Prediction, Predictions, Samples
from calibrant.bench.scoring.scorer import NO_MODEL, ScoredPrediction
from calibrant.bench.scoring.transcript_replay import NO_ANSWER
from calibrant.dsl.action import ActionError
from calibrant.dsl.item import Item
from calibrant.dsl.pool_text import pool_digest
from calibrant.dsl.stored_items import items_by_id


@dataclass(frozen=True)
class _ScoredPool:
    name: str
    file: str
    digest: str
    items: Mapping[str, Item[Any, Any]]
    public: PublicIds


class ReplyScorer:
    """Scores predictions for pools of one benchmark."""

    def __init__(self, pools: Sequence[Path]) -> None:
        self.benchmark: Benchmark[Any] = one_benchmark(pools)
        self._pools: dict[str, _ScoredPool] = {}
        for path in pools:
            pool, digest = self.benchmark.read_pool(path), pool_digest(path)
            self._pools[digest] = _ScoredPool(
                pool.name, path.name, digest, items_by_id(pool.items), PublicIds.of_pool(path, pool.items)
            )

    @property
    def items(self) -> list[PoolItems]:
        """Return what predictions may be about."""
        return [
            PoolItems(
                pool.digest,
                tuple(dict.fromkeys((pool.name, pool.file))),
                pool.items.keys(),
                pool.public,
                partial(self._prompt, pool.digest),
            )
            for pool in self._pools.values()
        ]

    def _prompt(self, digest: str, instance: str) -> str:
        return self.benchmark.system_and_prompt(self._pools[digest].items[instance])[1]

    def item(self, prediction: Prediction) -> Item[Any, Any]:
        return self._pools[prediction.pool].items[prediction.instance]

    def forget(self) -> None:
        """Nothing is kept."""

    def origin(self, prediction: Prediction) -> AnswerOrigin:
        """Return where a prediction is from, as tables call it."""
        pool, item = self._pools[prediction.pool], self.item(prediction)
        return AnswerOrigin(
            prediction.model or NO_MODEL,
            pool.name,
            pool.digest,
            len(pool.items),
            item.id,
            item.setting,
            item.stratum,
            seconds=prediction.seconds,
            sample=prediction.sample,
            benchmark=self.benchmark.name,
        )

    def read(self, prediction: Prediction, line: Mapping[str, Any]) -> Prediction:
        """The prediction of a line with its answer; if it has none, what stands in for one, and why."""
        item = self.item(prediction)
        problem = NO_ANSWER
        if prediction.answer != "":
            try:
                answer, gap = self.benchmark.read_answer(item, prediction.answer)
                return prediction._replace(answer=answer, gap=gap)
            except ActionError as error:
                problem = str(error)
        return prediction._replace(answer=self.benchmark.no_answer(item), problem=problem, unread=problem)

    def score(self, prediction: Prediction) -> ScoredPrediction:
        """The verdict on a prediction that was read: the benchmark's keys, then where it belongs."""
        pool, item = self._pools[prediction.pool], self.item(prediction)
        assert isinstance(prediction.answer, dict)
        score = self.benchmark.score(item, prediction.answer, prediction.steps)
        line = {
            "benchmark": self.benchmark.name,
            "instanceId": item.id,
            "model": prediction.model,
            "sample": prediction.sample,
            **score,
            "problem": prediction.problem or prediction.gap,
            KEY: self.benchmark.attribution(item, prediction.answer, prediction.steps, score),
            "pool": pool.name,
            "poolDigest": pool.digest,
            "poolSize": len(pool.items),
            "setting": item.setting,
            "stratum": item.stratum,
            "seconds": prediction.seconds,
        }
        return ScoredPrediction(self.origin(prediction), line)


class ReplyPredictions(Predictions):
    """The predictions of a file with their answers read; `num_unread` of them have none."""

    def __init__(
        self,
        path: Path,
        scorer: ReplyScorer,
        *,
        skip_unknown: bool = False,
        hint: str = "",
        fields: FieldNames | None = None,
    ) -> None:
        super().__init__(path, scorer.items, skip_unknown=skip_unknown, hint=hint, fields=fields)
        self._scorer = scorer

    def _of_line(self, line: Mapping[str, Any], samples: Samples) -> Iterator[Prediction]:
        for prediction in super()._of_line(line, samples):
            read = self._scorer.read(prediction, line)
            self.num_unread += bool(read.problem)
            self.unread.add(read.instance, read.unread)
            self.unread.add_partial(read.instance, "" if read.problem else read.gap)
            yield read
