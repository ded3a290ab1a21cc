"""Verdicts on predictions: lines with the published scorer's keys, written by `calibrant score`, read by tables."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from calibrant.bench.core.registry import DEFAULT, benchmark
from calibrant.bench.core.verdict import LazyVerdict
from calibrant.bench.pools.ids import PublicIds
from calibrant.bench.replayscm.meaning import meaning_digest
from calibrant.bench.replayscm.verdict import MEANING, bulk_key, funnel, structure
from calibrant.bench.report.rate_rows import AnswerOrigin
from calibrant.bench.scoring.input.json_lines import json_object, numbered_lines
from calibrant.bench.scoring.input.unread import UNREAD_STAGES
from calibrant.bench.scoring.predictions import PoolItems, Prediction
from calibrant.dsl.errors import CalibrantError
from calibrant.dsl.parse_limits import TooLargeError
from calibrant.dsl.pool_text import file_digest
from calibrant.dsl.replayscm.pools.files import read_pool
from calibrant.dsl.replayscm.pools.published_files import table_setting
from calibrant.dsl.replayscm.problem import Pool, Problem
from calibrant.dsl.replayscm.score import Evaluator, Score
from calibrant.dsl.stored_items import items_by_id

MOST_EVALUATORS = 2000  # that are kept at a time; a pool that is not larger has each made once
NO_MODEL = "(no model)"  # the system of predictions that name none


class ScoredPrediction(NamedTuple):
    """A prediction's verdict: the line to write, and where its answer is from."""

    origin: AnswerOrigin
    line: Mapping[str, Any]


class _ScoredPool:
    """A pool, and the evaluators of its items: each is made when its item is first met, and kept."""

    def __init__(self, path: Path, extractor: str) -> None:
        self.pool: Pool = read_pool(path, keep_results=False)
        self.digest = file_digest(path)
        self.names = tuple(dict.fromkeys((self.pool.name, path.name)))
        self._extractor = extractor
        self.public = PublicIds.of_pool(path, self.pool.problems)
        self.problems: Mapping[str, Problem] = items_by_id(self.pool.problems)
        self._evaluators: dict[str, Evaluator] = {}

    def __getstate__(self) -> dict[str, Any]:
        """Without evaluators: what those keep fills other processes, whose stores do not know of it."""
        return {**self.__dict__, "_evaluators": {}}

    def prompt(self, instance: str) -> str:
        return benchmark(DEFAULT).system_and_prompt(self.problems[instance])[1]

    def forget(self) -> None:
        self._evaluators.clear()

    def evaluator(self, instance: str) -> Evaluator:
        found = self._evaluators.get(instance)
        if found is None:
            if len(self._evaluators) >= MOST_EVALUATORS:
                self._evaluators.clear()
            # of what a verdict in a table costs, reading mechanisms is a tenth: no reason for 120 MB in each process
            found = Evaluator(self.problems[instance], extractor=self._extractor, compiles=False)
            self._evaluators[instance] = found
        return found


