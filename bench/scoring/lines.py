"""Lines of verdicts: written by `calibrant score`, read by tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec

from calibrant.bench.core.registry import benchmark, stated_name
from calibrant.bench.core.responses import EXCLUDED
from calibrant.bench.core.scoring import NO_MODEL, AnswerContext, template_option
from calibrant.bench.core.verdict import LazyVerdict, encode_json
from calibrant.bench.scoring.files import json_object, numbered_lines
from calibrant.bench.scoring.logs import is_eval_log
from calibrant.bench.scoring.scorer import ScoredPrediction
from calibrant.dsl.errors import CalibrantError


def json_line(line: Mapping[str, Any]) -> str:
    """Return one line of strict JSON in ASCII; NaN in a submitted experiment, which JSON lacks, becomes null."""
    try:
        return line.encode() if isinstance(line, LazyVerdict) else encode_json(line)
    except ValueError:
        return encode_json(_finite(dict(line)))


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
    template: str = ""


class _ExcludedFields(msgspec.Struct, rename="camel"):
    """Fields of a line of an excluded response."""

    instance_id: str
    pool: str
    pool_digest: str
    pool_size: int
    setting: str
    stratum: str
    reason: Literal["not_run", "infrastructure_error"]
    model: str | None = None


def context_of_excluded(line: Mapping[str, Any]) -> AnswerContext | None:
    """Return where an excluded response is from; None for any other line."""
    if not isinstance(line.get("reason"), str) or line["reason"] not in EXCLUDED:
        return None
    of = benchmark(stated_name(line.get("benchmark")))
    fields = msgspec.convert(line, _ExcludedFields)
    return AnswerContext(
        fields.model or NO_MODEL,
        fields.pool,
        fields.pool_digest,
        fields.pool_size,
        fields.instance_id,
        fields.setting,
        fields.stratum,
        benchmark=of.name,
    )


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
        template_option(context.template),
        seconds=context.seconds,
        sample=context.sample,
        benchmark=of.name,
    )


def refuse_verdicts(paths: Iterable[Path]) -> None:
    """Refuse files of verdicts where predictions are read: their lines hold no answers."""
    for path in paths:
        if not path.is_file() or is_eval_log(path):
            continue
        _, raw = next(numbered_lines(path), (0, b""))
        try:
            context_of_line(json_object(raw) or {})
        except (msgspec.ValidationError, CalibrantError):
            continue
        raise CalibrantError(f"{path}: verdicts of `calibrant score`, without answers; give the predictions it scored")


_REMEDY = "; predictions are scored first: calibrant score POOL PREDICTIONS --out VERDICTS"


def scored_lines(path: Path, *, with_excluded: bool = False) -> Iterator[ScoredPrediction]:
    """Yield what `calibrant score` wrote, for a table; `CalibrantError` names file and line of anything else.

    with_excluded: also responses that are in no rate
    """
    number = 0
    for number, raw in numbered_lines(path):
        try:
            line = json_object(raw) or {}
        except CalibrantError as error:
            raise CalibrantError(f"{path}: line {number}: {error}") from None
        if line.keys() == {"summary"}:  # the last line of `score --json`
            continue
        try:
            excluded = context_of_excluded(line)
            if excluded is None or with_excluded:
                yield ScoredPrediction(context_of_line(line) if excluded is None else excluded, line)
        except (msgspec.ValidationError, CalibrantError):
            raise CalibrantError(f"{path}: line {number}: not a line that `calibrant score` wrote{_REMEDY}") from None
    if not number:
        raise CalibrantError(f"{path}: no verdicts in it; `calibrant score --out` writes them")
