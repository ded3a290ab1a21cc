"""Scoring of prediction files: JSON lines in, JSON lines with the published scorer's keys out, one at a time.

A prediction names its `instanceId`, usually its `model`, and gives the answer as `extractedAnswer` (an object) or as
text in `rawResponse`, `response` or `text`. Memory holds the pool and the (instance, model) pairs that were seen.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from bench.answers.measured import funnel, structure
from bench.report.rate_rows import Run
from dsl.errors import CalibrantError, shown
from dsl.replayscm.pools.files import file_digest, read_pool
from dsl.replayscm.pools.published_files import table_setting
from dsl.replayscm.score import Evaluator

NO_MODEL = "(no model)"  # the system of predictions that name none


class Scored(NamedTuple):
    """A prediction's verdict: the line to write, and what a table calls its run."""

    run: Run
    line: dict[str, Any]


class PredictionScorer:
    """Scores predictions for one pool. An evaluator is made when its instance is first met, and kept.

    extractor: how texts become answers; with_structure: also the structure metrics, which cost as much as all the rest
    """

    def __init__(self, pool: Path, *, extractor: str = "paper", with_structure: bool = False) -> None:
        loaded = read_pool(pool, keep_results=False)
        self.pool = loaded.name
        self.pool_size = len(loaded)
        self.digest = file_digest(pool)
        self._extractor = extractor
        self._extras = (funnel, structure) if with_structure else (funnel,)
        self._problems = {problem.id: problem for problem in loaded.problems}
        self._evaluators: dict[str, Evaluator] = {}

    def knows(self, instance: str) -> bool:
        return instance in self._problems

    def score(self, prediction: Mapping[str, Any]) -> Scored:
        """The verdict on one prediction for an instance of the pool."""
        instance: str = prediction["instanceId"]
        evaluator = self._evaluators.get(instance)
        if evaluator is None:
            evaluator = Evaluator(self._problems[instance], extractor=self._extractor)
            self._evaluators[instance] = evaluator
        score = evaluator.score_prediction(prediction)
        model = prediction.get("model")
        problem = evaluator.problem
        place = {
            "pool": self.pool,
            "poolDigest": self.digest,
            "poolSize": self.pool_size,
            "setting": table_setting(self.digest, problem.setting),
            "stratum": problem.stratum,
        }
        line = {"instanceId": instance, "model": model, **score.to_dict(), **place}
        for extra in self._extras:
            line |= extra(score)
        return Scored(run_of_line(line), line)


class Predictions:
    """The predictions of a file, checked: `CalibrantError` names file and line of the first that cannot be scored.

    skip_unknown: pass over instances that the pool does not have (their number is `num_skipped`) instead of refusing
    """

    def __init__(self, lines: Iterable[bytes], file: str, scorer: PredictionScorer, *, skip_unknown: bool) -> None:
        self._lines = lines
        self._file = file
        self._scorer = scorer
        self._skip_unknown = skip_unknown
        self.num_skipped = 0

    def __iter__(self) -> Iterator[dict[str, Any]]:
        seen: set[tuple[str, str | None]] = set()
        for number, raw in enumerate(self._lines, 1):
            if not raw.strip():
                continue
            prediction = self._parsed(raw, number)
            instance, model = prediction["instanceId"], prediction.get("model")
            if not self._scorer.knows(instance):
                if self._skip_unknown:
                    self.num_skipped += 1
                    continue
                hint = "; --skip-unknown passes over such lines"
                raise self._refusal(number, f"{self._scorer.pool} has no instance {shown(instance)}{hint}")
            if (instance, model) in seen:
                raise self._refusal(number, f"a second prediction of model {shown(model)} for {shown(instance)}")
            seen.add((instance, model))
            yield prediction

    def _refusal(self, number: int, reason: str) -> CalibrantError:
        return CalibrantError(f"{self._file}: line {number}: {reason}")

    def _parsed(self, raw: bytes, number: int) -> dict[str, Any]:
        prediction = _object(raw)
        if prediction is None:
            raise self._refusal(number, "not a JSON object in UTF-8")
        if not isinstance(prediction.get("instanceId"), str):
            raise self._refusal(number, f"instanceId is {shown(prediction.get('instanceId'))}, not a text")
        if not isinstance(prediction.get("model"), str | None):
            raise self._refusal(number, f"model is {shown(prediction['model'])}, not a text")
        return prediction


def _object(raw: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(raw.decode("utf-8"))
    except (ValueError, RecursionError):  # bad JSON, bad UTF-8, an integer without end; nesting without end
        return None
    return value if isinstance(value, dict) else None


def json_line(value: Mapping[str, Any]) -> str:
    """One line of strict JSON in ASCII. What JSON has no number for (NaN in a submitted experiment) becomes null."""
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


def run_of_line(line: Mapping[str, Any]) -> Run:
    """What a table calls the run of a scored prediction; `msgspec.ValidationError` if it is not one."""
    read = msgspec.convert(line, _Line)
    system = read.model or NO_MODEL
    return Run(system, read.pool, read.poolDigest, read.poolSize, read.instanceId, read.setting, read.stratum)


def scored_lines(path: Path) -> Iterator[Scored]:
    """What `calibrant score` wrote, for a table; `CalibrantError` names file and line of anything else."""
    with path.open("rb") as lines:
        for number, raw in enumerate(lines, 1):
            line = _object(raw)
            try:
                yield Scored(run_of_line(line or {}), line or {})
            except msgspec.ValidationError:
                raise CalibrantError(f"{path}: line {number}: not a line that `calibrant score` wrote") from None
