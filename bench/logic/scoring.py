"""Answers of logic models: fields of a verdict, reading, scoring and attribution."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import msgspec
from msgspec import Meta, Struct, to_builtins

from calibrant.bench.core.attribution import ATTRIBUTION_METRICS, BASE, attribution_record
from calibrant.bench.core.metrics import Metric, MetricSet, Sample, Success, View
from calibrant.bench.core.scoring import EvaluatorCache, Scorable, last_answer
from calibrant.bench.core.verdict import line_struct
from calibrant.dsl.episode import Step
from calibrant.dsl.lenient_json import Shape
from calibrant.dsl.logic.item import LogicItem
from calibrant.dsl.logic.score import SHAPE, AnswerError, answer_json, grade, is_stated, parse_answer
from calibrant.dsl.logic.trajectories import (
    grade_states,
    is_stated_trajectory,
    is_trajectory_item,
    parse_states,
    trajectory_shape,
)

if TYPE_CHECKING:
    from calibrant.audits.logic.items import HeldoutDecision
    from calibrant.dsl.logic.score import Verdict


# --- Fields of a verdict, and the metrics of tables (dsl.logic.score) -------------------------------------------------
Score: TypeAlias = Mapping[str, Any]


class LogicScoreFields(Struct, frozen=True, kw_only=True):
    """The fields of a record's score."""

    correct: Annotated[
        bool | None,
        Meta(description="every held-out answer, or state, is right; null without held-out experiments"),
    ]
    valid: Annotated[
        bool, Meta(description="the answer is a model of the class, a table of probabilities, or a list of states")
    ]
    heldout_exact: Annotated[bool | None, Meta(description="as `correct`")]
    heldout_accuracy: Annotated[
        float | None, Meta(description="share of held-out answers on whose side the probability is")
    ]
    brier: Annotated[float | None, Meta(description="mean squared difference of probability and held-out answer")]
    optimal: Annotated[bool | None, Meta(description="the model has the least misfit; null of a table")]
    fits: Annotated[bool | None, Meta(description="the model is within the tolerances; null of a table")]
    edge_f1: Annotated[float | None, Meta(description="F1 of its edges and those of the true model; null of a table")]
    error: Annotated[str, Meta(description="why the answer is not valid, empty if it is")]
    meaning: Annotated[str | None, Meta(description="the answer in a normal form; null if it is not valid")]


class LogicAttributionRecord(Struct, forbid_unknown_fields=True, rename={"in_words": "class"}):
    """Decision of the data about an item."""

    kind: Annotated[
        Literal["earned", "missed", "lucky", "short"],
        Meta(
            description="earned (decided, correct), missed (decided, wrong), lucky (undecided, correct) or short "
            "(undecided, wrong)"
        ),
    ]
    decided: Annotated[bool, Meta(description="all models that fit give the same held-out answers")]
    fits: Annotated[bool | None, Meta(description="whether the answer is a model that fits; null of a table")]
    members: Annotated[str, Meta(description="models that fit, in decimal")]
    in_words: Annotated[str, Meta(description="the class of models, in words")]


LogicVerdict = line_struct(
    "LogicVerdict",
    "logic",
    LogicScoreFields,
    "The verdict on one prediction about logic models, then where it belongs.",
    problem=Annotated[str, Meta(description="why the response gives no answer, or one that is not valid; else empty")],
    attribution=Annotated[
        LogicAttributionRecord | None,
        Meta(description="what the data had decided; null where models or answers are too many to count"),
    ],
)


def score_record(item: LogicItem, verdict: Verdict, answer: Score) -> dict[str, Any]:
    """Return the score of a record, ready for JSON."""
    is_valid = not verdict.error
    score = LogicScoreFields(
        correct=verdict.heldout_exact,
        valid=is_valid,
        meaning=_normal_form(item, answer) if is_valid else None,
        **verdict.as_json(),
    )
    return dict(to_builtins(score))


def _normal_form(item: LogicItem, answer: Score) -> str:
    if is_trajectory_item(item):
        parsed = parse_states(answer, item.task)
        return " ".join(parsed.states) if parsed.model is None else parsed.model.to_bnet()
    canonical = answer_json(parse_answer(answer, item.task))
    return " ".join(canonical["model"]) if "model" in canonical else str(canonical["probabilities"])


def _as_float(key: str) -> Callable[[Score], float | None]:
    return lambda score: None if score[key] is None else float(score[key])


