"""Grades of the extended blickets in tables (arXiv:2604.20039, section 4; the terms are those of dsl.blickets.grading).

Rates whose denominator an agent chooses by what it does (RE accuracy, exactly-N) stand beside those that it does not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from calibrant.bench.answers.attribution import ATTRIBUTION_COLUMNS
from calibrant.bench.core.metrics import InvalidHandling, Metric, MetricSet
from calibrant.bench.core.samples import Sample

Score = Mapping[str, Any]


def _class(name: str) -> Callable[[Score], float | None]:
    return lambda score: None if score["class"] is None else float(score["class"] == name)


def _correct(score: Score) -> bool:
    return score["correct"] is True


def _eligible(score: Score) -> float | None:
    return float(_correct(score)) if score["class"] == "RE" else None


def _switched(score: Score) -> float | None:
    return float(_correct(score)) if score["class"] in ("RE", "exactly-N") else None


def _error(name: str) -> Callable[[Score], float]:
    return lambda score: float(name in score["errors"])


ANSWERS = (
    Metric("accuracy", "Accuracy", _correct),
    Metric("steps", "Steps", lambda score: score["steps"], decimals=1),
    Metric("exactly_n_rate", "Exactly-N", _class("exactly-N")),
    Metric("eligible_rate", "RE rate", _class("RE")),
    Metric("eligible_accuracy", "RE acc", _eligible, True),
    Metric("switched_accuracy", "Switched", _switched, True),
    Metric("answered", "Answered", lambda score: score["closed"] == "answered"),
)
EVIDENCE = (
    Metric("activations", "Activations", lambda score: score["activations"], decimals=1),
    Metric("first_activation", "First", lambda score: score["first_activation"], True, 1),
    Metric("distinct_configurations", "Distinct", lambda score: score["distinct_configurations"], decimals=1),
    Metric("post_evidence", "Seen after", lambda score: score["post_evidence"], True, 1),
    Metric("refused", "Refused", lambda score: score["refused"], decimals=1),
    Metric("strict", "Strict", lambda score: score["strict"] is True),
)
ERRORS = tuple(Metric(name, name, _error(name)) for name in ("type", "over", "under", "mixed", "timeout"))


def _sample(score: Score) -> Sample:
    answer = score["answer"]
    meant = None if answer is None else f"{answer['rule']} {' '.join(sorted(answer['blickets']))}"
    return Sample(answer is not None, _correct(score), False, False, meant)


def _verdict(score: Score, setting: str, means: InvalidHandling) -> Score:
    return score


MEASURES = MetricSet(
    benchmark="blickets",
    views={"answers": ANSWERS, "evidence": EVIDENCE, "errors": ERRORS, "attribution": ATTRIBUTION_COLUMNS},
    first=("n", "accuracy", "steps", "eligible_rate", "eligible_accuracy", "exactly_n_rate", "switched_accuracy"),
    verdict=_verdict,
    sample=_sample,
    rights=(("correct", "Correct", lambda sample: sample.correct),),
    unit=lambda instance: instance,
    settings=("conjunctive", "disjunctive", "moderator", "order", "stochastic", "noisy-moderator"),
)
