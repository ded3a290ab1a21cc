"""Sources of scores for tables: folders of runs, and files that `calibrant score` wrote."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from calibrant.bench.core.attribution import KEY, NO_ANSWER, attribution_of_tie
from calibrant.bench.core.registry import benchmark, stated_name
from calibrant.bench.core.scoring import AnswerContext
from calibrant.bench.core.verdict import MeanScore
from calibrant.bench.runs.records import Key, Record, Timing, folder_records
from calibrant.bench.runs.workers import crash_text
from calibrant.bench.scoring.files import is_eval_log
from calibrant.bench.scoring.lines import scored_lines
from calibrant.bench.scoring.scorer import steps_of
from calibrant.dsl.errors import CalibrantError, short_repr

STEPS = "steps taken"  # of an episode's record, for what replays them; no score has a key of that name
PROVENANCE = "provenance"  # of an episode's record, and of the score that a table reads

_NO_TIME = Timing(0.0, "")
_Answer = tuple[str, str, str, int]  # pool digest, instance, model, number of the sample


def scored_answers(
    sources: Iterable[Path], *, with_steps: bool = False
) -> Iterator[tuple[AnswerContext, Mapping[str, Any]]]:
    """Yield every scored answer of the sources once.

    with_steps: scores of episodes in runs hold their steps under STEPS

    The same record in two folders counts once; two records of the same thing that differ in more than their timing are
    a contradiction, and so are two verdicts on one prediction.
    """
    contents: dict[Key | _Answer, bytes] = {}
    for source in sources:
        if source.is_dir():
            stored: Iterator[tuple[Key | _Answer, bytes, AnswerContext, Mapping[str, Any]]] = _read_run(
                source, with_steps
            )
        else:
            stored = _read_verdicts(source)
        for key, content, context, score in stored:
            if key not in contents:
                contents[key] = content
                yield context, score
            elif contents[key] != content:
                raise CalibrantError(
                    f"{source}: {context.system} on {short_repr(context.instance)} is also elsewhere, and differs"
                )


def _read_run(folder: Path, with_steps: bool) -> Iterator[tuple[Key, bytes, AnswerContext, Mapping[str, Any]]]:
    for record in folder_records(folder):
        score = record.score if record.outcome == "found" else {**record.score, NO_ANSWER: True}
        if record.attribution is not msgspec.UNSET:
            score = {**score, KEY: record.attribution, PROVENANCE: record.provenance}
        if with_steps and record.steps is not msgspec.UNSET:
            score = {**score, STEPS: steps_of(record.steps)}
        if record.ties is not msgspec.UNSET and record.ties.scores:
            parts, ties = [(part.times, _tied_score(record, part.score)) for part in record.ties.scores], record.ties
            score = MeanScore(score, parts, is_drawn=ties.count is not None and int(ties.count) > ties.scored)
        yield record.key, _content(record), context_of(record), score


def _tied_score(record: Record, score: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the score of an answer as good as a record's, with its attribution where the record has one."""
    if record.attribution is msgspec.UNSET:
        return score
    success = benchmark(stated_name(record.benchmark)).metrics.success
    return {**score, KEY: attribution_of_tie(record.attribution, correct=success.is_right(score, record.setting))}


def _read_verdicts(file: Path) -> Iterator[tuple[_Answer, bytes, AnswerContext, Mapping[str, Any]]]:
    if not file.exists():
        raise CalibrantError(f"{file}: there is no such file or folder")
    if not file.is_file():
        raise CalibrantError(f"{file}: neither a folder of a run nor a file that `calibrant score` wrote")
    if is_eval_log(file):
        raise CalibrantError(f"{file}: a log of Inspect; `calibrant score` and `report --predictions` read it")
    _refuse_pool(file)
    for context, line in scored_lines(file):
        content = hashlib.sha256(json.dumps(line, sort_keys=True).encode()).digest()
        yield (context.pool_digest, context.instance, context.system, context.sample), content, context, line


def _refuse_pool(file: Path) -> None:
    """Raise `HintedError`, with the command that solves it, for a pool of items in the place of answers."""
    from calibrant.bench.terminal import HintedError, is_pool, unused_path

    if is_pool(file):
        message = f"{file}: a pool of items, without answers; a run or `calibrant score` gives what is read here"
        raise HintedError(message, command=("run", "exact", file, "--out", unused_path("runs")))


def _content(record: Record) -> bytes:
    untimed = msgspec.structs.replace(record, timing=_NO_TIME)
    return hashlib.sha256(msgspec.json.encode(untimed, order="sorted")).digest()


def context_of(record: Record) -> AnswerContext:
    """Return where the answer in a record is from."""
    name = stated_name(record.benchmark)
    return AnswerContext(
        record.protocol,
        record.pool,
        record.pool_digest,
        record.pool_size,
        record.instance,
        benchmark(name).metrics.row_group(record.setting, record.pool_digest),
        record.stratum,
        record.config,
        record.outcome,
        None if record.outcome == "crashed" else record.timing.seconds,
        benchmark=name,
        reason=_reason(record),
        is_tied=record.ties is not msgspec.UNSET,
    )


def _reason(record: Record) -> str:
    """Why a protocol found nothing, as its record has it; empty where it found something or its record has nothing."""
    if record.outcome == "crashed":
        return crash_text(record.provenance)
    keys = {"impossible": ("exhausted", "reason"), "out_of_budget": ("reached", "reason", "stopped_by")}
    reason = next((record.provenance[key] for key in keys.get(record.outcome, ()) if key in record.provenance), "")
    return reason if isinstance(reason, str) else ""
