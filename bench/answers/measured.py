"""ReplaySCM scores as records and prediction files keep them: the published keys and what tables need beside them."""

from __future__ import annotations

import dataclasses
from typing import Any

from calibrant.dsl.replayscm.problem import TaskKind
from calibrant.dsl.replayscm.score import Score

_BULKY = ("perVariableTrainAccuracy", "perVariableHeldoutAccuracy")
_BULKY_STATS = ("perVariable", "parentsByVar")


def measured(score: Score) -> dict[str, Any]:
    """A score as records keep it: the published keys without per-variable parts, the funnel, the structure metrics."""
    made = {key: value for key, value in score.to_dict().items() if key not in _BULKY}
    if "candidateStats" in made:
        made["candidateStats"] = {k: v for k, v in made["candidateStats"].items() if k not in _BULKY_STATS}
    return made | funnel(score) | structure(score)


def funnel(score: Score) -> dict[str, Any]:
    """The stages of validity, beyond the published keys."""
    return {"strictJson": score.strict_json, "funnel": score.funnel}


def structure(score: Score) -> dict[str, Any]:
    """Structure metrics where they are defined. Gold is not what an Alternative-SCM answer should look like."""
    gold_is_target = score.problem.task.kind is not TaskKind.ALTERNATIVE
    metrics = score.structure if gold_is_target else None
    return {"structure": None if metrics is None else dataclasses.asdict(metrics)}
