"""Records of closed games, in the format of runs: `table`, `report`, `show --run` and `score` read them as they are."""

from __future__ import annotations

from collections.abc import Mapping
from math import fsum
from typing import Any

import msgspec

from calibrant.bench.core.attribution import KEY, NO_ANSWER, UNDEFINED_VERDICT, verdict_text
from calibrant.bench.core.benchmark import Benchmark
from calibrant.bench.core.registry import is_stated
from calibrant.bench.core.scoring import PEOPLE
from calibrant.bench.play.game import Game
from calibrant.bench.runs.records import Record, Timing, step_records
from calibrant.bench.version import program_version


def protocol_of(participant: str) -> str:
    """Return the name of a participant in records."""
    return PEOPLE + participant


def game_record(game: Game, participant: str, config: Mapping[str, Any], started: str) -> Record:
    """Return the record of a closed game.

    config: feedback and study, which are part of the record's key; started: UTC, ISO 8601
    """
    of, item, steps = game.pool.benchmark, game.item, list(game.steps)
    is_episode = game.episode is not None
    answer = of.scoring.no_answer(item) if game.answer is None else game.answer
    score = of.scoring.score(item, answer, steps)
    attribution = of.attribution(item, answer, steps, score) if steps else None
    return Record(
        pool=game.pool.name,
        pool_digest=game.pool.digest,
        pool_size=len(game.pool.public.items),
        index=game.pool.indices[item.id],
        instance=item.id,
        setting=item.setting,
        stratum=item.stratum,
        protocol=protocol_of(participant),
        config=dict(config),
        outcome="out_of_budget" if game.answer is None else "found",
        answer=answer,
        size=None,
        score=score,
        provenance=_provenance(game),
        program=program_version(),
        benchmark=item.benchmark if is_stated(item.benchmark) else msgspec.UNSET,
        steps=step_records(steps) if is_episode else msgspec.UNSET,
        attribution=msgspec.UNSET if attribution is None else attribution,
        timing=Timing(round(fsum(game.seconds), 3), started, [round(number, 3) for number in game.seconds]),
    )


def evidence_attribution(of: Benchmark[Any], item: Any, record: Record) -> dict[str, Any]:
    """Return what the evidence had decided; records of questions lack it, and it is counted here. Empty if unknown."""
    attribution = record.attribution
    if attribution is msgspec.UNSET and record.steps is msgspec.UNSET:
        attribution = of.attribution(item, record.answer, (), record.score) or {}
    return attribution if isinstance(attribution, dict) else {}


def game_verdict(of: Benchmark[Any], item: Any, record: Record) -> dict[str, Any]:
    """Return whether an answer is right, that and what the evidence had decided in words, and both as records."""
    is_right = of.metrics.success.judge(record.score, record.setting)
    attribution = evidence_attribution(of, item, record)
    if is_right is None:
        text = UNDEFINED_VERDICT
    elif record.steps is msgspec.UNSET or record.steps:
        score = {**record.score, KEY: attribution, NO_ANSWER: record.outcome != "found"}
        text = verdict_text(score, is_right=is_right)
    else:
        text = f"{'right' if is_right else 'not right'}; nothing was read"
    return {"right": is_right, "text": text, "score": record.score, "attribution": attribution or None}


def _provenance(game: Game) -> dict[str, Any]:
    if game.gave_up:
        return {"reason": "the participant gave no answer"}
    return {} if game.answer is not None else {"reason": "the allowance was spent without an answer"}
