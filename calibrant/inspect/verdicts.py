"""The scorer: our verdict on a completion, or on an episode that is replayed, with the figures of our tables."""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Callable, Mapping
from typing import Any, Literal, cast

from inspect_ai.scorer import Metric, SampleScore, Score, Scorer, Target, mean, metric, scorer, stderr
from inspect_ai.solver import TaskState

from calibrant.bench.core.benchmark import Benchmark
from calibrant.bench.core.metrics import InvalidHandling
from calibrant.bench.core.responses import EXCLUDED, Response
from calibrant.bench.scoring.formats import parse_inspect
from calibrant.dsl.errors import CalibrantError
from calibrant.dsl.replayscm.pools.official import table_setting
from calibrant.inspect.samples import CLUSTER, item_of
from calibrant.inspect.solvers import Transcript
from calibrant.verbs import response_scoring

LOGGER = logging.getLogger(__name__)
FOUND = "found"
REFUSED = "refused"  # why there is no score
KEPT = "Transcript:steps"  # in the store of a sample that has one


@metric(name="stderr")
def clustered_stderr() -> Metric:
    """Return the standard error over clusters; NaN, which is undefined, of one: its items are right and wrong alike."""
    over_clusters = cast(Callable[[list[SampleScore]], float], stderr(cluster=CLUSTER))

    def compute(scores: list[SampleScore]) -> float:
        clusters = {(score.sample_metadata or {}).get(CLUSTER) for score in scores}
        return over_clusters(scores) if len(clusters) > 1 else math.nan

    return compute


@scorer(metrics={"*": [mean(), clustered_stderr()]})
def verdict(
    extractor: Literal["paper", "published", "lenient"] = "paper",
    thoughts: Literal["strip", "opened", "keep"] = "strip",
) -> Scorer:
    """Return the verdict of `calibrant score`, flat: `correct` and the columns of our tables; NaN is what is undefined.

    The standard errors are clustered: items that are drawn together (one latent SCM, one program) count once. Of one
    cluster there is none.

    A sample whose record or transcript is refused, or whose request failed, has no score: metrics leave it out, which
    is not a 0, and its explanation says why.

    extractor: rule that reads a response: the paper's, the published one, or the lenient reader
    thoughts: what of a response is thoughts, and no answer; the published rule has its own way
    """
    options: dict[str, Any] = (
        {"extractor": extractor} if extractor == "published" else {"extractor": extractor, "thoughts": thoughts}
    )

    async def score(state: TaskState, target: Target) -> Score:
        try:
            of, item = item_of(state.metadata)
        except CalibrantError as error:
            return unscored(state, error)
        try:
            return score_of(of, item, state)
        except CalibrantError as error:
            return unscored(state, error)

    def unscored(state: TaskState, error: CalibrantError) -> Score:
        LOGGER.warning("sample %s, epoch %s is not scored: %s", state.sample_id, state.epoch, error)
        return Score.unscored(reason=REFUSED, explanation=str(error))

    def score_of(of: Benchmark[Any], item: Any, state: TaskState) -> Score:
        transcript = state.store_as(Transcript) if KEPT in state.store else None
        played = {"steps": transcript.as_steps()} if transcript and of.is_interactive(item) else {}
        response = Response() if transcript and transcript.handed_in else response_of(state)
        if response.stated_reason in EXCLUDED:
            return Score.unscored(
                reason=response.stated_reason, explanation=f"{response.stated_reason}: no answer was made"
            )
        verdict_on_response = response_scoring(of, options | played)(item, response)
        record = verdict_on_response.to_dict()
        outcomes = [transcript.outcome] if transcript and transcript.outcome not in ("", FOUND) else []
        return Score(
            value=figures(of, record, table_setting(state.metadata.get("poolDigest", ""), item.setting)),
            answer=_answer(of, transcript, response.text or ""),
            explanation="; ".join([*outcomes, *([verdict_on_response.failure] if verdict_on_response.failure else [])])
            or None,
            metadata={"verdict": record, "reason": verdict_on_response.reason},
        )

    return score


def response_of(state: TaskState) -> Response:
    """Return the response of a sample, as it is read from its log."""
    output = state.output.model_dump(mode="json")
    return parse_inspect({"output": output}).responses[0]


def figures(of: Benchmark[Any], record: Mapping[str, Any], setting: str) -> dict[str, float]:
    """Return `correct`, then the columns of the benchmark's default view; the same keys for every answer.

    An episode that ended without an answer is not correct; NaN is `correct` where nothing is held out.
    """
    fields = of.metrics.verdict(record, setting, InvalidHandling.PUBLISHED)
    columns = of.metrics.views[of.metrics.default_view].metrics
    values = {column.key: column.value(fields) for column in columns}
    is_defined = of.metrics.success.is_defined(record, setting)
    return {
        "correct": float(record["correct"] is True) if is_defined else math.nan,
        **{key: math.nan if value is None else float(value) for key, value in values.items()},
    }


def _answer(of: Benchmark[Any], told: Transcript | None, response: str) -> str:
    submitted = of.play.submitted(told.as_steps()) if told and told.handed_in else None
    return response if submitted is None else json.dumps(submitted)