class PredictionScorer:
    """Scores predictions for one or more pools.

    extractor: how texts become answers; with_structure: also the structure metrics, which cost as much as all the rest
    """

    def __init__(self, pools: Sequence[Path], *, extractor: str = "paper", with_structure: bool = False) -> None:
        loaded = [_ScoredPool(path, extractor) for path in pools]
        self._pools = {pool.digest: pool for pool in loaded}
        self._with_structure = with_structure

    @property
    def items(self) -> list[PoolItems]:
        """Return what predictions may be about."""
        return [
            PoolItems(pool.digest, pool.names, pool.problems.keys(), pool.public, pool.prompt)
            for pool in self._pools.values()
        ]

    def forget(self) -> None:
        """Drop what is kept of scored predictions to score others sooner."""
        for pool in self._pools.values():
            pool.forget()

    def origin(self, prediction: Prediction) -> AnswerOrigin:
        """Return where a prediction is from, as tables call it."""
        pool = self._pools[prediction.pool]
        problem = pool.problems[prediction.instance]
        return AnswerOrigin(
            prediction.model or NO_MODEL,
            pool.pool.name,
            pool.digest,
            len(pool.pool),
            prediction.instance,
            table_setting(pool.digest, problem.setting),
            problem.stratum,
            seconds=prediction.seconds,
            sample=prediction.sample,
        )

    def score(self, prediction: Prediction) -> ScoredPrediction:
        """The verdict on one prediction for an item of the pools."""
        evaluator = self._pools[prediction.pool].evaluator(prediction.instance)
        answer = prediction.answer
        score = evaluator.score_text(answer) if isinstance(answer, str) else evaluator.score_answer(answer)
        origin, meant = self.origin(prediction), meaning_digest(score)
        make = partial(self._line, prediction.model, origin, score, meant)
        key = None if self._with_structure else bulk_key(score)
        rejection = score.rejection
        unread = rejection.reason if rejection is not None and rejection.stage in UNREAD_STAGES else ""
        line: Mapping[str, Any] = make() if key is None else LazyVerdict(make, key, meant, unread)
        return ScoredPrediction(origin, line)

    def _line(self, model: str | None, origin: AnswerOrigin, score: Score, meant: str | None) -> dict[str, Any]:
        line = {
            "instanceId": origin.instance,
            "model": model,
            "sample": origin.sample,
            **score.to_dict(),
            "pool": origin.pool,
            "poolDigest": origin.pool_digest,
            "poolSize": origin.pool_size,
            "setting": origin.setting,
            "stratum": origin.stratum,
            MEANING: meant,
            "seconds": origin.seconds,
            **funnel(score),
        }
        return line | structure(score) if self._with_structure else line


def json_line(value: Mapping[str, Any]) -> str:
    """One line of strict JSON in ASCII. What JSON has no number for (NaN in a submitted experiment) becomes null."""
    if isinstance(value, LazyVerdict):
        value = value.record()
    try:
        return json.dumps(value, allow_nan=False)
    except ValueError:
        return json.dumps(_finite(value), allow_nan=False)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and (value != value or abs(value) == float("inf")) else value


class _Line(msgspec.Struct):
    """What a table needs of a line that `score` wrote, besides the verdict itself."""

    instanceId: str  # noqa: N815  # the names of the file
    valid: bool
    pool: str
    poolDigest: str  # noqa: N815
    poolSize: int  # noqa: N815
    setting: str
    stratum: str
    model: str | None = None
    sample: int = 0
    seconds: float | None = None


def origin_of_line(line: Mapping[str, Any]) -> AnswerOrigin:
    """Return where the answer of a scored prediction is from; `msgspec.ValidationError` if it is not one.

    A line that names its benchmark has all of that one's fields; of ReplaySCM's, which name none, tables need fewer.
    """
    named = benchmark(line["benchmark"]) if isinstance(line.get("benchmark"), str) else None
    if named is not None:
        msgspec.convert(line, named.verdict_record, strict=True)
    read = msgspec.convert(line if named is None else {**line, "valid": True}, _Line)
    return AnswerOrigin(
        read.model or NO_MODEL,
        read.pool,
        read.poolDigest,
        read.poolSize,
        read.instanceId,
        read.setting,
        read.stratum,
        seconds=read.seconds,
        sample=read.sample,
        benchmark=DEFAULT if named is None else named.name,
    )


def scored_lines(path: Path) -> Iterator[ScoredPrediction]:
    """Return what `calibrant score` wrote, for a table; `CalibrantError` names file and line of anything else."""
    for number, raw in numbered_lines(path):
        try:
            line = json_object(raw) or {}
            yield ScoredPrediction(origin_of_line(line), line)
        except TooLargeError as error:
            raise CalibrantError(f"{path}: line {number}: {error}") from None
        except (msgspec.ValidationError, CalibrantError):
            raise CalibrantError(f"{path}: line {number}: not a line that `calibrant score` wrote") from None
