"""Lines of verdicts: written by `calibrant score`, read by tables."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from calibrant.bench.core.registry import benchmark, stated_name
from calibrant.bench.core.scoring import NO_MODEL, AnswerContext
from calibrant.bench.core.verdict import LazyVerdict
from calibrant.bench.scoring.files import json_object, numbered_lines
from calibrant.bench.scoring.scorer import ScoredPrediction
from calibrant.dsl.errors import CalibrantError


def json_line(line: Mapping[str, Any]) -> str:
    """Return one line of strict JSON in ASCII; NaN in a submitted experiment, which JSON lacks, becomes null."""
    if isinstance(line, LazyVerdict):
        line = line.record()
    try:
        return json.dumps(line, allow_nan=False)
    except ValueError:
        return json.dumps(_finite(line), allow_nan=False)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_finite(part) for part in value]
    return None if isinstance(value, float) and (value != value or abs(value) == float("inf")) else value


class _ContextFields(msgspec.Struct):
    """The fields of a line that a table needs besides the verdict itself."""

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


def context_of_line(line: Mapping[str, Any]) -> AnswerContext:
    """Return where the answer of a scored prediction is from; `msgspec.ValidationError` if it is not one.

    A line that names its benchmark has all of that one's fields; of ReplaySCM's, which name none, tables need fewer.
    """
    of = benchmark(stated_name(line.get("benchmark")))
    if "benchmark" in line:
        msgspec.convert(line, of.scoring.verdict_record, strict=True)
        line = {**line, "valid": True}
    context = msgspec.convert(line, _ContextFields)
    return AnswerContext(
        context.model or NO_MODEL,
        context.pool,
        context.poolDigest,
        context.poolSize,
        context.instanceId,
        context.setting,
        context.stratum,
        seconds=context.seconds,
        sample=context.sample,
        benchmark=of.name,
    )


_REMEDY = "; predictions are scored first: calibrant score POOL PREDICTIONS --out VERDICTS"


def scored_lines(path: Path) -> Iterator[ScoredPrediction]:
    """Yield what `calibrant score` wrote, for a table; `CalibrantError` names file and line of anything else."""
    number = 0
    for number, raw in numbered_lines(path):
        try:
            line = json_object(raw) or {}
        except CalibrantError as error:
            raise CalibrantError(f"{path}: line {number}: {error}") from None
        try:
            yield ScoredPrediction(context_of_line(line), line)
        except (msgspec.ValidationError, CalibrantError):
            raise CalibrantError(f"{path}: line {number}: not a line that `calibrant score` wrote{_REMEDY}") from None
    if not number:
        raise CalibrantError(f"{path}: no verdicts in it; `calibrant score --out` writes them")
