"""The verdict on an answer about logic models: its fields, and the metrics of tables (dsl.logic.grading)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from msgspec import Meta, Struct, to_builtins

from calibrant.bench.core.attribution import ATTRIBUTION_METRICS, BASE
from calibrant.bench.core.metrics import Metric, MetricSet, Success, View
from calibrant.bench.core.samples import Sample
from calibrant.bench.core.verdict import line_struct
from calibrant.dsl.logic.grading import answer_json, parse_answer

if TYPE_CHECKING:
    from calibrant.dsl.logic.grading import Verdict
    from calibrant.dsl.logic.item import LogicItem

Score: TypeAlias = Mapping[str, Any]


class LogicScoreFields(Struct, frozen=True, kw_only=True):
    """The fields of a record's score."""

    correct: Annotated[
        bool | None, Meta(description="every held-out answer is right; null without held-out experiments")
    ]
    valid: Annotated[bool, Meta(description="the answer is a model of the class, or a table of probabilities")]
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
    """Return a score as records have it."""
    is_valid = not verdict.error
    score = LogicScoreFields(
        correct=verdict.heldout_exact,
        valid=is_valid,
        meaning=_normal_form(item, answer) if is_valid else None,
        **verdict.as_json(),
    )
    return dict(to_builtins(score))


def _normal_form(item: LogicItem, answer: Score) -> str:
    stated = answer_json(parse_answer(answer, item.task))
    return " ".join(stated["model"]) if "model" in stated else str(stated["probabilities"])


def _number(key: str) -> Callable[[Score], float | None]:
    return lambda score: None if score[key] is None else float(score[key])


ANSWERS = (
    Metric("accuracy", "Accuracy", "every held-out answer is right", _number("correct")),
    Metric("cells", "Cells", "share of held-out answers that are right", _number("heldout_accuracy")),
    Metric("brier", "Brier", "mean squared difference of probability and held-out answer", _number("brier")),
    Metric("valid", "Valid", "a model of the class, or a table of probabilities", _number("valid")),
)
MODELS = (
    Metric("optimal", "Optimal", "models with the least misfit", _number("optimal"), True),
    Metric("member", "Fits", "models within the tolerances", _number("fits"), True),
    Metric("edge_f1", "Edge F1", "F1 of a model's edges and the true ones", _number("edge_f1"), True),
)


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
    settings=("acyclic", "cyclic"),
)