ANSWERS = (
    Metric("accuracy", "Accuracy", "every held-out answer is right", _as_float("correct")),
    Metric("cells", "Cells", "share of held-out answers that are right", _as_float("heldout_accuracy")),
    Metric("brier", "Brier", "mean squared difference of probability and held-out answer", _as_float("brier")),
    Metric("valid", "Valid", "a model of the class, or a table of probabilities", _as_float("valid")),
)
MODELS = (
    Metric("optimal", "Optimal", "models with the least misfit", _as_float("optimal"), True),
    Metric("member", "Fits", "models within the tolerances", _as_float("fits"), True),
    Metric("edge_f1", "Edge F1", "F1 of a model's edges and the true ones", _as_float("edge_f1"), True),
)


def _network_of(item: LogicItem) -> str:
    """Return the published network of an item, the cluster of its interval; empty without one."""
    return item.labels.get("latent", "")


def _sample(score: Score) -> Sample:
    return Sample(score["valid"] is True, score["correct"] is True, False, False, score["meaning"])


METRICS = MetricSet(
    benchmark="logic",
    success=Success(
        "every held-out answer is right",
        lambda score, setting: score["correct"] is True,
        lambda score, setting: score["correct"] is not None,
    ),
    views={
        "answers": View(ANSWERS, "logic", "Systems by suite"),
        "models": View(MODELS, "logic-models", "Models that are submitted", "Over answers that are models."),
        "attribution": View(ATTRIBUTION_METRICS, "logic-attribution", "What the data had decided", BASE),
    },
    first=("n", "accuracy", "cells", "brier", "optimal", "member"),
    sample=_sample,
    rights=(("correct", "Correct", lambda sample: sample.correct),),
    settings=("acyclic", "cyclic", "series"),
    item_unit=_network_of,
)


# --- Reading, scoring and attribution of answers ----------------------------------------------------------------------


class LogicScoring(Scorable[LogicItem]):
    """Implements Scorable (bench.core.scoring)."""

    @property
    def verdict_record(self) -> type[msgspec.Struct]:
        return LogicVerdict

    def no_answer(self, item: LogicItem) -> dict[str, Any]:
        """Return an object that is no answer. The empty model would not do, since it may be right."""
        return {}

    def score(self, item: LogicItem, answer: Mapping[str, Any], steps: Sequence[Step[Any]]) -> dict[str, Any]:
        verdict = grade_states(item, dict(answer)) if is_trajectory_item(item) else grade(item, dict(answer))
        return score_record(item, verdict, answer)

    def extract(self, item: LogicItem, response: str | Mapping[str, Any]) -> dict[str, Any]:
        """Return the last JSON object that is not inside another; its form is not checked."""
        return last_answer(response)

    def read_answer(self, item: LogicItem, response: str | Mapping[str, Any]) -> tuple[dict[str, Any], str]:
        """Return the last object, and why it is no answer to the item; empty if it is one."""
        answer = self.extract(item, response)
        try:
            _parse(item, answer)
        except AnswerError as error:
            return answer, str(error)
        return answer, ""

    def shape(self, item: LogicItem) -> Shape:
        return trajectory_shape(item.task) if is_trajectory_item(item) else SHAPE

    def holds_answer(self, item: LogicItem, answer: Mapping[str, Any]) -> bool:
        return is_stated_trajectory(answer, item.task) if is_trajectory_item(item) else is_stated(answer)

    def same_answer(self, item: LogicItem, first: Mapping[str, Any], second: Mapping[str, Any]) -> bool:
        """Return whether two answers are the same model or table, in any order of clauses."""
        try:
            return _parse(item, first) == _parse(item, second)
        except AnswerError:
            return dict(first) == dict(second)


def _parse(item: LogicItem, answer: Mapping[str, Any]) -> object:
    """Return a value that is equal for equivalent answers; `AnswerError` for an invalid one."""
    if is_trajectory_item(item):
        parsed = parse_states(answer, item.task)
        return parsed.states if parsed.model is None else parsed.model.digest
    return parse_answer(answer, item.task)


class LogicAttribution:
    """Implements Attribute (bench.core.scoring): whether all models that fit agree on the held-out answers."""

    def __init__(self) -> None:
        self._decisions: EvaluatorCache[HeldoutDecision | None] = EvaluatorCache()

    def decide_heldout(self, item: LogicItem) -> HeldoutDecision | None:
        """Return what the data decide about the held-out answers (cached); None if the models are not counted."""
        from calibrant.audits.logic.items import heldout_decision

        return self._decisions.get_for(item, lambda: heldout_decision(item))

    def __call__(
        self, item: LogicItem, answer: Mapping[str, Any], steps: Sequence[Step[Any]], score: Mapping[str, Any]
    ) -> dict[str, Any] | None:
        decision = self.decide_heldout(item)
        if decision is None:
            return None
        if score["correct"] is None:
            return None  # the truth is unknown
        return attribution_record(decision.attribution(fits=score["fits"], correct=score["correct"] is True))


SCORING = LogicScoring()
ATTRIBUTE = LogicAttribution()
